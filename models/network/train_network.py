"""The network task: train a model on labelled connection records.

>>> from netclust.datasets.simulators.simulate import simulate
>>> model = train_network(simulate(2000, seed=1).table(), TrainParams(epochs=1), seed=3)
>>> model.encoding.labels[0], len(model.reference), model.provenance.seed
('normal', 280, 3)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.model_file import Provenance
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.margin_learner import Start, train_margin
from netclust.models.network.network_loss import LearnedPrices, learn_prices
from netclust.models.network.params import TrainParams
from netclust.models.network.stream_perceptron import EpochReport, StreamFit, train_stream
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding, fit_encoding
from netclust.records.schema import Schema
from netclust.records.table import Table
from netclust.scoring.calibration import calibrate
from netclust.scoring.model import Model
from netclust.scoring.reference import Choice, draw_reference
from netclust.scoring.similarity import (
    WeightLayout,
    bits_from_one,
    distance_weights,
    in_units,
    root_count,
    spread_units,
    unlearned_weights,
)

__all__ = [
    "NetworkFit",
    "TrainParams",
    "best_scores",
    "fit_network",
    "network_with_reference",
    "taken_for_normal",
    "train_network",
]

HELD_OUT = 1  # sets the draw of held-out records apart from that of the reference set


@dataclass(frozen=True, eq=False)
class NetworkFit:
    """Fitted weights, and the records that reference sets are drawn from: train once, draw many times."""

    params: TrainParams
    encoding: Encoding
    averaged: NDArray[np.float64]
    last: NDArray[np.float64]
    far: NDArray[np.float64] | None
    seen: Batch
    plain: Batch  # the same records by the schema alone: a covering reference set is not moved by what is tuned
    held_out: Batch
    provenance: Provenance

    @cached_property
    def apart(self) -> Batch:
        """What a covering reference set goes by."""
        return in_units(self.plain, [a.kind == "binary" for a in self.encoding.schema.coded])

    def draw(
        self, seed: int, *, size: int | None = None, choice: Choice | None = None, only_normal: bool = False
    ) -> Model:
        """A model with a reference set of its own, calibrated against it if the parameters say so.

        With `only_normal`, the attacks of that reference set are left out of it.
        """
        params = self.params
        choice = choice or params.reference_choice
        is_normal = self.encoding.label_table().is_normal
        rows = draw_reference(
            self.seen.label,
            params.reference_size if size is None else size,
            np.random.default_rng(seed),
            choice,
            is_normal,
            self.apart if choice == "covering" else None,
        )
        if only_normal:
            rows = rows[is_normal[self.seen.label[rows]]]
        model = Model(
            encoding=self.encoding,
            averaged=self.averaged,
            last=self.last,
            reference=self.seen[rows],
            sign=params.sign,
            root=params.root,
            far=self.far,
            rooted=params.learner != "unlearned",
            weights=params.weights,
            provenance=self.provenance,
        )
        if params.false_alarm_rate is None:
            return model
        best, alarms = best_scores(model, self.held_out)
        return model.with_root(calibrate(best, params.false_alarm_rate, alarms))


def fit_network(
    table: Table,
    params: TrainParams | None = None,
    *,
    seed: int = 0,
    data: str = "",
    sha256: str = "",
    on_progress: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> NetworkFit:
    """Fit encoding and weights on labelled records in arrival order.

    >>> from netclust.datasets.simulators.simulate import simulate
    >>> fit = fit_network(simulate(2000, seed=1).table(), TrainParams(epochs=1), seed=3)
    >>> [len(fit.draw(k, size=100).reference) for k in (0, 1)]
    [100, 100]
    """
    params = params or TrainParams()
    where = data or "training data"
    unlabelled = int((table.label == 0).sum())
    if unlabelled:
        raise InputError(
            f"{where}: {unlabelled} of {len(table)} records have no label ({label_column(table.schema)}): label them, "
            "leave them out, or take them all for normal (--assume-normal)"
        )
    as_given = table
    if params.transform != "schema":
        table = replace(table, schema=table.schema.with_transform(params.transform))
    normal = np.isin(table.label, [i for i, name in enumerate(table.labels) if name in table.schema.normal])
    if not normal.any():
        found = ", ".join(sorted(set(table.labels) - {""})[:5])
        raise InputError(
            f"{where}: no record is normal: {' or '.join(table.schema.normal)} is the label for it, there are {found}"
        )
    if seed < 0:
        raise InputError(f"a seed is 0 or more, not {seed}")
    held_out = np.zeros(len(table), np.bool_)
    if params.false_alarm_rate is not None:
        held_out = normal & (np.random.default_rng([seed, HELD_OUT]).random(len(table)) < params.holdout)
        if (held_out == normal).all():
            raise InputError(f"{where}: no normal record is left to learn from, lower holdout ({params.holdout:g})")
    # Nothing that is fitted may see the held-out records, scaling and vocabularies included.
    encoding = fit_encoding(table[~held_out], params.without)
    if normal.all() and params.false_alarm_rate is None:
        raise InputError(
            f"{where}: all records are normal, so nothing but the root can raise an alarm: give a false-alarm rate"
        )
    batch = encoding.encode(table)
    plain = seen = batch[~held_out]
    if params.reference_choice == "covering" and (params.transform != "schema" or params.without):
        plain = fit_encoding(as_given[~held_out]).encode(as_given[~held_out])
    epochs: list[dict[str, Any]] = []
    far = None
    notes = msgspec.json.decode(msgspec.json.encode(params))  # as a file gives it back
    if params.learner in ("lsp", "lspa"):
        fit, prices = _fit_links(seen, encoding, params, on_progress, on_epoch)
        averaged, last = fit.averaged, fit.last
        if prices is not None:
            notes["learned_loss"] = prices.to_json()
        epochs = [{"epoch": e.epoch, "updates": e.updates, "loss": e.loss} for e in fit.epochs]
    else:
        averaged, last, far, epochs = _fit_distance(seen, encoding, params, seed, on_progress)
    provenance = Provenance.now(
        seed=seed,
        data=data,
        sha256=sha256,
        records=len(table),
        params=notes,
        epochs=epochs,
    )
    return NetworkFit(params, encoding, averaged, last, far, seen, plain, batch[held_out], provenance)


def _fit_links(
    seen: Batch,
    encoding: Encoding,
    params: TrainParams,
    on_progress: Callable[[int, int], None] | None,
    on_epoch: Callable[[EpochReport], None] | None,
) -> tuple[StreamFit, LearnedPrices | None]:
    """LSP or LSPA, with Delta_F or, from a first run with it, a loss learned from the measure."""
    rule, is_normal, tick = params.rule, encoding.label_table().is_normal, on_progress
    prices = None
    if params.loss == "learned":
        # two runs of the same length
        first, tick = _part(on_progress, 0), _part(on_progress, 1)
        prices = learn_prices(seen, encoding.widths, rule, is_normal, params.judged_by, on_progress=first)
        rule = msgspec.structs.replace(rule, prices=prices.prices)
    fit = train_stream(seen, encoding.widths, rule, is_normal=is_normal, on_progress=tick, on_epoch=on_epoch)
    return fit, prices


def _part(on_progress: Callable[[int, int], None] | None, run: int) -> Callable[[int, int], None] | None:
    """The progress of one of two runs."""
    return None if on_progress is None else lambda done, total: on_progress(run * total + done, 2 * total)


def _fit_distance(
    seen: Batch,
    encoding: Encoding,
    params: TrainParams,
    seed: int,
    on_progress: Callable[[int, int], None] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None, list[dict[str, Any]]]:
    """The unlearned rule, or what the margin learner makes of it."""
    features = seen.num.shape[1]
    layout = WeightLayout(features, encoding.widths, root_count(features, params.root))
    units = spread_units(seen.num) if params.scale == "spread" else np.ones(features)
    far = None if params.far is None else params.far * units
    if params.learner == "unlearned" and params.scale == "range":
        w = unlearned_weights(layout, params.sign, params.symbol_weight)
        return w, w, far, []
    binary = [a.kind == "binary" for a in encoding.schema.coded]
    start = Start(
        weight=1 / units,
        mismatch=np.where(layout.width > 1, params.symbol_weight, 1e-12),
        far=np.full(features, np.inf) if far is None else far,
    )
    if params.learner == "unlearned":
        w = distance_weights(layout, binary, start.weight, start.mismatch, 0.0, params.sign)
        return w, w, far, []
    normal = encoding.label_table().is_normal[seen.label]
    fit = train_margin(
        bits_from_one(seen, binary), normal, start, params.margin_rule, seed=seed, on_progress=on_progress
    )
    averaged, last = (
        distance_weights(layout, binary, each.weight, each.mismatch, root if np.isfinite(root) else 0.0, params.sign)
        for each, root in ((fit.averaged, fit.root), (fit.last, fit.last_root))
    )
    return averaged, last, far, [{"step": r.step, "loss": r.loss} for r in fit.reports]


def train_network(
    table: Table,
    params: TrainParams | None = None,
    *,
    seed: int = 0,
    data: str = "",
    sha256: str = "",
    on_progress: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[EpochReport], None] | None = None,
) -> Model:
    """Fit encoding and weights on labelled records in arrival order, draw a reference set, calibrate if asked to."""
    fit = fit_network(table, params, seed=seed, data=data, sha256=sha256, on_progress=on_progress, on_epoch=on_epoch)
    return fit.draw(seed)


def taken_for_normal(table: Table) -> Table:
    """The same records, all labelled normal: to warm up on traffic that nobody has labelled.

    >>> from netclust.datasets.simulators.simulate import simulate
    >>> set(taken_for_normal(simulate(100, seed=1).table()).label_names().tolist())
    {'normal'}
    """
    return replace(table, labels=["", table.schema.normal[0]], label=np.ones_like(table.label))


def label_column(schema: Schema) -> str:
    """Where a schema looks for labels, for messages."""
    label = schema.with_role("label")
    return f"schema {schema.name} has no label attribute" if label is None else f"column {label.name}"


def network_with_reference(model: Model, batch: Batch, size: int, seed: int) -> Model:
    """Return the same weights with another draw of the reference set."""
    return replace(model, reference=batch[draw_reference(batch.label, size, np.random.default_rng(seed))])


def best_scores(model: Model, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Every record against the reference set alone: its best-referent score, and whether that is not a normal one."""
    linker = Linker(replace(model, calibration=None, rooted=False), LinkerConfig(referent_window=0))
    verdicts = linker.process(replace(batch, label=np.full(len(batch), -1, np.int32)))
    return np.maximum(verdicts.normal, verdicts.other), verdicts.anomalous
