"""Measures of one detector on one question: how it ranks, what it finds, what it flags.

>>> score = np.array([0.9, 0.8, 0.7, 0.1])
>>> truth = np.array([True, False, True, False])
>>> measures = measure_scores(score, truth, {0.01: np.array([True, False, False, False])})
>>> measures["auc"], measures["obtained"]["0.01"], measures["found"]["0.01"]
(0.75, 0.0, 0.5)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.metrics.detection_metrics import FALSE_POSITIVE_RATES, auc, average_precision, detection_at, share

__all__ = ["RATES", "mean_measures", "measure_scores", "summarise"]

RATES = FALSE_POSITIVE_RATES
"""False-alarm rates that are asked for: 0.1, 1 and 5 %."""

Measures = dict[str, Any]


def measure_scores(
    score: NDArray[np.floating],
    truth: NDArray[np.bool_],
    flags: Mapping[float, NDArray[np.bool_]],
    answered: NDArray[np.bool_] | None = None,
    kind: NDArray[np.object_] | None = None,
) -> Measures:
    """Return AUC, average precision, detection at each rate, and what the detector's own thresholds gave.

    `detection_at` sets the threshold with the test's own benign records; `obtained` and `found` are the false alarms
    and the attacks at the thresholds that the detector set before it saw the test, one set of flags per rate.
    With `answered`, the AUC of the attacks that were answered; with `kind`, the share of each kind found at 1 %.
    """
    values: NDArray[np.float64] = np.nan_to_num(score.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
    found: Measures = {
        "auc": auc(values, truth),
        "average_precision": average_precision(values, truth),
        "detection_at": {f"{rate:g}": detection_at(values, truth, rate) for rate in RATES},
        "obtained": {f"{r:g}": share(int((f & ~truth).sum()), int((~truth).sum())) for r, f in flags.items()},
        "found": {f"{r:g}": share(int((f & truth).sum()), int(truth.sum())) for r, f in flags.items()},
    }
    if answered is not None:
        rows = ~truth | answered
        found["answered_attacks"] = int((truth & answered).sum())
        found["answered_auc"] = auc(values[rows], truth[rows])
    if kind is not None:
        kinds = sorted(set(kind[truth].tolist()))
        found["kinds"] = {str(name): _kind_of(values, truth, kind == name) for name in kinds}
    return found


def _kind_of(score: NDArray[np.float64], truth: NDArray[np.bool_], of_kind: NDArray[np.bool_]) -> Measures:
    rows = ~truth | of_kind
    return {
        "records": int((of_kind & truth).sum()),
        "auc": auc(score[rows], truth[rows]),
        "detection_at_0.01": detection_at(score[rows], truth[rows], 0.01),
    }


def mean_measures(draws: Sequence[Measures]) -> Measures:
    """Return the mean of every measure over several draws of one detector.

    >>> mean_measures([{"auc": 0.5, "found": {"0.01": 1.0}}, {"auc": 1.0, "found": {"0.01": 0.5}}])
    {'auc': 0.75, 'found': {'0.01': 0.75}}
    """
    if len(draws) == 1:
        return draws[0]
    mean: Measures = {}
    for name, value in draws[0].items():
        values = [draw[name] for draw in draws]
        if isinstance(value, dict):
            mean[name] = mean_measures(values)
        elif isinstance(value, float):
            mean[name] = float(np.mean(values))
        else:
            mean[name] = value
    return mean


def summarise(each: Iterable[Measures]) -> Measures:
    """Return the mean over hosts (or captures) of every measure, and the worst host beside it.

    >>> summarise([{"auc": 0.75, "obtained": {"0.01": 0.25}}, {"auc": 0.5, "obtained": {"0.01": 0.0}}])
    {'auc': 0.625, 'auc_worst': 0.5, 'obtained': {'0.01': 0.125}, 'obtained_worst': {'0.01': 0.25}}
    """
    found = list(each)
    summary: Measures = {}
    for name in ("auc", "average_precision", "answered_auc"):
        values = [m[name] for m in found if m.get(name) is not None]
        if values:
            summary[name] = float(np.mean(values))
            summary[f"{name}_worst"] = float(np.min(values))
    for name, worst in (("detection_at", min), ("obtained", max), ("found", min)):
        rates = found[0].get(name, {}) if found else {}
        by_rate = {r: [m[name][r] for m in found if m[name][r] is not None] for r in rates}
        if rates:
            summary[name] = {r: float(np.mean(v)) for r, v in by_rate.items() if v}
            summary[f"{name}_worst"] = {r: float(worst(v)) for r, v in by_rate.items() if v}
    return summary
