"""Events that wait on disk until their sink takes them: a bounded queue of files, oldest given up first.

A position counts the bytes that were ever spooled. A file is named after the position where it begins. Each event is
framed by its length and checksum; what a crash left half written is passed over.

>>> import tempfile
>>> from netclust.stream.alerts.alert_events import Notice
>>> folder = tempfile.TemporaryDirectory()
>>> spool = Spool(Path(folder.name), 1 << 20)
>>> spool.open(None)
>>> spool.append([Notice(topic="drift", time=-1, key=f"n-{i}", message="") for i in range(3)]).dropped
0
>>> waiting = spool.read(2)
>>> [e.key for e in waiting.events], spool.advance(waiting), spool.pending
(['n-0', 'n-1'], 2, 1)
>>> spool.close()
>>> folder.cleanup()
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import struct
import sys
import threading
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from netclust.errors import InputError
from netclust.foundation.container import write_container_bytes
from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.base import Facts
from netclust.stream.sinks.ecs import ecs_text

KEPT_MARKS = 3
"""Where a sink is cut back on resume, what was read since so many checkpoints is kept: it may have to be told again."""

_FRAME = struct.Struct("<II")
_READ = 1 << 18
_DECODER: msgspec.msgpack.Decoder[Event] = msgspec.msgpack.Decoder(Event)


@dataclass
class _Segment:
    """One file: where it begins, its bytes, its events, and how many of them were read."""

    path: Path
    start: int
    size: int = 0
    events: int = 0
    read: int = 0

    @property
    def end(self) -> int:
        return self.start + self.size


class Appended(NamedTuple):
    """`ends`: the position behind each event. `dropped`: how many of the oldest made room."""

    ends: list[int]
    dropped: int


class Waiting(NamedTuple):
    """Events, the position behind them, and how many frames they took (some may hold nothing that can be read)."""

    events: list[Event]
    end: int
    frames: int


class Spool:
    """A queue in a folder of its own. Any thread may call it. `cut_back`: its reader goes back to checkpoints.

    `decoder`: of what is kept, if that is not events.
    """

    def __init__(self, folder: Path, max_bytes: int, *, cut_back: bool = False, decoder: Any = None) -> None:
        self.folder = folder
        self._decoder: msgspec.msgpack.Decoder[Event] = decoder or _DECODER
        self.pending = 0  # events not read
        self.bytes = 0  # on disk
        self.unreadable = 0
        self._max = max_bytes
        self._segment_bytes = max(4096, min(1 << 20, max_bytes // 8))
        self._cut_back = cut_back
        self._marks: deque[int] = deque(maxlen=KEPT_MARKS)
        self._segments: list[_Segment] = []
        self._fd = -1  # of the last segment, if it is written to
        self._read = self._end = 0
        self._lock = threading.RLock()

    def open(self, facts: Facts | None) -> None:
        """Find what an earlier run left; go on at what `position` said for the checkpoint."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._scan()
        except OSError as error:
            raise InputError(f"spool {self.folder}: {error.strerror}: it must be a writable folder") from None
        cursor = self._cursor()
        given = _positions(facts)
        if given is None:
            read, end = cursor
        elif self._cut_back:
            read, end = given
            self._cut(end)
        else:
            read, end = max(given[0], cursor[0]), given[1]
        self._end = max(self._end, end, cursor[1])
        self._read = read
        for segment in self._segments:
            self._count_read(segment)
        self.pending = sum(s.events - s.read for s in self._segments)
        keep = facts.get("keep") if facts is not None else None
        self._marks += [min(keep, read) if isinstance(keep, int) else read, read]
        self._release()

    def append(self, events: Sequence[Event]) -> Appended:
        """Put events behind the others, into one file; OSError if the disk does not take them (then none is there)."""
        frames = [_frame(event) for event in events]
        data = b"".join(frames)
        with self._lock:
            dropped = 0
            while self._segments and self.bytes + len(data) > self._max:
                dropped += self._drop_oldest()
            if len(data) > self._max:
                return Appended([self._end] * len(events), dropped + len(events))
            self._write(data)
            segment = self._segments[-1]
            segment.events += len(events)
            self.pending += len(events)
            ends = []
            for frame in frames:
                self._end += len(frame)
                ends.append(self._end)
            return Appended(ends, dropped)

    def read(self, limit: int) -> Waiting:
        """The oldest events that were not read, all of one file. They stay."""
        with self._lock:
            while (segment := self._current()) is not None:
                at = max(self._read, segment.start)
                try:
                    data = _pread(segment.path, at - segment.start, segment.end - at)
                except OSError:
                    data = b""
                events, used, frames = _events(data, limit, self._decoder)
                if events:
                    return Waiting(events, at + used, frames)
                lost = segment.events - segment.read
                self.unreadable += lost
                self.pending -= lost
                segment.read = segment.events
                self._read = segment.end
            self._release()
            return Waiting([], self._read, 0)

    def advance(self, delivered: Waiting) -> int:
        """These are delivered. How many of them had still been waiting."""
        with self._lock:
            segment = self._current()
            if segment is None or self._read >= delivered.end:
                return 0
            self._read = delivered.end
            segment.read += delivered.frames
            self.pending -= delivered.frames
            self.unreadable += delivered.frames - len(delivered.events)
            self._release()
            return delivered.frames

    def position(self) -> Facts:
        """Where it stands, and from where on it is kept."""
        with self._lock:
            return {"read": self._read, "write": self._end, "keep": min([self._read, *self._marks])}

    def mark(self, read: int) -> None:
        """A checkpoint holds this position: what is behind it is kept, where the reader goes back to checkpoints."""
        with self._lock:
            self._marks.append(read)
            self._release()
        self._save_cursor()

    def sync(self) -> None:
        """Make what was appended durable."""
        with self._lock:
            if self._fd >= 0:
                os.fsync(self._fd)
            handle = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def close(self) -> None:
        """Let go of the files."""
        self._save_cursor()
        with self._lock:
            self._end_file()

    def _current(self) -> _Segment | None:
        """The segment that is read."""
        return next((s for s in self._segments if s.end > self._read and s.events > s.read), None)

    def _write(self, data: bytes) -> None:
        last = self._segments[-1] if self._segments else None
        if self._fd < 0 or last is None or last.size >= self._segment_bytes:
            self._end_file()
            path = self.folder / f"{self._end:020d}.spool"
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
            last = _Segment(path, self._end)
            self._segments.append(last)
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, last.size)
            self._end_file()
            if not last.size:
                self._unlink(self._segments.pop())
            raise
        last.size += len(data)
        self.bytes += len(data)

    def _drop_oldest(self) -> int:
        segment = self._segments.pop(0)
        if not self._segments:
            self._end_file()
        lost = segment.events - segment.read
        self.pending -= lost
        self._read = max(self._read, segment.end)
        self._unlink(segment)
        return lost

    def _release(self) -> None:
        """Remove files that were read, and are not needed for going back."""
        floor = min([self._read, *self._marks]) if self._cut_back else self._read
        while self._segments and self._segments[0].read >= self._segments[0].events and self._segments[0].end <= floor:
            if len(self._segments) == 1:
                self._end_file()
            self._unlink(self._segments.pop(0))

    def _unlink(self, segment: _Segment) -> None:
        self.bytes -= segment.size
        with contextlib.suppress(OSError):
            segment.path.unlink()

    def _end_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _scan(self) -> None:
        paths = sorted(p for p in self.folder.glob("*.spool") if re.fullmatch(r"[0-9]{20}", p.stem))
        for path, following in itertools.zip_longest(paths, paths[1:]):
            start = int(path.stem)
            room = int(following.stem) - start if following is not None else sys.maxsize
            ends = [e for e in _frame_ends(path.read_bytes()) if e <= room]
            if not ends:
                path.unlink()
                continue
            segment = _Segment(path, start, ends[-1], len(ends))
            self._end = segment.end
            self._segments.append(segment)
            self.bytes += segment.size

    def _cut(self, end: int) -> None:
        """Forget what was spooled after the checkpoint: it will come again."""
        for segment in [s for s in self._segments if s.end > end]:
            ends = [e for e in _frame_ends(segment.path.read_bytes()) if segment.start + e <= end]
            self.bytes -= segment.size
            segment.size, segment.events = (ends[-1] if ends else 0), len(ends)
            self.bytes += segment.size
            os.truncate(segment.path, segment.size)
        for segment in [s for s in self._segments if not s.events]:
            self._segments.remove(segment)
            self._unlink(segment)
        self._end = self._segments[-1].end if self._segments else 0

    def _count_read(self, segment: _Segment) -> None:
        if segment.end <= self._read:
            segment.read = segment.events
        elif segment.start < self._read:
            ends = [e for e in _frame_ends(segment.path.read_bytes()) if segment.start + e <= self._read]
            segment.read = len(ends)
            self._read = segment.start + (ends[-1] if ends else 0)  # never within an event

    def _cursor(self) -> tuple[int, int]:
        """Where the last run stood, for a start without a checkpoint."""
        try:
            found: Any = msgspec.json.decode((self.folder / "cursor.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return 0, 0
        return _positions(found) or (0, 0)

    def _save_cursor(self) -> None:
        with contextlib.suppress(InputError):  # without it, events are told twice
            write_container_bytes(self.folder / "cursor.json", msgspec.json.encode(self.position()))


def _positions(facts: Any) -> tuple[int, int] | None:
    if not isinstance(facts, dict):
        return None
    read, end = facts.get("read"), facts.get("write")
    return (read, end) if isinstance(read, int) and isinstance(end, int) and 0 <= read <= end < 1 << 62 else None


def _frame(event: Event) -> bytes:
    try:
        data = msgspec.msgpack.encode(event)
    except (UnicodeEncodeError, OverflowError):
        data = msgspec.msgpack.encode(_clean(msgspec.to_builtins(event)))
    return _FRAME.pack(len(data), zlib.crc32(data)) + data


def _clean(value: Any) -> Any:
    """Without what cannot be written: broken Unicode, huge integers."""
    if isinstance(value, str):
        return ecs_text(value)
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_clean(v) for v in value]
    return str(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value


def _frame_ends(data: bytes) -> list[int]:
    """Where whole frames end, up to the first that is not."""
    ends: list[int] = []
    at = 0
    while at + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, at)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        if len(body) < length or zlib.crc32(body) != checksum:
            break
        at += _FRAME.size + length
        ends.append(at)
    return ends


def _events(data: bytes, limit: int, decoder: msgspec.msgpack.Decoder[Event]) -> tuple[list[Event], int, int]:
    """Up to `limit` events, the bytes and the frames that they took; a frame that holds no event is passed over."""
    events: list[Event] = []
    used = frames = 0
    for end in _frame_ends(data):
        if len(events) == limit:
            break
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            events.append(decoder.decode(data[used + _FRAME.size : end]))
        used = end
        frames += 1
    return events, used, frames


def _pread(path: Path, offset: int, size: int) -> bytes:
    """Some bytes of a file, at least one frame where there is one."""
    with open(path, "rb", buffering=0) as file:
        data = os.pread(file.fileno(), min(size, _READ), offset)
        if len(data) >= _FRAME.size:
            need = _FRAME.size + int(_FRAME.unpack_from(data)[0])
            if len(data) < need <= size:
                data = os.pread(file.fileno(), need, offset)
        return data
