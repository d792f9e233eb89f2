"""C_R*: a partition from a relaxed one, and how far it is from the best.

Items take their turns in their own order, and the order matters; a pair counts as linked where it is strictly more
together than the threshold.

>>> together = np.array([0.9, 0.7, 0.8])  # pairs (0, 1), (0, 2), (1, 2)
>>> round_links(together, 3, rule="first").tolist()  # item 2 is linked with 1, which is with 0 by then
[0, 0, 0]
>>> round_links(together, 3, rule="ball").tolist()  # item 0 takes 1, 0.7 is not more than 0.7, and 1 is taken
[0, 0, 1]

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, Algorithm 5 ("first");
T. Finley and T. Joachims, ICML 2005 ("ball"); B. Taskar, "Learning Structured Prediction Models", PhD thesis, Stanford
University, 2004, section 11.1 (agreement, disagreement and the integrality gap).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.pairs import PairIndex, Vector, all_pairs, check_numbers, pair_count
from netclust.structures.partition import Labels, PairScores, RelaxedPartition, canonical_partition

__all__ = ["ClusteringBounds", "clustering_bounds", "round_links", "round_pivot"]


def round_links(
    together: Vector,
    items: int,
    index: PairIndex | None = None,
    *,
    threshold: float = 0.7,
    rule: Literal["first", "ball"] = "first",
) -> Labels:
    """Round: by "first" a single item joins the cluster of the first item that it is linked with; by "ball" a single
    item takes all single items that it is linked with."""
    if rule not in ("first", "ball"):
        raise InputError(f"rule {rule!r} is not known: first or ball")
    expected = pair_count(items) if index is None else len(index.left)
    if together.shape != (expected,):
        raise InputError(f"{items} items need {expected} values of togetherness, not {list(together.shape)}")
    check_numbers(together, "togetherness")
    left, right = all_pairs(items) if index is None else index
    linked = together > threshold
    ends = np.concatenate([left[linked], right[linked]])
    others = np.concatenate([right[linked], left[linked]])
    order = np.lexsort((others, ends))
    links = np.split(others[order], np.searchsorted(ends[order], np.arange(1, items)))
    labels, size = np.arange(items), np.ones(items, np.int64)
    for x in range(items):
        if size[labels[x]] > 1 or not len(links[x]):
            continue
        if rule == "first":
            size[x], labels[x] = 0, labels[links[x][0]]
            size[labels[x]] += 1
        else:
            single = links[x][size[labels[links[x]]] == 1]
            size[single], labels[single] = 0, x
            size[x] += len(single)
    return canonical_partition(labels)


def round_pivot(scores: PairScores, relaxed: RelaxedPartition) -> Labels:
    """Every item in turn takes what is still free and more than half together with it; refine it by local search."""
    return round_links(relaxed.together, scores.items, scores.index, threshold=0.5, rule="ball")


@dataclass(frozen=True)
class ClusteringBounds:
    """What a partition reaches, and what any could: the same partition is best for all three objectives."""

    value: float
    """The sum of scores within clusters, at most s*."""
    upper: float
    """What no partition exceeds: of a relaxation, or the sum of positive scores."""
    positive: float
    """s_plus, the sum of positive scores."""
    negative: float
    """s_minus, the sum of negative scores."""

    @property
    def agreement(self) -> float:
        """MAXAGREE: positive scores within clusters and negative ones between them."""
        return self.value - self.negative

    @property
    def disagreement(self) -> float:
        """MINDISAGREE: positive scores between clusters and negative ones within them."""
        return self.positive - self.value

    @property
    def ratio(self) -> float:
        """The agreement as a share of its bound: the integrality gap, if the partition is the best one."""
        most = self.upper - self.negative
        return self.agreement / most if most > 0 else 1.0


def clustering_bounds(
    scores: PairScores, labels: NDArray[Any], relaxed: RelaxedPartition | None = None
) -> ClusteringBounds:
    """How good a partition is at least: with a relaxation, against its value.

    >>> star = PairScores(4, np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))
    >>> bounds = clustering_bounds(star, np.array([0, 0, 1, 2]))
    >>> bounds.value, bounds.upper, bounds.agreement, bounds.disagreement
    (1.0, 3.0, 4.0, 2.0)
    """
    positive = float(np.maximum(scores.values, 0.0).sum())
    negative = float(np.minimum(scores.values, 0.0).sum())
    upper = positive if relaxed is None else max(relaxed.value, getattr(relaxed, "bound", relaxed.value))
    return ClusteringBounds(scores.within(labels), min(upper, positive), positive, negative)
