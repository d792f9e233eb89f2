"""SVM^cluster against pairwise classification, each trained for one loss and tested under both (the published 2 x 2).

A corpus gives a split for every seed: training sets and test sets. Of every split, C is chosen by cross-validation over
its training sets, for the loss of the row; then all training sets are learned from and the test sets clustered once.
Every method clusters by greedy merging, so that only the weights differ.

T. Finley and T. Joachims, "Supervised Clustering with Support Vector Machines", ICML 2005, tables 1 to 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import msgspec
import numpy as np

from netclust.losses.partition_loss import CLUSTERING_LOSSES, ClusteringLoss
from netclust.models.clustering.cluster_selection import choose_cost
from netclust.models.clustering.train_clusterer import ClusterSettings, Example, cluster_with, learn_clusterer
from netclust.models.experiments.paired_tests import PairedComparison, paired_comparison

__all__ = [
    "METHODS",
    "PUBLISHED",
    "CorrelationMethod",
    "CorrelationRow",
    "CorrelationTable",
    "ItemSetSplit",
    "SplitCorpus",
    "SplitResult",
    "run_correlation_table",
]

LOSSES: tuple[ClusteringLoss, ...] = ("pairwise", "mitre")
SVM, SVM_SLACK, SVM_LOCAL = "SVM^cluster", "SVM^cluster, slack rescaling", "SVM^cluster, local search"
PCC, DEFAULT = "PCC", "default"
FOLDS = 3

PUBLISHED = {
    (SVM, "pairwise", "pairwise"): 2.89,
    (SVM, "pairwise", "mitre"): 42.8,
    (SVM, "mitre", "mitre"): 41.3,
    (SVM, "mitre", "pairwise"): 4.06,
    (PCC, "pairwise", "pairwise"): 3.15,
    (PCC, "mitre", "mitre"): 51.6,
    (DEFAULT, "pairwise", "pairwise"): 3.59,
    (DEFAULT, "mitre", "mitre"): 51.0,
}
"""Of noun-phrase coreference (MUC-6), which is not free: beside ours for their order, not for their size."""


@dataclass(frozen=True)
class CorrelationMethod:
    """A row's name and how it is trained for a loss; None: it is not trained for that one."""

    name: str
    settings: Callable[[ClusteringLoss], ClusterSettings | None]


METHODS = (
    CorrelationMethod(SVM, lambda loss: ClusterSettings(loss=loss)),
    CorrelationMethod(
        SVM_SLACK, lambda loss: ClusterSettings(loss=loss, rescaling="slack") if loss == "mitre" else None
    ),
    CorrelationMethod(SVM_LOCAL, lambda loss: ClusterSettings(loss=loss, oracle="local", predictor="greedy")),
    CorrelationMethod(PCC, lambda loss: ClusterSettings(loss=loss, learner="pairwise")),
)


@dataclass(frozen=True, eq=False)
class ItemSetSplit:
    """Item sets with their true clusterings: to learn from, and to be tested on."""

    train: list[Example]
    test: list[Example]


@dataclass(frozen=True)
class SplitCorpus:
    """Where splits come from: `split(seed)`; it must be picklable, since splits are run in processes of our own."""

    name: str
    split: Callable[[int], ItemSetSplit]
    methods: tuple[str, ...] = (SVM, SVM_SLACK, SVM_LOCAL, PCC)


Cell = tuple[str, str, str]
"""Method, the loss trained for, the loss tested under."""


@dataclass(frozen=True, eq=False)
class SplitResult:
    """Of one split: the losses of every test set, the C chosen, and whether training met its stopping rule."""

    corpus: str
    seed: int
    losses: dict[Cell, list[float]]
    chosen: dict[tuple[str, str], float]
    converged: dict[tuple[str, str], bool]
    sizes: dict[str, list[int]]


class CorrelationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table: percent, mean and standard deviation over splits of the mean over test sets."""

    name: str
    setting: str
    corpus: str
    trained_for: str
    tested_under: str
    mean: float
    sd: float | None
    draws: int
    published: float | None


def run_split(corpus: SplitCorpus, seed: int) -> SplitResult:
    """Train every method for every loss on one split, and test it under both losses."""
    split = corpus.split(seed)
    losses: dict[Cell, list[float]] = {}
    chosen: dict[tuple[str, str], float] = {}
    converged: dict[tuple[str, str], bool] = {}
    for method in (m for m in METHODS if m.name in corpus.methods):
        for loss in LOSSES:
            settings = method.settings(loss)
            if settings is None:
                continue
            best = choose_cost(settings, split.train, folds=FOLDS)
            settings = msgspec.structs.replace(settings, C=best.C)
            learned = learn_clusterer(settings, split.train)
            chosen[method.name, loss], converged[method.name, loss] = best.C, learned.converged
            found = [cluster_with(settings, x, learned.w) for x, _ in split.test]
            for tested in LOSSES:
                measured = [CLUSTERING_LOSSES[tested](y, z) for (_, y), z in zip(split.test, found, strict=True)]
                losses[method.name, loss, tested] = measured
    for loss in LOSSES:  # the published defaults: all apart under Delta_P, all together under Delta_M
        nothing = [np.arange(len(y)) if loss == "pairwise" else np.zeros(len(y), np.int64) for _, y in split.test]
        measured = [CLUSTERING_LOSSES[loss](y, z) for (_, y), z in zip(split.test, nothing, strict=True)]
        losses[DEFAULT, loss, loss] = measured
    sizes = {name: [len(y) for _, y in part] for name, part in (("train", split.train), ("test", split.test))}
    return SplitResult(corpus.name, seed, losses, chosen, converged, sizes)


@dataclass(eq=False)
class CorrelationTable:
    """Every split of every corpus."""

    splits: list[SplitResult] = field(default_factory=list)

    def means(self, corpus: str, cell: Cell) -> list[float]:
        """The mean loss of each split."""
        return [float(np.mean(s.losses[cell])) for s in self.splits if s.corpus == corpus and cell in s.losses]

    def rows(self) -> list[CorrelationRow]:
        """The table, in the order in which things were run."""
        cells = list(dict.fromkeys((s.corpus, cell) for s in self.splits for cell in s.losses))
        return [self._row(corpus, cell) for corpus, cell in cells]

    def _row(self, corpus: str, cell: Cell) -> CorrelationRow:
        means = self.means(corpus, cell)
        method, trained, tested = cell
        return CorrelationRow(
            name=method,
            setting=f"{corpus}: trained for {trained}, tested under {tested}",
            corpus=corpus,
            trained_for=trained,
            tested_under=tested,
            mean=float(np.mean(means)),
            sd=float(np.std(means, ddof=1)) if len(means) > 1 else None,
            draws=len(means),
            published=PUBLISHED.get(cell),
        )

    def comparisons(self) -> list[tuple[str, str, str, PairedComparison]]:
        """(corpus, what against what, tested under, comparison over splits): negative is better for the first."""
        found = []
        for corpus in dict.fromkeys(s.corpus for s in self.splits):
            wanted: list[tuple[Cell, Cell]] = []
            for loss in LOSSES:
                wanted += [((name, loss, loss), (PCC, loss, loss)) for name in (SVM, SVM_LOCAL)]
                other = "mitre" if loss == "pairwise" else "pairwise"
                wanted += [((name, loss, loss), (name, other, loss)) for name in (SVM, SVM_LOCAL)]
            wanted += [((name, "mitre", "mitre"), (SVM, "mitre", "mitre")) for name in (SVM_SLACK, SVM_LOCAL)]
            for first, second in wanted:
                a, b = self.means(corpus, first), self.means(corpus, second)
                if len(a) > 1 and len(a) == len(b):
                    what = f"{first[0]} for {first[1]} less {second[0]} for {second[1]}"
                    found.append((corpus, what, first[2], paired_comparison(a, b, better="lower")))
        return found


def run_correlation_table(
    corpora: Sequence[SplitCorpus],
    splits: int,
    *,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> CorrelationTable:
    """Run all splits of all corpora; with several jobs, each split is a task of a process of its own."""
    tasks = [(corpus, seed) for corpus in corpora for seed in range(splits)]
    table = CorrelationTable()

    def note(result: SplitResult) -> None:
        table.splits.append(result)
        if on_progress is not None:
            on_progress(len(table.splits), len(tasks))

    if jobs == 1:
        for corpus, seed in tasks:
            note(run_split(corpus, seed))
        return table
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: list[Any] = [pool.submit(run_split, corpus, seed) for corpus, seed in tasks]
        for one in waiting:
            note(one.result())
    return table
