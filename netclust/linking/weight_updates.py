"""Steering: move a model's weights a little by one answer of a person, so that the verdict would come out right sooner.

The margin of an answered record is the score with the nearest referent of its true side less that of the other side.
Weights of numeric attributes move by factors, as in training: up where the wrong side's referent differs, down where
the right side's does; by at most e^(+-STEP) an answer and e^(+-REACH) from where they began.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> reference = model.reference
>>> record, right, wrong = ((reference.num[i], reference.code[i]) for i in (0, 1, 200))
>>> steered = update_weights(model, record, right, wrong, rate=0.1, start=model)
>>> bool(update_margin(steered, record, right, wrong) >= update_margin(model, record, right, wrong))
True
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from netclust.scoring.model import Model

STEP = 0.1
REACH = 1.0

Record = tuple[NDArray[np.float32], NDArray[np.uint16]]


def update_margin(model: Model, record: Record, right: Record, wrong: Record) -> float:
    """Return how much nearer the record is to the referent of its true side."""
    from netclust.linking.explanation import contributions

    return float(contributions(model, record, right).sum() - contributions(model, record, wrong).sum())


def update_weights(model: Model, record: Record, right: Record, wrong: Record, *, rate: float, start: Model) -> Model:
    """Return the model after one answer; `start` is where its weights began."""
    features = model.layout.features
    if features == 0:
        return model
    far = np.full(features, np.inf) if model.far is None else model.far
    gap_right, gap_wrong = (
        np.minimum(np.abs(record[0].astype(np.float64) - other[0]), far) for other in (right, wrong)
    )
    m = update_margin(model, record, right, wrong)
    push = 1.0 / (
        1.0 + math.exp(min(max(m, -500.0), 500.0))
    )  # near 1 where the verdict is wrong, near 0 where it is safe
    size = np.abs(model.w[:features])
    step = np.clip(rate * push * size * (gap_wrong - gap_right), -STEP, STEP)
    moved = {}
    for name in ("averaged", "last"):
        weights, began = getattr(model, name).copy(), getattr(start, name)[:features]
        low, high = np.abs(began) * math.exp(-REACH), np.abs(began) * math.exp(REACH)
        size = np.clip(np.abs(weights[:features]) * np.exp(step), low, high)
        weights[:features] = np.copysign(size, weights[:features])
        moved[name] = weights
    return replace(model, **moved)
