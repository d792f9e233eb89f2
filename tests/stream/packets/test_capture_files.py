"""Captures as files, pipes and archives: the same packets in every form, and a helpful error where there are none."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import lzma
import os
import struct
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zstandard
from capture_bytes import (
    MICRO,
    MODIFIED,
    NANO,
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
    read_pcapng,
    record,
    section,
    simple,
    some,
    walk,
)
from hypothesis import example, given
from hypothesis import strategies as st
from needed import need_module

from netclust.errors import InputError
from netclust.kernels.packets import capture_index
from netclust.records.capture_format import is_capture
from netclust.stream.packets import packet_blocks as interface_of_packets
from netclust.stream.packets.capture_files import CaptureFile, open_captures
from netclust.stream.packets.capture_walk import BLOCK_PACKETS, BUFFER_BYTES


def zipped(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as sink:
        sink.writestr("capture", content)
    return archive.getvalue()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
    "zip": zipped,
}


def save(folder: Path, content: bytes, name: str = "capture") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def labelled(data_folder: Path) -> list[dict[str, str]]:
    with (data_folder / "pcap" / "labels.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_real_captures_lose_and_invent_no_packets(data_folder: Path) -> None:
    for row in labelled(data_folder):
        capture = CaptureFile(data_folder / "pcap" / row["file"])
        times = np.concatenate([part.index["time"].copy() for part in capture])
        assert (len(times), capture.packets, capture.format) == (
            int(row["packets"]),
            int(row["packets"]),
            row["format"],
        )
        assert f"{(times.max() - times.min()) / SECOND:.3f}" == f"{float(row['duration_s']):.3f}"
        assert not capture.counters


def test_real_captures_equal_a_plain_reader(data_folder: Path) -> None:
    for row in labelled(data_folder):
        content = (data_folder / "pcap" / row["file"]).read_bytes()
        plain = read_pcap(content) if row["format"] == "pcap" else read_pcapng(content)
        assert packets(CaptureFile(data_folder / "pcap" / row["file"])) == list(plain)


@pytest.mark.parametrize("name", ["attack/ndpi_synscan.pcap", "attack/chrissanders_synscan.pcapng"])
def test_real_captures_equal_scapy(data_folder: Path, name: str) -> None:
    utils = need_module("scapy.utils")
    path = data_folder / "pcap" / name
    found = packets(CaptureFile(path))
    with utils.RawPcapReader(str(path)) as reader:
        theirs = list(reader)
    assert len(theirs) == len(found)
    for (payload, meta), ours in zip(theirs, found, strict=True):
        if hasattr(meta, "sec"):
            time = meta.sec * SECOND + meta.usec * 1000
        else:
            time = ((meta.tshigh << 32) | meta.tslow) * (SECOND // meta.tsresol)
        assert (time, meta.wirelen, payload) == (ours.time, ours.wirelen, ours.payload)


def test_the_same_packets_as_pcap_and_as_pcapng_are_equal(data_folder: Path) -> None:
    folder = data_folder / "pcap" / "attack"
    assert packets(CaptureFile(folder / "ndpi_synscan.pcap")) == packets(
        CaptureFile(folder / "chrissanders_synscan.pcapng")
    )


@pytest.mark.parametrize("magic", [MICRO, NANO, MODIFIED])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_byte_order_and_resolution_of_pcap_is_read(tmp_path: Path, order: str, magic: int) -> None:
    sent = some(50, START * SECOND + (123 if magic == NANO else 123_000))
    capture = CaptureFile(save(tmp_path, pcap(sent, order, magic)))
    assert packets(capture) == sent
    assert (capture.format, capture.links, dict(capture.counters)) == ("pcap", {1}, {})


def test_the_frame_check_bits_are_not_taken_for_a_link_type(tmp_path: Path) -> None:
    capture = CaptureFile(save(tmp_path, pcap(some(2), link=0x54000000 | 113)))
    assert {packet.link for packet in packets(capture)} == {113}


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_block_of_pcapng_is_read(order: str) -> None:
    content = section(order) + interface(1, order=order) + interface(101, 70, 9, order=order)
    content += block(4, b"names", order) + enhanced(START * 10**6 + 5, b"a" * 61, order=order)
    content += enhanced(START * SECOND + 7, b"b" * 62, 1, order, wirelen=99) + block(0x0BAD, b"who knows", order)
    content += (
        enhanced(START * SECOND + 8, b"c" * 63, 1, order, kind=2)
        + simple(b"d" * 64, order)
        + block(5, bytes(12), order)
    )
    second = ">" if order == "<" else "<"
    content += section(second) + interface(113, 20, order=second) + simple(b"e" * 20, second, wirelen=500)
    found, counters = walk(content)
    assert found == [
        Packet(START * SECOND + 5000, 61, 1, b"a" * 61),
        Packet(START * SECOND + 7, 99, 101, b"b" * 62),
        Packet(START * SECOND + 8, 63, 101, b"c" * 63),
        Packet(START * SECOND + 8, 64, 1, b"d" * 64),
        Packet(START * SECOND + 8, 500, 113, b"e" * 20),
    ]
    assert found == list(read_pcapng(content))
    assert not counters


@given(
    resolution=st.one_of(st.integers(0, 18), st.integers(0x80, 0x80 + 34)),
    ticks=st.integers(0, 2**64 - 1),
    shift=st.integers(-(2**33) + 1, 2**33 - 1),
    order=st.sampled_from("<>"),
)
@example(resolution=9, ticks=2**63 - 1, shift=0, order="<")
@example(resolution=9, ticks=2**63 - 1, shift=1, order="<")
@example(resolution=9, ticks=2**63, shift=-1, order=">")
@example(resolution=0, ticks=9_223_372_036, shift=0, order="<")
@example(resolution=0, ticks=9_223_372_037, shift=0, order="<")
@example(resolution=0x80, ticks=9_223_372_035, shift=1, order="<")
@example(resolution=0x80, ticks=9_223_372_036, shift=0, order="<")
@example(resolution=6, ticks=2**61 + 5, shift=0, order="<")  # 5000 ns, modulo 2**64
@example(resolution=6, ticks=1, shift=-1, order="<")
def test_times_do_not_overflow_and_are_rounded_down(resolution: int, ticks: int, shift: int, order: str) -> None:
    content = section(order) + interface(1, 0, resolution, shift, order)
    ((expected, *_),) = read_pcapng(content + enhanced(ticks, b"a", order=order))
    (first, found), counters = walk(content + enhanced(0, b"a", order=order) + enhanced(ticks, b"a", order=order))
    bad_first = shift < 0
    bare = expected - shift * SECOND
    # Out of range is also what is so before the shift brings it back; the last second of a binary fraction is given up.
    bad = bare >= (9_223_372_036 * SECOND if resolution & 0x80 else 2**63) or not 0 <= expected < 2**63
    assert counters.get("bad_time", 0) == bad_first + bad
    assert first.time == (0 if bad_first else shift * SECOND)
    assert found.time == (first.time if bad else expected)


sizes = st.lists(st.integers(1, 400), max_size=40)
sent_packets = st.lists(
    st.builds(
        lambda time, more, payload: Packet(time, len(payload) + more, 1, payload),
        st.integers(START * SECOND, (START + 100_000) * SECOND),
        st.integers(0, 100),
        st.binary(min_size=1, max_size=120),
    ),
    max_size=30,
)


@given(sent=sent_packets, cuts=sizes, order=st.sampled_from("<>"), magic=st.sampled_from([MICRO, NANO, MODIFIED]))
def test_how_bytes_arrive_does_not_change_the_packets_of_pcap(
    sent: list[Packet], cuts: list[int], order: str, magic: int
) -> None:
    content = pcap(sent, order, magic)
    assert walk(content, cuts) == (list(read_pcap(content)), {})


@given(sent=sent_packets, cuts=sizes, order=st.sampled_from("<>"))
def test_how_bytes_arrive_does_not_change_the_packets_of_pcapng(
    sent: list[Packet], cuts: list[int], order: str
) -> None:
    content = pcapng(sent, order)
    assert walk(content, cuts) == (sent, {}) == (list(read_pcapng(content)), {})


@pytest.mark.parametrize("form", PACK)
@pytest.mark.parametrize("write", [pcap, pcapng])
def test_a_packed_capture_equals_a_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, write: Callable[[list[Packet]], bytes]
) -> None:
    sent = some(3000)
    path = save(tmp_path, PACK[form](write(sent)), "misleading.txt")
    assert is_capture(path)
    capture = CaptureFile(path, checksum=True)
    assert packets(capture) == sent
    assert capture.sha256 == hashlib.sha256(write(sent)).hexdigest()
    assert capture.bytes == len(write(sent))
    with path.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        assert is_capture("-")
        assert packets(CaptureFile("-")) == sent


def test_a_second_reading_starts_again(tmp_path: Path) -> None:
    capture = CaptureFile(save(tmp_path, pcap(some(10)) + b"tail"))
    for _ in range(2):
        assert len(packets(capture)) == capture.packets == 10
        assert capture.counters == {"truncated_file": 1, "skipped_bytes": 4}
    assert capture.sha256 == ""


def test_times_are_moved_as_asked(tmp_path: Path) -> None:
    sent = some(5)
    moved = packets(CaptureFile(save(tmp_path, pcap(sent)), offset_ns=-5))
    assert [packet.time for packet in moved] == [packet.time - 5 for packet in sent]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    count = 3 * BLOCK_PACKETS
    path = save(tmp_path, header() + record(START * SECOND, bytes(100)) * count)
    assert path.stat().st_size > 2 * BUFFER_BYTES
    bases, longest, total = set(), 0, 0
    for part in CaptureFile(path):
        bases.add(part.data.__array_interface__["data"][0])
        longest, total = max(longest, len(part)), total + len(part)
        assert len(part.data) <= BUFFER_BYTES
    assert (len(bases), longest, total) == (1, BLOCK_PACKETS, count)


def test_a_pipe_does_not_wait_for_a_full_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    sent = some(4)
    with os.fdopen(out, "rb") as stream, os.fdopen(into, "wb", 0) as sink:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        sink.write(header())
        assert is_capture("-")
        blocks = iter(CaptureFile("-"))
        for packet in sent:
            sink.write(record(packet.time, packet.payload, wirelen=packet.wirelen))
            assert packets([next(blocks)]) == [packet], "before the writer goes on"
        sink.close()
        assert next(blocks, None) is None


def test_a_capture_can_be_stopped(tmp_path: Path) -> None:
    event = threading.Event()
    capture = CaptureFile(save(tmp_path, pcap(some(40_000))), stop=event)
    for _ in capture:
        capture.stop()
    assert 0 < capture.packets < 40_000
    assert event.is_set()


@pytest.mark.parametrize("length", range(24))
def test_a_cut_global_header_is_refused(tmp_path: Path, length: int) -> None:
    for content in (header(), section()):
        path = save(tmp_path, content[:length])
        with pytest.raises(InputError, match=rf"^{path}: offset \d+: ") as error:
            packets(CaptureFile(path))
        assert "pcap" in str(error.value)


def test_an_empty_capture_is_no_error(tmp_path: Path) -> None:
    for content in (header(), section(), section() + interface()):
        capture = CaptureFile(save(tmp_path, content))
        assert packets(capture) == []
        assert not capture.counters


@pytest.mark.parametrize(
    "content", [b"", b"time,src\n1,2\n", b"snoop\0\0\0" + bytes(99), b"\n\r\r\n" + bytes(99), bytes(99)]
)
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes) -> None:
    path = save(tmp_path, content)
    assert not is_capture(path)
    with pytest.raises(InputError, match=rf"^{path}: offset 0: .*pcap and pcapng captures are read"):
        packets(CaptureFile(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        assert not is_capture(path)
        for follow in (False, True):
            with pytest.raises(InputError, match=rf"^{path}: "):
                packets(CaptureFile(path, follow=follow))


@pytest.mark.parametrize("form", ["gz", "xz", "zst"])
def test_a_cut_archive_keeps_what_stands_before_the_cut(tmp_path: Path, form: str) -> None:
    payloads = np.random.default_rng(1).integers(0, 256, (20_000, 60), np.uint8)
    sent = [Packet(START * SECOND, 60, 1, payload.tobytes()) for payload in payloads]
    packed = PACK[form](pcap(sent))
    capture = CaptureFile(save(tmp_path, packed[: len(packed) // 2]))
    found = packets(capture)
    assert len(found) > 5000
    assert found == sent[: len(found)]
    assert capture.counters["truncated_archive"] == 1


def test_a_folder_is_read_in_order_without_what_is_no_capture(tmp_path: Path) -> None:
    sent = some(300)
    save(tmp_path, pcap(sent[100:200]), "b")
    save(tmp_path, gzip.compress(pcapng(sent[:100])), "c.gz")
    save(tmp_path, pcap(sent[200:]), "a")
    save(tmp_path, b"file,label\n", "labels.csv")
    assert packets(open_captures([tmp_path])) == sent
    with pytest.raises(InputError, match="only one capture can be followed, 3 are named"):
        open_captures([tmp_path], follow=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no capture in this folder"):
        open_captures([tmp_path / "empty"])
    with pytest.raises(InputError, match="no capture is named"):
        open_captures([])


def test_the_bounds_of_kernel_and_interface_agree() -> None:
    assert capture_index.MAX_PACKET_BYTES == interface_of_packets.MAX_PACKET_BYTES
    assert len(capture_index.REASONS) == capture_index.SKIPPED_BYTES + 1
    assert struct.pack("<I", MICRO) in header()
