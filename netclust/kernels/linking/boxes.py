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

from netclust.kernels.jit import borrowing, inlined, inner
from netclust.kernels.linking.bytewise import WIDE, add_points, first_bits, sum_boxes, sum_members, within

NOWHERE = -1
FREE = 2  # the side of a node that is none's
MOST = 65535  # what can be lacked, in units
MASK_BITS = 16
AT_ONCE = 8  # attributes of members that are looked at before it is asked whether one can still win

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


class BoundedRecord(NamedTuple):
    """A record as bounds see it."""

    step: NDArray[np.uint8]
    price: NDArray[np.uint16]  # of a coded attribute, if a referent has another code
    byte: NDArray[np.uint8]  # of its code
    bit: NDArray[np.uint16]  # and of that in a mask
    ceiling: NDArray[np.float64]  # [what a referent that lacks nothing scores, with all that rounding can add]
    best: NDArray[np.float32]  # of either side, so far
    number: NDArray[np.int64]  # and whose it is; -1: nobody's, or of one that is older than all members
    hint: NDArray[np.int64]  # where a record like this one belongs


class Index(NamedTuple):
    """Members of both sides, grouped. Leaves, nodes and roots are columns of their arrays, in no order."""

    row: NDArray[np.float32]  # [slots, F + S + 1 and more]: the members themselves, by number modulo slots: values,
    # codes, unary part, in as few lines of memory as can be
    where: NDArray[np.int32]  # [slots]: the leaf
    held: NDArray[np.uint8]  # [slots]: the side that it is held as, 0: not held
    hint: NDArray[np.int32]  # [2, slots]: where to put it on either side: a leaf, -2 - node, or NOWHERE

    member: NDArray[np.uint8]  # [leaves, room / 64, 1 + S + J, 64]: the members of leaves: units that the unary part
    # lacks to the greatest, codes, steps
    number: NDArray[np.int64]  # [leaves, room]
    size: NDArray[np.int32]  # [leaves]
    node: NDArray[np.int32]  # [leaves]: where the leaf's box is
    column: NDArray[np.int32]  # [leaves]
    worn: NDArray[np.int32]  # [leaves]: members gone since the box was made

    span: NDArray[np.uint8]  # [nodes, 2 J, width]: the boxes of leaves: least and greatest step of each attribute
    mask: NDArray[np.uint16]  # [nodes, S, width]
    least: NDArray[np.uint8]  # [nodes, width]: the least lack of a unary part
    oldest: NDArray[np.int64]  # [nodes, width]
    exact: NDArray[np.float32]  # [nodes, width, 2 F + 1]: least and greatest values, greatest unary part
    leaf: NDArray[np.int32]  # [nodes, width]
    width: NDArray[np.int32]  # [nodes]
    side: NDArray[np.uint8]  # [nodes]
    root: NDArray[np.int32]  # [nodes]: where the node's box is
    node_worn: NDArray[np.int32]

    root_span: NDArray[np.uint8]  # [2, 2 J, roots]: the boxes of nodes
    root_mask: NDArray[np.uint16]
    root_least: NDArray[np.uint8]
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
    todo: NDArray[np.int64]  # nodes that are to be visited
    later_place: NDArray[np.int64]  # members whose scoring was put off: where in `number`, as if that had one dimension
    later_lack: NDArray[np.uint16]
    picked_place: NDArray[np.int64]  # those of them that are scored next
    picked_number: NDArray[np.int64]
    picked_lack: NDArray[np.uint16]
    four: NDArray[np.int64]
    scores: NDArray[np.float32]
    codes: NDArray[np.uint16]
    price: NDArray[np.int64]  # [S]: the units that a coded attribute can decide
    part_low: NDArray[np.uint8]  # [parts, S + J]: what is to be cut in two, while that is done
    part_high: NDArray[np.uint8]
    part_order: NDArray[np.int64]
    part_extent: NDArray[np.int64]
    part_begin: NDArray[np.int64]
    reached: NDArray[np.uint8]  # [2, S + J]
    decides: NDArray[np.int64]  # [S + J]
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


@borrowing(inlined)
def leaf_boxes(index: Any) -> Any:
    """The boxes of leaves, node by node."""
    return Boxes(index.span, index.mask, index.least, index.oldest, index.exact)


@borrowing(inlined)
def node_boxes(index: Any) -> Any:
    """The boxes of nodes, side by side."""
    return Boxes(index.root_span, index.root_mask, index.root_least, index.root_oldest, index.root_exact)


@borrowing(inlined)
def _step_of(steps: Any, j: Any, value: Any) -> Any:
    """Return the step of a value: monotone, and the first or last one for what lies beyond."""
    return np.uint8(min(max((value - steps.low[j]) * steps.per[j], np.float32(0)), np.float32(255)))


@borrowing(inlined)
def _byte_of(code: Any) -> Any:
    """Fold a code into a byte; 0, no value, stays by itself, and of others some share one."""
    return np.uint8(code) if code < 256 else np.uint8(1 + code % 255)


@borrowing(inlined)
def bit_of(byte: Any) -> Any:
    """The bit of a code's byte in a mask; no value has none, since it matches nothing."""
    return np.uint16(0) if byte == 0 else np.uint16(1) << np.uint16(byte % MASK_BITS)


@borrowing(inner)
def prepare_box_query(query: Any, steps: Any, x: Any, codes: Any, start: Any, matches: Any) -> None:
    """Describe a record as bounds see it. `start` and `matches` are those of its scores."""
    unit = steps.unit[0]
    ceiling = start + steps.unit[1]
    size = abs(start) + abs(steps.unit[1])
    for j in range(len(steps.attribute)):
        query.step[j] = _step_of(steps, j, x[steps.attribute[j]])
    for s in range(len(codes)):
        bonus = np.float64(matches[s]) if codes[s] != 0 else 0.0
        size += abs(bonus)
        query.price[s] = 0
        if bonus > 0:
            ceiling += bonus
            query.price[s] = np.uint16(min(bonus / unit, steps.unit[2]))
        query.byte[s] = _byte_of(codes[s])
        query.bit[s] = bit_of(query.byte[s])
    # What rounding can add to a score: some 2**-24 of its size a term.
    query.ceiling[0] = ceiling + 1e-5 * size


@borrowing(inlined)
def ceiling_of(index: Any, query: Any, scorer: Any, x: Any) -> Any:
    """What a member that lacks nothing scores; where distance adds, it lies as far as any member does."""
    ceiling = query.ceiling[0]
    for f in range(len(x)):
        if scorer.slope[f] > 0:
            away = max(abs(x[f] - index.reach[0, f]), abs(x[f] - index.reach[1, f]))
            ceiling += 1.00001 * scorer.slope[f] * min(away, scorer.far[f])
    return ceiling


@borrowing(inlined)
def limit_of(ceiling: Any, best: Any, unit: Any) -> Any:
    """How many units a member may lack and yet score as much as `best`; below MOST."""
    return np.int64(min(max((ceiling - best) / unit, -1.0), MOST - 1.0))


@borrowing(inner)
def box_lacks(step: Any, cap: Any, price: Any, bit: Any, boxes: Any, at: Any, n: Any, out: Any) -> None:
    """out[k] = the units that any member of box k (of node or side `at`) lacks. Looks at whole 64s."""
    span, mask, least = boxes.span, boxes.mask, boxes.least
    for k in range(0, n, WIDE):
        sum_boxes(least, mask, span, at, k, bit, price, step, cap, out)


@borrowing(inlined)
def members_within(
    step: Any, cap: Any, price: Any, byte: Any, members: Any, leaf: Any, k: Any, n: Any, limit: Any, out: Any
) -> Any:
    """Bits of the members k .. k + 63 of a leaf of n that lack no more than the limit, and out[k:] = what they lack.

    Codes and the attributes that tell most come first: where these are enough, the others are not looked at, and what
    they lack is not known.
    """
    stepped, coded = len(step), len(price)
    if limit < 0:
        return np.uint64(0)
    begin = (leaf * members.shape[1] * WIDE + k) * members.shape[2]
    most = np.uint16(limit)
    among = first_bits(n - k)
    last = min(AT_ONCE, stepped)
    sum_members(members, begin, WIDE, byte, price, step, cap, last, out, k)
    passed = within(out, k, most) & among
    begin += (1 + coded) * WIDE
    while passed and last < stepped:
        first, last = last, (2 * AT_ONCE if last == AT_ONCE and stepped > 2 * AT_ONCE else stepped)
        add_points(members, begin, WIDE, step, cap, first, last, out, k)
        passed = within(out, k, most) & among
    return passed


@borrowing(inner)
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
        if codes[s] != 0 and matches[s] > 0 and mask[at, s, k] & bit_of(_byte_of(codes[s])):
            total += matches[s]
    return total


@borrowing(inner)
def score_of(x: Any, codes: Any, start: Any, matches: Any, slope: Any, far: Any, rows: Any, at: Any) -> Any:
    """The score of the record with one referent, in the order of score_referents."""
    features = len(x)
    total = start + rows[at, features + len(codes)]
    for f in range(features):
        if slope[f] != 0:
            total += slope[f] * min(abs(x[f] - rows[at, f]), far[f])
    zero = start - start
    for s in range(len(codes)):
        if codes[s] != 0:
            total += matches[s] if rows[at, features + s] == np.float32(codes[s]) else zero
    return total


@borrowing(inner)
def score_four(
    x: Any,
    codes: Any,
    start: Any,
    matches: Any,
    slope: Any,
    far: Any,
    rows: Any,
    numbers: Any,
    four: Any,
    slots: Any,
    out: Any,
) -> None:
    """out = the scores of the record with four referents, each as score_of has it."""
    features = len(x)
    a, b = numbers[four[0]] % slots, numbers[four[1]] % slots
    c, d = numbers[four[2]] % slots, numbers[four[3]] % slots
    last = features + len(codes)
    ta, tb, tc, td = start + rows[a, last], start + rows[b, last], start + rows[c, last], start + rows[d, last]
    for f in range(features):
        w, value, most = slope[f], x[f], far[f]
        if w != 0:
            ta += w * min(abs(value - rows[a, f]), most)
            tb += w * min(abs(value - rows[b, f]), most)
            tc += w * min(abs(value - rows[c, f]), most)
            td += w * min(abs(value - rows[d, f]), most)
    zero = start - start
    for s in range(len(codes)):
        if codes[s] != 0:
            code, bonus = np.float32(codes[s]), matches[s]
            ta += bonus if rows[a, features + s] == code else zero
            tb += bonus if rows[b, features + s] == code else zero
            tc += bonus if rows[c, features + s] == code else zero
            td += bonus if rows[d, features + s] == code else zero
    out[0], out[1], out[2], out[3] = ta, tb, tc, td


@borrowing(inlined)
def least_column(lacks: Any, oldest: Any, at: Any, n: Any) -> Any:
    """The column that lacks least, of equal ones that with the oldest member."""
    first = 0
    for k in range(1, n):
        if lacks[k] < lacks[first] or (lacks[k] == lacks[first] and oldest[at, k] < oldest[at, first]):
            first = k
    return first
