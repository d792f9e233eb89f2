"""Rows with features and any number of labels each: ARFF (Mulan's and MEKA's), LIBSVM's multi-label format, CSV.

    ARFF     dense or sparse; which attributes are labels: `netclust.datasets.label_names`
    LIBSVM   1,3 5:0.2 7:1      labels 1 and 3; without labels the line begins with a blank, or with 5:0.2
    CSV      a header; label columns are named, all others are numbers

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "some.txt")
...     _ = path.write_text("1,3 1:0.5 3:1\\n 2:2\\n3 1:1\\n")
...     table = read_labels(path)
>>> table.labels, table.Y.tolist(), table.X.toarray()[0].tolist()
(('1', '3'), [[1, 1], [0, 0], [0, 1]], [0.5, 0.0, 1.0])

X is dense float64 or CSR, as the file is. Files may be packed (gz, xz, zst, zip); text is UTF-8, or else Latin-1.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.arff import parse_arff
from netclust.datasets.documents import LIMITS, DocumentLimits, decode_document, read_document_bytes
from netclust.datasets.label_names import LabelChoice, pick_labels
from netclust.datasets.libsvm import is_libsvm, parse_libsvm
from netclust.datasets.number_rows import NumberRows
from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = ["LabelChoice", "LabelFormat", "LabelSetTable", "read_labels"]

LabelFormat = Literal["auto", "arff", "libsvm", "csv"]


@dataclass(frozen=True, eq=False)
class LabelSetTable:
    """Rows, in the order of the file."""

    features: tuple[str, ...]
    labels: tuple[str, ...]
    X: Any
    """[rows, features]: float64, dense or CSR."""
    Y: NDArray[np.uint8] | None
    """[rows, labels]: 1 where a row has a label; None: nobody knows."""
    ids: tuple[str, ...]
    sha256: str = ""
    """Of the file's unpacked bytes."""

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    def rows(self, index: Sequence[int] | NDArray[np.int64]) -> LabelSetTable:
        """Some of the rows, in the order that is asked for."""
        at = np.asarray(index, np.int64)
        Y = None if self.Y is None else self.Y[at]
        return replace(self, X=self.X[at], Y=Y, ids=tuple(self.ids[int(i)] for i in at))


class _Whole(NamedTuple):
    """All columns of a file, labels among them."""

    names: tuple[str, ...]
    X: Any
    ids: tuple[str, ...]
    relation: str = ""


def read_labels(
    path: str | Path,
    *,
    format: LabelFormat = "auto",  # noqa: A002 (what it is called in other readers too)
    choice: LabelChoice = LabelChoice(),  # noqa: B008 (a tuple)
    id_column: str | None = None,
    features: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    limits: DocumentLimits = LIMITS,
) -> LabelSetTable:
    """The rows of a file. `id_column` is a column of a CSV that names rows; without, they are numbered from 1.

    A model gives its `features` and `labels`, and gets them in this order. Its labels may be absent, all of them: Y is
    None then. Other columns are left out; features that a LIBSVM file does not have are 0.
    """
    content = read_document_bytes(path, limits.total_bytes)
    text = decode_document(content)
    sha256 = hashlib.sha256(content).hexdigest()
    kind = _recognised(path, text) if format == "auto" else format
    if id_column is not None and kind != "csv":
        raise InputError(f"{path}: a column of ids is for a CSV")
    if kind == "libsvm":
        if any(choice):
            raise InputError(f"{path}: LIBSVM's format says itself what labels a row has: leave out labels and prefix")
        found = parse_libsvm(path, text, features, labels, limits)
        ids = _numbered(found.X.shape[0])
        return LabelSetTable(found.features, found.labels, found.X, found.Y, ids, sha256)
    if kind == "arff":
        whole = _arff(path, text, limits)
    else:
        whole = _csv(path, text, id_column, choice if features is None else {*features, *(labels or ())}, limits)
    if features is None:
        labels = pick_labels(path, whole.names, choice, whole.relation)
        taken = set(labels)
        features = [name for name in whole.names if name not in taken]
    elif labels is not None:
        labels = _known(path, whole, labels)
    X = _columns(path, whole, features)
    Y = None if not labels else _truths(path, whole, labels)
    return LabelSetTable(tuple(features), tuple(labels or ()), X, Y, whole.ids, sha256)


def _recognised(path: str | Path, text: str) -> LabelFormat:
    for line in io.StringIO(text):
        body = line.strip()
        if body and body[0] not in "%#":
            if body[0] == "@":
                return "arff"
            return "libsvm" if is_libsvm(body) else "csv"
    raise InputError(f"{path}: there are no rows in it")


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(1, count + 1)))


def _arff(path: str | Path, text: str, limits: DocumentLimits) -> _Whole:
    found = parse_arff(path, text, limits)
    return _Whole(found.names, found.X, _numbered(found.X.shape[0]), found.relation)


def _csv(
    path: str | Path, text: str, id_column: str | None, wanted: LabelChoice | set[str], limits: DocumentLimits
) -> _Whole:
    """All columns but the ids', or those that a model wants."""
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",\t;", key=first.count), strict=True)
    ids: list[str] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        if not all(header) or len(set(header)) < len(header):
            raise InputError(
                f"{path} line 1: every column needs a name of its own: {sanitize(', '.join(header)[:200])}"
            )
        if id_column is not None and id_column not in header:
            raise InputError(f"{path} line 1: no column {id_column!r}: there are {sanitize(', '.join(header)[:200])}")
        at = None if id_column is None else header.index(id_column)
        kept = [place for place in range(len(header)) if place != at]
        if isinstance(wanted, set):
            kept = [place for place in kept if header[place] in wanted]
        names = tuple(header[place] for place in kept)
        if not isinstance(wanted, set):
            pick_labels(path, names, wanted)  # what is wrong with the header is said before what is wrong with a row
        rows = NumberRows(path, names)
        for row in reader:
            if not row:
                continue  # a blank line
            where = f"{path} line {reader.line_num}"
            if len(row) != len(header):
                raise InputError(f"{where}: {len(row)} columns, expected {len(header)}")
            ids.append(str(len(ids) + 1) if at is None else row[at].strip())
            rows.add(row if len(kept) == len(row) else [row[place] for place in kept], reader.line_num)
            if len(ids) > limits.items:
                raise InputError(f"{where}: more than {limits.items:,} rows")
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: cannot be read as CSV: {error}") from None
    if not ids:
        raise InputError(f"{path}: no rows: a header line, then one row a line")
    return _Whole(names, rows.matrix(), tuple(ids))


def _columns(path: str | Path, whole: _Whole, names: Sequence[str]) -> Any:
    if not names:
        raise InputError(f"{path}: no column is left to tell labels by")
    if tuple(names) == whole.names:
        return whole.X
    place = {name: at for at, name in enumerate(whole.names)}
    missing = [name for name in names if name not in place]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InputError(f"{path}: no column {sanitize(missing[0])!r}{more}, which the model needs")
    return whole.X[:, [place[name] for name in names]]


def _known(path: str | Path, whole: _Whole, labels: Sequence[str]) -> tuple[str, ...]:
    """A model's labels, if the file has them."""
    there = set(whole.names)
    missing = [name for name in labels if name not in there]
    if missing and len(missing) < len(labels):
        raise InputError(f"{path}: no column for the label {sanitize(missing[0])!r}, but for others of the model")
    return () if missing else tuple(labels)


def _truths(path: str | Path, whole: _Whole, labels: Sequence[str]) -> NDArray[np.uint8]:
    Y = _columns(path, whole, labels)
    Y = Y if isinstance(Y, np.ndarray) else Y.toarray()
    wrong = (Y != 0) & (Y != 1)
    if wrong.any():
        row, at = map(int, np.argwhere(wrong)[0])
        why = "a label is 0 or 1 (ARFF: or no and yes)"
        raise InputError(f"{path} row {row + 1}: label {sanitize(labels[at])} is {Y[row, at]:g}: {why}")
    return Y.astype(np.uint8)
