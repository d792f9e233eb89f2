"""Captures (pcap, pcapng) as blocks of packets: from files of any packing, a pipe, or a file that is still written.

What a file is, is seen from its content, never from its name. Memory stays the same however long a capture is, and
what is corrupt in it is counted and passed over.

>>> import struct, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "one.pcap")
...     header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
...     _ = path.write_bytes(header + struct.pack("<IIII", 1, 5, 3, 60) + b"abc")
...     capture = CaptureFile(path)
...     for block in capture:
...         packet = block.index[0]
...         print(packet["time"], packet["wirelen"], bytes(block.data[packet["offset"] :][: packet["caplen"]]))
...     capture.format, capture.packets
1000005000 60 b'abc'
('pcap', 1)
"""

from __future__ import annotations

import hashlib
import io
import os
import select
import stat
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from netclust.errors import InputError
from netclust.records.capture_format import CaptureFormat, is_capture
from netclust.records.opening import STDIN, UNREADABLE, is_packed, open_bytes, unreadable
from netclust.stream.packets.capture_merge import merge_captures
from netclust.stream.packets.capture_walk import CaptureWalk
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock, PacketSource

__all__ = [
    "CaptureFile",
    "CapturePlace",
    "first_bytes_digest",
    "list_captures",
    "merge_captures",
    "open_captures",
]

POLL_SECONDS = 0.2
IDLE_SECONDS = 0.7  # and a poll more is still within a second
LAG_NS = 1_000_000_000  # how long a packet may take from the wire to the file

FIRST_BYTES = 4096
"""Of a file, by which it is known again."""

_RECOGNISED_BY = 12  # bytes
_NOTHING_YET = PacketBlock(np.empty(0, np.uint8), np.empty(0, INDEX))


class CapturePlace(NamedTuple):
    """Where the reading of a followed file stands: which file that is, and how much of it was given."""

    device: int
    inode: int
    packets: int
    bytes: int
    first: str  # first_bytes_digest of those bytes


def first_bytes_digest(first: bytes) -> str:
    """A file's name for itself, from its first bytes.

    >>> first_bytes_digest(b"hello")
    '2cf24dba5fb0a30e26e83b2ac5b9e29e'
    """
    return hashlib.sha256(first[:FIRST_BYTES]).hexdigest()[:32]


def list_captures(paths: Iterable[str | Path]) -> list[str | Path]:
    """The captures that are meant: files as they are, a folder's by name."""
    files: list[str | Path] = []
    for path in paths:
        if str(path) != STDIN and Path(path).is_dir():
            inside = sorted(entry for entry in Path(path).iterdir() if entry.is_file() and is_capture(entry))
            if not inside:
                raise InputError(f"{path}: there is no capture in this folder (pcap or pcapng)")
            files.extend(inside)
        else:
            files.append(path)
    if not files:
        raise InputError("no capture is named")
    return files


def open_captures(paths: Iterable[str | Path], *, follow: bool = False, offset_ns: int = 0) -> PacketSource:
    """The packets of one capture or of many, in order of time; a folder stands for the captures in it, by name."""
    files = list_captures(paths)
    if follow and len(files) > 1:
        raise InputError(f"only one capture can be followed, {len(files)} are named")
    return merge_captures([CaptureFile(file, follow=follow, offset_ns=offset_ns) for file in files])


class CaptureFile:
    """The packets of one capture; `-` is standard input.

    With `follow` the end of a plain file is waited at, as by `tail -F`, until `stop()`: what is appended is read, a
    new file of the same name too, and about every second of waiting an empty block says how far time has come.
    With `ticks` an empty block comes at every look for more, and one that is not there yet is waited for.
    The attributes say what was read so far; `sha256` is that of the unpacked bytes, if `checksum` asks for it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        follow: bool = False,
        offset_ns: int = 0,
        checksum: bool = False,
        ticks: bool = False,
        stop: threading.Event | None = None,
    ) -> None:
        self.path = path
        self.follow = follow
        self.offset_ns = offset_ns
        self.counters: Counter[str] = Counter()
        self.links: set[int] = set()
        self.format: CaptureFormat = ""
        self.packets = 0
        self.bytes = 0
        self._checksum = checksum
        self._ticks = ticks
        self._tailed: tuple[io.BufferedReader, CaptureWalk] | None = None
        self._left_at: CapturePlace | None = None
        self._digest: hashlib._Hash | None = None
        self._stop = stop or threading.Event()

    @property
    def sha256(self) -> str:
        """Of the unpacked bytes that were read, in hexadecimal; empty without `checksum`."""
        return self._digest.hexdigest() if self._digest else ""

    def stop(self) -> None:
        """End the reading, from any thread: at once where packets are waited for with `follow`, else after a block."""
        self._stop.set()

    def place(self) -> CapturePlace | None:
        """Of a followed file, behind the last block; None where no file is being read, or it was cut short."""
        if self._tailed is None:
            return self._left_at
        stream, walk = self._tailed
        found = os.fstat(stream.fileno())
        first = os.pread(stream.fileno(), min(walk.bytes, FIRST_BYTES), 0)
        if found.st_size < walk.bytes:
            return None
        return CapturePlace(found.st_dev, found.st_ino, walk.packets, walk.bytes, first_bytes_digest(first))

    def first_time(self) -> int | None:
        """When the first packet was captured, or None if that cannot be said without taking it from a pipe."""
        if self.follow or not _is_regular(self.path):
            return None
        ahead = CaptureFile(self.path, offset_ns=self.offset_ns)
        blocks = ahead._read(readahead=1 << 16)
        for block in blocks:
            blocks.close()
            return int(block.index["time"][0])
        return None

    def __iter__(self) -> Iterator[PacketBlock]:
        """The blocks, from the beginning; each is valid until the next one is asked for."""
        self.counters.clear()
        self.links.clear()
        self.format, self.packets, self.bytes = "", 0, 0
        self._digest = hashlib.sha256() if self._checksum else None
        if not self.follow:
            return self._read()
        return self._follow_file() if _is_regular(self.path) else self._follow_pipe()

    def _idle(self) -> PacketBlock:
        now = time.time_ns() - LAG_NS + self.offset_ns
        return PacketBlock(np.empty(0, np.uint8), np.empty(0, INDEX), now)

    def _new_walk(self) -> CaptureWalk:
        return CaptureWalk(str(self.path), self.counters, self._digest)

    def _blocks(self, walk: CaptureWalk, final: bool = False) -> Iterator[PacketBlock]:
        for block in walk.blocks(final):
            if self.offset_ns:
                block.index["time"] += self.offset_ns
            self.packets += len(block)
            self.links |= walk.links
            self.format = walk.format
            yield block
            if self._stop.is_set():
                return
        self.format = walk.format or self.format
        self.links |= walk.links

    def _read(self, readahead: int | None = None) -> Generator[PacketBlock]:
        """Until the end."""
        walk = self._new_walk()
        with open_bytes(self.path) as stream:
            while not self._stop.is_set() and self._fill(walk, stream, readahead):
                yield from self._blocks(walk)
            if not self._stop.is_set():
                yield from self._blocks(walk, final=True)

    def _fill(self, walk: CaptureWalk, stream: Any, at_most: int | None = None) -> int:
        try:
            count = walk.fill(stream, at_most)
        except UNREADABLE as error:
            if not walk.format:
                raise unreadable(self.path, error) from None
            # What was unpacked before it stands.
            self.counters["truncated_archive" if isinstance(error, EOFError) else "unreadable_archive"] += 1
            count = 0
        self.bytes += count
        return count

    def _follow_file(self) -> Iterator[PacketBlock]:
        """A file that is appended to, and those that take its name later."""
        known = self._ticks
        while not self._stop.is_set():
            try:
                stream = open(self.path, "rb")  # noqa: SIM115 (closed below)
            except FileNotFoundError as error:
                if not known:
                    raise unreadable(self.path, error) from None
                yield from self._wait_for_it()
                continue
            except OSError as error:
                raise unreadable(self.path, error) from None
            known = True
            with stream:
                if is_packed(stream.peek(_RECOGNISED_BY)):
                    raise InputError(f"{self.path}: packed, and only plain captures can be followed: unpack it first")
                try:
                    yield from self._tail(stream)
                finally:
                    self._left_at, self._tailed = self.place(), None
                if not self._stop.is_set():
                    self._left_at = None  # read to its end

    def _wait_for_it(self) -> Iterator[PacketBlock]:
        waited = time.monotonic()
        while not self._stop.wait(POLL_SECONDS) and not os.path.exists(self.path):
            if time.monotonic() - waited >= IDLE_SECONDS:
                waited = time.monotonic()
                yield self._idle()
            elif self._ticks:
                yield _NOTHING_YET

    def _tail(self, stream: io.BufferedReader) -> Iterator[PacketBlock]:
        """One file, until another one has its name or it has become shorter."""
        walk = self._new_walk()
        self._tailed = stream, walk
        waited = time.monotonic()
        gone = ""
        while not self._stop.is_set():
            if self._fill(walk, stream):
                yield from self._blocks(walk)
                waited = time.monotonic()
                continue
            if gone:
                # Nothing was appended since it was found to be gone.
                self.counters[gone] += 1
                if walk.format:
                    yield from self._blocks(walk, final=True)
                else:
                    self.counters["truncated_file"] += walk.bytes > 0
                return
            gone = self._gone(stream, walk.bytes)
            if gone:
                continue
            if time.monotonic() - waited >= IDLE_SECONDS:
                waited = time.monotonic()
                yield self._idle()
            elif self._ticks:
                yield _NOTHING_YET
            self._stop.wait(POLL_SECONDS)

    def _gone(self, stream: io.BufferedReader, read: int) -> str:
        """Why the open file is no longer the one to follow, or nothing."""
        opened = os.fstat(stream.fileno())
        if opened.st_size < read:
            return "followed_file_shortened"
        try:
            named = os.stat(self.path)
        except OSError:
            return ""  # moved away: it may still be appended to until the new one is there
        return "followed_file_replaced" if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino) else ""

    def _follow_pipe(self) -> Iterator[PacketBlock]:
        """Until the writer closes it."""
        walk = self._new_walk()
        patience = POLL_SECONDS if self._ticks else IDLE_SECONDS
        with open_bytes(self.path) as stream:
            descriptor = _descriptor(stream)
            waited = time.monotonic()
            while not self._stop.is_set():
                # Before the format is known no packet is late, and what was read ahead of us comes first.
                started = walk.format or (self._ticks and walk.bytes)
                if started and descriptor >= 0 and not select.select([descriptor], [], [], patience)[0]:
                    late = walk.format and time.monotonic() - waited >= IDLE_SECONDS
                    yield self._idle() if late else _NOTHING_YET
                    continue
                waited = time.monotonic()
                if not self._fill(walk, stream):
                    yield from self._blocks(walk, final=True)
                    return
                yield from self._blocks(walk)


def _descriptor(stream: object) -> int:
    """Of a plain pipe, to wait at; -1 where unpacked bytes may be held before it."""
    try:
        return stream.fileno() if isinstance(stream, io.BufferedReader) else -1
    except OSError:
        return -1


def _is_regular(path: str | Path) -> bool:
    if str(path) == STDIN:
        return False
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True  # what is wrong with it is said when it is opened
