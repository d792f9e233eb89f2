"""Keeping members grouped while they come and go: see `boxes`, which searches what is kept here.

A member joins the leaf in which the search for it found its best referent, so that like lies with like at no further
cost. A full leaf, and likewise a full node, is cut in two where that makes the two boxes smallest, all attributes
taken together. A box grows with its members and is made anew when as many have gone as are left. Every step costs what
one leaf and one node hold, however many members there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, inlined, inner
from netclust.kernels.linking.boxes import (
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
    prepare_box_query,
)
from netclust.kernels.linking.bytewise import WIDE

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
def _widen_box(boxes: Any, at: Any, k: Any, query: Any, rows: Any, slot: Any, lack: Any, number: Any) -> None:
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
def _box_leaf(index: Any, leaf: Any) -> None:
    """Make a leaf's box anew from its members."""
    at, k, n = index.node[leaf], index.column[leaf], index.size[leaf]
    features, coded, slots = index.exact.shape[2] // 2, index.mask.shape[1], len(index.where)
    for i in range(n):
        slot = index.number[leaf, i] % slots
        for f in range(features):
            value = index.row[slot, f]
            index.exact[at, k, f] = value if i == 0 else min(index.exact[at, k, f], value)
            index.exact[at, k, features + f] = value if i == 0 else max(index.exact[at, k, features + f], value)
        unary = index.row[slot, features + coded]
        index.exact[at, k, 2 * features] = unary if i == 0 else max(index.exact[at, k, 2 * features], unary)
    for j in range(index.span.shape[1] // 2):
        low = high = index.member[leaf, 0, 1 + coded + j, 0]
        for i in range(1, n):
            value = index.member[leaf, i // WIDE, 1 + coded + j, i % WIDE]
            low, high = min(low, value), max(high, value)
        index.span[at, 2 * j, k], index.span[at, 2 * j + 1, k] = low, high
    for s in range(coded):
        mask = np.uint16(0)
        for i in range(n):
            mask |= bit_of(index.member[leaf, i // WIDE, 1 + s, i % WIDE])
        index.mask[at, s, k] = mask
    least, oldest = index.member[leaf, 0, 0, 0], index.number[leaf, 0]
    for i in range(1, n):
        least, oldest = min(least, index.member[leaf, i // WIDE, 0, i % WIDE]), min(oldest, index.number[leaf, i])
    index.least[at, k], index.oldest[at, k] = least, oldest
    index.worn[leaf] = 0


@borrowing(inner)
def _box_node(index: Any, node: Any) -> None:
    """Make a node's box anew from those of its leaves."""
    side, k = index.side[node], index.root[node]
    _put_column(node_boxes(index), side, k, leaf_boxes(index), node, 0)
    for j in range(1, index.width[node]):
        _join_column(node_boxes(index), side, k, leaf_boxes(index), node, j)
    index.node_worn[node] = 0


@borrowing(inner)
def _new_node(index: Any, side: Any) -> Any:
    """A node without leaves; its box is not made."""
    index.tally[FREE_NODES] -= 1
    node = np.int64(index.free_node[index.tally[FREE_NODES]])
    index.width[node] = 0
    index.side[node] = side
    index.root[node] = index.roots[side]
    index.root_node[side, index.roots[side]] = node
    index.roots[side] += 1
    index.node_worn[node] = 0
    return node


@borrowing(inner)
def _drop_node(index: Any, node: Any) -> None:
    """Give up a node that has no leaves; the last root takes its place."""
    side, k = index.side[node], index.root[node]
    index.roots[side] -= 1
    last = index.roots[side]
    if k != last:
        _put_column(node_boxes(index), side, k, node_boxes(index), side, last)
        index.root_node[side, k] = index.root_node[side, last]
        index.root[index.root_node[side, k]] = k
    index.side[node] = FREE
    index.free_node[index.tally[FREE_NODES]] = node
    index.tally[FREE_NODES] += 1


@borrowing(inner)
def _new_leaf(index: Any, node: Any) -> Any:
    """An empty leaf in a node that has room; its box is not made."""
    index.tally[FREE_LEAVES] -= 1
    leaf = np.int64(index.free_leaf[index.tally[FREE_LEAVES]])
    index.size[leaf] = 0
    index.worn[leaf] = 0
    index.node[leaf] = node
    index.column[leaf] = index.width[node]
    index.leaf[node, index.width[node]] = leaf
    index.width[node] += 1
    return leaf


@borrowing(inner)
def _take_column(index: Any, node: Any, k: Any) -> None:
    """Take a leaf's column out of a node; the last one takes its place."""
    index.width[node] -= 1
    last = index.width[node]
    if k != last:
        _put_column(leaf_boxes(index), node, k, leaf_boxes(index), node, last)
        index.leaf[node, k] = index.leaf[node, last]
        index.column[index.leaf[node, k]] = k


@borrowing(inner)
def _drop_leaf(index: Any, leaf: Any) -> None:
    """Give up an empty leaf, and its node if that was its last."""
    node = np.int64(index.node[leaf])
    _take_column(index, node, index.column[leaf])
    index.free_leaf[index.tally[FREE_LEAVES]] = leaf
    index.tally[FREE_LEAVES] += 1
    if index.width[node] == 0:
        _drop_node(index, node)


@borrowing(inlined)
def _copy_member(index: Any, leaf: Any, i: Any, other: Any, j: Any) -> None:
    """leaf[i] = other[j]."""
    for r in range(index.member.shape[2]):
        index.member[leaf, i // WIDE, r, i % WIDE] = index.member[other, j // WIDE, r, j % WIDE]
    index.number[leaf, i] = index.number[other, j]


@borrowing(inlined)
def _middle(index: Any, i: Any, r: Any) -> Any:
    """The middle of what part i reaches in attribute r."""
    return (np.int64(index.part_low[i, r]) + np.int64(index.part_high[i, r])) // 2


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
def _cut(index: Any, cap: Any, n: Any, least: Any) -> Any:
    """Where to cut n parts in two so that what the two reach, times their number, is least in sum: (attribute,
    middle); those whose middle is beneath it are the first. Each has at least `least`; attribute -1: there is no cut.
    """
    low, high, order, extent, reached, price = (
        index.part_low, index.part_high, index.part_order, index.part_extent, index.reached, index.price,
    )  # fmt: skip
    begin = index.part_begin
    cheapest, by, threshold = np.iinfo(np.int64).max, -1, np.int64(0)
    for i in range(n):
        _reach(reached, low, high, i, i == 0)
    decides = index.decides
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
            begin[_middle(index, i, r) + 1] += 1
        for b in range(1, 257):
            begin[b] += begin[b - 1]
        for i in range(n):
            b = _middle(index, i, r)
            order[begin[b]] = i
            begin[b] += 1
        for i in range(n - 1):
            _reach(reached, low, high, order[i], i == 0)
            if _middle(index, order[i], r) != _middle(index, order[i + 1], r):
                extent[i] = _extent(reached, price, cap)
        for i in range(n - 1, 0, -1):
            _reach(reached, low, high, order[i], i == n - 1)
            if least <= i <= n - least and _middle(index, order[i - 1], r) != _middle(index, order[i], r):
                cost = i * extent[i - 1] + (n - i) * _extent(reached, price, cap)
                if cost < cheapest:
                    cheapest, by, threshold = cost, r, _middle(index, order[i], r)
    return by, threshold


@borrowing(inner)
def _split_leaf(index: Any, leaf: Any, steps: Any) -> Any:
    """Cut a full leaf in two; the new leaf, or NOWHERE if there is none. Members all alike are cut anywhere."""
    node = np.int64(index.node[leaf])
    if index.tally[FREE_LEAVES] == 0:
        return np.int64(NOWHERE)
    if index.width[node] >= index.room[1]:
        if not _split_node(index, node, steps):
            return np.int64(NOWHERE)
        node = np.int64(index.node[leaf])
    n = np.int64(index.size[leaf])
    for i in range(n):
        for r in range(index.member.shape[2] - 1):
            index.part_low[i, r] = index.part_high[i, r] = index.member[leaf, i // WIDE, 1 + r, i % WIDE]
    by, threshold = _cut(index, steps.cap, n, max(n // 8, 1))
    new = _new_leaf(index, node)
    kept = 0
    for i in range(n):
        if _middle(index, i, by) < threshold if by >= 0 else i < n // 2:
            if kept != i:
                _copy_member(index, leaf, kept, leaf, i)
            kept += 1
        else:
            _copy_member(index, new, index.size[new], leaf, i)
            index.where[index.number[leaf, i] % len(index.where)] = new
            index.size[new] += 1
    index.size[leaf] = kept
    _box_leaf(index, leaf)
    _box_leaf(index, new)
    return new


@borrowing(inner)
def _split_node(index: Any, node: Any, steps: Any) -> Any:
    """Cut a full node in two; False if it cannot be. No part is less than an eighth, so that nodes are not too many."""
    if index.tally[FREE_NODES] == 0:
        return False
    n, coded = np.int64(index.width[node]), index.mask.shape[1]
    for k in range(n):
        for s in range(coded):
            index.part_low[k, s], index.part_high[k, s] = _bits(index.mask[node, s, k])
        for j in range(len(steps.cap)):
            index.part_low[k, coded + j] = index.span[node, 2 * j, k]
            index.part_high[k, coded + j] = index.span[node, 2 * j + 1, k]
    by, threshold = _cut(index, steps.cap, n, max(n // 32, 1))
    new = _new_node(index, index.side[node])
    for k in range(n - 1, -1, -1):
        if _middle(index, k, by) >= threshold if by >= 0 else k >= n // 2:
            leaf = index.leaf[node, k]
            j = index.width[new]
            _put_column(leaf_boxes(index), new, j, leaf_boxes(index), node, k)
            index.leaf[new, j] = leaf
            index.node[leaf], index.column[leaf] = new, j
            index.width[new] += 1
            _take_column(index, node, k)
    _box_node(index, node)
    _box_node(index, new)
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
def _choose(index: Any, side: Any, hint: Any, steps: Any, query: Any) -> Any:
    """The leaf for a member: the hint, if still of that side, else that which lacks least; NOWHERE if none."""
    if hint >= 0 and index.size[hint] > 0 and index.side[index.node[hint]] == side:
        return hint
    node = np.int64(-2 - hint)
    if hint >= NOWHERE or index.side[node] != side:
        if index.roots[side] == 0:
            return np.int64(NOWHERE)
        n = index.roots[side]
        box_lacks(query.step, steps.cap, query.price, query.bit, node_boxes(index), side, n, index.lacks)
        node = np.int64(index.root_node[side, least_column(index.lacks, index.root_oldest, side, n)])
    n = np.int64(index.width[node])
    box_lacks(query.step, steps.cap, query.price, query.bit, leaf_boxes(index), node, n, index.leaf_lacks)
    return np.int64(index.leaf[node, least_column(index.leaf_lacks, index.oldest, node, n)])


@borrowing(inlined)
def fill_row(index: Any, slot: Any, members: Any, at: Any) -> None:
    """Take a member over from where members lie by attribute."""
    features = len(members.num)
    for f in range(features):
        index.row[slot, f] = members.num[f, at]
    for s in range(len(members.code)):
        index.row[slot, features + s] = np.float32(members.code[s, at])
    index.row[slot, features + len(members.code)] = members.unary[at]


@borrowing(inlined)
def insert_into_group(index: Any, side: Any, number: Any, scorer: Any, steps: Any, query: Any, matches: Any) -> Any:
    """Insert a member, whose row is filled, on a side (0 or 1). False if there was no room: then some are missing."""
    slot = number % len(index.where)
    rows, features = index.row, index.exact.shape[2] // 2
    x, codes = rows[slot, :features], index.codes
    for s in range(len(codes)):
        codes[s] = np.uint16(rows[slot, features + s])
        matches[s] = scorer.match[scorer.offset[s] + codes[s]]
    prepare_box_query(query, steps, x, codes, scorer.base, matches)
    leaf = _choose(index, side, np.int64(index.hint[side, slot]), steps, query)
    if leaf >= 0 and index.size[leaf] >= index.room[0]:
        new = _split_leaf(index, leaf, steps)
        if new < 0:
            index.tally[LOST] += 1
            return False
        node = np.int64(index.node[leaf])
        n = np.int64(index.width[node])
        box_lacks(query.step, steps.cap, query.price, query.bit, leaf_boxes(index), node, n, index.leaf_lacks)
        first, second = index.leaf_lacks[index.column[leaf]], index.leaf_lacks[index.column[new]]
        if second < first or (second == first and index.size[new] < index.size[leaf]):
            leaf = new
    fresh = leaf < 0
    if fresh:
        if index.tally[FREE_NODES] == 0 or index.tally[FREE_LEAVES] == 0:
            index.tally[LOST] += 1
            return False
        leaf = _new_leaf(index, _new_node(index, side))
    node, i = np.int64(index.node[leaf]), index.size[leaf]
    for f in range(features):
        index.reach[0, f] = min(index.reach[0, f], x[f])
        index.reach[1, f] = max(index.reach[1, f], x[f])
    unary = rows[slot, features + len(codes)]
    lack = np.uint8(min((steps.unit[1] - unary) / steps.unit[0], 255.0))
    index.member[leaf, i // WIDE, 0, i % WIDE] = lack
    for s in range(len(codes)):
        index.member[leaf, i // WIDE, 1 + s, i % WIDE] = query.byte[s]
    for j in range(len(query.step)):
        index.member[leaf, i // WIDE, 1 + len(codes) + j, i % WIDE] = query.step[j]
    index.number[leaf, i] = number
    index.size[leaf] = i + 1
    if fresh:
        _box_leaf(index, leaf)
        _box_node(index, node)
    else:
        _widen_box(leaf_boxes(index), node, index.column[leaf], query, rows, slot, lack, number)
        _widen_box(node_boxes(index), side, index.root[node], query, rows, slot, lack, number)
    index.where[slot] = leaf
    index.held[slot] = side + 1
    index.tally[MEMBERS] += 1
    return True


@borrowing(inlined)
def remove_from_group(index: Any, number: Any) -> None:
    """Remove a member."""
    slot = number % len(index.where)
    leaf = np.int64(index.where[slot])
    index.where[slot] = NOWHERE
    index.held[slot] = 0
    index.tally[MEMBERS] -= 1
    node, k, last = np.int64(index.node[leaf]), index.column[leaf], np.int64(index.size[leaf] - 1)
    if last == 0:
        index.size[leaf] = 0
        _drop_leaf(index, leaf)
        if index.side[node] == FREE:
            return
        index.node_worn[node] += 1
    else:
        i = 0
        while index.number[leaf, i] != number:
            i += 1
        if i != last:
            _copy_member(index, leaf, i, leaf, last)
        index.size[leaf] = last
        index.worn[leaf] += 1
        if index.worn[leaf] > last:
            _box_leaf(index, leaf)
            index.node_worn[node] += 1
        elif index.oldest[node, k] == number:
            oldest = index.number[leaf, 0]
            for j in range(1, last):
                oldest = min(oldest, index.number[leaf, j])
            index.oldest[node, k] = oldest
    if index.node_worn[node] >= index.width[node]:
        _box_node(index, node)
        return
    root, side = index.root[node], index.side[node]
    if index.root_oldest[side, root] == number:
        oldest = index.oldest[node, 0]
        for j in range(1, index.width[node]):
            oldest = min(oldest, index.oldest[node, j])
        index.root_oldest[side, root] = oldest
