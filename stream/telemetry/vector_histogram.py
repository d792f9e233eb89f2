"""A histogram that takes a whole array at once: microseconds a bucket, where the client's own takes as much a value.

>>> seconds = VectorHistogram((0.1, 1.0))
>>> seconds.observe(np.array([0.05, 0.1, 0.7, 30.0]))
>>> seconds.cumulative()
[('0.1', 2.0), ('1.0', 3.0), ('+Inf', 4.0)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class VectorHistogram:
    """Counts of values at or below fixed bounds. Not locked: the owner is.

    What is not a number lies in no bucket but the last, and in no sum.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        if not bounds or list(bounds) != sorted(set(bounds)) or not all(map(math.isfinite, bounds)):
            raise ValueError("bounds are finite and rise")
        self.bounds = tuple(float(b) for b in bounds)
        self._below = [0] * len(self.bounds)
        self.count = 0
        self.sum = 0.0

    def observe(self, values: NDArray[Any]) -> None:
        """Take the values of a batch."""
        self.count += len(values)
        # Each bound against all values is a few vector instructions, and gives what is exposed: counts up to a bound.
        for i, bound in enumerate(self.bounds):
            self._below[i] += int(np.count_nonzero(values <= bound))
        with np.errstate(invalid="ignore"):  # infinities of both signs
            total = float(values.sum(dtype=np.float64))
        if not math.isfinite(total):
            total = float(values[np.isfinite(values)].sum(dtype=np.float64))
        self.sum += total

    def cumulative(self) -> list[tuple[str, float]]:
        """(bound, count of values up to it), as Prometheus wants them."""
        found = [(str(b), float(n)) for b, n in zip(self.bounds, self._below, strict=True)]
        return [*found, ("+Inf", float(self.count))]
