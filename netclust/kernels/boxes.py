"""Exact arg-max by bounds: referents in groups, and per group what any of its members can score at most.

Every numeric attribute is cut into 256 steps that are worth the same in every attribute, one unit of score; what a
referent lacks to the best conceivable score is then a sum of small integers: steps between the record and it, less one
each, and the price of every code that differs. Such sums are lower bounds of what it really lacks. They take a byte an
attribute and are added in vectors, for members as for the boxes of groups (least and greatest step, a set of codes).

Groups lie in two storeys: a leaf holds members, a node the boxes of leaves, and the boxes of nodes are the roots of a
side. Groups are visited best bound first, and not at all once they lack too much. What passes is decided by numbers:
a box by its exact bound, added up in the order in which scores are (rounding is monotone, so it is never below the
score of a member, bit for bit); a member by its score itself. Of equal scores the oldest member wins, as in a scan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inlined, inner

NOWHERE = -1
FREE = 2  # the side of a node that is none's
MOST = 65535  # what can be lacked, in units
MASK_BITS = 16
SORTED = 96  # so many nodes are visited in order of what they lack, should more have to be
ROUNDS = 4  # in which members that were put off are scored
FEW = 4  # at so many members of a leaf that may win, its exact box is looked at

# Slots of the tally array: what there is, what searching has cost, and what the engine made of that.
FREE_LEAVES, FREE_NODES, MEMBERS, LOST, NEXT, BOUNDED, SCORED, SEARCHED, SCANS, RECENT, RECENT_FULL = range(11)
TALLIES = 11


class Steps(NamedTuple):
    """How attributes are cut into steps, for one set of weights: a step of attribute[j] is 1 / per[j], from low[j] on.

    Only attributes that tell referents apart have steps, those that do so most come first.
    """

    attribute: NDArray[np.int64]
    low: NDArray[np.float32]
    per: NDArray[np.float32]
    cap: NDArray[np.uint8]  # the steps beyond which a difference counts no more
    unit: NDArray[np.float64]  # what a unit is worth at least; the greatest unary part that there can be; the most
    # units that one code, and the unary part, can lack


class Query(NamedTuple):
    """A record as bounds see it."""

    step: NDArray[np.uint8]
    price: NDArray[np.uint16]  # of a coded attribute, if a referent has another code
    bit: NDArray[np.uint16]  # of its code in a mask
    ceiling: NDArray[np.float64]  # [what a referent that lacks nothing scores, with all that rounding can add]
    best: NDArray[np.float32]  # of either side, so far
    number: NDArray[np.int64]  # and whose it is; -1: nobody's, or of one that is older than all members
    hint: NDArray[np.int64]  # where a record like this one belongs


class Index(NamedTuple):
    """Members of both sides, grouped. Leaves, nodes and roots are columns of their arrays, in no order."""

    row: NDArray[np.float32]  # [slots, F]: the members themselves, by number modulo slots
    row_code: NDArray[np.uint16]  # [slots, S]
    row_unary: NDArray[np.float32]  # [slots]
    where: NDArray[np.int32]  # [slots]: the leaf
    held: NDArray[np.uint8]  # [slots]: the side that it is held as, 0: not held
    hint: NDArray[np.int32]  # [2, slots]: where to put it on either side: a leaf, -2 - node, or NOWHERE

    step: NDArray[np.uint8]  # [leaves, J, room]: the members of leaves
    code: NDArray[np.uint16]  # [leaves, S, room]
    lack: NDArray[np.uint16]  # [leaves, room]: units that the unary part lacks to the greatest
    number: NDArray[np.int64]  # [leaves, room]
    size: NDArray[np.int32]  # [leaves]
    node: NDArray[np.int32]  # [leaves]: where the leaf's box is
    column: NDArray[np.int32]  # [leaves]
    worn: NDArray[np.int32]  # [leaves]: members gone since the box was made

    span: NDArray[np.uint8]  # [nodes, 2 J, width]: the boxes of leaves: least and greatest step of each attribute
    mask: NDArray[np.uint16]  # [nodes, S, width]
    least: NDArray[np.uint16]  # [nodes, width]: the least lack of a unary part
    oldest: NDArray[np.int64]  # [nodes, width]
    exact: NDArray[np.float32]  # [nodes, width, 2 F + 1]: least and greatest values, greatest unary part
    leaf: NDArray[np.int32]  # [nodes, width]
    width: NDArray[np.int32]  # [nodes]
    side: NDArray[np.uint8]  # [nodes]
    root: NDArray[np.int32]  # [nodes]: where the node's box is
    node_worn: NDArray[np.int32]

    root_span: NDArray[np.uint8]  # [2, 2 J, roots]: the boxes of nodes
    root_mask: NDArray[np.uint16]
    root_least: NDArray[np.uint16]
    root_oldest: NDArray[np.int64]
    root_exact: NDArray[np.float32]
    root_node: NDArray[np.int32]
    roots: NDArray[np.int64]  # [2]

    reach: NDArray[np.float32]  # [2, F]: least and greatest value of any member so far
    free_leaf: NDArray[np.int32]
    free_node: NDArray[np.int32]
    room: NDArray[np.int64]  # members a leaf, leaves a node
    lacks: NDArray[np.uint16]  # of roots, of leaves and of members, while they are looked at
    leaf_lacks: NDArray[np.uint16]
    member_lacks: NDArray[np.uint16]
    todo: NDArray[np.int64]
    later_number: NDArray[np.int64]  # members whose scoring was put off
    later_lack: NDArray[np.uint16]
    price: NDArray[np.float32]  # [S]: what a coded attribute can decide
    values: NDArray[np.float32]
    order: NDArray[np.int64]
    tally: NDArray[np.int64]


class Boxes(NamedTuple):
    """Boxes, a column each: of the leaves of all nodes, or the roots of both sides. Which, is told beside.

    Parts of arrays are not passed on: numba counts references to them, which costs more than to look at a box.
    """

    span: Any
    mask: Any
    least: Any
    oldest: Any
    exact: Any


@inlined
def leaf_boxes(ix: Any) -> Any:
    """The boxes of leaves, node by node."""
    return Boxes(ix.span, ix.mask, ix.least, ix.oldest, ix.exact)


@inlined
def node_boxes(ix: Any) -> Any:
    """The boxes of nodes, side by side."""
    return Boxes(ix.root_span, ix.root_mask, ix.root_least, ix.root_oldest, ix.root_exact)


@inlined
def step_of(steps: Any, j: Any, value: Any) -> Any:
    """The step of a value: monotone, and the first or last one for what lies beyond."""
    return np.uint8(min(max((value - steps.low[j]) * steps.per[j], np.float32(0)), np.float32(255)))


@inlined
def bit_of(code: Any) -> Any:
    """The bit of a code in a mask; no value has none, since it matches nothing."""
    return np.uint16(0) if code == 0 else np.uint16(1) << np.uint16(code % MASK_BITS)


@inner
def prepare(query: Any, steps: Any, x: Any, codes: Any, start: Any, matches: Any) -> None:
    """A record as bounds see it. `start` and `matches` are those of its scores."""
    unit = steps.unit[0]
    ceiling = start + steps.unit[1]
    size = abs(start) + abs(steps.unit[1])
    for j in range(len(steps.attribute)):
        query.step[j] = step_of(steps, j, x[steps.attribute[j]])
    for s in range(len(codes)):
        bonus = np.float64(matches[s]) if codes[s] != 0 else 0.0
        size += abs(bonus)
        query.price[s] = 0
        if bonus > 0:
            ceiling += bonus
            query.price[s] = np.uint16(min(bonus / unit, steps.unit[2]))
        query.bit[s] = bit_of(codes[s])
    # What rounding can add to a score: some 2**-24 of its size a term.
    query.ceiling[0] = ceiling + 1e-5 * size


@inlined
def ceiling_of(ix: Any, query: Any, scorer: Any, x: Any) -> Any:
    """What a member that lacks nothing scores; where distance adds, it lies as far as any member does."""
    ceiling = query.ceiling[0]
    for f in range(len(x)):
        if scorer.slope[f] > 0:
            away = max(abs(x[f] - ix.reach[0, f]), abs(x[f] - ix.reach[1, f]))
            ceiling += 1.00001 * scorer.slope[f] * min(away, scorer.far[f])
    return ceiling


@inlined
def limit_of(ceiling: Any, best: Any, unit: Any) -> Any:
    """How many units a member may lack and yet score as much as `best`; below MOST."""
    return np.int64(min(max((ceiling - best) / unit, -1.0), MOST - 1.0))


@inlined
def apart(a: Any, b: Any, cap: Any) -> Any:
    """The units that a and b, of steps, are apart at least."""
    return np.uint8(min(max(np.uint8(max(a, b) - min(a, b)), np.uint8(1)), cap) - np.uint8(1))


@inlined
def outside(step: Any, low: Any, high: Any, cap: Any) -> Any:
    """The units that a step is outside of a span at least."""
    away = np.uint8(np.uint8(max(low, step) - step) + np.uint8(step - min(high, step)))
    return np.uint8(min(max(away, np.uint8(1)), cap) - np.uint8(1))


@inner
def box_lacks(step: Any, cap: Any, price: Any, bit: Any, boxes: Any, at: Any, n: Any, out: Any) -> None:
    """out[k] = the units that any member of box k (of node or side `at`) lacks. Looks at whole 32s."""
    n = (n + 31) // 32 * 32
    span, mask, least = boxes.span, boxes.mask, boxes.least
    for k in range(n):
        out[k] = least[at, k]
    j = 0
    while j + 3 < len(step):
        x0, x1, x2, x3 = step[j], step[j + 1], step[j + 2], step[j + 3]
        c0, c1, c2, c3 = cap[j], cap[j + 1], cap[j + 2], cap[j + 3]
        i = 2 * j
        for k in range(n):
            d0 = outside(x0, span[at, i, k], span[at, i + 1, k], c0)
            d1 = outside(x1, span[at, i + 2, k], span[at, i + 3, k], c1)
            d2 = outside(x2, span[at, i + 4, k], span[at, i + 5, k], c2)
            d3 = outside(x3, span[at, i + 6, k], span[at, i + 7, k], c3)
            out[k] = np.uint16(out[k] + np.uint16(d0) + np.uint16(d1) + np.uint16(d2) + np.uint16(d3))
        j += 4
    while j < len(step):
        x0, c0 = step[j], cap[j]
        for k in range(n):
            out[k] = np.uint16(out[k] + np.uint16(outside(x0, span[at, 2 * j, k], span[at, 2 * j + 1, k], c0)))
        j += 1
    for s in range(len(price)):
        p, b = price[s], bit[s]
        if p == 0:
            continue
        for k in range(n):
            out[k] = np.uint16(out[k] + (np.uint16(0) if mask[at, s, k] & b else p))


@inner
def member_lacks(
    step: Any, cap: Any, price: Any, codes: Any, members: Any, member_codes: Any, lack: Any, leaf: Any, n: Any,
    limit: Any, out: Any,
) -> Any:  # fmt: skip
    """out[k] = the units that member k of a leaf lacks; False if all lack more than the limit. Looks at whole 32s.

    Codes and the attributes that tell most come first: where these are enough, the others are not looked at.
    """
    n = (n + 31) // 32 * 32
    for k in range(n):
        out[k] = lack[leaf, k]
    for s in range(len(price)):
        p, c = price[s], codes[s]
        if p == 0:
            continue
        for k in range(n):
            out[k] = np.uint16(out[k] + (np.uint16(0) if member_codes[leaf, s, k] == c else p))
    j = 0
    while j + 3 < len(step):
        x0, x1, x2, x3 = step[j], step[j + 1], step[j + 2], step[j + 3]
        c0, c1, c2, c3 = cap[j], cap[j + 1], cap[j + 2], cap[j + 3]
        for k in range(n):
            d0, d1 = apart(members[leaf, j, k], x0, c0), apart(members[leaf, j + 1, k], x1, c1)
            d2, d3 = apart(members[leaf, j + 2, k], x2, c2), apart(members[leaf, j + 3, k], x3, c3)
            out[k] = np.uint16(out[k] + np.uint16(d0) + np.uint16(d1) + np.uint16(d2) + np.uint16(d3))
        j += 4
        if j == 8 or j == 16:
            least = np.uint16(MOST)
            for k in range(n):
                least = min(least, out[k])
            if least > limit:
                return False
    while j < len(step):
        x0, c0 = step[j], cap[j]
        for k in range(n):
            out[k] = np.uint16(out[k] + np.uint16(apart(members[leaf, j, k], x0, c0)))
        j += 1
    return True


@inner
def box_bound(
    x: Any, codes: Any, start: Any, matches: Any, slope: Any, far: Any, exact: Any, mask: Any, at: Any, k: Any
) -> Any:
    """What a referent within box k of `at` can score at most, term by term as scores are added up."""
    features = len(x)
    zero = start - start
    total = start + exact[at, k, 2 * features]
    for f in range(features):
        w = slope[f]
        low, high = exact[at, k, f], exact[at, k, features + f]
        if w < 0:  # the nearest point of the box
            total += w * min(max(max(low - x[f], x[f] - high), zero), far[f])
        elif w > 0:  # its farthest
            total += w * min(max(abs(x[f] - low), abs(x[f] - high)), far[f])
    for s in range(len(codes)):
        if codes[s] != 0 and matches[s] > 0 and mask[at, s, k] & bit_of(codes[s]):
            total += matches[s]
    return total


@inner
def score_of(
    x: Any, codes: Any, start: Any, matches: Any, slope: Any, far: Any, rows: Any, row_codes: Any, unary: Any, at: Any
) -> Any:
    """The score of the record with one referent, in the order of score_referents."""
    total = start + unary[at]
    for f in range(len(x)):
        if slope[f] != 0:
            total += slope[f] * min(abs(x[f] - rows[at, f]), far[f])
    zero = start - start
    for s in range(len(codes)):
        if codes[s] != 0:
            total += matches[s] if row_codes[at, s] == codes[s] else zero
    return total


@inlined
def least_of(lacks: Any, first: Any) -> Any:
    """The least of 32 lacks."""
    least = np.uint16(MOST)
    for k in range(first, first + 32):
        least = min(least, lacks[k])
    return least


@inlined
def least_column(lacks: Any, oldest: Any, at: Any, n: Any) -> Any:
    """The column that lacks least, of equal ones that with the oldest member."""
    first = 0
    for k in range(1, n):
        if lacks[k] < lacks[first] or (lacks[k] == lacks[first] and oldest[at, k] < oldest[at, first]):
            first = k
    return first


@inlined
def cannot_win(bound: Any, oldest: Any, best: Any, number: Any) -> Any:
    """Whether no member is better than `best`, and none as good is older."""
    return bound < best or (bound == best and number < oldest)


@inlined
def search(ix: Any, x: Any, codes: Any, start: Any, matches: Any, scorer: Any, steps: Any, query: Any) -> None:
    """Find the best member of either side, if it beats the best so far: `query` has that, and has the answer.

    `number` of the best so far is -1, so that members win no ties; afterwards it is the member's, if one has won.
    """
    # By names of their own: to take an array out of a tuple counts a reference each time.
    boxes, leaves = node_boxes(ix), leaf_boxes(ix)
    lacks, leaf_lacks, mine, todo, tally = ix.lacks, ix.leaf_lacks, ix.member_lacks, ix.todo, ix.tally
    node_at, leaf_at, widths, sizes, numbers = ix.root_node, ix.leaf, ix.width, ix.size, ix.number
    members, member_codes, member_lack = ix.step, ix.code, ix.lack
    rows, row_codes, row_unary, where, slots = ix.row, ix.row_code, ix.row_unary, ix.where, len(ix.where)
    later_number, later_lack = ix.later_number, ix.later_lack
    step, price, bit, cap, slope, far = query.step, query.price, query.bit, steps.cap, scorer.slope, scorer.far
    exact, mask, oldest = boxes.exact, boxes.mask, boxes.oldest
    leaf_exact, leaf_mask, leaf_oldest = leaves.exact, leaves.mask, leaves.oldest
    best_of, number_of, hint_of = query.best, query.number, query.hint
    for side in range(2):
        best, number, hint = best_of[side], number_of[side], np.int64(NOWHERE)
        hint_of[side] = NOWHERE
        n = ix.roots[side]
        if n == 0:
            continue
        box_lacks(step, cap, price, bit, boxes, side, n, lacks)
        tally[BOUNDED] += n
        ceiling, unit = ceiling_of(ix, query, scorer, x), steps.unit[0]
        limit = limit_of(ceiling, best, unit)
        promise, later = np.int64(MOST), 0
        waiting = 0
        turn = -1
        while turn < waiting:
            if turn < 0:  # the most promising node; then those that still may win, in order of what they lack
                k = least_column(lacks, oldest, side, n)
                hint = -2 - np.int64(node_at[side, k])
            else:
                k = todo[turn]
            if lacks[k] <= limit:
                bound = box_bound(
                    x, codes, start, matches, slope, far, exact, mask, side, k
                )  # fmt: skip
                if not cannot_win(bound, oldest[side, k], best, number):
                    node = np.int64(node_at[side, k])
                    width = np.int64(widths[node])
                    box_lacks(step, cap, price, bit, leaves, node, width, leaf_lacks)
                    tally[BOUNDED] += width
                    while True:
                        j = least_column(leaf_lacks, leaf_oldest, node, width)
                        if leaf_lacks[j] > limit:
                            break
                        leaf_lacks[j] = MOST
                        leaf = np.int64(leaf_at[node, j])
                        size: Any = np.int64(sizes[leaf])
                        tally[BOUNDED] += 1
                        if hint < NOWHERE:
                            hint = leaf
                        if not member_lacks(
                            step, cap, price, codes, members, member_codes, member_lack, leaf, size, limit,
                            mine,
                        ):  # fmt: skip
                            continue
                        survivors, first = 0, -1
                        for chunk in range(0, size, 32):
                            if least_of(mine, chunk) > limit:
                                continue
                            for i in range(chunk, min(chunk + 32, size)):
                                if mine[i] <= limit:
                                    survivors += 1
                                    if first < 0 or mine[i] < mine[first]:
                                        first = i
                        if survivors >= FEW:  # many alike: is there one that can win?
                            bound = box_bound(x, codes, start, matches, slope, far, leaf_exact, leaf_mask, node, j)
                            if cannot_win(bound, leaf_oldest[node, j], best, number):
                                continue
                        if survivors == 0:
                            continue
                        crowded = later + survivors > len(later_number)
                        if mine[first] < promise or crowded:  # at once: what it scores spares others
                            promise = min(promise, np.int64(mine[first]))
                            slot = numbers[leaf, first] % slots
                            score = score_of(x, codes, start, matches, slope, far, rows, row_codes, row_unary, slot)
                            tally[SCORED] += 1
                            if score > best or (score == best and numbers[leaf, first] < number):
                                best, number, hint = score, numbers[leaf, first], leaf
                                limit = limit_of(ceiling, best, unit)
                            mine[first] = MOST
                        for i in range(size):
                            if mine[i] > limit:
                                continue
                            if not crowded:
                                later_number[later], later_lack[later] = numbers[leaf, i], mine[i]
                                later += 1
                                continue
                            slot = numbers[leaf, i] % slots
                            score = score_of(x, codes, start, matches, slope, far, rows, row_codes, row_unary, slot)
                            tally[SCORED] += 1
                            if score > best or (score == best and numbers[leaf, i] < number):
                                best, number, hint = score, numbers[leaf, i], leaf
                                limit = limit_of(ceiling, best, unit)
            if turn < 0:
                lacks[k] = MOST
                for k in range(n):
                    if lacks[k] <= limit and lacks[k] < MOST:
                        j = waiting
                        while 0 < j < SORTED and lacks[todo[j - 1]] > lacks[k]:
                            todo[j] = todo[j - 1]
                            j -= 1
                        todo[j] = k
                        waiting += 1
            turn += 1
        # What was put off, the most promising first.
        for part in range(ROUNDS, 0, -1):
            until = limit // part
            for i in range(later):
                if later_lack[i] > min(until, limit):
                    continue
                slot = later_number[i] % slots
                score = score_of(x, codes, start, matches, slope, far, rows, row_codes, row_unary, slot)
                tally[SCORED] += 1
                if score > best or (score == best and later_number[i] < number):
                    best, number, hint = score, later_number[i], np.int64(where[slot])
                    limit = limit_of(ceiling, best, unit)
                later_lack[i] = MOST
        best_of[side], number_of[side], hint_of[side] = best, number, hint
