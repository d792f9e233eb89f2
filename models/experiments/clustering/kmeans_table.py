"""The table of supervised k-means on Synth, published and ours: does learning to cluster beat learning about pairs?

Of five clustered sets each is the test set once. Among the other four, leave-one-out chooses C and how to cluster
(iterative, spectral or discrete). `Iterative` and `Spectral` are structural SVMs that search these ways in training;
`Pair` is a linear SVM on single pairs; `None` has all weights equal, which on these data is chance. A relaxed
prediction is measured relaxed, as published.

>>> small = KmeansSizes(sets=3, k=2, points=12, features=6, active=2)
>>> run = run_column("Pair", KmeansSettings(Cs=(0.1, 1.0), sizes=small), noise=0.0, draw=0)
>>> [test.loss for test in run.tests]
[0.0, 0.0, 0.0]

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009; section 4.5,
Table 4.3.
"""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np

from netclust.datasets.simulators.synth_pairs import SynthSet, synth_pairs
from netclust.foundation.optional import require_optional
from netclust.learners.one_slack import OneSlack
from netclust.models.clustering.kmeans import METHODS, KmeansProblem, KmeansSet, Method, cluster_matrix
from netclust.models.clustering.kmeans_search import kmeans_similarity
from netclust.models.clustering.trace_loss import trace_loss
from netclust.models.experiments.paired_tests import PairedComparison, paired_comparison
from netclust.models.selection import leave_one_out, select_candidate
from netclust.structures.pairs import Vector, same_cluster
from netclust.structures.partition import partition_square

__all__ = [
    "PUBLISHED",
    "Column",
    "ColumnRun",
    "KmeansRow",
    "KmeansSettings",
    "KmeansSizes",
    "KmeansTable",
    "run_column",
    "run_kmeans_table",
]

Column = Literal["Iterative", "Spectral", "Pair", "None"]
COLUMNS: tuple[Column, ...] = get_args(Column)

PUBLISHED: dict[Column, tuple[float, ...]] = {
    "Iterative": (43.3, 53.4, 56.0, 39.3, 40.3),
    "Spectral": (55.6, 58.7, 56.7, 59.5, 63.4),
    "Pair": (48.1, 54.7, 55.2, 43.9, 49.1),
    "None": (74.7, 74.7, 74.7, 74.7, 74.7),
}
"""Table 4.3, Synth: losses of the five test sets. The noise is printed as 0.2, at which every learner is far better."""

NOISES = (0.2, 0.46)


class KmeansSizes(msgspec.Struct, frozen=True):
    """How large the data are."""

    sets: int = 5
    k: int = 5
    points: int = 100
    features: int = 50
    active: int = 5


class KmeansSettings(msgspec.Struct, frozen=True):
    """What is tried, and how precisely a structural SVM is trained."""

    Cs: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    epsilon: float = 0.1
    max_iterations: int = 150
    sizes: KmeansSizes = KmeansSizes()


class Held(msgspec.Struct, frozen=True):
    """One test set: its loss, and what the other sets chose."""

    loss: float
    C: float | None
    predictor: Method


class ColumnRun(msgspec.Struct, frozen=True):
    """A column of the table for one draw of the data; of `fits` trainings `capped` ended at the limit of iterations."""

    column: Column
    noise: float
    draw: int
    tests: tuple[Held, ...]
    fits: int
    capped: int


class KmeansRow(msgspec.Struct, frozen=True):
    """Mean test loss: over the sets of a draw, then with its standard deviation over draws."""

    name: Column
    setting: str
    mean: float
    sd: float | None
    draws: int
    published: float
    capped: float


class KmeansTable(msgspec.Struct, frozen=True):
    """All rows, Iterative against Spectral by noise, and the runs behind them."""

    rows: list[KmeansRow]
    against_spectral: dict[str, PairedComparison]
    runs: list[ColumnRun]


class Candidate(NamedTuple):
    """What is chosen on training sets."""

    C: float | None
    predictor: Method


class Weights(NamedTuple):
    """K_ij = w . psi_ij + offset for pairs of different points."""

    w: Vector
    offset: float
    capped: bool


def run_kmeans_table(
    settings: KmeansSettings,
    *,
    noises: Sequence[float] = NOISES,
    draws: int,
    seed: int = 0,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> KmeansTable:
    """Run every column, noise and draw; `jobs` processes share them. Draw d has the data of seed + d."""
    # the longest first: at the end no process waits for another
    order: tuple[Column, ...] = ("Spectral", "Iterative", "Pair", "None")
    tasks = [(column, settings, noise, seed + d) for column in order for noise in noises[::-1] for d in range(draws)]
    runs: list[ColumnRun] = []
    if jobs == 1:
        for task in tasks:
            runs.append(run_column(*task))
            on_progress(len(runs), len(tasks))
    else:
        pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_interrupts)
        try:
            for done in as_completed([pool.submit(run_column, *task) for task in tasks]):
                runs.append(done.result())
                on_progress(len(runs), len(tasks))
        finally:
            pool.shutdown(cancel_futures=True)
    runs.sort(key=lambda run: (run.noise, COLUMNS.index(run.column), run.draw))
    return _summarise(runs)


def _summarise(runs: Sequence[ColumnRun]) -> KmeansTable:
    """Return rows and comparisons of runs."""
    rows, against = [], {}
    for noise in sorted({run.noise for run in runs}):
        losses: dict[Column, list[float]] = {}
        for column in COLUMNS:
            mine = [run for run in runs if (run.noise, run.column) == (noise, column)]
            means = [float(np.mean([test.loss for test in run.tests])) for run in mine]
            losses[column] = [test.loss for run in mine for test in run.tests]
            rows.append(
                KmeansRow(
                    name=column,
                    setting=f"noise {noise:g}",
                    mean=float(np.mean(means)),
                    sd=float(np.std(means, ddof=1)) if len(means) > 1 else None,
                    draws=len(means),
                    published=round(float(np.mean(PUBLISHED[column])), 2),
                    capped=sum(run.capped for run in mine) / max(sum(run.fits for run in mine), 1),
                )
            )
        against[f"noise {noise:g}"] = paired_comparison(losses["Iterative"], losses["Spectral"], better="lower")
    return KmeansTable(rows, against, list(runs))


def run_column(column: Column, settings: KmeansSettings, noise: float, draw: int) -> ColumnRun:
    """Leave-one-out over the sets of one draw, everything chosen on the training sets."""
    size = settings.sizes
    data = synth_pairs(
        sets=size.sets, k=size.k, points=size.points, features=size.features, active=size.active, noise=noise, seed=draw
    )
    trained: list[Weights] = []

    @cache  # what is held out twice leaves the same sets, whichever is the test set
    def train(C: float | None, chosen: tuple[int, ...]) -> Weights:
        trained.append(_train(column, [data[i] for i in chosen], C, settings))
        return trained[-1]

    def fit(candidate: Candidate, chosen: list[int]) -> Weights:
        return train(candidate.C, tuple(chosen))

    def measure(candidate: Candidate, model: Weights, held: list[int]) -> float:
        return float(np.mean([_loss(data[i], model, candidate.predictor, size.k) for i in held]))

    if column == "None":
        candidates = [Candidate(None, "iterative")]
    else:
        candidates = [Candidate(C, predictor) for C in settings.Cs for predictor in METHODS]
    tests = []
    require_optional("scipy.linalg", "this comparison")  # before the limit, which binds what is loaded
    # Matrices are small: threads cost ten times more.
    with require_optional("threadpoolctl", "this comparison").threadpool_limits(1):
        for fold in leave_one_out(size.sets):
            best = select_candidate(candidates, fold.train, leave_one_out(len(fold.train)), fit, measure).best
            loss = measure(best, fit(best, list(fold.train)), list(fold.held))
            tests.append(Held(loss, best.C, best.predictor))
    return ColumnRun(column, noise, draw, tuple(tests), len(trained), sum(model.capped for model in trained))


def _train(column: Column, sets: Sequence[SynthSet], C: float | None, settings: KmeansSettings) -> Weights:
    dimension = sets[0].pairs.dimension
    if C is None:
        return Weights(np.ones(dimension), 0.0, False)
    if column == "Pair":
        return _train_pairs(sets, C)
    problem = KmeansProblem(dimension, "spectral" if column == "Spectral" else "iterative")
    examples = [(KmeansSet(example.pairs, settings.sizes.k), example.labels) for example in sets]
    learner = OneSlack(C=C, epsilon=settings.epsilon, max_iterations=settings.max_iterations)
    fitted = learner.fit(problem, examples)
    return Weights(fitted.w, 0.0, not fitted.converged)


def _train_pairs(sets: Sequence[SynthSet], C: float) -> Weights:
    svm = require_optional("sklearn.svm", "the pairwise baseline").LinearSVC(C=C, random_state=0)
    psi = require_optional("scipy.sparse", "the pairwise baseline").vstack([example.pairs.psi for example in sets])
    together = np.concatenate([same_cluster(example.labels, None) for example in sets])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svm.fit(psi, together)
    return Weights(svm.coef_[0], float(svm.intercept_[0]), bool(caught))


def _loss(example: SynthSet, model: Weights, predictor: Method, k: int) -> float:
    K = kmeans_similarity(example.pairs, model.w)
    if model.offset:
        K += partition_square(np.full(example.pairs.psi.shape[0], model.offset), example.pairs.items)
    return trace_loss(example.labels, cluster_matrix(K, k, predictor), k)


def _leave_interrupts() -> None:
    """Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
