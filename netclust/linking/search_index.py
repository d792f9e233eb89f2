"""Room for the groups of referents that `kernels.linking.boxes` searches, and how a model's attributes are cut into
steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.linking import link as kernels
from netclust.kernels.linking.boxes import FREE, FREE_LEAVES, FREE_NODES, NOWHERE, TALLIES, BoundedRecord, Index, Steps
from netclust.kernels.linking.bytewise import WIDE
from netclust.kernels.linking.prefetch import LINE
from netclust.kernels.linking.score import Scorer
from netclust.scoring.model import Model

LEAF_MEMBERS = 128
NODE_LEAVES = 64  # no more: a node's leaves are the bits of one number
SPREAD = 3
"""There are leaves for so many times the members that there can be, since few are full; untouched ones cost nothing."""

UNITS = 384
"""How many units two referents are apart on average."""

PUT_OFF = 2048
"""Members whose scoring can be put off in a search."""

TELLS = 0.0005
"""An attribute with less than this share of what referents differ by has no steps."""

# What can be lacked, all in all, must fit into 16 bits.
MOST_BY_NUMBERS, MOST_BY_CODES, MOST_BY_UNARY = 30_000, 24_000, 10_000


def new_scratch(model: Model) -> kernels.SearchScratch:
    """Return scratch space for a search by bounds."""
    steps = _new_steps(model.scorer, model.reference.num)
    coded = len(model.encoding.widths)
    query = BoundedRecord(
        step=np.zeros(len(steps.attribute), np.uint8),
        price=np.zeros(coded, np.uint16),
        byte=np.zeros(coded, np.uint8),
        bit=np.zeros(coded, np.uint16),
        ceiling=np.zeros(1),
        best=np.zeros(2, np.float32),
        number=np.zeros(2, np.int64),
        hint=np.zeros(2, np.int64),
    )
    return kernels.SearchScratch(steps, query, np.zeros(coded, np.float32))


def _new_steps(scorer: Scorer, sample: NDArray[np.float32]) -> Steps:
    """Cut attributes so that a step is worth the same in each, by records that are like those to come.

    Any steps give the right answer; good ones are small where referents differ.
    """
    weight = np.where(scorer.slope < 0, -scorer.slope.astype(np.float64), 0.0)
    rows = sample[np.random.default_rng(0).permutation(len(sample))[:512]].astype(np.float64)
    if len(rows) < 2:
        rows = np.stack([np.zeros(len(weight)), np.ones(len(weight))])  # as scaled attributes are
    apart = np.minimum(np.abs(rows - np.roll(rows, 1, axis=0)), scorer.far).mean(axis=0) * weight
    order = np.argsort(-apart, kind="stable")
    order = order[(apart[order] > TELLS * apart.sum()) & (weight[order] > 0)]
    worth = float(apart.sum()) / UNITS or 1.0
    per = weight[order] / worth
    low = np.maximum(rows.min(axis=0)[order] - 2 / per, np.median(rows, axis=0)[order] - 127 / per)
    cap = np.floor(np.minimum(scorer.far[order] * per, 1e6)) + 1
    cap = np.clip(cap, 1, min(255, max(MOST_BY_NUMBERS // max(len(order), 1), 1)))
    coded = len(scorer.offset)
    unary = float(sum(part.max() for part in np.split(scorer.other, scorer.offset[1:]))) if coded else 0.0
    most = float(min(MOST_BY_CODES // max(coded, 1), MOST_BY_UNARY))
    # A unit is taken for a little less: steps are of single precision.
    return Steps(
        attribute=order.astype(np.int64),
        low=low.astype(np.float32),
        per=per.astype(np.float32),
        cap=cap.astype(np.uint8),
        unit=np.array([worth * 0.999, unary + 1e-5 * abs(unary), most]),
    )


def new_index(scorer: Scorer, steps: Steps, slots: int) -> Index:
    """An empty index of `slots` members at most."""
    features, coded, stepped = len(scorer.slope), len(scorer.offset), len(steps.attribute)
    leaves = SPREAD * slots // LEAF_MEMBERS + 16
    nodes = 2 * leaves // NODE_LEAVES + 16
    room, width, roots = (-(-n // WIDE) * WIDE for n in (LEAF_MEMBERS, NODE_LEAVES, nodes))  # vectors read whole ones

    parts, attributes = max(room, width), (coded + stepped + 31) // 32 * 32

    prices = [np.abs(part).max(initial=0) for part in np.split(scorer.match, scorer.offset[1:])] if coded else []
    tally = np.zeros(TALLIES, np.int64)
    tally[FREE_LEAVES], tally[FREE_NODES] = leaves, nodes
    reach = np.full((2, features), np.inf, np.float32)
    reach[1] = -np.inf
    return Index(
        row=_aligned((slots, -(-(features + coded + 1) * 4 // LINE) * LINE // 4), np.float32),
        where=np.full(slots, NOWHERE, np.int32),
        held=np.zeros(slots, np.uint8),
        hint=np.full((2, slots), NOWHERE, np.int32),
        member=_aligned((leaves, room // WIDE, 1 + coded + stepped, WIDE), np.uint8),
        number=np.zeros((leaves, room), np.int64),
        size=np.zeros(leaves, np.int32),
        node=np.zeros(leaves, np.int32),
        column=np.zeros(leaves, np.int32),
        worn=np.zeros(leaves, np.int32),
        span=_aligned((nodes, 2 * stepped, width), np.uint8),
        mask=np.zeros((nodes, coded, width), np.uint16),
        least=np.zeros((nodes, width), np.uint8),
        oldest=np.zeros((nodes, width), np.int64),
        exact=np.zeros((nodes, width, 2 * features + 1), np.float32),
        leaf=np.zeros((nodes, width), np.int32),
        width=np.zeros(nodes, np.int32),
        side=np.full(nodes, FREE, np.uint8),
        root=np.zeros(nodes, np.int32),
        node_worn=np.zeros(nodes, np.int32),
        root_span=np.zeros((2, 2 * stepped, roots), np.uint8),
        root_mask=np.zeros((2, coded, roots), np.uint16),
        root_least=np.zeros((2, roots), np.uint8),
        root_oldest=np.zeros((2, roots), np.int64),
        root_exact=np.zeros((2, roots, 2 * features + 1), np.float32),
        root_node=np.zeros((2, roots), np.int32),
        roots=np.zeros(2, np.int64),
        reach=reach,
        free_leaf=np.arange(leaves, dtype=np.int32)[::-1].copy(),
        free_node=np.arange(nodes, dtype=np.int32)[::-1].copy(),
        room=np.array([LEAF_MEMBERS, NODE_LEAVES]),
        lacks=np.zeros(roots, np.uint16),
        leaf_lacks=np.zeros(width, np.uint16),
        member_lacks=np.zeros(room, np.uint16),
        todo=np.zeros(roots, np.int64),
        later_place=np.zeros(PUT_OFF, np.int64),
        later_lack=np.zeros(PUT_OFF, np.uint16),
        picked_place=np.zeros(PUT_OFF, np.int64),
        picked_number=np.zeros(PUT_OFF, np.int64),
        picked_lack=np.zeros(PUT_OFF, np.uint16),
        four=np.zeros(4, np.int64),
        scores=np.zeros(4, np.float32),
        codes=np.zeros(coded, np.uint16),
        price=np.minimum(np.array(prices) / steps.unit[0], steps.unit[2]).astype(np.int64),
        part_low=np.zeros((parts, attributes), np.uint8),
        part_high=np.zeros((parts, attributes), np.uint8),
        part_order=np.zeros(parts, np.int64),
        part_extent=np.zeros(parts, np.int64),
        part_begin=np.zeros(257, np.int64),
        reached=np.zeros((2, attributes), np.uint8),
        decides=np.zeros(coded + stepped, np.int64),
        tally=tally,
    )


def _aligned(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Zeros that begin where a line of memory does."""
    count = int(np.prod(shape))
    room = np.zeros(count * np.dtype(dtype).itemsize + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : len(room) - LINE + first].view(dtype).reshape(shape)


def with_own_scratch(index: Index) -> Index:
    """Return the same groups with scratch space of their own, for searching at the same time."""
    names = (
        "lacks", "leaf_lacks", "member_lacks", "todo", "later_place", "later_lack", "picked_place", "picked_number",
        "picked_lack", "four", "scores", "tally",
    )  # fmt: skip
    return index._replace(**{name: getattr(index, name).copy() for name in names})
