"""Supervised correlation clustering (SVM^cluster): pair scores learned so that the best partition is the wanted one.

The score of a partition is `w . Psi`, Psi = (1/m^2) * sum of psi over the pairs within clusters: the number of clusters
is an outcome, the zero of the score is the threshold. Which search finds the max-violating partition in training
(`oracle`) and the best one afterwards (`predictor`) varies, and so does the loss.

>>> from netclust.learners.one_slack import OneSlack
>>> from netclust.structures.pairs import ComputedPairs
>>> colour = np.array([[0.0], [0.1], [0.9], [1.0]])
>>> sets = [(ComputedPairs(colour), np.array([0, 0, 1, 1])), (ComputedPairs(colour[::-1]), np.array([0, 0, 1, 1]))]
>>> problem = CorrelationProblem(dimension=2)
>>> w = OneSlack(C=1e5).fit(problem, sets).w
>>> problem.predict(ComputedPairs(np.array([[0.1], [0.8], [0.2], [0.9]])), w).tolist()
[0, 1, 0, 1]

T. Finley and T. Joachims, "Supervised Clustering with Support Vector Machines", ICML 2005; T. Finley, PhD thesis,
Cornell University, 2009, chapter 3. LP and SDP oracles: B. Taskar, PhD thesis, Stanford University, 2004, chapter 11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.partition_loss import CLUSTERING_LOSSES, ClusteringLoss, relaxed_pairwise_loss, with_pairwise_loss
from netclust.models.clustering.partitions.exact import exact_clusters
from netclust.models.clustering.partitions.greedy import greedy_clusters, greedy_violating
from netclust.models.clustering.partitions.local_search import local_search, local_violating
from netclust.models.clustering.partitions.relaxed import relaxed_partition
from netclust.models.clustering.partitions.rounding import round_links, round_pivot
from netclust.models.clustering.partitions.single_link import single_link
from netclust.structures.pairs import PairFeatures, Vector, same_cluster
from netclust.structures.partition import Labels, PairScores, RelaxedPartition, canonical_partition
from netclust.structures.sdp import relax_sdp

__all__ = ["CorrelationProblem", "Oracle", "Predictor", "cluster_by", "correlation_scores"]

Oracle = Literal["greedy", "local", "lp", "sdp", "exact"]
Predictor = Literal["greedy", "local", "lp", "sdp", "exact", "single-link"]
Output = Labels | RelaxedPartition

_RELAXATIONS: dict[str, Callable[[PairScores], RelaxedPartition]] = {"lp": relaxed_partition, "sdp": relax_sdp}


def correlation_scores(x: PairFeatures, w: Vector, scale: float = 1.0) -> PairScores:
    """Return the scores of a set's pairs, times `scale`."""
    return PairScores(x.items, scale * x.scores(w), x.index)


def cluster_by(scores: PairScores, predictor: Predictor) -> Labels:
    """The partition that a search finds.

    >>> cluster_by(PairScores(3, np.array([1.0, -2.0, 0.5])), "greedy").tolist()
    [0, 0, 1]
    >>> cluster_by(PairScores(3, np.array([1.0, -2.0, 0.5])), "single-link").tolist()
    [0, 0, 0]
    """
    if predictor == "greedy":
        return greedy_clusters(scores)
    if predictor == "local":
        return local_search(scores)
    if predictor == "exact":
        return exact_clusters(scores, start=local_search(scores)).labels
    if predictor == "single-link":
        return single_link(scores)
    if predictor == "lp":
        return round_links(relaxed_partition(scores).together, scores.items, scores.index)
    return local_search(scores, round_pivot(scores, relax_sdp(scores)))


@dataclass(frozen=True)
class CorrelationProblem:
    """x: features of a set's pairs; y: true labels; h: a partition, or a relaxed one (oracles `lp` and `sdp`).

    `greedy` and `local` search for constraints and may miss some, `lp` and `sdp` may find some that no partition
    makes: the objective of the one is at most, of the other at least that of `exact`. Relaxed oracles know the
    pairwise loss alone. Without `loss_in_oracle` the search ignores the loss, though the constraint still has it.
    """

    dimension: int
    oracle: Oracle = "greedy"
    measure: ClusteringLoss = "pairwise"
    predictor: Predictor | None = None
    loss_in_oracle: bool = True

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        for name, value, known in (
            ("oracle", self.oracle, get_args(Oracle)),
            ("loss", self.measure, get_args(ClusteringLoss)),
            ("predictor", self.predictor or "greedy", get_args(Predictor)),
        ):
            if value not in known:
                raise InputError(f"{name} {value!r} is not known: one of {', '.join(known)}")
        if self.measure != "pairwise" and self.oracle not in ("greedy", "local") and self.loss_in_oracle:
            raise InputError(
                f"the MITRE loss does not split over pairs, so oracle {self.oracle} cannot search with it: "
                "use greedy or local, or leave the loss out of the search"
            )

    def joint_features(self, x: PairFeatures, h: Output) -> Vector:
        """Return the sum of psi over the pairs that are together, over m^2."""
        together = h.together if isinstance(h, RelaxedPartition) else same_cluster(h, x.index).astype(np.float64)
        return x.weighted_sum(together) * self._scale(x)

    def predict(self, x: PairFeatures, w: Vector) -> Labels:
        """Return the partition of the highest score, as far as the predictor finds it."""
        return cluster_by(correlation_scores(x, w), self.predictor or self.oracle)

    def max_violating(self, x: PairFeatures, y: NDArray[Any], w: Vector, C: float) -> tuple[Output, float]:
        """Return the partition of the highest `w.Psi + C*Delta`, as far as the oracle finds it, and its Delta."""
        scores = correlation_scores(x, w, self._scale(x))
        weight = C if self.loss_in_oracle else 0.0
        h: Output
        if self.oracle in _RELAXATIONS:
            h = _RELAXATIONS[self.oracle](with_pairwise_loss(scores, y, weight))
        elif self.oracle == "exact":
            shifted = with_pairwise_loss(scores, y, weight)
            h = exact_clusters(shifted, start=local_search(shifted)).labels
        else:
            search = greedy_violating if self.oracle == "greedy" else local_violating
            h = search(scores, y, loss=self.measure, weight=weight)
        return h, self.loss(y, h)

    def max_violating_slack(self, x: PairFeatures, y: NDArray[Any], w: Vector) -> tuple[Output, float]:
        """Return the partition of the highest `Delta * (1 + w.Psi - w.Psi(y))`, as far as it is found."""
        if self.oracle not in ("greedy", "local"):
            raise InputError(
                f"slack rescaling does not split over pairs: oracle {self.oracle} cannot, greedy or local can"
            )
        scores = correlation_scores(x, w, self._scale(x))
        search = greedy_violating if self.oracle == "greedy" else local_violating
        h = search(scores, y, loss=self.measure, rescaling="slack", gold_score=scores.within(y))
        return h, self.loss(y, h)

    def gold(self, x: PairFeatures, y: NDArray[Any], w: Vector) -> Labels:
        """Return the true partition: nothing is latent."""
        return canonical_partition(y)

    def loss(self, y: NDArray[Any], h: Output) -> float:
        """Return the loss in percent."""
        if isinstance(h, RelaxedPartition):
            return relaxed_pairwise_loss(y, h.together, h.index)
        return CLUSTERING_LOSSES[self.measure](y, h)

    def _scale(self, x: PairFeatures) -> float:
        return 1.0 / max(x.items, 1) ** 2
