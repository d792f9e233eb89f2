"""Detection metrics: decisions and scores against the truth. Positive = anomalous; every rate is a fraction.

>>> m = decision_metrics(anomalous=np.array([1, 1, 0, 0], bool), truth=np.array([1, 0, 0, 1], bool))
>>> m.accuracy, m.detection_rate, m.false_positive_rate
(0.5, 0.5, 0.5)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05)


class DecisionMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from the confusion table; None where there is nothing to divide by."""

    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    accuracy: float | None
    precision: float | None
    detection_rate: float | None
    false_positive_rate: float | None
    f1: float | None


def share(part: int, whole: int) -> float | None:
    """part / whole, None of nothing."""
    return part / whole if whole else None


def decision_metrics(anomalous: NDArray[np.bool_], truth: NDArray[np.bool_]) -> DecisionMetrics:
    """Accuracy, precision, detection rate, false-positive rate and F1 of yes/no decisions."""
    tp = int((anomalous & truth).sum())
    fp = int((anomalous & ~truth).sum())
    fn = int((~anomalous & truth).sum())
    tn = int((~anomalous & ~truth).sum())
    return DecisionMetrics(
        true_positives=tp,
        false_positives=fp,
        true_negatives=tn,
        false_negatives=fn,
        accuracy=share(tp + tn, tp + fp + tn + fn),
        precision=share(tp, tp + fp),
        detection_rate=share(tp, tp + fn),
        false_positive_rate=share(fp, fp + tn),
        f1=share(2 * tp, 2 * tp + fp + fn),
    )


def roc_points(score: NDArray[np.floating], truth: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(false positives, true positives) at every threshold, from the highest score down, equal scores together."""
    order = np.argsort(-score.astype(np.float64), kind="stable")
    ranked, hits = score[order], truth[order]
    last_of_tie = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    tp = np.cumsum(hits)[last_of_tie]
    fp = np.cumsum(~hits)[last_of_tie]
    return np.append(0, fp).astype(np.int64), np.append(0, tp).astype(np.int64)


def auc(score: NDArray[np.floating], truth: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve: the chance that an anomaly scores above a normal record, ties counting half.

    >>> auc(np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, True, False, False]))
    0.875
    """
    if truth.all() or not truth.any():
        return None
    fp, tp = roc_points(score, truth)
    return float(np.trapezoid(tp, fp) / (int(fp[-1]) * int(tp[-1])))


def average_precision(score: NDArray[np.floating], truth: NDArray[np.bool_]) -> float | None:
    """Mean of the precision over the anomalies found, equal scores together (scikit-learn's definition)."""
    if not truth.any():
        return None
    fp, tp = roc_points(score, truth)
    precision = tp[1:] / (tp[1:] + fp[1:])
    return float((precision * np.diff(tp)).sum() / int(tp[-1]))


def detection_at(score: NDArray[np.floating], truth: NDArray[np.bool_], rate: float) -> float | None:
    """The best detection rate at a threshold that raises at most `rate` false alarms a normal record.

    >>> detection_at(np.array([9.0, 8.0, 7.0, 1.0]), np.array([True, False, True, False]), 0.1)
    0.5
    """
    if truth.all() or not truth.any():
        return None
    fp, tp = roc_points(score, truth)
    allowed = fp <= rate * int(fp[-1]) + 1e-9
    return float(tp[allowed].max() / int(tp[-1]))


def detection_by(
    anomalous: NDArray[np.bool_], groups: Sequence[str] | NDArray[np.object_]
) -> dict[str, dict[str, float | int | None]]:
    """Records and share called anomalous of every named group, by name; "" is no group."""
    names = np.asarray(groups, object)
    return {
        name: {
            "records": int((names == name).sum()),
            "detection_rate": share(int(anomalous[names == name].sum()), int((names == name).sum())),
        }
        for name in sorted(set(names.tolist()) - {""})
    }
