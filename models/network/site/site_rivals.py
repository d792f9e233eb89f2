"""Other people's novelty detectors on the same attributes: numbers, and symbols as one bit per value.

A rival learns all benign records of the warm-up. Its thresholds are set on scores of records that it had not learned:
each half of the warm-up is scored by a rival that learned the other half. scikit-learn has the isolation forest and the
nearest neighbours, river the half-space trees, PySAD KitNet (`pip install 'netclust[bench]'`); ECOD (Li et al. 2022) is
computed here with numpy.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import MissingExtraError
from netclust.models.network.site.site_scorers import Scores, ThresholdScorer, one_hot, upper_quantile
from netclust.records.encoding import fit_encoding
from netclust.records.table import Table

__all__ = ["FAST_RIVALS", "SITE_RIVALS", "RivalScorer", "ecod_scores", "make_rivals"]

NEIGHBOURS = 10
X = NDArray[np.float64]
Learned = Callable[[X], Scores]
"""What has learned scores rows."""


class RivalScorer(ThresholdScorer):
    """A rival by its name, one of `SITE_RIVALS`."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self._learn = SITE_RIVALS[name]
        self._seed = seed

    def fit(self, benign: Table) -> None:
        """Learn the site, and score each half of it by the other."""
        self._encoding = fit_encoding(benign)
        x = one_hot(self._encoding, benign)
        half = len(x) // 2
        first, second = x[:half], x[half:]
        self._held = np.concatenate([self._learn(second, self._seed)(first), self._learn(first, self._seed)(second)])
        self._learned = self._learn(x, self._seed)

    def scores(self, table: Table) -> Scores:
        """Score records by what all of the warm-up taught."""
        return self._learned(one_hot(self._encoding, table))

    def threshold(self, rate: float) -> float:
        """Return the score that this share of the held-out records exceeds."""
        return upper_quantile(self._held, rate)


def _isolation_forest(x: X, seed: int) -> Learned:
    """As published: 256 records per tree. Trees of more records rank worse at the sites that were tried."""
    forest = _module("sklearn.ensemble").IsolationForest(
        n_estimators=200, max_samples=min(256, len(x)), random_state=seed
    )
    forest.fit(x)
    return lambda rows: np.asarray(-forest.score_samples(rows), np.float64)


def _nearest(x: X, seed: int) -> Learned:
    """The distance to the 10th nearest neighbour, every column in units of its standard deviation."""
    del seed
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0] = 1.0
    k = min(NEIGHBOURS, len(x))
    neighbours = _module("sklearn.neighbors").NearestNeighbors(n_neighbors=k).fit((x - mean) / spread)
    return lambda rows: np.asarray(neighbours.kneighbors((rows - mean) / spread)[0][:, -1], np.float64)


def _ecod(x: X, seed: int) -> Learned:
    del seed
    return lambda rows: ecod_scores(x, rows)


def ecod_scores(past: X, rows: X) -> Scores:
    """Return ECOD's scores of new rows: how far out they are in the tails of each column, added over columns.

    >>> past = np.linspace(0, 1, 101)[:, None]
    >>> far, near = ecod_scores(past, np.array([[5.0], [0.5]]))
    >>> bool(far > near)
    True
    """
    n = len(past)
    left, right, skewed = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    for f in range(past.shape[1]):
        column = np.sort(past[:, f])
        below = np.searchsorted(column, rows[:, f], side="right")
        above = n - np.searchsorted(column, rows[:, f], side="left")
        lower, upper = -np.log((below + 1) / (n + 1)), -np.log((above + 1) / (n + 1))
        centred = column - column.mean()
        left += lower
        right += upper
        skewed += lower if float((centred**3).mean()) < 0 else upper
    return np.maximum(np.maximum(left, right), skewed)


def _half_space_trees(x: X, seed: int) -> Learned:
    trees = _module("river.anomaly").HalfSpaceTrees(n_trees=25, height=12, window_size=min(500, len(x)), seed=seed)
    for row in np.clip(x, 0, 1).tolist():
        trees.learn_one(dict(enumerate(row)))

    def score(rows: X) -> Scores:
        return np.array([trees.score_one(dict(enumerate(row))) for row in np.clip(rows, 0, 1).tolist()])

    return score


def _kitnet(x: X, seed: int) -> Learned:
    """Kitsune's ensemble of autoencoders: a tenth of the warm-up maps attributes, the rest trains."""
    mapping = max(len(x) // 10, 10)
    net = _module("pysad.models").KitNet(
        grace_feature_mapping=mapping, grace_anomaly_detector=len(x) - mapping - 1, random_state=seed
    )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its progress
        for row in x:
            net.fit_partial(row)

    def score(rows: X) -> Scores:
        with contextlib.redirect_stdout(io.StringIO()):
            found = [float(net.score_partial(row)) for row in rows]
        return np.asarray(np.nan_to_num(np.array(found), nan=0.0), np.float64)

    return score


SITE_RIVALS: dict[str, Callable[[X, int], Learned]] = {
    "isolation forest": _isolation_forest,
    "10th neighbour": _nearest,
    "ECOD": _ecod,
    "half-space trees": _half_space_trees,
    "KitNet": _kitnet,
}
FAST_RIVALS = ("isolation forest", "10th neighbour", "ECOD")


RANDOM_RIVALS = ("isolation forest", "half-space trees", "KitNet")


def make_rivals(names: tuple[str, ...], seed: int = 0, draws: int = 1) -> list[RivalScorer]:
    """Return the rivals of these names; one that draws random numbers several times, with seeds that follow."""
    return [RivalScorer(name, seed + draw) for name in names for draw in range(draws if name in RANDOM_RIVALS else 1)]


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError("this baseline", name.partition(".")[0], "bench") from None
