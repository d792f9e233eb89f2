"""The tree that violates most under a loss of the whole clustering: Algorithm 6, with incremental features.

Item j links to one of the items right before it or to the root, which scores 0; scores are in the rows of
`netclust.structures.hashed_pairs.HashedPairs`. The loss is a `LearnedLoss` on the nine features of the clustering.

>>> from netclust.losses.learned_loss import LearnedLoss, Truth
>>> starts, scores = np.array([0, 0, 1, 3, 6]), np.array([-0.4, 0.9, -0.2, 0.3, 0.5, -0.6])
>>> truth, loss = Truth.of_labels([0, 1, 0, 1]), LearnedLoss.mean_f1()
>>> found = violating_tree(starts, scores, truth, loss, C=0.5)
>>> found.tree.parents.tolist(), found.tree.clusters().tolist(), round(found.delta, 6), round(found.potential, 6)
([0, 0, 1, 1], [0, 1, 0, 0], 1.147712, 2.073856)
>>> violating_tree(starts, scores, truth, loss, C=0.0).tree.parents.tolist()
[0, 0, 1, 2]

The first pass places one item after the other, each by its score and the loss of what is placed so far; the next ones
move an item, with all that hangs from it, as long as the potential `sum_i (n/i) s(e_i) + C Delta'` rises (without
`scaled`: `sum_i s(e_i) + C Delta'`). That is a local optimum: it was the global one in about nine of ten small cases.

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; Algorithm
6, with the stopping rule of a potential, since its printed score can fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netclust.errors import InputError
from netclust.losses.learned_loss import NINE, LearnedLoss, Truth
from netclust.models.coreference.antecedent_links import Antecedents
from netclust.structures.pairs import Indices, Vector

__all__ = ["MAX_PASSES", "Violation", "potential", "violating_tree"]

MAX_PASSES = 100
"""Far above what was ever needed (fewer than ten); a bound, since rounding could let arcs swap for ever."""

TIE = 1e-12
"""Of the largest score and loss: what differs by less is equal, and not a rounding error to be followed."""


@dataclass(frozen=True, eq=False)
class Violation:
    """A tree, the features of its clustering, Delta' and the potential."""

    tree: Antecedents
    features: Vector
    delta: float
    potential: float
    passes: int


def violating_tree(
    starts: Indices,
    scores: Vector,
    truth: Truth,
    loss: LearnedLoss,
    *,
    C: float = 1.0,
    scaled: bool = True,
    max_passes: int = MAX_PASSES,
) -> Violation:
    """The tree of Algorithm 6; `scaled` lets early nodes see less of the loss (Delta'')."""
    from netclust.models.coreference.global_loss_kernels import global_loss_tree

    _check(starts, scores, truth, loss)
    if max_passes < 1:
        raise InputError(f"max_passes is {max_passes}, at least 1 is needed")
    table, key = _tables(truth)
    psi = np.zeros(len(NINE))
    weight = C * truth.detected / 100.0
    largest = float(np.abs(scores).max(initial=0.0)) + 100.0 * abs(weight) * (1.0 + float(np.abs(loss.v).sum()))
    passes = global_loss_tree(
        np.ascontiguousarray(starts, np.int64),
        np.ascontiguousarray(scores, np.float64),
        key,
        np.ascontiguousarray(loss.v, np.float64),
        weight,
        scaled,
        TIE * largest,
        max_passes,
        table,
        psi,
    )
    later = np.flatnonzero(table.parents)
    rows = np.full(len(truth.keys), -1, np.int64)
    rows[later] = starts[later + 1] - (later + 1 - table.parents[later])
    tree = Antecedents(starts, rows)
    delta = loss.scaled(psi, truth.detected)
    return Violation(tree, psi, delta, potential(tree, scores, delta, C=C, scaled=scaled), int(passes))


def potential(h: Antecedents, scores: Vector, delta: float, *, C: float = 1.0, scaled: bool = True) -> float:
    """What the passes raise: the sum of the arcs' scores, node i's times n/i if `scaled`, plus C times the loss."""
    values = scores[h.edges]
    if scaled:
        values = values * (len(h.rows) / (np.flatnonzero(h.rows >= 0) + 1.0))
    return float(values.sum() + C * delta)


def _check(starts: Indices, scores: Vector, truth: Truth, loss: LearnedLoss) -> None:
    n = len(truth.keys)
    counts = np.diff(starts)
    if starts.shape != (n + 1,) or starts[0] != 0 or (counts < 0).any() or (counts > np.arange(n)).any():
        raise InputError(f"{n} items need {n + 1} starts of rows, rising from 0 by no more than the items before")
    if scores.shape != (starts[-1],) or not np.isfinite(scores).all():
        raise InputError(f"there must be {starts[-1]} finite scores, one for each candidate arc")
    if loss.v.shape != (len(NINE),):
        raise InputError(f"the loss has {len(loss.v)} weights, the clustering {len(NINE)} features")


def _tables(truth: Truth) -> tuple[Any, Any]:
    """Room for the kernel: about twenty numbers an item, and one an entity."""
    from netclust.models.coreference import global_loss_kernels as kernel

    n, entities = len(truth.keys), len(truth.sizes)
    rows = iter(np.zeros((14, n), np.int64))
    table = kernel.ClusteredTree(
        parents=next(rows),
        child=next(rows),
        after=next(rows),
        before=next(rows),
        label=next(rows),
        size=next(rows),
        squares=next(rows),
        head=next(rows),
        key=next(rows),
        count=next(rows),
        follow=next(rows),
        free=np.zeros(1, np.int64),
        members=next(rows),
        part_keys=next(rows),
        part=np.zeros(entities, np.int64),
        stamp=next(rows),
        worth=np.zeros(n),
        sums=np.zeros(kernel.SUMS),
    )
    inverse = np.zeros(n + int(truth.sizes.max(initial=0)) + 1)
    inverse[1:] = 1.0 / np.arange(1, len(inverse))
    keys, sizes = np.ascontiguousarray(truth.keys, np.int64), np.ascontiguousarray(truth.sizes, np.int64)
    return table, kernel.TrueEntities(keys, sizes, entities, truth.mentions, truth.links, inverse)
