"""Supervised clustering for scikit-learn's manner: fit on example clusterings, predict clusters of new sets.

Needs `netclust[offline]`. X is a *list of item sets*, y a list of their cluster labels. A set is an array
[items, features] or a frame (pairs are compared attribute by attribute), an array [items, items, features], or pair
features of `netclust.structures.pairs`. Names of clusters mean nothing outside their set: what is learned is which
pairs belong together.

>>> rng = np.random.default_rng(0)
>>> def marbles(*hues):  # hue tells them apart, size and weight do not
...     hue = np.repeat(hues, 5) + rng.normal(0, 4, 5 * len(hues))
...     return np.column_stack([hue, rng.normal(0, 60, len(hue)), rng.normal(0, 60, len(hue))])
>>> X, y = [marbles(0, 120, 240), marbles(20, 140, 260)], [np.repeat(["r", "g", "b"], 5), np.repeat([1, 2, 3], 5)]
>>> clusterer = CorrelationClusterer().fit(X, y)
>>> clusterer.predict([marbles(60, 180, 300)])[0].tolist()  # yellow, cyan, magenta
[0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, MissingExtraError

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtraError("netclust.clustering", "scikit-learn", "offline") from None

from netclust.models.clustering.cluster_model import ClusterModel
from netclust.models.clustering.cluster_selection import choose_cost
from netclust.models.clustering.set_inputs import SetInput, check_labels
from netclust.models.clustering.train_clusterer import (
    ClusterSettings,
    LearnedClustering,
    cluster_with,
    clusterer_loss,
    learn_clusterer,
    usual_oracle,
)
from netclust.structures.pairs import Relation

__all__ = ["CorrelationClusterer", "KMeansClusterer", "LinkClusterer", "PairwiseClusterer"]


class _SetClusterer(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: sets in, weights learned, labels out."""

    relation: Relation
    C: float | Literal["cv"]
    folds: int

    def _settings(self, C: float) -> ClusterSettings:
        raise TypeError(f"{type(self).__name__} is not an estimator of its own")

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Any:
        """Learn from item sets and their true clusterings."""
        self.input_ = SetInput(self.relation).learn(X)
        pairs = self.input_.features(X)
        examples = list(zip(pairs, check_labels(pairs, y), strict=True))
        if self.C == "cv":
            self.C_ = choose_cost(self._settings(1.0), examples, folds=self.folds).C
        else:
            try:
                self.C_ = float(self.C)
            except (TypeError, ValueError):
                raise InputError(f"C is {self.C!r}: give a number, or 'cv' to choose one") from None
        self.settings_ = self._settings(self.C_)
        self.learned_: LearnedClustering = learn_clusterer(self.settings_, examples)
        self.coef_ = self.learned_.w
        return self

    def predict(self, X: Sequence[Any], k: int | Sequence[int] | None = None) -> list[NDArray[np.int64]]:
        """Clusters of new sets, a list of labels a set, numbered by first appearance; k is for k-means alone."""
        check_is_fitted(self, "coef_")
        if k is not None and self.settings_.structure != "kmeans":
            raise InputError("k is for k-means: other clusterers choose the number of clusters themselves")
        pairs = self.input_.features(X, len(self.coef_))
        counts = [k] * len(pairs) if k is None or isinstance(k, int | np.integer) else list(k)
        if len(counts) != len(pairs):
            raise InputError(f"{len(pairs)} item sets, but {len(counts)} numbers of clusters")
        return [cluster_with(self.settings_, x, self.coef_, n) for x, n in zip(pairs, counts, strict=True)]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """1 - the mean loss that was trained for, as a fraction: the higher the better."""
        check_is_fitted(self, "coef_")
        labels = check_labels(self.input_.features(X, len(self.coef_)), y)
        counts = [len(np.unique(names)) for names in labels] if self.settings_.structure == "kmeans" else None
        found = self.predict(X, counts)
        losses = [clusterer_loss(self.settings_, t, z) for t, z in zip(labels, found, strict=True)]
        return 1.0 - float(np.mean(losses)) / 100.0

    def save(self, path: str | Path) -> None:
        """Write a model file that `netclust cluster` and `netclust.ClusterModel.load` read."""
        check_is_fitted(self, "coef_")
        ClusterModel(settings=self.settings_, features=self.input_, w=self.coef_).save(path)


class CorrelationClusterer(_SetClusterer):
    """SVM^cluster: pair scores learned so that correlation clustering gives the example clusterings.

    Parameters
    ----------
    loss : {"pairwise", "mitre"}, default="pairwise"
        What a wrong clustering costs: wrong pairs, or 1 - the MUC F1.
    oracle : {"greedy", "local", "lp", "sdp", "exact"}, default=None
        How violated constraints are found in training; None: greedy, or local for the MITRE loss.
    predictor : same or "single-link", default=None
        How new sets are clustered; None: as in training.
    learner : {"one-slack", "n-slack", "frank-wolfe"}, default="one-slack"
        The structural SVM's solver.
    rescaling : {"margin", "slack"}, default="margin"
        How the loss enters the margin.
    C : float or "cv", default=1e5
        Weight of the loss against the regulariser; "cv" chooses it by cross-validation over the training sets.
    epsilon : float, default=0.1
        Training stops when no constraint is violated by more, in percent of loss.
    relation : {"difference", "product", "gaussian"}, default="difference"
        How two items' own features become those of the pair.
    folds : int, default=5
        Of "cv".

    Attributes
    ----------
    coef_ : ndarray
        One weight a pair feature; the last is the constant's.
    learned_ : netclust.models.clustering.train_clusterer.Learned
        Iterations, objective, duality gap.
    """

    def __init__(
        self,
        loss: Literal["pairwise", "mitre"] = "pairwise",
        oracle: str | None = None,
        predictor: str | None = None,
        learner: Literal["one-slack", "n-slack", "frank-wolfe"] = "one-slack",
        rescaling: Literal["margin", "slack"] = "margin",
        C: float | Literal["cv"] = 1e5,
        epsilon: float = 0.1,
        relation: Relation = "difference",
        folds: int = 5,
    ) -> None:
        self.loss = loss
        self.oracle = oracle
        self.predictor = predictor
        self.learner = learner
        self.rescaling = rescaling
        self.C = C
        self.epsilon = epsilon
        self.relation = relation
        self.folds = folds

    def _settings(self, C: float) -> ClusterSettings:
        return ClusterSettings(
            loss=self.loss,
            oracle=self.oracle or usual_oracle(self.loss),
            predictor=self.predictor,
            learner=self.learner,
            rescaling=self.rescaling,
            C=C,
            epsilon=self.epsilon,
        )


class PairwiseClusterer(_SetClusterer):
    """The baseline: a linear classifier of pairs (same cluster or not), then correlation clustering of its outputs.

    Parameters
    ----------
    predictor : {"greedy", "local", "lp", "exact", "single-link"}, default="greedy"
        How sets are clustered.
    C : float or "cv", default=1.0
        Of the classifier.
    relation, folds
        As in `CorrelationClusterer`.
    """

    def __init__(
        self,
        predictor: str = "greedy",
        C: float | Literal["cv"] = 1.0,
        relation: Relation = "difference",
        folds: int = 5,
    ) -> None:
        self.predictor = predictor
        self.C = C
        self.relation = relation
        self.folds = folds

    def _settings(self, C: float) -> ClusterSettings:
        return ClusterSettings(learner="pairwise", predictor=self.predictor, C=C)


class KMeansClusterer(_SetClusterer):
    """Supervised k-means: a similarity learned so that k-means on it gives the example clusterings.

    Parameters
    ----------
    method : {"iterative", "spectral", "discrete"}, default="iterative"
        How violated constraints are found: point by point, by eigenvectors, or by these rounded.
    predictor : same, default="discrete"
        How new sets are clustered.
    C, epsilon, relation, folds
        As in `CorrelationClusterer`.
    seed : int, default=0
        Of the random starts.
    """

    def __init__(
        self,
        method: Literal["iterative", "spectral", "discrete"] = "iterative",
        predictor: Literal["iterative", "spectral", "discrete"] = "discrete",
        C: float | Literal["cv"] = 1.0,
        epsilon: float = 0.1,
        relation: Relation = "product",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.predictor = predictor
        self.C = C
        self.epsilon = epsilon
        self.relation = relation
        self.folds = folds
        self.seed = seed

    def _settings(self, C: float) -> ClusterSettings:
        return ClusterSettings(
            structure="kmeans", oracle=self.method, predictor=self.predictor, C=C, epsilon=self.epsilon, seed=self.seed
        )


class LinkClusterer(_SetClusterer):
    """Latent links: each item links to its best earlier one (E), or a spanning forest joins them (K).

    Parameters
    ----------
    structure : {"E", "K"}, default="E"
        The latent graph. E depends on the order of items.
    learner : {"lsp", "lspa", "latent"}, default="lspa"
        Perceptron, passive-aggressive, or latent structural SVM.
    epochs : int, default=20
        Of the perceptrons.
    r : float, default=0.5
        What a wrong link costs against a missing one.
    C, relation, folds
        As in `CorrelationClusterer`; of the perceptrons, C multiplies the loss.
    """

    def __init__(
        self,
        structure: Literal["E", "K"] = "E",
        learner: Literal["lsp", "lspa", "latent"] = "lspa",
        epochs: int = 20,
        r: float = 0.5,
        C: float | Literal["cv"] = 1.0,
        relation: Relation = "difference",
        folds: int = 5,
    ) -> None:
        self.structure = structure
        self.learner = learner
        self.epochs = epochs
        self.r = r
        self.C = C
        self.relation = relation
        self.folds = folds

    def _settings(self, C: float) -> ClusterSettings:
        return ClusterSettings(structure=self.structure, learner=self.learner, epochs=self.epochs, r=self.r, C=C)
