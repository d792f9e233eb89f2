"""Candidate pairs to match, from a CSV: a line a pair, with numbers that describe it and whether it is a match.

Columns `left` and `right` name what is to be paired and `example` the problem that the pair belongs to (all lines are
one problem without it); `match` is 1 for pairs that are matched and 0 for others. All other columns are features.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "pairs.csv")
...     _ = path.write_text("left,right,match,overlap\\na,x,1,0.9\\na,y,0,0.2\\nb,y,1,0.7\\n")
...     (example,), fields = read_candidate_pairs(path)
>>> fields, example.left, example.right, example.match.tolist(), example.features.ravel().tolist()
(('overlap',), ('a', 'a', 'b'), ('x', 'y', 'y'), [True, False, True], [0.9, 0.2, 0.7])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.item_sets import LIMITS, DocumentLimits, ItemTable, read_items, sets_of
from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = ["CandidatePairs", "read_candidate_pairs"]

ROLES = ("left", "right", "match")


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """The candidates of one problem, a pair a row; `match` is None where it is not known."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    features: NDArray[np.float64]
    fields: tuple[str, ...]
    match: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.left)


def read_candidate_pairs(
    path: str | Path, *, fields: Sequence[str] | None = None, limits: DocumentLimits = LIMITS
) -> tuple[list[CandidatePairs], tuple[str, ...]]:
    """The problems of a file in order of first appearance, and the features' names: all other columns by default."""
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder: candidate pairs are in a CSV with the columns left and right")
    whole = read_items(path, limits=limits)
    for role in ROLES[:2]:
        if role not in whole.fields:
            raise InputError(
                f"{path} line 1: no column {role!r}: a line is a pair, named in the columns left and right"
            )
    other = tuple(name for name in whole.fields if name not in (*ROLES, "example"))
    wanted = other if fields is None else tuple(fields)
    if missing := [name for name in wanted if name not in other]:
        raise InputError(f"{path} line 1: no column {sanitize(missing[0])!r} with a feature of the pairs")
    if not wanted:
        raise InputError(f"{path} line 1: no column with a feature: name what describes a pair, in numbers")
    if "example" in whole.fields:
        whole = ItemTable(whole.fields, whole.columns, whole.ids, sets=whole.column("example"))
    return [_problem(path, part, wanted) for part in sets_of(whole)], wanted


def _problem(path: str | Path, part: ItemTable, fields: tuple[str, ...]) -> CandidatePairs:
    left, right = part.column("left"), part.column("right")
    for role in (left, right):
        if "" in role:
            raise InputError(f"{path}: pair {part.ids[role.index('')]} lacks a name in its column left or right")
    features = np.column_stack([_numbers(path, part, field) for field in fields])
    match = None
    if "match" in part.fields:
        marks = part.column("match")
        if wrong := [k for k, mark in enumerate(marks) if mark not in ("0", "1")]:
            k = wrong[0]
            raise InputError(f"{path}: {_pair(part, k)}: match is {sanitize(marks[k][:40])!r}, expected 0 or 1")
        match = np.array([mark == "1" for mark in marks], np.bool_)
    name = part.sets[0] if part.sets else ""
    return CandidatePairs(name, left, right, features, fields, match)


def _numbers(path: str | Path, part: ItemTable, field: str) -> NDArray[np.float64]:
    texts = part.column(field)
    values = np.empty(len(texts))
    for k, text in enumerate(texts):
        try:
            values[k] = float(text)
        except ValueError:
            values[k] = np.nan
        if not abs(values[k]) <= 1e100:
            what = f"{_pair(part, k)}: {sanitize(field)} is {sanitize(text[:40])!r}"
            raise InputError(f"{path}: {what}, expected a number")
    return values


def _pair(part: ItemTable, k: int) -> str:
    """A row as messages name it: the number of the pair counts from the line below the header."""
    return f"pair {part.ids[k]} ({sanitize(part.column('left')[k])}, {sanitize(part.column('right')[k])})"
