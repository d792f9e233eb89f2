"""Corrupt captures: what is sound in them is read, the rest is counted, and nothing else happens."""

from __future__ import annotations

import os
import struct

import pytest
from capture_bytes import (
    SECOND,
    START,
    Packet,
    block,
    enhanced,
    header,
    interface,
    packets,
    pcap,
    pcapng,
    read_pcap,
    record,
    section,
    simple,
    some,
    walk,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.stream.packets.packet_blocks import MAX_PACKET_BYTES

EXAMPLES = 5000 if os.environ.get("NETCLUST_LONG") else 150
SENT = some(200)
ABSURD = MAX_PACKET_BYTES + 1


def patched(content: bytes, at: int, value: bytes) -> bytes:
    return content[:at] + value + content[at + len(value) :]


def place_of(number: int, sent: list[Packet] = SENT) -> int:
    """Where a record begins in the pcap file of those packets."""
    return len(pcap(sent[:number]))


def accounted(content: bytes, found: list[Packet], counters: dict[str, int]) -> bool:
    """Whether every byte of a pcap file was read or counted."""
    joined = 24 * counters.get("joined_files", 0)
    used = sum(16 + len(packet.payload) for packet in found)
    return 24 + joined + used + counters.get("skipped_bytes", 0) == len(content)


@pytest.mark.parametrize("field", [8, 12])
@pytest.mark.parametrize("value", [ABSURD, 0xFFFFFFFF, 0x80000000])
@pytest.mark.parametrize("number", [0, 1, 100, 198])
def test_an_absurd_length_keeps_the_packets_behind_it(field: int, value: int, number: int) -> None:
    content = patched(pcap(SENT), place_of(number) + field, struct.pack("<I", value))
    found, counters = walk(content)
    assert found == SENT[:number] + SENT[number + 1 :]
    assert counters == {"bad_length": 1, "skipped_bytes": 16 + len(SENT[number].payload)}


def test_a_length_that_is_only_a_little_wrong_keeps_the_packets_behind_it() -> None:
    for more in (-9, 7, 1000):
        length = struct.pack("<II", len(SENT[50].payload) + more, 2000)
        content = patched(pcap(SENT), place_of(50) + 8, length)
        found, counters = walk(content)
        assert found[:50] == SENT[:50]
        assert found[-100:] == SENT[-100:]
        assert accounted(content, found, counters)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 5000, 3 << 20])
@pytest.mark.parametrize("filling", [b"\0", b"\xff", b"x"])
def test_reading_continues_behind_a_hole_in_the_file(count: int, filling: bytes) -> None:
    at = place_of(100)
    content = pcap(SENT)[:at] + filling * count + pcap(SENT)[at:]
    found, counters = walk(content)
    assert found[:100] == SENT[:100]
    assert found[-99:] == SENT[101:], "all but perhaps the one beside the hole"
    assert len(found) <= 200
    assert accounted(content, found, counters)


def test_what_only_looks_like_a_record_is_not_believed() -> None:
    for second, fraction in ((START, 0), (START + 5, 999_999), (START - 10 * 365 * 86_400, 1)):
        decoy = struct.pack("<IIII", second, fraction, 20, 20) + b"\xff" * 60
        content = pcap(SENT) + b"\xff" * 50 + decoy * 3 + pcap(SENT)[24:]
        found, counters = walk(content)
        assert found == SENT * 2
        assert counters == {"bad_length": 1, "skipped_bytes": 50 + 3 * len(decoy)}


def test_zeros_at_the_end_become_no_packets() -> None:
    found, counters = walk(pcap(SENT) + bytes(100_000))
    assert found == SENT
    assert counters == {"bad_record": 1, "skipped_bytes": 100_000}


def test_a_capture_length_above_the_real_one_is_read() -> None:
    odd = record(START * SECOND, b"abcdef", wirelen=3)
    found, counters = walk(header() + odd * 20)
    assert [(packet.payload, packet.wirelen) for packet in found] == [(b"abcdef", 6)] * 20
    assert counters == {"caplen_above_wirelen": 20}
    found, counters = walk(section() + interface() + enhanced(5, b"abcdef", wirelen=3))
    assert [(packet.payload, packet.wirelen) for packet in found] == [(b"abcdef", 6)]
    assert counters == {"caplen_above_wirelen": 1}


def test_nanoseconds_in_a_file_of_microseconds_are_counted() -> None:
    odd = b"".join(struct.pack("<IIII", START + i, 999_999_999, 60, 60) + bytes(60) for i in range(30))
    found, counters = walk(header() + odd)
    assert len(found) == 30
    assert counters == {"bad_time": 30}


def test_captures_appended_to_each_other_are_read() -> None:
    for order, link in (("<", 1), (">", 101)):
        found, counters = walk(pcap(SENT) + pcap(SENT, order, link=link))
        assert found == SENT + [packet._replace(link=link) for packet in SENT]
        assert counters == {"joined_files": 1}
    assert walk(pcapng(SENT) + pcapng(SENT, ">")) == (SENT * 2, {})


@pytest.mark.parametrize("years", [-10, 10])
def test_after_a_leap_in_time_packets_are_found_again(years: int) -> None:
    later = some(50, (START + years * 365 * 86_400) * SECOND)
    content = pcap(SENT) + b"\xff" * 1000 + b"".join(record(p.time, p.payload, wirelen=p.wirelen) for p in later)
    found, counters = walk(content)
    assert found == SENT + later
    assert counters == {"bad_length": 1, "skipped_bytes": 1000}


@pytest.mark.parametrize("missing", [1, 10, 39, 40, 50])
def test_a_truncated_packet_at_the_end_is_counted(missing: int) -> None:
    for content in (pcap(SENT), pcapng(SENT)):
        found, counters = walk(content[:-missing])
        assert found == SENT[:-1]
        assert counters.pop("truncated_file") == 1
        assert list(counters) == ["skipped_bytes"]


def test_a_wrong_length_near_the_end_is_told_from_truncation() -> None:
    content = patched(pcap(SENT), place_of(190) + 8, struct.pack("<II", 200_000, 200_000))
    found, counters = walk(content)
    assert found == SENT[:190] + SENT[191:]
    assert counters == {"bad_length": 1, "skipped_bytes": 16 + len(SENT[190].payload)}


BLOCKS = [enhanced(START * 10**6 + i, bytes([i]) * (20 + i)) for i in range(100)]


@pytest.mark.parametrize(
    "size", [0, 4, 8, 11, 13, 30, 64, 4096, 1 << 20, (1 << 20) + 4, 1 << 28, 0xFFFFFFFC, 0xFFFFFFFF]
)
@pytest.mark.parametrize("number", [0, 50, 98])
def test_a_wrong_block_length_loses_its_block_alone(size: int, number: int) -> None:
    broken = patched(BLOCKS[number], 4, struct.pack("<I", size))
    found, counters = walk(section() + interface() + b"".join([*BLOCKS[:number], broken, *BLOCKS[number + 1 :]]))
    assert [packet.payload[0] for packet in found] == [i for i in range(100) if i != number]
    assert counters == {"bad_block": 1, "skipped_bytes": len(broken)}


def test_a_wrong_length_behind_a_block_loses_it_alone() -> None:
    broken = patched(BLOCKS[50], len(BLOCKS[50]) - 4, struct.pack("<I", 60))
    found, counters = walk(section() + interface() + b"".join([*BLOCKS[:50], broken, *BLOCKS[51:]]))
    assert [packet.payload[0] for packet in found] == [i for i in range(100) if i != 50]
    assert counters == {"bad_block": 1, "skipped_bytes": len(broken)}


def test_a_packet_block_that_lies_within_sound_bounds_is_believed() -> None:
    start = section() + interface(snaplen=100)
    lies = {
        "unknown_interface": [enhanced(1, b"a", which=1), enhanced(1, b"a", which=0xFFFF, kind=2)],
        "bad_length": [
            block(6, struct.pack("<IIIII", 0, 0, 1, 9, 9) + b"12345678"),
            block(6, struct.pack("<IIIII", 0, 0, 1, 0xFFFFFFFF, 9) + b"12345678"),
            block(6, struct.pack("<IIIII", 0, 0, 1, 8, ABSURD) + b"12345678"),
            block(6, b"12345678"),
            block(3, b""),
            simple(b"abcd", wirelen=0xFFFFFFFF),
        ],
        "bad_interface": [
            block(1, b"1234"),
            interface(resolution=28),
            interface(resolution=0xC0),
            interface(shift=1 << 60),
        ],
    }
    for reason, blocks in lies.items():
        for lie in blocks:
            found, counters = walk(start + lie + BLOCKS[7])
            assert [packet.payload for packet in found] == [bytes([7]) * 27]
            assert counters == {reason: 1}


def test_a_packet_before_any_interface_is_counted() -> None:
    found, counters = walk(
        section() + simple(b"a") + enhanced(1, b"a") + interface() + BLOCKS[0] + section() + BLOCKS[1]
    )
    assert len(found) == 1
    assert counters == {"unknown_interface": 3}


def test_options_that_run_out_of_their_block_are_not_read() -> None:
    for options in (struct.pack("<HH", 9, 0xFFFF), struct.pack("<HHI", 14, 8, 0), struct.pack("<HH", 9, 0), b"\1\0"):
        found, _ = walk(section() + block(1, struct.pack("<HHI", 1, 0, 0) + options) + BLOCKS[0])
        assert [packet.time for packet in found] == [START * SECOND]


def test_endless_interfaces_are_bounded() -> None:
    found, counters = walk(section() + interface() * 4100 + enhanced(1, b"a", 4095) + enhanced(1, b"a", 4096))
    assert len(found) == 1
    assert counters == {"bad_interface": 4, "unknown_interface": 1}


def test_a_long_block_of_another_kind_is_passed_over() -> None:
    for size in (1 << 20, 3 << 20):
        found, counters = walk(section() + interface() + BLOCKS[0] + block(10, bytes(size)) + BLOCKS[1], [100_000] * 50)
        assert (len(found), counters) == (2, {})
    found, counters = walk(section() + interface() + BLOCKS[0] + block(10, bytes(3 << 20))[:-100])
    assert (len(found), counters["truncated_file"]) == (1, 1)


edits = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=12)
cuts = st.lists(st.integers(1, 3000), max_size=20)


@settings(max_examples=EXAMPLES)
@given(edits=edits, cuts=cuts, drop=st.integers(0, 300), ng=st.booleans())
def test_fuzz_how_corrupt_bytes_arrive_does_not_change_what_is_found(
    edits: list[tuple[int, int]], cuts: list[int], drop: int, ng: bool
) -> None:
    content = bytearray((pcapng if ng else pcap)(SENT[:80]))
    for place, value in edits:
        content[24 + place % (len(content) - 24)] = value
    data = bytes(content[: len(content) - drop])
    found, counters = walk(data)
    assert walk(data, cuts) == (found, counters)
    if not ng:
        assert accounted(data, found, counters)


@settings(max_examples=EXAMPLES)
@given(
    first=st.sampled_from([header(), header(">"), section() + interface(), section(">") + interface(order=">")]),
    rest=st.binary(max_size=600),
)
def test_fuzz_noise_behind_a_header_is_bounded(first: bytes, rest: bytes) -> None:
    found, _ = walk(first + rest)
    assert sum(len(packet.payload) for packet in found) <= len(rest)


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=100))
def test_fuzz_noise_is_read_or_refused(content: bytes) -> None:
    try:
        walk(content)
    except InputError as error:
        assert str(error).startswith("bytes: offset ")  # noqa: PT017


@settings(max_examples=EXAMPLES)
@given(number=st.integers(0, 99), noise=st.binary(min_size=16, max_size=16))
def test_fuzz_one_corrupt_header_keeps_its_neighbours(number: int, noise: bytes) -> None:
    content = patched(pcap(SENT), place_of(number), noise)
    found, counters = walk(content)
    assert found[:number] == SENT[:number]
    # A wrong length that is possible swallows what it covers, at most the longest packet there may be.
    if struct.unpack_from("<II", noise, 8) > (1000, 0):
        assert set(SENT[number + 1 :]) >= set(found[number + 1 :])
    else:
        assert found[-80:] == SENT[-80:]
    assert accounted(content, found, counters)


def test_the_plain_reader_and_the_kernel_read_the_sound_file_alike() -> None:
    assert walk(pcap(SENT)) == (list(read_pcap(pcap(SENT))), {}) == (SENT, {})
    assert packets([]) == []
