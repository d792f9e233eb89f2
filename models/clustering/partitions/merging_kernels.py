"""Greedy merging of clusters whose sums of scores are in a matrix: C_G and its loss-augmented form (spec 3.4).

Clusters are named by their smallest member, rows and columns alike; merging b into a < b adds row and column b to a.
Ties go to the lowest (a, b). Every row remembers its best partner of a higher name; a row that loses its partner keeps
the old sum as an upper bound and is looked through only when that bound is the highest of all, so a merge costs O(m)
and a few such looks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel

PAIRWISE, MITRE = 0, 1
MARGIN, SLACK = 0, 1


class Merges(NamedTuple):
    """Merges in their order: b joins a < b, both named by their smallest member, and what that gains."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    gain: NDArray[np.float64]


class MergingTarget(NamedTuple):
    """What a violating search maximises, and the truth's size."""

    items: int
    truths: int
    loss: int
    rescaling: int
    weight: float
    gold: float


@kernel
def fill_square(values: Any, matrix: Any) -> None:
    """Scores of all pairs, in the order of `pdist`, into a symmetric matrix."""
    at = 0
    for i in range(len(matrix)):
        matrix[i, i] = 0.0
        for j in range(i + 1, len(matrix)):
            matrix[i, j] = values[at]
            matrix[j, i] = values[at]
            at += 1


@inner
def _look_through(S: Any, alive: Any, count: Any, at: Any) -> Any:
    """The best partner of a higher name of the row at this place of `alive`, and their sum."""
    i, best, partner = alive[at], -np.inf, -1
    for k in range(at + 1, count):
        if S[i, alive[k]] > best:
            best, partner = S[i, alive[k]], alive[k]
    return best, partner


@inner
def _add_cluster(M: Any, alive: Any, count: Any, a: Any, b: Any) -> None:
    """Row and column b of a symmetric matrix of sums are added to a."""
    for k in range(count):
        i = alive[k]
        M[a, i] += M[b, i]
        M[i, a] = M[a, i]


@inner
def _without(alive: Any, count: Any, b: Any) -> Any:
    """Take b out of the ascending list; the number that is left."""
    kept = 0
    for k in range(count):
        if alive[k] != b:
            alive[kept] = alive[k]
            kept += 1
    return kept


@kernel
def merge_dense(S: Any, merges: Any) -> Any:
    """Algorithm 3 on a symmetric matrix of sums, which it uses up; returns how many merges there are."""
    m = len(S)
    alive, count = np.arange(m), m
    best, partner = np.full(m, -np.inf), np.full(m, -1)
    for k in range(m):
        best[k], partner[k] = _look_through(S, alive, m, k)
    done = 0
    while count > 1:
        at = 0
        for k in range(1, count):
            if best[alive[k]] > best[alive[at]]:
                at = k
        a = alive[at]
        if best[a] <= 0.0:
            break
        if partner[a] < 0:  # only a bound
            best[a], partner[a] = _look_through(S, alive, count, at)
            continue
        b = partner[a]
        merges.a[done], merges.b[done], merges.gain[done] = a, b, best[a]
        done += 1
        count = _without(alive, count, b)
        _add_cluster(S, alive, count, a, b)
        for k in range(count):
            i = alive[k]
            if i < a and (S[i, a] > best[i] or (S[i, a] == best[i] and partner[i] >= a)):
                best[i], partner[i] = S[i, a], a
            elif partner[i] == b or (i < a and partner[i] == a):
                partner[i] = -1
        best[a], partner[a] = _look_through(S, alive, count, at)
    return done


@inner
def merging_loss(target: Any, wrong: Any, cells: Any, clusters: Any) -> Any:
    """Return Delta_P of so many wrong pairs, or Delta_M of so many cells and clusters, in percent."""
    m = target.items
    if target.loss == PAIRWISE:
        return 100.0 * wrong / (m * (m - 1) // 2) if m > 1 else 0.0
    most = 2 * m - target.truths - clusters
    return 100.0 * (1.0 - 2.0 * (m - cells) / most) if most > 0 else 0.0


@inner
def merging_cost(target: Any, within: Any, loss: Any) -> Any:
    """Return H, up to the constant that is the same for all partitions: the search raises it."""
    if target.rescaling == MARGIN:
        return within + target.weight * loss
    return loss * (1.0 + within - target.gold)


@inner
def _highest_cost(target: Any, within: Any, loss: Any) -> Any:
    """Return a bound on H of everything whose score and loss are at most these."""
    cost = merging_cost(target, within, loss)
    return max(cost, 0.0) if target.rescaling == SLACK else cost


@inner
def tally(target: Any, counts: Any) -> Any:
    """(wrong pairs, cells, clusters) of the partition with these counts of [cluster, truth]."""
    wrong, cells, clusters = 0, 0, 0
    for c in range(counts.shape[0]):
        size = 0
        for t in range(counts.shape[1]):
            n = counts[c, t]
            size += n
            wrong -= n * (n - 1)  # right twice: in the cluster and in the truth
            cells += n > 0
        wrong += size * (size - 1) // 2
        clusters += size > 0
    for t in range(counts.shape[1]):
        size = 0
        for c in range(counts.shape[0]):
            size += counts[c, t]
        wrong += size * (size - 1) // 2
    return wrong, cells, clusters


@inner
def _changes(target: Any, counts: Any, X: Any) -> None:
    """X[i, j] of merging i and j: how many more pairs are wrong, or how many truths meet both (`common`)."""
    k, truths = counts.shape
    sizes, met = np.zeros(k, np.int64), np.zeros(truths, np.int64)
    for i in range(k):
        for t in range(truths):
            sizes[i] += counts[i, t]
    for i in range(k):
        kinds = 0
        for t in range(truths):
            if counts[i, t] > 0:
                met[kinds] = t
                kinds += 1
        for j in range(i + 1, k):
            both, common = 0, 0
            for t in met[:kinds]:
                both += counts[i, t] * counts[j, t]
                common += counts[j, t] > 0
            X[i, j] = sizes[i] * sizes[j] - 2 * both if target.loss == PAIRWISE else common
            X[j, i] = X[i, j]


@kernel
def merge_violating(S: Any, counts: Any, within: Any, target: Any, merges: Any) -> Any:
    """Algorithm 4 from any clusters: merge the pair that raises H most. S and counts [cluster, truth] are used up.

    A row of which not even its highest sum with its highest loss could win is passed over.
    """
    k = len(S)
    alive, count = np.arange(k), k
    X = np.zeros((k, k), np.int64)
    _changes(target, counts, X)
    high_sum, high_change = np.full(k, np.inf), np.full(k, np.int64(1) << 60)
    wrong, cells, clusters = tally(target, counts)
    cost = merging_cost(target, within, merging_loss(target, wrong, cells, clusters))
    done = 0
    while count > 1:
        best, a, b = cost, -1, -1
        for at in range(count):
            i = alive[at]
            if high_sum[i] < np.inf:
                change = high_change[i] if target.loss == PAIRWISE else 0
                loss = merging_loss(target, wrong + change, cells, clusters - 1)
                if _highest_cost(target, within + high_sum[i], loss) <= best:
                    continue
            high_sum[i], high_change[i] = -np.inf, -(np.int64(1) << 60)
            for other in range(at + 1, count):
                j = alive[other]
                high_sum[i], high_change[i] = max(high_sum[i], S[i, j]), max(high_change[i], X[i, j])
                loss = merging_loss(target, wrong + X[i, j], cells - X[i, j], clusters - 1)
                merged = merging_cost(target, within + S[i, j], loss)
                if merged > best:
                    best, a, b = merged, i, j
        if a < 0:
            break
        merges.a[done], merges.b[done], merges.gain[done] = a, b, best - cost
        done += 1
        within += S[a, b]
        wrong, cells, clusters, cost = wrong + X[a, b], cells - X[a, b], clusters - 1, best
        count = _without(alive, count, b)
        _add_cluster(S, alive, count, a, b)
        _add_cluster(X, alive, count, a, b)
        for t in range(counts.shape[1]):
            if target.loss == MITRE and counts[a, t] > 0 and counts[b, t] > 0:
                for other in range(count):  # met both: counted twice
                    i = alive[other]
                    if i != a and counts[i, t] > 0:
                        X[a, i] -= 1
                        X[i, a] = X[a, i]
            counts[a, t] += counts[b, t]
        for other in range(count):
            i = alive[other]
            if i < a:
                high_sum[i], high_change[i] = max(high_sum[i], S[i, a]), max(high_change[i], X[i, a])
        high_sum[a] = np.inf
    return done
