"""What theory promises of training with inexact searches, as numbers that a training can be held to.

Statements are about one example, or several that act as one: a block of rows. A rho-approximate search returns at
least rho times the best value (of f + loss in training, of f in prediction; values are not below 0). Quantities are
means over the block: `value` is f(y^) + loss(y^) of what the oracle found, `gold` is f of the true output, `xi` the
slack.

>>> search = Approximate(rho=0.8, value=40.0, gold=10.0)
>>> search.violation, search.feasible_slack(), search.risk_bound(xi=25.0)
(30.0, 40.0, 27.0)

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, section 5.3 (Lemma 1,
Theorems 8 to 13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from netclust.errors import InputError
from netclust.structures.pairs import Vector

__all__ = ["Approximate", "ValueRange", "most_constraints", "objective"]


class ValueRange(NamedTuple):
    """Two numbers between which a third one is."""

    low: float
    high: float


@dataclass(frozen=True)
class Approximate:
    """What one call of a rho-approximate oracle says about the whole program."""

    rho: float
    value: float
    gold: float

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not 0 < self.rho <= 1:
            raise InputError(f"rho is {self.rho}: it is a share, above 0 and at most 1")

    @property
    def violation(self) -> float:
        """H(y^): the slack that the found output needs."""
        return self.value - self.gold

    def feasible_slack(self) -> float:
        """Lemma 1: with this slack no output at all violates its constraint."""
        return self.violation + (1 - self.rho) / self.rho * self.value

    def optimum(self, w: Vector, C: float, xi: float) -> ValueRange:
        """Theorem 9: where the optimum of the full program lies, at the end of a training with slack xi."""
        return ValueRange(objective(w, C, xi), objective(w, C, self.value / self.rho - self.gold))

    def risk_bound(self, xi: float) -> float:
        """Theorem 10: the loss of rho-approximate predictions, where (w, xi) is feasible."""
        return (1 - self.rho) * self.gold + xi


def objective(w: Vector, C: float, xi: float) -> float:
    """|w|^2/2 + C xi."""
    return float(w @ w) / 2 + C * xi


def most_constraints(C: float, epsilon: float, loss: float, radius: float, examples: int = 1) -> float:
    """Theorems 8 and 11: a training ends after at most so many constraints, whatever the oracle misses or adds.

    `loss` and `radius` are the largest loss and the largest difference of features that the oracle can return.

    >>> most_constraints(C=1.0, epsilon=1.0, loss=100.0, radius=0.5)
    2600.0
    """
    return (C * loss**2 * radius**2 + examples * loss) / epsilon**2
