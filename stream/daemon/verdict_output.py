"""The log of verdicts as the daemon writes it: a disk that refuses does not stop detection."""

from __future__ import annotations

import time
from collections import Counter

from netclust.stream.detection.detector import Outcome
from netclust.stream.detection.verdict_lines import verdict_lines
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.verdict_log import VerdictLog

MAX_HELD_BYTES = 16 << 20
"""Verdict lines that a full disk refused, kept to be tried again; what is beyond is counted and lost."""
REOPEN_SECONDS = 5.0
"""A log that could not be reopened is tried again this often."""


class VerdictOutput:
    """The log of verdicts, written between batches; a disk that refuses does not stop it.

    What is not written yet is in `held`: a checkpoint keeps it.
    """

    def __init__(self, path: str, held: bytes = b"") -> None:
        self.log = VerdictLog(path)
        self.counters: Counter[str] = Counter()
        self.trouble = ""
        self._held = bytearray(held)
        self._reopen_at: float | None = None  # when to try again

    @property
    def held(self) -> bytes:
        """Lines that wait."""
        return bytes(self._held)

    def write(self, lines: bytes) -> None:
        """Append lines, or keep them for later."""
        if self._reopen_at is not None and time.monotonic() >= self._reopen_at:
            self.reopen()
        if not lines and not self._held:
            return
        if len(self._held) + len(lines) > MAX_HELD_BYTES:
            self.counters["dropped"] += lines.count(b"\n")
        else:
            self._held += lines
        try:
            self.log.write_lines(bytes(self._held))
        except SinkError as error:
            self.trouble = str(error)
            self.counters["errors"] += 1
            return
        self.counters["delivered"] += self._held.count(b"\n")
        self._held.clear()
        if self._reopen_at is None:
            self.trouble = ""

    def write_outcome(self, outcome: Outcome, which: str) -> None:
        """Append the verdicts of an outcome: all of them, or those that `which` asks for."""
        self.write(verdict_lines(outcome, which))

    def reopen(self) -> None:
        """It was rotated away. Where no new one can be made, the old one stays in use and it is tried again."""
        try:
            self.log.reopen()
        except SinkError as error:
            self.trouble = str(error)
            self.counters["errors"] += 1
            self._reopen_at = time.monotonic() + REOPEN_SECONDS
        else:
            self.trouble, self._reopen_at = "", None
