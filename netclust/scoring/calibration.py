"""Calibration: the root score at which no more than a chosen share of normal records links to the root.

Split conformal: on held-out normal records that neither the weights nor the reference set have seen, the k-th smallest
best-referent score, k = floor((n + 1) * rate), bounds the chance of a new normal record falling below by `rate`.

>>> threshold_for([5.0, 1.0, 4.0, 2.0, 3.0, 9.0, 8.0, 7.0, 6.0], rate=0.2)
2.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A root score set on held-out normal records, and how it came about."""

    root: float
    false_alarm_rate: float
    obtained: float
    records: int
    alarms: float = 0.0
    """Share of the held-out normal records called anomalous in all: by the root, or by a link to a known attack."""


def threshold_for(scores: Sequence[float] | NDArray[np.floating], rate: float) -> float:
    """The root score for a false-alarm rate, refused where there are too few records to promise it."""
    values = np.sort(np.asarray(scores, np.float64))
    if not 0 < rate < 1:
        raise InputError(f"a false-alarm rate lies between 0 and 1, not {rate}")
    exact = Fraction(repr(float(rate)))  # 0.29 of 100 is 29, in floating point it is 28.999...
    k = math.floor((len(values) + 1) * exact)
    if k < 1:
        need = math.ceil(1 / exact) - 1
        raise InputError(
            f"a false-alarm rate of {rate:g} needs at least {need} held-out normal records, there are {len(values)}: "
            "choose a larger rate or hold out more"
        )
    return float(values[k - 1])


def calibrate(scores: NDArray[np.floating], rate: float, others: NDArray[np.bool_] | None = None) -> Calibration:
    """Set the root just below the k-th smallest score: a tie with the root goes to the root.

    `others` says which records link to something that is not normal, whatever the root.
    """
    root = float(np.nextafter(np.float32(threshold_for(scores, rate)), np.float32(-np.inf)))
    below = np.asarray(scores, np.float32) <= np.float32(root)
    alarms = below if others is None else below | others
    return Calibration(
        root=root,
        false_alarm_rate=rate,
        obtained=float(below.mean()),
        records=len(scores),
        alarms=float(alarms.mean()),
    )
