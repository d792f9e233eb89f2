"""How lines are understood: a dialect for every file or writer, with the header that it was told.

>>> notes = Notes(Counter())
>>> notes.skip("columns", "conn.log", 7, "3 columns, not 20")
>>> notes.counters["columns"], notes.first_skipped
(1, ['conn.log line 7: 3 columns, not 20'])
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from netclust.foundation.container import Arrays
from netclust.records.schema import Schema
from netclust.records.table import Table

__all__ = ["Dialect", "Format", "Notes"]

_MAX_MESSAGES = 20
_MAX_MESSAGE = 300


class Notes:
    """Counts what is passed over, by reason, and keeps what the first ones were."""

    def __init__(self, counters: Counter[str]) -> None:
        self.counters = counters
        self.first_skipped: list[str] = []

    def skip(self, reason: str, where: str, line: int, message: str) -> None:
        """One line more."""
        self.counters[reason] += 1
        if self.counters[reason] == 1:
            self.keep(f"{where} line {line}: {message}")

    def keep(self, message: str) -> None:
        """Keep a message, if there is room."""
        if len(self.first_skipped) < _MAX_MESSAGES:
            self.first_skipped.append(message[:_MAX_MESSAGE])


class Dialect(Protocol):
    """Understands the lines of one file or writer. `problem` says why it cannot, "" if it can."""

    problem: str
    line: int  # lines read
    notes: Notes

    @property
    def header(self) -> bytes:
        """What another one must be told to go on here."""

    def parse(self, lines: bytes, *, final: bool = False) -> Any:
        """What whole lines say, for `Format.table`; with `final` the last one may lack its end."""


class Format(Protocol):
    """One for a source: makes dialects, and tables of what they understood. What it counts is its state."""

    schema: Schema
    costly: bool  # whether its state is

    def dialect(self, where: str, notes: Notes) -> Dialect:
        """For a file or writer that begins."""

    def table(self, parsed: Any) -> Table | None:
        """The records, in order; None if there are none."""

    def state(self) -> Arrays:
        """What it has counted."""

    def restore(self, arrays: Arrays) -> None:
        """Go on where `state` was taken."""

    @property
    def counters(self) -> Counter[str]:
        """What it could not count in full."""
