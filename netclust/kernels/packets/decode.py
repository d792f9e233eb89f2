"""From a frame's bytes to what a connection is made of: link, network and transport headers, no copy, no object.

Every length is checked before it is read. What cannot be decoded is given a status and counted, never an error.
Addresses are two 64-bit words, the high one 0 for IPv4 and ARP; multi-byte fields are big-endian on the wire.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner, kernel

# What became of a packet. Below FIRST_BAD it is part of a connection.
(
    OK, LENGTH_BEYOND_FRAME, FIRST_BAD, SNAPPED, TOO_SHORT, BAD_IP, BAD_TRANSPORT, BAD_ARP, UNKNOWN_LINK, NOT_IP,
    TOO_DEEP, STATUSES,
) = range(12)  # fmt: skip
STATUS_NAMES = (
    "decoded", "length_beyond_frame", "", "snapped", "too_short", "bad_ip", "bad_transport", "bad_arp",
    "unknown_link", "not_ip", "too_deep",
)  # fmt: skip

ICMP, IGMP, IP_IN_IP, TCP, UDP, IPV6_IN_IP, GRE, ICMPV6, SCTP, ARP = 1, 2, 4, 6, 17, 41, 47, 58, 132, 255
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
FAMILY_IPV4, FAMILY_IPV6, FAMILY_ARP = 4, 6, 1

_VXLAN_PORT = 4789
_MAX_HEADERS = 12  # extension headers of one packet; also bounds nesting of tunnels
_MAX_TUNNELS = 3

PACKET = np.dtype(
    [
        ("time", np.int64),
        ("payload", np.int64),  # offset in the block's data of what the transport carries
        *((name, np.uint64) for name in ("src_hi", "src_lo", "dst_hi", "dst_lo")),
        ("frame_bytes", np.uint32),  # on the wire
        ("ip_bytes", np.uint32),  # the IP packet, headers included; an ARP packet's own length
        ("payload_bytes", np.uint32),  # what the transport carries, on the wire
        ("payload_here", np.uint32),  # and how much of it was captured
        ("seq", np.uint32),
        ("ack", np.uint32),
        ("vlan", np.uint32),  # outer id, inner id << 12; 0 none
        ("ident", np.uint32),  # of the IP datagram, for fragments
        ("fragment", np.uint32),  # offset in bytes
        ("sport", np.uint16),
        ("dport", np.uint16),
        ("window", np.uint16),
        ("family", np.uint8),
        ("proto", np.uint8),
        ("flags", np.uint8),
        ("ttl", np.uint8),
        ("icmp_type", np.uint8),
        ("icmp_code", np.uint8),
        ("more", np.uint8),  # more fragments follow
        ("header_bytes", np.uint8),  # of the transport
        ("status", np.uint8),
    ],
    align=True,
)


@borrowing(inner)
def u16(data: NDArray[np.uint8], at: int) -> int:
    """Two bytes of the wire."""
    return (np.int64(data[at]) << 8) | np.int64(data[at + 1])


@borrowing(inner)
def _u32(data: NDArray[np.uint8], at: int) -> int:
    """Read four bytes of the wire."""
    return (u16(data, at) << 16) | u16(data, at + 2)


@borrowing(inner)
def _u64(data: NDArray[np.uint8], at: int) -> Any:
    """Read eight bytes of the wire, unsigned."""
    return (np.uint64(_u32(data, at)) << np.uint64(32)) | np.uint64(_u32(data, at + 4))


@borrowing(kernel)
def decode_packets(
    data: NDArray[np.uint8], index: NDArray[Any], tunnels: bool, out: NDArray[Any], counts: NDArray[np.int64]
) -> None:
    """Decode every indexed packet of a block into `out`; `counts` grows by status."""
    for i in range(len(index)):
        entry = index[i]
        packet = out[i]
        packet.time = entry.time
        packet.frame_bytes = entry.wirelen
        packet.vlan = entry.vlan if entry.vlan > 0 else 0
        status = _frame(data, entry.offset, entry.offset + entry.caplen, entry.offset + entry.wirelen, entry.link,
                        tunnels, packet)  # fmt: skip
        packet.status = status
        counts[status] += 1


@borrowing(inner)
def _short(here: int, wire: int) -> int:
    """Why bytes are missing: the capture left them out, or the sender did."""
    return SNAPPED if here < wire else TOO_SHORT


@borrowing(inner)
def _frame(data: NDArray[np.uint8], at: int, here: int, wire: int, link: int, tunnels: bool, packet: Any) -> int:
    """A frame from its link header on: `here` is where the captured bytes end, `wire` where the frame did."""
    kind = -1  # an ethertype once it is known
    if link == 1:  # Ethernet
        if at + 14 > here:
            return _short(here, wire)
        kind, at = u16(data, at + 12), at + 14
    elif link == 113:  # Linux cooked
        if at + 16 > here:
            return _short(here, wire)
        kind, at = u16(data, at + 14), at + 16
    elif link == 276:  # Linux cooked, second version
        if at + 20 > here:
            return _short(here, wire)
        kind, at = u16(data, at), at + 20
    elif link == 51:  # PPP over Ethernet
        kind = 0x8864
    elif link in (12, 14, 101, 228, 229):  # raw IP
        if at >= here:
            return _short(here, wire)
        kind = 0x86DD if data[at] >> 4 == 6 else 0x0800
    elif link in (0, 108):  # loopback: the family, in the byte order of whoever captured
        if at + 4 > here:
            return _short(here, wire)
        family = max(np.int64(data[at]), np.int64(data[at + 3]))
        kind = 0x0800 if family == 2 else 0x86DD if family in (10, 24, 28, 30) else 0
        at += 4
    else:
        return UNKNOWN_LINK
    for _ in range(_MAX_TUNNELS):
        status, inside, kind = _network(data, at, here, wire, kind, tunnels, packet)
        if inside < 0:
            return status
        at = inside
        if kind == 0x6558:  # Ethernet inside
            if at + 14 > here:
                return _short(here, wire)
            kind, at = u16(data, at + 12), at + 14
    return TOO_DEEP


@borrowing(inner)
def _network(
    data: NDArray[np.uint8], at: int, here: int, wire: int, kind: int, tunnels: bool, packet: Any
) -> tuple[int, int, int]:
    """Tags, then IP or ARP. The status; where a tunnel's inside begins (-1: there is none) and of what kind it is."""
    packet.sport = packet.dport = packet.window = 0
    packet.seq = packet.ack = packet.ident = packet.fragment = 0
    packet.flags = packet.icmp_type = packet.icmp_code = packet.more = packet.ttl = packet.header_bytes = 0
    tags = 0
    while kind in (0x8100, 0x88A8, 0x9100):
        if at + 4 > here:
            return _short(here, wire), -1, 0
        if tags < 2:
            packet.vlan |= np.uint32((u16(data, at) & 0x0FFF) << (12 if packet.vlan else 0))
        kind, at, tags = u16(data, at + 2), at + 4, tags + 1
        if tags > _MAX_HEADERS:
            return TOO_DEEP, -1, 0
    if kind == 0x8864:  # PPPoE session
        if at + 8 > here:
            return _short(here, wire), -1, 0
        protocol = u16(data, at + 6)
        kind, at = 0x0800 if protocol == 0x0021 else 0x86DD if protocol == 0x0057 else 0, at + 8
    elif kind < 0x0600 and kind > 0 and at + 8 <= here and _u32(data, at) == 0xAAAA0300 and u16(data, at + 4) == 0:
        kind, at = u16(data, at + 6), at + 8  # 802.3 with SNAP
    if kind == 0x0800:
        return _ipv4(data, at, here, wire, tunnels, packet)
    if kind == 0x86DD:
        return _ipv6(data, at, here, wire, tunnels, packet)
    if kind == 0x0806:
        return _arp(data, at, here, wire, packet), -1, 0
    return NOT_IP, -1, 0


@borrowing(inner)
def _arp(data: NDArray[np.uint8], at: int, here: int, wire: int, packet: Any) -> int:
    if at + 8 > here:
        return _short(here, wire)
    hardware = np.int64(data[at + 4])
    length = 8 + 2 * (hardware + 4)
    if u16(data, at + 2) != 0x0800 or data[at + 5] != 4:
        return BAD_ARP
    if at + length > here:
        return _short(here, wire)
    packet.family, packet.proto = FAMILY_ARP, ARP
    packet.src_hi = packet.dst_hi = 0
    packet.src_lo = _u32(data, at + 8 + hardware)
    packet.dst_lo = _u32(data, at + 12 + 2 * hardware)
    packet.icmp_type = min(u16(data, at + 6), 255)  # the operation
    packet.ip_bytes = length
    packet.payload, packet.payload_bytes, packet.payload_here = at, length, length
    return OK


@borrowing(inner)
def _ipv4(data: NDArray[np.uint8], at: int, here: int, wire: int, tunnels: bool, packet: Any) -> tuple[int, int, int]:
    if at + 20 > here:
        return _short(here, wire), -1, 0
    header = np.int64(data[at] & 0x0F) * 4
    total = u16(data, at + 2)
    if data[at] >> 4 != 4 or header < 20:
        return BAD_IP, -1, 0
    if total == 0:  # a segment that the network card was to cut
        total = wire - at
    if total < header:
        return BAD_IP, -1, 0
    status = OK
    if at + total > wire:
        status, total = LENGTH_BEYOND_FRAME, wire - at
    if at + header > here:
        return _short(here, wire), -1, 0
    packet.family, packet.proto, packet.ttl = FAMILY_IPV4, data[at + 9], data[at + 8]
    packet.src_hi = packet.dst_hi = 0
    packet.src_lo, packet.dst_lo = _u32(data, at + 12), _u32(data, at + 16)
    packet.ip_bytes = total
    packet.ident = u16(data, at + 4)
    bits = u16(data, at + 6)
    packet.fragment, packet.more = (bits & 0x1FFF) * 8, (bits >> 13) & 1
    return _transport(data, at + header, min(here, at + total), at + total, status, tunnels, packet)


@borrowing(inner)
def _ipv6(data: NDArray[np.uint8], at: int, here: int, wire: int, tunnels: bool, packet: Any) -> tuple[int, int, int]:
    if at + 40 > here:
        return _short(here, wire), -1, 0
    if data[at] >> 4 != 6:
        return BAD_IP, -1, 0
    status, end = OK, at + 40 + u16(data, at + 4)
    if end == at + 40 and data[at + 6] != 59:  # a jumbogram or a segment that the network card was to cut
        end = wire
    if end > wire:
        status, end = LENGTH_BEYOND_FRAME, wire
    packet.family, packet.ttl = FAMILY_IPV6, data[at + 7]
    packet.src_hi, packet.src_lo = _u64(data, at + 8), _u64(data, at + 16)
    packet.dst_hi, packet.dst_lo = _u64(data, at + 24), _u64(data, at + 32)
    packet.ip_bytes = end - at
    here = min(here, end)
    following, at = np.int64(data[at + 6]), at + 40
    for _ in range(_MAX_HEADERS):
        if following in (0, 43, 60, 135, 139, 140):
            if at + 8 > here:
                return _short(here, end), -1, 0
            following, at = np.int64(data[at]), at + 8 + 8 * np.int64(data[at + 1])
        elif following == 51:  # authentication
            if at + 8 > here:
                return _short(here, end), -1, 0
            following, at = np.int64(data[at]), at + 8 + 4 * np.int64(data[at + 1])
        elif following == 44:  # fragment
            if at + 8 > here:
                return _short(here, end), -1, 0
            bits = u16(data, at + 2)
            packet.fragment, packet.more = bits & 0xFFF8, bits & 1
            packet.ident = _u32(data, at + 4)
            following, at = np.int64(data[at]), at + 8
            if packet.fragment:
                break
        else:
            break
    else:
        return TOO_DEEP, -1, 0
    if at > end:
        return BAD_IP, -1, 0
    packet.proto = following
    return _transport(data, at, here, end, status, tunnels, packet)


@borrowing(inner)
def _transport(
    data: NDArray[np.uint8], at: int, here: int, end: int, status: int, tunnels: bool, packet: Any
) -> tuple[int, int, int]:
    """`here` is where the captured bytes of the IP packet end, `end` where the IP packet does."""
    proto, header = packet.proto, 0
    if packet.fragment:  # ports are in the first fragment
        return _carried(at, here, end, status, packet), -1, 0
    if proto == TCP:
        if at + 20 > here:
            return _short(here, end), -1, 0
        header = np.int64(data[at + 12] >> 4) * 4
        if header < 20 or at + header > end:
            return BAD_TRANSPORT, -1, 0
        packet.sport, packet.dport = u16(data, at), u16(data, at + 2)
        packet.seq, packet.ack = _u32(data, at + 4), _u32(data, at + 8)
        packet.flags, packet.window = data[at + 13] & 0x3F, u16(data, at + 14)
    elif proto == UDP:
        if at + 8 > here:
            return _short(here, end), -1, 0
        header, length = 8, u16(data, at + 4)
        packet.sport, packet.dport = u16(data, at), u16(data, at + 2)
        if 0 < length < 8:
            return BAD_TRANSPORT, -1, 0
        if length and at + length < end:  # padding behind the datagram
            end = at + length
            here = min(here, end)
        if tunnels and packet.dport == _VXLAN_PORT and at + 16 <= end:
            if at + 16 > here:
                return _short(here, end), -1, 0
            if data[at + 8] & 8:
                return status, at + 16, 0x6558
    elif proto == SCTP:
        if at + 12 > here:
            return _short(here, end), -1, 0
        header = 12
        packet.sport, packet.dport = u16(data, at), u16(data, at + 2)
    elif proto in (ICMP, ICMPV6):
        if at + 4 > here:
            return _short(here, end), -1, 0
        packet.icmp_type, packet.icmp_code = data[at], data[at + 1]
        if at + 8 <= here and is_echo(proto, packet.icmp_type):
            packet.sport = u16(data, at + 4)  # the identifier of a series of pings
    elif tunnels and proto in (IP_IN_IP, IPV6_IN_IP):
        return status, at, 0x0800 if proto == IP_IN_IP else 0x86DD
    elif tunnels and proto == GRE:
        if at + 4 > here:
            return _short(here, end), -1, 0
        bits = np.int64(data[at])
        inside = at + 4 + 4 * ((bits >> 7 & 1) + (bits >> 5 & 1) + (bits >> 4 & 1))
        return status, inside, u16(data, at + 2)
    packet.header_bytes = header
    return _carried(at + header, here, end, status, packet), -1, 0


@borrowing(inner)
def _carried(at: int, here: int, end: int, status: int, packet: Any) -> int:
    packet.payload = at
    packet.payload_bytes = max(end - at, 0)
    packet.payload_here = max(here - at, 0)
    return status


@borrowing(inner)
def is_echo(proto: int, kind: int) -> bool:
    """Echo request or reply, also timestamp: they carry an identifier."""
    return kind in (8, 0, 13, 14) if proto == ICMP else kind in (128, 129)
