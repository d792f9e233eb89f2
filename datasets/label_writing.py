"""Label tables as files that `read_labels` and other people's tools read: ARFF (as MEKA has it), LIBSVM, CSV.

>>> from netclust.datasets.label_sets import LabelSetTable
>>> X, Y = np.array([[0.5, 0.0], [0.0, 2.0]]), np.array([[1, 0], [0, 0]], np.uint8)
>>> table = LabelSetTable(("size", "sea depth"), ("wet", "dry"), X, Y, ("1", "2"))
>>> print("".join(label_lines(table, "csv")), end="")
wet,dry,size,sea depth
1,0,0.5,0
0,0,0,2
>>> print("".join(label_lines(table, "libsvm")), end="")
0 1:0.5
 2:2
>>> print("".join(label_lines(table, "arff", name="ponds")).splitlines()[0])
@relation 'ponds: -C 2'
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.label_sets import LabelSetTable
from netclust.errors import InputError

__all__ = ["WrittenFormat", "label_lines"]

WrittenFormat = Literal["arff", "libsvm", "csv"]


def label_lines(table: LabelSetTable, format: WrittenFormat, name: str = "labels") -> Iterator[str]:  # noqa: A002
    """Yield the lines of a file. LIBSVM's format has no names: labels are 0, 1, ..., and features 1, 2, ..."""
    Y = table.Y
    if Y is None:
        raise InputError("the rows have no labels: there is nothing to write them with")
    if format == "libsvm":
        return _libsvm(table, Y)
    return _arff(table, Y, name) if format == "arff" else _csv(table, Y)


def _entries(X: object) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """The places and values of every row that are not 0."""
    if isinstance(X, np.ndarray):
        for row in X:
            at = np.flatnonzero(row)
            yield at, row[at]
        return
    starts, indices, data = X.indptr, X.indices, X.data  # type: ignore[attr-defined]
    for begin, end in pairwise(starts):
        yield indices[begin:end], data[begin:end]


def _number(value: float) -> str:
    """The shortest text that reads as the same number.

    >>> _number(2.0), _number(0.1)
    ('2', '0.1')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(float(value))


def _libsvm(table: LabelSetTable, Y: NDArray[np.uint8]) -> Iterator[str]:
    for labels, (at, values) in zip(Y, _entries(table.X), strict=True):
        on = ",".join(map(str, np.flatnonzero(labels).tolist()))
        features = [f"{k + 1}:{_number(v)}" for k, v in zip(at.tolist(), values.tolist(), strict=True)]
        yield f"{on} {' '.join(features or ['1:0'])}\n"


def _arff(table: LabelSetTable, Y: NDArray[np.uint8], name: str) -> Iterator[str]:
    yield f"@relation {_quoted(f'{name}: -C {len(table.labels)}')}\n\n"
    for label in table.labels:
        yield f"@attribute {_quoted(label)} {{0,1}}\n"
    for feature in table.features:
        yield f"@attribute {_quoted(feature)} numeric\n"
    yield "\n@data\n"
    first = Y.shape[1]
    if isinstance(table.X, np.ndarray):
        for labels, row in zip(Y.tolist(), table.X.tolist(), strict=True):
            yield ",".join([*map(str, labels), *map(_number, row)]) + "\n"
        return
    for labels, (at, values) in zip(Y, _entries(table.X), strict=True):
        on = [f"{k} 1" for k in np.flatnonzero(labels).tolist()]
        features = [f"{first + k} {_number(v)}" for k, v in zip(at.tolist(), values.tolist(), strict=True)]
        yield "{" + ",".join(on + features) + "}\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _csv(table: LabelSetTable, Y: NDArray[np.uint8]) -> Iterator[str]:
    yield _csv_line([*table.labels, *table.features])
    for at, labels in enumerate(Y.tolist()):
        row = table.X[at] if isinstance(table.X, np.ndarray) else table.X[[at]].toarray()[0]
        yield _csv_line([*map(str, labels), *map(_number, row.tolist())])


def _csv_line(cells: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
