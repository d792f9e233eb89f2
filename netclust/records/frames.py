"""Frames: arrays, pandas and polars frames, columns or dicts become tables; a schema is inferred if need be.

Nothing here imports pandas or polars: what has named columns is read by name.

>>> columns = {"bytes": [10, 2000, 35], "service": ["http", "dns", "http"], "secure": [True, False, True]}
>>> table = as_table(columns, ["ok", "ok", "scan"], normal="ok")
>>> [(a.name, a.kind, a.transform) for a in table.schema.features]
[('bytes', 'numeric', 'log1p'), ('service', 'symbolic', 'none'), ('secure', 'binary', 'none')]
>>> table.label_names().tolist()
['ok', 'ok', 'scan']
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from inspect import getattr_static
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.schema import Attribute, Kind, Schema, Transform, check_schema
from netclust.records.table import Table, concat_tables

__all__ = ["LABEL", "as_table", "frame_columns", "infer_schema", "is_missing"]

LABEL = "label"
"""The name of the label column of an inferred schema."""
WIDE = 1000.0
"""A numeric attribute that is never negative and reaches this far is taken on a log scale."""

Columns = dict[str, NDArray[Any]]


def frame_columns(data: Any, names: Sequence[str] | None = None) -> Columns:
    """Return named columns of a frame, a mapping, a structured array, or records as dicts; or x0, x1, ...

    >>> list(frame_columns(np.zeros((2, 3))))
    ['x0', 'x1', 'x2']
    >>> frame_columns([{"a": 1}, {"a": 2, "b": "x"}])["b"].tolist()
    [None, 'x']
    """
    if isinstance(data, Mapping):
        columns = {str(name): np.asarray(column) for name, column in data.items()}
    elif hasattr(data, "collect") and not hasattr(data, "to_numpy"):
        raise InputError("a lazy frame has no data yet: collect it first")
    elif hasattr(data, "columns") and hasattr(data, "__getitem__"):
        columns = {str(name): np.asarray(data[name]) for name in data.columns}
    elif isinstance(data, np.ndarray) and data.dtype.names:
        columns = {name: data[name] for name in data.dtype.names}
    elif isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        keys = dict.fromkeys(str(key) for row in data for key in row)
        rows = [{str(key): value for key, value in row.items()} for row in data]
        columns = {key: np.array([row.get(key) for row in rows], object) for key in keys}
    elif isinstance(data, list | tuple) and data and all(isinstance(row, list | tuple) for row in data):
        if len({len(row) for row in data}) > 1:
            raise InputError("rows of different lengths")
        given = _names(len(data[0]), names)
        columns = {name: _column([row[i] for row in data]) for i, name in enumerate(given)}
    else:
        array = np.asarray(data)
        if array.ndim != 2:
            raise InputError(
                f"records are a frame, columns by name, dicts, or an array of rows, not of shape {array.shape}"
            )
        columns = {name: array[:, i] for i, name in enumerate(_names(array.shape[1], names))}
    for name, column in columns.items():
        if column.ndim != 1:
            raise InputError(f"column {name} is not a list of values: several records are asked for, one is [record]")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns of different lengths: {', '.join(f'{k} {n}' for k, n in list(lengths.items())[:5])}")
    if not columns:
        raise InputError("no columns: nothing to learn from")
    return columns


def _names(count: int, names: Sequence[str] | None) -> list[str]:
    given = [f"x{i}" for i in range(count)] if names is None else [str(name) for name in names]
    if len(given) != count:
        raise InputError(f"{len(given)} names for {count} columns")
    return given


def _column(values: list[Any]) -> NDArray[Any]:
    """A column of mixed values keeps them as they are."""
    column = np.empty(len(values), object)
    column[:] = values
    return column


def infer_schema(
    columns: Mapping[str, NDArray[Any]],
    *,
    normal: Any = "normal",
    transform: Transform | Literal["auto"] = "auto",
    name: str = "inferred",
) -> Schema:
    """A schema that fits the columns: numbers are numeric, truth values binary, the rest symbolic.

    `auto` takes numbers on a log scale that are never negative and reach 1,000. `normal`: the label or labels for it.
    """
    attributes = []
    for column, values in columns.items():
        kind = _kind(values)
        chosen: Transform = "none"
        if kind == "numeric":
            chosen = transform if transform != "auto" else _transform(_numbers(values, column))
        attributes.append(Attribute(name=column, kind=kind, transform=chosen))
    label = LABEL
    while any(a.name.lower() == label for a in attributes):
        label += "_"
    attributes.append(Attribute(name=label, role="label"))
    several = isinstance(normal, Sequence | np.ndarray) and not isinstance(normal, str)
    means_normal = tuple(str(name) for name in normal) if several else (str(normal),)
    return check_schema(Schema(name=name, attributes=tuple(attributes), normal=means_normal), name)


def _is_reader(data: Any) -> bool:
    """Return whether these are tables to be read. Properties of other people's frames are not evaluated to find out."""
    return all(getattr_static(data, name, None) is not None for name in ("skipped", "first_skipped", "sha256"))


def as_table(
    data: Any,
    labels: Any = None,
    *,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    normal: Any = "normal",
    fill: Mapping[str, float] | None = None,
) -> Table:
    """The records as a table. Without a schema, one is inferred; labels are given apart, or in the column `label`.

    A table, or a reader of tables such as `netclust.open_records` returns, is taken as it is, with its own labels.
    Numbers that are missing (None, NaN) are taken from `fill` by the attribute's name, and refused without it.
    """
    if isinstance(data, Table) or _is_reader(data):
        if labels is not None:
            raise InputError("records of a table or a reader have their own labels: leave out the others")
        return data if isinstance(data, Table) else concat_tables(list(data))
    columns = dict(frame_columns(data, names))
    if schema is None:
        own = next((name for name in columns if name.lower() == LABEL), None)
        if own is not None and labels is not None:
            raise InputError(f"the records have a column {own} besides the labels: leave it out, or rename it")
        labels = columns.pop(own) if own is not None else labels
        schema = infer_schema(columns, normal=normal)
    ready: dict[str, Any] = dict(columns)
    for a in schema.features:
        if a.name in columns:
            ready[a.name] = _ready(columns[a.name], a, None if fill is None else fill.get(a.name))
    label = schema.with_role("label")
    if labels is not None:
        if label is None:
            raise InputError(f"schema {schema.name} has no label attribute to put the labels in")
        said = np.asarray(labels).tolist()
        ready[label.name] = np.array(["" if is_missing(value) else str(value) for value in said], object)
        if len(ready[label.name]) != len(next(iter(columns.values()))):
            raise InputError(f"{len(ready[label.name])} labels for {len(next(iter(columns.values())))} records")
    elif label is not None and label.name in ready:
        ready[label.name] = np.array(["" if is_missing(v) else str(v) for v in ready[label.name].tolist()], object)
    return Table.from_columns(schema, ready)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or pandas' NA, which refuses to be compared.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(0)
    (True, True, False, False)
    """
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _kind(values: NDArray[Any]) -> Kind:
    if values.dtype == np.bool_:
        return "binary"
    if np.issubdtype(values.dtype, np.number):
        return "numeric"
    present = [v for v in values.tolist() if not is_missing(v)]
    if present and all(isinstance(v, bool | np.bool_) for v in present):
        return "binary"
    if present and all(isinstance(v, Real | Decimal) for v in present):
        return "numeric"
    return "symbolic"


def _numbers(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """As numbers, NaN where there is none."""
    if np.issubdtype(values.dtype, np.complexfloating):
        raise InputError(f"{name}: complex numbers cannot be compared")
    try:
        if values.dtype == object:
            values = np.array([math.nan if is_missing(v) else float(v) for v in values.tolist()])
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        bad = next(v for v in values.tolist() if not isinstance(v, Real | Decimal))
        raise InputError(f"{name}: {bad!r} is not a number") from None


def _transform(values: NDArray[np.float64]) -> Transform:
    finite = values[np.isfinite(values)]
    return "log1p" if len(finite) and finite.min() >= 0 and finite.max() >= WIDE else "none"


def _bit(value: Any, name: str) -> bool:
    """A truth value; what is missing is not set.

    >>> _bit("0", "land"), _bit(1.0, "land"), _bit(None, "land")
    (False, True, False)
    """
    text = "" if is_missing(value) else str(value).strip().lower()
    if text in ("", "0", "0.0", "false"):
        return False
    if text in ("1", "1.0", "true"):
        return True
    raise InputError(f"{name}: {value!r} is neither 0 nor 1")


def _ready(values: NDArray[Any], a: Attribute, fill: float | None) -> NDArray[Any]:
    """A feature's column as `Table.from_columns` takes it."""
    if a.kind == "numeric":
        numbers = _numbers(values, a.name)
        return numbers if fill is None else np.where(np.isfinite(numbers), numbers, fill)
    if a.kind == "binary":
        return np.array([_bit(v, a.name) for v in values.tolist()])
    return np.array(["" if is_missing(v) else str(v) for v in values.tolist()], object)
