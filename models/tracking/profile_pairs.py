"""Pairs of cluster profiles: which are near enough to be the same, and what a matching model sees of them.

>>> from netclust.linking.cluster_profiles import Spread
>>> def seen(ident, flag, rate):
...     return ClusterProfile(
...         id=ident, label="novel", normal=False, records=9, anomalous=9, members=9, first_time=-1, last_time=-1,
...         top_score=1.0, numbers={"rate": Spread(rate, 0.1, rate)}, values={"flag": {flag: 1.0}},
...         firsts={"flag": flag})
>>> pairs = candidate_pairs([seen(31, "S0", 0.9)], [seen(40, "SF", 0.4), seen(41, "S0", 0.8)])
>>> pairs.fields
('apart rate', 'shared flag', 'size', 'spread', 'apart', 'apart at first')
>>> profile_distances(pairs).round(2).tolist()  # of numbers by the largest difference, and of values
[2.0, 0.2]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.candidate_pairs import CandidatePairs
from netclust.linking.cluster_profiles import ClusterProfile

__all__ = ["NEAREST", "candidate_pairs", "pairs_at", "profile_distances"]

NEAREST = 32
"""Of every cluster, so many candidates of the other list are considered."""

Table2 = NDArray[np.float64]


def candidate_pairs(old: Sequence[ClusterProfile], new: Sequence[ClusterProfile], name: str = "") -> CandidatePairs:
    """Pairs of near clusters, with what a matching model sees of them; names are the clusters' numbers."""
    apart, shared = _numbers_apart(old, new), _values_shared(old, new)
    ranges = {a: max(float(np.nanmax(d)) if np.isfinite(d).any() else 0.0, 1e-9) for a, d in apart.items()}
    scaled = [np.nan_to_num(d) / ranges[a] for a, d in apart.items()]
    distance = _mean(scaled, len(old), len(new)) + _mean([1 - s for s in shared.values()], len(old), len(new))
    first = _firsts_apart(old, new)
    records = [np.log([max(p.records, 1) for p in side]) for side in (old, new)]
    spread = np.mean([np.abs(d) for d in _spreads_apart(old, new)] or [np.zeros((len(old), len(new)))], axis=0)
    columns = {f"apart {a}": np.nan_to_num(d) for a, d in apart.items()}
    columns |= {f"shared {a}": s for a, s in shared.items()}
    columns |= {
        "size": np.abs(records[0][:, None] - records[1][None, :]),
        "spread": spread,
        "apart": distance,
        "apart at first": first,
    }
    left, right = np.nonzero(_near(distance))
    return CandidatePairs(
        name,
        tuple(str(old[i].id) for i in left.tolist()),
        tuple(str(new[j].id) for j in right.tolist()),
        np.column_stack([column[left, right] for column in columns.values()]),
        tuple(columns),
    )


def profile_distances(pairs: CandidatePairs, what: Literal["apart", "apart at first"] = "apart") -> NDArray[np.float64]:
    """Return the unlearned distance of every pair: mean difference of scaled numbers, and mean share of values not
    shared."""
    return pairs.features[:, pairs.fields.index(what)]


def pairs_at(pairs: CandidatePairs, rows: NDArray[np.intp], match: NDArray[np.bool_] | None = None) -> CandidatePairs:
    """Some of the pairs."""
    left, right = (tuple(names[i] for i in rows) for names in (pairs.left, pairs.right))
    return CandidatePairs(pairs.name, left, right, pairs.features[rows], pairs.fields, match)


def _numbers_apart(old: Sequence[ClusterProfile], new: Sequence[ClusterProfile]) -> dict[str, Table2]:
    """Of every numeric attribute, how far the means are apart; NaN where one list does not have it."""
    names = sorted({name for profile in (*old, *new) for name in profile.numbers})
    return {name: _apart(*(_column(side, name, "mean") for side in (old, new))) for name in names}


def _spreads_apart(old: Sequence[ClusterProfile], new: Sequence[ClusterProfile]) -> list[Table2]:
    names = sorted({name for profile in (*old, *new) for name in profile.numbers})
    return [np.nan_to_num(_apart(*(_column(side, name, "spread") for side in (old, new)))) for name in names]


def _firsts_apart(old: Sequence[ClusterProfile], new: Sequence[ClusterProfile]) -> Table2:
    """The same distance, of the oldest records alone."""
    numbers = sorted({name for profile in (*old, *new) for name in profile.numbers})
    apart = [np.nan_to_num(_apart(*(_column(side, name, "first") for side in (old, new)))) for name in numbers]
    symbols = sorted({name for profile in (*old, *new) for name in profile.firsts})
    other = [
        np.array([[float(a.firsts.get(name) != b.firsts.get(name)) for b in new] for a in old]) for name in symbols
    ]
    scaled = [d / max(float(d.max(initial=0.0)), 1e-9) for d in apart]
    return _mean(scaled, len(old), len(new)) + _mean(other, len(old), len(new))


def _values_shared(old: Sequence[ClusterProfile], new: Sequence[ClusterProfile]) -> dict[str, Table2]:
    """Of every other attribute, the share of records that have a value in common."""
    found = {}
    for name in sorted({name for profile in (*old, *new) for name in profile.values}):
        every = sorted({value for profile in (*old, *new) for value in profile.values.get(name, ())})
        shared = np.zeros((len(old), len(new)))
        for value in every:
            a, b = (np.array([p.values.get(name, {}).get(value, 0.0) for p in side]) for side in (old, new))
            shared += np.minimum(a[:, None], b[None, :])
        found[name] = shared
    return found


def _column(side: Sequence[ClusterProfile], name: str, part: str) -> NDArray[np.float64]:
    values: list[Any] = [profile.numbers.get(name) for profile in side]
    return np.array([np.nan if value is None else getattr(value, part) for value in values], np.float64)


def _apart(a: NDArray[np.float64], b: NDArray[np.float64]) -> Table2:
    return np.abs(a[:, None] - b[None, :])


def _mean(tables: Sequence[Table2], rows: int, columns: int) -> Table2:
    return np.asarray(np.mean(tables, axis=0)) if tables else np.zeros((rows, columns))


def _near(distance: Table2) -> NDArray[np.bool_]:
    """The nearest of every row and of every column."""
    near = np.zeros(distance.shape, np.bool_)
    for axis in (0, 1):
        order = np.argsort(distance, axis=axis, kind="stable")
        nearest = np.take(order, np.arange(min(NEAREST, distance.shape[axis])), axis=axis)
        np.put_along_axis(near, nearest, True, axis)
    return near
