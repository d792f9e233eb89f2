"""Filters of alerts: tcpdump, tshark and awk take them, and find the alert's connections and no others."""

from __future__ import annotations

import csv
import ipaddress
import os
import re
import subprocess
from collections import defaultdict
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from capture_bytes import Packet
from conn_logs import ZEEK_HEADER, loggable, zeek_tsv
from hypothesis import given
from hypothesis import strategies as st
from needed import need_module, need_program
from numpy.typing import NDArray
from packet_paths import decoded, followed, frames_of, whole

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.kernels.packets import decode
from netclust.kernels.packets.flow_layout import RECORD
from netclust.stream.alerts.alert_book import NOVEL, AlertBook, AnomalousRows
from netclust.stream.alerts.alert_events import Alert, Count
from netclust.stream.alerts.alert_summary import RATE_LIMIT
from netclust.stream.config import AlertConfig
from netclust.stream.console.filters import FEW, Filters, filters_of
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.connections import (
    PROTOCOLS,
    connection_addresses,
    connection_protocol_ids,
    context_columns,
)
from netclust.stream.packets.flow_table import FlowTimeouts

# Their hosts do nothing else that the filter says of them.
ALONE = (
    "beaconing", "botnet_scan", "ftp_brute_force", "icmp_tunnel", "port_scan", "ssh_brute_force", "syn_flood",
    "web_attack",
)  # fmt: skip
AMONG_OTHERS = ("amplification", "arp_scan", "dns_exfiltration", "host_sweep", "syn_ack_reflection", "udp_flood")
ALLOWED = re.compile(r"[A-Za-z0-9 .:_=&|()<>]*")
ALLOWED_AWK = re.compile(r"|awk -F'\\t' '[A-Za-z0-9 .:=&|()<>$+\"]*' conn\.log")
Key = tuple[str, frozenset[tuple[str, int]]]
LONG = bool(os.environ.get("NETCLUST_LONG"))


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every attack, one after the other and among normal traffic."""
    folder = tmp_path_factory.mktemp("filters")
    simulate_capture(folder / "c.pcap", folder / "c.csv", hours=0.15, attacks="all", hosts=10, seed=3, scale=0.3)
    return folder / "c.pcap"


@cache
def records_of(path: Path) -> NDArray[Any]:
    return followed(CaptureFile(path), FlowTimeouts())[0]


@cache
def contexts(path: Path) -> list[dict[str, str]]:
    """What is shown of each record."""
    records = records_of(path)
    columns = context_columns(records)
    protocols = np.array(PROTOCOLS)[connection_protocol_ids(records["flow"]["proto"])]
    rows = zip(*columns.values(), protocols.tolist(), strict=True)
    return [dict(zip((*columns, "protocol"), row, strict=True)) for row in rows]


def key_of(row: dict[str, str]) -> Key:
    ends = [(row[end], int(row[f"{end}_port"] or 0)) for end in ("source", "destination")]
    return row["protocol"], frozenset(ends)


@cache
def labels_of(path: Path) -> dict[Key, str]:
    with path.with_suffix(".csv").open(newline="") as file:
        return {key_of(row): row["label"] for row in csv.DictReader(file)}


@cache
def packet_keys(path: Path) -> list[Key]:
    """Whose connection each packet is."""
    packets = decoded(whole(path))
    sources = connection_addresses([packets["src_hi"], packets["src_lo"]], packets["family"])
    destinations = connection_addresses([packets["dst_hi"], packets["dst_lo"]], packets["family"])
    protocols = np.array(PROTOCOLS)[connection_protocol_ids(packets["proto"])]
    ported = np.isin(packets["proto"], (decode.TCP, decode.UDP))
    ports = np.where(ported, packets["sport"], 0), np.where(ported, packets["dport"], 0)
    rows = zip(sources, ports[0].tolist(), destinations, ports[1].tolist(), protocols.tolist(), strict=True)
    return [(protocol, frozenset([(a, p), (b, q)])) for a, p, b, q, protocol in rows]


@cache
def frames(path: Path) -> list[Packet]:
    return frames_of(path)


def alerts_of(path: Path, chosen: list[int]) -> list[tuple[Alert, list[int]]]:
    """The alerts that those records become, each with its records."""
    rows, records = contexts(path), records_of(path)
    n = len(chosen)

    def column(name: str) -> NDArray[np.object_]:
        return np.array([rows[i][name] for i in chosen], object)

    told = AnomalousRows(
        source_id=np.zeros(n, np.uint16), seq=np.array(chosen, np.uint64), time=records["time"][chosen],
        cluster=np.full(n, 7), kind=np.full(n, NOVEL, np.uint8), label=["novel"] * n, score=np.ones(n, np.float32),
        source=column("source"), destination=column("destination"), destination_port=column("destination_port"),
        protocol=column("protocol"), example=lambda i: rows[chosen[i]],
    )  # fmt: skip
    book = AlertBook(AlertConfig(quiet_seconds=1e6, max_per_hour=1000), source_names=["office"])
    book.take(told)
    found = book.open_alerts
    mine: dict[str, list[int]] = defaultdict(list)
    for i in chosen:
        ends = {"source": rows[i]["source"], "destination": rows[i]["destination"]}
        owner = next((a for a in found if ends.get(a.entity_kind) == a.entity), None)
        if owner is not None:
            mine[owner.id].append(i)
    return [(alert, mine[alert.id]) for alert in found if len(mine[alert.id]) == alert.records]


def labelled(path: Path, label: str, six: bool = False) -> list[tuple[Alert, list[int]]]:
    labels = labels_of(path)
    rows = contexts(path)
    chosen = [i for i, row in enumerate(rows) if labels.get(key_of(row)) == label and six == (":" in row["source"])]
    return alerts_of(path, chosen)


def packets_of(path: Path, chosen: list[int]) -> list[int]:
    """Numbers of the packets of those records' connections."""
    keys = {key_of(contexts(path)[i]) for i in chosen}
    return [i for i, key in enumerate(packet_keys(path)) if key in keys]


def by_tcpdump(path: Path, bpf: str, folder: Path) -> list[int]:
    """Numbers of the packets that it takes."""
    out = folder / "taken.pcap"
    command = [need_program("tcpdump"), "-n", "-r", str(path), "-w", str(out), bpf]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    left = iter(enumerate(frames(path)))
    return [next(number for number, packet in left if packet == taken) for taken in frames_of(out)]


def by_tshark(path: Path, wireshark: str) -> list[int]:
    command = [need_program("tshark"), "-n", "-r", str(path), "-Y", wireshark, "-T", "fields", "-e", "frame.number"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return [int(line) - 1 for line in done.stdout.split()]


def by_awk(records: NDArray[Any], line: str, folder: Path) -> list[int]:
    """Numbers of the records in a conn.log that the shell's line prints."""
    need_program("awk")
    (folder / "conn.log").write_text(ZEEK_HEADER + "".join(zeek_tsv(records)) + "#close\t2026-01-02-03-04-05\n")
    done = subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True, timeout=60, cwd=folder)
    return [int(row.split("\t")[1].removeprefix("C")) for row in done.stdout.splitlines()]


def alert_with(**facts: Any) -> Alert:
    given: dict[str, Any] = {"entity": "10.0.0.7", "entity_kind": "source", **facts}
    return Alert(id="a-1", kind="novel", label="novel", **given)


def counts(*values: object) -> list[Count]:
    return [Count(str(value), 1) for value in values]


@pytest.mark.peers
@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize("label", [*ALONE, "normal"])
def test_filters_find_exactly_the_packets_of_an_alert(capture: Path, tmp_path: Path, label: str, six: bool) -> None:
    alerts = labelled(capture, label, six)
    assert alerts or six
    for alert, chosen in alerts[: 3 if LONG else 1]:
        found, expected = filters_of(alert), packets_of(capture, chosen)
        assert by_tcpdump(capture, found.bpf, tmp_path) == expected, found.bpf
        assert by_tshark(capture, found.wireshark) == expected, found.wireshark


@pytest.mark.peers
@pytest.mark.parametrize("label", AMONG_OTHERS)
def test_what_else_is_found_is_none_of_that_host_and_protocol(capture: Path, tmp_path: Path, label: str) -> None:
    alerts = labelled(capture, label)
    assert alerts
    for alert, chosen in alerts:
        found, expected = filters_of(alert), set(packets_of(capture, chosen))
        for taken in (by_tcpdump(capture, found.bpf, tmp_path), by_tshark(capture, found.wireshark)):
            assert expected <= set(taken)
            more = [packet_keys(capture)[i] for i in set(taken) - expected]
            # Wireshark also finds the errors that quote such a packet.
            assert {protocol for protocol, _ in more} <= {alert.protocol, "icmp"}
            assert all(alert.entity in dict(ends) for _, ends in more)


@pytest.mark.peers
@pytest.mark.parametrize("label", [*ALONE, "amplification", "normal"])
def test_filters_find_exactly_the_lines_of_a_conn_log(capture: Path, tmp_path: Path, label: str) -> None:
    records = records_of(capture)
    logged = loggable(records)
    places = {(int(flow["id"]), int(flow["part"])): i for i, flow in enumerate(logged["flow"])}
    for six in (False, True):
        for alert, chosen in labelled(capture, label, six)[:3]:
            flows = [(int(flow["id"]), int(flow["part"])) for flow in records["flow"][chosen]]
            expected = [places[flow] for flow in flows if flow in places]
            line = filters_of(alert).zeek
            if alert.protocol == "arp":
                assert line == ""
            elif alert.protocol:
                assert by_awk(logged, line, tmp_path) == expected, line
            else:
                assert set(by_awk(logged, line, tmp_path)) >= set(expected), line


SHAPES = [
    {"entity": entity, "entity_kind": kind, "protocol": protocol, "ports": ports, "port_count": len(ports), **more}
    for entity, other in (("10.0.0.7", "192.0.2.1"), ("2001:db8::7", "2001:db8::1"), ("::ffff:10.0.0.7", "::1"))
    for kind, protocol, ports, more in (
        ("source", "tcp", counts(80), {"destinations": counts(other), "destination_count": 1}),
        ("destination", "udp", counts(53, 123), {"sources": counts(other, entity), "source_count": 2}),
        ("source", "icmp", counts(0), {"example": {"vlan": "7"}}),
        ("source", "", counts(80), {"example": {"vlan": "36871"}, "first_seen": 0, "last_seen": 2 * 10**18}),
        ("source", "", counts(80, 0), {}),
        ("cluster", "tcp", [], {"sources": counts(entity), "source_count": 1}),
    )
] + [
    {"protocol": "arp", "ports": counts(0), "port_count": 1},
    {"protocol": "gre", "ports": counts(0), "port_count": 1},
    {"entity": "many", "entity_kind": "cluster", "protocol": "icmp"},
    {"entity": "many", "entity_kind": "cluster", "ports": counts(1), "port_count": 1},
]  # fmt: skip


@pytest.mark.parametrize("facts", SHAPES, ids=str)
def test_every_filter_is_accepted(tmp_path: Path, facts: dict[str, Any]) -> None:
    found = filters_of(alert_with(**facts))
    assert found.bpf
    subprocess.run(
        [need_program("tcpdump"), "-y", "EN10MB", "-d", found.bpf], check=True, capture_output=True, timeout=60
    )
    assert by_awk(np.empty(0, RECORD), found.zeek, tmp_path) == []


@pytest.mark.peers
def test_every_filter_is_accepted_by_tshark(tmp_path: Path) -> None:
    """All in one call, which takes it a second to begin: each stands in brackets of its own, and closes its own."""
    found = [filters_of(alert_with(**facts)).wireshark for facts in SHAPES]
    for one in found:
        depths = list(accumulate((c == "(") - (c == ")") for c in one))
        assert min(depths) >= 0 == depths[-1], one
    (tmp_path / "none.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert by_tshark(tmp_path / "none.pcap", " || ".join(f"({one})" for one in found)) == []


@pytest.mark.peers
def test_tagged_and_wrapped_packets_are_found(tmp_path: Path) -> None:
    layers = need_module("scapy.all")
    ether = layers.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    four = layers.IP(src="10.0.0.7", dst="192.0.2.1") / layers.TCP(sport=4000, dport=80)
    back = layers.IP(src="192.0.2.1", dst="10.0.0.7") / layers.TCP(sport=80, dport=4000)
    other = layers.IP(src="10.0.0.7", dst="192.0.2.1") / layers.TCP(sport=4000, dport=81)
    tag, outer = layers.Dot1Q(vlan=7), layers.Dot1Q(vlan=9)
    path, wrapped = tmp_path / "tagged.pcap", tmp_path / "wrapped.pcap"
    layers.wrpcap(str(path), [ether / four, ether / tag / back, ether / other, ether / tag / other,
                              ether / outer / tag / four, ether / outer / tag / other])  # fmt: skip
    alert = alert_with(protocol="tcp", ports=counts(80), port_count=1)
    for vlan, expected in (("0", [0]), ("7", [0, 1]), (str(9 | 7 << 12), [0, 1, 4])):
        tagged = filters_of(msgspec.structs.replace(alert, example={"vlan": vlan}))
        assert by_tcpdump(path, tagged.bpf, tmp_path) == expected
        assert by_tshark(path, tagged.wireshark) == [0, 1, 4]
    six = layers.IPv6(src="2001:db8::7", dst="ff02::16")
    hop = layers.IPv6ExtHdrHopByHop(options=[layers.RouterAlert()])
    layers.wrpcap(str(wrapped), [ether / six / hop / layers.ICMPv6MLReport2(), ether / six / layers.ICMPv6EchoRequest(),
                              ether / six / layers.UDP(sport=1, dport=2)])  # fmt: skip
    multicast = filters_of(alert_with(entity="2001:db8::7", protocol="icmp", ports=counts(0), port_count=1))
    assert by_tcpdump(wrapped, multicast.bpf, tmp_path) == by_tshark(wrapped, multicast.wireshark) == [0, 1]


def test_a_filter_names_only_what_is_true_of_every_connection() -> None:
    host = Filters(
        bpf="host 10.0.0.7",
        wireshark="(ip.addr == 10.0.0.7 || arp.src.proto_ipv4 == 10.0.0.7 || arp.dst.proto_ipv4 == 10.0.0.7)",
        zeek="awk -F'\\t' '$3 == \"10.0.0.7\"' conn.log",
    )
    ends = counts(*(f"192.0.2.{i}" for i in range(FEW)))
    assert filters_of(alert_with(destinations=ends, destination_count=FEW + 1)) == host
    assert filters_of(alert_with(destinations=[*ends, Count("10.0.0.1", 1)], destination_count=FEW + 1)) == host
    assert filters_of(alert_with(destinations=ends, destination_count=FEW, records=FEW + 1)) == host  # one has none
    assert filters_of(alert_with(destinations=[*ends[:2], Count("a", 1)], destination_count=3)) == host
    assert filters_of(alert_with(ports=counts(80, 0), port_count=2)) == host  # a protocol without ports is among them
    assert filters_of(alert_with(ports=counts(80, "http"), port_count=2)) == host
    assert "192.0.2.7" in filters_of(alert_with(destinations=ends, destination_count=FEW)).bpf
    rate_limited = alert_with(entity=RATE_LIMIT, entity_kind="cluster", sources=counts("10.0.0.7"), source_count=1)
    assert filters_of(rate_limited) == filters_of(alert_with(entity="cluster 7", entity_kind="cluster")) == Filters()


def test_the_time_of_a_filter_covers_the_beginning_of_a_connection() -> None:
    example: dict[str, float | str | None] = {
        "source": "10.0.0.7", "source_port": "4000", "destination": "192.0.2.1", "destination_port": "80",
        "protocol": "tcp", "start": "2001-09-09T01:00:00.000000000Z",
    }  # fmt: skip
    alert = alert_with(first_seen=10**18, last_seen=10**18 + 5 * 10**9)
    assert filters_of(alert).wireshark.endswith(
        "&& frame.time_epoch >= 999999639.000000 && frame.time_epoch <= 1000000006.000000"
    )
    begun = filters_of(msgspec.structs.replace(alert, examples=[example]))
    assert "frame.time_epoch >= 999997199.000000" in begun.wireshark
    assert "$1 <= 1000000006.000000 && $1 + $9 >= 999997199.000000" in begun.zeek


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from([
        "10.0.0.7", "::1", "fe80::1%eth0", "fe80::1%'; rm -rf /", "10.0.0.7 or 1=1", "10.0.0.07", "80", " 80", "8_0",
        "\u0661\u0662", "-1", "65536", "1e3", "'", '"', "$(id)", "`id`", "tcp", "icmp", "arp", "TCP", "many", "0",
    ]),
)  # fmt: skip
LISTED = st.lists(st.builds(Count, HOSTILE, st.integers(0, 9)), max_size=9)


@given(
    entity=HOSTILE,
    entity_kind=st.sampled_from(["source", "destination", "cluster"]),
    protocol=HOSTILE,
    sources=LISTED,
    destinations=LISTED,
    ports=LISTED,
    times=st.tuples(st.integers(-1, 2**63 - 1), st.integers(-1, 2**63 - 1)),
    example=st.dictionaries(st.sampled_from(["source", "destination", "start", "vlan", "protocol"]), HOSTILE),
)
def test_a_hostile_value_does_not_get_into_a_filter(
    entity: str, entity_kind: Any, protocol: str, sources: list[Count], destinations: list[Count], ports: list[Count],
    times: tuple[int, int], example: dict[str, float | str | None],
) -> None:  # fmt: skip
    found = filters_of(
        alert_with(
            entity=entity,
            entity_kind=entity_kind,
            protocol=protocol,
            sources=sources,
            source_count=len(sources),
            destinations=destinations,
            destination_count=len(destinations),
            ports=ports,
            port_count=len(ports),
            first_seen=times[0],
            last_seen=times[1],
            example=example,
            examples=[example],
        )
    )
    assert ALLOWED.fullmatch(found.bpf)
    assert ALLOWED.fullmatch(found.wireshark)
    assert ALLOWED_AWK.fullmatch(found.zeek)
    words = {"host", "port", "and", "or", "tcp", "udp", "icmp", "icmp6", "ip6", "proto", "arp", "vlan"}
    for word in re.findall(r"[^ ()]+", found.bpf):
        assert word in words or word.isdecimal() or ipaddress.ip_address(word)
