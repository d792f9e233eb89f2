"""Correlation clustering by greedy merging, C_G, and the same search for the most violating partition.

Every item begins as a cluster; the two clusters with the highest sum of scores between them are merged as long as
that sum is positive. Of equal sums the clusters with the lowest smallest members are merged first.

>>> scores = PairScores(5, np.array([1, -0.4, -1, 0.2, 0.9, -0.5, -0.3, 0.3, -0.6, 0.7]))
>>> greedy_clusters(scores).tolist(), round(scores.within(greedy_clusters(scores)), 9)
([0, 0, 0, 1, 1], 2.2)
>>> [(int(a), int(b), round(float(gain), 9)) for a, b, gain in zip(*greedy_merges(scores))]
[(0, 1, 1.0), (3, 4, 0.7), (0, 2, 0.5)]

The violating search raises H: scores within clusters plus `weight` times the loss (margin rescaling), or the loss times
`1 + scores within - gold_score` (slack rescaling; there `weight` has no part).

>>> y = np.array([0, 0, 0, 1, 1])
>>> z = greedy_violating(PairScores(5, scores.values / 25), y)
>>> z.tolist(), round(greedy_violation(PairScores(5, scores.values / 25), y, z), 3)
([0, 0, 1, 1, 0], 60.048)

T. Finley and T. Joachims, "Supervised Clustering with Support Vector Machines", ICML 2005; T. Finley, "Supervised
Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; Algorithms 3 and 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.partition_loss import CLUSTERING_LOSSES, ClusteringLoss, with_pairwise_loss
from netclust.structures.partition import Labels, PairScores, canonical_partition, check_partition_scores

if TYPE_CHECKING:
    from netclust.models.clustering.partitions.merging_kernels import Merges, MergingTarget

__all__ = ["Rescaling", "greedy_clusters", "greedy_merges", "greedy_violating", "greedy_violation"]

Rescaling = Literal["margin", "slack"]

MOST_SQUARE = 20_000
"""Items whose square matrix of scores (3.2 GB) is the largest that is made."""


def greedy_clusters(scores: PairScores) -> Labels:
    """C_G: the partition that greedy merging ends with."""
    check_partition_scores(scores)
    return _labels(_merge(scores), scores.items)


def greedy_merges(scores: PairScores) -> Merges:
    """The merges of C_G in their order: b joins a, both named by their smallest item, and what that gains."""
    check_partition_scores(scores)
    return _merge(scores)


def greedy_violating(
    scores: PairScores,
    y: NDArray[Any],
    *,
    loss: ClusteringLoss = "pairwise",
    rescaling: Rescaling = "margin",
    weight: float = 1.0,
    gold_score: float = 0.0,
) -> Labels:
    """Greedy merging by what raises H most. `scores` are those of the joint features: `w . psi / m^2`.

    With stored pairs, the pairwise loss and margin rescaling, the loss of stored pairs alone steers the search; all
    else needs a square matrix of the items.
    """
    check_partition_scores(scores)
    check_target(scores, y, loss, rescaling, weight, gold_score)
    if loss == "pairwise" and rescaling == "margin":
        return greedy_clusters(with_pairwise_loss(scores, y, weight))
    truth = canonical_partition(y)
    target = kernel_target(truth, loss, rescaling, weight, gold_score)
    counts = np.zeros((scores.items, target.truths), np.int64)
    counts[np.arange(scores.items), truth] = 1
    return merge_violating_clusters(square_of(scores), counts, 0.0, target)


def greedy_violation(
    scores: PairScores,
    y: NDArray[Any],
    z: NDArray[Any],
    *,
    loss: ClusteringLoss = "pairwise",
    rescaling: Rescaling = "margin",
    weight: float = 1.0,
    gold_score: float = 0.0,
) -> float:
    """Return H of a partition z, as the violating searches count it.

    >>> scores, y = PairScores(2, np.array([0.5])), np.array([0, 0])
    >>> greedy_violation(scores, y, np.array([0, 1])), greedy_violation(scores, y, y)
    (100.0, 0.5)
    >>> greedy_violation(scores, y, np.array([0, 1]), rescaling="slack", gold_score=0.5)
    50.0
    """
    delta = CLUSTERING_LOSSES[loss](y, z)
    within = scores.within(z)
    return within + weight * delta if rescaling == "margin" else delta * (1 + within - gold_score)


def check_target(
    scores: PairScores, y: NDArray[Any], loss: str, rescaling: str, weight: float, gold_score: float
) -> None:
    """Refuse what no violating search can aim at."""
    if np.shape(y) != (scores.items,):
        raise InputError(f"{scores.items} items need as many true labels, not {np.shape(y)}")
    if loss not in ("pairwise", "mitre"):
        raise InputError(f"loss {loss!r} is not known: pairwise or mitre")
    if rescaling not in ("margin", "slack"):
        raise InputError(f"rescaling {rescaling!r} is not known: margin or slack")
    if not (np.isfinite(weight) and weight >= 0 and np.isfinite(gold_score)):
        raise InputError(f"weight {weight} must be finite and not negative, gold_score {gold_score} finite")


def square_of(scores: PairScores) -> NDArray[np.float64]:
    """The scores as a symmetric matrix; refused where it would not have room."""
    from netclust.models.clustering.partitions.merging_kernels import fill_square

    if scores.items > MOST_SQUARE:
        raise InputError(
            f"{scores.items} items need a matrix of {8e-9 * scores.items**2:.0f} GB here, at most {MOST_SQUARE} "
            "have room: store only the pairs that matter, with the pairwise loss and margin rescaling"
        )
    if scores.index is not None:
        return scores.matrix()
    matrix = np.empty((scores.items, scores.items))
    fill_square(np.asarray(scores.values, np.float64), matrix)
    return matrix


def kernel_target(
    truth: Labels, loss: ClusteringLoss, rescaling: Rescaling, weight: float, gold_score: float
) -> MergingTarget:
    """What the kernels need to know of H."""
    from netclust.models.clustering.partitions.merging_kernels import MARGIN, MITRE, PAIRWISE, SLACK, MergingTarget

    return MergingTarget(
        len(truth),
        int(truth.max(initial=-1)) + 1,
        PAIRWISE if loss == "pairwise" else MITRE,
        MARGIN if rescaling == "margin" else SLACK,
        float(weight),
        float(gold_score),
    )


def merge_violating_clusters(
    sums: NDArray[np.float64], counts: NDArray[np.int64], within: float, target: MergingTarget
) -> Labels:
    """A label for every cluster of which the sums between and the counts [cluster, truth] are given; uses both up."""
    from netclust.models.clustering.partitions.merging_kernels import merge_violating

    merges = _room(len(sums))
    done = merge_violating(sums, counts, float(within), target, merges)
    return _labels(_first(merges, done), len(sums))


def merge_pairs(items: int, left: NDArray[np.int64], right: NDArray[np.int64], values: NDArray[np.float64]) -> Labels:
    """C_G on pairs that need no check: canonical labels."""
    return _labels(_merge_stored(items, left, right, values), items)


def _merge(scores: PairScores) -> Merges:
    from netclust.models.clustering.partitions.merging_kernels import merge_dense

    if scores.index is not None:
        return _merge_stored(scores.items, *scores.index, scores.values)
    merges = _room(scores.items)
    return _first(merges, merge_dense(square_of(scores), merges))


def _merge_stored(items: int, left: Any, right: Any, values: Any) -> Merges:
    from netclust.models.clustering.partitions.merging_sparse_kernels import cluster_graph, merge_sparse

    merges = _room(items)
    return _first(merges, merge_sparse(cluster_graph(items, left, right, values), merges))


def _room(items: int) -> Merges:
    from netclust.models.clustering.partitions.merging_kernels import Merges

    return Merges(np.empty(items, np.int64), np.empty(items, np.int64), np.empty(items))


def _first(merges: Merges, done: int) -> Merges:
    return type(merges)(merges.a[:done], merges.b[:done], merges.gain[:done])


def _labels(merges: Merges, items: int) -> Labels:
    from netclust.models.clustering.partitions.merging_sparse_kernels import merged_sparse_labels

    labels = np.empty(items, np.int64)
    merged_sparse_labels(merges, len(merges.a), labels)
    return canonical_partition(labels)
