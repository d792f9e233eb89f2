"""Which column of a file is which attribute: schema order, a CSV header, or an ARFF header.

>>> from netclust.schema import load_schema
>>> layout = schema_layout(load_schema("kdd"))
>>> layout.complaint(parse.NOT_A_NUMBER, 0, "abc", 43)
", column 1 (duration): 'abc' is not a number"
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from netclust.errors import InputError
from netclust.kernels import parse
from netclust.schema import Attribute, Schema

_SCALE = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1, "iso": 1}
_ARFF_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
_MAX_HEADER_BYTES = 1 << 20


@dataclass(frozen=True)
class Layout:
    """The attribute of every column of a file (None: a column that the schema does not know, passed over)."""

    schema: Schema
    columns: tuple[Attribute | None, ...]
    required: int
    comment: str = ""

    @cached_property
    def binary(self) -> list[str]:
        """Binary features, parsed as numbers behind the numeric ones."""
        return [a.name for a in self.schema.coded if a.kind == "binary"]

    @cached_property
    def symbols(self) -> list[str]:
        """Symbolic features; the label comes behind them."""
        return [a.name for a in self.schema.coded if a.kind == "symbolic"]

    @cached_property
    def label(self) -> str:
        """The label's column, "" if the file has none."""
        return next((a.name for a in self.columns if a is not None and a.role == "label"), "")

    @property
    def symbol_columns(self) -> int:
        """Symbolic features and the label."""
        return len(self.symbols) + bool(self.label)

    @cached_property
    def iso_time(self) -> str:
        """The name of the time column if it is ISO 8601 text."""
        return next((a.name for a in self.columns if a is not None and a.role == "time" and a.unit == "iso"), "")

    @cached_property
    def texts(self) -> list[str]:
        """Columns that are kept as text."""
        present = {a.name for a in self.columns if a is not None}
        return [a.name for a in self.schema.context if a.name in present] + ([self.iso_time] if self.iso_time else [])

    def plan(self, max_values: int) -> parse.Plan:
        """What the kernel needs to know."""
        n = len(self.columns)
        kind, dest = np.zeros(n, np.int8), np.zeros(n, np.int32)
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        strip = np.zeros(n, np.uint8)
        key_column, scale = -1, 1
        numeric = [a.name for a in self.schema.numeric]
        for i, a in enumerate(self.columns):
            if a is None or a.role == "ignored":
                continue
            low[i] = -np.inf if a.min is None else a.min
            high[i] = np.inf if a.max is None else a.max
            if a.name in self.texts:
                kind[i], dest[i] = parse.TEXT, self.texts.index(a.name)
                key_column = i if a.role == "key" else key_column
            elif a.role == "label":
                kind[i], dest[i] = parse.SYMBOL, len(self.symbols)
                strip[i] = ord(self.schema.label_suffix) if self.schema.label_suffix else 0
            elif a.role == "time":
                kind[i], scale = parse.TIME, _SCALE[a.unit]
            elif a.kind == "numeric":
                kind[i], dest[i] = parse.NUMBER, numeric.index(a.name)
            elif a.kind == "binary":
                kind[i], dest[i] = parse.INTEGER, len(numeric) + self.binary.index(a.name)
                low[i], high[i] = 0, 1
            else:
                kind[i], dest[i] = parse.SYMBOL, self.symbols.index(a.name)
        return parse.Plan(
            kind=kind,
            dest=dest,
            low=low,
            high=high,
            strip=strip,
            required=self.required,
            delimiter=ord(self.schema.delimiter),
            comment=ord(self.comment) if self.comment else 0,
            time_scale=scale,
            key_column=key_column,
            max_values=max_values,
        )

    def complaint(self, reason: int, column: int, value: str, found: int) -> str:
        """What is wrong with a line, to stand behind the file's name and the line's number."""
        if reason == parse.COLUMNS:
            n = len(self.columns)
            expected = str(n) if self.required == n else f"{self.required} to {n}"
            return f": {found} columns, schema {self.schema.name} has {expected}"
        a = self.columns[column]
        name = a.name if a is not None else "?"
        low = "-inf" if a is None or a.min is None else f"{a.min:g}"
        high = "inf" if a is None or a.max is None else f"{a.max:g}"
        if a is not None and a.role == "feature" and a.kind == "binary":
            low, high = "0", "1"
        text = {
            parse.NOT_A_NUMBER: "is not a number",
            parse.OUT_OF_RANGE: f"is outside {low} to {high}",
            parse.NOT_INTEGER: "is neither 0 nor 1",
            parse.TOO_LONG: f"... is longer than {parse.MAX_SYMBOL_BYTES} bytes",
            parse.NOT_A_TIME: f"is not a time in {a.unit if a is not None else 's'}",
        }[reason]
        return f", column {column + 1} ({name}): {value!r} {text}"


def schema_layout(schema: Schema) -> Layout:
    """No header: columns in schema order, optional ones may be absent at the end."""
    return Layout(schema, schema.attributes, schema.required_columns)


def csv_header(text: bytes, schema: Schema, where: str) -> tuple[int, int, Layout]:
    """(bytes, lines, layout) of a file whose first line may be a header: then columns go by name."""
    end = text.find(b"\n") + 1 or len(text)
    skipped = len(text[:end]) if text.startswith(b"\xef\xbb\xbf") else 0
    first = text[:end].decode("utf-8-sig", "replace").strip()
    fields = next(iter(csv.reader([first], delimiter=schema.delimiter)), []) if first else []
    fields = [field.strip().strip("'\"") for field in fields]
    names = {a.name.lower() for a in schema.attributes}
    if not fields or 2 * sum(field.lower() in names for field in fields) < len(fields):
        return (3 if skipped else 0), 0, schema_layout(schema)
    return end, 1, _by_name(schema, fields, where)


def arff_header(text: bytes, schema: Schema, where: str, final: bool) -> tuple[int, int, Layout | None]:
    """(bytes, lines, layout) of an ARFF header; no layout yet while `@data` has not come."""
    names: list[str] = []
    position = lines = 0
    while position < len(text):
        end = text.find(b"\n", position) + 1 or len(text)
        line = text[position:end].decode("utf-8", "replace").strip()
        position, lines = end, lines + 1
        if match := _ARFF_ATTRIBUTE.match(line):
            names.append(match[1].strip("'\""))
        elif line.lower().startswith("@data"):
            if text[position : position + 1] == b"{":
                raise InputError(f"{where} line {lines + 1}: sparse ARFF is not read, save it as dense")
            return position, lines, _by_name(schema, names, where, comment="%")
    if final or len(text) > _MAX_HEADER_BYTES:
        raise InputError(f"{where}: an ARFF header without @data")
    return 0, 0, None


def _by_name(schema: Schema, names: Sequence[str], where: str, comment: str = "") -> Layout:
    """A layout from column names; `class` means the label."""
    known = {a.name.lower(): a for a in schema.attributes}
    label = schema.with_role("label")
    if label is not None:
        known.setdefault("class", label)
    columns = tuple(known.get(name.lower()) for name in names)
    missing = [a.name for a in schema.features if a not in columns]
    if missing:
        raise InputError(f"{where} header: no column {', '.join(missing)}, which schema {schema.name} needs")
    named = [a.name for a in columns if a is not None]
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise InputError(f"{where} header: columns named twice: {', '.join(twice)}")
    return Layout(schema, columns, len(columns), comment)
