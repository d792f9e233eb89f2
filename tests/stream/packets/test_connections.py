"""Finished connections as records: attributes in the range of the data they are compared with, names that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import CLIENT, NO_TIMEOUTS, handshake, icmp, ipv4, records_of, tcp, udp

from netclust.errors import InputError
from netclust.records.reader import read_table
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.stream.packets.capture_files import list_captures
from netclust.stream.packets.capture_reader import CaptureReader
from netclust.stream.packets.connections import SCHEMAS, connection_maker, context_columns
from netclust.stream.packets.services import kdd_services

# Ours have more than the data had: there was no ARP, no SCTP, and no limit on how long a capture is.
NEW_PROTOCOLS = {"arp", "sctp", "igmp", "gre", "esp", "ip"}
NEW_SERVICES = {"arp_request", "arp_reply", "arp_other", "ip_other"}


@pytest.fixture(scope="module")
def kdd_train(data_folder: Path) -> Table:
    return read_table(data_folder / "nsl-kdd" / "KDDTrain+.txt.xz", load_schema("kdd"))


@pytest.fixture(scope="module")
def captured(data_folder: Path) -> Table:
    """All shared captures, each on its own, as KDD records."""
    folders = [data_folder / "pcap" / name for name in ("attack", "mixed", "benign")]
    kdd = load_schema("kdd")
    parts = [t for path in list_captures(folders) for t in CaptureReader([path], kdd, context=False, checksum=False)]
    return concat_tables(parts)


def test_attributes_stay_in_the_range_of_kddtrain(kdd_train: Table, captured: Table) -> None:
    assert len(captured) > 50_000
    for f, attribute in enumerate(captured.schema.numeric):
        ours, theirs = captured.num[:, f], kdd_train.num[:, f]
        assert ours.min() >= theirs.min(), attribute.name
        assert ours.max() <= theirs.max(), attribute.name
        if attribute.name.endswith("_rate"):
            assert np.allclose(ours * 100, np.rint(ours * 100), atol=1e-9), attribute.name
        else:
            assert (ours == np.rint(ours)).all(), attribute.name


def test_symbols_are_those_of_kddtrain(kdd_train: Table, captured: Table) -> None:
    for s, attribute in enumerate(captured.schema.coded):
        ours = {captured.symbols[s][k] for k in np.unique(captured.sym[:, s])}
        theirs = {kdd_train.symbols[s][k] for k in np.unique(kdd_train.sym[:, s])}
        new = {"protocol_type": NEW_PROTOCOLS, "service": NEW_SERVICES, "flag": {"RSTRH", "SHR"}}.get(
            attribute.name, set()
        )
        assert ours <= theirs | new, attribute.name
    assert set(kdd_services().names[1:]) - NEW_SERVICES <= {*kdd_train.symbols[1]} | {"harvest"}


def test_the_data_itself_counts_the_current_record(kdd_train: Table) -> None:
    """Why the current record counts, and which flags are errors: read off the data (see traffic_counts)."""
    names = [a.name for a in kdd_train.schema.numeric]
    column = {name: kdd_train.num[:, f] for f, name in enumerate(names)}
    alone = column["count"] == 1
    assert (column["same_srv_rate"][alone] == 1).all()
    assert (column["count"] == 0).sum() < 20
    assert (column["count"].max(), column["dst_host_count"].max()) == (511, 255)
    flag = np.array(kdd_train.symbols[2], object)[kdd_train.sym[:, 2]]
    for name in ("S0", "S1", "S2", "S3", "SH"):
        assert (column["serror_rate"][alone & (flag == name)] == 1).all()
    for name in ("REJ", "RSTO", "RSTR", "RSTOS0"):
        assert (column["rerror_rate"][alone & (flag == name)] == 1).all()
    for name in ("SF", "OTH"):
        assert (column["serror_rate"][alone & (flag == name)] == 0).all()


def row(records: Any, schema: str = "kdd") -> dict[str, Any]:
    table = connection_maker(schema).table(records)
    numbers = dict(zip((a.name for a in table.schema.numeric), table.num[0].tolist(), strict=True))
    return numbers | {a.name: table.symbols[s][table.sym[0, s]] for s, a in enumerate(table.schema.coded)}


@pytest.mark.parametrize(
    ("port", "service"),
    [(80, "http"), (21, "ftp"), (6000, "X11"), (5555, "other"), (600, "private"), (443, "http_443")],
)
def test_ports_have_the_services_of_kdd(port: int, service: str) -> None:
    assert row(records_of([tcp(0, "S", dport=port)]))["service"] == service


def test_basic_attributes_are_right() -> None:
    packets = [*handshake(), tcp(0.5, "PAU", seq=101, data=b"12345"), tcp(2.9, "A", back=True, seq=901, data=b"123")]
    found = row(records_of(packets, NO_TIMEOUTS))
    assert (found["duration"], found["src_bytes"], found["dst_bytes"], found["urgent"]) == (2, 5, 3, 1)
    assert (found["protocol_type"], found["flag"], found["land"]) == ("tcp", "S1", "0")


def test_a_packet_to_its_own_sender_is_land() -> None:
    packet = tcp(0, "S", src=CLIENT, dst=CLIENT, sport=139, dport=139)
    assert row(records_of([packet]))["land"] == "1"
    assert row(records_of([icmp(0, 8)]))["land"] == "0"


def test_bytes_of_a_ping_include_its_header() -> None:
    # As in the data, where an empty ping has 8 bytes.
    found = row(records_of([icmp(0, 8)]))
    assert (found["src_bytes"], found["service"], found["flag"]) == (8, "eco_i", "SF")


def test_udp_is_sf_in_kdd() -> None:
    assert row(records_of([udp(0)]))["flag"] == "SF"
    assert row(records_of([udp(0)]), "flow")["state"] == "S0"


def test_another_protocol_has_a_name() -> None:
    found = row(records_of([(0, ipv4(CLIENT, "10.9.9.9", 89, b"hello"))]))
    assert (found["protocol_type"], found["service"]) == ("ip", "ip_other")


def test_a_scan_is_seen_in_the_counts_of_its_source() -> None:
    scan = [tcp(k * 0.1, "S", dport=1000 + k, dst=f"192.168.7.{k % 5}") for k in range(20)]
    table = connection_maker("flow").table(records_of([*scan, udp(30)]))
    last = dict(zip((a.name for a in table.schema.numeric), table.num[19].tolist(), strict=True))
    assert (last["src_flows"], last["src_hosts"], last["src_ports"], last["src_failed_rate"]) == (20, 5, 20, 1)
    assert (last["dst_flows"], last["dst_sources"], last["dst_failed_rate"]) == (4, 1, 1)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_attributes_are_complete_and_within_bounds(schema: str, data_folder: Path) -> None:
    captures = list_captures([data_folder / "pcap" / "mixed"])
    for table in CaptureReader(captures[:3], load_schema(schema), context=False):
        assert np.isfinite(table.num).all()
        for f, attribute in enumerate(table.schema.numeric):
            low = -np.inf if attribute.min is None else attribute.min
            high = np.inf if attribute.max is None else attribute.max
            assert table.num[:, f].min() >= low, attribute.name
            assert table.num[:, f].max() <= high, attribute.name


@pytest.mark.parametrize("schema", SCHEMAS)
def test_records_do_not_depend_on_the_batches_they_are_made_in(schema: str) -> None:
    records = records_of([udp(k * 0.3, sport=1 + k % 7, dport=50 + k % 3) for k in range(60)] + [udp(500)])
    whole = connection_maker(schema).table(records)
    maker = connection_maker(schema)
    cut = concat_tables([maker.table(records[at : at + 3]) for at in range(0, len(records), 3)])
    assert cut.num.tolist() == whole.num.tolist()
    assert cut.sym.tolist() == whole.sym.tolist()
    assert cut.seq.tolist() == whole.seq.tolist() == list(range(len(records)))


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(InputError, match="schema kdd, flow, conn, not zeek"):
        connection_maker("zeek")


def test_context_has_what_people_look_for() -> None:
    context = context_columns(records_of([udp(0, dport=53)]))
    assert {name: column[0] for name, column in context.items() if name != "start"} == {
        "uid": "0", "source": CLIENT, "source_port": "40000", "destination": "192.168.0.9", "destination_port": "53",
        "vlan": "0", "end": "idle", "part": "0", "name": "", "tls": "",
    }  # fmt: skip
    assert context["start"][0] == "2023-11-14T22:13:20.000000000Z"
