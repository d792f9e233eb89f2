"""Clustering with ever more irrelevant features: a learned likeness ignores them, k-means cannot.

100 points in two clusters that one dimension tells apart; D further dimensions are mixtures of the same shape whose
components mean nothing. Edge accuracy is the share of pairs rightly put together or apart.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
section 11.5. Curves are printed without numbers there: learned stays high, k-means falls to chance (0.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.synthetic_sets import sets_with_irrelevant_features
from netclust.losses.partition_loss import pairwise_loss
from netclust.models.clustering.train_clusterer import ClusterSettings, Example, cluster_with, learn_clusterer
from netclust.models.experiments.clustering.baselines import PlainKMeans
from netclust.structures.pairs import ComputedPairs

__all__ = ["DIMENSIONS", "Curve", "run_curve"]

DIMENSIONS = (1, 2, 4, 8, 16, 32, 64, 128)
COSTS = (1e2, 1e3, 1e4, 1e5)
POINTS = 100
_VALIDATION = 1_000_000
"""Seeds from here on are for choosing C: no draw that is reported."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the picture: edge accuracy as a fraction, mean and standard deviation over runs, by D."""

    name: str
    setting: str
    mean: float
    sd: float | None
    draws: int
    published: float | None = None
    C: float | None = None


def run_curve(
    oracle: str = "local",
    *,
    dimensions: Sequence[int] = DIMENSIONS,
    runs: int = 20,
    validation: int = 3,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Curve]:
    """Train on one set and cluster another, for every D and run; C is chosen on draws of its own."""
    rows: list[Curve] = []
    done, total = 0, len(dimensions) * (runs + validation)

    def tick() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    for D in dimensions:
        C = _choose(oracle, D, validation, tick)
        learned, plain, unlearned = [], [], []
        for run in range(runs):
            (_, train), (X, test) = _draw(D, 2 * run), _draw(D, 2 * run + 1)
            learned.append(_accuracy(_settings(oracle, C), train, test))
            plain.append(1 - pairwise_loss(test[1], PlainKMeans(seed=run).cluster(X, 2)) / 100)
            only = PlainKMeans(seed=run).cluster(X[:, :1], 2)
            unlearned.append(1 - pairwise_loss(test[1], only) / 100)
            tick()
        for name, values, cost in (
            (f"learned, {oracle} oracle", learned, C),
            ("k-means", plain, None),
            ("k-means on the relevant feature alone", unlearned, None),
        ):
            sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
            rows.append(
                Curve(name=name, setting=f"D = {D}", mean=float(np.mean(values)), sd=sd, draws=len(values), C=cost)
            )
    return rows


def _settings(oracle: str, C: float) -> ClusterSettings:
    return ClusterSettings(oracle=oracle, predictor="local" if oracle == "greedy" else oracle, C=C)


def _draw(D: int, seed: int) -> tuple[NDArray[np.float64], Example]:
    X, labels = sets_with_irrelevant_features(POINTS, D, seed)
    return X, (ComputedPairs(X, "gaussian"), labels)


def _accuracy(settings: ClusterSettings, train: Example, test: Example) -> float:
    w = learn_clusterer(settings, [train]).w
    return 1 - pairwise_loss(test[1], cluster_with(settings, test[0], w)) / 100


def _choose(oracle: str, D: int, validation: int, tick: Callable[[], None]) -> float:
    """The C of the best mean accuracy on validation draws; of equals the smallest."""
    found = np.zeros(len(COSTS))
    for run in range(validation):
        (_, train), (_, held) = _draw(D, _VALIDATION + 2 * run), _draw(D, _VALIDATION + 2 * run + 1)
        found += [_accuracy(_settings(oracle, C), train, held) for C in COSTS]
        tick()
    return COSTS[int(np.argmax(found))]
