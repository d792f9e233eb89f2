"""Learn a similarity on a continuous stream: LSP and LSPA with a training window and the root (spec 6.4).

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018, chapter 4.

>>> from netclust.records.batch import Batch
>>> a = np.array([0.1, 0.9, 0.2, 0.8, 0.5, 0.15], np.float32)
>>> stream = Batch(num=a[:, None], code=np.zeros((6, 0), np.uint16), label=np.array([0, 1, 0, 1, 2, 0]))
>>> fit = train_stream(stream, (), StreamRule(training_window=3, epochs=2))
>>> fit.last.round(2).tolist(), fit.epochs[0].updates
([2.15, 0.0], 5)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.network.arc_prices import ArcPrices, edge_prices
from netclust.records.batch import Batch
from netclust.scoring.similarity import RootFeatures, WeightLayout, root_count, root_features

Update = Literal["lsp", "lspa"]
Absent = Literal["window", "global"]

CHUNK = 8192  # records between two progress reports


class StreamRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is learned and how: the names of the spec, with its defaults.

    `absent` says what is right for a record whose class is not among its candidates: `window`, the root; `global`, the
    root only if it is the first of its class ever, else the record is passed over. `cap` bounds a step of `lspa`.
    `prices` of wrong links take the place of Delta_F, and `r` then has no effect.
    """

    update: Update = "lsp"
    training_window: int = 100
    epochs: int = 5
    C: float = 1.0
    r: float = 1.0
    absent: Absent = "window"
    sign: Literal[-1, 1] = -1
    root: RootFeatures = "bias"
    cap: float | None = None
    prices: ArcPrices | None = None


@dataclass(frozen=True)
class EpochReport:
    """What one pass over the stream did."""

    epoch: int
    records: int
    updates: int
    loss: float
    root_links: int
    no_correct_arc: int


@dataclass(frozen=True, eq=False)
class StreamFit:
    """Last and averaged weights, and a report an epoch."""

    layout: WeightLayout
    last: NDArray[np.float64]
    averaged: NDArray[np.float64]
    steps: int
    epochs: list[EpochReport] = field(default_factory=list)


def first_of_class(label: NDArray[np.int32]) -> NDArray[np.bool_]:
    """For every record whether it is the first of its class in the stream.

    >>> first_of_class(np.array([3, 3, 1], np.int32)).tolist()
    [True, False, True]
    """
    first = np.zeros(len(label), np.bool_)
    first[np.unique(label, return_index=True)[1]] = True
    return first


def root_is_right(label: NDArray[np.int32], window: int, absent: Absent) -> NDArray[np.bool_]:
    """For every record whether the root is right: none of the `window` records before it has its class, or it is first.

    >>> label = np.array([0, 1, 1, 0], np.int32)
    >>> root_is_right(label, 2, "window").tolist(), root_is_right(label, 2, "global").tolist()
    ([True, True, False, True], [True, True, False, False])
    """
    right = first_of_class(label)
    if absent == "window":
        order = np.argsort(label, kind="stable")  # of each class the records in their order
        apart = np.diff(order) > window
        right[order[1:][apart & (np.diff(label[order]) == 0)]] = True
    return right


def train_stream(
    batch: Batch,
    widths: tuple[int, ...],
    rule: StreamRule,
    *,
    is_normal: NDArray[np.bool_] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[EpochReport], None] | None = None,
    on_outputs: Callable[[NDArray[np.int64]], None] | None = None,
) -> StreamFit:
    """Learn from labelled records in arrival order. The result depends on nothing but the records and the rule.

    `is_normal` says which classes are normal: prices need it. `on_outputs` gets the max-violating arcs of every epoch,
    as `netclust.models.network.arc_prices.arc_kinds` takes them.
    """
    from netclust.kernels.linking import train as kernels
    from netclust.kernels.linking.score import score_columns

    if (batch.label < 0).any():
        raise InputError("every training record needs a label")
    if rule.training_window < 1 or rule.epochs < 1:
        raise InputError("the training window and the number of epochs are at least 1")
    if rule.prices is not None and is_normal is None:
        raise InputError("prices of wrong links need to know which classes are normal")
    features = batch.num.shape[1]
    layout = WeightLayout(features, widths, root_count(features, rule.root))
    stream = kernels.TrainingStream(
        num=score_columns(batch.num),
        code=score_columns(batch.code),
        label=batch.label,
        normal=np.zeros(len(batch), np.bool_) if is_normal is None else is_normal[batch.label],
        first=first_of_class(batch.label),
        root=root_features(batch, rule.root),
    )
    learned = kernels.LearnedWeights(
        w=np.zeros(layout.dimension),
        u=np.zeros(layout.dimension),
        at=layout.at,
        width=layout.width,
        step=np.zeros(1, np.int64),
    )
    how = kernels.TrainingRule(
        training_window=rule.training_window,
        C=float(rule.C),
        prices=(rule.prices or edge_prices(rule.r)).table,
        root_when_absent=rule.absent == "window",
        update=kernels.PASSIVE_AGGRESSIVE if rule.update == "lspa" else kernels.PERCEPTRON,
        cap=np.inf if rule.cap is None else float(rule.cap),
        sign=rule.sign,
    )
    reports: list[EpochReport] = []
    parents = np.full(len(batch), kernels.PASSED_OVER, np.int64)
    for epoch in range(1, rule.epochs + 1):
        stats = np.zeros(5)
        for lo in range(0, len(batch), CHUNK):
            hi = min(lo + CHUNK, len(batch))
            kernels.train_records(stream, how, learned, lo, hi, stats, parents)
            if on_progress is not None:
                on_progress((epoch - 1) * len(batch) + hi, rule.epochs * len(batch))
        reports.append(
            EpochReport(
                epoch=epoch,
                records=len(batch),
                updates=int(stats[kernels.UPDATES]),
                loss=float(stats[kernels.LOSS]),
                root_links=int(stats[kernels.ROOT_LINKS]),
                no_correct_arc=int(stats[kernels.NO_CORRECT_ARC]),
            )
        )
        if on_outputs is not None:
            on_outputs(parents.copy())
        if on_epoch is not None:
            on_epoch(reports[-1])
    steps = int(learned.step[0])
    averaged = learned.w - learned.u / steps if steps else learned.w.copy()
    return StreamFit(layout, learned.w, averaged, steps, reports)
