"""Choose C by cross-validation over the training sets: whole sets are held out, never pairs of one.

>>> from netclust.structures.pairs import ComputedPairs
>>> rng = np.random.default_rng(0)
>>> def example():
...     y = rng.integers(0, 3, 12)
...     return ComputedPairs(y[:, None] + rng.normal(0, 0.1, (12, 1))), y
>>> found = choose_cost(ClusterSettings(), [example() for _ in range(4)], grid=(1e-6, 1e4), folds=2)
>>> found.C, found.losses[0] > found.losses[1]
(10000.0, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.models.clustering.train_clusterer import (
    ClusterSettings,
    Example,
    LearnedClustering,
    check_sizes,
    cluster_with,
    clusterer_loss,
    learn_clusterer,
)
from netclust.models.selection import k_folds, select_candidate

__all__ = ["GRIDS", "ChosenClusterCost", "choose_cost"]

GRIDS: dict[str, tuple[float, ...]] = {
    "correlation": (1e4, 1e5, 1e6, 1e7, 1e8),
    "kmeans": (1e-2, 1e-1, 1.0, 1e1, 1e2),
    "links": (1e-2, 1e-1, 1.0, 1e1, 1e2),
    "pairwise": (1e-3, 1e-2, 1e-1, 1.0, 1e1),
}


@dataclass(frozen=True)
class ChosenClusterCost:
    """The best C of a grid, and the mean loss (percent) over folds of each."""

    C: float
    grid: tuple[float, ...]
    losses: tuple[float, ...]


def grid_of(settings: ClusterSettings) -> tuple[float, ...]:
    """The values that are tried where none are given."""
    if settings.learner == "pairwise":
        return GRIDS["pairwise"]
    if settings.learner in ("lsp", "lspa"):  # C multiplies a loss of percents there, and is no trade against |w|
        return GRIDS["links"]
    return GRIDS.get(settings.structure, GRIDS["links"])


def choose_cost(
    settings: ClusterSettings,
    examples: Sequence[Example],
    *,
    grid: Sequence[float] | None = None,
    folds: int = 5,
    on_progress: Callable[[int, int], None] | None = None,
) -> ChosenClusterCost:
    """The C of the lowest loss on held-out training sets; of equals the smallest."""
    if len(examples) < 2:
        raise InputError("C is chosen on held-out sets, and there is one set only: give C, or more sets")
    check_sizes(settings, examples)  # of all sets, also of those that the first fold holds out
    tried = tuple(sorted(grid_of(settings) if grid is None else grid))
    parts = k_folds(len(examples), min(folds, len(examples)), seed=settings.seed)
    done = 0

    def fit(C: float, train: list[Example]) -> LearnedClustering:
        nonlocal done
        learned = learn_clusterer(msgspec.structs.replace(settings, C=C), train)
        done += 1
        if on_progress is not None:
            on_progress(done, len(tried) * len(parts))
        return learned

    def measure(C: float, learned: LearnedClustering, held: list[Example]) -> float:
        return float(np.mean(losses(settings, learned, held)))

    found = select_candidate(tried, examples, parts, fit, measure)
    return ChosenClusterCost(found.best, tried, found.losses)


def losses(settings: ClusterSettings, learned: LearnedClustering, examples: Sequence[Example]) -> list[float]:
    """The loss of every set; k-means is told how many clusters there are."""
    return [
        clusterer_loss(
            settings,
            y,
            cluster_with(settings, x, learned.w, k=len(np.unique(y)) if settings.structure == "kmeans" else None),
        )
        for x, y in examples
    ]
