"""Train a clusterer from example clusterings, and cluster new sets with it: one place that puts the parts together.

A structure (correlation clustering, k-means, links E, forest K), a learner and a loss are chosen by name; what they
have in common is the protocol of `netclust.problems.base`.

>>> from netclust.structures.pairs import ComputedPairs
>>> colour = np.array([[0.0], [0.1], [0.9], [1.0]])
>>> examples = [(ComputedPairs(colour), np.array([0, 0, 1, 1]))]
>>> for structure in ("correlation", "kmeans", "E", "K"):
...     settings = ClusterSettings(structure=structure, learner="lspa" if structure in "EK" else "one-slack", C=1e4)
...     learned = learn_clusterer(settings, examples)
...     cluster_with(settings, examples[0][0], learned.w, k=2).tolist()
[0, 0, 1, 1]
[0, 0, 1, 1]
[0, 0, 1, 1]
[0, 0, 1, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.learners.cutting_plane import IterationReport
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.latent import LatentSvm
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Lsp, Lspa
from netclust.losses.edge_loss import delta_f
from netclust.losses.partition_loss import CLUSTERING_LOSSES, ClusteringLoss
from netclust.models.clustering.correlation import CorrelationProblem, Oracle, Predictor
from netclust.models.clustering.kmeans import KmeansProblem, KmeansSet, Method, cluster_matrix
from netclust.models.clustering.kmeans_search import choose_k, kmeans_similarity
from netclust.models.clustering.pairwise import PairClassifier
from netclust.models.clustering.trace_loss import trace_loss
from netclust.problems.forest_problem import ForestProblem, LinkProblem, forest_clusters
from netclust.structures.pairs import PairFeatures, Vector
from netclust.structures.partition import Labels, canonical_partition
from netclust.structures.sizes import Method as SizedMethod
from netclust.structures.sizes import check_size

Structure = Literal["correlation", "kmeans", "E", "K"]
Learner = Literal["one-slack", "n-slack", "frank-wolfe", "latent", "lsp", "lspa", "pairwise"]
Example = tuple[PairFeatures, NDArray[Any]]

MOST_CLUSTERS = 50
"""How many clusters are thought of where k is not given."""

MOST_RESTARTS = 10_000
MOST_COST = 1e10


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is learned and how; the names of docs/clustering.md."""

    structure: Structure = "correlation"
    learner: Learner = "one-slack"
    loss: ClusteringLoss = "pairwise"
    oracle: str = "greedy"
    predictor: str | None = None
    rescaling: Literal["margin", "slack"] = "margin"
    loss_in_oracle: bool = True
    C: float = 1e5
    epsilon: float = 0.1
    max_iterations: int = 1000
    epochs: int = 20
    r: float = 0.5
    restarts: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        latent = self.structure in ("E", "K")
        fitting = ("lsp", "lspa", "latent") if latent else tuple(n for n in get_args(Learner) if n != "latent")
        if self.learner not in fitting:
            raise InputError(f"structure {self.structure} is learned by {', '.join(fitting)}, not by {self.learner}")
        if not 0 < self.C <= MOST_COST:
            raise InputError(f"C must be above 0 and at most {MOST_COST:g}, not {self.C:g}: beyond, precision is lost")
        if not 0 < self.epsilon < 100:
            raise InputError(f"epsilon is a loss in percent, above 0 and below 100, not {self.epsilon:g}")
        if self.rescaling == "slack" and self.learner not in ("one-slack", "n-slack"):
            raise InputError(f"slack rescaling is for the cutting-plane learners, not for {self.learner}")
        if self.rescaling == "slack" and self.structure == "kmeans":
            raise InputError("k-means is learned with margin rescaling, not with slack rescaling")
        for name in ("max_iterations", "epochs", "restarts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: it must be 1 or more")
        if self.restarts > MOST_RESTARTS:  # a model file must not keep its user waiting for ever
            raise InputError(f"restarts is {self.restarts}: it must be {MOST_RESTARTS:,} or less")
        if self.seed < 0 or not 0 <= self.r < np.inf:
            raise InputError(f"seed and r must be 0 or more, not {self.seed} and {self.r}")
        _problem_of(self, 1)  # refuses names that are not known


def usual_oracle(loss: str) -> Oracle:
    """The search that training should use where none is named.

    Greedy merging begins with single items, where the MITRE loss is 100 and every merge makes it smaller: it stays.
    """
    return "local" if loss == "mitre" else "greedy"


@dataclass(frozen=True, eq=False)
class LearnedClustering:
    """Weights, and how training went; objective and gap are those of structural SVMs, None of other learners."""

    w: Vector
    iterations: int
    converged: bool
    objective: float | None = None
    gap: float | None = None
    training_loss: float | None = None


def _problem_of(settings: ClusterSettings, dimension: int) -> Any:
    """Return the task that the settings describe, for pairs with so many features."""
    if settings.structure == "correlation":
        return CorrelationProblem(
            dimension,
            oracle=_one_of(settings.oracle, Oracle, "oracle"),
            measure=settings.loss,
            predictor=None if settings.predictor is None else _one_of(settings.predictor, Predictor, "predictor"),
            loss_in_oracle=settings.loss_in_oracle,
        )
    if settings.structure == "kmeans":
        return KmeansProblem(
            dimension,
            method=_kmeans_method(settings.oracle, "iterative"),
            predictor=_kmeans_method(settings.predictor, None),
            seed=settings.seed,
            restarts=settings.restarts,
        )
    if settings.structure == "E":
        return LinkProblem(dimension, partial(delta_f, r=settings.r))
    return ForestProblem(dimension, r=settings.r)


def _kmeans_method(name: str | None, usual: Method | None) -> Any:
    return usual if name in (None, "greedy") else _one_of(str(name), Method, "method of k-means")


def _one_of(name: str, kind: Any, what: str) -> Any:
    if name not in get_args(kind):
        raise InputError(f"{what} {name!r} is not known: one of {', '.join(get_args(kind))}")
    return name


def learn_clusterer(
    settings: ClusterSettings,
    examples: Sequence[Example],
    *,
    on_iteration: Callable[[IterationReport], bool | None] | None = None,
    checkpoint: Path | None = None,
    jobs: int = 1,
) -> LearnedClustering:
    """Learn weights from sets with their true clusterings."""
    if not examples:
        raise InputError("there are no item sets to learn from")
    dimension = examples[0][0].dimension
    problem = _problem_of(settings, dimension)
    check_sizes(settings, examples)
    if settings.learner == "pairwise":
        w = PairClassifier(C=settings.C, seed=settings.seed).fit(list(examples))
        return LearnedClustering(w, 1, True)
    given = [(_input(settings, x, y), y) for x, y in examples]
    if settings.learner in ("lsp", "lspa"):
        online: Any = Lsp() if settings.learner == "lsp" else Lspa()
        fitted = online.fit(problem, given, epochs=settings.epochs, C=settings.C)
        return LearnedClustering(fitted.averaged, len(fitted.losses), fitted.losses[-1] == 0)
    fit = _svm(settings).fit(problem, given, on_iteration=on_iteration, checkpoint=checkpoint, jobs=jobs)
    return LearnedClustering(fit.w, fit.iterations, fit.converged, fit.objective, fit.gap)


def check_sizes(settings: ClusterSettings, examples: Sequence[Example]) -> None:
    """Refuse, before anything is searched, sets without a pair and a set that is too large for a chosen search."""
    if all(x.items < 2 for x, _ in examples):
        raise InputError("no set has two items: there is no pair to learn from")
    if settings.structure != "correlation":
        return
    searches = {settings.predictor or settings.oracle}
    if settings.learner != "pairwise":
        searches.add(settings.oracle)
    methods: tuple[SizedMethod, ...] = ("exact", "lp", "sdp")
    for method in methods:
        for x, _ in examples if method in searches else ():
            pairs = None if x.index is None or method == "sdp" else len(x.index.left)
            check_size(x.items, method, pairs=pairs)


def _svm(settings: ClusterSettings) -> Any:
    C, epsilon, most = settings.C, settings.epsilon, settings.max_iterations
    if settings.learner == "frank-wolfe":
        return FrankWolfe(C=C, epsilon=epsilon, max_iterations=most, seed=settings.seed)
    kind = NSlack if settings.learner == "n-slack" else OneSlack
    convex = kind(C=C, epsilon=epsilon, max_iterations=most, rescaling=settings.rescaling)
    return LatentSvm(convex) if settings.learner == "latent" else convex


def _input(settings: ClusterSettings, x: PairFeatures, y: NDArray[Any]) -> Any:
    return KmeansSet(x, len(np.unique(y))) if settings.structure == "kmeans" else x


def cluster_with(settings: ClusterSettings, x: PairFeatures, w: Vector, k: int | None = None) -> Labels:
    """Return the clusters of a new set, numbered by first appearance. k is for k-means; without it, it is chosen."""
    problem = _problem_of(settings, x.dimension)
    if settings.structure == "kmeans":
        K = kmeans_similarity(x, w)
        if k is None:
            k = choose_k(K, min(MOST_CLUSTERS, x.items)) if x.items > 1 else 1
        if not 1 <= k <= x.items:
            raise InputError(f"a set of {x.items} items has 1 to {x.items} clusters, not {k}")
        method: Method = problem.predictor or problem.method
        rounded: Method = "discrete" if method == "spectral" else method  # eigenvectors are no labels
        return canonical_partition(cluster_matrix(K, k, rounded, seed=settings.seed, restarts=settings.restarts))
    h = problem.predict(x, w)
    return canonical_partition(h if settings.structure == "correlation" else forest_clusters(h))


def clusterer_loss(settings: ClusterSettings, y: NDArray[Any], z: NDArray[Any]) -> float:
    """Return the loss in percent that the settings are for."""
    if settings.structure == "kmeans":
        return trace_loss(y, z, len(np.unique(y)))
    return CLUSTERING_LOSSES[settings.loss](y, z)
