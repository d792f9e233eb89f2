"""Keeping members grouped while they come and go: see `boxes`, which searches what is kept here.

A member joins the leaf in which the search for it found its best referent, so that like lies with like at no further
cost. A full leaf, and likewise a full node, is cut in two where that makes the two boxes smallest, all attributes
taken together. A box grows with its members and is made anew when as many have gone as are left. Every step costs what
one leaf and one node hold, however many members there are.
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
from netclust.kernels.bytewise import WIDE
from netclust.kernels.jit import borrowing, inlined, inner

TRIED = 12  # attributes by which a cut is tried: those that can decide most


@borrowing(inner)
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


@borrowing(inner)
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


@borrowing(inner)
def _admit(boxes: Any, at: Any, k: Any, query: Any, rows: Any, slot: Any, lack: Any, number: Any) -> None:
    """Widen box k of `at` so that it holds the member in a slot: its steps, and what it is exactly."""
    step, byte = query.step, query.byte
    for j in range(len(step)):
        boxes.span[at, 2 * j, k] = min(boxes.span[at, 2 * j, k], step[j])
        boxes.span[at, 2 * j + 1, k] = max(boxes.span[at, 2 * j + 1, k], step[j])
    for s in range(len(byte)):
        boxes.mask[at, s, k] |= bit_of(byte[s])
    boxes.least[at, k] = min(boxes.least[at, k], lack)
    boxes.oldest[at, k] = min(boxes.oldest[at, k], number)
    features = boxes.exact.shape[2] // 2
    for f in range(features):
        boxes.exact[at, k, f] = min(boxes.exact[at, k, f], rows[slot, f])
        boxes.exact[at, k, features + f] = max(boxes.exact[at, k, features + f], rows[slot, f])
    boxes.exact[at, k, 2 * features] = max(boxes.exact[at, k, 2 * features], rows[slot, features + len(byte)])


@borrowing(inner)
def _box_leaf(ix: Any, leaf: Any) -> None:
    """Make a leaf's box anew from its members."""
    at, k, n = ix.node[leaf], ix.column[leaf], ix.size[leaf]
    features, coded, slots = ix.exact.shape[2] // 2, ix.mask.shape[1], len(ix.where)
    for i in range(n):
        slot = ix.number[leaf, i] % slots
        for f in range(features):
            value = ix.row[slot, f]
            ix.exact[at, k, f] = value if i == 0 else min(ix.exact[at, k, f], value)
            ix.exact[at, k, features + f] = value if i == 0 else max(ix.exact[at, k, features + f], value)
        unary = ix.row[slot, features + coded]
        ix.exact[at, k, 2 * features] = unary if i == 0 else max(ix.exact[at, k, 2 * features], unary)
    for j in range(ix.span.shape[1] // 2):
        low = high = ix.member[leaf, 0, 1 + coded + j, 0]
        for i in range(1, n):
            value = ix.member[leaf, i // WIDE, 1 + coded + j, i % WIDE]
            low, high = min(low, value), max(high, value)
        ix.span[at, 2 * j, k], ix.span[at, 2 * j + 1, k] = low, high
    for s in range(coded):
        mask = np.uint16(0)
        for i in range(n):
            mask |= bit_of(ix.member[leaf, i // WIDE, 1 + s, i % WIDE])
        ix.mask[at, s, k] = mask
    least, oldest = ix.member[leaf, 0, 0, 0], ix.number[leaf, 0]
    for i in range(1, n):
        least, oldest = min(least, ix.member[leaf, i // WIDE, 0, i % WIDE]), min(oldest, ix.number[leaf, i])
    ix.least[at, k], ix.oldest[at, k] = least, oldest
    ix.worn[leaf] = 0


@borrowing(inner)
def _box_node(ix: Any, node: Any) -> None:
    """Make a node's box anew from those of its leaves."""
    side, k = ix.side[node], ix.root[node]
    _put_column(node_boxes(ix), side, k, leaf_boxes(ix), node, 0)
    for j in range(1, ix.width[node]):
        _join_column(node_boxes(ix), side, k, leaf_boxes(ix), node, j)
    ix.node_worn[node] = 0


@borrowing(inner)
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


@borrowing(inner)
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


@borrowing(inner)
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


@borrowing(inner)
def _take_column(ix: Any, node: Any, k: Any) -> None:
    """Take a leaf's column out of a node; the last one takes its place."""
    ix.width[node] -= 1
    last = ix.width[node]
    if k != last:
        _put_column(leaf_boxes(ix), node, k, leaf_boxes(ix), node, last)
        ix.leaf[node, k] = ix.leaf[node, last]
        ix.column[ix.leaf[node, k]] = k


@borrowing(inner)
def _drop_leaf(ix: Any, leaf: Any) -> None:
    """Give up an empty leaf, and its node if that was its last."""
    node = np.int64(ix.node[leaf])
    _take_column(ix, node, ix.column[leaf])
    ix.free_leaf[ix.tally[FREE_LEAVES]] = leaf
    ix.tally[FREE_LEAVES] += 1
    if ix.width[node] == 0:
        _drop_node(ix, node)


@borrowing(inlined)
def _copy_member(ix: Any, leaf: Any, i: Any, other: Any, j: Any) -> None:
    """leaf[i] = other[j]."""
    for r in range(ix.member.shape[2]):
        ix.member[leaf, i // WIDE, r, i % WIDE] = ix.member[other, j // WIDE, r, j % WIDE]
    ix.number[leaf, i] = ix.number[other, j]


@borrowing(inlined)
def _middle(ix: Any, i: Any, r: Any) -> Any:
    """The middle of what part i reaches in attribute r."""
    return (np.int64(ix.part_low[i, r]) + np.int64(ix.part_high[i, r])) // 2


@borrowing(inlined)
def _reach(reached: Any, low: Any, high: Any, i: Any, first: Any) -> None:
    """Widen what the parts up to here reach; the first of them is all of it."""
    for r in range(reached.shape[1]):
        reached[0, r] = low[i, r] if first else min(reached[0, r], low[i, r])
        reached[1, r] = high[i, r] if first else max(reached[1, r], high[i, r])


@borrowing(inlined)
def _extent(reached: Any, price: Any, cap: Any) -> Any:
    """The units that two members of what is reached can be apart."""
    total, coded = np.int64(0), len(price)
    for s in range(coded):
        total += price[s] if reached[0, s] != reached[1, s] else np.int64(0)
    for j in range(len(cap)):
        total += np.int64(min(np.uint8(reached[1, coded + j] - reached[0, coded + j]), cap[j]))
    return total


@borrowing(inner)
def _cut(ix: Any, cap: Any, n: Any, least: Any) -> Any:
    """Where to cut n parts in two so that what the two reach, times their number, is least in sum: (attribute,
    middle); those whose middle is beneath it are the first. Each has at least `least`; attribute -1: there is no cut.
    """
    low, high, order, extent, reached, price = (
        ix.part_low, ix.part_high, ix.part_order, ix.part_extent, ix.reached, ix.price,
    )  # fmt: skip
    begin = ix.part_begin
    cheapest, by, threshold = np.iinfo(np.int64).max, -1, np.int64(0)
    for i in range(n):
        _reach(reached, low, high, i, i == 0)
    decides = ix.decides
    for r in range(len(decides)):
        coded = r < len(price)
        width = np.int64(reached[1, r] - reached[0, r])
        decides[r] = (price[r] if width > 0 else np.int64(0)) if coded else min(width, np.int64(cap[r - len(price)]))
    for _ in range(min(TRIED, len(decides))):
        r = int(np.argmax(decides))
        if decides[r] == 0:
            break
        decides[r] = 0
        begin[:] = 0
        for i in range(n):
            begin[_middle(ix, i, r) + 1] += 1
        for b in range(1, 257):
            begin[b] += begin[b - 1]
        for i in range(n):
            b = _middle(ix, i, r)
            order[begin[b]] = i
            begin[b] += 1
        for i in range(n - 1):
            _reach(reached, low, high, order[i], i == 0)
            if _middle(ix, order[i], r) != _middle(ix, order[i + 1], r):
                extent[i] = _extent(reached, price, cap)
        for i in range(n - 1, 0, -1):
            _reach(reached, low, high, order[i], i == n - 1)
            if least <= i <= n - least and _middle(ix, order[i - 1], r) != _middle(ix, order[i], r):
                cost = i * extent[i - 1] + (n - i) * _extent(reached, price, cap)
                if cost < cheapest:
                    cheapest, by, threshold = cost, r, _middle(ix, order[i], r)
    return by, threshold


@borrowing(inner)
def _split_leaf(ix: Any, leaf: Any, steps: Any) -> Any:
    """Cut a full leaf in two; the new leaf, or NOWHERE if there is none. Members all alike are cut anywhere."""
    node = np.int64(ix.node[leaf])
    if ix.tally[FREE_LEAVES] == 0:
        return np.int64(NOWHERE)
    if ix.width[node] >= ix.room[1]:
        if not _split_node(ix, node, steps):
            return np.int64(NOWHERE)
        node = np.int64(ix.node[leaf])
    n = np.int64(ix.size[leaf])
    for i in range(n):
        for r in range(ix.member.shape[2] - 1):
            ix.part_low[i, r] = ix.part_high[i, r] = ix.member[leaf, i // WIDE, 1 + r, i % WIDE]
    by, threshold = _cut(ix, steps.cap, n, max(n // 8, 1))
    new = _new_leaf(ix, node)
    kept = 0
    for i in range(n):
        if _middle(ix, i, by) < threshold if by >= 0 else i < n // 2:
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


@borrowing(inner)
def _split_node(ix: Any, node: Any, steps: Any) -> Any:
    """Cut a full node in two; False if it cannot be. No part is less than an eighth, so that nodes are not too many."""
    if ix.tally[FREE_NODES] == 0:
        return False
    n, coded = np.int64(ix.width[node]), ix.mask.shape[1]
    for k in range(n):
        for s in range(coded):
            ix.part_low[k, s], ix.part_high[k, s] = _bits(ix.mask[node, s, k])
        for j in range(len(steps.cap)):
            ix.part_low[k, coded + j] = ix.span[node, 2 * j, k]
            ix.part_high[k, coded + j] = ix.span[node, 2 * j + 1, k]
    by, threshold = _cut(ix, steps.cap, n, max(n // 32, 1))
    new = _new_node(ix, ix.side[node])
    for k in range(n - 1, -1, -1):
        if _middle(ix, k, by) >= threshold if by >= 0 else k >= n // 2:
            leaf = ix.leaf[node, k]
            j = ix.width[new]
            _put_column(leaf_boxes(ix), new, j, leaf_boxes(ix), node, k)
            ix.leaf[new, j] = leaf
            ix.node[leaf], ix.column[leaf] = new, j
            ix.width[new] += 1
            _take_column(ix, node, k)
    _box_node(ix, node)
    _box_node(ix, new)
    return True


@borrowing(inner)
def _bits(mask: Any) -> Any:
    """The lowest and the highest bit of a mask, from 1 on; 0 where there is none."""
    low = high = np.uint8(0)
    for bit in range(MASK_BITS):
        if mask & (np.uint16(1) << np.uint16(bit)):
            high = np.uint8(bit + 1)
            low = high if low == 0 else low
    return low, high


@borrowing(inlined)
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


@borrowing(inlined)
def fill_row(ix: Any, slot: Any, members: Any, at: Any) -> None:
    """Take a member over from where members lie by attribute."""
    features = len(members.num)
    for f in range(features):
        ix.row[slot, f] = members.num[f, at]
    for s in range(len(members.code)):
        ix.row[slot, features + s] = np.float32(members.code[s, at])
    ix.row[slot, features + len(members.code)] = members.unary[at]


@borrowing(inlined)
def hold(ix: Any, side: Any, number: Any, scorer: Any, steps: Any, query: Any, matches: Any) -> Any:
    """Add a member, whose row is filled, to a side (0 or 1). False if there was no room: then not all are held."""
    slot = number % len(ix.where)
    rows, features = ix.row, ix.exact.shape[2] // 2
    x, codes = rows[slot, :features], ix.codes
    for s in range(len(codes)):
        codes[s] = np.uint16(rows[slot, features + s])
        matches[s] = scorer.match[scorer.offset[s] + codes[s]]
    prepare(query, steps, x, codes, scorer.base, matches)
    leaf = _choose(ix, side, np.int64(ix.hint[side, slot]), steps, query)
    if leaf >= 0 and ix.size[leaf] >= ix.room[0]:
        new = _split_leaf(ix, leaf, steps)
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
    for f in range(features):
        ix.reach[0, f] = min(ix.reach[0, f], x[f])
        ix.reach[1, f] = max(ix.reach[1, f], x[f])
    unary = rows[slot, features + len(codes)]
    lack = np.uint8(min((steps.unit[1] - unary) / steps.unit[0], 255.0))
    ix.member[leaf, i // WIDE, 0, i % WIDE] = lack
    for s in range(len(codes)):
        ix.member[leaf, i // WIDE, 1 + s, i % WIDE] = query.byte[s]
    for j in range(len(query.step)):
        ix.member[leaf, i // WIDE, 1 + len(codes) + j, i % WIDE] = query.step[j]
    ix.number[leaf, i] = number
    ix.size[leaf] = i + 1
    if fresh:
        _box_leaf(ix, leaf)
        _box_node(ix, node)
    else:
        _admit(leaf_boxes(ix), node, ix.column[leaf], query, rows, slot, lack, number)
        _admit(node_boxes(ix), side, ix.root[node], query, rows, slot, lack, number)
    ix.where[slot] = leaf
    ix.held[slot] = side + 1
    ix.tally[MEMBERS] += 1
    return True


@borrowing(inlined)
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
