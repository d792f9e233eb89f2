"""Packets of an alert: those of its connections, as tshark picks them, within bounds, from whatever is still there."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from capture_bytes import Packet, pcap, pcapng, read_pcap, read_pcapng
from hypothesis import given
from hypothesis import strategies as st
from needed import need_program
from packet_paths import followed, frames_of

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError
from netclust.kernels.packets import decode
from netclust.stream.alerts.alert_events import Alert
from netclust.stream.config import parse_config
from netclust.stream.console import packets
from netclust.stream.console.packets import (
    SLACK_NS,
    Extracted,
    PacketConnection,
    extract_packets,
    packet_captures,
    packet_connections,
)
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.connections import PROTOCOLS, connection_protocol_ids, context_columns
from netclust.stream.packets.flow_table import FlowTimeouts

SECOND = 10**9
NOON = 1_700_000_000 * SECOND
ADDRESSES = {"10.0.0.7": bytes([10, 0, 0, 7]), "192.0.2.1": bytes([192, 0, 2, 1]), "192.0.2.2": bytes([192, 0, 2, 2])}
CALL = PacketConnection("10.0.0.7", 4000, "192.0.2.1", 80, "tcp", NOON, NOON + 10 * SECOND)


def alert_with(**facts: Any) -> Alert:
    return Alert(id="a-1", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source", **facts)


def datagram(source: str, destination: str, proto: int, body: bytes, bits: int = 0) -> bytes:
    size = (20 + len(body)).to_bytes(2, "big")
    head = b"\x45\0" + size + b"\0\1" + bits.to_bytes(2, "big") + bytes([64, proto, 0, 0])
    return head + ADDRESSES[source] + ADDRESSES[destination] + body


def segment(
    at: float, *, to: bool = True, port: int = 80, size: int = 10, host: str = "192.0.2.1", link: int = 1
) -> Packet:
    """A TCP packet of the call, or of one to another port or host."""
    ends = ("10.0.0.7", host) if to else (host, "10.0.0.7")
    ports = (4000, port) if to else (port, 4000)
    body = b"".join(p.to_bytes(2, "big") for p in ports) + bytes(8) + b"\x50\x10" + bytes(6 + size)
    data = datagram(*ends, 6, body)
    payload = bytes(12) + b"\x08\0" + data if link == 1 else data
    return Packet(NOON + round(at * SECOND), len(payload), link, payload)


def found_in(extracted: Extracted) -> list[Packet]:
    read = read_pcap if extracted.format == "pcap" else read_pcapng
    found = list(read(extracted.data))
    assert len(found) == extracted.packets
    return found


def save(path: Path, sent: list[Packet]) -> Path:
    path.write_bytes(pcap(sent, magic=0xA1B23C4D))
    return path


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packets") / "c.pcap"
    simulate_capture(path, hours=0.15, attacks="all", hosts=10, seed=3, scale=0.3)
    return path


@pytest.fixture(scope="module")
def examples(capture: Path) -> list[dict[str, float | str | None]]:
    """Records of the capture as an alert shows them."""
    records, _ = followed(CaptureFile(capture), FlowTimeouts())
    six = records["flow"]["family"] == decode.FAMILY_IPV6
    records = np.concatenate([records[::97], records[six][::7]])
    columns = context_columns(records)
    names = [PROTOCOLS[i] for i in connection_protocol_ids(records["flow"]["proto"])]
    lasted = ((records["flow"]["last"] - records["flow"]["first"]) / 1e6).tolist()
    rows = zip(*columns.values(), names, lasted, strict=True)
    return [dict(zip((*columns, "protocol", "duration_ms"), row, strict=True)) for row in rows]


def tshark_filter(one: PacketConnection) -> str:
    """One connection in tshark's words."""
    protocol, ends = one.protocol, (one.source, one.destination)
    if protocol == "arp":
        a, b = ends
        pairs = [f"(arp.src.proto_ipv4 == {x} && arp.dst.proto_ipv4 == {y})" for x, y in ((a, b), (b, a))]
        terms = [f"({' || '.join(pairs)})"]
    else:
        field = "ipv6" if ":" in one.source else "ip"
        ways = []
        for (x, p), (y, q) in (
            ((one.source, one.source_port), (one.destination, one.destination_port)),
            ((one.destination, one.destination_port), (one.source, one.source_port)),
        ):
            ports = f" && {protocol}.srcport == {p} && {protocol}.dstport == {q}" if protocol in ("tcp", "udp") else ""
            ways.append(f"({field}.src == {x} && {field}.dst == {y}{ports})")
        terms = [f"({' || '.join(ways)})", "!icmp && !icmpv6" if protocol != "icmp" else "(icmp || icmpv6)"]
    start, end = one.start - SLACK_NS, one.end + SLACK_NS
    terms += [f"frame.time_epoch >= {start / 1e9:.9f}", f"frame.time_epoch <= {end / 1e9:.9f}"]
    return f"({' && '.join(terms)})"


@pytest.mark.peers
def test_packets_are_those_that_tshark_picks(capture: Path, examples: list[dict[str, float | str | None]]) -> None:
    need_program("tshark")
    sent = frames_of(capture)
    protocols = set()
    for begin in range(0, len(examples), 8):
        connections = packet_connections(alert_with(examples=examples[begin : begin + 8]))
        assert connections
        protocols |= {(one.protocol, ":" in one.source) for one in connections}
        wanted = " || ".join(tshark_filter(one) for one in connections)
        command = ["tshark", "-n", "-r", str(capture), "-Y", wanted, "-T", "fields", "-e", "frame.number"]
        numbers = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()
        found = extract_packets([capture], connections, max_packets=10**6, max_bytes=1 << 30)
        assert found_in(found) == [sent[int(number) - 1] for number in numbers]
        assert not found.cut
    assert {("tcp", False), ("udp", False), ("udp", True), ("icmp", False), ("arp", False)} <= protocols


@pytest.mark.peers
def test_tshark_can_read_the_result(capture: Path, examples: Any, tmp_path: Path) -> None:
    need_program("tshark")
    found = extract_packets([capture], packet_connections(alert_with(examples=examples[:8])))
    (tmp_path / "out").write_bytes(found.data)
    command = ["tshark", "-n", "-r", str(tmp_path / "out"), "-T", "fields", "-e", "frame.time_epoch"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert len(lines) == found.packets > 0


def test_packets_of_other_connections_are_left_out(tmp_path: Path) -> None:
    first = datagram("10.0.0.7", "192.0.2.1", 6, segment(0).payload[34:], bits=0x2000)
    later = datagram("10.0.0.7", "192.0.2.1", 6, bytes(40), bits=3)
    ping = datagram("192.0.2.1", "10.0.0.7", 1, b"\x08\0\0\0\0\1\0\1" + bytes(8))
    port, same_ports = (4000).to_bytes(2, "big") + (80).to_bytes(2, "big"), bytes([0, 24, 0, 0]) + bytes(16)
    udp = datagram("10.0.0.7", "192.0.2.1", 17, port + same_ports)
    ether = bytes(12) + b"\x08\0"
    odd = [Packet(NOON + i, len(ether + p), 1, ether + p) for i, p in enumerate((first, later, ping, udp))]
    tagged = bytes(12) + b"\x81\0\0\7\x08\0" + datagram("192.0.2.1", "10.0.0.7", 6, segment(0, to=False).payload[34:])
    mine = [segment(-0.9), segment(1), segment(2, to=False), segment(10.9), Packet(NOON + 10, 90, 1, tagged)]
    others = [segment(-1.1), segment(3, port=81), segment(4, host="192.0.2.2"), segment(11.1)]
    path = save(tmp_path / "c.pcap", [*mine, *others, *odd, Packet(NOON, 3, 1, b"abc")])
    assert found_in(extract_packets([path], [CALL])) == [*mine, odd[0]]
    assert found_in(extract_packets([path], [CALL._replace(protocol="icmp")])) == [odd[2]]
    assert found_in(extract_packets([path], [CALL._replace(protocol="udp")])) == [odd[3]]
    assert found_in(extract_packets([path], [CALL._replace(protocol="")])) == [*mine, odd[0], odd[3]]
    assert found_in(extract_packets([path], [CALL._replace(protocol="", source_port=0, destination_port=0)])) == [
        odd[2]
    ]
    assert (
        found_in(extract_packets([path], []))
        == found_in(extract_packets([path], [CALL._replace(source="10.0.0.8")]))
        == []
    )
    swapped = PacketConnection("192.0.2.1", 80, "10.0.0.7", 4000, "tcp", NOON, CALL.end)
    assert found_in(extract_packets([path], [swapped, CALL])) == [*mine, odd[0]]
    with pytest.raises(InputError, match="no addresses"):
        extract_packets([path], [CALL._replace(source="fe80::1%eth0")])


def test_bounds_are_kept_and_reported(tmp_path: Path) -> None:
    sent = [segment(i / 10, size=100) for i in range(50)]
    path = save(tmp_path / "c.pcap", sent)
    assert not extract_packets([path], [CALL], max_packets=50).cut
    some = extract_packets([path], [CALL], max_packets=49)
    assert found_in(some) == sent[:49]
    assert some.cut
    few = extract_packets([path], [CALL], max_bytes=2000)
    assert few.cut
    assert len(few.data) <= 2000 + 24
    assert found_in(few) == sent[: few.packets] != []
    nothing = extract_packets([path], [CALL], max_seconds=0.0)
    assert (nothing.packets, nothing.cut, nothing.looked_at) == (0, True, 0)
    assert found_in(nothing) == []
    assert extract_packets([path, path], [CALL], max_seconds=0.0).cut


def test_files_are_in_order_and_the_right_packets_are_left_out(tmp_path: Path) -> None:
    sent = [segment(i / 10) for i in range(60)]
    back = [*sent[:3], *sent[6:9], *sent[3:6]]  # its order stays
    parts = [sent[40:], sent[9:40:2], back, sent[10:40:2]]
    files = [save(tmp_path / str(number), part) for number, part in enumerate(parts)]
    save(tmp_path / "late", [segment(1000)])
    files += [tmp_path / "late", save(tmp_path / "empty", [])]
    assert found_in(extract_packets(files, [CALL])) == [*back, *sent[9:]]
    some = extract_packets(files, [CALL], max_packets=20)
    assert found_in(some) == [*back, *sent[9:20]]
    assert some.cut
    twice = [segment(1, size=1), segment(1, size=2)]
    ties = [save(tmp_path / f"tie{number}", [packet]) for number, packet in enumerate(twice)]
    assert found_in(extract_packets(ties, [CALL])) == twice
    assert found_in(extract_packets(ties[::-1], [CALL])) == twice[::-1]


def test_no_time_is_spent_on_captures_that_are_long_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a series, the file that begins last before the connections is read first."""
    files = [save(tmp_path / str(hour), [segment(-3600 * hour), segment(-3600 * hour + 1)]) for hour in (2, 1, 0)]
    asked = iter(range(10**6))
    # One look at the clock to set it, one before each file that is opened, two while the nearest is read.
    monkeypatch.setattr(packets, "time", SimpleNamespace(monotonic=lambda: next(asked)))
    found = extract_packets(files, [CALL], max_seconds=7)
    assert found.cut
    assert found_in(found) == frames_of(files[2])


def test_a_capture_is_not_read_far_behind_the_last_connection(tmp_path: Path) -> None:
    path = save(tmp_path / "c.pcap", [segment(i / 100, port=81 if i else 80) for i in range(60_000)])
    found = extract_packets([path], [CALL])
    assert found_in(found) == [segment(0)]
    assert not found.cut
    assert found.looked_at < 40_000


def test_packed_captures_are_read(tmp_path: Path) -> None:
    sent = [segment(i / 100) for i in range(400)]
    packed = tmp_path / "c.pcap.gz"
    content = gzip.compress(pcap(sent, magic=0xA1B23C4D))
    packed.write_bytes(content)
    whole = extract_packets([packed], [CALL])
    assert found_in(whole) == sent
    assert not whole.cut
    packed.write_bytes(content[: len(content) // 2])
    broken = extract_packets([packed], [CALL])
    assert found_in(broken) == sent[: broken.packets]
    assert broken.cut


def test_packets_of_two_link_types_are_written_as_pcapng(tmp_path: Path) -> None:
    sent = [segment(0), segment(1, link=101), segment(2)]
    (tmp_path / "c.pcapng").write_bytes(pcapng(sent))
    found = extract_packets([tmp_path / "c.pcapng"], [CALL])
    assert found.format == "pcapng"
    assert found_in(found) == sent
    (tmp_path / "c.pcapng").write_bytes(pcapng([sent[1], segment(1.5, port=9)]))
    only = extract_packets([tmp_path / "c.pcapng"], [CALL])
    assert (only.format, found_in(only)) == ("pcap", [sent[1]])


def test_a_bad_file_is_refused(tmp_path: Path) -> None:
    good, gone, bad = save(tmp_path / "good", [segment(0)]), tmp_path / "gone", tmp_path / "bad"
    bad.write_bytes(b"something else altogether")
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (gone, "gone: No such file or directory"),
        (bad, "bad: offset 0: no capture"),
        (tmp_path / "pipe", "pipe: not a file"),
        (tmp_path, "not a file"),
    ):
        for files in ([path], [good, path]):
            with pytest.raises(InputError, match=why):
                extract_packets(files, [CALL])
    good.write_bytes(good.read_bytes() + segment(1).payload)  # what is broken inside is passed over
    assert found_in(extract_packets([good], [CALL])) == [segment(0)]


EXAMPLE: dict[str, float | str | None] = {
    "source": "10.0.0.7", "source_port": "4000", "destination": "192.0.2.1", "destination_port": "80",
    "protocol": "tcp", "start": "2023-11-14T22:13:20.000000123Z", "end": "closed", "orig_packets": 3.0,
}  # fmt: skip


def test_examples_are_understood() -> None:
    def one(last_seen: int = NOON + 400 * SECOND, **changed: Any) -> PacketConnection | None:
        found = packet_connections(alert_with(example=EXAMPLE | changed, last_seen=last_seen))
        return found[0] if found else None

    assert one() == CALL._replace(end=NOON + 300 * SECOND)  # a record tells no more than that
    assert one(last_seen=NOON + 7 * SECOND) == CALL._replace(end=NOON + 7 * SECOND)
    assert one(last_seen=-1) == CALL._replace(end=NOON)
    assert one(duration_ms=10_000.0) == CALL
    assert one(duration=9.0, protocol=None, protocol_type="tcp") == CALL  # kdd: whole seconds, cut off
    assert one(protocol=None, duration_ms=0.0) == CALL._replace(protocol="", end=NOON)
    assert one(source_port=4000.0, destination_port=None, duration_ms=10_000.0) == CALL._replace(destination_port=0)
    for changed in (
        {"source": "10.0.0.7%eth0"}, {"source": "host"}, {"source": 7.0}, {"destination": None}, {"destination": "::1"},
        {"source_port": "-1"}, {"source_port": "70000"}, {"destination_port": "http"}, {"destination_port": 0.5},
        {"protocol": "tcp or 1"}, {"protocol": 6.0}, {"start": "yesterday"}, {"start": None}, {"start": 5.0},
    ):  # fmt: skip
        assert one(**changed) is None, changed
    assert packet_connections(alert_with()) == []
    both = alert_with(example=EXAMPLE | {"source_port": "1"}, examples=[EXAMPLE, {"source": "x"}, EXAMPLE])
    assert [connection.source_port for connection in packet_connections(both)] == [4000]


VALUE = st.one_of(st.none(), st.text(max_size=12), st.floats(), st.sampled_from(list(EXAMPLE.values())))


@given(st.lists(st.dictionaries(st.sampled_from([*EXAMPLE, "duration_ms", "duration"]), VALUE), max_size=3), VALUE)
def test_odd_examples_are_no_error(changed: list[dict[str, Any]], seen: Any) -> None:
    last_seen = int(seen) if isinstance(seen, float) and abs(seen) < 2**62 else -1
    for one in packet_connections(alert_with(examples=[EXAMPLE | odd for odd in changed], last_seen=last_seen)):
        assert 0 <= one.start <= one.end
        extract_packets([], [one])


def test_the_reason_for_no_packets_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "labels.csv").write_text("source,label\n")
    os.mkfifo(tmp_path / "pipe")

    def answer(kind: str, path: str | Path = "-", name: str = "office") -> tuple[list[Path], str]:
        where = 'interfaces = ["eth0"]' if kind == "live" else f"path = '{path}'"
        config = parse_config(f'[[source]]\nkind = "{kind}"\nname = "{name}"\n{where}\n')
        return packet_captures(config, alert_with(source="office"))

    piped = [], "the capture was read from a pipe: packets are not kept"
    assert answer("live") == ([], "the source is live: packets are not kept")
    for kind in ("records", "zeek", "eve"):
        assert answer(kind) == ([], "the source gives records, not packets")
    assert answer("capture") == answer("capture", tmp_path / "pipe") == piped
    assert answer("capture", tmp_path / "gone.pcap") == ([], "the capture is gone")
    assert answer("capture", tmp_path / "pipe" / "c.pcap") == ([], "the capture is gone")
    assert answer("capture", folder) == ([], "the capture is gone: its folder has none any more")
    assert answer("capture", name="other") == ([], "the source is not in the configuration any more")
    files = [save(folder / name, [segment(0)]) for name in ("b.pcap", "a.pcap")]
    assert answer("capture", folder) == (sorted(files), "")
    assert answer("capture", files[0]) == ([files[0]], "")
