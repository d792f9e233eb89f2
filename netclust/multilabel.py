"""Multi-label models for scikit-learn's manner: fit on X and a matrix of labels, predict all labels of new rows.

Needs `netclust[offline]`. X is dense or sparse; Y has a column a label, 1 where a row has it.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(80, 2))
>>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0, X[:, 1] > 0]).astype(int)
>>> model = MultilabelClassifier(C=100.0, epsilon=1.0).fit(X[:60], Y[:60])
>>> model.predict([[2.0, -1.0]]).tolist(), bool(model.score(X[60:], Y[60:]) > 0.7)  # all labels of a row right
([[1, 0, 0]], True)
>>> model.pair_weights_.shape
(3, 3)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.label_sets import LabelSetTable
from netclust.errors import InputError, MissingExtraError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise MissingExtraError("netclust.multilabel", "scikit-learn", "offline") from None

from netclust.models.multilabel.multilabel_problem import LabelRows
from netclust.models.multilabel.task import TASK, LabelSettings, Search, decided_labels
from netclust.models.structured_model import StructuredModel
from netclust.models.structured_task import choose_cost, learn

__all__ = ["MultilabelClassifier"]


class MultilabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """All labels of a row are found together, by a fully connected network whose weights a structural SVM learns.

    y may also be one column of classes: each is a label then, and the one of the highest value alone is predicted.

    Parameters
    ----------
    C : float or "cv", default=100.0
        Weight of the mean Hamming loss, in percent; "cv" chooses it by folds of the training rows.
    oracle : {"auto", "greedy", "lbp", "combine", "exact", "lp", "cut"}, default="auto"
        What finds the most violated labelling in training; "auto" is "cut".
    predictor : the same, default="auto"
        What finds the labels of a row; "auto" is "exact" up to 12 labels, else "combine". Labels that "lp" and "cut"
        leave open are off.
    edges : bool, default=True
        Whether pairs of labels have weights.
    scale : {"auto", "none"}, default="auto"
        Dense features are centred and divided by their standard deviation, sparse ones by their largest value.
    epsilon : float, default=0.1
        Training stops at so little violation, in percent of loss.
    max_iterations : int, default=500
        And after so many iterations.
    folds : int, default=5
        Of "cv".
    seed : int, default=0
        Of the folds.

    Attributes
    ----------
    classes_ : ndarray
        The labels: numbers of columns, or the classes.
    model_ : netclust.models.structured_model.StructuredModel
        What was fitted.
    C_ : float
        The C that it was fitted with.
    feature_weights_ : ndarray of shape (n_labels, n_features + 1)
        Of every label, in units of the scaled features; the last one is the constant's.
    pair_weights_ : ndarray of shape (n_labels, n_labels)
        What two labels are worth together; symmetric.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> MultilabelClassifier().fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]]).predict([[0.2]]).tolist()
    [[1, 0]]
    """

    def __init__(
        self,
        C: float | Literal["cv"] = 100.0,
        oracle: Search = "auto",
        predictor: Search = "auto",
        edges: bool = True,
        scale: Literal["auto", "none"] = "auto",
        epsilon: float = 0.1,
        max_iterations: int = 500,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.C = C
        self.oracle = oracle
        self.predictor = predictor
        self.edges = edges
        self.scale = scale
        self.epsilon = epsilon
        self.max_iterations = max_iterations
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, y: Any) -> MultilabelClassifier:
        """Learn from rows and their labels."""
        X, y = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr", multi_output=True, ensure_min_samples=2)
        y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        check_classification_targets(y)
        settings = self._settings()
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if self.multilabel_:
            Y = y.astype(np.uint8)
            if (y != Y).any() or Y.max(initial=0) > 1:
                raise ValueError("Unknown label type: a matrix of labels is of 0 and 1")
            self.classes_ = np.arange(Y.shape[1])
        else:
            self.classes_, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError("one class alone: there is nothing to tell apart")
            Y = (codes[:, None] == np.arange(len(self.classes_))).astype(np.uint8)
        table = self._table(X, Y)
        encoder = TASK.fit(table, settings)
        self.chosen_ = None
        if self.C == "cv":
            self.chosen_ = choose_cost(TASK, settings, table, encoder, folds=self.folds)
            settings = self._settings(self.chosen_.C)
        learned = learn(TASK, settings, encoder, TASK.encode(encoder, table))
        self.model_ = StructuredModel(task=TASK, settings=settings, encoder=encoder, w=learned.w)
        self.n_iter_ = learned.iterations
        self.C_ = settings.C
        labels, features = len(encoder.labels), len(encoder.features) + 1
        self.feature_weights_ = learned.w[: labels * features].reshape(labels, features)
        self.pair_weights_ = TASK.problem(encoder, settings).pair(learned.w)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """A column a label, 1 where a row has it; of classes, the class of every row."""
        X = self._rows(X)
        if not self.multilabel_:
            return np.asarray(self.classes_[self._alone(X).argmax(axis=1)])
        problem = TASK.problem(self.model_.encoder, self.model_.settings)
        return decided_labels(problem.predict(LabelRows(self.model_.encoder.rows(X)), self.model_.w)).astype(np.int64)

    def save(self, path: str | Path) -> None:
        """Write a model file that `netclust predict multilabel` reads; features are called `feature 1` and so on."""
        check_is_fitted(self, "model_")
        self.model_.save(path)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)

    def _alone(self, X: Any) -> NDArray[np.float64]:
        """What each label alone is worth: of one class a row, nothing else is asked."""
        problem = TASK.problem(self.model_.encoder, self.model_.settings)
        return problem.theta(LabelRows(self.model_.encoder.rows(X)), self.model_.w)

    def _settings(self, C: float = 1.0) -> LabelSettings:
        if self.C != "cv":
            try:
                C = float(self.C)
            except (TypeError, ValueError):
                raise InputError(f"C is {self.C!r}: give a number, or 'cv' to choose one") from None
        return LabelSettings(
            C=C, oracle=self.oracle, predictor=self.predictor, edges=bool(self.edges), scale=self.scale,
            epsilon=self.epsilon, max_iterations=self.max_iterations, seed=self.seed,
        )  # fmt: skip

    def _table(self, X: Any, Y: NDArray[np.uint8]) -> LabelSetTable:
        features = tuple(f"feature {k}" for k in range(1, X.shape[1] + 1))
        labels = tuple(map(str, self.classes_.tolist()))
        return LabelSetTable(features, labels, X, Y, tuple(map(str, range(1, len(Y) + 1))))

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks: several labels a row, and sparse rows."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags
