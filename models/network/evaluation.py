"""Run a model over labelled test records by a protocol, and measure what it decides.

`thesis`: gap = label delay = d, referents are the reference set and the last N records beyond the gap, once there are N
(what the published tables mean). `stream`: no gap, members carry predicted labels until a true one arrives.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import Verdicts, concat_verdicts
from netclust.metrics.detection_metrics import (
    FALSE_POSITIVE_RATES,
    DecisionMetrics,
    auc,
    average_precision,
    decision_metrics,
    detection_at,
    detection_by,
)
from netclust.models.network.train_network import label_column
from netclust.records.batch import Batch, concat_batches
from netclust.records.table import Table
from netclust.scoring.model import Model


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The verdicts on a labelled stream, with the truth beside them."""

    linker: Linker
    verdicts: Verdicts
    batch: Batch
    label_names: NDArray[np.object_]
    truth: NDArray[np.bool_]
    seconds: float

    @property
    def decisions(self) -> DecisionMetrics:
        """The confusion table and what follows from it."""
        return decision_metrics(self.verdicts.anomalous, self.truth)

    def metrics(self) -> dict[str, Any]:
        """Every number of the evaluation, by the names that scripts rely on."""
        anomalous, score = self.verdicts.anomalous, self.verdicts.score
        d = self.decisions
        trained = set(self.linker.model.encoding.labels)
        unseen = self.truth & np.array([name not in trained for name in self.label_names], np.bool_)
        category = self.linker.model.encoding.schema.category_of
        groups = np.array([category.get(name, "") for name in self.label_names], object)
        found = detection_by(anomalous, groups)
        categories = {name: found.get(name, {}) for name in sorted(set(category.values()))}
        return {
            "accuracy": d.accuracy,
            "precision": d.precision,
            "detection_rate": d.detection_rate,
            "false_positive_rate": d.false_positive_rate,
            "f1": d.f1,
            "auc": auc(score, self.truth),
            "average_precision": average_precision(score, self.truth),
            "detection_at_fpr": {f"{r:g}": detection_at(score, self.truth, r) for r in FALSE_POSITIVE_RATES},
            "unseen_detection_rate": float(anomalous[unseen].mean()) if unseen.any() else None,
            "unseen_records": int(unseen.sum()),
            "per_category": {name: of.get("detection_rate") for name, of in categories.items()},
            "per_category_records": {name: of.get("records", 0) for name, of in categories.items()},
            "per_class": detection_by(anomalous, np.where(self.truth, self.label_names, "")),
            "true_positives": d.true_positives,
            "false_positives": d.false_positives,
            "true_negatives": d.true_negatives,
            "false_negatives": d.false_negatives,
            "root_links": int(self.linker.counters()["clusters_opened_total"]),
            "records": len(self.verdicts),
            "records_per_second": len(self.verdicts) / self.seconds if self.seconds else None,
        }


def evaluate_network(
    model: Model, tables: Iterable[Table], config: LinkerConfig, where: str = "test data"
) -> Evaluation:
    """Feed labelled tables, in order; the time counted is from the first byte read to the last verdict."""
    linker = Linker(model, config)
    linker.process(Batch(num=model.reference.num[:0], code=model.reference.code[:0]))  # load kernels before the clock
    batches: list[Batch] = []
    verdicts: list[Verdicts] = []
    names: list[NDArray[np.object_]] = []
    start = time.perf_counter()
    for table in tables:
        batch = model.encoding.encode(table, linker.labels)
        if (batch.label < 0).any():
            row = int(np.argmax(batch.label < 0))
            raise InputError(
                f"{where}: record {int(table.seq[row]) + 1} has no label ({label_column(table.schema)}), an evaluation "
                "needs them all"
            )
        verdicts.append(linker.process(batch))
        batches.append(batch)
        names.append(table.label_names())
    seconds = time.perf_counter() - start
    if not batches:
        raise InputError(f"{where}: no records")
    whole = concat_batches(batches)
    return Evaluation(
        linker=linker,
        verdicts=concat_verdicts(verdicts),
        batch=whole,
        label_names=np.concatenate(names),
        truth=~linker.labels.is_normal[whole.label],
        seconds=seconds,
    )
