"""Table: raw records as columns, before a model's scaling and vocabularies are known.

>>> table = Table.from_columns(parse_schema('''
... name = "t"
... [[attribute]]
... name = "size"
... [[attribute]]
... name = "kind"
... kind = "symbolic"
... '''), {"size": [1, 2.5], "kind": ["a", "b"]})
>>> table.num.tolist(), [table.symbols[0][i] for i in table.sym[:, 0]]
([[1.0], [2.5]], ['a', 'b'])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.schema import Schema, parse_schema

__all__ = ["LEFT_OUT", "MISSING", "SharedNames", "Table", "TableReader", "concat_tables", "parse_schema"]

MISSING = ""
"""Symbol id 0: an empty or unknown value."""
LEFT_OUT = "left_out"
"""The reason under which a reader's `skipped` counts records that were left out because of their labels."""


@dataclass(eq=False)
class Table:
    """Raw records of one schema. Symbols are ids into `symbols` (0 = missing), one list a coded attribute or label.

    `num` holds the numeric features; `sym` the coded features (a binary one as the symbols "0" and "1").
    """

    schema: Schema
    num: NDArray[np.float64]
    sym: NDArray[np.int32]
    symbols: list[list[str]]
    label: NDArray[np.int32]
    labels: list[str]
    time: NDArray[np.int64]
    seq: NDArray[np.uint64]
    key: NDArray[np.uint64]
    context: dict[str, NDArray[np.object_]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many records."""
        return len(self.num)

    @property
    def has_labels(self) -> bool:
        """Whether any record has a label."""
        return bool((self.label > 0).any())

    def label_names(self) -> NDArray[np.object_]:
        """The label of every record, "" where there is none."""
        return np.array(self.labels, object)[self.label]

    def __getitem__(self, rows: slice | NDArray[Any]) -> Table:
        """Some of the records."""
        return Table(
            schema=self.schema,
            num=self.num[rows],
            sym=self.sym[rows],
            symbols=self.symbols,
            label=self.label[rows],
            labels=self.labels,
            time=self.time[rows],
            seq=self.seq[rows],
            key=self.key[rows],
            context={name: column[rows] for name, column in self.context.items()},
        )

    @classmethod
    def from_columns(cls, schema: Schema, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> Table:
        """A table from named columns: one for every feature; label and time (nanoseconds) if there are any."""
        missing = [a.name for a in schema.features if a.name not in columns]
        if missing:
            raise InputError(f"columns missing for schema {schema.name}: {', '.join(missing)}")
        n = len(next(iter(columns.values())))
        num = np.empty((n, len(schema.numeric)))
        for f, a in enumerate(schema.numeric):
            num[:, f] = np.asarray(columns[a.name], np.float64)
        if not np.isfinite(num).all():
            row, f = np.argwhere(~np.isfinite(num))[0]
            raise InputError(f"record {row}: {schema.numeric[f].name} is not a finite number")
        sym = np.zeros((n, len(schema.coded)), np.int32)
        symbols = []
        for s, a in enumerate(schema.coded):
            column = np.asarray(columns[a.name])
            text = column.astype(np.int64).astype(str) if a.kind == "binary" else column.astype(str)
            sym[:, s], names = _intern(text)
            symbols.append(names)
        label_attribute = schema.with_role("label")
        label, labels = np.zeros(n, np.int32), [MISSING]
        if label_attribute is not None and label_attribute.name in columns:
            label, labels = _intern(np.asarray(columns[label_attribute.name]).astype(str))
        time_attribute = schema.with_role("time")
        time = np.full(n, -1, np.int64)
        if time_attribute is not None and time_attribute.name in columns:
            time = np.asarray(columns[time_attribute.name], np.int64)
        context = {a.name: np.asarray(columns[a.name], object) for a in schema.context if a.name in columns}
        return cls(
            schema=schema,
            num=num,
            sym=sym,
            symbols=symbols,
            label=label,
            labels=labels,
            time=time,
            seq=np.arange(n, dtype=np.uint64),
            key=_hashes(schema, columns, n),
            context=context,
        )


class SharedNames:
    """Names with one number each in all tables of a reader; number 0 is MISSING.

    >>> shared = SharedNames()
    >>> shared.renumber(np.array([1, 2, 0]), ["", "tcp", "udp"]).tolist()
    [1, 2, 0]
    >>> shared.renumber(np.array([1, 1]), ["", "udp"]).tolist(), shared.names
    ([2, 2], ['', 'tcp', 'udp'])
    """

    def __init__(self) -> None:
        self.names: list[str] = [MISSING]
        self._numbers: dict[str, int] = {MISSING: 0}

    def renumber(self, numbers: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
        """Return the shared numbers of what has these numbers in a list of names."""
        used, inverse = np.unique(numbers, return_inverse=True)
        shared = np.array([self._number(names[number]) for number in used.tolist()], np.int32)
        return np.asarray(shared[inverse.reshape(-1)], np.int32)

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


@runtime_checkable
class TableReader(Protocol):
    """A reader of records: text, logs or captures. After the iteration it tells what was skipped, and the checksum."""

    schema: Schema
    skipped: Counter[str]
    first_skipped: str
    sha256: str

    def __iter__(self) -> Iterator[Table]:
        """The tables, in order."""


def _hashes(schema: Schema, columns: Mapping[str, Sequence[Any] | NDArray[Any]], n: int) -> NDArray[np.uint64]:
    """The hash of the key attribute, as the reader's kernel computes it."""
    key = schema.with_role("key")
    if key is None or key.name not in columns:
        return np.zeros(n, np.uint64)
    from netclust.kernels.packets.parse import hash_texts

    texts = [str(value).encode() for value in columns[key.name]]
    lengths = np.array([len(text) for text in texts], np.int64)
    hashes = np.zeros(n, np.uint64)
    spans = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
    hash_texts(np.frombuffer(b"".join(texts), np.uint8).copy(), spans, hashes)
    return hashes


def _intern(text: NDArray[np.str_]) -> tuple[NDArray[np.int32], list[str]]:
    """Ids in order of first appearance, and their names; the empty string is 0."""
    names, first, inverse = np.unique(text, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    ident = np.zeros(len(names), np.int32)
    table = [MISSING]
    for position in order:
        if names[position] != MISSING:
            ident[position] = len(table)
            table.append(str(names[position]))
    return ident[inverse.reshape(-1)], table


def concat_tables(tables: Sequence[Table]) -> Table:
    """One table of several that one reader gave: they share their symbols."""
    if not tables:
        raise InputError("no records")
    if len(tables) == 1:
        return tables[0]
    last = tables[-1]
    names = ("num", "sym", "label", "time", "seq", "key")
    parts: dict[str, Any] = {name: np.concatenate([getattr(t, name) for t in tables]) for name in names}
    context = {name: np.concatenate([t.context[name] for t in tables]) for name in last.context}
    return Table(schema=last.schema, symbols=last.symbols, labels=last.labels, context=context, **parts)
