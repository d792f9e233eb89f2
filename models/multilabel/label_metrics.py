"""How good multi-label predictions are: Hamming loss, exact matches, F1 by row, by label and over all, Jaccard.

>>> Y = np.array([[1, 0, 1], [0, 1, 0]])
>>> found = np.array([[1, 1, 1], [0, 1, 0]])
>>> scores = measure_labels(Y, found)
>>> round(scores.hamming_loss, 4), scores.subset_accuracy, scores.example_f1, round(scores.micro_f1, 4)
(0.1667, 0.5, 0.9, 0.8571)

All are fractions. Where neither truth nor prediction has a label, F1 and Jaccard of that row are 1: it is right. Of a
label that nobody has and nobody predicted F1 is 0: nothing was shown to be right.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError

__all__ = ["LabelScores", "default_labels", "default_loss", "hamming_loss", "measure_labels"]

Matrix = NDArray[np.float64]


class LabelScores(msgspec.Struct, frozen=True):
    """What was measured over rows; all fractions but the count."""

    rows: int
    hamming_loss: float
    """The share of wrong labels."""
    hamming_error: float
    """The standard error of the Hamming loss, over rows."""
    subset_accuracy: float
    """The share of rows with every label right."""
    example_f1: float
    """The mean over rows of F1 of their labels."""
    micro_f1: float
    """F1 of all labels of all rows."""
    macro_f1: float
    """The mean over labels of their F1."""
    jaccard: float
    """The mean over rows of the labels in both truth and prediction, of those in either."""
    cardinality: float
    """Labels of a row, in the truth."""
    predicted_cardinality: float


def measure_labels(Y: ArrayLike, found: ArrayLike) -> LabelScores:
    """All measures of predictions, 0 or 1, against the truth."""
    truth, given = _binary(Y, "the truth"), _binary(found, "a prediction")
    _check_shapes(truth, given)
    both = truth * given
    wrong = np.abs(truth - given).mean(axis=1)
    hits, had, said = both.sum(axis=1), truth.sum(axis=1), given.sum(axis=1)
    per_label = _f1(both.sum(axis=0), truth.sum(axis=0), given.sum(axis=0), empty=0.0)
    rows = len(truth)
    return LabelScores(
        rows=rows,
        hamming_loss=float(wrong.mean()),
        hamming_error=float(wrong.std(ddof=1) / np.sqrt(rows)) if rows > 1 else float("nan"),
        subset_accuracy=float((wrong == 0).mean()),
        example_f1=float(_f1(hits, had, said, empty=1.0).mean()),
        micro_f1=float(_f1(both.sum(), truth.sum(), given.sum(), empty=0.0)),
        macro_f1=float(per_label.mean()),
        jaccard=float(_ratio(hits, had + said - hits, empty=1.0).mean()),
        cardinality=float(had.mean()),
        predicted_cardinality=float(said.mean()),
    )


def hamming_loss(Y: ArrayLike, found: ArrayLike) -> float:
    """The share of wrong labels; a prediction may be a half, and is half wrong then.

    >>> hamming_loss([[1, 0]], [[0.5, 0]])
    0.25
    """
    truth, given = np.asarray(Y, np.float64), np.asarray(found, np.float64)
    _check_shapes(truth, given)
    return float(np.abs(truth - given).mean())


def default_labels(Y: ArrayLike) -> NDArray[np.uint8]:
    """The labels to predict for every row if nothing is known of it: those that more than half of the rows have.

    >>> default_labels([[1, 0], [1, 1], [0, 0]]).tolist()
    [1, 0]
    """
    return np.asarray(_binary(Y, "the truth").mean(axis=0) > 0.5, np.uint8)


def default_loss(Y: ArrayLike, training: ArrayLike | None = None) -> float:
    """The Hamming loss of always predicting the best single labelling of the training rows (by default, of these).

    >>> default_loss([[1, 0], [1, 1], [0, 0], [1, 0]])
    0.25
    """
    truth = _binary(Y, "the truth")
    best = default_labels(truth if training is None else training)
    return hamming_loss(truth, np.broadcast_to(best, truth.shape))


def _f1(hits: Matrix, had: Matrix, said: Matrix, empty: float) -> Matrix:
    return _ratio(2 * hits, had + said, empty)


def _ratio(above: Matrix, below: Matrix, empty: float) -> Matrix:
    return np.where(below > 0, above / np.where(below > 0, below, 1), empty)


def _binary(Y: ArrayLike, what: str) -> Matrix:
    labels = np.asarray(Y, np.float64)
    if labels.ndim != 2 or not labels.size:
        raise InputError(f"{what} has shape {list(labels.shape)}, expected [rows, labels], and some of both")
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InputError(f"{what} is neither 0 nor 1")
    return labels


def _check_shapes(truth: Matrix, given: Matrix) -> None:
    if truth.shape != given.shape:
        raise InputError(f"the truth has shape {list(truth.shape)}, the predictions {list(given.shape)}")
