"""How training and searching grow: with sets, with items, with the oracle. Slopes are those of log time on log size.

The literature prints shapes, no numbers: with one slack the number of iterations does not grow with the number of sets,
so training time grows in proportion to it; under-generating oracles end at lower, relaxed ones at higher objectives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from netclust.datasets.simulators.synthetic_sets import news_like
from netclust.learners.one_slack import OneSlack
from netclust.models.clustering.correlation import CorrelationProblem, cluster_by, correlation_scores
from netclust.models.clustering.train_clusterer import Example

__all__ = ["Point", "run_scaling", "slope"]

C, EPSILON = 1e7, 0.1
LARGE = (1000, 2000)
"""Items of sets that are clustered, not trained on."""
ORDER = ("greedy", "local", "exact", "lp", "sdp")


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: what was done, how large it was, how long it took, and how it ended."""

    series: str
    size: int
    seconds: float
    iterations: int | None = None
    objective: float | None = None
    gap: float | None = None
    converged: bool | None = None


def slope(points: Sequence[Point]) -> float:
    """The exponent p of seconds ~ size^p, by least squares on logarithms.

    >>> slope([Point(series="a", size=n, seconds=3.0 * n**2) for n in (1, 2, 4)]).__round__(6)
    2.0
    """
    size, seconds = (np.log([getattr(point, name) for point in points]) for name in ("size", "seconds"))
    return float(np.polyfit(size, seconds, 1)[0])


def run_scaling(
    *,
    sets: Sequence[int] = (4, 8, 16, 32, 64),
    items: Sequence[int] = (40, 80, 160, 320),
    lp_items: Sequence[int] = (50, 100, 200),
    small: int = 4,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """All series: training by number of sets and by items, searches by items, and the order of objectives."""
    jobs: list[Callable[[], Point]] = []
    jobs += [partial(_train, "training, by sets", n, _sets(n, 60, seed), "greedy") for n in sets]
    jobs += [partial(_train, "training, by items", m, _sets(8, m, seed), "greedy") for m in items]
    learned = _weights(seed)
    for name, sizes in (("greedy", (*items, *LARGE)), ("local", (*items, *LARGE)), ("lp", lp_items)):
        jobs += [partial(_search, name, m, learned, seed) for m in sizes]
    few = _sets(small, 8, seed)
    jobs += [partial(_train, f"objective, {name} oracle", small, few, name, 1e-3) for name in ORDER]
    found = []
    for n, job in enumerate(jobs, 1):
        found.append(job())
        if on_progress is not None:
            on_progress(n, len(jobs))
    return found


def _sets(count: int, items: int, seed: int) -> list[Example]:
    clusters = max(2, min(10, items // 4))
    each = -(-items // clusters)
    return [news_like(clusters, each, seed=seed * 10_000 + n, topical=0.25) for n in range(count)]


def _train(series: str, size: int, examples: list[Example], oracle: Any, epsilon: float = EPSILON) -> Point:
    problem = CorrelationProblem(examples[0][0].dimension, oracle)
    start = time.perf_counter()
    fit = OneSlack(C=C, epsilon=epsilon).fit(problem, examples)
    seconds = time.perf_counter() - start
    return Point(
        series=series, size=size, seconds=seconds, iterations=fit.iterations, objective=fit.objective, gap=fit.gap,
        converged=fit.converged,
    )  # fmt: skip


def _weights(seed: int) -> Any:
    examples = _sets(8, 60, seed)
    return OneSlack(C=C, epsilon=EPSILON).fit(CorrelationProblem(examples[0][0].dimension), examples).w


def _search(name: Any, items: int, w: Any, seed: int) -> Point:
    """Cluster one set by learned scores; the second of two runs counts, since the first may compile."""
    ((x, _),) = _sets(1, items, seed + 77)
    scores = correlation_scores(x, w)
    cluster_by(scores, name)
    start = time.perf_counter()
    cluster_by(scores, name)
    return Point(series=f"clustering, {name}", size=x.items, seconds=time.perf_counter() - start)
