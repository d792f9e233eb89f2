"""What people have (arrays, frames, pair features) as the pair features of item sets.

>>> sets = SetInput().learn([np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[4.0, 1.0], [6.0, 1.0], [8.0, 1.0]])])
>>> sets.features([np.array([[1.0, 1.0], [1.0, 5.0]])])[0].scores(np.array([1.0, 1.0, 0.0])).round(3).tolist()
[4.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.frames import is_missing
from netclust.structures.pairs import ComputedPairs, PairFeatures, Relation, StoredPairs, check_numbers

__all__ = ["SetInput", "check_labels", "sets_from_frame"]


@dataclass(frozen=True, eq=False)
class SetInput:
    """How an item's own features become those of pairs: by `relation`, in units of `scale` (their training spread)."""

    relation: Relation = "difference"
    constant: bool = True
    scale: NDArray[np.float64] | None = None
    of: Literal["items", "pairs"] | None = None
    """What was trained on: items' own features, or pair features. Their weights mean different things."""
    fields: tuple[str, ...] = ()
    """The columns of frames, by which those of later frames are chosen; () where there were arrays."""

    def learn(self, sets: Sequence[Any]) -> SetInput:
        """The same with a scale from training sets; pair features have none."""
        given = replace(self, fields=next((names for names in map(_columns, _checked(sets)) if names), ()))
        arrays = [found for found in map(given._own, sets) if found is not None]
        widths = {array.shape[1] for array in arrays}
        if len(widths) > 1:
            raise InputError(f"item sets have different numbers of features: {', '.join(map(str, sorted(widths)))}")
        if not arrays:
            return replace(given, of="pairs")
        for n, array in enumerate(arrays):
            if not len(array):
                raise InputError(f"set {n} is empty: a set has one item or more")
            check_numbers(array, f"set {n}, item and feature")
        spread = np.concatenate(arrays).std(axis=0)
        return replace(given, scale=np.where(spread > 0, spread, 1.0), of="items")

    def features(self, sets: Sequence[Any], dimension: int | None = None) -> list[PairFeatures]:
        """The pair features of every set: given ones as they are, [m, m, D] arrays pair by pair, items computed."""
        found = [self._features(x, n) for n, x in enumerate(_checked(sets))]
        for n, pairs in enumerate(found):
            if dimension is not None and pairs.dimension != dimension:
                raise InputError(f"set {n} has pairs with {pairs.dimension} features, the others have {dimension}")
            dimension = pairs.dimension
        return found

    def _features(self, x: Any, n: int) -> PairFeatures:
        items = self._own(x)
        if self.of is not None and (items is None) != (self.of == "pairs"):
            raise InputError(f"set {n}: trained were {self.of}' features, and these are others'")
        if items is not None:
            scale = np.ones(items.shape[1]) if self.scale is None else self.scale
            if len(scale) != items.shape[1]:
                raise InputError(f"set {n} has {items.shape[1]} features an item, trained were {len(scale)}")
            check_numbers(items, f"set {n}, item and feature")
            pairs: PairFeatures = ComputedPairs(items / scale, self.relation, self.constant)
        elif isinstance(x, np.ndarray):
            left, right = np.triu_indices(len(x), 1)
            pairs = StoredPairs(len(x), np.asarray(x, np.float64)[left, right])
        else:
            pairs = x
        if not pairs.items:
            raise InputError(f"set {n} is empty: a set has one item or more")
        return pairs

    def _own(self, x: Any) -> NDArray[np.float64] | None:
        """The items' own features, of a frame by the names of its columns; None of pair features."""
        names = _columns(x)
        if self.fields and names and names != self.fields:
            missing = [name for name in self.fields if name not in names]
            if missing:
                raise InputError(
                    f"a frame has no column {missing[0]!r}, which was trained on: it has {', '.join(names)}"
                )
            x = x[list(self.fields)]
        return _items(x)


def _columns(x: Any) -> tuple[str, ...]:
    """The names of a frame's columns, if they are names."""
    names = tuple(getattr(x, "columns", ()))
    return names if all(isinstance(name, str) for name in names) else ()


def _checked(sets: Sequence[Any]) -> Sequence[Any]:
    if not isinstance(sets, list | tuple):
        raise InputError("give a list of item sets: arrays [items, features], frames, or pair features")
    if not sets:
        raise InputError("there are no item sets")
    return sets


def _items(x: Any) -> NDArray[np.float64] | None:
    """An array [items, features], or None of what are pair features already."""
    if isinstance(x, np.ndarray) and x.ndim == 3:
        if x.shape[0] != x.shape[1]:
            raise InputError(f"pair features have shape {list(x.shape)}, expected [items, items, features]")
        return None
    if hasattr(x, "weighted_sum"):
        return None
    try:
        array = np.asarray(x, np.float64, order="C")  # a frame's columns lie otherwise: sums would round otherwise
    except (TypeError, ValueError) as error:
        raise InputError(f"items need features that are numbers ({error}); for text see netclust.TextPairs") from None
    if array.ndim != 2:
        raise InputError(f"a set is an array [items, features], not of shape {list(array.shape)}")
    return array


def check_labels(sets: Sequence[PairFeatures], labels: Sequence[Any]) -> list[NDArray[np.int64]]:
    """Cluster labels of anything as numbers, one a set and item; missing ones are refused."""
    if len(sets) != len(labels):
        raise InputError(f"{len(sets)} item sets, but clusterings of {len(labels)}")
    found = []
    for n, (pairs, names) in enumerate(zip(sets, labels, strict=True)):
        given = np.asarray(names, object)
        if given.shape != (pairs.items,):
            raise InputError(f"set {n} has {pairs.items} items, but {given.size} labels")
        if any(is_missing(name) for name in given.tolist()):
            raise InputError(f"set {n}: item {next(k for k, v in enumerate(given) if is_missing(v))} has no label")
        found.append(np.unique(given.astype(str), return_inverse=True)[1].ravel().astype(np.int64))
    return found


def sets_from_frame(
    frame: Any, *, set_column: str, label: str | None = None, fields: Sequence[str] | None = None
) -> tuple[list[NDArray[np.float64]], list[NDArray[Any]]]:
    """Item sets and labels from one pandas frame with a row an item, in the order of first appearance.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"day": [1, 2, 1], "topic": ["a", "b", "c"], "size": [3.0, 4.0, 5.0]})
    >>> X, y = sets_from_frame(frame, set_column="day", label="topic")
    >>> [x.tolist() for x in X], [labels.tolist() for labels in y]
    ([[[3.0], [5.0]], [[4.0]]], [['a', 'c'], ['b']])
    """
    for name in (set_column, *([] if label is None else [label]), *(fields or ())):
        if name not in frame.columns:
            raise InputError(f"the frame has no column {name!r}: it has {', '.join(map(str, frame.columns))}")
    if frame[set_column].isna().any():
        row = int(np.flatnonzero(frame[set_column].isna().to_numpy())[0])
        raise InputError(f"row {row} has no value in column {set_column!r}: every item needs its set")
    used = list(fields) if fields else [name for name in frame.columns if name not in (set_column, label)]
    X, y = [], []
    for _, rows in frame.groupby(set_column, sort=False):
        items = _items(rows[used].to_numpy())
        X.append(np.zeros((0, 0)) if items is None else items)
        y.append(rows[label].to_numpy() if label is not None else np.zeros(0))
    return X, y
