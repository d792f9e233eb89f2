"""Is a difference between two methods more than chance? Runs that share their draws are compared, and resampled.

A run is one training seed with one drawn reference set, and two methods have a run each for every such pair. Seeds,
draws and test records are resampled apart: runs with the same reference set are not independent of each other, so 3
seeds with 10 draws are not 30 witnesses.

>>> right, wrong = np.ones((1, 2, 50), bool), np.zeros((1, 2, 50), bool)
>>> paired_interval(right, wrong)
ConfidenceInterval(difference=1.0, low=1.0, high=1.0, excludes_zero=True)
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["RESAMPLES", "ConfidenceInterval", "paired_interval"]

RESAMPLES = 2000
LEVEL = 0.95
_CHUNK = 100
_FEW = 100  # from here on, drawing one by one is quicker than a multinomial


class ConfidenceInterval(msgspec.Struct, frozen=True):
    """A mean difference, and where 95 % of the resampled ones lie."""

    difference: float
    low: float
    high: float
    excludes_zero: bool


def paired_interval(
    first: NDArray[Any], second: NDArray[Any], *, resamples: int = RESAMPLES, seed: int = 0
) -> ConfidenceInterval:
    """Of `first - second`: arrays [seed, draw] of a number a run, or [seed, draw, record] of a number a record."""
    apart = np.subtract(first, second, dtype=np.float64)
    seeds, draws = apart.shape[:2]
    values = apart.reshape(seeds * draws, -1)
    records = values.shape[1]
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    for at in range(0, resamples, _CHUNK):
        n = min(_CHUNK, resamples - at)
        runs = _counts(rng, seeds, n)[:, :, None] * _counts(rng, draws, n)[:, None, :]
        by_record = runs.reshape(n, seeds * draws) @ values
        means[at : at + n] = np.einsum("ij,ij->i", by_record, _counts(rng, records, n))
    means /= seeds * draws * records
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return ConfidenceInterval(float(values.mean()), float(low), float(high), bool(low > 0 or high < 0))


def _counts(rng: np.random.Generator, things: int, resamples: int) -> NDArray[np.float64]:
    """How often each of some things is drawn in every resample."""
    if things < _FEW:
        return rng.multinomial(things, np.full(things, 1 / things), resamples).astype(np.float64)
    drawn = rng.integers(0, things, (resamples, things))
    return np.stack([np.bincount(row, minlength=things) for row in drawn]).astype(np.float64)
