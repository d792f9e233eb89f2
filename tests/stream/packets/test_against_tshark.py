"""Connections against tshark: who talked to whom, packets and bytes each way, durations, TCP's bytes by sequence.

With timeouts off a connection is all that two endpoints did, as a conversation is for tshark. Everything is compared on
every shared capture; where the two mean different things, EXPECTED lists how often, and why.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from packet_paths import followed, names_of_captures, whole
from tshark_tables import Dissection, Row, dissect, shown

from netclust.kernels.packets import decode
from netclust.stream.packets.connections import connection_addresses, connection_endpoints

pytestmark = pytest.mark.peers

UNFINISHED = "tshark begins a stream at a SYN with another number, we only where the connection before it is over"
SAME_NUMBER = "tshark begins a stream at a SYN behind a FIN or a reset, we only where its number is another one"
# By capture and reason: tshark's streams that are none of our connections.
EXPECTED: dict[str, dict[str, int]] = {"mixed/stopddos_amp.dns.RRSIG.fragmented.pcap": {UNFINISHED: 34}}
CHOPPED = "holes of the sequence beyond the four that are remembered: what fills them later counts as sent again"
PARTLY = "tshark calls a whole segment sent again of which a part is new"
LATE = "tshark calls a segment sent again that comes late: nobody saw its bytes before"
# By capture and reason: directions of TCP whose bytes differ.
SEQUENCES: dict[str, dict[str, int]] = {
    "benign/ndpi_skype.pcap": {PARTLY: 3},
    "mixed/stopddos_amp.dns.RRSIG.fragmented.pcap": {LATE: 2},
}
INSIDE = "tshark looks into GRE, we only with tunnels on"
# Conversations that only tshark has.
TUNNELLED: dict[str, dict[str, int]] = {"mixed/stopddos_amp.dns.RRSIG.fragmented.pcap": {INSIDE: 1}}

Key = tuple[str, tuple[str, int], tuple[str, int]]


@dataclass
class Totals:
    """Of one direction."""

    packets: int = 0
    frame_bytes: int = 0
    ip_bytes: int = 0
    payload_bytes: int = 0

    def add(self, *more: int) -> None:
        self.packets += more[0]
        self.frame_bytes += more[1]
        self.ip_bytes += more[2]
        self.payload_bytes += more[3]


@dataclass
class Talk:
    """All that two endpoints did; directions by the endpoint that sent."""

    sides: dict[tuple[str, int], Totals] = field(default_factory=lambda: defaultdict(Totals))
    first: int = 1 << 63
    last: int = -1
    count: int = 0

    def at(self, *times: int) -> None:
        self.first, self.last = min(self.first, *times), max(self.last, *times)


def key_of(kind: str, a: tuple[str, int], b: tuple[str, int]) -> Key:
    return (kind, *sorted((a, b)))


def nanoseconds(text: str) -> int:
    seconds, fraction = text.split(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))


@cache
def ours(path: Path) -> tuple[dict[Key, Talk], Any]:
    """By key; and the records."""
    records, table = followed([whole(path)])
    assert table.counters["decoded"] + table.counters["not_ip"] == sum(
        n for name, n in table.counters.items() if name in decode.STATUS_NAMES
    )
    source, sport, destination, dport = connection_endpoints(records)
    family = records["flow"]["family"]
    sources, destinations = connection_addresses(source, family), connection_addresses(destination, family)
    talks: dict[Key, Talk] = defaultdict(Talk)
    for i, record in enumerate(records):
        flow = record["flow"]
        kind = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmp6", 255: "arp"}.get(int(flow["proto"]), str(flow["proto"]))
        kind += "" if kind in ("tcp", "udp", "arp") or flow["vlan"] >> 31 == 0 else " message"
        a, b = (sources[i], int(sport[i])), (destinations[i], int(dport[i]))
        talk = talks[key_of(kind, a, b)]
        for end, side in ((a, record["orig"]), (b, record["resp"])):
            names = ("packets", "frame_bytes", "ip_bytes", "payload_bytes")
            more = [int(side[name]) for name in names]
            more[3] += int(side["retransmitted_bytes"])
            talk.sides[end].add(*more)
        talk.at(int(flow["first"]), int(flow["last"]))
        talk.count += 1
    return dict(talks), records


def theirs(found: Dissection) -> dict[Key, Talk]:
    """tshark's packets by the same keys; later fragments go where the first one went, if it came before them."""
    talks: dict[Key, Talk] = defaultdict(Talk)
    ports: dict[tuple[str, ...], tuple[int, int]] = {}
    streams: dict[Key, set[str]] = defaultdict(set)
    for p in found.packets:
        if p["arp.src.proto_ipv4"]:
            ends = (p["arp.src.proto_ipv4"], 0), (p["arp.dst.proto_ipv4"], 0)
            kind, size, payload = "arp", 28, 28
        elif p["ip.src"] or p["ipv6.src"]:
            kind, size, payload, pair = _ip(p, ports)
            source, destination = p["ip.src"] or p["ipv6.src"], p["ip.dst"] or p["ipv6.dst"]
            ends = (source, pair[0]), (destination, pair[1])
        else:
            continue  # neither IP nor ARP: we count it as such
        key = key_of(kind, *ends)
        talks[key].sides[ends[0]].add(1, int(p["frame.len"]), size, payload)
        talks[key].at(nanoseconds(p["frame.time_epoch"]))
        streams[key].add(p["tcp.stream"])
        talks[key].count = len(streams[key])
    return dict(talks)


def _ip(p: dict[str, str], ports: dict[tuple[str, ...], tuple[int, int]]) -> tuple[str, int, int, tuple[int, int]]:
    """What kind of packet, its size, its payload's, and the ports."""
    size = int(p["ip.len"]) if p["ip.src"] else int(p["ipv6.plen"]) + 40
    behind = size - int(p["ip.hdr_len"] or 40)
    datagram = (p["ip.src"], p["ip.dst"], p["ip.proto"], p["ip.id"])
    if p["ip.frag_offset"] not in ("", "0"):
        kind = {"17": "udp", "6": "tcp", "1": "icmp"}[p["ip.proto"]]
        return kind, size, behind, ports.get(datagram, (0, 0))
    number = p["ip.proto"] or p["ipv6.nxt"]  # an ICMP message has the ports of the packet that it is about
    if number == "6":
        return "tcp", size, int(p["tcp.len"]), (int(p["tcp.srcport"]), int(p["tcp.dstport"]))
    if number == "17":
        pair = ports[datagram] = int(p["udp.srcport"]), int(p["udp.dstport"])
        return "udp", size, min(int(p["udp.length"]), behind) - 8, pair
    if p["icmp.type"]:
        kind, code = int(p["icmp.type"]), int(p["icmp.code"])
        echo = kind in (0, 8, 13, 14)
        pair = (int(p["icmp.ident"]),) * 2 if echo else (kind << 8 | code,) * 2
        ports[datagram] = pair
        return "icmp" if echo else "icmp message", size, behind, pair
    if p["icmpv6.type"]:
        pair = (int(p["icmpv6.type"]) << 8 | int(p["icmpv6.code"]),) * 2
        return "icmp6 message", size, -1, pair
    return number, size, behind, (0, 0)


def captures(data_folder: Path) -> list[tuple[str, Path]]:
    return [(name, data_folder / "pcap" / name) for name in names_of_captures(data_folder)]


def test_packets_and_bytes_of_connections_equal_those_of_tshark(data_folder: Path) -> None:
    compared = 0
    for name, path in captures(data_folder):
        us, them = ours(path)[0], theirs(dissect(path))
        assert us.keys() == them.keys(), name
        for key, talk in them.items():
            for end, totals in talk.sides.items():
                if totals.payload_bytes < 0:  # tshark has no field for the length behind IPv6's headers
                    totals.payload_bytes = us[key].sides[end].payload_bytes
            assert {end: side for end, side in us[key].sides.items() if side.packets} == talk.sides, (name, key)
            assert (us[key].first, us[key].last) == (talk.first, talk.last), (name, key)
            compared += 1
    assert compared > 60_000


def test_connections_are_split_where_tshark_splits_them(data_folder: Path) -> None:
    found: dict[str, dict[str, int]] = {}
    for name, path in captures(data_folder):
        us, reasons = ours(path)[0], Counter[str]()
        for key, streams in _streams(dissect(path)).items():
            expected = 1
            for before, after in pairwise(streams):
                reason = _why_only_theirs(before, after)
                expected += not reason
                reasons[reason] += bool(reason)
            assert us[key].count == expected, (name, key)
        found[name] = {reason: n for reason, n in reasons.items() if n}
    assert {name: reasons for name, reasons in found.items() if reasons} == EXPECTED


def _streams(found: Dissection) -> dict[Key, list[list[dict[str, str]]]]:
    """Of TCP, by key, each as its packets."""
    streams: dict[Key, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for p in found.packets:
        if p["tcp.stream"] and (p["ip.proto"] or p["ipv6.nxt"]) == "6":
            streams[key_of("tcp", *_ends(p))][p["tcp.stream"]].append(p)
    return {key: list(each.values()) for key, each in streams.items()}


def _ends(p: dict[str, str]) -> tuple[tuple[str, int], tuple[str, int]]:
    source, destination = p["ip.src"] or p["ipv6.src"], p["ip.dst"] or p["ipv6.dst"]
    return (source, int(p["tcp.srcport"])), (destination, int(p["tcp.dstport"]))


def _why_only_theirs(before: list[dict[str, str]], after: list[dict[str, str]]) -> str:
    """Why a stream of tshark is no connection of ours, or nothing."""
    fins = {_ends(p)[0] for p in before if int(p["tcp.flags"], 16) & 1}
    talkers = {_ends(p)[0] for p in before}
    if not (fins == talkers or any(int(p["tcp.flags"], 16) & 4 for p in before)):
        return UNFINISHED
    numbers = [p["tcp.seq_raw"] for p in before if _ends(p)[0] == _ends(after[0])[0]]
    return SAME_NUMBER if numbers and numbers[0] == after[0]["tcp.seq_raw"] else ""


def test_tables_of_conversations_equal_those_of_tshark(data_folder: Path) -> None:
    """The tables that `tshark -z conv` prints: frames and bytes each way, start and duration."""
    compared = Counter[str]()
    for name, path in captures(data_folder):
        found, (us, _) = dissect(path), ours(path)
        begin = min(nanoseconds(p["frame.time_epoch"]) for p in found.packets[:1])
        for table in ("tcp", "udp"):
            rows = defaultdict(list)
            for row in found.tables[table]:
                rows[key_of(table, _end(row.left), _end(row.right))].append(row)
            mine = {key: talk for key, talk in us.items() if key[0] == table}
            fragments = _later_fragments(found) if table == "udp" else {}
            for key, talk in mine.items():
                _compare(name, key, rows.pop(key, []), talk, begin, fragments.get(key, Talk()), compared, table)
            assert sum(map(len, rows.values())) == TUNNELLED.get(name, {}).get(INSIDE, 0) * (table == "udp"), name
        for table, colon in (("ip", False), ("ipv6", True)):
            pairs: dict[Key, Talk] = defaultdict(Talk)
            for key, talk in us.items():
                if key[0] != "arp" and (":" in key[1][0]) == colon:
                    pair = key_of(table, (key[1][0], 0), (key[2][0], 0))
                    pairs[pair].at(talk.first, talk.last)
                    for (host, _), side in talk.sides.items():
                        pairs[pair].sides[host, 0].add(side.packets, side.frame_bytes, 0, 0)
            rows = {key_of(table, (row.left, 0), (row.right, 0)): [row] for row in found.tables[table]}
            only_theirs = TUNNELLED.get(name, {}).get(INSIDE, 0) * (table == "ip")
            assert pairs.keys() <= rows.keys(), name
            assert len(rows) - len(pairs) == only_theirs, name
            for key, talk in pairs.items():
                _compare(name, key, rows[key], talk, begin, Talk(), compared, table)
    assert compared["tcp"] > 45_000
    assert compared["udp"] > 10_000
    assert compared["ip"] > 50_000
    assert compared["ipv6"] > 10


def _end(text: str) -> tuple[str, int]:
    host, port = text.rsplit(":", 1)
    return host, int(port)


def _later_fragments(found: Dissection) -> dict[Key, Talk]:
    """They have no ports, so tshark's UDP table does not have them; ours are with the first one."""
    everything = theirs(found)
    first_only = Dissection([p for p in found.packets if p["ip.frag_offset"] in ("", "0")])
    without = theirs(first_only)
    found_ones = {}
    for key, talk in everything.items():
        rest = Talk()
        for end, side in talk.sides.items():
            other = without[key].sides[end] if key in without else Totals()
            rest.sides[end].add(side.packets - other.packets, side.frame_bytes - other.frame_bytes, 0, 0)
        if any(side.packets for side in rest.sides.values()):
            rest.first, rest.last = talk.first, talk.last
            found_ones[key] = rest
    return found_ones


def _compare(
    name: str, key: Key, rows: list[Row], talk: Talk, begin: int, besides: Talk, compared: Counter[str], table: str
) -> None:
    """Streams on the same ports are added up; `besides` is what the table leaves out."""
    ends = dict(talk.sides)
    if len(rows) == 1 and not besides.sides:
        row = rows[0]
        left = _end(row.left) if table in ("tcp", "udp") else (row.left, 0)
        right = _end(row.right) if table in ("tcp", "udp") else (row.right, 0)
        there, back = ends.get(left, Totals()), ends.get(right, Totals())
        if left != right:
            assert (there.packets, shown(there.frame_bytes)) == row.there, (name, key)
            assert (back.packets, shown(back.frame_bytes)) == row.back, (name, key)
        assert abs((talk.first - begin) / 1e9 - row.start) < 1e-6, (name, key)
        assert abs((talk.last - talk.first) / 1e9 - row.duration) <= 0.00006 * max(1, row.duration / 100), (name, key)
    else:
        frames = sum(row.there[0] + row.back[0] for row in rows) + sum(s.packets for s in besides.sides.values())
        assert frames == sum(side.packets for side in ends.values()), (name, key)
    compared[table] += max(len(rows), 1)


def test_bytes_of_tcp_connections_are_counted_once(data_folder: Path) -> None:
    """What a direction's segments cover of the sequence space, joined by hand from tshark's numbers."""
    found: dict[str, dict[str, int]] = {}
    compared = 0
    for name, path in captures(data_folder):
        sides, differences = _payloads(path), Counter[str]()
        for key, streams in _streams(dissect(path)).items():
            for end in key[1:]:
                sent = [p for stream in streams for p in stream if _ends(p)[0] == end]
                lost = any(p["tcp.analysis.lost_segment"] for p in sent)
                payload, again = sides[key, end]
                differences[CHOPPED] += (payload, again) != _covered(sent)
                if not lost and (payload, again) == _covered(sent):
                    differences[PARTLY if again else LATE] += payload != _unflagged(sent)
                compared += 1
        found[name] = {reason: n for reason, n in differences.items() if n}
    assert {name: reasons for name, reasons in found.items() if reasons} == SEQUENCES
    assert compared > 90_000


def _payloads(path: Path) -> dict[tuple[Key, tuple[str, int]], tuple[int, int]]:
    """By key and sender: payload bytes, each counted once, and those that came again."""
    records = ours(path)[1]
    records = records[records["flow"]["proto"] == decode.TCP]
    source, sport, destination, dport = connection_endpoints(records)
    family = records["flow"]["family"]
    hosts = connection_addresses(source, family), connection_addresses(destination, family)
    found: dict[tuple[Key, tuple[str, int]], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for i, record in enumerate(records):
        ends = (hosts[0][i], int(sport[i])), (hosts[1][i], int(dport[i]))
        for end, side in zip(ends, (record["orig"], record["resp"]), strict=True):
            payload, again = found[key_of("tcp", *ends), end]
            more = int(side["payload_bytes"]), int(side["retransmitted_bytes"])
            found[key_of("tcp", *ends), end] = payload + more[0], again + more[1]
    return found


def _covered(sent: list[dict[str, str]]) -> tuple[int, int]:
    """Bytes of the sequence space that the segments cover, and how many more they have. Resets do not count."""
    spans, total, base = [], 0, 0
    for p in sent:
        bits, size = int(p["tcp.flags"], 16), int(p["tcp.len"])
        if bits & 4 == 0:
            start = int(p["tcp.seq_raw"]) + (bits >> 1 & 1)
            base = base or start
            start = (start - base + 2**31) % 2**32
            spans.append((start, start + size))
            total += size
    covered, reach = 0, -1
    for start, end in sorted(spans):
        covered += max(end - max(start, reach), 0)
        reach = max(reach, end)
    return covered, total - covered


def _unflagged(sent: list[dict[str, str]]) -> int:
    """Bytes of the segments that tshark does not call sent again."""
    names = ("retransmission", "fast_retransmission", "spurious_retransmission", "keep_alive")
    return sum(
        int(p["tcp.len"])
        for p in sent
        if not any(p[f"tcp.analysis.{name}"] for name in names) and int(p["tcp.flags"], 16) & 4 == 0
    )
