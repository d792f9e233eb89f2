"""A log file of whole lines: cut back after a crash, reopened when it was rotated, never half a line on a full disk.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> log = LineFile(Path(folder.name, "log"))
>>> log.open(None)
>>> log.write_lines(b"one\\n")
>>> facts = log.sync()
>>> log.write_lines(b"two\\n")  # and then the machine stops
>>> log.close()
>>> log.open(facts)
>>> log.path.read_bytes()
b'one\\n'
>>> log.close()
>>> folder.cleanup()
"""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path

from netclust.errors import InputError
from netclust.stream.sinks.base import Facts, SinkError

MAX_HALF_LINE = 16 << 20
"""How far from the end of a file a newline is looked for."""

_TAIL = 4096  # of these last bytes a checkpoint keeps the checksum: a file that was emptied and grew again is another
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe is refused, not waited for


class LineFile:
    """Lines appended to a file. `note` says what was odd when it was opened, `odd` counts that."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.note = ""
        self.odd = 0
        self._fd = -1
        self._whole = -1  # where a half line begins that could not be cut off yet

    def open(self, facts: Facts | None) -> None:
        """Begin, or cut the file back to what `sync` said. InputError where the file cannot be written."""
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"{self.path}: cannot be written: there is no folder {self.path.parent}")
        existed = self.path.exists()
        try:
            self._fd = self._opened()
            if facts is None:
                self._cut_half_line()
            elif self._is_regular():
                self._cut_back(facts, existed)
        except OSError as error:
            self.close()
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None

    def write_lines(self, data: bytes) -> None:
        """Append lines (each ends with a newline): all of them, or none and SinkError."""
        try:
            self._mend()
            before = os.fstat(self._fd).st_size
            left = memoryview(data)
            try:
                while left:
                    left = left[os.write(self._fd, left) :]
            except OSError:
                self._whole = before
                self._mend()
                raise
        except OSError as error:
            raise SinkError(f"{self.path}: {error.strerror}") from None

    def sync(self) -> Facts:
        """Make it durable; its length, and how to know the file again."""
        if not self._is_regular():
            return {}
        facts = self.facts()
        self.flush()
        return facts

    def facts(self) -> Facts:
        """Its length now, and how to know the file again; `flush` makes it true after a crash of the machine."""
        if not self._is_regular():
            return {}
        try:
            self._mend()
            state = os.fstat(self._fd)
            tail = self._checksum(state.st_size)
        except OSError as error:
            raise SinkError(f"{self.path}: {error.strerror}") from None
        return {"length": state.st_size, "inode": state.st_ino, "tail": tail}

    def flush(self) -> None:
        """Make what was written durable. From any thread. A device has nothing to make durable."""
        if not self._is_regular():
            return
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise SinkError(f"{self.path}: {error.strerror}") from None

    def reopen(self) -> None:
        """Go on in a new file of this name. Where that cannot be, the old one stays in use."""
        try:
            fresh = self._opened()
        except OSError as error:
            raise SinkError(f"{self.path}: cannot be reopened: {error.strerror}") from None
        old, self._fd = self._fd, fresh
        self._whole = -1
        if old >= 0:
            try:
                os.fsync(old)
            except OSError:
                pass
            finally:
                os.close(old)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._whole = -1

    def _opened(self) -> int:
        fd = os.open(self.path, _FLAGS, 0o640)
        mode = os.fstat(fd).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
            os.close(fd)
            raise OSError(0, "not a regular file")
        return fd

    def _is_regular(self) -> bool:
        return self._fd >= 0 and stat.S_ISREG(os.fstat(self._fd).st_mode)

    def _cut_back(self, facts: Facts, existed: bool) -> None:
        state = os.fstat(self._fd)
        length = facts.get("length")
        if not isinstance(length, int) or length < 0:
            return self._keep("the checkpoint does not say how long it was")
        if not existed:
            return self._keep("it is gone") if length else None
        if facts.get("inode") != state.st_ino:
            return self._keep("another file took its place")
        if state.st_size < length:
            return self._keep(f"it is shorter than the {length} bytes of the checkpoint")
        if facts.get("tail") != self._checksum(length):
            return self._keep("it was written anew")
        os.ftruncate(self._fd, length)
        return None

    def _keep(self, why: str) -> None:
        """Cut nothing: what is there is not what was checkpointed. Only half a line is ended."""
        self.odd += 1
        self.note = f"{self.path}: not cut back: {why}; lines since the last checkpoint may be there twice"
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")

    def _cut_half_line(self) -> None:
        """After a crash that left no checkpoint, the file ends behind its last newline."""
        if not self._is_regular():
            return
        size = end = os.fstat(self._fd).st_size
        while end > 0 and size - end < MAX_HALF_LINE:
            begin = max(0, end - (1 << 16))
            at = os.pread(self._fd, end - begin, begin).rfind(b"\n")
            if at >= 0:
                end = begin + at + 1
                break
            end = begin
        if size - end >= MAX_HALF_LINE:
            self._keep("its last line has no end")
        elif end < size:
            os.ftruncate(self._fd, end)
            self.odd += 1
            self.note = f"{self.path}: cut back by half a line of {size - end} bytes"

    def _mend(self) -> None:
        """Cut off half a line that a failed write left."""
        if self._fd < 0:
            raise OSError(0, "not open")
        if self._whole >= 0:
            if self._is_regular() and os.fstat(self._fd).st_size > self._whole:
                os.ftruncate(self._fd, self._whole)
            self._whole = -1

    def _checksum(self, length: int) -> int:
        begin = max(0, length - _TAIL)
        return zlib.crc32(os.pread(self._fd, length - begin, begin))
