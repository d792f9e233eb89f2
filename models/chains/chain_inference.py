"""Sequences of labels: the best one, the max-violating one, max-marginals, probabilities.

Labels of places are scored by themselves (`node`, a row a place) and by what they follow (`edge`, the label before by
the label after; the same everywhere). Many sequences lie one after the other, `offsets` says where each begins:

>>> node = np.array([[0.0, 1.0], [0.6, 0.5], [2.0, 0.0]])
>>> sticky = np.array([[0.5, 0.0], [0.0, 0.5]])
>>> best_chain(node, np.zeros((2, 2))).tolist(), best_chain(node, sticky).tolist()
([1, 0, 0], [1, 0, 0])
>>> best_chain(node, 4 * sticky).tolist(), best_chain(node, 4 * sticky, np.array([0, 1, 3])).tolist()
([0, 0, 0], [1, 0, 0])
>>> round(chain_score(node, 4 * sticky, np.array([0, 0, 0])), 6)
6.6
>>> infer_violating_chain(node, sticky, np.array([1, 0, 0]), np.full(3, 3.0)).tolist()
[0, 1, 1]

The distance of a place's best label from its second best one, the rest being chosen best, tells how sure it is:

>>> infer_max_marginals(node, 4 * sticky).round(1).tolist()
[[6.6, 5.6], [6.6, 5.5], [6.6, 5.5]]
>>> chances = chain_probabilities(node, sticky)
>>> chances.node.round(2).tolist(), round(float(chances.pairs.sum()), 6)
([[0.29, 0.71], [0.56, 0.44], [0.88, 0.12]], 2.0)

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; chapter 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

__all__ = [
    "MAX_SPREAD",
    "ChainChances",
    "Labelling",
    "best_chain",
    "best_chains",
    "chain_probabilities",
    "chain_score",
    "check_chain",
    "infer_max_marginals",
    "infer_violating_chain",
]

Labelling = NDArray[np.int64]
Scores = NDArray[np.float64]
Offsets = NDArray[np.int64]

MAX_SPREAD = 600.0
"""How far transition scores may lie apart where probabilities are asked for: exp of more is nothing."""


def best_chain(node: Scores, edge: Scores, offsets: Offsets | None = None) -> Labelling:
    """The labels of the highest score; of equal ones the lower label, from the last place on."""
    return best_chains(node, edge, offsets)[0]


def best_chains(node: Scores, edge: Scores, offsets: Offsets | None = None) -> tuple[Labelling, Scores]:
    """The best labels, and the score of every sequence's."""
    from netclust.models.chains.chain_kernels import chain_viterbi

    node, edge, offsets = check_chain(node, edge, offsets)
    labels, value = np.zeros(len(node), np.int64), np.zeros(len(offsets) - 1)
    chain_viterbi(node, edge, offsets, labels, value)
    return labels, value


def infer_violating_chain(
    node: Scores, edge: Scores, y: NDArray[Any], price: Scores, offsets: Offsets | None = None
) -> Labelling:
    """Return the labels of the highest score plus loss: place t pays price[t] unless its label is y[t]."""
    return best_chain(with_price(node, y, price), edge, offsets)


def with_price(node: Scores, y: NDArray[Any], price: Scores) -> Scores:
    """Scores of places with what a wrong label costs added to it."""
    found = node + price[:, None]
    found[np.arange(len(y)), y] = node[np.arange(len(y)), y]
    return found


def chain_score(node: Scores, edge: Scores, labels: NDArray[Any]) -> float:
    """The score of one sequence's labels."""
    return float(node[np.arange(len(labels)), labels].sum() + edge[labels[:-1], labels[1:]].sum())


def infer_max_marginals(node: Scores, edge: Scores, offsets: Offsets | None = None) -> Scores:
    """Return, per place and label, the best score of its sequence's labels among those with this label there."""
    from netclust.models.chains import chain_kernels

    node, edge, offsets = check_chain(node, edge, offsets)
    found = np.empty(node.shape)
    chain_kernels.fill_chain_marginals(node, edge, offsets, found)
    return found


@dataclass(frozen=True, eq=False)
class ChainChances:
    """Probabilities under exp(score) / Z: of labels at places, of neighbouring labels (summed), and log Z."""

    node: Scores
    pairs: Scores
    log_z: Scores


def chain_probabilities(node: Scores, edge: Scores, offsets: Offsets | None = None) -> ChainChances:
    """Forward and backward sums over all labels."""
    from netclust.models.chains.chain_kernels import sum_product

    node, edge, offsets = check_chain(node, edge, offsets)
    if np.ptp(edge) > MAX_SPREAD:
        raise InputError(f"transition scores lie {np.ptp(edge):.0f} apart: probabilities need {MAX_SPREAD:g} at most")
    found = ChainChances(np.empty(node.shape), np.empty(edge.shape), np.empty(len(offsets) - 1))
    sum_product(node, edge, offsets, found.node, found.pairs, found.log_z)
    return found


def check_chain(node: Scores, edge: Scores, offsets: Offsets | None) -> tuple[Scores, Scores, Offsets]:
    """Arrays as the kernels take them; one sequence where there are no offsets."""
    node, edge = np.ascontiguousarray(node, np.float64), np.ascontiguousarray(edge, np.float64)
    if node.ndim != 2 or not node.shape[1] or edge.shape != (node.shape[1], node.shape[1]):
        raise InputError(
            f"scores of places {list(node.shape)} and of neighbouring labels {list(edge.shape)} do not fit"
        )
    if not (np.isfinite(node).all() and np.isfinite(edge).all()):
        raise InputError("scores of a chain must be finite")
    if offsets is None:
        return node, edge, np.array([0, len(node)], np.int64)
    given = np.ascontiguousarray(offsets, np.int64)
    if given.ndim != 1 or not len(given) or given[0] != 0 or given[-1] != len(node) or (np.diff(given) < 0).any():
        raise InputError(f"offsets of sequences must rise from 0 to {len(node)}, the number of places")
    return node, edge, given
