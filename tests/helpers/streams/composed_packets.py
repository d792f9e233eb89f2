"""Packets of every kind that the decoder knows, built by scapy: a fixed list, and a hypothesis strategy."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR, IPOption_Timestamp
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NS,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    IPv6ExtHdrSegmentRouting,
    PadN,
    RouterAlert,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import ARP, GRE, LLC, SNAP, STP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Dot3, Ether, Loopback
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.sctp import SCTP, SCTPChunkInit
from scapy.layers.vxlan import VXLAN
from scapy.packet import Padding, Raw

from netclust.stream.packets import packet_blocks as links

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FOUR = IP(src="192.0.2.1", dst="198.51.100.7", ttl=61, id=4711)
SIX = IPv6(src="2001:db8::1:2", dst="2001:db8:ffff::9", hlim=63)
SEGMENT = TCP(sport=40000, dport=443, seq=0xFFFFFFF0, ack=7, flags="PA", window=512) / Raw(b"x" * 33)
OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 2)), ("NOP", None), ("WScale", 7)]
SYN = TCP(sport=40000, dport=22, seq=1, flags="S", options=OPTIONS)
DATAGRAM = UDP(sport=5353, dport=5353) / Raw(b"y" * 21)
PING = ICMP(type=8, id=0xBEEF, seq=3) / Raw(b"ping")
PING6 = ICMPv6EchoRequest(id=0xCAFE, seq=1, data=b"ping")
DATA = Raw(b"z" * 40)
AUTH = AH(nh=6, payloadlen=4, spi=1, seq=2, icv=b"\0" * 12)  # scapy sets neither
VX = UDP(sport=50000, dport=4789) / VXLAN(vni=5, flags="Instance")
ARP_REQUEST = ARP(op=1, hwsrc="02:00:00:00:00:01", psrc="192.0.2.1", pdst="192.0.2.2")

_ETHERNET: dict[str, Any] = {
    "tcp": ETHER / FOUR / SEGMENT,
    "tcp, options": ETHER / FOUR / SYN,
    "tcp, all flags": ETHER / FOUR / TCP(flags="FSRPAUEC", sport=1, dport=2),
    "tcp, padded frame": ETHER / FOUR / TCP(sport=1, dport=2, flags="A") / Padding(b"\xaa" * 6),
    "udp": ETHER / FOUR / DATAGRAM,
    "udp, no length": ETHER / FOUR / UDP(sport=1, dport=2, len=0) / DATA,
    "udp, shorter than its IP packet": ETHER / FOUR / UDP(sport=1, dport=2, len=12) / DATA,
    "ping": ETHER / FOUR / PING,
    "pong": ETHER / FOUR / ICMP(type=0, id=9) / Raw(b"pong"),
    "icmp timestamp": ETHER / FOUR / ICMP(type=13, id=77),
    "icmp unreachable": ETHER / FOUR / ICMP(type=3, code=3) / FOUR / UDP(sport=9, dport=53),
    "sctp": ETHER / FOUR / SCTP(sport=36412, dport=36413) / SCTPChunkInit(),
    "igmp": ETHER / IP(src="192.0.2.1", dst="224.0.0.22", proto=2, ttl=1) / Raw(b"\x16\0\0\0\0\0\0\0"),
    "esp": ETHER / IP(src="192.0.2.1", dst="192.0.2.2", proto=50) / DATA,
    "unknown protocol": ETHER / IP(src="192.0.2.1", dst="192.0.2.2", proto=253) / DATA,
    "ipv4 options": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", options=[IPOption_RR(), IPOption_NOP()]) / SEGMENT,
    "ipv4, longest header": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", options=[IPOption_NOP()] * 40) / DATAGRAM,
    "ipv4 timestamp option": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", options=[IPOption_Timestamp()]) / PING,
    "ipv4, no length": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", len=0) / SEGMENT,
    "first fragment": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", flags="MF", id=5) / UDP(dport=8, len=999) / DATA,
    "later fragment": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", flags="MF", id=5, frag=6, proto=17) / DATA,
    "last fragment": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", id=5, frag=8191, proto=6) / DATA,
    "do not fragment": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", flags="DF", id=5) / SEGMENT,
    "ipv6 tcp": ETHER / SIX / SEGMENT,
    "ipv6 udp": ETHER / SIX / DATAGRAM,
    "ipv6 sctp": ETHER / SIX / SCTP(sport=1, dport=2) / SCTPChunkInit(),
    "ipv6 ping": ETHER / SIX / PING6,
    "ipv6 pong": ETHER / SIX / ICMPv6EchoReply(id=4, data=b"pong"),
    "ipv6 neighbour": ETHER / SIX / ICMPv6ND_NS(tgt="2001:db8::3"),
    "ipv6 unreachable": ETHER / SIX / ICMPv6DestUnreach(code=4) / SIX / UDP(sport=1, dport=2),
    "ipv6 nothing": ETHER / IPv6(src="::1", dst="::2", nh=59),
    "ipv6 nothing, padded frame": ETHER / IPv6(src="::1", dst="::2", nh=59) / Padding(b"\xbb" * 6),
    "ipv6 unknown": ETHER / IPv6(src="::1", dst="::2", nh=253) / DATA,
    "ipv6 hop by hop": ETHER / SIX / IPv6ExtHdrHopByHop(options=[RouterAlert(), PadN(optdata=b"\0" * 9)]) / SEGMENT,
    "ipv6 destination options": ETHER / SIX / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 20)]) / DATAGRAM,
    "ipv6 routing": ETHER / SIX / IPv6ExtHdrRouting(addresses=["2001:db8::5", "2001:db8::6"], segleft=1) / SEGMENT,
    "ipv6 segment routing": ETHER / SIX / IPv6ExtHdrSegmentRouting(addresses=["2001:db8::5"]) / DATAGRAM,
    "ipv6 authentication": ETHER / SIX / AUTH / SEGMENT,
    "ipv6 all headers": ETHER / SIX / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting()
    / AH(nh=60, payloadlen=4, icv=b"\0" * 12) / IPv6ExtHdrDestOpt() / PING6,
    "ipv6 first fragment": ETHER / SIX / IPv6ExtHdrFragment(m=1, id=0xABCDEF01) / UDP(sport=7, dport=8, len=999) / DATA,
    "ipv6 later fragment": ETHER / SIX / IPv6ExtHdrFragment(m=1, offset=5, id=1, nh=17) / DATA,
    "ipv6 last fragment": ETHER / SIX / IPv6ExtHdrFragment(offset=8191, id=1, nh=6) / DATA,
    "ipv6 whole fragment": ETHER / SIX / IPv6ExtHdrFragment(id=3) / SEGMENT,
    "ipv6 options before and in a fragment": ETHER / SIX / IPv6ExtHdrHopByHop() / IPv6ExtHdrFragment(m=1, id=2)
    / IPv6ExtHdrDestOpt() / UDP(sport=7, dport=8, len=999) / DATA,
    "arp request": ETHER / ARP_REQUEST,
    "arp reply, padded": ETHER / ARP(op=2, psrc="10.0.0.1", pdst="10.255.255.254") / Padding(b"\0" * 18),
    "arp, odd operation": ETHER / ARP(op=999, psrc="10.0.0.1", pdst="10.0.0.2"),
    "vlan": ETHER / Dot1Q(vlan=100, prio=5) / FOUR / SEGMENT,
    "vlan 4095": ETHER / Dot1Q(vlan=4095) / SIX / DATAGRAM,
    "vlan 0": ETHER / Dot1Q(vlan=0, prio=7) / FOUR / DATAGRAM,
    "vlan arp": ETHER / Dot1Q(vlan=7) / ARP_REQUEST,
    "qinq": ETHER / Dot1AD(vlan=200) / Dot1Q(vlan=30) / FOUR / SEGMENT,
    "two tags of 802.1Q": ETHER / Dot1Q(vlan=200) / Dot1Q(vlan=30) / SIX / SEGMENT,
    "pppoe": ETHER / PPPoE(sessionid=9) / PPP() / FOUR / SEGMENT,
    "pppoe ipv6": ETHER / PPPoE(sessionid=9) / PPP() / SIX / DATAGRAM,
    "pppoe control": ETHER / PPPoE(sessionid=9) / PPP(proto=0xC021) / Raw(b"\x09\x01\x00\x08\0\0\0\0"),
    "snap": Dot3(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / LLC() / SNAP() / FOUR / DATAGRAM,
    "spanning tree": Dot3(dst="01:80:c2:00:00:00") / LLC() / STP(),
    "unknown ethertype": Ether(type=0x88CC) / DATA,
    "gre": ETHER / FOUR / GRE() / IP(src="10.0.0.1", dst="10.0.0.2", id=3) / SEGMENT,
    "gre with all fields": ETHER / FOUR / GRE(chksum_present=1, key_present=1, seqnum_present=1) / SIX / DATAGRAM,
    "gre ethernet": ETHER / FOUR / GRE(proto=0x6558) / ETHER / Dot1Q(vlan=3) / FOUR / PING,
    "gre over ipv6": ETHER / SIX / GRE() / FOUR / DATAGRAM,
    "ip in ip": ETHER / FOUR / IP(src="10.0.0.1", dst="10.0.0.2", id=9) / SEGMENT,
    "ipv6 in ip": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", id=9, proto=41) / SIX / SEGMENT,
    "ip in ipv6": ETHER / SIX / IP(src="10.0.0.1", dst="10.0.0.2") / DATAGRAM,
    "ip in ip in ip": ETHER / FOUR / IP(src="1.1.1.1", dst="2.2.2.2") / IP(src="3.3.3.3", dst="4.4.4.4") / PING,
    "ipv6 in the first fragment of ip": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", id=9, proto=41, flags="MF")
    / SIX / SEGMENT,
    "tunnel in a later fragment": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", id=9, proto=4, frag=4) / DATA,
    "vxlan": ETHER / FOUR / VX / ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / SEGMENT,
    "vxlan arp": ETHER / FOUR / VX / ETHER / ARP_REQUEST,
    "vxlan igmp": ETHER / FOUR / VX / ETHER / IP(src="10.0.0.1", dst="224.0.0.1", proto=2, ttl=1) / DATA,
    "vxlan fragment": ETHER / FOUR / VX / ETHER / IP(src="10.0.0.1", dst="10.0.0.2", frag=3, proto=17) / DATA,
    "vxlan unreachable": ETHER / SIX / VX / ETHER / FOUR / ICMP(type=3, code=1) / FOUR / UDP(sport=3, dport=4),
    "vxlan qinq": ETHER / Dot1Q(vlan=8) / FOUR / VX / ETHER / Dot1Q(vlan=9) / SIX / PING6,
}  # fmt: skip
_OTHERS: dict[str, tuple[Any, int]] = {
    "sll": (CookedLinux(pkttype=0, lladdrlen=6, src=b"\2\0\0\0\0\1") / FOUR / SEGMENT, links.LINUX_SLL),
    "sll ipv6": (CookedLinux(pkttype=4) / SIX / DATAGRAM, links.LINUX_SLL),
    "sll vlan": (CookedLinux(proto=0x8100) / Dot1Q(vlan=12) / FOUR / PING, links.LINUX_SLL),
    "sll arp": (CookedLinux(proto=0x0806) / ARP_REQUEST, links.LINUX_SLL),
    "sll2": (CookedLinuxV2(ifindex=3, lladdrlen=6) / FOUR / SYN, links.LINUX_SLL2),
    "sll2 ipv6": (CookedLinuxV2() / SIX / PING6, links.LINUX_SLL2),
    "raw": (FOUR / SEGMENT, links.RAW),
    "raw ipv6": (SIX / SEGMENT, links.RAW),
    "link type of ipv4": (FOUR / DATAGRAM, links.IPV4),
    "link type of ipv6": (SIX / DATAGRAM, links.IPV6),
    "null": (Loopback(type=2) / FOUR / SEGMENT, links.NULL),
    "null ipv6": (Loopback(type=30) / SIX / SEGMENT, links.NULL),
    "null of something else": (Loopback(type=7) / DATA, links.NULL),
    "loop": (Loopback(type=2) / FOUR / SEGMENT, links.LOOP),
    "bare pppoe": (PPPoE(sessionid=1) / PPP() / FOUR / SEGMENT, links.PPPOE),
}
BUILT: dict[str, tuple[bytes, int]] = {
    **{name: (bytes(packet), links.ETHERNET) for name, packet in _ETHERNET.items()},
    **{name: (bytes(packet), link) for name, (packet, link) in _OTHERS.items()},
}

_port, _byte, _u16, _u32 = st.integers(0, 65535), st.integers(0, 255), st.integers(0, 65535), st.integers(0, 2**32 - 1)
_data = st.binary(max_size=60).map(Raw)
# Not those that scapy dissects by port: what they carry is no matter here, and 4789 is VXLAN.
_plain_port = st.integers(50_000, 60_000)
_v4 = st.ip_addresses(v=4).map(str)
_v6 = st.ip_addresses(v=6).map(str)


@st.composite
def _segments(draw: st.DrawFn) -> Any:
    names = draw(st.lists(st.sampled_from(OPTIONS), max_size=4))
    return TCP(
        sport=draw(_plain_port), dport=draw(_plain_port), seq=draw(_u32), ack=draw(_u32),
        flags=draw(st.integers(0, 255)), window=draw(_u16), options=names,
    ) / draw(_data)  # fmt: skip


_datagrams = st.builds(lambda s, d, data: UDP(sport=s, dport=d) / data, _plain_port, _plain_port, _data)
_sctp = st.builds(lambda s, d: SCTP(sport=s, dport=d) / SCTPChunkInit(), _port, _port)
_icmp = st.builds(
    lambda kind, code, ident, data: ICMP(type=kind, code=code, id=ident) / data,
    st.sampled_from([0, 8, 9, 10, 4, 30, 200]), _byte, _u16, _data,
)  # fmt: skip
_ping6 = st.builds(lambda ident, data: ICMPv6EchoRequest(id=ident) / data, _u16, _data)
_header6 = st.sampled_from(
    [IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 12)]), IPv6ExtHdrRouting()]
)


@st.composite
def _v4_packets(draw: st.DrawFn) -> Any:
    options = [IPOption_NOP()] * draw(st.sampled_from([0, 0, 3, 40]))
    head = IP(src=draw(_v4), dst=draw(_v4), ttl=draw(_byte), id=draw(_u16), tos=draw(_byte), options=options)
    if draw(st.integers(0, 4)) == 0:
        head.flags, head.frag, head.proto = draw(st.sampled_from(["", "MF"])), draw(st.integers(1, 8191)), draw(_byte)
        return head / draw(_data)
    return head / draw(st.one_of(_segments(), _datagrams, _sctp, _icmp))


@st.composite
def _v6_packets(draw: st.DrawFn) -> Any:
    packet = IPv6(src=draw(_v6), dst=draw(_v6), hlim=draw(_byte), fl=draw(st.integers(0, 2**20 - 1)))
    for header in draw(st.lists(_header6, max_size=5)):
        packet = packet / header.copy()
    if draw(st.integers(0, 4)) == 0:
        where = draw(st.integers(1, 8191))
        tail = IPv6ExtHdrFragment(m=draw(st.integers(0, 1)), offset=where, id=draw(_u32), nh=draw(_byte))
        return packet / tail / draw(_data)
    return packet / draw(st.one_of(_segments(), _datagrams, _sctp, _ping6))


_packets = st.one_of(_v4_packets(), _v6_packets())


@st.composite
def composed(draw: st.DrawFn) -> tuple[bytes, int]:
    """A frame and its link type: tags, perhaps a tunnel, an IP packet, padding."""
    packet = draw(_packets)
    for _ in range(draw(st.integers(0, 2))):
        outer = draw(st.sampled_from([FOUR, SIX])).copy()
        kind = draw(st.sampled_from(["ip", "gre", "vxlan"]))
        between = {"ip": None, "gre": GRE(key_present=draw(st.integers(0, 1))), "vxlan": VX / ETHER}[kind]
        packet = outer / packet if between is None else outer / between.copy() / packet
    link = draw(st.sampled_from([links.ETHERNET, links.LINUX_SLL, links.LINUX_SLL2, links.RAW, links.NULL]))
    if link == links.NULL:
        return bytes(Loopback(type=2 if isinstance(packet, IP) else 24) / packet), link
    if link == links.RAW:
        return bytes(packet), link
    tags = [Dot1Q, Dot1AD] if link == links.ETHERNET else [Dot1Q]  # scapy knows no others on a cooked link
    for _ in range(draw(st.integers(0, 2))):
        packet = draw(st.sampled_from(tags))(vlan=draw(st.integers(0, 4095))) / packet
    head = {links.ETHERNET: ETHER, links.LINUX_SLL: CookedLinux(), links.LINUX_SLL2: CookedLinuxV2()}[link].copy()
    if isinstance(packet, Dot1Q) and link != links.ETHERNET:
        head.proto = 0x8100  # scapy would leave IP
    return bytes(head / packet) + bytes(draw(st.sampled_from([0, 0, 6]))), link
