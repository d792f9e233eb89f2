"""How lines are understood: a dialect for every file or writer, with the header that it was told.

>>> notes = Notes(Counter())
>>> notes.skip("columns", "conn.log", 7, "3 columns, not 20")
>>> notes.counters["columns"], notes.first_skipped
(1, ['conn.log line 7: 3 columns, not 20'])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, Protocol

import msgspec

from netclust.container import Arrays
from netclust.schema import Schema
from netclust.stream.sources.conn_records import Conn, LogConnections
from netclust.table import Table

__all__ = ["Dialect", "Format", "LogFormat", "Notes"]

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


class LogFormat:
    """Logs of connections: the dialects differ, tables are made by LogConnections."""

    costly = True

    def __init__(self, schema: str, kind: type[LogDialect]) -> None:
        self._schema = schema
        self._maker = LogConnections(schema)
        self._kind = kind
        self.schema = self._maker.schema

    def dialect(self, where: str, notes: Notes) -> Dialect:
        """For a file or writer that begins."""
        return self._kind(where, notes)

    def table(self, parsed: list[Conn]) -> Table | None:
        """The records."""
        return self._maker.table(parsed) if parsed else None

    def state(self) -> Arrays:
        """Counts of its windows."""
        return self._maker.state()

    def restore(self, arrays: Arrays) -> None:
        """Continue with them; raises ModelError for nonsense, and then nothing is changed."""
        maker = LogConnections(self._schema)
        maker.restore(arrays)
        self._maker = maker

    @property
    def counters(self) -> Counter[str]:
        """Connections that left a window early."""
        return Counter(traffic_window_full=self._maker.dropped)


class LogDialect(ABC):
    """Line by line; one that is not understood is counted and passed over."""

    def __init__(self, where: str, notes: Notes) -> None:
        self.where = where
        self.notes = notes
        self.problem = ""
        self.line = 0

    @property
    def header(self) -> bytes:
        """Nothing: every line tells all."""
        return b""

    def parse(self, lines: bytes, *, final: bool = False) -> list[Conn]:
        """The connections of some lines."""
        found: list[Conn] = []
        for raw in lines.removesuffix(b"\n").split(b"\n") if lines else ():
            self.line += 1
            try:
                conn = self.read_line(line) if (line := raw.rstrip(b"\r")) else None
            except msgspec.ValidationError as error:
                self.skip("bad_value", str(error))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.skip("bad_json", str(error))
            except (ValueError, OverflowError) as error:
                self.skip("bad_value", str(error))
            else:
                if conn is not None:
                    found.append(conn)
        return found

    def skip(self, reason: str, message: str) -> None:
        """Pass over the line."""
        self.notes.skip(reason, self.where, self.line, message)

    @abstractmethod
    def read_line(self, line: bytes) -> Conn | None:
        """What a line says; None if it is none of ours. Raises ValueError and msgspec's errors."""
