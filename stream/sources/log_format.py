"""Logs of connections: a dialect understands the lines of one log, and `LogFormat` makes records of what it found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Annotated, Any

import msgspec

from netclust.foundation.container import Arrays
from netclust.records.table import Table
from netclust.stream.sources.conn_records import Conn, LogConnections
from netclust.stream.sources.dialects import Dialect, Notes

__all__ = ["LogDialect", "LogFormat"]


MAX_TEXT = 256
"""Longer texts of a log are refused, with their line."""


_Label = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] | int | float | bool | None


def _label_decoder(field: str) -> msgspec.json.Decoder[Any]:
    """Return a decoder of the label alone, which is the value of this key.

    >>> _label_decoder("attack").decode(b'{"attack": "scan", "ts": 1}').label
    'scan'
    """
    return msgspec.json.Decoder(msgspec.defstruct("Labelled", [("label", _Label, None)], rename={"label": field}))


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
    """Line by line; one that is not understood is counted and passed over.

    `label_field` names the field or key that holds the label. Without it a dialect reads its usual one, if it has any.
    """

    def __init__(self, where: str, notes: Notes, label_field: str | None = None) -> None:
        self.where = where
        self.notes = notes
        self.problem = ""
        self.line = 0
        self._json_label = None if label_field is None else _label_decoder(label_field)

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

    def labelled(self, conn: Conn, line: bytes) -> Conn:
        """Return the connection of a JSON line with the label that the label field has, if one was named."""
        if self._json_label is None:
            return conn
        label = self._json_label.decode(line).label
        return conn._replace(label=label if isinstance(label, str) else "" if label is None else str(label).lower())

    @abstractmethod
    def read_line(self, line: bytes) -> Conn | None:
        """What a line says; None if it is none of ours. Raises ValueError and msgspec's errors."""
