"""The laboratory of approximate inference: what an inexact search in training, or in prediction, does to a model.

Every model is trained with one oracle and measured with every predictor: a row of the published grid. C is chosen by
folds of the training data with the oracle as predictor; trainings at several C go on from each other's constraints.
`edgeless` has no weights of pairs (`edgeless+1`: with a constant feature, where the data have none), `default` is the
one labelling that is best on the training data, `rho 0.9` has an exact oracle that is made worse on purpose. LProg is
solved by `cut`; on some rows the program itself is solved too.

>>> from netclust.models.experiments.approximate.label_corpora import made_corpora
>>> data = made_corpora(seed=0, sizes={"synth2+1": (60, 40)}, names=("synth2+1",))[0]
>>> small = LabSettings(Cs=(10.0, 1000.0), folds=2, max_iterations=20)
>>> run = run_model(data, "cut", small)
>>> run.trained, run.C in small.Cs, list(run.predicted)
('cut', True, ['greedy', 'lbp', 'combine', 'exact', 'cut'])

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, sections 5.5 and 5.6; T.
Finley and T. Joachims, "Training structural SVMs when exact inference is intractable", ICML 2008.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import numpy as np

from netclust.foundation.optional import require_optional
from netclust.learners.cutting_plane import SvmFit
from netclust.learners.one_slack import OneSlack
from netclust.models.experiments.approximate.approximate_published import (
    BASELINE,
    COLUMNS,
    DEFAULT,
    OPEN,
    RHO,
    published_loss,
    published_source,
)
from netclust.models.experiments.approximate.label_corpora import LabelBlock, LabelCorpus, with_constant
from netclust.models.multilabel.binary_network import MOST_EXACT, Inference, binary_network_value, infer
from netclust.models.multilabel.multilabel_problem import LabelRows, MultilabelProblem, hamming_rows
from netclust.models.selection import k_folds, select_candidate
from netclust.structures.pairs import Vector

__all__ = ["Lab", "LabRow", "LabSettings", "Measured", "ModelRun", "RhoRow", "oracles", "run_lab", "run_model"]

EXACT_TO = 14
"""Labels up to which exact search is part of the study: of twenty it would take most of its time."""

PURGE = 15
"""Planes that were idle so often are forgotten: with 50, as usual, a training takes twice as long."""


class LabSettings(msgspec.Struct, frozen=True):
    """What is tried; published: 14 values of C from 0.01 to 3e4, 10 folds."""

    Cs: tuple[float, ...] = (10.0, 100.0, 1000.0, 10_000.0, 30_000.0)
    folds: int = 2
    epsilon: float = 0.1
    max_iterations: int = 100
    rhos: tuple[float, ...] = tuple(RHO)
    lp_rows: int = 20
    """Test rows of every model on which the linear program itself is solved, to see that the cut is as good."""
    seed: int = 0

    def fitting(self, labels: int) -> LabSettings:
        """With very many labels a search takes long: fewer values of C, and shorter trainings."""
        if labels <= MOST_EXACT:
            return self
        return msgspec.structs.replace(self, Cs=self.Cs[1:3], folds=2, max_iterations=min(self.max_iterations, 50))


class Measured(NamedTuple):
    """Losses of the test rows in percent, and the share of labels that were left open."""

    rows: Vector
    open: float

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.rows.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(self.rows.std(ddof=1) / np.sqrt(len(self.rows)))


@dataclass(frozen=True, eq=False)
class ModelRun:
    """One trained model; `capped`: it reached the limit of iterations. `lp_gap`: the largest difference of values."""

    corpus: str
    trained: str
    C: float | None
    folds: tuple[float, ...]
    train: float
    iterations: int
    capped: bool
    seconds: float
    predicted: dict[Inference, Measured]
    lp_gap: float | None = None


class LabRow(msgspec.Struct, frozen=True):
    """A cell of the grid: the mean test loss with its standard error over test rows (published errors are no such)."""

    name: str
    setting: str
    mean: float
    sd: float | None
    draws: int
    published: float | None
    se: float
    open: float
    published_open: float | None


class RhoRow(msgspec.Struct, frozen=True):
    """A row of the rho sweep: exact prediction, on training and on test data."""

    name: str
    setting: str
    mean: float
    sd: float | None
    draws: int
    published: float | None
    se: float
    train: float
    published_train: float | None


@dataclass(frozen=True, eq=False)
class Lab:
    """All models by data set and training."""

    settings: LabSettings
    runs: dict[tuple[str, str], ModelRun] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The data sets, in order."""
        return list(dict.fromkeys(corpus for corpus, _ in self.runs))

    def loss(self, corpus: str, trained: str, predicted: Inference) -> float:
        """Mean test loss."""
        return self.runs[corpus, trained].predicted[predicted].mean

    def trained(self, corpus: str) -> list[Inference]:
        """The oracles that models of this data set were trained with."""
        return [name for name in COLUMNS if (corpus, name) in self.runs]

    def rows(self) -> list[LabRow]:
        """The grid, with default and edgeless models."""
        made = []
        for (corpus, trained), run in self.runs.items():
            if trained.startswith("rho"):
                continue
            for predicted, found in run.predicted.items():
                made.append(self._row(corpus, trained, predicted, found))
        return made

    def _row(self, corpus: str, trained: str, predicted: Inference, found: Measured) -> LabRow:
        alone = {"default": DEFAULT, "edgeless": BASELINE, "edgeless+1": BASELINE}.get(trained)
        oracle = next((name for name in COLUMNS if name == trained), None)
        published = None if oracle is None else published_loss(corpus, oracle, predicted)
        share = None if oracle is None or predicted != "cut" else OPEN[oracle].get(published_source(corpus))
        return LabRow(
            name=trained,
            setting=corpus if alone is not None else f"{corpus}, predicted by {predicted}",
            mean=found.mean,
            sd=None,
            draws=1,
            published=published if alone is None else alone.get(published_source(corpus)),
            se=found.error,
            open=100 * found.open,
            published_open=share,
        )

    def rho_rows(self) -> list[RhoRow]:
        """The rho sweep."""
        made = []
        for (corpus, trained), run in self.runs.items():
            if not trained.startswith("rho"):
                continue
            test = run.predicted["exact"]
            published = RHO.get(float(trained[4:]), {}).get(published_source(corpus))
            train_loss, test_loss = published or (None, None)
            made.append(RhoRow(trained, corpus, test.mean, None, 1, test_loss, test.error, run.train, train_loss))
        return made


def oracles(labels: int) -> list[Inference]:
    """The searches that are studied with so many labels."""
    return [name for name in COLUMNS if name != "exact" or labels <= min(EXACT_TO, MOST_EXACT)]


def run_lab(
    corpora: Sequence[LabelCorpus],
    settings: LabSettings,
    *,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Lab:
    """Every model of every data set; those of the rho sweep have the C that exact training chose."""
    first: list[Task] = [
        (corpus, name, settings, None)
        for corpus in corpora
        for name in ("default", "edgeless", *(() if corpus.constant else ("edgeless+1",)), *oracles(corpus.labels))
    ]
    swept = [corpus for corpus in corpora if "exact" in oracles(corpus.labels)]
    total = len(first) + len(swept) * len(settings.rhos)
    found = _all(first, jobs, lambda done: on_progress(done, total))
    second: list[Task] = [
        (corpus, _rho_name(rho), settings, found[corpus.name, "exact"].C) for corpus in swept for rho in settings.rhos
    ]
    for corpus in swept:  # with rho = 1 the oracle is exact
        run = found[corpus.name, "exact"]
        name = _rho_name(1.0)
        found[corpus.name, name] = replace(run, trained=name, predicted={"exact": run.predicted["exact"]})
    left = [task for task in second if task[1] != _rho_name(1.0)]
    found |= _all(left, jobs, lambda done: on_progress(total - len(left) + done, total))
    order = [(corpus.name, name) for corpus, name, *_ in (*first, *second)]
    return Lab(settings, {key: found[key] for key in order})


def _rho_name(rho: float) -> str:
    return f"rho {rho:g}"


Task = tuple[LabelCorpus, str, LabSettings, float | None]


def _all(tasks: Sequence[Task], jobs: int, tick: Callable[[int], None]) -> dict[tuple[str, str], ModelRun]:
    runs: list[ModelRun] = []
    if jobs == 1:
        for task in tasks:
            runs.append(run_model(*task))
            tick(len(runs))
    else:
        pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_interrupts)
        try:
            for done in as_completed([pool.submit(run_model, *task) for task in tasks]):
                runs.append(done.result())
                tick(len(runs))
        finally:
            pool.shutdown(cancel_futures=True)
    return {(run.corpus, run.trained): run for run in runs}


def run_model(corpus: LabelCorpus, trained: str, settings: LabSettings, C: float | None = None) -> ModelRun:
    """Choose C on the training data (unless it is given), train, and measure with every predictor."""
    started = time.perf_counter()
    if trained == "default":
        labels = (corpus.train.Y.mean(axis=0) > 0.5).astype(np.float64)
        test = hamming_rows(corpus.test.Y, np.tile(labels, (len(corpus.test), 1)))
        train = float(hamming_rows(corpus.train.Y, np.tile(labels, (len(corpus.train), 1))).mean())
        taken = time.perf_counter() - started
        return ModelRun(corpus.name, trained, None, (), train, 0, False, taken, {"exact": Measured(test, 0.0)})
    if trained == "edgeless+1":
        corpus = with_constant(corpus)
    problem, settings = _problem(corpus, trained), settings.fitting(corpus.labels)
    require_optional("scipy.sparse", "training")  # before the limit, which binds what is loaded
    # Matrices are small: threads cost more.
    with require_optional("threadpoolctl", "the laboratory").threadpool_limits(1):
        losses: tuple[float, ...] = ()
        if C is None:
            C, losses = _choose(corpus.train, problem, settings)
        fit = _train(corpus.train, problem, settings, C)
        predictors = oracles(corpus.labels) if problem.edges else [problem.predictor]
        if trained.startswith("rho"):
            predictors = ["exact"]
        predicted = {name: _measure(problem, corpus.test, fit.w, name) for name in predictors}
        train = float(_measure(problem, corpus.train, fit.w, problem.predictor).mean)
        gap = _lp_gap(problem, corpus.test.x, fit.w, settings.lp_rows) if "cut" in predictors else None
    taken = time.perf_counter() - started
    return ModelRun(
        corpus.name, trained, C, losses, train, fit.iterations, not fit.converged, taken, predicted, gap
    )  # fmt: skip


def _problem(corpus: LabelCorpus, trained: str) -> MultilabelProblem:
    if trained.startswith("rho"):
        return MultilabelProblem(corpus.labels, corpus.features, rho=float(trained[4:]))
    if trained.startswith("edgeless"):
        return MultilabelProblem(corpus.labels, corpus.features, edges=False)
    oracle = next(name for name in COLUMNS if name == trained)
    return MultilabelProblem(corpus.labels, corpus.features, oracle, oracle)


def _choose(block: LabelBlock, problem: MultilabelProblem, settings: LabSettings) -> tuple[float, tuple[float, ...]]:
    """C by folds: predicted as trained; a fold's training at one C goes on from the one before."""
    warm: dict[int, SvmFit] = {}
    folds = k_folds(len(block), settings.folds, settings.seed)
    numbers = {fold.train: k for k, fold in enumerate(folds)}

    def fit(C: float, rows: list[int]) -> SvmFit:
        k = numbers[tuple(rows)]
        warm[k] = _fit(block.take(rows), problem, settings, C, warm.get(k))
        return warm[k]

    def measure(C: float, found: SvmFit, rows: list[int]) -> float:
        return _measure(problem, block.take(rows), found.w, problem.predictor).mean

    chosen = select_candidate(sorted(settings.Cs), range(len(block)), folds, fit, measure)
    return chosen.best, chosen.losses


def _train(block: LabelBlock, problem: MultilabelProblem, settings: LabSettings, C: float) -> SvmFit:
    """On all training rows, by way of the next smaller C."""
    found: SvmFit | None = None
    for lower in sorted(c for c in settings.Cs if c < C)[-1:]:
        found = _fit(block, problem, settings, lower, found)
    return _fit(block, problem, settings, C, found)


def _fit(block: LabelBlock, problem: MultilabelProblem, settings: LabSettings, C: float, warm: SvmFit | None) -> SvmFit:
    learner = OneSlack(C=C, epsilon=settings.epsilon, max_iterations=settings.max_iterations, purge_after=PURGE)
    return learner.fit(problem, [(block.x, block.Y)], warm=warm)


def _measure(problem: MultilabelProblem, block: LabelBlock, w: Vector, method: Inference) -> Measured:
    found = problem.predict_by(block.x, w, method)
    return Measured(hamming_rows(block.Y, found.labels), float(found.open.mean()))


def _lp_gap(problem: MultilabelProblem, x: LabelRows, w: Vector, rows: int) -> float:
    """How far the values of the linear program and of the cut are apart at most, relative to them."""
    some = x.take(np.arange(min(rows, len(x))))
    theta, pair = problem.theta(some, w), problem.pair(w)
    by_cut, by_lp = (binary_network_value(theta, pair, infer(theta, pair, method).labels) for method in ("cut", "lp"))
    return float((np.abs(by_cut - by_lp) / (1 + np.abs(by_lp))).max(initial=0.0))


def _leave_interrupts() -> None:
    """Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
