"""The network task: train a model on labelled connection records.

>>> from netclust.datasets.simulate import simulate
>>> model = train_network(simulate(2000, seed=1).table(), TrainParams(epochs=1), seed=3)
>>> model.encoding.labels[0], len(model.reference), model.provenance.seed
('normal', 280, 3)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust._version import __version__
from netclust.batch import Batch
from netclust.calibration import calibrate
from netclust.encoding import fit_encoding
from netclust.errors import InputError
from netclust.learners.stream import EpochReport, train_stream
from netclust.linker import Linker, LinkerConfig
from netclust.model import Model, Provenance
from netclust.models.params import TrainParams
from netclust.reference import draw_reference
from netclust.schema import Schema
from netclust.similarity import WeightLayout, root_count, unlearned_weights
from netclust.table import Table

__all__ = ["TrainParams", "best_scores", "train_network", "with_reference"]


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
    params = params or TrainParams()
    where = data or "training data"
    unlabelled = int((table.label == 0).sum())
    if unlabelled:
        raise InputError(
            f"{where}: {unlabelled} of {len(table)} records have no label ({label_column(table.schema)}): label them "
            "or leave them out"
        )
    if params.transform != "schema":
        table = replace(table, schema=table.schema.with_transform(params.transform))
    normal = np.isin(table.label, [i for i, name in enumerate(table.labels) if name in table.schema.normal])
    if not normal.any():
        raise InputError(f"{where}: no record is normal: {' or '.join(table.schema.normal)} is the label for it")
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(table), np.bool_)
    if params.false_alarm_rate is not None:
        held_out = normal & (rng.random(len(table)) < params.holdout)
        if (held_out == normal).all():
            raise InputError(f"{where}: no normal record is left to learn from, lower holdout ({params.holdout:g})")
    # Nothing that is fitted may see the held-out records, scaling and vocabularies included.
    encoding = fit_encoding(table[~held_out])
    batch = encoding.encode(table)
    seen = batch[~held_out]
    epochs: list[EpochReport] = []
    if params.learner == "unlearned":
        features = seen.num.shape[1]
        layout = WeightLayout(features, encoding.widths, root_count(features, params.root))
        averaged = last = unlearned_weights(layout, params.sign)
    else:
        fit = train_stream(seen, encoding.widths, params.rule, on_progress=on_progress, on_epoch=on_epoch)
        averaged, last, epochs = fit.averaged, fit.last, fit.epochs
    provenance = Provenance(
        netclust=__version__,
        created=_now(),
        seed=seed,
        data=data,
        sha256=sha256,
        records=len(table),
        params=msgspec.to_builtins(params),
        epochs=[{"epoch": e.epoch, "updates": e.updates, "loss": e.loss} for e in epochs],
    )
    model = Model(
        encoding=encoding,
        averaged=averaged,
        last=last,
        reference=seen[draw_reference(seen.label, params.reference_size, rng)],
        sign=params.sign,
        root=params.root,
        rooted=params.learner != "unlearned",
        weights=params.weights,
        provenance=provenance,
    )
    if params.false_alarm_rate is not None:
        scores = best_scores(model, batch[held_out])
        model = model.with_root(calibrate(scores, params.false_alarm_rate))
    return model


def label_column(schema: Schema) -> str:
    """Where a schema looks for labels, for messages."""
    label = schema.with_role("label")
    return f"schema {schema.name} has no label attribute" if label is None else f"column {label.name}"


def with_reference(model: Model, batch: Batch, size: int, seed: int) -> Model:
    """The same weights with another draw of the reference set."""
    return replace(model, reference=batch[draw_reference(batch.label, size, np.random.default_rng(seed))])


def best_scores(model: Model, batch: Batch) -> NDArray[np.float32]:
    """The best-referent score of every record against the reference set alone."""
    linker = Linker(replace(model, calibration=None), LinkerConfig(referent_window=0))
    verdicts = linker.process(replace(batch, label=np.full(len(batch), -1, np.int32)))
    return np.maximum(verdicts.normal, verdicts.other)


def _now() -> str:
    """The time of creation, or the one that reproducible builds are told to use."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or str(int(time.time()))
    try:
        return datetime.fromtimestamp(int(epoch), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise InputError(f"SOURCE_DATE_EPOCH is a number of seconds, not {epoch!r}") from None
