"""Whole lines out of bytes that are cut anywhere; a line of any length costs no more memory than MAX_LINE_BYTES.

>>> cutter = LineCutter()
>>> cutter.push(b"one\\ntwo\\nthr")
>>> cutter.take(1), cutter.take(10), cutter.take(10)
(Lines(data=b'one\\n', consumed=4, count=1), Lines(data=b'two\\n', consumed=4, count=1), None)
>>> cutter.push(b"ee\\n")
>>> cutter.take(10).data
b'three\\n'
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from netclust.records.reader import MAX_LINE_BYTES
from netclust.stream.sources.base import TICK_SECONDS

__all__ = ["GATHER_SECONDS", "NOTHING", "READ_BYTES", "TAIL_BYTES", "Feed", "LineCutter", "Lines", "Piece"]

READ_BYTES = 1 << 18
GATHER_SECONDS = TICK_SECONDS / 2
"""How long lines are gathered before they are given, if they are few."""
POLL_SECONDS = 0.02
TAIL_BYTES = 512
"""How much of what lies before a position is kept, to know it again."""


@dataclass(frozen=True)
class Lines:
    """Some whole lines: the bytes, how many were used up for them (with what was passed over), how many lines."""

    data: bytes
    consumed: int
    count: int
    tail: bytes = field(default=b"", repr=False)  # the last bytes used up


class LineCutter:
    """Keeps the beginning of a line until its end comes. Lines over MAX_LINE_BYTES are passed over and counted."""

    def __init__(self) -> None:
        self.long_lines = 0
        self.waiting_bytes = 0  # in whole lines that were not taken
        self._whole: deque[Lines] = deque()
        self._half: list[bytes] = []
        self._half_bytes = 0
        self._skipped = 0  # bytes of a long line so far; 0: in none
        self._tail = b""

    def push(self, data: bytes) -> None:
        """More bytes."""
        for at in range(0, len(data), MAX_LINE_BYTES):
            self._push(data[at : at + MAX_LINE_BYTES])

    def _push(self, data: bytes) -> None:
        newline = data.find(b"\n")
        if newline < 0:
            self._keep(data)
            return
        if self._skipped or self._half_bytes + newline > MAX_LINE_BYTES:
            self._end_long_line(data[: newline + 1])
            data = data[newline + 1 :]
        end = data.rfind(b"\n") + 1
        if end:
            whole = b"".join((*self._half, data[:end]))
            self._half, self._half_bytes = [], 0
            self._add(Lines(whole, len(whole), whole.count(b"\n")))
        self._keep(data[end:])

    def _keep(self, data: bytes) -> None:
        if self._skipped:
            self._skipped += len(data)
            self._tail = (self._tail + data)[-TAIL_BYTES:]
        elif data:
            self._half.append(data)
            self._half_bytes += len(data)
            if len(self._half) > 64:  # a writer that sends byte by byte
                self._half = [b"".join(self._half)]
            if self._half_bytes > MAX_LINE_BYTES:
                self._begin_long_line()

    def _begin_long_line(self) -> None:
        self._tail = b"".join(self._half)[-TAIL_BYTES:]
        self._skipped, self._half, self._half_bytes = self._half_bytes, [], 0

    def _end_long_line(self, rest: bytes) -> None:
        if not self._skipped:
            self._begin_long_line()
        self._add(Lines(b"", self._skipped + len(rest), 1, (self._tail + rest)[-TAIL_BYTES:]))
        self._skipped, self._tail = 0, b""
        self.long_lines += 1

    def _add(self, lines: Lines) -> None:
        self._whole.append(lines)
        self.waiting_bytes += lines.consumed

    @property
    def waiting(self) -> bool:
        """Whether there is something to take."""
        return bool(self._whole)

    def has_lines(self, count: int) -> bool:
        """Whether so many lines can be taken at once, or so many bytes wait that it is time to."""
        return self.waiting_bytes >= MAX_LINE_BYTES or sum(lines.count for lines in self._whole) >= count

    def take(self, most: int) -> Lines | None:
        """The next whole lines, at most so many; None if there are none."""
        if not self._whole:
            return None
        parts: list[Lines] = []
        room = most
        while self._whole and room > 0:
            first = self._whole.popleft()
            if first.count > room:
                ends = np.flatnonzero(np.frombuffer(first.data, np.uint8) == ord("\n"))
                at = int(ends[room - 1]) + 1
                self._whole.appendleft(Lines(first.data[at:], first.consumed - at, first.count - room))
                first = Lines(first.data[:at], at, room)
            parts.append(first)
            room -= first.count
            if not first.data:  # a long line ends what is taken, so that lines are numbered right behind it
                break
        taken = Lines(
            b"".join(lines.data for lines in parts),
            sum(lines.consumed for lines in parts),
            sum(lines.count for lines in parts),
            b"".join(lines.tail or lines.data[-TAIL_BYTES:] for lines in parts)[-TAIL_BYTES:],
        )
        self.waiting_bytes -= taken.consumed
        return taken

    def rest(self) -> Lines | None:
        """What stands behind the last line end, when no more comes."""
        if self._skipped:
            self._end_long_line(b"")
            return self.take(1)
        data = b"".join(self._half)
        self._half, self._half_bytes = [], 0
        return Lines(data, len(data), 1, data[-TAIL_BYTES:]) if data else None


@dataclass(frozen=True)
class Piece:
    """Lines of one writer. `fresh`: the first of a file or writer; `closed`: the last, which may lack its line end.

    `since`: when the oldest of them was read (time.monotonic()), if it was not now.
    """

    lines: Lines
    writer: int = 0
    where: str = ""
    fresh: bool = False
    closed: bool = False
    since: float = 0.0


NOTHING = Lines(b"", 0, 0)


class Feed(Protocol):
    """Where lines come from. After each piece `facts` tells where it stands."""

    replayable: bool
    sheds: bool
    ended: bool
    counters: Counter[str]

    def open(self, facts: dict[str, Any] | None) -> None:
        """Take hold of it; go on where `facts` say. Raises InputError."""

    def take(self, timeout: float) -> Piece | None:
        """The next lines, or None if none came in so many seconds, or none will come (`ended`)."""

    def facts(self) -> dict[str, Any]:
        """Where it stands, as JSON: behind the pieces that were taken."""

    def stop(self) -> None:
        """Give what was read, then end. From any thread."""

    def close(self) -> None:
        """Let go."""
