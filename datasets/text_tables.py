"""Tables of texts: a CSV with a header line (also separated by tabs or semicolons), or lines of JSON objects.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "some.jsonl")
...     _ = path.write_text('{"record": "a:0", "score": 1.5}\\n{"record": "a:1", "score": null, "via": "root"}\\n')
...     found = read_text_table(path)
>>> found.columns
{'record': ('a:0', 'a:1'), 'score': ('1.5', ''), 'via': ('', 'root')}

What a line of JSON does not have, or has as null, is an empty text. Files may be packed (gz, xz, zst, zip).
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.documents import LIMITS, DocumentLimits, decode_document, read_document_bytes
from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = ["TextTable", "read_text_table", "seconds_of"]

MAX_COLUMNS = 10_000


@dataclass(frozen=True, eq=False)
class TextTable:
    """Columns of texts, all of one length, by name."""

    columns: dict[str, tuple[str, ...]]
    sha256: str = ""
    """Of the file's unpacked bytes."""
    path: str = "table"

    def __len__(self) -> int:
        """How many rows."""
        return max(map(len, self.columns.values()), default=0)

    def column(self, name: str) -> tuple[str, ...]:
        """A column by its name."""
        if name not in self.columns:
            there = ", ".join(map(sanitize, list(self.columns)[:20]))
            raise InputError(f"{self.path}: no column {sanitize(name)!r}: there are {there}")
        return self.columns[name]

    def rows(self, index: Sequence[int] | NDArray[np.int64]) -> TextTable:
        """Some of the rows."""
        chosen = [int(i) for i in index]
        return TextTable(
            {name: tuple(own[i] for i in chosen) for name, own in self.columns.items()}, self.sha256, self.path
        )


def read_text_table(path: str | Path, *, limits: DocumentLimits = LIMITS) -> TextTable:
    """The rows of a file, as texts."""
    content = read_document_bytes(path, limits.total_bytes)
    text = decode_document(content)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if not first:
        raise InputError(f"{path}: there is nothing in it")
    columns = (_json_lines if first.lstrip().startswith("{") else _csv)(str(path), text, limits)
    if not any(columns.values()):
        raise InputError(f"{path}: no rows: a header line, then one row a line")
    return TextTable(
        {name: tuple(own) for name, own in columns.items()}, hashlib.sha256(content).hexdigest(), str(path)
    )


def _csv(path: str, text: str, limits: DocumentLimits) -> dict[str, list[str]]:
    head = next(line for line in text.splitlines() if line.strip())
    delimiter = max(",\t;", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(row for row in reader if row)]
        if len(set(header)) < len(header) or not all(header):
            raise InputError(f"{path} line 1: every column needs a name of its own: {sanitize(', '.join(header))}")
        rows = []
        for row in reader:
            if not row:
                continue  # a blank line
            if len(row) != len(header):
                raise InputError(f"{path} line {reader.line_num}: {len(row)} columns, the header has {len(header)}")
            rows.append(row)
            _check_count(len(rows), f"{path} line {reader.line_num}", limits)
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: cannot be read as CSV: {error}") from None
    return {name: [row[at].strip() for row in rows] for at, name in enumerate(header)}


def _json_lines(path: str, text: str, limits: DocumentLimits) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"{path} line {number}: cannot be read as JSON: {error}") from None
        for name, value in row.items():
            if isinstance(value, list | dict):
                continue  # what is no single value is no column
            if name not in columns:
                columns[name] = [""] * count
            columns[name].append("" if value is None else str(value).strip())
        count += 1
        for own in columns.values():
            own.extend([""] * (count - len(own)))
        if len(columns) > MAX_COLUMNS:
            raise InputError(f"{path} line {number}: more than {MAX_COLUMNS} names of values")
        _check_count(count, f"{path} line {number}", limits)
    return columns


def _check_count(count: int, where: str, limits: DocumentLimits) -> None:
    if count > limits.items:
        raise InputError(f"{where}: more than {limits.items} rows")


def seconds_of(values: Sequence[str], where: str) -> NDArray[np.float64]:
    """Times as seconds: numbers as they are, dates and times as seconds of UTC; an empty one is as the one before.

    >>> seconds_of(["5", "", "6.5"], "t").tolist(), seconds_of(["1970-01-01T00:01:00Z"], "t").tolist()
    ([5.0, 5.0, 6.5], [60.0])
    """
    found = np.zeros(len(values))
    for i, value in enumerate(values):
        if not value:
            found[i] = found[i - 1] if i else 0.0
            continue
        try:
            found[i] = float(value)
        except ValueError:
            try:
                found[i] = np.datetime64(value.removesuffix("Z"), "us").astype(np.int64) / 1e6
            except ValueError:
                raise InputError(f"{where}: {sanitize(value)!r} in row {i + 1} is no time") from None
    if not np.isfinite(found).all():
        raise InputError(f"{where}: row {int(np.argmin(np.isfinite(found))) + 1} has no finite time")
    return found
