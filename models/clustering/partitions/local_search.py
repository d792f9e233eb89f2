"""Correlation clustering by local search: items move between clusters and clusters join, until neither helps.

Three things keep it out of poor ends: it begins at greedy merging and at single items; some sweeps of simulated
annealing find another beginning; and in cycles items are paired up within their clusters, pairs again, so that groups
move as one.

>>> from netclust.models.clustering.partitions.greedy import greedy_clusters
>>> scores = PairScores(4, np.array([3.0, 2.0, -5.0, -5.0, 2.0, -5.0]))
>>> greedy_clusters(scores).tolist(), local_search(scores).tolist()  # 3 and 4 within clusters
([0, 0, 1, 2], [0, 1, 0, 1])
>>> local_violating(PairScores(4, scores.values / 16), np.array([0, 1, 0, 1]), loss="mitre").tolist()
[0, 0, 1, 2]

The moves are those of V. D. Blondel et al., "Fast unfolding of communities in large networks", J. Stat. Mech. 2008, on
scores of either sign. The loss-augmented form is what T. Finley's thesis (Cornell, 2009), section 6.2, asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.partition_loss import ClusteringLoss, with_pairwise_loss
from netclust.models.clustering.partitions.greedy import (
    Rescaling,
    check_target,
    greedy_clusters,
    greedy_violating,
    greedy_violation,
    kernel_target,
    merge_pairs,
    merge_violating_clusters,
    square_of,
)
from netclust.structures.partition import Labels, PairScores, canonical_partition, check_partition_scores

if TYPE_CHECKING:
    from netclust.models.clustering.partitions.merging_kernels import MergingTarget
    from netclust.models.clustering.partitions.moves_kernels import GraphRows

__all__ = ["local_search", "local_violating"]

CYCLES = 10
"""Rounds of pairing up, at most: it ends earlier when a round does not help."""
HOTTEST, COOLING = 0.6, 4.0
"""Annealing begins at so many spreads of an item's sum, over the cube root of its pairs, and ends at a fourth."""
LEAST = 1e-10
"""What a move must gain, as a share of the largest score: rounding errors are no gain."""


def local_search(
    scores: PairScores, start: NDArray[Any] | None = None, *, seed: int = 0, restarts: int = 0, sweeps: int = 100
) -> Labels:
    """The best partition found, never worse than `start` (greedy merging, if none is given).

    `restarts` are further annealings, each of `sweeps` rounds over all items; without sweeps there is no annealing and
    nothing is left to chance but the order of items.
    """
    check_partition_scores(scores)
    if restarts < 0 or sweeps < 0:
        raise InputError(f"restarts ({restarts}) and sweeps ({sweeps}) cannot be negative")
    first = greedy_clusters(scores) if start is None else _partition(start, scores.items)
    if scores.items < 2:
        return canonical_partition(first)
    search = _Search(scores, seed)
    best = search.climbed(first)
    if start is None:
        best = search.better(best, search.climbed(np.arange(scores.items)))
    for _ in range(restarts + 1 if sweeps else 0):
        best = search.better(best, search.climbed(search.annealed(best, sweeps)))
    best = search.cycled(best)
    return search.better(canonical_partition(first), best)


def local_violating(
    scores: PairScores,
    y: NDArray[Any],
    *,
    loss: ClusteringLoss = "pairwise",
    rescaling: Rescaling = "margin",
    weight: float = 1.0,
    gold_score: float = 0.0,
    start: NDArray[Any] | None = None,
    seed: int = 0,
) -> Labels:
    """The partition of the highest H found (see `greedy_violating`), never worse than greedy's, the truth, or `start`.

    With stored pairs, the pairwise loss and margin rescaling, the loss of stored pairs alone steers the search.
    """
    check_partition_scores(scores)
    check_target(scores, y, loss, rescaling, weight, gold_score)
    shifted = with_pairwise_loss(scores, y, weight)
    begun = [
        greedy_violating(scores, y, loss=loss, rescaling=rescaling, weight=weight, gold_score=gold_score),
        canonical_partition(y),
        local_search(shifted, seed=seed),
    ]
    if start is not None:
        begun.append(_partition(start, scores.items))

    def cost(z: Labels) -> float:
        return greedy_violation(scores, y, z, loss=loss, rescaling=rescaling, weight=weight, gold_score=gold_score)

    best = max(begun, key=cost)
    if scores.items < 2:
        return best
    if loss == "pairwise" and rescaling == "margin":
        return max(best, local_search(shifted, best, seed=seed), key=cost)
    target, S = kernel_target(canonical_partition(y), loss, rescaling, weight, gold_score), square_of(scores)
    # From every start: H has more poor ends here, and the second and third best start often leads to a better one.
    found = [_raise_cost(S, canonical_partition(y), z, scores.within(z), target) for z in begun]
    return max(best, *found, key=cost)


class _Search:
    """The scores as a graph, and the steps of the search on it."""

    def __init__(self, scores: PairScores, seed: int) -> None:
        self.scores = scores
        self.rows = _rows(scores)
        self.random = np.random.default_rng(seed)
        self.least = LEAST * float(np.abs(scores.values).max(initial=0.0))

    def better(self, a: Labels, b: Labels) -> Labels:
        """The better of two, the first of equals."""
        return b if self.scores.within(b) > self.scores.within(a) else a

    def climbed(self, labels: Labels) -> Labels:
        """Return labels after items moved and clusters joined as long as that helped."""
        return _climb(self.rows, labels, np.arange(self.scores.items), self.least)

    def annealed(self, labels: Labels, sweeps: int) -> Labels:
        """Where annealing from these labels ends."""
        from netclust.models.clustering.partitions.annealing_kernels import anneal

        m = self.scores.items
        spread = float(np.sqrt((self.rows.score**2).sum() / m))
        hot = HOTTEST * spread / max(1.0, len(self.rows.score) / m) ** (1 / 3)
        if hot == 0.0:
            return labels
        moved = canonical_partition(labels)
        state = self.random.integers(1 << 63, size=1).astype(np.uint64)
        anneal(self.rows, moved, np.geomspace(hot, hot / COOLING, sweeps), state)
        return canonical_partition(moved)

    def cycled(self, labels: Labels) -> Labels:
        """Cycles as long as they help."""
        best = labels
        for _ in range(CYCLES):
            found = self._cycle(best)
            if self.scores.within(found) <= self.scores.within(best) + self.least:
                break
            best = found
        return best

    def _cycle(self, labels: Labels) -> Labels:
        """Pair up items within clusters, then the pairs, and so on; then move groups, the largest first."""
        from netclust.models.clustering.partitions.moves_kernels import pair_up

        finer: list[tuple[GraphRows, Labels]] = []
        rows, part = self.rows, labels
        while True:
            group = np.empty(len(part), np.int64)
            groups = pair_up(rows, part, self.random.permutation(len(part)), group)
            if groups > 0.9 * len(part):
                break
            finer.append((rows, group))
            rows = _pair_rows(groups, *_contracted(rows, group, groups))
            labels_of_groups = np.empty(groups, np.int64)
            labels_of_groups[group] = part
            part = canonical_partition(labels_of_groups)
        while True:
            part = _climb(rows, part, self.random.permutation(len(part)), self.least)
            if not finer:
                return part
            rows, group = finer.pop()
            part = part[group]


def _climb(rows: GraphRows, labels: Labels, order: Labels, least: float) -> Labels:
    """Move items until none gains, join clusters until none gains, and repeat until both rest."""
    from netclust.models.clustering.partitions.moves_kernels import move_items

    while True:
        moved = canonical_partition(labels)
        move_items(rows, moved, order, least)
        moved = canonical_partition(moved)
        clusters = int(moved.max(initial=-1)) + 1
        left, right, sums = _contracted(rows, moved, clusters)
        joined = merge_pairs(clusters, left, right, np.where(sums > least, sums, np.minimum(sums, 0.0)))
        labels = canonical_partition(joined[moved])
        if joined.max(initial=-1) + 1 == clusters:
            return labels


def _raise_cost(S: NDArray[np.float64], truth: Labels, labels: Labels, within: float, target: MergingTarget) -> Labels:
    """Moves and joins by H until neither helps."""
    from netclust.models.clustering.partitions.moves_kernels import move_violating

    m = len(S)
    G, counts = np.empty((m, m)), np.empty((m, target.truths), np.int64)
    while True:
        moved = canonical_partition(labels)
        within = move_violating(S, moved, truth, G, counts, float(within), target, LEAST)
        used, moved = np.unique(moved, return_inverse=True)
        order = np.argsort(moved, kind="stable")
        begin = np.searchsorted(moved[order], np.arange(len(used)))
        between = np.add.reduceat(G[used][:, order], begin, axis=1)
        between = (between + between.T) / 2  # the same but for rounding: the kernel needs it symmetric
        joined = merge_violating_clusters(between.copy(), counts[used], within, target)
        if joined.max() + 1 == len(used):
            return canonical_partition(moved)
        labels = canonical_partition(joined[moved])
        within += _gained(between, joined)


def _gained(between: NDArray[np.float64], joined: Labels) -> float:
    """What joining clusters adds to the score within clusters."""
    same = np.triu(joined[:, None] == joined[None, :], 1)
    return float(between[same].sum())


def _partition(labels: NDArray[Any], items: int) -> Labels:
    if np.shape(labels) != (items,):
        raise InputError(f"{items} items need as many labels to start from, not {np.shape(labels)}")
    return canonical_partition(np.asarray(labels))


def _rows(scores: PairScores) -> GraphRows:
    from netclust.models.clustering.partitions.moves_kernels import empty_rows, fill_complete_rows

    values = np.asarray(scores.values, np.float64)
    if scores.index is not None:
        return _pair_rows(scores.items, *scores.index, values)
    rows = empty_rows(scores.items, len(values))
    fill_complete_rows(values, rows)
    return rows


def _pair_rows(items: int, left: Labels, right: Labels, values: NDArray[np.float64]) -> GraphRows:
    from netclust.models.clustering.partitions.moves_kernels import empty_rows, fill_rows

    rows = empty_rows(items, len(values))
    fill_rows(left, right, values, rows)
    return rows


def _contracted(rows: GraphRows, labels: Labels, clusters: int) -> tuple[Labels, Labels, NDArray[np.float64]]:
    """The pairs of clusters with a score between them, and its sum."""
    from netclust.models.clustering.partitions.moves_kernels import contract

    most = min(len(rows.other) // 2, clusters * (clusters - 1) // 2)
    left, right, sums = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    pairs = contract(rows, labels, clusters, left, right, sums)
    return left[:pairs], right[:pairs], sums[:pairs]
