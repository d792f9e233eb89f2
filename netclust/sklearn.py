"""For scikit-learn: a classifier and a novelty detector that link to training records. Needs `netclust[sklearn]`.

>>> from sklearn.datasets import load_iris
>>> from sklearn.model_selection import cross_val_score
>>> X, y = load_iris(return_X_y=True)
>>> bool(cross_val_score(LinkClassifier(), X, y).mean() > 0.9)
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import MissingExtraError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("netclust.sklearn", "scikit-learn", "sklearn") from None

from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import Verdicts, reference_index
from netclust.models.network.stream_perceptron import StreamRule, train_stream
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding
from netclust.records.frames import as_table, frame_columns, infer_schema
from netclust.scoring.calibration import calibrate
from netclust.scoring.model import Model, distance_model

__all__ = ["LinkClassifier", "LinkNovelty"]

Matrix = NDArray[np.float64]


def _model(X: Matrix, labels: Any, normal: str) -> Model:
    columns = frame_columns(X)
    constant = all(np.ptp(column) == 0 for column in columns.values())
    if constant:  # nothing tells records apart: a column that does keeps the engine going, and all tie
        columns["row"] = np.arange(len(X), dtype=float)
    table = as_table(columns, labels, schema=infer_schema(columns, normal=normal, transform="none"))
    return distance_model(table)


def _batch(model: Model, X: Matrix) -> Batch:
    columns = frame_columns(X)
    if any(a.name == "row" for a in model.encoding.schema.features):
        columns["row"] = np.zeros(len(X))
    return model.encoding.encode(as_table(columns, schema=model.encoding.schema))


def _score_only(model: Model, batch: Batch) -> Verdicts:
    return Linker(model, LinkerConfig(referent_window=0)).score_only(batch)


class LinkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Each record gets the class of the training record that it links to.

    A difference counts in standard deviations, but in no less than an eighth of an attribute's range: scale or clip
    attributes with wild outliers first. There are no probabilities.

    Parameters
    ----------
    learner : {"unlearned", "lsp"}, default="unlearned"
        "unlearned": differences count in standard deviations, all attributes alike. "lsp": the latent structured
        perceptron learns which pairs belong together, in the order of the training records.
    training_window : int, default=1000
        Of "lsp": how many earlier records a record may link to in training.
    epochs : int, default=5
        Of "lsp": passes over the training records.
    C : float, default=1.0
        Of "lsp": weight of the loss.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    model_ : netclust.Model
        What was fitted; every training record is a referent.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [5.0], [5.2]])
    >>> LinkClassifier().fit(X, ["low", "low", "high", "high"]).predict([[0.3], [4.0]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        learner: Literal["unlearned", "lsp"] = "unlearned",
        training_window: int = 1000,
        epochs: int = 5,
        C: float = 1.0,
    ) -> None:
        self.learner = learner
        self.training_window = training_window
        self.epochs = epochs
        self.C = C

    def fit(self, X: Any, y: Any) -> LinkClassifier:
        """Learn from labelled records; every one of them becomes a referent."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        if self.learner not in ("unlearned", "lsp"):
            raise ValueError(f"learner is 'unlearned' or 'lsp', not {self.learner!r}")
        if not 0 <= self.C < np.inf:
            raise ValueError(f"C lies between 0 and infinity, not {self.C}")
        self.classes_, codes = np.unique(y, return_inverse=True)
        labels = [f"class {k}" for k in codes]
        model = _model(X, labels, normal="class 0")
        if self.learner == "lsp":
            rule = StreamRule(training_window=self.training_window, epochs=self.epochs, C=self.C)
            fit = train_stream(model.reference, model.encoding.widths, rule)
            model = replace(model, averaged=fit.averaged, last=fit.last)
        self.model_ = model
        self._numbers = _numbers(model.encoding)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes of records."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.classes_[self._numbers[_score_only(self.model_, _batch(self.model_, X)).label]])

    def referents(self, X: Any) -> NDArray[np.int64]:
        """Which training record each record links to."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return reference_index(_score_only(self.model_, _batch(self.model_, X)).parent)


def _numbers(encoding: Encoding) -> NDArray[np.int64]:
    """Our label numbers to places in classes_."""
    return np.array([int(name.removeprefix("class ")) for name in encoding.labels])


def _to_others(model: Model, rows: NDArray[np.int64] | None = None) -> Matrix:
    """Minus the distance of every referent, or of some among each other, to its nearest other one."""
    from netclust.kernels.linking import margin as kernels
    from netclust.kernels.linking.score import score_columns

    num = model.reference.num if rows is None else model.reference.num[rows]
    n = len(num)
    code = np.zeros((n, 0), np.uint16)
    out = kernels.room_for(n)
    everyone = kernels.Candidates(score_columns(num), score_columns(code), np.ones(n, np.uint8))
    weights = (-model.scorer.slope, np.zeros(0, np.float32), model.scorer.far)
    kernels.nearest_sides(num, code, np.arange(n), everyone, *weights, out)
    return np.asarray(out.normal, np.float64)


class LinkNovelty(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Records that are farther from all training records than most of these are from each other are novel.

    A record that equals a training record is as far as that one is from the others: no record vouches for itself.
    Fitting compares all pairs of training records.

    Parameters
    ----------
    false_alarm_rate : float, default=0.01
        The share of records like the training ones that is taken for novel; with few of them what so few can promise.

    Attributes
    ----------
    model_ : netclust.Model
        What was fitted; every training record is a referent.
    offset_ : float
        The score below which a record is novel.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> LinkNovelty().fit(X).predict([[0.1, -0.2], [9.0, 9.0]]).tolist()
    [1, -1]
    """

    def __init__(self, false_alarm_rate: float = 0.01) -> None:
        self.false_alarm_rate = false_alarm_rate

    def fit(self, X: Any, y: Any = None) -> LinkNovelty:
        """Remember the records, all taken for normal."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if not isinstance(self.false_alarm_rate, float | int) or not 0 < self.false_alarm_rate < 1:
            raise ValueError(f"false_alarm_rate lies between 0 and 1, not {self.false_alarm_rate}")
        self.model_ = _model(X, ["normal"] * len(X), normal="normal")
        self._highest = float(self.model_.averaged[: len(self.model_.encoding.kept)].sum())
        self._own = _to_others(self.model_)
        # A row that occurs twice says nothing of how far apart records are.
        distinct = np.unique(self.model_.reference.num, axis=0, return_index=True)[1]
        apart = _to_others(self.model_, distinct) if len(distinct) > 1 else self._own
        self.offset_ = calibrate(apart, max(self.false_alarm_rate, 1.01 / (len(apart) + 1))).root
        return self

    def score_samples(self, X: Any) -> Matrix:
        """Minus the distance to the nearest training record."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        batch = _batch(self.model_, X)
        found = _score_only(self.model_, batch)
        at = reference_index(found.parent)
        same = (self.model_.reference.num[at] == batch.num).all(axis=1)
        return np.where(same, self._own[at], found.normal.astype(np.float64) - self._highest)

    def decision_function(self, X: Any) -> Matrix:
        """Above 0 for what is like the training records, below for what is novel."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for what is like the training records, -1 for what is novel."""
        return np.where(self.decision_function(X) > 0, 1, -1)
