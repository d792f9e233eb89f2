"""Which column of a file is which attribute: schema order, a CSV header, or an ARFF header.

>>> from netclust.records.schema import load_schema
>>> layout = schema_layout(load_schema("kdd"))
>>> layout.refusal(parse.NOT_A_NUMBER, 0, "abc", 43)
", column 1 (duration): 'abc' is not a number"
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from netclust.errors import InputError
from netclust.kernels.packets import parse
from netclust.records.schema import Attribute, Schema

_SCALE = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1, "iso": 1}
_ARFF_ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|[^\s{]+)", re.IGNORECASE)
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
    def texts(self) -> list[str]:
        """Columns that are kept as text."""
        present = {a.name for a in self.columns if a is not None}
        return [a.name for a in self.schema.context if a.name in present]

    @property
    def iso_times(self) -> bool:
        """Whether the time column is ISO 8601 text."""
        return any(a is not None and a.role == "time" and a.unit == "iso" for a in self.columns)

    def plan(self, max_values: int, max_line: int) -> parse.ParsePlan:
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
        return parse.ParsePlan(
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
            max_line=max_line,
        )

    def refusal(self, reason: int, column: int, value: str, found: int) -> str:
        """What is wrong with a line, to stand behind the file's name and the line's number."""
        if reason == parse.COLUMNS:
            n = len(self.columns)
            expected = str(n) if self.required == n else f"{self.required} to {n}"
            return f": {found} columns, schema {self.schema.name} has {expected}"
        if reason == parse.SPARSE:
            return ": sparse ARFF is not read, save it as dense"
        a = self.columns[column]
        name = a.name if a is not None else "?"
        low = "-inf" if a is None or a.min is None else f"{a.min:g}"
        high = "inf" if a is None or a.max is None else f"{a.max:g}"
        unit = "s" if a is None else a.unit
        if a is not None and a.role == "feature" and a.kind == "binary":
            low, high = "0", "1"
        text = {
            parse.NOT_A_NUMBER: "is not a number",
            parse.OUT_OF_RANGE: f"is outside {low} to {high}",
            parse.NOT_INTEGER: "is neither 0 nor 1",
            parse.TOO_LONG: f"... is longer than {parse.MAX_SYMBOL_BYTES} bytes",
            parse.NOT_A_TIME: "is not a time in " + ("ISO 8601" if unit == "iso" else unit),
        }[reason]
        return f", column {column + 1} ({name}): {value!r} {text}"


def schema_layout(schema: Schema) -> Layout:
    """No header: columns in schema order, optional ones may be absent at the end."""
    return Layout(schema, schema.attributes, schema.required_columns)


class Header:
    """The lines in front of the records: none, a CSV header, or an ARFF header; given one at a time."""

    def __init__(self, schema: Schema, where: str) -> None:
        self.schema = schema
        self.where = where
        self.arff = False
        self._names: list[str] = []
        self._bytes = 0

    def read(self, line: bytes) -> tuple[bool, Layout | None]:
        """Whether the line belongs to the header, and the layout once it is known; the first is not a blank one."""
        text = line.decode("utf-8", "replace").strip()
        self.arff = self.arff or text.startswith(("@", "%"))
        if self.arff:
            self._bytes += len(line) + 1
            return True, self._arff_line(text)
        fields = _fields(text, self.schema.delimiter)
        names = {a.name.lower() for a in self.schema.attributes}
        if 2 * sum(field.lower() in names for field in fields) < max(len(fields), 1):
            return False, schema_layout(self.schema)
        return True, _by_name(self.schema, fields, self.where)

    def _arff_line(self, text: str) -> Layout | None:
        if match := _ARFF_ATTRIBUTE.match(text):
            self._names.append(match[1].strip("'\""))
        elif text.lower().startswith("@data"):
            return _by_name(self.schema, self._names, self.where, comment="%")
        if self._bytes > _MAX_HEADER_BYTES:
            raise self.unfinished()
        return None

    def unfinished(self) -> InputError:
        """What to tell the user when an ARFF header does not end."""
        return InputError(f"{self.where}: an ARFF header without @data")


def _fields(text: str, delimiter: str) -> list[str]:
    """The fields of a line that may be a header; none if it cannot be one."""
    try:
        fields = next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [field.strip().strip("'\"") for field in fields]


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
    named = Counter(a.name for a in columns if a is not None)
    if twice := sorted(name for name, times in named.items() if times > 1):
        raise InputError(f"{where} header: columns named twice: {', '.join(twice)}")
    return Layout(schema, columns, len(columns), comment)
