"""A loss learned from the measure that one is judged by: a linear estimate of it from features that are quick to keep.

The mean F1 of three coreference measures (MELA) needs an assignment; nine numbers of the contingency table do not. A
regression (`netclust.problems.loss_learning`) says how the nine make up the measure; what is missing to 100 is the
loss.

>>> truth = Truth.of_labels([0, 1, 1, 2, 1, 0, 1])
>>> psi = nine_features(truth, np.array([0, 1, 1, 0, 2, 0, 2]))
>>> dict(zip(NINE, psi.round(2).tolist(), strict=True))["b3_f1"]
75.89
>>> loss = LearnedLoss.mean_f1()
>>> round(loss.predicted(psi), 3), round(loss.rho(psi), 3), round(loss.scaled(psi, truth.detected), 4)
(79.557, 20.443, 1.431)

Items may be spurious (key -1), and a key entity may be larger than what was found of it. Items with cluster -1 are not
placed yet: they are no part of the response.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; sections
3.2 and 5.3, equation (5.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError
from netclust.losses.partition_loss import partition_contingency
from netclust.structures.pairs import Vector

__all__ = ["NINE", "LearnedLoss", "Truth", "nine_features"]

Labels = NDArray[np.int64]

NINE = (
    "muc_precision",
    "muc_recall",
    "muc_f1",
    "b3_precision",
    "b3_recall",
    "b3_f1",
    "simple_ceaf_precision",
    "simple_ceaf_recall",
    "simple_ceaf_f1",
)
"""The features of `nine_features`, in its order."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The key of a set: `keys[j]` is item j's entity, -1 if it is none; `sizes[k]` counts missed members as well."""

    keys: Labels
    sizes: Labels

    def __post_init__(self) -> None:
        """Refuse keys that the entities cannot hold."""
        if self.keys.ndim != 1 or self.sizes.ndim != 1:
            raise InputError("keys and sizes must be lists of whole numbers")
        if len(self.keys) and (self.keys.min() < -1 or self.keys.max() >= len(self.sizes)):
            raise InputError(f"keys must be -1 (spurious) or the number of one of {len(self.sizes)} entities")
        if (self.sizes < np.maximum(self._found, 1)).any():
            raise InputError("an entity is smaller than what was found of it; count missed mentions too")

    @classmethod
    def of_labels(cls, labels: ArrayLike) -> Truth:
        """The truth of a set in which nothing is missed; labels below 0 are spurious items."""
        y = np.asarray(labels, np.int64)
        keys = np.full(len(y), -1, np.int64)
        _, keys[y >= 0] = np.unique(y[y >= 0], return_inverse=True)
        return cls(keys, np.bincount(keys[keys >= 0]).astype(np.int64))

    @cached_property
    def _found(self) -> Labels:
        return np.bincount(self.keys[self.keys >= 0], minlength=len(self.sizes)).astype(np.int64)

    @cached_property
    def detected(self) -> int:
        """How many items are true: c of the scaled loss."""
        return int(self._found.sum())

    @cached_property
    def mentions(self) -> int:
        """How many members the entities have, found or missed."""
        return int(self.sizes.sum())

    @cached_property
    def links(self) -> int:
        """How many links the entities have: members but the first."""
        return self.mentions - len(self.sizes)

    @cached_property
    def labels(self) -> Labels:
        """The clustering of the items to learn: the entities, and every spurious item alone."""
        spurious = self.keys < 0
        return np.where(spurious, len(self.sizes) + np.cumsum(spurious) - 1, self.keys)


def nine_features(truth: Truth, clusters: NDArray[Any]) -> Vector:
    """Psi in percent: precision, recall and F1 of MUC and B3, and of CEAF_e without its alignment; 0/0 is 0."""
    if len(clusters) != len(truth.keys):
        raise InputError(f"{len(clusters)} items were clustered, the truth has {len(truth.keys)}")
    placed = clusters >= 0
    _, response, response_sizes = np.unique(clusters[placed], return_inverse=True, return_counts=True)
    keys = truth.keys[placed]
    true = keys >= 0
    table = partition_contingency(keys[true], response[true])
    k = truth.sizes[np.unique(keys[true])][table.row]
    r = response_sizes[np.unique(response[true])][table.column]
    together = int(table.cells.sum()) - len(table.cells)
    squares = table.cells.astype(np.float64) ** 2
    similarity = float((2.0 * table.cells / (k + r)).sum())
    return np.concatenate(
        [
            _three(together, len(keys) - len(response_sizes), together, truth.links),
            _three(float((squares / r).sum()), len(keys), float((squares / k).sum()), truth.mentions),
            _three(similarity, len(response_sizes), similarity, len(truth.sizes)),
        ]
    )


def _three(right: float, claimed: int, found: float, wanted: int) -> Vector:
    precision = right / claimed if claimed else 0.0
    recall = found / wanted if wanted else 0.0
    both = precision + recall
    return 100.0 * np.array([precision, recall, 2 * precision * recall / both if both else 0.0])


@dataclass(frozen=True, eq=False)
class LearnedLoss:
    """The measure is estimated as `v.Psi + bias`, features and measure in percent."""

    v: Vector
    bias: float = 0.0

    def __post_init__(self) -> None:
        """Refuse weights that would make every loss nonsense."""
        if self.v.ndim != 1 or not np.isfinite(self.v).all() or not np.isfinite(self.bias):
            raise InputError("a learned loss needs one finite weight for each feature and a finite bias")

    @classmethod
    def mean_f1(cls) -> LearnedLoss:
        """Nothing learned: the mean of the three F1 among the nine features."""
        v = np.zeros(len(NINE))
        v[2::3] = 1 / 3
        return cls(v)

    def predicted(self, psi: Vector) -> float:
        """The estimate of the measure, in percent."""
        if psi.shape != self.v.shape:
            raise InputError(f"there are {len(psi)} features for {len(self.v)} weights of the learned loss")
        return float(self.v @ psi + self.bias)

    def rho(self, psi: Vector) -> float:
        """Delta_rho (5.6): what is missing to 100."""
        return 100.0 - self.predicted(psi)

    def scaled(self, psi: Vector, c: float) -> float:
        """Delta'_rho: the loss of a set with c right items, so that large sets weigh as much as with losses of arcs."""
        return c / 100.0 * self.rho(psi)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, exact."""
        return {"v": self.v.tolist(), "bias": float(self.bias)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LearnedLoss:
        """What `to_json` gave."""
        try:
            return cls(np.array(body["v"], np.float64), float(body["bias"]))
        except (KeyError, TypeError, ValueError):
            raise InputError("a learned loss is written as {'v': [numbers], 'bias': number}") from None
