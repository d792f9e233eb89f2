"""Ranking for scikit-learn's manner: fit on queries with judged candidates, predict the order of new ones.

Needs `netclust[offline]`. X is a *list of queries*: arrays [candidates, features], or pairs of a question and its
answers. y is a list of labels a query, above 0 for a right candidate.

>>> rng = np.random.default_rng(0)
>>> def query():  # the first feature tells, the second does not
...     y = rng.permutation([1, 0, 0, 0])
...     return np.column_stack([y + rng.normal(0, 0.2, 4), rng.normal(0, 1, 4)]), y
>>> X, y = zip(*[query() for _ in range(30)])
>>> ranker = StructuralRanker().fit(list(X), list(y))
>>> [order.tolist() for order in ranker.predict([np.array([[0.1, 2.0], [0.9, -1.0], [0.4, 0.0]])])]
[[1, 2, 0]]
>>> new_X, new_y = zip(*[query() for _ in range(20)])
>>> ranker.score(list(new_X), list(new_y)) > 0.95  # mean average precision
True
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.queries import Queries, Query
from netclust.errors import InputError, MissingExtraError

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtraError("netclust.ranking", "scikit-learn", "offline") from None

from netclust.models.ranking.rank_model import CandidateFeatures, RankModel, rank_examples, text_queries
from netclust.models.ranking.ranking_metrics import measure_rankings
from netclust.models.ranking.train_ranker import RankSettings, choose_ranking, learn_ranking

__all__ = ["JointRanker", "StructuralRanker"]


class _Ranker(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: queries in, weights learned, orders out."""

    C: float | Literal["cv"]
    epochs: int
    folds: int

    def _settings(self) -> RankSettings:
        raise TypeError(f"{type(self).__name__} is not an estimator of its own")

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Any:
        """Learn from queries and the labels of their candidates."""
        queries = _queries(X, y).mixed()
        if not queries.queries:
            raise InputError("no query has both a right and a wrong candidate: there is nothing to learn an order from")
        settings = self._settings()
        features = CandidateFeatures.fit(queries)
        examples = rank_examples(features, queries, pairs=settings.model == "jsrc")
        if self.C == "cv":
            settings = choose_ranking(settings, examples, epochs=self.epochs, folds=self.folds).settings
        w = learn_ranking(settings, examples)
        self.model_ = RankModel(settings=settings, features=features, w=w)
        self.C_, self.epochs_, self.coef_ = settings.C, settings.epochs, w
        return self

    def predict(self, X: Sequence[Any]) -> list[NDArray[np.int64]]:
        """The candidates of every query, best first."""
        check_is_fitted(self, "model_")
        return [found.order for found in self.model_.rank(_queries(X, None))]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Mean average precision, of the queries that have a right candidate."""
        check_is_fitted(self, "model_")
        queries = _queries(X, y)
        ranked = zip(queries.queries, self.model_.rank(queries), strict=True)
        return measure_rankings(query.labels[found.order] for query, found in ranked if query.labels is not None).map

    def save(self, path: str | Path) -> None:
        """Write a model file that `netclust rank` and `netclust.RankModel.load` read."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    def _cost(self) -> float:
        if self.C == "cv":
            return 1.0
        try:
            return float(self.C)
        except (TypeError, ValueError):
            raise InputError(f"C is {self.C!r}: give a number, or 'cv' to choose one") from None


class StructuralRanker(_Ranker):
    """SR: a latent perceptron over rankings, trained for average precision.

    Parameters
    ----------
    C : float or "cv", default=0.1
        Weight of the loss in the search for what is most wrong; "cv" chooses it, and the epochs, on held-out queries.
    epochs : int, default=5
        Passes over the queries; with "cv" the most that are tried.
    search : {"exact", "greedy"}, default="exact"
        How the most violating ranking is found; greedy is the printed way.
    folds : int, default=5
        Of "cv".
    seed : int, default=0
        Of the order of queries.
    """

    def __init__(
        self,
        C: float | Literal["cv"] = 0.1,
        epochs: int = 5,
        search: Literal["exact", "greedy"] = "exact",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.C = C
        self.epochs = epochs
        self.search = search
        self.folds = folds
        self.seed = seed

    def _settings(self) -> RankSettings:
        return RankSettings(model="sr", C=self._cost(), epochs=self.epochs, search=self.search, seed=self.seed)


class JointRanker(_Ranker):
    """JSRC: ranks and clusters at once; members of a cluster stand next to each other.

    Parameters
    ----------
    C, epochs, folds, seed
        As in `StructuralRanker`.
    start : {"zero", "pairs"}, default="zero"
        Weights of pairs start at 0 (then right forests span), or at a pair classifier's; "cv" chooses this too.
    """

    def __init__(
        self,
        C: float | Literal["cv"] = 0.1,
        epochs: int = 5,
        start: Literal["zero", "pairs"] = "zero",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.C = C
        self.epochs = epochs
        self.start = start
        self.folds = folds
        self.seed = seed

    def _settings(self) -> RankSettings:
        return RankSettings(model="jsrc", C=self._cost(), epochs=self.epochs, start=self.start, seed=self.seed)

    def predict_clusters(self, X: Sequence[Any]) -> list[NDArray[np.int64]]:
        """The cluster of every candidate, a list of labels a query."""
        check_is_fitted(self, "model_")
        return [found.clusters for found in self.model_.rank(_queries(X, None))]


def _queries(X: Sequence[Any], y: Sequence[Any] | None) -> Queries:
    """What people have as queries."""
    if not isinstance(X, list | tuple) or not X:
        raise InputError("give a list of queries: arrays [candidates, features], or (question, answers)")
    if isinstance(X[0], tuple) and len(X[0]) == 2 and isinstance(X[0][0], str):
        return text_queries(X, y)
    if y is not None and len(y) != len(X):
        raise InputError(f"{len(X)} queries, but labels of {len(y)}")
    found, width = [], None
    for n, given in enumerate(X):
        try:
            numbers = np.asarray(given, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"query {n}: candidates need features that are numbers ({error})") from None
        if numbers.ndim != 2 or width not in (None, numbers.shape[1]) or not numbers.shape[1]:
            raise InputError(f"query {n} has shape {list(numbers.shape)}, expected [candidates, {width or 'features'}]")
        if not np.isfinite(numbers).all():
            raise InputError(f"query {n} has a number that is not finite")
        width = numbers.shape[1]
        labels = None if y is None else (np.asarray(y[n]) > 0).astype(np.int64)
        if labels is not None and labels.shape != (len(numbers),):
            raise InputError(f"query {n} has {len(numbers)} candidates, but {labels.size} labels")
        found.append(Query(str(n), tuple(map(str, range(len(numbers)))), labels, numbers))
    return Queries(tuple(found), tuple(f"feature {k}" for k in range(1, (width or 0) + 1)))
