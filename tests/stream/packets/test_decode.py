"""The decode kernel against scapy, field by field: real packets, built ones, composed ones, all also cut short."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from composed_packets import BUILT, composed
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_paths import block_of, decoded, names_of_captures, whole
from scapy_fields import fields, only_headers

from netclust.kernels.packets.decode import (
    ARP,
    BAD_IP,
    BAD_TRANSPORT,
    FIRST_BAD,
    ICMP,
    ICMPV6,
    LENGTH_BEYOND_FRAME,
    NOT_IP,
    OK,
    SNAPPED,
    STATUS_NAMES,
    TOO_SHORT,
)
from netclust.stream.packets.packet_blocks import ETHERNET, PacketBlock

pytestmark = pytest.mark.peers
LONG = bool(os.environ.get("NETCLUST_LONG"))
EXAMPLES = 4000 if LONG else 250
EVERY = 1 if LONG else 32  # of the packets of a long capture
ALL_OF = 2500 if LONG else 1000  # packets: captures up to this are compared in full


def assert_as_scapy(packet: np.void, expected: dict[str, int] | None) -> None:
    if expected is None:
        assert packet["status"] == NOT_IP
        return
    assert packet["status"] == OK
    assert {name: int(packet[name]) for name in expected} == expected


def frame_at(block: PacketBlock, i: int) -> bytes:
    place = block.index[i]
    return block.data[place["offset"] : place["offset"] + place["caplen"]].tobytes()


def test_fields_of_real_packets_are_decoded(data_folder: Path) -> None:
    compared = 0
    with only_headers():
        for name in names_of_captures(data_folder):
            block = whole(data_folder / "pcap" / name)
            packets = decoded(block)
            assert (packets["time"] == block.index["time"]).all()
            for i in range(0, len(block), EVERY if len(block) > ALL_OF else 1):
                wirelen = int(block.index["wirelen"][i])
                assert_as_scapy(packets[i], fields(frame_at(block, i), ETHERNET, wirelen=wirelen))
                compared += 1
    assert compared > (20_000 if LONG else 8_000)


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("tunnels", [False, True], ids=["tunnels_off", "tunnels_on"])
def test_fields_of_built_packets_are_decoded(name: str, tunnels: bool) -> None:
    frame, link = BUILT[name]
    (packet,) = decoded(block_of([frame], [link]), tunnels)
    assert_as_scapy(packet, fields(frame, link, tunnels))


@given(sent=st.lists(composed(), min_size=1, max_size=6), tunnels=st.booleans())
@settings(max_examples=EXAMPLES)
def test_fields_of_composed_packets_are_decoded(sent: list[tuple[bytes, int]], tunnels: bool) -> None:
    frames, links = zip(*sent, strict=True)
    for packet, frame, link in zip(decoded(block_of(frames, links), tunnels), frames, links, strict=True):
        assert_as_scapy(packet, fields(frame, link, tunnels))


def cut_short(frame: bytes, link: int, tunnels: bool, snapped: bool) -> tuple[np.void, np.ndarray]:
    """The whole packet; and its first n bytes, for every n: left out by the capture or never sent."""
    (full,) = decoded(block_of([frame], [link]), tunnels)
    cuts = [frame[:n] for n in range(len(frame))]
    block = block_of(cuts, [link] * len(cuts), cut=[len(frame) - len(c) for c in cuts] if snapped else None)
    packets = decoded(block, tunnels)
    packets["payload"] -= block.index["offset"]  # counted from the packet's own beginning
    return full, packets


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("tunnels", [False, True], ids=["tunnels_off", "tunnels_on"])
def test_a_packet_is_not_read_past_the_end_of_what_was_captured(name: str, tunnels: bool) -> None:
    full, packets = cut_short(*BUILT[name], tunnels, snapped=True)
    if name == "snap":
        packets = packets[packets["status"] != NOT_IP]  # one cannot tell before its header is there
    if full["status"] >= FIRST_BAD:
        assert set(packets["status"]) <= {SNAPPED, full["status"]}
        return
    is_icmp = full["proto"] in (ICMP, ICMPV6)
    needed = full["payload"] + (4 if is_icmp else full["payload_bytes"] if full["proto"] == ARP else 0)
    for n, packet in enumerate(packets, len(BUILT[name][0]) - len(packets)):
        if packet["status"] == SNAPPED:
            assert n < needed, "all headers are there"
            continue
        # Nothing differs from the whole packet but how much of the payload is there, and whose series a ping is of.
        unknown = {"time", "payload_here", *(["sport"] if is_icmp and n < full["payload"] + 8 else [])}
        known = [field for field in full.dtype.names if field not in unknown]
        assert packet[known] == full[known]
        assert packet["payload_here"] == min(max(n - int(full["payload"]), 0), full["payload_bytes"])


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("tunnels", [False, True], ids=["tunnels_off", "tunnels_on"])
def test_a_frame_that_was_sent_too_short_is_not_read_past_its_end(name: str, tunnels: bool) -> None:
    full, packets = cut_short(*BUILT[name], tunnels, snapped=False)
    for n, packet in enumerate(packets):
        # A header that says it is longer than what there is of it is a bad one.
        assert packet["status"] in {TOO_SHORT, LENGTH_BEYOND_FRAME, BAD_IP, BAD_TRANSPORT, NOT_IP, int(full["status"])}
        if packet["status"] < FIRST_BAD:
            assert packet["payload"] + packet["payload_here"] <= n
            assert packet["payload_here"] <= packet["payload_bytes"] <= packet["ip_bytes"] <= n


@given(sent=composed(), tunnels=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES)
def test_bytes_behind_a_packet_do_not_change_how_it_is_read(sent: tuple[bytes, int], tunnels: bool, data: Any) -> None:
    frame, link = sent
    cut = frame[: data.draw(st.integers(0, len(frame)))]
    behind = data.draw(st.binary(max_size=80))
    missing = data.draw(st.sampled_from([0, len(frame) - len(cut)]))
    alone = decoded(block_of([cut], [link], cut=[missing]), tunnels)
    beside = decoded(block_of([cut, behind], [link, link], cut=[missing, 0]), tunnels)[:1]
    assert alone.tobytes() == beside.tobytes()


@given(frame=st.binary(max_size=120), link=st.sampled_from([0, 1, 12, 14, 51, 101, 108, 113, 147, 228, 229, 276]))
@settings(max_examples=EXAMPLES)
def test_noise_is_decoded_within_its_bounds(frame: bytes, link: int) -> None:
    for tunnels in (False, True):
        (packet,) = decoded(block_of([frame], [link]), tunnels)
        if packet["status"] < FIRST_BAD:
            assert packet["payload"] + packet["payload_here"] <= len(frame)


_IPV4_HEAD = bytes.fromhex("4500001c0001000040110000c0000201c0000202")
_UDP = bytes.fromhex("0035003500080000")
WRONG: dict[str, tuple[Callable[[bytearray], None], str]] = {
    "version": (lambda f: f.__setitem__(14, 0x55), "bad_ip"),
    "header of 16 bytes": (lambda f: f.__setitem__(14, 0x44), "bad_ip"),
    "total below the header": (lambda f: f.__setitem__(slice(16, 18), b"\0\x13"), "bad_ip"),
    "total beyond the frame": (lambda f: f.__setitem__(slice(16, 18), b"\xff\xff"), "length_beyond_frame"),
    "UDP length of 7": (lambda f: f.__setitem__(slice(38, 40), b"\0\7"), "bad_transport"),
    "UDP length of 65535": (lambda f: f.__setitem__(slice(38, 40), b"\xff\xff"), "decoded"),
    "TCP header of 16 bytes": (lambda f: f.__setitem__(23, 6), "too_short"),
    "options beyond the frame": (lambda f: f.__setitem__(14, 0x4F), "bad_ip"),
    "ethertype": (lambda f: f.__setitem__(12, 0x99), "not_ip"),
    "ARP that is IPv4": (lambda f: f.__setitem__(13, 0x06), "bad_arp"),
    "IPv6 that is IPv4": (lambda f: f.__setitem__(slice(12, 14), b"\x86\xdd"), "too_short"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_header_is_counted_as_what_it_is(what: str) -> None:
    spoil, expected = WRONG[what]
    frame = bytearray(b"\2" * 12 + b"\x08\x00" + _IPV4_HEAD + _UDP)
    assert decoded(block_of([bytes(frame)], [ETHERNET]))["status"] == OK
    spoil(frame)
    (packet,) = decoded(block_of([bytes(frame)], [ETHERNET]))
    assert STATUS_NAMES[packet["status"]] == expected
