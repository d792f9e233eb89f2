"""The packets of an alert's connections, cut out of the captures that they were read from: evidence to open elsewhere.

Nothing is kept for it: the captures are read again, those that begin nearest before the connections first, within
bounds of packets, bytes and time. What is beyond a bound is left out, and `cut` says so.

>>> import tempfile
>>> from netclust.datasets.simulators.capture_simulator import simulate_capture
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = simulate_capture(f"{folder}/c.pcap", f"{folder}/c.csv", hours=0.02, attacks="syn_flood", hosts=10)
...     line = Path(folder, "c.csv").read_text().splitlines()[1].split(",")
...     start, end = (round(float(seconds) * 1e9) for seconds in line[5:7])
...     one = PacketConnection(line[0], int(line[1]), line[2], int(line[3]), line[4], start, end)
...     found = extract_packets([f"{folder}/c.pcap"], [one])
>>> found.packets > 0, found.format, found.cut, found.data[:4].hex()
(True, 'pcap', False, '4d3cb2a1')
"""

from __future__ import annotations

import io
import ipaddress
import os
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets import decode
from netclust.kernels.packets.capture_copy import ENHANCED_OVERHEAD
from netclust.kernels.seam import read_only
from netclust.records.opening import STDIN, unreadable
from netclust.stream.alerts.alert_events import Alert
from netclust.stream.config import Config
from netclust.stream.packets.capture_files import CaptureFile, list_captures
from netclust.stream.packets.capture_writer import CaptureWriter
from netclust.stream.packets.connections import PROTOCOLS, connection_protocol_ids
from netclust.stream.packets.flow_table import FlowTimeouts
from netclust.stream.packets.packet_blocks import INDEX, NO_VLAN, PacketBlock
from netclust.stream.sources.conn_records import iso_ns

__all__ = [
    "Extracted",
    "PacketConnection",
    "extract_packets",
    "packet_captures",
    "packet_connections",
    "plain_address",
    "plain_port",
]

MAX_PACKETS = 2000
MAX_BYTES = 2 << 20
MAX_SECONDS = 20.0
SLACK_NS = 10**9
"""Before and behind a connection: times in records are rounded."""

_SECOND = 10**9
_LONGEST_NS = round(FlowTimeouts().active * _SECOND)  # of what one record tells
_STEP_NS = round(FlowTimeouts().step * _SECOND)  # packets of a capture are in order to within this
_MAX_NS = 1 << 62
_PORTED = (decode.TCP, decode.UDP, decode.SCTP)
_BROKEN = ("truncated_archive", "unreadable_archive")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class PacketConnection(NamedTuple):
    """Who talked to whom, and when: nanoseconds since the epoch. Ports are 0 where the protocol has none."""

    source: str
    source_port: int
    destination: str
    destination_port: int
    protocol: str  # of stream.connections.PROTOCOLS; empty: any
    start: int
    end: int


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """A capture, as the bytes of a file. `cut`: a bound was hit or an archive is broken, so packets may be missing."""

    data: bytes
    format: Literal["pcap", "pcapng"]  # pcapng where there are several link types
    packets: int
    looked_at: int  # packets of the captures that were read
    cut: bool


def plain_address(value: object) -> Address | None:
    """An address, if it is one and names no zone.

    >>> plain_address("10.0.0.7"), plain_address("fe80::1%eth0"), plain_address("10.0.0.7 or 1=1")
    (IPv4Address('10.0.0.7'), None, None)
    """
    if not isinstance(value, str):
        return None
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return None
    return None if getattr(found, "scope_id", None) else found


def plain_port(value: object) -> int | None:
    """A port, if it is one.

    >>> plain_port("443"), plain_port(53.0), plain_port("8_0"), plain_port("65536")
    (443, 53, None, None)
    """
    if isinstance(value, str):
        found = int(value) if value.isascii() and value.isdecimal() and len(value) <= 5 else -1
    else:
        found = int(value) if isinstance(value, float | int) and float(value).is_integer() else -1
    return found if 0 <= found < 1 << 16 else None


def packet_connections(alert: Alert) -> list[PacketConnection]:
    """Return the example connections of an alert. One that cannot be understood in full is left out.

    Where it is not told how long one lasted, that is as long as a record can be, and not beyond the alert.

    >>> example = {"source": "10.0.0.7", "source_port": "4000", "destination": "10.0.0.1", "destination_port": "80",
    ...            "protocol": "tcp", "start": "1970-01-01T00:00:02.000000000Z", "duration_ms": 1500.0}
    >>> kind = {"kind": "novel", "label": "novel", "entity": "10.0.0.7", "entity_kind": "source"}
    >>> packet_connections(Alert(id="a-1", example=example, **kind))[0][4:]
    ('tcp', 2000000000, 3500000000)
    """
    examples: Sequence[Mapping[str, Any]] = getattr(alert, "examples", []) or [alert.example]
    found = [_connection(example, alert.last_seen) for example in examples]
    return list(dict.fromkeys(connection for connection in found if connection is not None))


def packet_captures(config: Config, alert: Alert) -> tuple[list[Path], str]:
    """Return the captures that an alert's packets can be read from again; else none, and why.

    >>> from netclust.stream.config import parse_config
    >>> alert = Alert(id="a-1", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source", source="live")
    >>> packet_captures(parse_config('source = [{kind = "live", interfaces = ["eth0"]}]'), alert)
    ([], 'the source is live: packets are not kept')
    """
    source = next((source for source in config.sources if source.name == alert.source), None)
    if source is None:
        return [], "the source is not in the configuration any more"
    if source.kind == "live":
        return [], "the source is live: packets are not kept"
    if source.kind != "capture":
        return [], "the source gives records, not packets"
    if source.path == STDIN:
        return [], "the capture was read from a pipe: packets are not kept"
    try:
        mode = os.stat(source.path).st_mode
        if stat.S_ISDIR(mode):
            return [Path(path) for path in list_captures([source.path])], ""
    except InputError:
        return [], "the capture is gone: its folder has none any more"
    except (FileNotFoundError, NotADirectoryError):
        return [], "the capture is gone"
    except (OSError, ValueError) as error:
        return [], f"the capture cannot be read: {getattr(error, 'strerror', None) or 'no path'}"
    if not stat.S_ISREG(mode):
        return [], "the capture was read from a pipe: packets are not kept"
    return [Path(source.path)], ""


def extract_packets(
    files: Sequence[str | Path],
    connections: Sequence[PacketConnection],
    *,
    max_packets: int = MAX_PACKETS,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
) -> Extracted:
    """Extract the packets of those connections, both directions, in order of time; if too many, the first ones.

    ICMP and what else has no ports is found by its addresses. Fragments behind the first are left out: they have no
    ports. The captures are taken to be in order to within a minute: none is read further than that behind the last
    connection. `max_bytes` are those of packets with their headers. Raises InputError if a file is not there (any
    more) or no capture; what is broken inside a capture is passed over.
    """
    wanted = _Wanted(connections)
    deadline = _Deadline(max_seconds)
    kept, looked_at, cut = _Kept(max_packets, max_bytes), 0, False
    for number, path in _nearest_first(files, wanted, deadline) if connections else ():
        capture = CaptureFile(path, stop=deadline)
        mine = _Kept(max_packets, max_bytes)
        for block in capture:
            if block.index["time"].min() > wanted.end + _STEP_NS:
                break
            if not mine.take(number, block, wanted.rows(block)):
                break
        looked_at += capture.packets
        cut |= mine.cut or any(capture.counters[reason] for reason in _BROKEN)
        kept, earlier = _Kept(max_packets, max_bytes), kept.packets
        cut |= not all(kept.add(packet) for packet in _joined(earlier, mine.packets))
    cut |= deadline.is_set()
    form: Literal["pcap", "pcapng"] = "pcapng" if len({packet.link for packet in kept.packets}) > 1 else "pcap"
    data = _written(kept.packets, form)
    return Extracted(data=data, format=form, packets=len(kept.packets), looked_at=looked_at, cut=cut)


class _Deadline(threading.Event):
    """Is set by the clock: a capture asks at every block, and whenever it reads."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.monotonic() + seconds

    def is_set(self) -> bool:
        return time.monotonic() >= self._end


class _Packet(NamedTuple):
    """A copy. Of one file's packets the `key` does not go back, so that sorting leaves them in its order."""

    key: int
    file: int
    time: int
    wirelen: int
    link: int
    data: bytes


class _Kept:
    """The first packets, as many as the bounds allow."""

    def __init__(self, max_packets: int, max_bytes: int) -> None:
        self.packets: list[_Packet] = []
        self.cut = False
        self._max_packets, self._room = max_packets, max_bytes

    def add(self, packet: _Packet) -> bool:
        """Keep one more; False if there is no room for it."""
        cost = ENHANCED_OVERHEAD + (len(packet.data) + 3 & ~3)
        if len(self.packets) >= self._max_packets or cost > self._room:
            self.cut = True
            return False
        self.packets.append(packet)
        self._room -= cost
        return True

    def take(self, file: int, block: PacketBlock, rows: NDArray[np.int64]) -> bool:
        """Copy these packets of a block; False if there is no room for one of them."""
        for row in rows.tolist():
            entry = block.index[row]
            begin, at = int(entry["offset"]), int(entry["time"])
            key = max(at, self.packets[-1].key) if self.packets else at
            data = block.data[begin : begin + int(entry["caplen"])].tobytes()
            if not self.add(_Packet(key, file, at, int(entry["wirelen"]), int(entry["link"]), data)):
                return False
        return True


class _Wanted:
    """Which packets belong to the connections."""

    def __init__(self, connections: Sequence[PacketConnection]) -> None:
        self._ends = [_Ends.of(connection) for connection in connections]
        self._pairs = np.array([ends.source[1] ^ ends.destination[1] for ends in self._ends], np.uint64)
        self.start = min((ends.start for ends in self._ends), default=0)
        self.end = max((ends.end for ends in self._ends), default=-1)

    def rows(self, block: PacketBlock) -> NDArray[np.int64]:
        """Of a block's packets."""
        at = block.index["time"]
        rows = np.flatnonzero((at >= self.start) & (at <= self.end))
        if not len(rows):
            return rows
        packets = np.empty(len(rows), decode.PACKET)
        counts = np.zeros(decode.STATUSES, np.int64)
        decode.decode_packets(read_only(block.data), block.index[rows], False, packets, counts)
        found = (packets["status"] < decode.FIRST_BAD) & (packets["fragment"] == 0)
        found &= np.isin(packets["src_lo"] ^ packets["dst_lo"], self._pairs)  # the same for both directions
        rows, packets = rows[found], packets[found]
        for name in ("sport", "dport"):
            packets[name][~np.isin(packets["proto"], _PORTED)] = 0
        chosen = np.zeros(len(rows), bool)
        for ends in self._ends:
            chosen |= ends.among(packets)
        return np.asarray(rows[chosen])


class _Ends(NamedTuple):
    """A connection as the decoder sees it; `protocol` is a place in PROTOCOLS, 0 for any."""

    source: tuple[int, int, int]  # the two words of the address, and the port
    destination: tuple[int, int, int]
    is_v6: bool
    protocol: int
    start: int
    end: int

    @classmethod
    def of(cls, connection: PacketConnection) -> _Ends:
        source, destination = plain_address(connection.source), plain_address(connection.destination)
        if source is None or destination is None:
            raise InputError(f"{connection.source!r} to {connection.destination!r}: no addresses")
        protocol = PROTOCOLS.index(connection.protocol) if connection.protocol in PROTOCOLS else 0
        ported = protocol == 0 or connection.protocol in ("tcp", "udp", "sctp")
        ports = (connection.source_port, connection.destination_port) if ported else (0, 0)
        a, b = (
            (int(address) >> 64, int(address) & (1 << 64) - 1, port)
            for address, port in zip((source, destination), ports, strict=True)
        )
        start, end = max(connection.start - SLACK_NS, 0), min(connection.end, _MAX_NS) + SLACK_NS
        return cls(a, b, source.version == 6, protocol, start, end)

    def among(self, packets: NDArray[Any]) -> NDArray[np.bool_]:
        """Which packets are its own."""
        here = _equal(packets, "src_hi", "src_lo", "sport", self.source)
        here &= _equal(packets, "dst_hi", "dst_lo", "dport", self.destination)
        back = _equal(packets, "dst_hi", "dst_lo", "dport", self.source)
        back &= _equal(packets, "src_hi", "src_lo", "sport", self.destination)
        found = (here | back) & ((packets["family"] == decode.FAMILY_IPV6) == self.is_v6)
        found &= (packets["time"] >= self.start) & (packets["time"] <= self.end)
        if self.protocol:
            found &= connection_protocol_ids(packets["proto"]) == self.protocol
        return np.asarray(found)


def _equal(packets: NDArray[Any], high: str, low: str, port: str, end: tuple[int, int, int]) -> NDArray[np.bool_]:
    here: NDArray[np.bool_] = packets[high] == np.uint64(end[0])
    here &= packets[low] == np.uint64(end[1])
    here &= packets[port] == end[2]
    return here


def _connection(example: Mapping[str, Any], last_seen: int) -> PacketConnection | None:
    source, destination = plain_address(example.get("source")), plain_address(example.get("destination"))
    # Zeros are left out of examples.
    ports = [plain_port(example.get(name) or 0) for name in ("source_port", "destination_port")]
    protocol = example.get("protocol") or example.get("protocol_type") or ""
    start = _start(example.get("start"))
    if source is None or destination is None or source.version != destination.version:
        return None
    if ports[0] is None or ports[1] is None or protocol not in PROTOCOLS or start is None:
        return None
    lasted = _lasted(example)
    end = start + lasted if lasted is not None else max(start, min(start + _LONGEST_NS, last_seen))
    return PacketConnection(str(source), ports[0], str(destination), ports[1], str(protocol), start, end)


def _start(value: object) -> int | None:
    try:
        return iso_ns(value) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _lasted(example: Mapping[str, Any]) -> int | None:
    """Nanoseconds from the first packet to the last, if it is told."""
    for name, unit, rounding in (("duration_ms", _SECOND // 1000, 0), ("duration", _SECOND, 1)):  # whole seconds in kdd
        value = example.get(name)
        if isinstance(value, float | int) and 0 <= value * unit < _MAX_NS:
            return round((value + rounding) * unit)
    return None


def _nearest_first(files: Sequence[str | Path], wanted: _Wanted, deadline: _Deadline) -> list[tuple[int, str | Path]]:
    """Those that do not begin too late, with their places: the one that begins last first, as it is likeliest."""
    begun: list[tuple[int, int]] = []
    for number, path in enumerate(files):
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise unreadable(path, error) from None
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: not a file, so it cannot be read again")
        if len(files) == 1:
            return [(0, path)]
        if deadline.is_set():
            break
        first = CaptureFile(path).first_time()
        if first is not None and first <= wanted.end + _STEP_NS:
            begun.append((first, number))
    return [(number, files[number]) for _, number in sorted(begun, reverse=True)]


def _joined(some: list[_Packet], others: list[_Packet]) -> list[_Packet]:
    """By time; of the same time, in the order of files."""
    return sorted(some + others, key=lambda packet: packet[:2])


def _written(packets: Sequence[_Packet], form: Literal["pcap", "pcapng"]) -> bytes:
    index = np.zeros(len(packets), INDEX)
    index["caplen"] = [len(packet.data) for packet in packets]
    index["offset"] = np.cumsum(index["caplen"], dtype=np.int64) - index["caplen"]
    for name in ("time", "wirelen", "link"):
        index[name] = [getattr(packet, name) for packet in packets]
    index["vlan"] = NO_VLAN
    data = np.frombuffer(b"".join(packet.data for packet in packets) or b"\0", np.uint8)
    file = io.BytesIO()
    with CaptureWriter("the packets of an alert", format=form, file=file) as writer:
        writer.write(PacketBlock(data, index))
    return file.getvalue()
