"""Items to cluster, as text fields: from a CSV, or from a folder or tar of documents.

One line of a CSV is an item; columns may name its cluster, its set and its id. Of documents, folders say the same:

    FOLDER/FILE                one set, not labelled (FOLDER/*.txt where there are such files)
    FOLDER/CLUSTER/FILE        one set, labelled by CLUSTER
    FOLDER/SET/CLUSTER/FILE    several sets

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "cited.csv")
...     _ = path.write_text("who,author,title\\nauer95,P. Auer,A rigged casino\\nauer95,Auer P.,Rigged casino\\n")
...     table = read_items(path, label="who")
>>> table.fields, table.labels, table.column("title")
(('author', 'title'), ('auer95', 'auer95'), ('A rigged casino', 'Rigged casino'))

Text is UTF-8, or else Latin-1. Files may be packed (gz, xz, zst, zip).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.documents import (
    LIMITS,
    DocumentLimits,
    decode_document,
    is_tar,
    read_document_bytes,
    read_documents,
)
from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = ["LIMITS", "DocumentLimits", "ItemTable", "read_items", "sets_of"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Items with text fields; `labels` are names of clusters and `sets` names of sets, None where none are known."""

    fields: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    """One a field, with a text an item; empty: the item does not have it."""
    ids: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    sets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        given = [*self.columns, *(part for part in (self.labels, self.sets) if part is not None)]
        if len(self.columns) != len(self.fields) or any(len(part) != len(self.ids) for part in given):
            raise InputError("a table of items needs one column a field and one value an item in each")
        if len(set(self.fields)) < len(self.fields):
            raise InputError(f"a field is there twice: {', '.join(self.fields)}")
        _check_twice(self.ids, self.sets)

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.ids)

    def column(self, field: str) -> tuple[str, ...]:
        """The texts of a field."""
        if field not in self.fields:
            raise InputError(f"no field {field!r}: there are {', '.join(self.fields)}")
        return self.columns[self.fields.index(field)]

    def rows(self, index: Sequence[int] | Indices) -> ItemTable:
        """Some of the items, in the order that is asked for."""

        def some(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(values[int(i)] for i in index)

        return ItemTable(
            self.fields,
            tuple(some(column) for column in self.columns),
            some(self.ids),
            None if self.labels is None else some(self.labels),
            None if self.sets is None else some(self.sets),
        )

    def clusters(self) -> Indices:
        """The labels as numbers, by first appearance."""
        if self.labels is None:
            raise InputError("the items have no cluster labels: name the column that has them")
        return _numbered(self.labels)

    def set_rows(self) -> list[Indices]:
        """The items of every set, by the set's first appearance; all of them where no sets are named."""
        if self.sets is None:
            return [np.arange(len(self))]
        number = _numbered(self.sets)
        return [np.flatnonzero(number == k) for k in range(int(number.max(initial=-1)) + 1)]


def sets_of(table: ItemTable) -> list[ItemTable]:
    """The table cut into its sets."""
    return [table.rows(rows) for rows in table.set_rows()]


def read_items(
    path: str | Path,
    *,
    label: str | None = None,
    set_column: str | None = None,
    id_column: str | None = None,
    fields: Sequence[str] | None = None,
    limits: DocumentLimits = LIMITS,
) -> ItemTable:
    """The items of a CSV with a header line (also separated by tabs), or of a folder or tar of documents.

    `fields` are the columns to keep as text: all others by default. Messages (documents that begin with headers) have
    the fields of `netclust.datasets.documents.MESSAGE_FIELDS`, other documents only `text`.
    """
    if Path(path).is_dir() or is_tar(path):
        if label or set_column or id_column:
            raise InputError(f"{path}: holds documents, whose folders are their labels: columns are for a CSV")
        documents = read_documents(path, limits)
        wanted = documents.fields if fields is None else tuple(fields)
        table = ItemTable(documents.fields, documents.columns, documents.ids, documents.labels, documents.sets)
        return ItemTable(wanted, tuple(map(table.column, wanted)), table.ids, table.labels, table.sets)
    return _read_csv(path, _Roles(label, set_column, id_column), fields, limits)


class _Roles(NamedTuple):
    """Which column has what."""

    label: str | None
    set: str | None
    id: str | None


def _read_csv(path: str | Path, roles: _Roles, fields: Sequence[str] | None, limits: DocumentLimits) -> ItemTable:
    text = decode_document(read_document_bytes(path, limits.total_bytes))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        texts, places = _columns(path, header, roles, fields)
        rows: list[list[str]] = []
        lines: list[int] = []
        for row in reader:
            if not row:
                continue  # a blank line
            _check_row(path, reader.line_num, row, header, places, limits)
            rows.append(row)
            lines.append(reader.line_num)
            if len(rows) > limits.items:
                raise InputError(f"{path} line {reader.line_num}: more than {limits.items} items")
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: cannot be read as CSV: {error}") from None
    if not rows:
        raise InputError(f"{path}: no items: a header line, then one item a line")

    def column(at: int | None) -> tuple[str, ...] | None:
        return None if at is None else tuple(row[at].strip() for row in rows)

    ids = column(places.id) or tuple(str(k) for k in range(1, len(rows) + 1))
    _check_twice(ids, column(places.set), lines, str(path))
    kept = tuple(tuple(row[at].strip() for row in rows) for at in texts.values())
    return ItemTable(tuple(texts), kept, ids, column(places.label), column(places.set))


class _Places(NamedTuple):
    """Where in a row that is."""

    label: int | None
    set: int | None
    id: int | None


def _delimiter(text: str) -> str:
    first = text.split("\n", 1)[0]
    return max(",\t;", key=first.count)


def _columns(
    path: str | Path, header: list[str], roles: _Roles, fields: Sequence[str] | None
) -> tuple[dict[str, int], _Places]:
    """Where the text fields are, and where label, set and id."""
    if not any(header):
        raise InputError(f"{path} line 1: no header line with the names of the columns")
    known = {name: at for at, name in enumerate(header) if name}
    if len(known) < sum(map(bool, header)):
        raise InputError(f"{path} line 1: two columns have one name: {sanitize(', '.join(header))}")
    for name in [*filter(None, roles), *(fields or ())]:
        if name not in known:
            raise InputError(f"{path} line 1: no column {name!r}: there are {sanitize(', '.join(known))}")
    texts = list(fields) if fields is not None else [name for name in known if name not in roles]
    if not texts:
        raise InputError(f"{path}: no field is left to compare items by")
    places = _Places(*(None if name is None else known[name] for name in roles))
    return {name: known[name] for name in texts}, places


def _check_row(
    path: str | Path, line: int, row: list[str], header: list[str], places: _Places, limits: DocumentLimits
) -> None:
    if len(row) != len(header):
        raise InputError(f"{path} line {line}: {len(row)} columns, the header has {len(header)}")
    for what, at in zip(_Places._fields, places, strict=True):
        if at is not None and not row[at].strip():
            raise InputError(f"{path} line {line}: column {header[at]!r} is empty: every item needs its {what}")
    if sum(map(len, row)) > limits.document_bytes:
        raise InputError(f"{path} line {line}: an item of more than {limits.document_bytes} characters")


def _check_twice(
    ids: Sequence[str], sets: Sequence[str] | None, lines: list[int] | None = None, where: str = ""
) -> None:
    """Refuse an id that its set has twice; other sets may have it as well."""
    first: dict[tuple[str, str], int] = {}
    for n, at in enumerate(zip(ids, sets or [""] * len(ids), strict=True)):
        if at not in first:
            first[at] = n
            continue
        found = f"id {sanitize(at[0])!r}" + (f" of set {sanitize(at[1])!r}" if sets else "")
        if lines is None:
            raise InputError(f"{found} is there twice")
        raise InputError(f"{where} line {lines[n]}: {found} was there in line {lines[first[at]]} already")


def _numbered(names: Sequence[str]) -> Indices:
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)
