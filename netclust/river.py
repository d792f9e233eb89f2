"""For river: a detector and a clusterer that link each record to its best earlier one. Needs `netclust[river]`.

>>> from river import evaluate, metrics
>>> from netclust.datasets.simulators.simulate import simulate
>>> stream = simulate(3000, seed=1)
>>> rows = [dict(zip(stream.columns, row)) for row in zip(*(c.tolist() for c in stream.columns.values()))]
>>> data = [(x, label != "normal") for x, label in zip(rows, stream.label.tolist())]
>>> detector = LinkDetector(window=500, use_labels=True)  # the labels come 100 records late
>>> area = evaluate.progressive_val_score(data, detector, metrics.ROCAUC(n_thresholds=100), delay=100)
>>> bool(area.get() > 0.8)
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import MissingExtraError

try:
    from river import base
except ImportError:
    raise MissingExtraError("netclust.river", "river", "river") from None

from netclust.online import NORMAL, OnlineClusterer, OnlineDetector

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LinkDetector", "OnlineLinkClusterer"]

Features = Mapping[Any, Any]


def _rows(X: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = X.to_dict(orient="records")
    return rows


class LinkDetector(base.AnomalyDetector):
    """Unlike every normal record that is remembered, or like a known anomaly, is anomalous.

    What is learned without a label is remembered as normal: an anomaly that comes again unlabelled is one no more.
    Features may come and go: the schema is inferred, and made anew as the stream goes on. Nothing is learned about the
    similarity: differences count in standard deviations. For a trained similarity use `netclust.Linker`.

    Parameters
    ----------
    window
        How many records are remembered.
    grace
        How many records are learned before the first score other than 0.5.
    false_alarm_rate
        Where the root lies: about this share of normal records is taken for anomalous.
    use_labels
        Whether `learn_one` is given labels by pipelines and `evaluate.progressive_val_score`. Whoever calls it
        may always give one: False, 0, None and "normal" mean normal, anything else is the name of an anomaly.

    Examples
    --------

    >>> import random
    >>> rng = random.Random(1)
    >>> detector = LinkDetector(window=200, grace=50)
    >>> for _ in range(200):
    ...     detector.learn_one({"bytes": rng.gauss(100, 10), "service": "http"})
    >>> [detector.predict_one({"bytes": v, "service": s}) for v, s in ((101.0, "http"), (5e6, "ftp"))]
    [False, True]

    References
    ----------
    [^1]: Haponchyk, I., 2018. Advanced Models of Supervised Structural Clustering. PhD thesis, University of Trento.

    """

    def __init__(
        self, window: int = 1000, grace: int = 100, false_alarm_rate: float = 0.01, use_labels: bool = False
    ) -> None:
        self.window = window
        self.grace = grace
        self.false_alarm_rate = false_alarm_rate
        self.use_labels = use_labels
        self._online = OnlineDetector(window, grace, false_alarm_rate)

    @property
    def _supervised(self) -> bool:
        return self.use_labels

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"grace": 20}

    def learn_one(self, x: Features, y: Any = None) -> None:
        """Remember a record, as what it is said to be."""
        self._online.learn([x], [_label(y)])

    def learn_many(self, X: pd.DataFrame, y: pd.Series | None = None) -> None:
        """The same as `learn_one` of every row."""
        self._online.learn(_rows(X), None if y is None else [_label(v) for v in y.tolist()])

    def score_one(self, x: Features) -> float:
        """Between 0 and 1, as river's metrics expect: above 0.5 the record is anomalous. 0.5 before anything is known.

        It is (1 + s / (1 + |s|)) / 2 of a verdict's score s: nearer to an anomaly, or to nothing, than to any normal
        record.
        """
        return float(_between(self._online.scores([x]))[0])

    def score_many(self, X: pd.DataFrame) -> pd.Series:
        """The same as `score_one` of every row."""
        import pandas as pd

        return pd.Series(_between(self._online.scores(_rows(X))), index=X.index, name="score")

    def predict_one(self, x: Features) -> bool:
        """Whether the record is anomalous."""
        return self._predict([x])[0]

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The same as `predict_one` of every row."""
        import pandas as pd

        return pd.Series(self._predict(_rows(X)), index=X.index, name="anomalous", dtype=bool)

    def _predict(self, rows: Sequence[Features]) -> list[bool]:
        verdicts = self._online.score_only(rows)
        return [False] * len(rows) if verdicts is None else [bool(v) for v in verdicts.anomalous]


def _between(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((1 + scores / (1 + np.abs(scores))) / 2)


def _label(y: Any) -> str:
    """The class that a river target means.

    >>> _label(True), _label(0), _label("smurf"), _label(None)
    ('anomaly', 'normal', 'smurf', 'normal')
    """
    if isinstance(y, str):
        return y or NORMAL
    return "anomaly" if y else NORMAL


class OnlineLinkClusterer(base.Clusterer):
    """Every record joins the cluster of its best earlier record, or opens a new one if that is too far away.

    Clusters are never merged, and keep their number for as long as a record of theirs is remembered.

    Parameters
    ----------
    window
        How many records are remembered.
    grace
        How many records are learned before clusters are made of them.
    stretch
        Without a radius: how many times farther a record may be than 19 of 20 remembered ones are.
    radius
        How far a record may be from its best earlier one: in standard deviations, plus 1 for each symbol that differs.

    Examples
    --------

    >>> import random
    >>> rng = random.Random(1)
    >>> clusterer = OnlineLinkClusterer(grace=20, radius=0.5)
    >>> for i in range(200):
    ...     clusterer.learn_one({"load": rng.gauss(10 * (i % 3), 0.1), "kind": "web"})
    >>> [clusterer.predict_one({"load": 10.0 * k, "kind": "web"}) for k in range(3)]
    [0, 1, 2]

    """

    def __init__(self, window: int = 1000, grace: int = 100, stretch: float = 2.0, radius: float | None = None) -> None:
        self.window = window
        self.grace = grace
        self.stretch = stretch
        self.radius = radius
        self._online = OnlineClusterer(window, grace, stretch, radius)

    def learn_one(self, x: Features) -> None:
        """Link a record, and remember it."""
        self._online.learn([x])

    def learn_many(self, X: pd.DataFrame) -> None:
        """The same as `learn_one` of every row."""
        self._online.learn(_rows(X))

    def predict_one(self, x: Features) -> int:
        """The cluster that the record would join; a number not given yet if it would open one."""
        return int(self._online.predict([x])[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The same as `predict_one` of every row."""
        import pandas as pd

        return pd.Series(self._online.predict(_rows(X)), index=X.index, name="cluster")
