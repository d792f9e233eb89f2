"""Keeping members grouped while they come and go: see `boxes`, which searches what is kept here.

A member joins the leaf in which the search for it found its best referent, so that like lies with like at no further
cost. A full leaf is cut in two where that makes the two boxes smallest, by the attribute that can decide most in it. A
box grows with its members and is made anew when as many have gone as are left. Every step costs what one leaf and one
node hold, however many members there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.boxes import (
    FREE,
    FREE_LEAVES,
    FREE_NODES,
    LOST,
    MASK_BITS,
    MEMBERS,
    NOWHERE,
    bit_of,
    box_lacks,
    leaf_boxes,
    least_column,
    node_boxes,
    prepare,
)
from netclust.kernels.jit import inlined, inner


@inner
def _put_column(boxes: Any, at: Any, k: Any, others: Any, other: Any, j: Any) -> None:
    """Box k of `at` = box j of `other`."""
    for i in range(boxes.span.shape[1]):
        boxes.span[at, i, k] = others.span[other, i, j]
    for s in range(boxes.mask.shape[1]):
        boxes.mask[at, s, k] = others.mask[other, s, j]
    boxes.least[at, k] = others.least[other, j]
    boxes.oldest[at, k] = others.oldest[other, j]
    for i in range(boxes.exact.shape[2]):
        boxes.exact[at, k, i] = others.exact[other, j, i]


@inner
def _join_column(boxes: Any, at: Any, k: Any, others: Any, other: Any, j: Any) -> None:
    """Widen box k of `at` so that it holds box j of `other`."""
    for i in range(0, boxes.span.shape[1], 2):
        boxes.span[at, i, k] = min(boxes.span[at, i, k], others.span[other, i, j])
        boxes.span[at, i + 1, k] = max(boxes.span[at, i + 1, k], others.span[other, i + 1, j])
    for s in range(boxes.mask.shape[1]):
        boxes.mask[at, s, k] |= others.mask[other, s, j]
    boxes.least[at, k] = min(boxes.least[at, k], others.least[other, j])
    boxes.oldest[at, k] = min(boxes.oldest[at, k], others.oldest[other, j])
    features = boxes.exact.shape[2] // 2
    for f in range(features):
        boxes.exact[at, k, f] = min(boxes.exact[at, k, f], others.exact[other, j, f])
    for f in range(features, 2 * features + 1):
        boxes.exact[at, k, f] = max(boxes.exact[at, k, f], others.exact[other, j, f])


@inner
def _admit(
    boxes: Any, at: Any, k: Any, step: Any, rows: Any, codes: Any, slot: Any, unary: Any, lack: Any, number: Any
) -> None:
    """Widen box k of `at` so that it holds the member in a slot: its steps, and what it is exactly."""
    for j in range(len(step)):
        boxes.span[at, 2 * j, k] = min(boxes.span[at, 2 * j, k], step[j])
        boxes.span[at, 2 * j + 1, k] = max(boxes.span[at, 2 * j + 1, k], step[j])
    for s in range(boxes.mask.shape[1]):
        boxes.mask[at, s, k] |= bit_of(codes[slot, s])
    boxes.least[at, k] = min(boxes.least[at, k], lack)
    boxes.oldest[at, k] = min(boxes.oldest[at, k], number)
    features = rows.shape[1]
    for f in range(features):
        boxes.exact[at, k, f] = min(boxes.exact[at, k, f], rows[slot, f])
        boxes.exact[at, k, features + f] = max(boxes.exact[at, k, features + f], rows[slot, f])
    boxes.exact[at, k, 2 * features] = max(boxes.exact[at, k, 2 * features], unary)


@inner
def _box_leaf(ix: Any, leaf: Any) -> None:
    """Make a leaf's box anew from its members."""
    at, k, n = ix.node[leaf], ix.column[leaf], ix.size[leaf]
    features, slots = ix.row.shape[1], len(ix.where)
    for i in range(n):
        slot = ix.number[leaf, i] % slots
        for f in range(features):
            value = ix.row[slot, f]
            ix.exact[at, k, f] = value if i == 0 else min(ix.exact[at, k, f], value)
            ix.exact[at, k, features + f] = value if i == 0 else max(ix.exact[at, k, features + f], value)
        unary = ix.row_unary[slot]
        ix.exact[at, k, 2 * features] = unary if i == 0 else max(ix.exact[at, k, 2 * features], unary)
    for j in range(ix.step.shape[1]):
        low = high = ix.step[leaf, j, 0]
        for i in range(1, n):
            low, high = min(low, ix.step[leaf, j, i]), max(high, ix.step[leaf, j, i])
        ix.span[at, 2 * j, k], ix.span[at, 2 * j + 1, k] = low, high
    for s in range(ix.code.shape[1]):
        mask = np.uint16(0)
        for i in range(n):
            mask |= bit_of(ix.code[leaf, s, i])
        ix.mask[at, s, k] = mask
    least, oldest = ix.lack[leaf, 0], ix.number[leaf, 0]
    for i in range(1, n):
        least, oldest = min(least, ix.lack[leaf, i]), min(oldest, ix.number[leaf, i])
    ix.least[at, k], ix.oldest[at, k] = least, oldest
    ix.worn[leaf] = 0


@inner
def _box_node(ix: Any, node: Any) -> None:
    """Make a node's box anew from those of its leaves."""
    side, k = ix.side[node], ix.root[node]
    _put_column(node_boxes(ix), side, k, leaf_boxes(ix), node, 0)
    for j in range(1, ix.width[node]):
        _join_column(node_boxes(ix), side, k, leaf_boxes(ix), node, j)
    ix.node_worn[node] = 0


@inner
def _new_node(ix: Any, side: Any) -> Any:
    """A node without leaves; its box is not made."""
    ix.tally[FREE_NODES] -= 1
    node = np.int64(ix.free_node[ix.tally[FREE_NODES]])
    ix.width[node] = 0
    ix.side[node] = side
    ix.root[node] = ix.roots[side]
    ix.root_node[side, ix.roots[side]] = node
    ix.roots[side] += 1
    ix.node_worn[node] = 0
    return node


@inner
def _drop_node(ix: Any, node: Any) -> None:
    """Give up a node that has no leaves; the last root takes its place."""
    side, k = ix.side[node], ix.root[node]
    ix.roots[side] -= 1
    last = ix.roots[side]
    if k != last:
        _put_column(node_boxes(ix), side, k, node_boxes(ix), side, last)
        ix.root_node[side, k] = ix.root_node[side, last]
        ix.root[ix.root_node[side, k]] = k
    ix.side[node] = FREE
    ix.free_node[ix.tally[FREE_NODES]] = node
    ix.tally[FREE_NODES] += 1


@inner
def _new_leaf(ix: Any, node: Any) -> Any:
    """An empty leaf in a node that has room; its box is not made."""
    ix.tally[FREE_LEAVES] -= 1
    leaf = np.int64(ix.free_leaf[ix.tally[FREE_LEAVES]])
    ix.size[leaf] = 0
    ix.worn[leaf] = 0
    ix.node[leaf] = node
    ix.column[leaf] = ix.width[node]
    ix.leaf[node, ix.width[node]] = leaf
    ix.width[node] += 1
    return leaf


@inner
def _take_column(ix: Any, node: Any, k: Any) -> None:
    """Take a leaf's column out of a node; the last one takes its place."""
    ix.width[node] -= 1
    last = ix.width[node]
    if k != last:
        _put_column(leaf_boxes(ix), node, k, leaf_boxes(ix), node, last)
        ix.leaf[node, k] = ix.leaf[node, last]
        ix.column[ix.leaf[node, k]] = k


@inner
def _drop_leaf(ix: Any, leaf: Any) -> None:
    """Give up an empty leaf, and its node if that was its last."""
    node = np.int64(ix.node[leaf])
    _take_column(ix, node, ix.column[leaf])
    ix.free_leaf[ix.tally[FREE_LEAVES]] = leaf
    ix.tally[FREE_LEAVES] += 1
    if ix.width[node] == 0:
        _drop_node(ix, node)


@inlined
def _copy_member(ix: Any, leaf: Any, i: Any, other: Any, j: Any) -> None:
    """leaf[i] = other[j]."""
    for f in range(ix.step.shape[1]):
        ix.step[leaf, f, i] = ix.step[other, f, j]
    for s in range(ix.code.shape[1]):
        ix.code[leaf, s, i] = ix.code[other, s, j]
    ix.lack[leaf, i] = ix.lack[other, j]
    ix.number[leaf, i] = ix.number[other, j]


@inner
def _least_cut(values: Any, order: Any, n: Any, least: Any) -> Any:
    """Where to cut so that the two parts, sorted by value, are smallest: (threshold, cost); beneath it is the first.

    The cost is what each part spans times how many it has. Parts have at least `least`; inf where none is possible.
    """
    for i in range(n):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    span = values[order[n - 1]] - values[order[0]]
    best, at = np.float32(np.inf), 0
    for i in range(least, n - least + 1):
        if i < 1 or values[order[i]] == values[order[i - 1]]:
            continue
        first, second = values[order[i - 1]] - values[order[0]], values[order[n - 1]] - values[order[i]]
        cost = (i * first + (n - i) * second) / (n * span)
        if cost < best:
            best, at = cost, i
    return values[order[at]], best


@inner
def _widest(ix: Any, node: Any, k: Any, leaf: Any, scorer: Any) -> Any:
    """The attribute that can decide most between the members of a leaf, and whether it is coded; -1: all are alike."""
    features = ix.row.shape[1]
    most, by, coded = np.float32(0), -1, False
    for f in range(features):
        extent = abs(scorer.slope[f]) * min(ix.exact[node, k, features + f] - ix.exact[node, k, f], scorer.far[f])
        if extent > most:
            most, by = extent, f
    for s in range(ix.code.shape[1]):
        mixed = False
        for i in range(1, ix.size[leaf]):
            mixed = mixed or ix.code[leaf, s, i] != ix.code[leaf, s, 0]
        if mixed and ix.price[s] > most:
            most, by, coded = ix.price[s], s, True
    return by, coded


@inner
def _split_leaf(ix: Any, leaf: Any, scorer: Any) -> Any:
    """Cut a full leaf in two, by the attribute that can decide most in it; the new leaf, or NOWHERE if there is none.

    Members that are all alike are cut by age.
    """
    node = np.int64(ix.node[leaf])
    if ix.tally[FREE_LEAVES] == 0:
        return np.int64(NOWHERE)
    if ix.width[node] >= ix.room[1]:
        if not _split_node(ix, node, scorer):
            return np.int64(NOWHERE)
        node = np.int64(ix.node[leaf])
    _box_leaf(ix, leaf)
    n = np.int64(ix.size[leaf])
    by, coded = _widest(ix, node, ix.column[leaf], np.int64(leaf), scorer)
    values = ix.values
    for i in range(n):
        if by < 0:
            values[i] = np.float32(ix.number[leaf, i] - ix.number[leaf, 0])
        elif coded:
            values[i] = np.float32(ix.code[leaf, by, i])
        else:
            values[i] = ix.row[ix.number[leaf, i] % len(ix.where), by]
    threshold, cost = _least_cut(values, ix.order, n, n // 8)
    if not np.isfinite(cost):
        threshold, cost = _least_cut(values, ix.order, n, 1)
    if not np.isfinite(cost):  # nothing but equal ages: cannot be, but a leaf must get smaller
        return np.int64(NOWHERE)
    new = _new_leaf(ix, node)
    kept = 0
    for i in range(n):
        if values[i] < threshold:
            if kept != i:
                _copy_member(ix, leaf, kept, leaf, i)
            kept += 1
        else:
            _copy_member(ix, new, ix.size[new], leaf, i)
            ix.where[ix.number[leaf, i] % len(ix.where)] = new
            ix.size[new] += 1
    ix.size[leaf] = kept
    _box_leaf(ix, leaf)
    _box_leaf(ix, new)
    return new


@inner
def _split_node(ix: Any, node: Any, scorer: Any) -> Any:
    """Cut a full node in two, by the attribute in which the middles of its leaves lie farthest apart; False if it
    cannot be. No part is less than a quarter, so that there are not many nodes.
    """
    if ix.tally[FREE_NODES] == 0:
        return False
    n, features, exact = np.int64(ix.width[node]), ix.row.shape[1], ix.exact
    most, by, coded = np.float32(0), -1, False
    for f in range(features):
        first = last = exact[node, 0, f] + exact[node, 0, features + f]
        for k in range(1, n):
            middle = exact[node, k, f] + exact[node, k, features + f]
            first, last = min(first, middle), max(last, middle)
        extent = abs(scorer.slope[f]) * min((last - first) / 2, scorer.far[f])
        if extent > most:
            most, by = extent, f
    for s in range(ix.mask.shape[1]):
        mixed = False
        for k in range(1, n):
            mixed = mixed or ix.mask[node, s, k] != ix.mask[node, s, 0]
        if mixed and ix.price[s] > most:
            most, by, coded = ix.price[s], s, True
    values = ix.values
    for k in range(n):
        if by < 0:
            values[k] = np.float32(ix.oldest[node, k] - ix.oldest[node, 0])
        elif coded:
            values[k] = np.float32(_lowest_bit(ix.mask[node, by, k]))
        else:
            values[k] = exact[node, k, by] + exact[node, k, features + by]
    threshold, cost = _least_cut(values, ix.order, n, n // 4)
    if not np.isfinite(cost):
        threshold, cost = _least_cut(values, ix.order, n, 1)
    if not np.isfinite(cost):  # all alike in this: any half will do
        for k in range(n):
            values[k] = np.float32(k)
        threshold = np.float32(n // 2)
    new = _new_node(ix, ix.side[node])
    for k in range(n - 1, -1, -1):
        if values[k] >= threshold:
            leaf = ix.leaf[node, k]
            j = ix.width[new]
            _put_column(leaf_boxes(ix), new, j, leaf_boxes(ix), node, k)
            ix.leaf[new, j] = leaf
            ix.node[leaf], ix.column[leaf] = new, j
            ix.width[new] += 1
            _take_column(ix, node, k)
            values[k] = values[ix.width[node]]
    _box_node(ix, node)
    _box_node(ix, new)
    return True


@inner
def _lowest_bit(mask: Any) -> Any:
    """The number of the lowest bit set, MASK_BITS if none is."""
    for bit in range(MASK_BITS):
        if mask & (np.uint16(1) << np.uint16(bit)):
            return bit
    return MASK_BITS


@inlined
def _choose(ix: Any, side: Any, hint: Any, steps: Any, query: Any) -> Any:
    """The leaf for a member: the hint, if still of that side, else that which lacks least; NOWHERE if none."""
    if hint >= 0 and ix.size[hint] > 0 and ix.side[ix.node[hint]] == side:
        return hint
    node = np.int64(-2 - hint)
    if hint >= NOWHERE or ix.side[node] != side:
        if ix.roots[side] == 0:
            return np.int64(NOWHERE)
        n = ix.roots[side]
        box_lacks(query.step, steps.cap, query.price, query.bit, node_boxes(ix), side, n, ix.lacks)
        node = np.int64(ix.root_node[side, least_column(ix.lacks, ix.root_oldest, side, n)])
    n = np.int64(ix.width[node])
    box_lacks(query.step, steps.cap, query.price, query.bit, leaf_boxes(ix), node, n, ix.leaf_lacks)
    return np.int64(ix.leaf[node, least_column(ix.leaf_lacks, ix.oldest, node, n)])


@inlined
def hold(ix: Any, side: Any, number: Any, unary: Any, scorer: Any, steps: Any, query: Any, matches: Any) -> Any:
    """Add a member, whose row is filled, to a side (0 or 1). False if there was no room: then not all are held."""
    slot = number % len(ix.where)
    x, codes = ix.row[slot], ix.row_code[slot]
    ix.row_unary[slot] = unary
    for s in range(len(codes)):
        matches[s] = scorer.match[scorer.offset[s] + codes[s]]
    prepare(query, steps, x, codes, scorer.base, matches)
    leaf = _choose(ix, side, np.int64(ix.hint[side, slot]), steps, query)
    if leaf >= 0 and ix.size[leaf] >= ix.room[0]:
        new = _split_leaf(ix, leaf, scorer)
        if new < 0:
            ix.tally[LOST] += 1
            return False
        node = np.int64(ix.node[leaf])
        n = np.int64(ix.width[node])
        box_lacks(query.step, steps.cap, query.price, query.bit, leaf_boxes(ix), node, n, ix.leaf_lacks)
        first, second = ix.leaf_lacks[ix.column[leaf]], ix.leaf_lacks[ix.column[new]]
        if second < first or (second == first and ix.size[new] < ix.size[leaf]):
            leaf = new
    fresh = leaf < 0
    if fresh:
        if ix.tally[FREE_NODES] == 0 or ix.tally[FREE_LEAVES] == 0:
            ix.tally[LOST] += 1
            return False
        leaf = _new_leaf(ix, _new_node(ix, side))
    node, i = np.int64(ix.node[leaf]), ix.size[leaf]
    for j in range(len(query.step)):
        ix.step[leaf, j, i] = query.step[j]
    for f in range(len(x)):
        ix.reach[0, f] = min(ix.reach[0, f], x[f])
        ix.reach[1, f] = max(ix.reach[1, f], x[f])
    for s in range(len(codes)):
        ix.code[leaf, s, i] = codes[s]
    lack = np.uint16(min((steps.unit[1] - unary) / steps.unit[0], steps.unit[2]))
    ix.lack[leaf, i] = lack
    ix.number[leaf, i] = number
    ix.size[leaf] = i + 1
    if fresh:
        _box_leaf(ix, leaf)
        _box_node(ix, node)
    else:
        rows, codes_of = ix.row, ix.row_code
        _admit(leaf_boxes(ix), node, ix.column[leaf], query.step, rows, codes_of, slot, unary, lack, number)
        _admit(node_boxes(ix), side, ix.root[node], query.step, rows, codes_of, slot, unary, lack, number)
    ix.where[slot] = leaf
    ix.held[slot] = side + 1
    ix.tally[MEMBERS] += 1
    return True


@inlined
def let_go(ix: Any, number: Any) -> None:
    """Remove a member."""
    slot = number % len(ix.where)
    leaf = np.int64(ix.where[slot])
    ix.where[slot] = NOWHERE
    ix.held[slot] = 0
    ix.tally[MEMBERS] -= 1
    node, k, last = np.int64(ix.node[leaf]), ix.column[leaf], np.int64(ix.size[leaf] - 1)
    if last == 0:
        ix.size[leaf] = 0
        _drop_leaf(ix, leaf)
        if ix.side[node] == FREE:
            return
        ix.node_worn[node] += 1
    else:
        i = 0
        while ix.number[leaf, i] != number:
            i += 1
        if i != last:
            _copy_member(ix, leaf, i, leaf, last)
        ix.size[leaf] = last
        ix.worn[leaf] += 1
        if ix.worn[leaf] > last:
            _box_leaf(ix, leaf)
            ix.node_worn[node] += 1
        elif ix.oldest[node, k] == number:
            oldest = ix.number[leaf, 0]
            for j in range(1, last):
                oldest = min(oldest, ix.number[leaf, j])
            ix.oldest[node, k] = oldest
    if ix.node_worn[node] >= ix.width[node]:
        _box_node(ix, node)
        return
    root, side = ix.root[node], ix.side[node]
    if ix.root_oldest[side, root] == number:
        oldest = ix.oldest[node, 0]
        for j in range(1, ix.width[node]):
            oldest = min(oldest, ix.oldest[node, j])
        ix.root_oldest[side, root] = oldest
