"""Lines of a file: to its end, or followed through rotation, from any position that was noted.

A position is known again by device and inode, and by what stands at the beginning of the file and right before the
position. A file that was rotated away meanwhile is looked for in its folder, also packed; its rest is read, then what
was rotated after it, then the new one.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from netclust.errors import InputError
from netclust.records.opening import UNREADABLE, is_packed, open_bytes, unreadable
from netclust.stream.sources.lines import (
    GATHER_SECONDS,
    NOTHING,
    POLL_SECONDS,
    READ_BYTES,
    TAIL_BYTES,
    LineCutter,
    Lines,
    Piece,
)

__all__ = ["FileFeed"]

ROTATION_SECONDS = 0.5
"""A writer may still be busy with the old file: it is left when nothing came for so long, and the new one has lines."""
_MAX_FOLDER_ENTRIES = 10_000
# What log rotation puts behind a name: .1, -20260102, .2026-01-02-03, with or without packing.
_ROTATED = re.compile(r"[.-]\d[\d.:T_-]*(\.(gz|xz|zst))?")


class FileFeed:
    """The lines of one file. A followed file may be missing, renamed, truncated: its lines come once and in order."""

    replayable = True
    sheds = False

    def __init__(self, path: str | Path, *, follow: bool = False, max_lines: int = 8192) -> None:
        self.path = Path(path)
        self.follow = follow
        self.ended = False
        self.counters: Counter[str] = Counter()
        self._max_lines = max_lines
        self._stop = threading.Event()
        self._file: _OpenFile | None = None
        self._unreadable = False  # for now, and counted
        self._grown = 0.0  # when the file was last seen to grow
        self._begin_file()

    def _begin_file(self, offset: int = 0, head: bytes = b"", tail: bytes = b"") -> None:
        self._cutter = LineCutter()
        self._offset, self._head, self._tail = offset, head, tail
        self._fresh = offset == 0

    def open(self, facts: dict[str, Any] | None) -> None:
        """Open the file, or the one that it was; raises InputError where it is missing and not waited for."""
        if facts and facts.get("inode") and facts.get("path") == str(self.path):
            self._find_again(int(facts["offset"]), facts)
        if self._file is None:
            self._open_path(opening=True)
        if self.follow and self._file is not None and self._file.packed and self._file.is_at(self.path):
            self.close()
            raise InputError(f"{self.path}: is packed, which cannot be followed: leave out follow, or unpack it")

    def take(self, timeout: float) -> Piece | None:
        """The next lines; None if none came in time."""
        deadline = time.monotonic() + timeout
        first = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if self._cutter.has_lines(self._max_lines):
                return self._piece(self._cutter.take(self._max_lines) or NOTHING)
            data = self._read()
            if data:
                self._cutter.push(data)
                self._grown, first = now, first or now
            if self._cutter.waiting and (not data or now - first > GATHER_SECONDS):
                return self._piece(self._cutter.take(self._max_lines) or NOTHING)
            if data:
                continue
            if self._file is not None and (left := self._leave()) is not None:
                return left
            if self.ended or now >= deadline:
                return None
            if self._file is None:
                self._open_path()
            self._stop.wait(min(POLL_SECONDS, deadline - now))
        self.ended = True
        return None

    def facts(self) -> dict[str, Any]:
        """Where the next unread line begins, and how that place is known again."""
        file = self._file
        return {
            "path": str(self.path),
            "file": str(file.path) if file is not None else "",
            "device": file.device if file is not None else 0,
            "inode": file.inode if file is not None else 0,
            "offset": self._offset,
            "fingerprint": _fingerprint(self._head, self._tail, self._offset),
        }

    def stop(self) -> None:
        """End soon: the rest is read after the next start."""
        self._stop.set()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _piece(self, lines: Lines, *, closed: bool = False) -> Piece:
        fresh, self._fresh = self._fresh, False
        self._offset += lines.consumed
        self._tail = (self._tail + lines.tail)[-TAIL_BYTES:]
        self.counters["bytes"] += lines.consumed
        self.counters["long_line"] += self._cutter.long_lines
        self._cutter.long_lines = 0
        return Piece(lines, where=str(self._file.path if self._file else self.path), fresh=fresh, closed=closed)

    def _read(self) -> bytes:
        file = self._file
        if file is None:
            return b""
        try:
            if file.was_truncated():
                if self._cutter.waiting:
                    return b""  # they are given first
                self._restart(file)
                file = self._file or file
            data = file.read(READ_BYTES)
        except UNREADABLE:
            self.counters["unreadable"] += not self._unreadable
            self._unreadable = True
            self.ended = not self.follow
            return b""
        self._unreadable = False
        if len(self._head) < TAIL_BYTES:
            self._head += data[: TAIL_BYTES - len(self._head)]
        return data

    def _restart(self, file: _OpenFile) -> None:
        """Restart a file that was emptied under our eyes; what was not read is in the copy, if one was made."""
        self.counters["truncated"] += 1
        found = self._elsewhere(*file.read_so_far(self._head), besides=file)
        if found is not None:
            found.seek(self._offset)
            self._continue_at(found, self._offset)
            file.close()
            return
        self._drop_half_line()
        file.rewind()
        self._begin_file()

    def _leave(self) -> Piece | None:
        """At the end of a file that is over: its last line, if it may be given; the next file is open then."""
        file = self._file
        if file is None:
            return None
        here = file.is_at(self.path)
        if here and self.follow:
            return None
        if self.follow and time.monotonic() - self._grown < ROTATION_SECONDS:
            return None
        following = None if here else _rotated_after(self.path, file.modified())
        if self.follow and following is None and _size(self.path) == 0:
            return None
        last = None
        if not self.follow and (rest := self._cutter.rest()) is not None:
            last = self._piece(rest, closed=True)
        if here:
            self.ended = last is None
            return last
        self._drop_half_line()
        self.counters["rotated"] += 1
        self._open_next(file, following)
        return last

    def _drop_half_line(self) -> None:
        if self._cutter.rest() is not None:
            self.counters["half_line"] += 1

    def _open_next(self, left: _OpenFile, following: Path | None) -> None:
        left.close()
        self._file = None
        if following is not None:
            self._file = _OpenFile.try_open(following)
        self._begin_file()
        self._grown = time.monotonic()
        if self._file is None:
            self._open_path()

    def _open_path(self, *, opening: bool = False) -> None:
        """Open what has the name now. Once it runs, a file that cannot be opened is waited for."""
        try:
            self._file = _OpenFile(self.path)
            self._unreadable = False
        except FileNotFoundError:
            if opening and not self.follow:
                raise InputError(f"{self.path}: no such file: give another, or follow = true to wait for it") from None
        except (OSError, InputError) as error:
            if opening and isinstance(error, IsADirectoryError):
                raise InputError(f"{self.path}: is a folder: name a file in it") from None
            if opening:
                raise error if isinstance(error, InputError) else unreadable(self.path, error) from None
            self.counters["unreadable"] += not self._unreadable
            self._unreadable = True

    def _find_again(self, offset: int, facts: dict[str, Any]) -> None:
        found = _OpenFile.try_open(self.path)
        if found is not None and not (found.is_inode(facts) and found.stands_at(offset, facts)):
            found.close()
            found = None
        found = found or self._elsewhere(offset, facts, besides=None)
        if found is None:
            self.counters["lost_position"] += 1
        else:
            self._continue_at(found, offset)

    def _continue_at(self, found: _OpenFile, offset: int) -> None:
        self._file = found
        self._begin_file(offset, found.head, found.tail)

    def _elsewhere(self, offset: int, facts: dict[str, Any], besides: _OpenFile | None) -> _OpenFile | None:
        """The file that a position is in, under another name: by inode, else by what stands there."""
        entries = [entry for entry in _folder(self.path) if besides is None or entry.inode() != besides.inode]
        rotated = [entry for entry in entries if _is_rotated(self.path, entry.name)]
        same = [Path(entry) for entry in (entries if offset else rotated) if entry.inode() == facts.get("inode")]
        copies = [Path(entry) for entry in rotated if offset]
        copies.sort(key=_modified, reverse=True)
        for path in [*same, *copies]:
            found = _OpenFile.try_open(path)
            if found is not None and found.stands_at(offset, facts):
                return found
            if found is not None:
                found.close()
        return None


class _OpenFile:
    """A file that is being read, plain or packed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head = self.tail = b""
        self._stack = ExitStack()
        self._unpacking = self._stack.enter_context(ExitStack())
        # Without O_NONBLOCK a named pipe that took the file's place would never be opened.
        raw: BinaryIO = self._stack.enter_context(open(path, "rb", opener=_opener))  # noqa: SIM115 (the stack closes it)
        try:
            found = os.fstat(raw.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{path}: is no regular file")
            self.device, self.inode = found.st_dev, found.st_ino
            self._raw, self._stream = raw, raw
            self.packed = is_packed(os.pread(raw.fileno(), 16, 0))
            self._last = b""  # what was read last, to see when the file is another
            self._position = 0
            if self.packed:
                self._open_packed()
        except BaseException:
            self._stack.close()
            raise

    def _open_packed(self) -> None:
        """From the beginning: not all that is packed can be sought in."""
        self._unpacking.close()
        self._stream = self._unpacking.enter_context(open_bytes(self.path))

    @classmethod
    def try_open(cls, path: Path) -> _OpenFile | None:
        """The file, None if it cannot be opened."""
        try:
            return cls(path)
        except (OSError, InputError):
            return None

    def close(self) -> None:
        self._stack.close()

    def read(self, count: int) -> bytes:
        """Some bytes; none at the end, for now."""
        if self.packed:
            data: bytes = self._stream.read1(count)  # type: ignore[attr-defined]
        else:
            data = os.pread(self._raw.fileno(), count, self._position)
        self._position += len(data)
        self._last = (self._last + data)[-TAIL_BYTES:] if len(data) < TAIL_BYTES else data[-TAIL_BYTES:]
        return data

    def rewind(self) -> None:
        """From the beginning (of a plain file)."""
        self._position, self._last = 0, b""

    def was_truncated(self) -> bool:
        """Whether what was read is no longer there: emptied, and perhaps written to again."""
        if self.packed or not self._position:
            return False
        before = os.pread(self._raw.fileno(), len(self._last), self._position - len(self._last))
        return before != self._last

    def read_so_far(self, head: bytes) -> tuple[int, dict[str, Any]]:
        """How far it was read, and what is known again there."""
        return self._position, {"fingerprint": _fingerprint(head, self._last, self._position)}

    def modified(self) -> int:
        """When it was last written to."""
        return os.fstat(self._raw.fileno()).st_mtime_ns

    def is_at(self, path: Path) -> bool:
        """Whether it is the one that has this name now."""
        try:
            found = os.stat(path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def is_inode(self, facts: dict[str, Any]) -> bool:
        return (facts.get("device"), facts.get("inode")) == (self.device, self.inode)

    def stands_at(self, offset: int, facts: dict[str, Any]) -> bool:
        """Go to a position; whether it is the one of which the facts tell."""
        try:
            self.seek(offset)
        except (*UNREADABLE, InputError):
            return False
        return len(self.tail) == min(offset, TAIL_BYTES) and (
            _fingerprint(self.head, self.tail, offset) == facts.get("fingerprint")
        )

    def seek(self, offset: int) -> None:
        """Go to a position, and take note of what stands there."""
        short = min(offset, TAIL_BYTES)
        if self.packed:
            self._open_packed()
            self.head = self._stream.read(short)
            self.tail = self.head
            left = offset - len(self.head)
            while left > 0 and (data := self._stream.read(min(left, READ_BYTES))):
                left -= len(data)
                self.tail = (self.tail + data)[-TAIL_BYTES:]
        else:
            self.head = os.pread(self._raw.fileno(), short, 0)
            self.tail = os.pread(self._raw.fileno(), short, offset - short)
        self._position, self._last = offset, self.tail


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _fingerprint(head: bytes, tail: bytes, offset: int) -> str:
    """Of the first bytes of a file and of those right before a position."""
    short = min(offset, TAIL_BYTES)
    return hashlib.sha256(head[:short] + tail[len(tail) - short :]).hexdigest() if short else ""


def _folder(path: Path) -> Iterator[os.DirEntry[str]]:
    """Regular files beside one, within reason."""
    try:
        with os.scandir(path.parent) as entries:
            for _, entry in zip(range(_MAX_FOLDER_ENTRIES), entries, strict=False):
                if entry.is_file():
                    yield entry
    except OSError:
        return


def _is_rotated(path: Path, name: str) -> bool:
    return name.startswith(path.name) and _ROTATED.fullmatch(name[len(path.name) :]) is not None


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _rotated_after(path: Path, since: int) -> Path | None:
    """What was rotated away after a file was: the oldest of those last written to after it."""
    later = [(_modified(Path(e)), e.path) for e in _folder(path) if _is_rotated(path, e.name)]
    found = min((entry for entry in later if entry[0] > since), default=None)
    return None if found is None else Path(found[1])
