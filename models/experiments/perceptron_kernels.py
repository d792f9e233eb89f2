"""A binary perceptron on dense records: in training, and on a stream whose labels arrive late (spec 6.9).

Of w_t, the weights after step t, `w` is the last and `w - u / t` the average over all steps, which is kept without
being formed: a mistake at step s adds delta to `w` and (s - 1) * delta to `u`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel


class Perceptron(NamedTuple):
    """Weights and what averaging needs; updated in place."""

    w: NDArray[np.float64]
    u: NDArray[np.float64]
    step: NDArray[np.int64]


@inner
def _dot(a: Any, b: Any) -> Any:
    """Return a . b, added from first to last."""
    total = 0.0
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


@inner
def _learn_one(p: Any, x: Any, y: Any) -> None:
    """Take one step; y is 1 or -1, and a score of 0 is a mistake."""
    p.step[0] += 1
    if y * _dot(p.w, x) <= 0.0:
        past = np.float64(p.step[0] - 1)
        for d in range(len(x)):
            delta = y * x[d]
            p.w[d] += delta
            p.u[d] += past * delta


@kernel
def learn_perceptron(p: Any, x: Any, y: Any, order: Any) -> None:
    """Take one step for every record, in that order."""
    for i in order:
        _learn_one(p, x[i], y[i])


@kernel
def follow(p: Any, x: Any, y: Any, delay: Any, averaged: Any, score: Any) -> None:
    """Score every record of a stream; before t_j, learn from t_{j - delay}. With `averaged`, by the average weights."""
    for j in range(len(x)):
        if j >= delay:
            _learn_one(p, x[j - delay], y[j - delay])
        score[j] = _dot(p.w, x[j])
        if averaged and p.step[0] > 0:
            score[j] -= _dot(p.u, x[j]) / p.step[0]
