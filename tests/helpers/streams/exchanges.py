"""Packets made by hand: who sends what to whom, and when, as blocks for the flow table."""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.packet_blocks import ETHERNET, INDEX, NO_VLAN, PacketBlock

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
CLIENT, SERVER = "10.0.0.1", "192.168.0.9"
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32}
NO_TIMEOUTS = FlowTimeouts(attempt=1e9, idle=0, active=0, close=1e9, step=1e9)

Packet = tuple[float, bytes]


def ipv4(
    src: str, dst: str, proto: int, body: bytes, *, ident: int = 0, fragment: int = 0, more: bool = False
) -> bytes:
    """A frame; `fragment` is an offset in bytes."""
    bits = (0x2000 if more else 0) | fragment // 8
    addresses = ipaddress.IPv4Address(src).packed + ipaddress.IPv4Address(dst).packed
    header = struct.pack("!BBHHHBBH", 69, 0, 20 + len(body), ident, bits, 64, proto, 0) + addresses
    return bytes(12) + b"\x08\0" + header + body


def tcp(
    at: float, flags: str, *, back: bool = False, seq: int = 0, ack: int = 0, data: bytes = b"", sport: int = 40000,
    dport: int = 12345, src: str = CLIENT, dst: str = SERVER,
) -> Packet:  # fmt: skip
    """A segment from the client to the server, or (`back`) the other way; `at` is in seconds."""
    bits = sum(FLAGS[f] for f in flags)
    ports = (dport, sport) if back else (sport, dport)
    segment = struct.pack("!HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 80, bits, 1000, 0, 0) + data
    return at, ipv4(*((dst, src) if back else (src, dst)), 6, segment)


def udp(
    at: float, *, back: bool = False, data: bytes = b"x", sport: int = 40000, dport: int = 9999, src: str = CLIENT,
    dst: str = SERVER,
) -> Packet:  # fmt: skip
    ports = (dport, sport) if back else (sport, dport)
    body = struct.pack("!HHHH", *ports, 8 + len(data), 0) + data
    return at, ipv4(*((dst, src) if back else (src, dst)), 17, body)


def icmp(at: float, kind: int, code: int = 0, *, ident: int = 7, back: bool = False, data: bytes = b"") -> Packet:
    body = struct.pack("!BBHHH", kind, code, 0, ident, 1) + data
    return at, ipv4(*((SERVER, CLIENT) if back else (CLIENT, SERVER)), 1, body)


def arp(at: float, operation: int, sender: str, target: str) -> Packet:
    words = [ipaddress.IPv4Address(address).packed for address in (sender, target)]
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + bytes(6) + words[0] + bytes(6) + words[1]
    return at, bytes(12) + b"\x08\x06" + body


def block(packets: list[Packet], *, vlan: int = NO_VLAN, now: float | None = None) -> PacketBlock:
    """The packets one behind the other."""
    index = np.zeros(len(packets), INDEX)
    offset = 0
    for i, (at, frame) in enumerate(packets):
        index[i] = (offset, T0 + round(at * SECOND), len(frame), len(frame), ETHERNET, vlan)
        offset += len(frame)
    data = np.frombuffer(b"".join(frame for _, frame in packets) or b"\0", np.uint8).copy()
    return PacketBlock(data, index, -1 if now is None else T0 + round(now * SECOND))


def records_of(packets: list[Packet], timeouts: FlowTimeouts | None = None, **options: Any) -> NDArray[Any]:
    """All records of a conversation."""
    table = FlowTable(options.pop("max_flows", 64), timeouts, **options)
    return np.concatenate([table.feed(block(packets)), table.finish()])


def handshake(at: float = 0.0, *, isn: int = 100, peer: int = 900, **ends: Any) -> list[Packet]:
    return [
        tcp(at, "S", seq=isn, **ends),
        tcp(at + 0.01, "SA", back=True, seq=peer, ack=isn + 1, **ends),
        tcp(at + 0.02, "A", seq=isn + 1, ack=peer + 1, **ends),
    ]
