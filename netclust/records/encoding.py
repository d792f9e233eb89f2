"""Encoding: what is fitted on training data to turn a table into a batch, and lives in the model.

Numeric attributes are transformed and scaled to [0, 1] by the training range; a constant one is dropped. Symbolic
values get codes from 1; a value never seen in training has no code (0) and matches nothing.

>>> from netclust.records.schema import parse_schema
>>> schema = parse_schema('''
... name = "t"
... attribute = [{name = "size"}, {name = "kind", kind = "symbolic"}]
... ''')
>>> past = Table.from_columns(schema, {"size": [0, 10, 5], "kind": ["a", "b", "a"]})
>>> today = Table.from_columns(schema, {"size": [2.5], "kind": ["c"]})
>>> batch = fit_encoding(past).encode(today)
>>> batch.num.tolist(), batch.code.tolist()
([[0.25]], [[0]])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.batch import NO_LABEL, Batch
from netclust.records.labels import LabelTable
from netclust.records.schema import Attribute, Schema, Transform
from netclust.records.table import Table

MAX_CODES = 65_535
FAR = 1e6  # training ranges: beyond this a number would only overflow float32
HUGE = 1e300  # numbers beyond are taken for it, so that no difference overflows


@dataclass(frozen=True, eq=False)
class Encoding:
    """A schema with its fitted scaling, vocabularies and label names.

    `kept` are the numeric attributes that vary; `vocabularies[s][c - 1]` is the value with code c of coded attribute s.
    """

    schema: Schema
    kept: tuple[str, ...]
    low: NDArray[np.float64]
    span: NDArray[np.float64]
    vocabularies: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]

    @cached_property
    def numeric(self) -> tuple[Attribute, ...]:
        """The numeric attributes that are scored, in schema order."""
        return tuple(a for a in self.schema.numeric if a.name in self.kept)

    @property
    def widths(self) -> tuple[int, ...]:
        """Codes of every coded attribute, 0 included."""
        return tuple(len(v) + 1 for v in self.vocabularies)

    @cached_property
    def labels_by_name(self) -> dict[str, int]:
        """The number of every training label."""
        return {name: number for number, name in enumerate(self.labels)}

    def label_table(self) -> LabelTable:
        """A fresh table with the training labels."""
        return LabelTable(self.labels, self.schema.normal)

    def encode(self, table: Table, labels: LabelTable | None = None, *, delivered: bool = False) -> Batch:
        """The batch of a table. With `labels`, label names not seen in training get new numbers there.

        InputError where there are too many names, or one that is none; of records that a stream has `delivered`, such
        a label is left out and counted (`LabelTable.dropped`).
        """
        ours, theirs = ([(a.name, a.kind) for a in schema.features] for schema in (self.schema, table.schema))
        if ours != theirs:
            raise InputError(f"records of schema {table.schema.name} cannot be encoded for schema {self.schema.name}")
        code = np.empty((len(table), len(self.vocabularies)), np.uint16)
        for s, vocabulary in enumerate(self.vocabularies):
            codes = {value: c for c, value in enumerate(vocabulary, 1)}
            lookup = np.array([codes.get(value, 0) for value in table.symbols[s]], np.uint16)
            code[:, s] = lookup[table.sym[:, s]]
        if labels is None:
            numbers = _label_numbers(table, lambda name, _: self.labels_by_name.get(name, NO_LABEL))
        else:
            numbers = _label_numbers(table, labels.take if delivered else lambda name, _: labels.add(name))
        return Batch(
            num=self.scale(table.num[:, self._kept_columns]),
            code=code,
            time=table.time,
            seq=table.seq,
            label=numbers,
            key=table.key,
            context=table.context,
        )

    def scale(self, raw: NDArray[np.float64]) -> NDArray[np.float32]:
        """The numbers of records, a column for each numeric attribute that is scored, transformed and scaled."""
        num = np.empty(raw.shape, np.float32)
        for transform, columns in self._columns_by_transform.items():
            with np.errstate(over="ignore"):  # an infinite quotient is clipped
                values = (_transform(raw[:, columns], transform) - self.low[columns]) / self.span[columns]
            num[:, columns] = np.clip(values, *((0, 1) if transform == "clip" else (-FAR, FAR)))
        return num

    @cached_property
    def _columns_by_transform(self) -> dict[Transform, list[int]]:
        """Numeric attributes that are scored, by their place among these: few calls instead of one an attribute."""
        found: dict[Transform, list[int]] = {}
        for f, a in enumerate(self.numeric):
            found.setdefault(a.transform, []).append(f)
        return found

    def shown(self, table: Table, row: int) -> ShownRecord:
        """Return a record of a table as people see it, by itself: the table is not kept for it."""
        names = (names[code] for names, code in zip(table.symbols, table.sym[row].tolist(), strict=True))
        return ShownRecord(self, table.num[row, self._kept_columns].copy(), tuple(names))

    def texts(self, table: Table, rows: NDArray[np.int64], s: int) -> NDArray[np.object_]:
        """Return the values of coded attribute s of some records, "" for one that was not in the training data."""
        used, inverse = np.unique(table.sym[rows, s], return_inverse=True)
        known, names = self._known[s], table.symbols[s]
        values = np.array([name if (name := names[code]) in known else "" for code in used.tolist()], object)
        return np.asarray(values[inverse.reshape(-1)], object)

    @cached_property
    def _kept_columns(self) -> list[int]:
        return [f for f, a in enumerate(self.schema.numeric) if a.name in self.kept]

    @cached_property
    def _known(self) -> tuple[frozenset[str], ...]:
        return tuple(map(frozenset, self.vocabularies))

    @cached_property
    def shown_names(self) -> tuple[str, ...]:
        """The attributes that are shown of a record: numeric ones that are scored, then coded ones."""
        return (*(a.name for a in self.numeric), *(a.name for a in self.schema.coded))

    def decode(self, num: NDArray[np.float32], code: NDArray[np.uint16]) -> list[float | str | None]:
        """The values of one encoded record: numeric attributes that are scored, then coded ones (None: no value).

        Numbers come back to the precision of the encoding, about 7 digits of the attribute's range.
        """
        values: list[float | str | None] = []
        for f, a in enumerate(self.numeric):
            scaled = float(self.low[f] + np.float64(num[f]) * self.span[f])
            size = math.expm1(min(abs(scaled), 700.0)) if a.transform == "log1p" else abs(scaled)
            values.append(float(f"{math.copysign(size, scaled):.6g}") + 0.0)  # no -0
        for s, a in enumerate(self.schema.coded):
            if a.kind == "binary":
                values.append("1" if code[s] else "0")
            else:
                values.append(self.vocabularies[s][code[s] - 1] if code[s] else None)
        return values


@dataclass(frozen=True, eq=False)
class ShownRecord:
    """The values of one record as they came, for people."""

    encoding: Encoding
    num: NDArray[np.float64]
    texts: tuple[str, ...]

    def values(self) -> dict[str, float | str | None]:
        """Return values by attribute: numbers to 6 digits, and None for what was not in the training data."""
        shown: list[float | str | None] = [float(f"{value:.6g}") + 0.0 for value in self.num.tolist()]  # no -0
        for s, (a, text) in enumerate(zip(self.encoding.schema.coded, self.texts, strict=True)):
            known = text in self.encoding._known[s]
            shown.append(text if known else "0" if a.kind == "binary" else None)
        return dict(zip(self.encoding.shown_names, shown, strict=True))


def _label_numbers(table: Table, number: Callable[[str, int], int]) -> NDArray[np.int32]:
    """The label number of every record; `number` gives that of a name which a count of records has.

    Names come in the order of their first record, and only those that a record has: a table may know many more.
    """
    if not table.has_labels:
        return np.full(len(table), NO_LABEL, np.int32)
    used, first, inverse, counts = np.unique(table.label, return_index=True, return_inverse=True, return_counts=True)
    found = np.full(len(used), NO_LABEL, np.int32)
    for k in np.argsort(first).tolist():
        if name := table.labels[used[k]]:
            found[k] = number(name, int(counts[k]))
    return np.asarray(found[inverse.reshape(-1)], np.int32)


def fit_encoding(table: Table, without: Sequence[str] = ()) -> Encoding:
    """Ranges, vocabularies and label names of a training table; attributes named in `without` are not scored."""
    schema = table.schema
    if len(table) == 0:
        raise InputError("no records to fit an encoding on")
    left_out = set(without)
    if unknown := sorted(left_out - {a.name for a in schema.features}):
        raise InputError(f"schema {schema.name} has no attribute {', '.join(unknown)} to leave out")
    kept: list[str] = []
    lows: list[float] = []
    spans: list[float] = []
    for f, a in enumerate(schema.numeric):
        values = _transform(table.num[:, f], a.transform)
        low, high = float(values.min()), float(values.max())
        # A range too small for float32 is as good as constant.
        if high - low > float(np.finfo(np.float32).tiny) and a.name not in left_out:
            kept.append(a.name)
            lows.append(low)
            spans.append(high - low)
    vocabularies = tuple(() if a.name in left_out else _vocabulary(table, s, a) for s, a in enumerate(schema.coded))
    if not kept and not any(vocabularies):
        raise InputError("every attribute is constant in the training data: nothing to learn from")
    present = np.bincount(table.label, minlength=len(table.labels)) > 0
    found = {name for name, here in zip(table.labels, present, strict=True) if here and name}
    labels = tuple(sorted(found, key=lambda name: (name not in schema.normal, name)))
    return Encoding(schema, tuple(kept), np.array(lows), np.array(spans), vocabularies, labels)


def _transform(values: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    """An attribute's transform; log1p is taken of the size and keeps the sign, so that it is defined everywhere."""
    if transform == "log1p":
        return np.asarray(np.sign(values) * np.log1p(np.abs(values)))
    return np.clip(values, -HUGE, HUGE)


def _vocabulary(table: Table, s: int, a: Attribute) -> tuple[str, ...]:
    """The values of a coded attribute that occur; a binary one has a single value, its bit."""
    if a.kind == "binary":
        return ("1",)
    present = np.bincount(table.sym[:, s], minlength=len(table.symbols[s])) > 0
    values = sorted({v for v, here in zip(table.symbols[s], present, strict=True) if here and v})
    if len(values) > MAX_CODES - 1:
        raise InputError(f"attribute {a.name} has {len(values)} values, at most {MAX_CODES - 1} can be coded")
    return tuple(values)
