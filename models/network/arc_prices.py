"""What wrong links of a stream cost, by what they do to the alarm: a loss that splits over arcs, with a price a kind.

A record that links to its own class, or to the root where its class is not at hand, costs nothing. Every other link is
of one of six kinds, and Delta_F (5.5) is the loss that tells only roots from links.

>>> edge_prices(r=1.0)
ArcPrices(false_alarm=1.0, false_root=2.0, miss=1.0, wrong_attack=1.0, known_root=2.0, wrong_normal=1.0)
>>> label, parents = np.array([0, 1, 2, 0, 1]), np.array([-1, 0, 1, -1, 1])
>>> root_right = np.array([True, True, True, False, False])  # the first of its class
>>> arc_kinds(label, parents, root_right, is_normal=np.array([True, False, False])).tolist()
[-1, 2, 3, 1, -1]

The loss is exact for Algorithm 5 whatever the prices are: each record still takes its own best arc. I. Haponchyk,
"Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; section 4 and (5.5).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

__all__ = ["KINDS", "PASSED_OVER", "RIGHT", "ArcPrices", "arc_kinds", "edge_prices"]

RIGHT = -1
"""Instead of a kind: nothing is wrong with the link."""
PASSED_OVER = -2
"""Instead of a parent: no arc is right for the record, so it takes none and teaches nothing."""


class ArcPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a wrong link, by kind; each above 0, so that the loss is 0 only where every link is right."""

    false_alarm: float  # a normal record linked to an attack
    false_root: float  # a normal record sent to the root
    miss: float  # an attack linked to a normal record
    wrong_attack: float  # an attack linked to another attack: the alarm is right, its name is not
    known_root: float  # an attack sent to the root although it is known: the alarm is right
    wrong_normal: float = 1.0  # a normal record linked to another normal class

    def __post_init__(self) -> None:
        """Refuse what is no loss."""
        for kind in KINDS:
            if not 0 < getattr(self, kind) < math.inf:
                raise InputError(f"the price of {kind} must be above 0 and finite, not {getattr(self, kind)}")

    @property
    def vector(self) -> NDArray[np.float64]:
        """The prices in the order of KINDS."""
        return np.array([getattr(self, kind) for kind in KINDS])

    @property
    def table(self) -> NDArray[np.float64]:
        """[the record is normal?, links to an attack / a normal record / the root]: what kernels look up."""
        attack = [self.wrong_attack, self.miss, self.known_root]
        return np.array([attack, [self.false_alarm, self.wrong_normal, self.false_root]])


KINDS = ("false_alarm", "false_root", "miss", "wrong_attack", "known_root", "wrong_normal")
_KIND_AT = np.array([[3, 2, 4], [0, 5, 1]])  # the kinds of `table`


def edge_prices(r: float = 1.0) -> ArcPrices:
    """Delta_F (5.5): 1 for a wrong link, 1 + r for an invented root arc."""
    root = 1.0 + r
    return ArcPrices(false_alarm=1.0, false_root=root, miss=1.0, wrong_attack=1.0, known_root=root, wrong_normal=1.0)


def arc_kinds(
    label: NDArray[np.int32],
    parents: NDArray[np.int64],
    root_right: NDArray[np.bool_],
    is_normal: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The place in KINDS of every record's link, RIGHT where it is; parents are records, -1 the root, -2 none.

    `root_right` says of every record whether the root is right for it, `is_normal` of every class what it is.
    """
    rooted = parents < 0
    to = label[np.maximum(parents, 0)]
    column = np.where(rooted, 2, is_normal[to].astype(np.int64))
    kinds = _KIND_AT[is_normal[label].astype(np.int64), column]
    right = np.where(rooted, root_right, to == label) | (parents == PASSED_OVER)
    return np.where(right, RIGHT, kinds)
