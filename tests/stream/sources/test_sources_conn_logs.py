"""Zeek's and Suricata's logs: the same values as from a capture, whatever else stands in them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conn_logs import STATE_FLAGS, ZEEK_FIELDS, ZEEK_HEADER, eve_lines, loggable, zeek_json, zeek_rows, zeek_tsv
from numpy.typing import NDArray
from text_sources import Watched, opened, read_all, rows, text_source

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError, ModelError
from netclust.kernels.packets.flow_layout import CONTENT_NAMES
from netclust.records.schema import load_schema
from netclust.records.table import Table
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.connections import connection_maker
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.sources.base import SourceState
from netclust.stream.sources.eve import conn_state


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> NDArray[Any]:
    """Connections of a simulated hour, as the flow table gives them."""
    path = tmp_path_factory.mktemp("capture") / "hour.pcap"
    simulate_capture(path, hours=0.3, seed=4, hosts=15, scale=0.5, campaigns_per_hour=8)
    table = FlowTable()
    parts = [table.feed(block) for block in CaptureFile(path)]
    found = loggable(np.concatenate([*parts, table.finish()]))
    assert len(found) > 500
    return found


Columns = dict[str, list[Any]]


def log(path: Path, kind: str, **settings: Any) -> Columns:
    """All that is read from a log, by name."""
    source = opened(path, kind=kind, **settings)
    found: Columns = {}
    for arrival in source:
        for name, values in columns(arrival.table).items():
            found.setdefault(name, []).extend(values)
    source.close()
    return found


def columns(table: Table) -> Columns:
    found: Columns = {a.name: table.num[:, f].tolist() for f, a in enumerate(table.schema.numeric)}
    for s, a in enumerate(table.schema.coded):
        found[a.name] = [table.symbols[s][k] for k in table.sym[:, s]]
    found |= {
        "key of partition": table.key.tolist(),
        "time": table.time.tolist(),
        "label": table.label_names().tolist(),
    }
    return found | {name: column.tolist() for name, column in table.context.items()}


def same(ours: Columns, theirs: Columns, but: set[str]) -> None:
    compared = (ours.keys() & theirs.keys()) - but
    assert len(compared) > 15
    for name in compared:
        assert ours[name] == theirs[name], name


@pytest.mark.parametrize("form", ["tsv", "json"])
@pytest.mark.parametrize("schema", ["conn", "kdd"])
def test_a_zeek_log_has_the_values_of_the_capture(
    records: NDArray[Any], tmp_path: Path, form: str, schema: str
) -> None:
    path = tmp_path / "conn.log"
    lines = [ZEEK_HEADER, *zeek_tsv(records), "#close\t2026\n"] if form == "tsv" else zeek_json(records)
    path.write_text("".join(lines))
    theirs = log(path, "zeek", schema_=schema)
    retimed = records.copy()  # a log tells when the last packet was, not when it was over
    if schema == "kdd":
        retimed["time"] = np.maximum.accumulate(records["flow"]["last"])
    ours = columns(connection_maker(schema).table(retimed))
    # Content is in no log; a ping's identifier, which is its port, neither.
    same(ours, theirs, {"uid", "time", "dst_host_same_src_port_rate", "urgent", "wrong_fragment", *CONTENT_NAMES})
    assert theirs["time"] == records["flow"]["last"].tolist()


def test_flow_events_have_the_values_of_the_capture(records: NDArray[Any], tmp_path: Path) -> None:
    path = tmp_path / "eve.json"
    path.write_text("".join(eve_lines(records)))
    source = opened(path, kind="eve")
    read_all(source)
    assert source.counters["other_events"] == source.counters["records"] == len(records)
    ours, theirs = columns(connection_maker("conn").table(records)), log(path, "eve")
    # It does not tell how long headers were, nor what was missed.
    same(ours, theirs, {"uid", "time", "orig_bytes", "resp_bytes", "orig_share", "missed_bytes"})
    is_tcp, unanswered = np.array(ours["protocol"]) == "tcp", np.isin(ours["state"], ("S0", "REJ"))
    for side in ("orig", "resp"):
        off = np.array(theirs[f"{side}_bytes"]) - np.array(ours[f"{side}_bytes"])
        assert (off <= 12 * np.array(ours[f"{side}_packets"]) + records[side]["retransmitted_bytes"]).all()
        assert (off >= -12 * np.array(ours[f"{side}_packets"]) - 8).all()
        assert (off[~is_tcp | unanswered] == 0).all()


def test_states_follow_from_flags() -> None:
    assert {name: conn_state(*flags) for name, flags in STATE_FLAGS.items()} == {name: name for name in STATE_FLAGS}


def test_fields_in_any_order_are_read(records: NDArray[Any], tmp_path: Path) -> None:
    fields = (*sorted(ZEEK_FIELDS), "community_id")
    header = ZEEK_HEADER.replace("\t".join(ZEEK_FIELDS), "\t".join(fields)).replace("\\x09", "|").replace("\t", "|")
    plain, odd = tmp_path / "conn.log", tmp_path / "odd.log"
    plain.write_text("".join([ZEEK_HEADER, *zeek_tsv(records[:50])]))
    odd.write_text("".join([header, *(line.replace("\t", "|") for line in zeek_tsv(records[:50], fields))]))
    assert log(odd, "zeek") == log(plain, "zeek")


def test_iso_times_of_json_are_read(records: NDArray[Any], tmp_path: Path) -> None:
    row = zeek_rows(records[:1])[0]
    row |= {"ts": "2026-01-02T03:04:05.678901Z", "duration": None, "label": "scan"}
    path = tmp_path / "conn.log"
    path.write_text(json.dumps(row) + "\n")
    found = log(path, "zeek")
    assert (found["start"], found["label"]) == (["2026-01-02T03:04:05.678901000Z"], ["scan"])


BAD_JSON = [
    "{",
    '{"event_type":"flow"}',
    '{"event_type":7}',
    "[" * 100_000,
    "nonsense",
    '{"event_type":"flow","flow":{}}',
]


def test_one_bad_line_does_not_stop_the_log(records: NDArray[Any], tmp_path: Path) -> None:
    good = eve_lines(records[:20])
    odd = json.loads(good[1])
    spoiled = [
        odd | {"src_ip": "300.1.1.1"}, odd | {"src_port": -1}, odd | {"flow": odd["flow"] | {"pkts_toserver": 10**30}},
        odd | {"flow": odd["flow"] | {"start": "yesterday"}}, odd | {"flow": odd["flow"] | {"end": "9999-01-01"}},
        odd | {"proto": "TCP", "tcp": {"tcp_flags_ts": "zz"}},
    ]  # fmt: skip
    path = tmp_path / "eve.json"
    path.write_text("\n".join([*BAD_JSON, *map(json.dumps, spoiled)]) + "\n" + "".join(good))
    source = opened(path, kind="eve")
    assert len(read_all(source)) == 20
    assert source.counters["bad_json"] + source.counters["bad_value"] == len(BAD_JSON) + len(spoiled)
    assert source.first_skipped[0].startswith(f"{path} line 1: ")
    lines = zeek_tsv(records[:20])
    spoil = [("\ttcp\t", "\t"), ("\tudp\t", "\tudp\tx\t"), (".", "x")]
    path.write_text("".join([ZEEK_HEADER, *(line.replace(a, b, 1) for a, b in spoil for line in lines), *lines]))
    source = opened(path, kind="zeek")
    assert len(read_all(source)) >= 20
    assert source.counters["columns"] > 0
    assert source.counters["bad_value"] >= 20


def test_a_header_without_a_field_is_named(records: NDArray[Any], tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    path.write_text(ZEEK_HEADER.replace("orig_pkts\t", "").replace("\tproto\t", "\t"))
    with pytest.raises(InputError, match=r"conn.log: has no field proto, orig_pkts"):
        opened(path, kind="zeek")
    path.write_text(ZEEK_HEADER.replace("#path\tconn", "#path\tdns"))
    with pytest.raises(InputError, match="is a log of dns, not of connections"):
        opened(path, kind="zeek")
    with pytest.raises(InputError, match="schema conn or kdd, not flow"):
        text_source(path, "zeek", schema=load_schema("flow"))
    # Once it runs, it is counted.
    path.write_text("".join([ZEEK_HEADER, *zeek_tsv(records[:3]), ZEEK_HEADER.replace("\tproto\t", "\t"), "1\t2\n"]))
    source = opened(path, kind="zeek")
    assert len(read_all(source)) == 3
    assert source.counters["bad_header"] == 1


def test_rotation_of_a_zeek_log_keeps_its_header(records: NDArray[Any], tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    lines = zeek_tsv(records)
    path.write_text("".join([ZEEK_HEADER, *lines[:10]]))
    watched = Watched(opened(path, kind="zeek", follow=True))
    watched.until_rows(10)
    fields = tuple(reversed(ZEEK_FIELDS))
    path.rename(tmp_path / "conn.log.1")
    header = ZEEK_HEADER.replace("\t".join(ZEEK_FIELDS), "\t".join(fields))
    path.write_text("".join([header, *zeek_tsv(records, fields)[10:20]]))
    watched.until_rows(20)
    watched.finish()
    whole = tmp_path / "whole.log"
    whole.write_text("".join([ZEEK_HEADER, *lines[:20]]))
    with_uid = [row[:-6] + row[-5:] for row in watched.rows]
    assert with_uid == [row[:-6] + row[-5:] for row in read_all(opened(whole, kind="zeek"))]


@pytest.mark.parametrize("kind", ["zeek", "eve"])
@pytest.mark.parametrize("schema", ["conn", "kdd"])
def test_counts_of_the_last_minute_survive_a_restart(
    records: NDArray[Any], tmp_path: Path, kind: str, schema: str
) -> None:
    path = tmp_path / "log"
    path.write_text("".join([ZEEK_HEADER, *zeek_tsv(records)] if kind == "zeek" else eve_lines(records)))
    whole = read_all(opened(path, kind=kind, schema_=schema))
    for cut in (1, 3, 5):
        source = opened(path, kind=kind, schema_=schema)
        source.feed._max_lines = 100  # type: ignore[attr-defined]
        given: list[Any] = []
        state: SourceState | None = None
        arrivals = iter(source)
        for k in range(1, cut + 1):
            if k == cut:
                source.want_state()
            arrival = next(arrivals)
            given += rows(arrival.table)
            state = arrival.state
            assert (state is not None) == (k == cut)
        source.close()
        assert state is not None
        state = SourceState(json.loads(json.dumps(state.facts)), state.arrays)
        assert given + read_all(opened(path, state, kind=kind, schema_=schema)) == whole
        broken = {name: array[:-1] if name.endswith("keys") else array for name, array in state.arrays.items()}
        with pytest.raises(ModelError):
            text_source(path, kind, schema_=schema).open(SourceState(state.facts, broken))


def test_a_log_that_is_not_in_order_keeps_its_windows(records: NDArray[Any], tmp_path: Path) -> None:
    row = zeek_rows(records[:1])[0] | {"id.resp_p": 80, "duration": 0.0}
    path = tmp_path / "conn.log"
    lines = [json.dumps(row | {"ts": 1000.0 + at}) + "\n" for at in (0, 30, 10, 40, 20)]
    path.write_text("".join([*lines, json.dumps(row | {"ts": 90_000.0}) + "\n", lines[0]]))
    assert log(path, "zeek")["src_flows"] == [1, 2, 3, 4, 5, 1, 1]


def test_a_zeek_log_over_a_socket_needs_no_file(records: NDArray[Any], tmp_path: Path) -> None:
    watched = Watched(opened(f"unix://{tmp_path}/s", kind="zeek"))
    for lines in ([ZEEK_HEADER, *zeek_tsv(records[:5])], zeek_json(records[5:10])):
        with socket.socket(socket.AF_UNIX) as writer:
            writer.connect(f"{tmp_path}/s")
            writer.sendall("".join(lines).encode())
        watched.until_rows(5)
    watched.until_rows(10)
    assert watched.finish().facts["seq"] == 10
