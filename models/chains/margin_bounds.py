"""How many wrong labels a max-margin Markov network makes on new data, at most: the margin bound, as numbers.

With probability 1 - delta, for every margin, the mean share of wrong labels is at most the training share of labels
that are wrong or right by less than the margin, plus a term of complexity that falls with the examples:

>>> chain = chain_cliques(length=8, labels=26)
>>> chain
CliqueCounts(cliques=15, values=676, sharing=3)
>>> [round(complexity(chain, m, norm=2.0, margin=1.0), 2) for m in (600, 100_000, 1_000_000, 10_000_000)]
[36.78, 3.2, 1.06, 0.35]

So it says nothing (a share is never above 1) below about a million examples: it is for comparing models, not for
promising anything. `norm` is R |w|: the largest 2-norm of a clique's features times that of the weights; what counts is
how many times the margin it is. A model with a large norm can thus have a smaller margin loss and a worse bound:

>>> bound(0.02, chain, 10_000_000, norm=2.0, margin=1.0) < bound(0.0, chain, 10_000_000, norm=4.0, margin=1.0)
True

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; theorem 5.5.1 by (A.11) and (A.12) of its proof, since the constant of the theorem itself is not given.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

__all__ = ["CliqueCounts", "bound", "chain_cliques", "chain_margin_loss", "complexity", "log_covering_number"]


class CliqueCounts(NamedTuple):
    """What of a network's shape the bound depends on, at most over all examples."""

    cliques: int
    """N_c, of one example."""
    values: int
    """V_c: label combinations of one clique."""
    sharing: int
    """q: cliques that one variable is in."""


def chain_cliques(length: int, labels: int) -> CliqueCounts:
    """Chains of up to `length` places: a clique a place and a clique a pair of neighbours."""
    if length < 1 or labels < 2:
        raise InputError(f"chains of {length} places and {labels} labels: one place and two labels at least")
    return CliqueCounts(2 * length - 1, labels**2 if length > 1 else labels, min(length, 3))


def log_covering_number(counts: CliqueCounts, examples: int, norm: float, margin: float) -> float:
    """ln of the covering number of margin losses at this resolution.

    log2 N <= 36 (R |w| q / eps)^2 log2(1 + 2 ceil(4 R |w| q / eps + 2) m N_c (V_c - 1))
    """
    _check(counts, examples, norm, margin)
    ratio = norm * counts.sharing / margin
    cells = 1.0 + 2.0 * math.ceil(4.0 * ratio + 2.0) * examples * counts.cliques * (counts.values - 1)
    return 36.0 * ratio**2 * math.log(cells)


def complexity(counts: CliqueCounts, examples: int, norm: float, margin: float, delta: float = 0.05) -> float:
    """What is added to the training loss: sqrt((32/m) [ln 4 N(margin_i) + ln(1 / (p_i delta))]).

    It holds for all margins at once, so the next smaller one of R |w| / 2^i counts, each with p_i = 2^-i of delta.
    """
    _check(counts, examples, norm, margin)
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}: the chance that the bound fails lies between 0 and 1")
    i = 1
    while norm / 2.0**i > margin:
        i += 1
    least = min(norm / 2.0**i, margin)
    inside = math.log(4.0) + log_covering_number(counts, examples, norm, least) + i * math.log(2.0) - math.log(delta)
    return math.sqrt(32.0 / examples * inside)


def bound(
    margin_loss: float, counts: CliqueCounts, examples: int, norm: float, margin: float, delta: float = 0.05
) -> float:
    """The share of wrong labels on new data, exceeded with a chance of at most delta; above 1 it says nothing."""
    if not 0 <= margin_loss <= 1:
        raise InputError(f"a margin loss is a share of labels, not {margin_loss}")
    return margin_loss + complexity(counts, examples, norm, margin, delta)


def chain_margin_loss(
    node: NDArray[np.float64], edge: NDArray[np.float64], y: NDArray[np.int64], margin: float
) -> float:
    """The share of wrong labels in the worst labelling of a chain that is not beaten by the margin times its errors.

    (1/L) max { H(y, y') : score(y) <= score(y') + margin H(y, y') }, by the best score for every number of errors.

    >>> node = np.array([[1.0, 0.0], [0.2, 0.0], [0.0, 2.0]])
    >>> y, free = np.array([0, 0, 1]), np.zeros((2, 2))
    >>> [round(chain_margin_loss(node, free, y, margin), 3) for margin in (0.1, 0.5, 0.6, 2.0)]
    [0.0, 0.333, 0.667, 1.0]
    """
    from netclust.models.chains.chain_inference import chain_score
    from netclust.models.chains.chain_kernels import best_by_errors

    L = len(y)
    if not L:
        return 0.0
    best = np.empty(L + 1)
    best_by_errors(np.ascontiguousarray(node), np.ascontiguousarray(edge), np.asarray(y, np.int64), best)
    gold = chain_score(node, edge, y)
    close = np.flatnonzero(gold <= best + margin * np.arange(L + 1))
    return float(close.max(initial=0)) / L


def _check(counts: CliqueCounts, examples: int, norm: float, margin: float) -> None:
    if counts.cliques < 1 or counts.values < 2 or counts.sharing < 1 or examples < 1:
        raise InputError(f"a bound needs examples, cliques and two values of a clique, not {examples} and {counts}")
    if not (0 < norm < math.inf and 0 < margin < math.inf):
        raise InputError(f"norm and margin must be above 0, not {norm} and {margin}")
