"""Make item sets of one labelled collection: groups of whole clusters, or draws from some clusters. All are seeded.

>>> labels = np.repeat(np.arange(30), 10)
>>> [len(rows) for rows in whole_cluster_sets(labels, 60, 120, seed=1)]
[90, 100, 110]
>>> sets = drawn_sets(labels, items=20, clusters_low=3, clusters_high=5, sets=2, seed=1, clusters=range(10))
>>> [sorted(set(labels[rows].tolist())) for rows in sets]
[[2, 4, 5, 6, 9], [4, 6, 7, 8]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError

__all__ = ["drawn_sets", "whole_cluster_sets"]

Indices = NDArray[np.int64]

_ATTEMPTS = 2000


def whole_cluster_sets(labels: ArrayLike, low: int, high: int, seed: int) -> list[Indices]:
    """Disjoint sets of whole clusters, each of `low` to `high` items, every item in one: the items of each, ascending.

    Large clusters are placed first, each in a random set that has room, the more likely the more room it has.
    """
    cluster, size = _sizes(labels)
    if not 1 <= low <= high:
        raise InputError(f"sets of {low} to {high} items: needs 1 <= low <= high")
    if size.max(initial=0) > high:
        raise InputError(f"a cluster has {int(size.max())} items, and a set may have {high}")
    total = int(size.sum())
    fewest, most = -(-total // high), total // low
    middle = round(total / ((low + high) / 2))
    random = np.random.default_rng(seed)
    for attempt in range(_ATTEMPTS if most >= max(fewest, 1) else 0):
        sets = min(max(middle + (0, -1, 1)[attempt % 3], fewest, 1), most)
        place = _place(size, sets, high, random)
        if place is not None and np.bincount(place, size, sets).min() >= low:
            return [np.flatnonzero(place[cluster] == k) for k in range(sets)]
    raise InputError(f"{len(size)} clusters of {total} items in all do not go into sets of {low} to {high}")


def drawn_sets(
    labels: ArrayLike,
    items: int,
    clusters_low: int,
    clusters_high: int,
    sets: int,
    seed: int,
    clusters: Iterable[Any] | None = None,
) -> list[Indices]:
    """Disjoint sets of so many items of `clusters_low` to `clusters_high` clusters each, one item of each at least.

    `clusters` are the labels that may be drawn: give training and test sets different ones.
    """
    values = np.asarray(labels)
    names = np.unique(values) if clusters is None else np.array(sorted(set(clusters)))
    if not 1 <= clusters_low <= clusters_high <= min(len(names), items):
        raise InputError(
            f"sets of {items} items from {clusters_low} to {clusters_high} of {len(names)} clusters: "
            "needs 1 <= low <= high <= clusters, and no more clusters than items"
        )
    random = np.random.default_rng(seed)
    free = {k: random.permutation(np.flatnonzero(values == name)) for k, name in enumerate(names)}
    return [_draw(free, items, int(random.integers(clusters_low, clusters_high + 1)), random) for _ in range(sets)]


def _draw(free: dict[int, Indices], items: int, clusters: int, random: np.random.Generator) -> Indices:
    """One set, taken away from what is free: one item of each cluster, the others from all of them alike."""
    with_any = [k for k, rows in free.items() if len(rows)]
    if len(with_any) < clusters:
        raise InputError(f"{len(with_any)} clusters have items left, a set needs {clusters}: draw fewer sets")
    chosen = random.choice(with_any, clusters, replace=False)
    rest = np.repeat(chosen, [len(free[k]) - 1 for k in chosen])
    if len(rest) < items - clusters:
        raise InputError(f"{clusters} clusters have {len(rest) + clusters} items left, a set needs {items}: draw fewer")
    more = random.choice(rest, items - clusters, replace=False)
    found: Sequence[Indices] = []
    for k in chosen:
        take = 1 + int((more == k).sum())
        found = [*found, free[k][:take]]
        free[k] = free[k][take:]
    return np.sort(np.concatenate(found))


def _place(size: Indices, sets: int, high: int, random: np.random.Generator) -> Indices | None:
    """Which set every cluster goes to; None if there was no room for one."""
    place = np.zeros(len(size), np.int64)
    room = np.full(sets, high, np.int64)
    order = random.permutation(len(size))
    for c in order[np.argsort(-size[order], kind="stable")]:
        chance = np.maximum(room - size[c] + 1, 0)
        if not chance.any():
            return None
        place[c] = random.choice(sets, p=chance / chance.sum())
        room[place[c]] -= size[c]
    return place


def _sizes(labels: ArrayLike) -> tuple[Indices, Indices]:
    _, cluster, size = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return cluster.ravel(), size.astype(np.int64)
