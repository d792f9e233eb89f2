"""PCC, the baseline: learn to classify pairs one by one, then cluster by the classifier's real-valued output.

The result is a weight vector for the same pair features as a structural SVM's, so the same clusterers take it. The
classifier's bias goes to the constant feature.

>>> from netclust.datasets.simulators.synthetic_sets import stars
>>> train = [stars(seed=seed) for seed in range(3)]
>>> w = PairClassifier(C=1.0).fit(train)
>>> pairs, labels = stars(seed=9)
>>> right = (pairs.scores(w) > 0) == same_cluster(labels, None)
>>> bool(right.mean() > 0.85)  # most pairs are apart, and spokes are found
True

Pairs can be chosen before training: `negatives` at random, `canopy` by a cheap likeness, `chain` as coreference does.

References: T. Finley and T. Joachims, ICML 2005; A. McCallum, K. Nigam and L. Ungar, "Efficient clustering of
high-dimensional data sets", KDD 2000; W. Soon, H. Ng and D. Lim, "A machine learning approach to coreference
resolution of noun phrases", Computational Linguistics 27 (4), 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.pairs import PairFeatures, StackedPairs, StoredPairs, Vector, pair_count, same_cluster

__all__ = ["Canopy", "PairClassifier", "chain_pairs", "feature_rows"]

Chosen = NDArray[np.bool_]
TrainingSet = tuple[PairFeatures, NDArray[Any]]


@dataclass(frozen=True)
class Canopy:
    """Train only on pairs whose feature number `feature`, a cheap likeness, is between `low` and `high`."""

    feature: int
    low: float
    high: float


@dataclass(frozen=True)
class PairClassifier:
    """A linear SVM on pairs: together or not. `fit` gives its weights."""

    C: float = 1.0
    constant: int | None = -1
    """Which feature is always 1 and gets the bias; None: there is none, and no bias."""
    loss: Literal["squared_hinge", "hinge"] = "squared_hinge"
    negatives: float | None = None
    """At most so many pairs that are apart for one that is together, drawn at random."""
    canopy: Canopy | None = None
    chain: bool = False
    """Only the pairs of `chain_pairs`: for sets whose items have an order."""
    seed: int = 0

    def fit(self, sets: Sequence[TrainingSet]) -> Vector:
        """The weights that classify the sets' pairs best."""
        if self.C <= 0 or (self.negatives is not None and self.negatives <= 0):
            raise InputError("C and negatives must be above 0")
        if not sets:
            raise InputError("no training sets")
        rows, targets = [], []
        for pairs, labels in sets:
            together = same_cluster(_checked(pairs, labels), pairs.index)
            psi = feature_rows(pairs)
            chosen = self._chosen(psi, together, pairs, labels)
            rows.append(psi[chosen])
            targets.append(together[chosen])
        psi, together = _stacked(rows), np.concatenate(targets)
        if self.negatives is not None:
            kept = _thinned(together, self.negatives, np.random.default_rng(self.seed))
            psi, together = psi[kept], together[kept]
        if together.all() or not together.any():
            kind = "together" if len(together) and together[0] else "apart"
            raise InputError(f"all {len(together)} training pairs are {kind}: a classifier needs both kinds")
        return self._weights(psi, together)

    def _chosen(self, psi: Any, together: Chosen, pairs: PairFeatures, labels: NDArray[Any]) -> Chosen:
        chosen = np.ones(len(together), bool)
        if self.canopy is not None:
            if not -pairs.dimension <= self.canopy.feature < pairs.dimension:
                raise InputError(f"a canopy by feature {self.canopy.feature}: there are {pairs.dimension}")
            likeness = psi[:, [self.canopy.feature]]
            likeness = np.asarray(likeness if isinstance(likeness, np.ndarray) else likeness.toarray()).ravel()
            chosen &= (likeness >= self.canopy.low) & (likeness <= self.canopy.high)
        if self.chain:
            if pairs.index is not None:
                raise InputError("chain pairs are chosen among all pairs of a set, not among some that are stored")
            chosen &= chain_pairs(labels)
        return chosen

    def _weights(self, psi: Any, together: Chosen) -> Vector:
        svm = require_optional("sklearn.svm", "a pair classifier").LinearSVC(
            C=self.C,
            loss=self.loss,
            dual="auto",
            fit_intercept=self.constant is not None,
            intercept_scaling=10.0,  # it is regularised like a weight: less so
            max_iter=100_000,
            random_state=self.seed,
        )
        dimension = psi.shape[1]
        if self.constant is None:
            return np.asarray(svm.fit(psi, together).coef_[0], np.float64)
        if not -dimension <= self.constant < dimension:
            raise InputError(f"feature {self.constant} cannot be the constant: there are {dimension}")
        constant = self.constant % dimension
        others = np.delete(np.arange(dimension), constant)
        column = psi[:, [constant]]
        if column.min() != 1 or column.max() != 1:
            raise InputError(f"feature {constant} is not always 1: name the constant feature, or None if there is none")
        if not len(others):
            raise InputError("a pair classifier needs a feature beside the constant")
        svm.fit(psi[:, others], together)
        w = np.empty(dimension)
        w[others], w[constant] = svm.coef_[0], svm.intercept_[0]
        return w


def feature_rows(pairs: PairFeatures) -> Any:
    """Features of every stored pair, [pairs, dimension]: an array, or CSR where they are stored so."""
    if isinstance(pairs, StoredPairs):
        return pairs.psi
    if isinstance(pairs, StackedPairs):
        return _side_by_side([feature_rows(part) for part in pairs.parts])
    for name in ("psi", "dense"):
        held = getattr(pairs, name, None)
        if held is not None:
            return held() if callable(held) else held
    return np.column_stack([pairs.scores(unit) for unit in np.eye(pairs.dimension)])


def chain_pairs(labels: NDArray[Any], pronoun: NDArray[np.bool_] | None = None) -> Chosen:
    """Which pairs, in the order of `pdist`, train a coreference classifier.

    Of every item: the closest earlier one of its cluster that is no pronoun, and all of other clusters in between. An
    item without such a one is in no pair as its second: first mentions and singletons are never learned from.

    >>> chain_pairs(np.array([0, 1, 2, 0])).tolist()  # (0, 3) together; (1, 3) and (2, 3) apart
    [False, False, True, False, True, True]
    """
    m = len(labels)
    can = np.ones(m, bool) if pronoun is None else ~np.asarray(pronoun, bool)
    chosen = np.zeros(pair_count(m), bool)
    for j in range(1, m):
        before = np.arange(j)
        same = labels[:j] == labels[j]
        antecedents = np.flatnonzero(same & can[:j])
        if not len(antecedents):
            continue
        i = antecedents[-1]
        taken = before[i:][~same[i:] | (before[i:] == i)]
        chosen[taken * (2 * m - taken - 1) // 2 + j - taken - 1] = True
    return chosen


def _checked(pairs: PairFeatures, labels: NDArray[Any]) -> NDArray[Any]:
    if len(labels) != pairs.items:
        raise InputError(f"a set of {pairs.items} items has {len(labels)} labels")
    return labels


def _thinned(together: Chosen, negatives: float, random: np.random.Generator) -> NDArray[np.int64]:
    """All pairs that are together and some of the others, in order."""
    apart = np.flatnonzero(~together)
    keep = min(len(apart), max(round(negatives * int(together.sum())), 1))
    return np.sort(np.concatenate([np.flatnonzero(together), random.choice(apart, keep, replace=False)]))


def _stacked(rows: list[Any]) -> Any:
    if len({part.shape[1] for part in rows}) > 1:
        raise InputError("training sets have different numbers of features")
    if all(isinstance(part, np.ndarray) for part in rows):
        return np.concatenate(rows)
    return require_optional("scipy.sparse", "stacking sparse pair features").vstack(rows).tocsr()


def _side_by_side(parts: list[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.column_stack(parts)
    return require_optional("scipy.sparse", "stacking sparse pair features").hstack(parts).tocsr()
