"""Write records as CSV, JSON lines or Parquet, whichever the name of the file asks for.

>>> import tempfile
>>> from netclust.datasets.simulators.simulate import simulate
>>> with tempfile.TemporaryDirectory() as folder:
...     with open_writer(Path(folder, "some.csv")) as writer:
...         writer.write(simulate(3, seed=1).table())
...     Path(folder, "some.csv").read_text().splitlines()[0][:30]
'time,duration,protocol_type,se'
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, MissingExtraError
from netclust.foundation.text import sanitize
from netclust.records.table import Table
from netclust.stream.packets.connections import SCHEMAS, iso_times

__all__ = ["RecordWriter", "open_writer"]

_NUMBERS = ("source_port", "destination_port", "vlan", "part")  # context that is no text
_TIMES = ("time", "start")
_QUOTED = frozenset('",\r\n')


class RecordWriter(ABC):
    """Takes tables of one schema; written when it is closed."""

    def __init__(self, stream: IO[bytes], shared: bool = False) -> None:
        self._stream, self._shared = stream, shared  # what is shared is not ours to close
        self.records = 0

    def write(self, table: Table) -> None:
        """Append records."""
        self.records += len(table)
        self._write(_columns_of(table))

    @abstractmethod
    def _write(self, columns: dict[str, NDArray[Any]]) -> None:
        """Append columns: numbers, or texts as objects."""

    def flush(self) -> None:
        """Let whoever reads along see what was written."""
        self._stream.flush()

    def close(self) -> None:
        """Finish the file."""
        self._stream.flush()
        if not self._shared:
            self._stream.close()

    def __enter__(self) -> RecordWriter:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the file: what was written before an error is right."""
        self.close()


def _columns_of(table: Table) -> dict[str, NDArray[Any]]:
    """Return all columns of a table by name: time and context, then attributes in schema order, then the label."""
    schema = table.schema
    columns: dict[str, NDArray[Any]] = {}
    if len(table) == 0 or (table.time >= 0).any():
        columns["time"] = iso_times(table.time).astype(object)
    numbers = _NUMBERS if schema.name in SCHEMAS else ()  # of others' context nothing is known
    for name, column in table.context.items():
        columns[name] = column.astype(np.int64) if name in numbers else column
    numeric = {a.name: f for f, a in enumerate(schema.numeric)}
    coded = {a.name: s for s, a in enumerate(schema.coded)}
    for a in schema.features:
        if a.name in numeric:
            columns[a.name] = _plain(table.num[:, numeric[a.name]])
            continue
        s = coded[a.name]
        if a.kind == "binary":
            columns[a.name] = np.maximum(table.sym[:, s] - 1, 0)
        else:
            columns[a.name] = np.array(table.symbols[s], object)[table.sym[:, s]]
    label = schema.with_role("label")
    if len(table.labels) > 1 and label is not None:  # labels were looked for, found or not
        columns[label.name] = table.label_names()
    return columns


def _plain(values: NDArray[np.float64]) -> NDArray[Any]:
    """Whole numbers as such."""
    whole = np.rint(values)
    if np.abs(values).max(initial=0) < 2**53 and (whole == values).all():
        return whole.astype(np.int64)
    return values


class _Csv(RecordWriter):
    _names: tuple[str, ...] = ()

    def _write(self, columns: dict[str, NDArray[Any]]) -> None:
        if not self._names:
            self._names = tuple(columns)
            self._stream.write((",".join(self._names) + "\n").encode())
        texts = [_texts(columns[name]) for name in self._names]
        self._stream.write("".join(",".join(row) + "\n" for row in zip(*texts, strict=True)).encode())


def _texts(column: NDArray[Any]) -> list[str]:
    if column.dtype != object:
        return [text.removesuffix(".0") for text in column.astype(str).tolist()]
    return [_quoted(text) if _QUOTED.intersection(text) else text for text in column]


def _quoted(text: str) -> str:
    """A text that cannot stand in a field as it is. Readers take a line for a record, so line breaks are told."""
    if "\n" in text or "\r" in text:
        text = sanitize(text)
    return f'"{text.replace(chr(34), chr(34) * 2)}"'


class _JsonLines(RecordWriter):
    def _write(self, columns: dict[str, NDArray[Any]]) -> None:
        encode = msgspec.json.Encoder().encode
        names = list(columns)
        rows = zip(*(_whole_numbers(column) for column in columns.values()), strict=True)
        self._stream.write(b"".join(encode(dict(zip(names, row, strict=True))) + b"\n" for row in rows))


def _whole_numbers(column: NDArray[Any]) -> list[Any]:
    """Whole numbers as such, whatever else is in the batch."""
    if column.dtype != np.float64:
        found: list[Any] = column.tolist()
        return found
    return [int(value) if value.is_integer() else value for value in column.tolist()]


class _Parquet(RecordWriter):
    def __init__(self, stream: IO[bytes], shared: bool = False) -> None:
        super().__init__(stream, shared)
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise MissingExtraError("Parquet", "pyarrow", "parquet") from None
        self._arrow, self._parquet = pyarrow, parquet
        self._file: Any = None

    def _write(self, columns: dict[str, NDArray[Any]]) -> None:
        # Integers and fractions of one attribute come in different batches: one type for all.
        made: dict[str, NDArray[Any]] = {}
        for name, column in columns.items():
            if name in _TIMES:
                made[name] = np.char.rstrip(column.astype(str), "Z").astype("datetime64[ns]")
            else:
                made[name] = column if column.dtype == object or name in _NUMBERS else column.astype(np.float64)
        rows = self._arrow.table(made)
        if self._file is None:
            self._file = self._parquet.ParquetWriter(self._stream, rows.schema)
        self._file.write_table(rows)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def open_writer(path: Path, *, format: str = "") -> RecordWriter:  # noqa: A002
    """A writer for a file, by its ending (.csv, .jsonl, .parquet); `-` is standard output, CSV by default."""
    kinds: dict[str, type[RecordWriter]] = {"csv": _Csv, "jsonl": _JsonLines, "json": _JsonLines, "parquet": _Parquet}
    to_stdout = str(path) == "-"
    ending = format or ("csv" if to_stdout else path.suffix.lower().lstrip("."))
    if ending not in kinds:
        raise InputError(
            f"{path}: records are written as .csv, .jsonl or .parquet, not {ending or 'without an ending'}"
        )
    if to_stdout:
        if ending == "parquet":
            raise InputError("Parquet cannot go to standard output: give a file")
        return kinds[ending](sys.stdout.buffer, shared=True)
    try:
        stream = path.open("wb")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    return kinds[ending](stream)
