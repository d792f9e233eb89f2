"""LIBSVM's multi-label format: `1,3 5:0.2 7:1` has labels 1 and 3, and 0.2 as feature 5.

>>> found = parse_libsvm("some.txt", "sea,sand 1:2.5 # a comment\\n 3:1\\n")
>>> found.features, found.labels, found.Y.tolist(), found.X.toarray().tolist()
(('feature 1', 'feature 2', 'feature 3'), ('sand', 'sea'), [[1, 1], [0, 0]], [[2.5, 0.0, 0.0], [0.0, 0.0, 1.0]])

Features count from 1, or from 0 where there is a feature 0. Labels are in the order of their numbers, else of names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.arff import MAX_COLUMNS
from netclust.datasets.documents import LIMITS, DocumentLimits
from netclust.datasets.label_names import MAX_LABELS
from netclust.datasets.number_rows import finite_number
from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.foundation.text import sanitize

__all__ = ["Libsvm", "is_libsvm", "parse_libsvm"]

_ROW = re.compile(r"(?:\s+[^\s:]+)?(?:\s+\d+:[^\s:]+)*\s*")
_NAME = "feature "


class Libsvm(NamedTuple):
    """A file's content; X is CSR."""

    features: tuple[str, ...]
    labels: tuple[str, ...]
    X: Any
    Y: NDArray[np.uint8] | None


class _Parsed(NamedTuple):
    values: list[float]
    places: list[int]
    starts: list[int]
    given: list[tuple[str, ...]]
    lines: list[int]


def is_libsvm(line: str) -> bool:
    """Whether a line looks like this format.

    >>> is_libsvm("1,2 3:0.5"), is_libsvm(" 3:0.5 # so"), is_libsvm("1,2"), is_libsvm("a:1,b:2")
    (True, True, False, False)
    """
    body = line.partition("#")[0]
    return ":" in body and _ROW.fullmatch(" " + body) is not None


def parse_libsvm(
    path: str | Path,
    text: str,
    features: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    limits: DocumentLimits = LIMITS,
) -> Libsvm:
    """What a file says; `path` is for messages. A model gives `features` and `labels`: others are not looked at, and
    refused. Without a label in the whole file, Y of a model is None.
    """
    rows = _parse(path, text, limits)
    if not rows.lines:
        raise InputError(f"{path}: no rows: LABEL,LABEL FEATURE:VALUE FEATURE:VALUE ...")
    places = np.array(rows.places, np.int64)
    starts = np.array(rows.starts, np.int64)
    if features is None:
        if not len(places):
            raise InputError(f"{path}: no row has a feature")
        first = 0 if places.min() == 0 else 1
        numbers = np.arange(first, places.max() + 1)
        names = tuple(f"{_NAME}{n}" for n in numbers)
    else:
        names = tuple(features)
        numbers = np.array([_number(name, path) for name in names], np.int64)
    X = _matrix(np.array(rows.values, np.float64), places, starts, numbers)
    known = labels if labels is not None else _in_order({label for row in rows.given for label in row})
    if len(known) > MAX_LABELS:
        raise InputError(f"{path}: {len(known):,} labels, more than {MAX_LABELS:,}")
    if labels is None and not known:
        raise InputError(f"{path}: no row has a label")
    return Libsvm(names, tuple(known), X, _truths(path, rows, known, optional=labels is not None))


def _parse(path: str | Path, text: str, limits: DocumentLimits) -> _Parsed:
    out = _Parsed([], [], [0], [], [])
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.partition("#")[0].split()
        if not parts:
            continue  # a row with neither labels nor features is written as 1:0
        where = f"{path} line {number}"
        given: tuple[str, ...] = ()
        if ":" not in parts[0]:
            given = tuple(parts.pop(0).split(","))
            if not all(given) or len(set(given)) < len(given):
                raise InputError(f"{where}: labels {sanitize(','.join(given)[:60])!r}: each once, with commas")
        here = _features(parts, where)
        if len(set(here)) < len(here):
            raise InputError(f"{where}: a feature is there twice")
        out.places.extend(here)
        out.values.extend(finite_number(part.partition(":")[2], "a feature", where) for part in parts)
        out.starts.append(len(out.places))
        out.given.append(given)
        out.lines.append(number)
        if len(out.lines) > limits.items:
            raise InputError(f"{where}: more than {limits.items:,} rows")
    return out


def _features(parts: list[str], where: str) -> list[int]:
    places = []
    for part in parts:
        at, colon, _ = part.partition(":")
        if not (colon and at.isascii() and at.isdigit() and len(at) < 10 and int(at) <= MAX_COLUMNS):
            raise InputError(f"{where}: {sanitize(part[:40])!r} is no FEATURE:VALUE (0 to {MAX_COLUMNS:,})")
        places.append(int(at))
    return places


def _number(name: str, path: str | Path) -> int:
    at = name.removeprefix(_NAME)
    if not (at.isascii() and at.isdigit()):
        why = f"LIBSVM's features have numbers, and {sanitize(name)!r} is wanted"
        raise InputError(f"{path}: {why}: give a file in the format that the model was trained on")
    return int(at)


def _matrix(
    values: NDArray[np.float64], places: NDArray[np.int64], starts: NDArray[np.int64], numbers: NDArray[np.int64]
) -> Any:
    """CSR of the features with these numbers, in their order."""
    column = np.full(max(int(places.max(initial=0)), int(numbers.max(initial=0))) + 1, -1)
    column[numbers] = np.arange(len(numbers))
    kept = column[places] >= 0
    count = np.concatenate([[0], np.cumsum(kept)])[starts]
    csr = require_optional("scipy.sparse", "reading sparse rows").csr_matrix
    X = csr((values[kept], column[places[kept]], count), shape=(len(starts) - 1, len(numbers)))
    X.eliminate_zeros()
    X.sort_indices()
    return X


def _in_order(labels: set[str]) -> list[str]:
    if all(re.fullmatch(r"-?\d{1,9}", label) for label in labels):
        return sorted(labels, key=int)
    return sorted(labels)


def _truths(path: str | Path, rows: _Parsed, labels: Sequence[str], optional: bool) -> NDArray[np.uint8] | None:
    if optional and not any(rows.given):
        return None
    place = {label: at for at, label in enumerate(labels)}
    Y = np.zeros((len(rows.given), len(labels)), np.uint8)
    for row, given in enumerate(rows.given):
        for label in given:
            if label not in place:
                raise InputError(f"{path} line {rows.lines[row]}: the model has no label {sanitize(label)!r}")
            Y[row, place[label]] = 1
    return Y
