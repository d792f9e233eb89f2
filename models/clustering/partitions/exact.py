"""The best partition for sure: correlation clustering of small sets by branch and cut.

The linear relaxation is tightened by violated triangles, then by stars (items that belong to one centre but not to each
other: sum of e_it - sum of e_tu <= 1), and where it stays fractional it is split on a pair: together, or apart.

>>> star = PairScores(4, np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))
>>> best = exact_clusters(star)
>>> best.value, best.optimal, best.bound
(1.0, True, 1.0)

M. Groetschel and Y. Wakabayashi, "A cutting plane algorithm for a clustering problem", Mathematical Programming 45,
1989; "Facets of the clique partitioning polytope", 1990.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.clustering.partitions.rounding import round_links
from netclust.models.clustering.partitions.triangle_program import TriangleProgram, restricted, triangle_components
from netclust.structures.pairs import Indices, Vector
from netclust.structures.partition import (
    Labels,
    PairScores,
    canonical_partition,
    check_partition_scores,
    partition_square,
)
from netclust.structures.sizes import check_size

__all__ = ["ExactResult", "exact_clusters"]

TOLERANCE = 1e-6
CLOSE = 1e-9
"""A partition counts as best if none can be better by more than this share of the sum of the scores' sizes."""
STALL = 1e-3
"""Cuts go on while they close this share of the gap to the best partition in a round; then the program is split."""


@dataclass(frozen=True, eq=False)
class ExactResult:
    """A partition, its value, and a bound on every partition's: equal to the value where it is optimal."""

    labels: Labels
    value: float
    bound: float
    optimal: bool
    programs: int
    """How many programs were branched on, 0 where no branching was needed."""


def exact_clusters(
    scores: PairScores,
    *,
    limit_seconds: float | None = None,
    start: NDArray[Any] | None = None,
    largest: int | None = None,
) -> ExactResult:
    """The partition of the highest sum of scores within clusters; `start` is a good one to begin with.

    Items that no positive scores connect are solved apart. Pairs that are not stored are there with score 0: the
    answer is a partition, so a group of connected items is as large a program as if all its pairs were stored. When
    the time is out the best partition so far is returned with the bound so far, not `optimal`.
    """
    check_partition_scores(scores)
    if start is not None and len(start) != scores.items:
        raise InputError(f"the start has labels of {len(start)} items, the scores have {scores.items}")
    groups = triangle_components(scores)
    for group in groups:
        check_size(len(group), "exact", largest=largest)
    ends = np.inf if limit_seconds is None else time.monotonic() + limit_seconds
    labels = np.arange(scores.items)
    bound, optimal, programs = 0.0, True, 0
    for group in groups:
        part, _ = restricted(scores, group, complete=True)
        tree = _Tree(part, None if start is None else start[group], ends)
        tree.search()
        labels[group] = group[tree.labels]  # the label of a cluster is one of its own items: unique over groups
        bound, programs = bound + tree.bound, programs + tree.programs
        optimal = optimal and tree.optimal
    labels = canonical_partition(labels)
    value = scores.within(labels)
    return ExactResult(labels, value, value if optimal else max(bound, value), optimal, programs)


class _Node(NamedTuple):
    """A program that is still open: the best bounds first, then the newest."""

    minus_bound: float
    minus_number: int
    low: Vector
    high: Vector


class _Tree:
    """Branch and cut on one group of items."""

    def __init__(self, scores: PairScores, start: NDArray[Any] | None, ends: float) -> None:
        self.scores, self.ends = scores, ends
        self.program = TriangleProgram(scores, TOLERANCE)
        self.slack = CLOSE * float(np.abs(scores.values).sum())
        self.labels: Labels = np.arange(scores.items)
        self.value, self.programs, self.optimal = 0.0, 0, False
        if start is not None:
            self._offer(canonical_partition(start))
        self.number = partition_square(np.arange(len(scores.values), dtype=np.float64), scores.items).astype(np.int32)
        pairs = len(scores.values)
        root = _Node(-float(np.maximum(scores.values, 0.0).sum()), 0, np.zeros(pairs), np.ones(pairs))
        self.open = [root]
        self.bound = -root.minus_bound

    def search(self) -> None:
        """Split the most promising program until none can hold a better partition, or time is out."""
        born = 0
        while self.open:
            self.bound = max(self.value, -self.open[0].minus_bound)
            if -self.open[0].minus_bound <= self.value + self.slack:
                break
            if time.monotonic() > self.ends:
                return
            node = heapq.heappop(self.open)
            e, bound = self._cut(node)
            if e is None:
                if self.program.late:
                    self.bound = max([self.value, bound, *(-other.minus_bound for other in self.open[:1])])
                    return
                continue
            fraction = np.minimum(e, 1 - e)
            if fraction.max() <= TOLERANCE or bound <= self.value + self.slack:
                continue
            self.programs += 1
            pair = int(np.argmax(fraction * (1 + np.abs(self.scores.values) / self.program.scale)))
            for side in (0.0, 1.0):
                born += 1
                low, high = node.low.copy(), node.high.copy()
                low[pair] = high[pair] = side
                heapq.heappush(self.open, _Node(-bound, -born, low, high))
        self.bound, self.optimal = self.value, True

    def _cut(self, node: _Node) -> tuple[Vector | None, float]:
        """Solve a program with cuts until they do little; its solution (None: nothing left, or late) and bound."""
        self.program.bind(node.low, node.high)
        bound = -node.minus_bound
        while True:
            rest = None if np.isinf(self.ends) else self.ends - time.monotonic()
            e = self.program.solve_within(rest)
            if e is None:
                return None, bound
            before, bound = bound, min(bound, self.program.bound())
            if bound <= self.value + self.slack:
                return e, bound
            triangles = self.program.violated(e)
            if len(triangles):
                self.program.add_triangles(triangles)
                continue
            self._round(e)
            little = before - bound <= STALL * (before - self.value)
            if np.minimum(e, 1 - e).max() <= TOLERANCE or little or not self._add_stars(e):
                return e, bound

    def _round(self, e: Vector) -> None:
        for threshold in (0.3, 0.5, 0.7):
            for rule in ("ball", "first"):
                self._offer(round_links(e, self.scores.items, threshold=threshold, rule=rule))

    def _offer(self, labels: Labels) -> None:
        value = self.scores.within(labels)
        if value > self.value:
            self.labels, self.value = labels, value

    def _add_stars(self, e: Vector) -> bool:
        from netclust.models.clustering.partitions.triangles_kernels import violated_stars

        items = self.scores.items
        leaves, size, excess = np.zeros((items, items), np.int64), np.zeros(items, np.int64), np.zeros(items)
        violated_stars(partition_square(e, items), TOLERANCE, leaves, size, excess)
        found = [self._star(centre, leaves[centre, : size[centre]]) for centre in np.flatnonzero(size).tolist()]
        if not found:
            return False
        columns, signs = [row for row, _ in found], [sign for _, sign in found]
        starts = np.cumsum([0, *map(len, columns)])[:-1].astype(np.int32)
        self.program.add(starts, np.concatenate(columns), np.concatenate(signs))
        return True

    def _star(self, centre: int, leaves: Indices) -> tuple[NDArray[np.int32], Vector]:
        a, b = np.triu_indices(len(leaves), 1)
        columns = np.concatenate([self.number[centre, leaves], self.number[leaves[a], leaves[b]]])
        return columns, np.concatenate([np.ones(len(leaves)), -np.ones(len(a))])
