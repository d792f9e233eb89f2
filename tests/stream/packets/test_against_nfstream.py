"""Connections against nfstream with the same timeouts: flows, packets and bytes each way, durations.

nfstream ends flows neither at a FIN nor after an unanswered SYN, has no ARP, keeps all ICMP of two hosts in one flow
and cuts times to milliseconds. EXPECTED lists what else differs, and why.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from needed import need_module
from packet_paths import followed, names_of_captures, whole

from netclust.kernels.packets import decode
from netclust.stream.packets.connections import connection_addresses, connection_endpoints
from netclust.stream.packets.flow_table import FlowTimeouts

pytestmark = pytest.mark.peers


@pytest.fixture(autouse=True)
def _is_here() -> None:
    need_module("nfstream")


IDLE, ACTIVE = 60, 300
MATCHED = FlowTimeouts(idle=IDLE, active=ACTIVE, attempt=1e9, close=1e9, step=1e9)
KINDS = {0: "frame_bytes", 1: "ip_bytes", 3: "payload_bytes"}  # what its accounting modes count
# In a process of its own: it starts others, which end with it whatever happens.
ASK = """
import json, sys
from nfstream import NFStreamer
if __name__ == "__main__":
    idle, active, mode, *paths = json.loads(sys.argv[1])
    for path in paths:
        flows = NFStreamer(source=path, idle_timeout=idle, active_timeout=active, accounting_mode=mode, n_dissections=0,
                           statistical_analysis=False, splt_analysis=0, n_meters=1)
        print(json.dumps([[
            f.protocol, f.src_ip, f.src_port, f.dst_ip, f.dst_port, f.bidirectional_first_seen_ms,
            f.bidirectional_last_seen_ms, f.src2dst_packets, f.src2dst_bytes, f.dst2src_packets, f.dst2src_bytes,
        ] for f in flows]), flush=True)
"""
FRAGMENTS = "nfstream leaves out all fragments but the first"
MESSAGES = "nfstream has all ICMP of two hosts in one flow, we each series of pings and each kind of message"
# By capture and reason: endpoints whose flows differ.
EXPECTED: dict[str, dict[str, int]] = {
    "attack/stopddos_amp.TCP.reflection.SYNACK.pcap": {FRAGMENTS: 1},
    "attack/stopddos_amp.UDP.snmp.src161.pcapng": {MESSAGES: 1},
    "mixed/stopddos_amp.dns.RRSIG.fragmented.pcap": {FRAGMENTS: 31, MESSAGES: 1},
}

Flow = tuple[int, int, dict[str, tuple[int, int]]]  # first and last millisecond; packets and bytes by sender


@cache
def asked(data_folder: Path, mode: int) -> dict[str, list[list[Any]]]:
    """nfstream's flows of every capture."""
    names = names_of_captures(data_folder)
    what = json.dumps([IDLE, ACTIVE, mode, *(str(data_folder / "pcap" / name) for name in names)])
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", ASK, what], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:  # it hangs: its whole group goes
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, err
    return dict(zip(names, map(json.loads, out.splitlines()), strict=True))


@cache
def records_of(path: Path) -> Any:
    records, _ = followed([whole(path)], MATCHED)
    return records[records["flow"]["proto"] != decode.ARP]


def ours(path: Path, kind: str) -> tuple[dict[Any, list[Flow]], dict[Any, int]]:
    """Flows by protocol and endpoints (no ports for ICMP), in order of time; and how many had fragments."""
    records = records_of(path)
    source, sport, destination, dport = connection_endpoints(records)
    family = records["flow"]["family"]
    hosts = connection_addresses(source, family), connection_addresses(destination, family)
    flows: dict[Any, list[Flow]] = defaultdict(list)
    fragments: dict[Any, int] = defaultdict(int)
    for i, record in enumerate(records):
        flow, proto = record["flow"], int(record["flow"]["proto"])
        ports = (int(sport[i]), int(dport[i])) if proto in (decode.TCP, decode.UDP) else (0, 0)
        ends = f"{hosts[0][i]} {ports[0]}", f"{hosts[1][i]} {ports[1]}"
        sides = {}
        for end, side in zip(ends, (record["orig"], record["resp"]), strict=True):
            size = int(side[kind]) + (int(side["retransmitted_bytes"]) if kind == "payload_bytes" else 0)
            if side["packets"]:
                sides[end] = int(side["packets"]), size
        flows[proto, *sorted(ends)].append((int(flow["first"]) // 10**6, int(flow["last"]) // 10**6, sides))
        fragments[proto, *sorted(ends)] += int(flow["fragments"])
    return {key: sorted(each, key=lambda flow: flow[:2]) for key, each in flows.items()}, fragments


def theirs(rows: list[list[Any]]) -> dict[Any, list[Flow]]:
    flows: dict[Any, list[Flow]] = defaultdict(list)
    for proto, source, sport, destination, dport, first, last, *there_and_back in rows:
        ends = f"{source} {sport}", f"{destination} {dport}"
        there, back = tuple(there_and_back[:2]), tuple(there_and_back[2:])
        sides = {end: side for end, side in zip(ends, (there, back), strict=True) if side[0]}
        flows[proto, *sorted(ends)].append((first, last, sides))
    return {key: sorted(each, key=lambda flow: flow[:2]) for key, each in flows.items()}


@pytest.mark.parametrize("mode", [pytest.param(0, marks=pytest.mark.long), 1, 3])
def test_flows_equal_those_of_nfstream(data_folder: Path, mode: int) -> None:
    found: dict[str, dict[str, int]] = {}
    compared = 0
    for name, rows in asked(data_folder, mode).items():
        us, fragments = ours(data_folder / "pcap" / name, KINDS[mode])
        them = theirs(rows)
        reasons = dict.fromkeys((FRAGMENTS, MESSAGES), 0)
        assert them.keys() <= us.keys(), name
        for key, flows in us.items():
            if mode == 3 and key[0] not in (decode.TCP, decode.UDP):
                continue  # of others nfstream counts no payload
            if flows != them.get(key):
                reason = FRAGMENTS if fragments[key] else MESSAGES
                assert reason == FRAGMENTS or key[0] == decode.ICMP, (name, key, flows, them.get(key))
                assert reason == FRAGMENTS or _added(flows) == _added(them[key]), (name, key)
                reasons[reason] += 1
            compared += len(flows)
        found[name] = {reason: n for reason, n in reasons.items() if n}
    expected = {name: dict(reasons) for name, reasons in EXPECTED.items()}
    if mode == 3:
        expected = {
            name: {why: n for why, n in reasons.items() if why != MESSAGES} for name, reasons in expected.items()
        }
    assert {name: reasons for name, reasons in found.items() if reasons} == {n: r for n, r in expected.items() if r}
    assert compared > 60_000


def _added(flows: list[Flow]) -> dict[str, tuple[int, int]]:
    """All flows of two hosts together."""
    total: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, _, sides in flows:
        for end, (packets, size) in sides.items():
            total[end] = total[end][0] + packets, total[end][1] + size
    return dict(total)
