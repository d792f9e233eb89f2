"""A capture that is still written: nothing is lost at its end, at a rotation or at a stop, and time goes on."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from capture_bytes import Packet, header, packets, pcap, record, some

from netclust.errors import InputError
from netclust.stream.packets import capture_files
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.packet_blocks import PacketBlock


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_files, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(capture_files, "IDLE_SECONDS", 0.02)


def records(sent: list[Packet]) -> bytes:
    return b"".join(record(p.time, p.payload, wirelen=p.wirelen) for p in sent)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def take(blocks: Iterator[PacketBlock], count: int) -> list[Packet]:
    """That many packets, over whatever waiting lies between them."""
    found: list[Packet] = []
    while len(found) < count:
        found += packets([next(blocks)])
    return found


def wait(blocks: Iterator[PacketBlock]) -> PacketBlock:
    """A block that says only that time has passed."""
    block = next(blocks)
    assert len(block) == 0
    return block


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    path, sent = tmp_path / "live", some(30)
    path.write_bytes(b"")
    capture = CaptureFile(path, follow=True)
    blocks = iter(capture)
    wait(blocks)
    append(path, header()[:10])
    wait(blocks)
    append(path, header()[10:] + records(sent[:10]))
    assert take(blocks, 10) == sent[:10]
    wait(blocks)
    rest = records(sent[10:])
    append(path, rest[:25])
    wait(blocks)
    append(path, rest[25:])
    assert take(blocks, 20) == sent[10:]
    capture.stop()
    assert next(blocks, None) is None
    assert not capture.counters


def test_an_idle_block_says_how_far_time_has_come(tmp_path: Path) -> None:
    path = tmp_path / "live"
    path.write_bytes(header())
    blocks = iter(CaptureFile(path, follow=True, offset_ns=50))
    before = time.time_ns() - capture_files.LAG_NS + 50
    first, second = wait(blocks).now, wait(blocks).now
    assert before <= first < second <= time.time_ns() - capture_files.LAG_NS + 50


def test_a_rotated_file_is_read_to_its_end_and_the_new_one_found(tmp_path: Path) -> None:
    path, sent = tmp_path / "live", some(40)
    path.write_bytes(pcap(sent[:10]))
    capture = CaptureFile(path, follow=True)
    blocks = iter(capture)
    assert take(blocks, 10) == sent[:10]
    path.rename(tmp_path / "old")
    wait(blocks)
    append(tmp_path / "old", records(sent[10:20]) + b"cut short")
    path.write_bytes(pcap(sent[20:], ">"))
    assert take(blocks, 30) == sent[10:]
    capture.stop()
    assert list(blocks) == []
    assert capture.counters == {"followed_file_replaced": 1, "truncated_file": 1, "skipped_bytes": 9}
    assert capture.packets == 40


def test_a_file_that_begins_again_is_read_from_its_start(tmp_path: Path) -> None:
    path, sent = tmp_path / "live", some(40)
    path.write_bytes(pcap(sent[:30]))
    capture = CaptureFile(path, follow=True)
    blocks = iter(capture)
    assert take(blocks, 30) == sent[:30]
    path.write_bytes(pcap(sent[30:]))
    assert take(blocks, 10) == sent[30:]
    assert capture.counters == {"followed_file_shortened": 1}


def test_waiting_can_be_stopped_from_another_thread(tmp_path: Path) -> None:
    path = tmp_path / "live"
    path.write_bytes(header())
    stop = threading.Event()
    capture = CaptureFile(path, follow=True, stop=stop)
    timer = threading.Timer(0.05, stop.set)
    timer.start()
    assert all(len(block) == 0 for block in capture)
    timer.join()


def test_what_is_no_capture_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "live"
    path.write_bytes(b"time,source,destination\n")
    with pytest.raises(InputError, match="no capture"):
        next(iter(CaptureFile(path, follow=True)))


def test_a_quiet_pipe_does_not_stop_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    sent = some(4)
    with os.fdopen(out, "rb") as stream, os.fdopen(into, "wb", 0) as sink:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        sink.write(header())
        sink.write(records(sent[:1]))
        blocks = iter(CaptureFile("-", follow=True))
        assert take(blocks, 1) == sent[:1]
        assert wait(blocks).now > 0
        sink.write(records(sent[1:]))
        assert take(blocks, 3) == sent[1:]
        sink.close()
        assert [len(block) for block in blocks if len(block)] == []
