"""What scapy reads in a frame, in the words of the decode kernel's PACKET."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scapy.config import conf
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    IPv6ExtHdrSegmentRouting,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.layers.ppp import PPPoE
from scapy.layers.sctp import SCTP
from scapy.layers.vxlan import VXLAN
from scapy.packet import NoPayload, Padding, Raw

from netclust.stream.packets import packet_blocks as links

LINKS = {
    links.ETHERNET: Ether,
    links.LINUX_SLL: CookedLinux,
    links.LINUX_SLL2: CookedLinuxV2,
    links.RAW: IP,
    links.IPV4: IP,
    links.IPV6: IPv6,
    links.NULL: Loopback,
    links.LOOP: Loopback,
    links.PPPOE: PPPoE,
}
HEADERS = (IPv6ExtHdrHopByHop, IPv6ExtHdrDestOpt, IPv6ExtHdrRouting, IPv6ExtHdrSegmentRouting)
BEHIND = {0: HEADERS[0], 6: TCP, 17: UDP, 43: HEADERS[2], 44: IPv6ExtHdrFragment, 51: AH, 58: ICMPv6EchoRequest}
BEHIND |= {60: HEADERS[1], 132: SCTP}
BLANK = dict.fromkeys(
    ("sport", "dport", "seq", "ack", "window", "flags", "icmp_type", "icmp_code", "fragment", "more", "ident", "ttl"), 0
)


@contextmanager
def only_headers() -> Iterator[None]:
    """Let scapy read no further than the transport: ten times as quick."""
    conf.layers.filter([Ether, Dot1Q, Dot1AD, ARP, IP, IPv6, TCP, UDP, ICMP, *HEADERS, IPv6ExtHdrFragment, AH])
    try:
        yield
    finally:
        conf.layers.unfilter()


def words(address: str) -> tuple[int, int]:
    number = int(ipaddress.ip_address(address))
    return number >> 64, number & (1 << 64) - 1


def fields(frame: bytes, link: int, tunnels: bool = False, wirelen: int | None = None) -> dict[str, int] | None:
    """Every field that PACKET has of it, or None where there is neither IP nor ARP. The frame is a sound one."""
    wire = len(frame) if wirelen is None else wirelen
    kind = IPv6 if link == links.RAW and frame[0] >> 4 == 6 else LINKS[link]
    layer: Any = kind(frame)
    if isinstance(layer, Loopback):  # scapy knows the families of this system only
        layer = {2: IP, 10: IPv6, 24: IPv6, 28: IPv6, 30: IPv6}.get(layer.type, Raw)(frame[4:])
    found = {"vlan": 0, "frame_bytes": wire}
    while True:
        while not isinstance(layer, IP | IPv6 | ARP):
            if isinstance(layer, Dot1Q):  # and Dot1AD, which is one
                found["vlan"] |= layer.vlan << (12 if found["vlan"] else 0)
            layer = layer.payload
            if isinstance(layer, NoPayload | Raw | Padding):
                return None
        start = frame.rindex(layer.original)  # scapy keeps what each layer was read from
        inside = _network(layer, wire - start, found)
        is_tunnel = found["proto"] in (4, 41, 47) or (isinstance(inside, UDP) and isinstance(inside.payload, VXLAN))
        if not tunnels or found["fragment"] or not is_tunnel:
            return found
        layer = inside


def _network(layer: Any, room: int, found: dict[str, int]) -> Any:
    """Fill in what an IP or ARP packet says; what it carries."""
    found |= BLANK
    if isinstance(layer, ARP):
        length = 8 + 2 * (layer.hwlen + layer.plen)
        found |= {"family": 1, "proto": 255, "icmp_type": min(layer.op, 255), "ip_bytes": length}
        found |= {"payload_bytes": length, "src_hi": 0, "dst_hi": 0}
        found |= {"src_lo": words(layer.psrc)[1], "dst_lo": words(layer.pdst)[1]}
        return layer.payload
    found["src_hi"], found["src_lo"] = words(layer.src)
    found["dst_hi"], found["dst_lo"] = words(layer.dst)
    if isinstance(layer, IP):
        total = layer.len or room
        found |= {"family": 4, "proto": layer.proto, "ttl": layer.ttl, "ident": layer.id}
        found |= {"fragment": layer.frag * 8, "more": int(layer.flags.MF), "ip_bytes": total}
        left, inside, proto = total - layer.ihl * 4, layer.payload, layer.proto
    else:
        total = layer.plen + 40 if layer.plen or layer.nh == 59 else room
        found |= {"family": 6, "ttl": layer.hlim, "ip_bytes": total}
        left, inside, proto = total - 40, layer.payload, layer.nh
        while isinstance(inside, (*HEADERS, AH, IPv6ExtHdrFragment)):
            if isinstance(inside, IPv6ExtHdrFragment):
                left -= 8
                found |= {"fragment": inside.offset * 8, "more": inside.m, "ident": inside.id}
            else:
                left -= 4 * (inside.payloadlen + 2) if isinstance(inside, AH) else 8 * (inside.len + 1)
            is_open = isinstance(inside, AH)  # scapy stops behind it
            inside, proto = inside.payload, inside.nh
            if is_open:
                inside = BEHIND.get(proto, Raw)(inside.original)
            if found["fragment"]:
                break
        found["proto"] = proto
    if not found["fragment"]:
        left = _transport(inside, proto, left, found)
    found["payload_bytes"] = left
    return inside


def _transport(layer: Any, proto: int, left: int, found: dict[str, int]) -> int:
    """Fill in what a transport says; how many bytes it carries."""
    if isinstance(layer, TCP):
        found |= {"sport": layer.sport, "dport": layer.dport, "seq": layer.seq, "ack": layer.ack}
        found |= {"flags": int(layer.flags) & 0x3F, "window": layer.window}
        return left - 4 * layer.dataofs
    if isinstance(layer, UDP):
        found |= {"sport": layer.sport, "dport": layer.dport}
        return (min(left, layer.len) if layer.len else left) - 8
    if isinstance(layer, SCTP):
        found |= {"sport": layer.sport, "dport": layer.dport}
        return left - 12
    if proto == 1 and isinstance(layer, ICMP):
        found |= {"icmp_type": layer.type, "icmp_code": layer.code}
        found["sport"] = layer.id if layer.type in (0, 8, 13, 14) else 0
    if proto == 58:  # every kind of ICMPv6 is a class of its own
        found |= {"icmp_type": layer.original[0], "icmp_code": layer.original[1]}
        found["sport"] = layer.id if layer.original[0] in (128, 129) else 0
    return left
