"""Similarity: the learned pair score w . phi(a, b), in the form that people read and in the form that kernels use.

Weights lie as [numeric | AND, OR, NOR of every value of every coded attribute | root]. The features of a pair are
1 + sign*min(|a - b|, far) for a scaled numeric attribute, and three indicators a value: both have it, one has it,
neither has.

>>> layout = WeightLayout(features=1, widths=(2, 4), roots=1)
>>> layout.dimension  # 1 numeric + 3 for one bit + 3*3 for three values + 1 root weight
14
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.records.batch import Batch

RootFeatures = Literal["bias", "none", "attributes"]


@dataclass(frozen=True)
class WeightLayout:
    """Where each weight is."""

    features: int
    widths: tuple[int, ...]
    roots: int

    @cached_property
    def at(self) -> NDArray[np.int64]:
        """Where the weights of each coded attribute start."""
        sizes = [3 * (width - 1) for width in self.widths]
        return self.features + np.concatenate([[0], np.cumsum(sizes)])[: len(sizes)].astype(np.int64)

    @cached_property
    def width(self) -> NDArray[np.int64]:
        """Codes of each coded attribute."""
        return np.array(self.widths, np.int64)

    @cached_property
    def dimension(self) -> int:
        """How many weights."""
        return self.features + 3 * sum(width - 1 for width in self.widths) + self.roots


def root_features(batch: Batch, kind: RootFeatures) -> NDArray[np.float32]:
    """Features of the root arc of every record, [n, K]: a bias, nothing, or a bias and the record's numbers."""
    n = len(batch)
    if kind == "none":
        return np.zeros((n, 0), np.float32)
    bias = np.ones((n, 1), np.float32)
    return bias if kind == "bias" else np.ascontiguousarray(np.concatenate([bias, batch.num], axis=1))


def root_count(features: int, kind: RootFeatures) -> int:
    """How many root features."""
    return {"none": 0, "bias": 1, "attributes": 1 + features}[kind]


def unlearned_weights(layout: WeightLayout, sign: int, symbol_weight: float = 1.0) -> NDArray[np.float64]:
    """The control of spec 6.12: shared bits minus absolute differences, all weights equal, no root."""
    w = np.zeros(layout.dimension)
    w[: layout.features] = -sign
    for s, width in enumerate(layout.widths):
        w[layout.at[s] : layout.at[s] + 3 * (width - 1) : 3] = symbol_weight
    return w


def spread_units(num: NDArray[np.float32]) -> NDArray[np.float64]:
    """What counts as one unit of difference in each attribute: its standard deviation, at least an eighth of its range.

    The floor keeps an attribute that is almost always 0 from deciding everything the one time that it is not.

    >>> spread_units(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]] + [[0, 0], [1, 0]] * 500, np.float32))
    array([0.5  , 0.125])
    """
    wide = num.astype(np.float64)
    return np.asarray(np.maximum(wide.std(axis=0), np.ptp(wide, axis=0) / 8))


def bits_from_one(batch: Batch, binary: Sequence[bool]) -> Batch:
    """The same records with the codes of bits 1 and 2 instead of 0 and 1: two records without the bit are the same."""
    return replace(batch, code=batch.code + np.array(binary, np.uint16))


def in_units(batch: Batch, binary: Sequence[bool]) -> Batch:
    """The same records such that the unlearned distance is sum_f |a_f - b_f| + how many coded attributes differ."""
    units = spread_units(batch.num)
    return replace(bits_from_one(batch, binary), num=(batch.num / units).astype(np.float32))


def distance_weights(
    layout: WeightLayout,
    binary: Sequence[bool],
    weight: NDArray[np.float64],
    mismatch: NDArray[np.float64],
    root: float,
    sign: int,
) -> NDArray[np.float64]:
    """w . phi of a distance: -sum_f weight_f |a_f - b_f| - sum_s mismatch_s [a_s != b_s], up to a constant.

    `root` is a score on the distance's own scale, the constant is added to it. An unknown value differs from all.
    """
    w = np.zeros(layout.dimension)
    w[: layout.features] = -sign * weight
    for s, width in enumerate(layout.widths):
        here = w[layout.at[s] : layout.at[s] + 3 * (width - 1)].reshape(-1, 3)
        if binary[s]:  # the same where both or neither have the bit
            here[:] = (mismatch[s], -mismatch[s], 0)
        elif width > 1:
            here[:] = (mismatch[s], -mismatch[s] / (width - 1), -mismatch[s] / (width - 1))
    if layout.roots:
        w[layout.dimension - layout.roots] = root + w[: layout.features].sum()
    return w
