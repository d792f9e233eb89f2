"""Label economy: accuracy against the share of records that a person labels, where one label settles a cluster.

A stream runs through a linker (protocol `stream`, predicted labels, a window of everything seen). Questions are
answered with the true label, which counts from `DELAY` records after the question on; verdicts do not change. All ways
of asking have the same allowance (`netclust.linking.active_learning.allowance`, the length of the stream as its
horizon), and they differ in what they ask and in what an answer reaches: `plain` ones label the record, or its cluster
if that hangs on the root.

Everything was chosen on KDDTrain+, with attack types hidden (`development_stream`), nothing on a test set.

>>> from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
>>> from netclust.models.network.params import TrainParams
>>> past, today = simulate(1500, seed=1).table(), simulate(800, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).table()
>>> rough = dict.fromkeys(PRESETS, TrainParams(learner="unlearned"))
>>> rows = run_economy(past, today, budgets=(0.01,), draws=1, presets=rough)
>>> [(row.name, round(row.labelled, 3)) for row in rows][-2:]
[('worth most', 0.01), ('all labels', 1.0)]
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.active_learning import ActiveLearner, allowance
from netclust.linking.linker import Feedback, Linker, LinkerConfig
from netclust.linking.verdicts import ROOT, Verdicts
from netclust.metrics.detection_metrics import DecisionMetrics, decision_metrics
from netclust.models.experiments.detection.windows import window_summary
from netclust.models.experiments.detection_plots import COLOURS, FAINT, QUIET, SMALL, picture
from netclust.models.experiments.peers import anomalies
from netclust.models.network.folds import deal_kinds, deal_types, kind_attribute, make_folds
from netclust.models.network.params import TrainParams, load_params
from netclust.models.network.train_network import fit_network
from netclust.records.batch import Batch
from netclust.records.table import Table
from netclust.scoring.model import Model

__all__ = [
    "BUDGETS",
    "PRESETS",
    "SEED",
    "STRATEGIES",
    "EconomyRow",
    "development_stream",
    "plot_label_economy",
    "run_economy",
]

BUDGETS = (0.001, 0.003, 0.01, 0.03)
DELAY = 100
STEP = 50  # records a batch; questions are asked between two
REFERENCES = 280
LATE, CALIBRATED = PRESETS = ("late", "reference-280")
"""The second, whose root is calibrated, for what goes by new clusters, of which the first has hardly any."""
SEED = 0
NO_LABELS, ALL_LABELS = "no labels", "all labels"
NEW_CLUSTERS = "new clusters, plain"


class Strategy(Protocol):
    """What asks, and takes the answers."""

    asked: int

    def observe(self, batch: Batch, verdicts: Verdicts) -> list[str]:
        """The records to ask about now."""

    def answer(self, record_id: str, label: str) -> object:
        """Bring an answer into force."""


class Plain:
    """Asks about random records, or the first of every new cluster; an answer is for the record or its new cluster."""

    def __init__(self, linker: Linker, budget: float, horizon: int, *, only_new: bool, seed: int = 0) -> None:
        self.linker, self.budget, self.horizon, self.only_new = linker, budget, horizon, only_new
        self.seen = self.asked = 0
        self._rng = np.random.default_rng(seed)
        self._cluster: dict[str, int] = {}

    def observe(self, batch: Batch, verdicts: Verdicts) -> list[str]:
        """The records to ask about now."""
        self.seen += len(batch)
        room = int(allowance(self.budget, self.seen, self.horizon) - self.asked + 1e-9)
        rows = np.flatnonzero(verdicts.via == ROOT) if self.only_new else self._rng.permutation(len(batch))
        chosen = {batch.record_id(int(i)): int(verdicts.cluster[i]) for i in rows[:room]}
        self._cluster |= chosen
        self.asked += len(chosen)
        return list(chosen)

    def answer(self, record_id: str, label: str) -> None:
        """Label the cluster if it hangs on the root, else the record."""
        cluster = self._cluster.pop(record_id)
        if cluster >= len(self.linker.model.encoding.labels):
            self.linker.label_cluster(cluster, label)
        else:
            self.linker.label_record(record_id, label)


Maker = Callable[[Linker, float, int, int], Strategy]
STRATEGIES: dict[str, Maker] = {
    "random records, plain": lambda linker, budget, n, seed: Plain(linker, budget, n, only_new=False, seed=seed),
    NEW_CLUSTERS: lambda linker, budget, n, seed: Plain(linker, budget, n, only_new=True, seed=seed),
    "random records": lambda linker, budget, n, seed: ActiveLearner(
        linker, budget, horizon=n, choice="random", seed=seed
    ),
    "worth most": lambda linker, budget, n, seed: ActiveLearner(linker, budget, horizon=n, seed=seed),
}
"""The last two are `netclust.linking.active_learning.ActiveLearner`: an answer also reaches what is nearest to it."""


class EconomyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table: fractions, mean and standard deviation (None of a single draw) over reference sets."""

    name: str
    setting: str
    preset: str
    budget: float
    labelled: float
    mean: dict[str, float]
    sd: dict[str, float | None]
    second_half: float
    """Accuracy on the later half of the stream: what the answers are worth once most of them are there."""
    draws: int
    published: None = None


class EconomyOutcome(msgspec.Struct, frozen=True):
    """One pass over a stream."""

    decisions: DecisionMetrics
    second_half: float
    labelled: float


def run_economy(
    train: Table,
    test: Table,
    *,
    budgets: Sequence[float] = BUDGETS,
    draws: int = 5,
    presets: Mapping[str, TrainParams] | None = None,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[EconomyRow]:
    """Train once a preset; every way of asking with every budget and reference set. Draw k is of seed k."""
    if draws < 1 or jobs < 1 or not all(0 < budget <= 1 for budget in budgets):
        raise InputError(f"{draws} draws by {jobs} jobs, budgets {budgets}: one or more, budgets above 0 up to 1")
    params = presets or {name: load_params(name, train.schema) for name in PRESETS}
    fits = {name: fit_network(train, params[name], seed=SEED) for name in PRESETS}
    models = {name: [fit.draw(draw, size=REFERENCES) for draw in range(draws)] for name, fit in fits.items()}
    lines = [(NO_LABELS, CALIBRATED, 0.0), *((NEW_CLUSTERS, CALIBRATED, budget) for budget in budgets)]
    lines += [(NO_LABELS, LATE, 0.0), *((name, LATE, budget) for name in STRATEGIES for budget in budgets)]
    lines.append((ALL_LABELS, LATE, 1.0))
    rows: list[EconomyRow] = []
    with _workers(jobs) as each:
        for name, preset, budget in lines:
            calls = [partial(_run_stream, model, test, name, budget, draw) for draw, model in enumerate(models[preset])]
            found = each(calls)
            mean, sd = window_summary([outcome.decisions for outcome in found])
            rows.append(
                EconomyRow(
                    name=name,
                    setting=f"{100 * budget:g} % of the records",
                    preset=preset,
                    budget=budget,
                    labelled=float(np.mean([outcome.labelled for outcome in found])),
                    mean=mean,
                    sd=sd,
                    second_half=float(np.mean([outcome.second_half for outcome in found])),
                    draws=draws,
                )
            )
            on_progress(len(rows), len(lines))
    return rows


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[[list[partial[EconomyOutcome]]], list[EconomyOutcome]]]:
    if jobs == 1:
        yield lambda calls: [call() for call in calls]
        return
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield lambda calls: [waiting.result() for waiting in [pool.submit(call) for call in calls]]
    finally:
        pool.shutdown(cancel_futures=True)


def _run_stream(model: Model, table: Table, name: str, budget: float, seed: int = 0) -> EconomyOutcome:
    """Run a stream with an oracle that answers what a strategy asks, `DELAY` records later."""
    n = len(table)
    feedback: Feedback = "gold" if name == ALL_LABELS else "predicted"
    linker = Linker(model, LinkerConfig.stream(referent_window=n, delay=DELAY, feedback=feedback))
    batch = model.encoding.encode(table, linker.labels)
    truth, names = anomalies(table), table.label_names()
    place = {batch.record_id(i): i for i in range(n)}
    strategy = STRATEGIES[name](linker, budget, n, seed) if name in STRATEGIES else None
    due: list[tuple[int, str]] = []
    said: list[NDArray[np.bool_]] = []
    for start in range(0, n, STEP):
        while strategy is not None and due and due[0][0] <= start:
            _, record = due.pop(0)
            strategy.answer(record, str(names[place[record]]))
        part = batch[start : start + STEP]
        verdicts = linker.process(part)
        said.append(verdicts.anomalous)
        if strategy is not None:
            due += [(start + len(part) + DELAY, record) for record in strategy.observe(part, verdicts)]
    anomalous = np.concatenate(said)
    asked = strategy.asked if strategy is not None else n * (name == ALL_LABELS)
    right = anomalous == truth
    return EconomyOutcome(decision_metrics(anomalous, truth), float(right[n // 2 :].mean()), asked / n)


def development_stream(train: Table, fold: int) -> tuple[Table, Table]:
    """What everything here was chosen on: a part of the training records to learn from, and a stream of others.

    The attack types of two folds are hidden from training, and a fold's kinds of normal traffic.

    >>> from netclust.datasets.simulators.simulate import simulate
    >>> learned, stream = development_stream(simulate(3000, seed=1).table(), 0)
    >>> set(learned.label_names()) < set(stream.label_names())
    True
    """
    folds, types = make_folds(train, "late"), deal_types(train)
    names = train.label_names()
    normal = ~anomalies(train)
    hidden = np.isin(names.astype(str), [*types[fold], *types[(fold + 1) % len(types)]])
    attribute = kind_attribute(train)
    if attribute is not None:
        kinds = deal_kinds(train, normal, len(types))[fold]
        of = np.array([name in kinds for name in train.symbols[attribute]], np.bool_)
        hidden |= normal & of[train.sym[:, attribute]]
    rows = folds[fold].train
    return train[rows[~hidden[rows]]], train[folds[fold].validation]


def plot_label_economy(rows: Sequence[EconomyRow], path: Path) -> None:
    """Plot accuracy against the share of labelled records, one line per way of asking, between none and all."""
    # New clusters as the model with a calibrated root finds them, everything else by the other.
    rows = [row for row in rows if (row.preset == CALIBRATED) == (row.name == NEW_CLUSTERS)]
    names = list(dict.fromkeys(row.name for row in rows if row.name in STRATEGIES))
    with picture(path, 4.4) as figure:
        axes = figure.subplots()
        axes.set(xscale="log", xlabel="Labelled records (log scale)")
        axes.set_title("Accuracy (mean, standard deviation)")
        for i, name in enumerate(names):
            mine = [row for row in rows if row.name == name]
            y = [100 * row.mean["accuracy"] for row in mine]
            bars = [100 * (row.sd["accuracy"] or 0.0) for row in mine]
            x = [row.budget for row in mine]  # what was allowed: new clusters may be fewer
            axes.errorbar(x, y, bars, fmt="o-", markersize=4.5, elinewidth=1.1, color=COLOURS[i])
            axes.annotate(name, (x[-1], y[-1]), (8, 0), textcoords="offset points", va="center", color=COLOURS[i])
        for row in rows:
            if row.name not in STRATEGIES:
                level = 100 * row.mean["accuracy"]
                axes.axhline(level, color=QUIET, linewidth=0.8, linestyle=(0, (2, 3)))
                axes.annotate(row.name, (0, level), (4, 3), xycoords=("axes fraction", "data"),
                              textcoords="offset points", ha="left", color=QUIET, size=SMALL)  # fmt: skip
        budgets = sorted({row.budget for row in rows if row.name in STRATEGIES})
        axes.set_xticks(budgets, [f"{100 * budget:g} %" for budget in budgets])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter(lambda percent, _: f"{percent:g} %")
        axes.yaxis.grid(color=FAINT, linewidth=0.8)
