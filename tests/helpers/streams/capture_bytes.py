"""Captures built by hand, and plain readers of them to compare with."""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from netclust.stream.packets.capture_walk import CaptureWalk
from netclust.stream.packets.packet_blocks import PacketBlock

MICRO, NANO, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34
SECOND = 1_000_000_000
START = 1_700_000_000


class Packet(NamedTuple):
    time: int
    wirelen: int
    link: int
    payload: bytes


def packets(blocks: Iterable[PacketBlock]) -> list[Packet]:
    """All packets of a source, copied; every place is checked."""
    found = []
    for block in blocks:
        for place in block.index:
            begin, end = int(place["offset"]), int(place["offset"] + place["caplen"])
            assert 0 <= begin <= end <= len(block.data)
            assert place["caplen"] <= place["wirelen"]
            payload = block.data[begin:end].tobytes()
            found.append(Packet(int(place["time"]), int(place["wirelen"]), int(place["link"]), payload))
    return found


def header(order: str = "<", magic: int = MICRO, link: int = 1) -> bytes:
    return struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)


def record(time: int, payload: bytes, order: str = "<", magic: int = MICRO, wirelen: int | None = None) -> bytes:
    unit = 1 if magic == NANO else 1000
    length = len(payload) if wirelen is None else wirelen
    head = struct.pack(order + "IIII", time // SECOND, time % SECOND // unit, len(payload), length)
    return head + (b"\1\0\0\0\0\0\0\0" if magic == MODIFIED else b"") + payload


def pcap(sent: Iterable[Packet], order: str = "<", magic: int = MICRO, link: int = 1) -> bytes:
    return header(order, magic, link) + b"".join(record(p.time, p.payload, order, magic, p.wirelen) for p in sent)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(
    link: int = 1, snaplen: int = 0, resolution: int | None = None, shift: int | None = None, order: str = "<"
) -> bytes:
    options = b"" if resolution is None else option(9, bytes([resolution]), order)
    options += b"" if shift is None else option(14, struct.pack(order + "q", shift), order)
    if options:
        options = option(2, b"eth0", order) + options + option(0, b"", order)
    return block(1, struct.pack(order + "HHI", link, 0, snaplen) + options, order)


def enhanced(
    ticks: int, payload: bytes, which: int = 0, order: str = "<", wirelen: int | None = None, kind: int = 6
) -> bytes:
    length = len(payload) if wirelen is None else wirelen
    first = struct.pack(order + "I", which) if kind == 6 else struct.pack(order + "HH", which, 0xFFFF)
    head = first + struct.pack(order + "IIII", ticks >> 32, ticks & 0xFFFFFFFF, len(payload), length)
    return block(kind, head + payload + bytes(-len(payload) % 4), order)


def simple(payload: bytes, order: str = "<", wirelen: int | None = None) -> bytes:
    return block(3, struct.pack(order + "I", len(payload) if wirelen is None else wirelen) + payload, order)


def pcapng(sent: Iterable[Packet], order: str = "<") -> bytes:
    """Nanoseconds, one interface for each link type."""
    sent = list(sent)
    links = sorted({p.link for p in sent})
    head = section(order) + b"".join(interface(link, resolution=9, order=order) for link in links)
    return head + b"".join(
        enhanced(p.time, p.payload, links.index(p.link), order, wirelen=max(p.wirelen, len(p.payload))) for p in sent
    )


def read_pcap(data: bytes) -> Iterator[Packet]:
    """A sound pcap file."""
    order = "<" if data[3] == 0xA1 else ">"
    magic, *_, link = struct.unpack_from(order + "IHHiIII", data)
    at = 24
    while at < len(data):
        second, fraction, caplen, wirelen = struct.unpack_from(order + "IIII", data, at)
        at += 24 if magic == MODIFIED else 16
        time = second * SECOND + fraction * (1 if magic == NANO else 1000)
        yield Packet(time, wirelen, link & 0x03FFFFFF, data[at : at + caplen])
        at += caplen


def read_pcapng(data: bytes) -> Iterator[Packet]:
    """A sound pcapng file."""
    at, last, order, interfaces = 0, 0, "<", []
    while at < len(data):
        if data[at : at + 4] == b"\n\r\r\n":
            order, interfaces = ("<" if data[at + 8] == 0x4D else ">"), []
        kind, size = struct.unpack_from(order + "II", data, at)
        body = data[at + 8 : at + size - 4]
        if kind == 1:
            link, _, snaplen = struct.unpack_from(order + "HHI", body)
            resolution, shift, place = 6, 0, 8
            while place < len(body):
                code, length = struct.unpack_from(order + "HH", body, place)
                if code == 9:
                    resolution = body[place + 4]
                if code == 14:
                    (shift,) = struct.unpack_from(order + "q", body, place + 4)
                place += 4 + length + -length % 4
            ticks_a_second = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
            interfaces.append((link, snaplen, ticks_a_second, shift))
        elif kind in (2, 6):
            which, high, low, caplen, wirelen = struct.unpack_from(order + ("I" if kind == 6 else "Hxx") + "IIII", body)
            link, _, ticks_a_second, shift = interfaces[which]
            last = ((high << 32) | low) * SECOND // ticks_a_second + shift * SECOND
            yield Packet(last, wirelen, link, body[20 : 20 + caplen])
        elif kind == 3:
            (wirelen,) = struct.unpack_from(order + "I", body)
            link, snaplen, *_ = interfaces[0]
            yield Packet(last, wirelen, link, body[4 : 4 + min(wirelen, snaplen or wirelen)])
        at += size


def some(count: int, start: int = START * SECOND, step: int = 1_000_000) -> list[Packet]:
    """Packets that are all different."""
    return [
        Packet(
            start + i * step,
            60 + i % 50,
            1,
            bytes((i * 7 + k * (i % 11)) % 251 for k in range(40 + i % 60))[: 60 + i % 50],
        )
        for i in range(count)
    ]


class Pieces(io.RawIOBase):
    """Bytes that arrive in pieces."""

    def __init__(self, content: bytes, sizes: list[int]) -> None:
        self._rest, self._sizes = content, sizes

    def readinto1(self, out: memoryview) -> int:
        size = min(len(out), self._sizes.pop(0) if self._sizes else len(out))
        piece, self._rest = self._rest[:size], self._rest[size:]
        out[: len(piece)] = piece
        return len(piece)


def walk(content: bytes, sizes: list[int] | None = None) -> tuple[list[Packet], dict[str, int]]:
    """Packets and counters, without a file."""
    state = CaptureWalk("bytes", Counter())
    stream, found = Pieces(content, list(sizes or [])), []
    while state.fill(stream):
        found += packets(state.blocks())
    found += packets(state.blocks(final=True))
    return found, dict(state.counters)
