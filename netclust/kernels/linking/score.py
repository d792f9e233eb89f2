"""Pair scores of one record against many referents, vectorised across the referents.

Referents lie column by column (`num[f, k]`, `code[s, k]`): each attribute adds one straight pass over them. The three
indicators of a symbolic value (both have it, one has it, neither has it) fold into three lookups an attribute: what
the record's own value adds, what the referent's adds, and what it adds that they are the same. The first is looked up
once a record, the second once a referent, and the third costs a comparison a pair, not a gather.

A score is accumulated in float32: the record's start and the referent's unary part, then the numeric block, then the
matches, each in schema order, so that any implementation that keeps this order agrees bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inlined, inner

LANES = 32
"""Scoring goes in whole vectors: columns and `acc` reach LANES - 1 beyond the last referent, with any valid content."""

TILE = 128


class Scorer(NamedTuple):
    """Weights in the form that scores: score(a, b) of a referent a and a record b is

    start(b) + unary(a) + sum_f slope_f min(|a_f - b_f|, far_f) + sum_s [a_s = b_s != 0] match_s[b_s],
    start(b) = base + sum_s own_s[b_s], unary(a) = sum_s other_s[a_s].

    The lookups of attribute s start at `offset[s]`; `far` is infinite where a difference counts in full.
    """

    base: np.float32
    slope: NDArray[np.float32]
    far: NDArray[np.float32]
    own: NDArray[np.float32]
    other: NDArray[np.float32]
    match: NDArray[np.float32]
    offset: NDArray[np.int64]


def unary_parts(code: NDArray[np.uint16], scorer: Scorer) -> NDArray[np.float32]:
    """unary(a) of every referent (a column each)."""
    unary = np.zeros(code.shape[1], np.float32)
    for s, codes in enumerate(code):
        unary += scorer.other[scorer.offset[s] + codes]
    return unary


def score_columns(rows: NDArray[Any]) -> NDArray[Any]:
    """Turn records into referents: one column each, LANES more behind them."""
    turned = np.zeros((rows.shape[1], len(rows) + LANES), rows.dtype)
    turned[:, : len(rows)] = rows.T
    return turned


@borrowing(inner)
def score_referents(
    x: Any,
    codes: Any,
    start: Any,
    matches: Any,
    slope: Any,
    far: Any,
    num: Any,
    code: Any,
    unary: Any,
    lo: Any,
    hi: Any,
    acc: Any,
) -> None:
    """acc[k] = score of a record (numbers x, codes, start(x), matches of its codes) with referent lo + k."""
    n = (hi - lo + LANES - 1) // LANES * LANES  # no scalar remainder: it would cost more than the padding
    own = unary[lo : lo + n]
    for k in range(n):
        acc[k] = start + own[k]
    _add_numbers(x, slope, far, num, lo, n, 0, len(num), acc)
    _add_matches(codes, matches, code, start - start, lo, n, acc)


@borrowing(inlined)
def _add_numbers(x: Any, slope: Any, far: Any, num: Any, lo: Any, n: Any, first: Any, last: Any, acc: Any) -> None:
    """Add what the numeric attributes first..last tell of n referents; one without weight is passed over."""
    hi = lo + n
    f = first
    # Four attributes a pass: the running sum stays in registers; the order of additions is that of the schema.
    while f + 4 <= last:
        w0, w1, w2, w3 = slope[f], slope[f + 1], slope[f + 2], slope[f + 3]
        if w0 == 0 or w1 == 0 or w2 == 0 or w3 == 0:
            _add_number(x, slope, far, num, lo, n, f, acc)
            f += 1
            continue
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        m0, m1, m2, m3 = far[f], far[f + 1], far[f + 2], far[f + 3]
        r0, r1, r2, r3 = num[f, lo:hi], num[f + 1, lo:hi], num[f + 2, lo:hi], num[f + 3, lo:hi]
        for k in range(n):
            s = acc[k] + w0 * min(abs(x0 - r0[k]), m0)
            s = s + w1 * min(abs(x1 - r1[k]), m1)
            s = s + w2 * min(abs(x2 - r2[k]), m2)
            acc[k] = s + w3 * min(abs(x3 - r3[k]), m3)
        f += 4
    while f < last:
        _add_number(x, slope, far, num, lo, n, f, acc)
        f += 1


@borrowing(inlined)
def _add_number(x: Any, slope: Any, far: Any, num: Any, lo: Any, n: Any, f: Any, acc: Any) -> None:
    """Add what one numeric attribute tells."""
    xf, wf, mf, rf = x[f], slope[f], far[f], num[f, lo : lo + n]
    if wf == 0:
        return
    for k in range(n):
        acc[k] += wf * min(abs(xf - rf[k]), mf)


@borrowing(inlined)
def _add_matches(codes: Any, matches: Any, code: Any, zero: Any, lo: Any, n: Any, acc: Any) -> None:
    """Add what it tells that referents have the record's codes."""
    for s in range(len(code)):
        c, bonus = codes[s], matches[s]
        if c == 0:  # no value matches nothing
            continue
        others = code[s, lo : lo + n]
        for k in range(n):
            acc[k] += bonus if others[k] == c else zero


@borrowing(inner)
def _ordered(bits: Any) -> Any:
    """Turn the bits of a float32 into an integer of the same order, and back; integers are compared in vectors."""
    return bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))


@borrowing(inner)
def _first_of(bits: Any, side: Any, lo: Any, start: Any, n: Any, which: Any, value: Any) -> Any:
    """Return the first position of a tile with these bits and that side, -1 if there is none."""
    for k in range(start, min(start + TILE, n)):
        if bits[k] == value and side[lo + k] == which:
            return k
    return -1


@borrowing(inner)
def best_two(acc: Any, side: Any, lo: Any, n: Any) -> Any:
    """First maxima of the normal (side 1) and of the non-normal (side 2) referents lo.., in one pass.

    The maximum of every tile is taken in vectors; only the winning tiles are searched for the place.
    """
    lowest = np.int32(-(2**31))
    bits = acc.view(np.int32)
    best_normal = best_other = lowest
    normal_tile: Any = np.int64(0)
    other_tile: Any = np.int64(0)
    for start in range(0, n, TILE):
        tile = bits[start : min(start + TILE, n)]
        sides = side[lo + start : lo + start + len(tile)]
        normal = other = lowest
        for k in range(len(tile)):
            value = _ordered(tile[k])
            normal = max(normal, value if sides[k] == 1 else lowest)
            other = max(other, value if sides[k] == 2 else lowest)
        if normal > best_normal:
            best_normal, normal_tile = normal, start
        if other > best_other:
            best_other, other_tile = other, start
    k = _first_of(bits, side, lo, normal_tile, n, np.uint8(1), _ordered(best_normal))
    j = _first_of(bits, side, lo, other_tile, n, np.uint8(2), _ordered(best_other))
    never = np.float32(-np.inf)
    return acc[k] if k >= 0 else never, lo + k if k >= 0 else -1, acc[j] if j >= 0 else never, lo + j if j >= 0 else -1


@borrowing(inner)
def best_augmented(acc: Any, label: Any, normal: Any, lo: Any, n: Any, y: Any, to_attack: Any, to_normal: Any) -> Any:
    """First maximum of score + C*l, and first maximum among the same class (Algorithm 5).

    C*l is 0 within the class of the record, else by the side of the referent; for Delta_F (5.5) it is C on both.
    """
    worst = right = -np.inf
    worst_at = right_at = -1
    for k in range(n):
        if label[lo + k] == y:
            s = acc[k]
            if s > right:
                right = s
                right_at = lo + k
        else:
            s = acc[k] + (to_normal if normal[lo + k] else to_attack)
        if s > worst:
            worst = s
            worst_at = lo + k
    return worst, worst_at, right, right_at


def fold_weights(
    w: Any, features: int, sign: int, at: Any, width: Any, offset: Any, slope: Any, own: Any, other: Any, match: Any
) -> Any:
    """Weights to scoring form: fills `slope` and the lookups, returns the base (phi_f = 1 + sign*|a-b|).

    Plain Python, for use once a model; `fold` is the same for use in kernels.
    `w[at[s] + 3*(v-1) : ...]` are the weights AND, OR, NOR of value v of attribute s; code 0 has no bit set.
    """
    base = 0.0
    for f in range(features):
        base += w[f]
        slope[f] = sign * w[f]
    for s in range(len(width)):
        neither = 0.0
        for v in range(1, width[s]):
            neither += w[at[s] + 3 * (v - 1) + 2]
        own[offset[s]] = neither
        other[offset[s]] = 0.0
        match[offset[s]] = 0.0
        for v in range(1, width[s]):
            both, one, none = w[at[s] + 3 * (v - 1)], w[at[s] + 3 * (v - 1) + 1], w[at[s] + 3 * (v - 1) + 2]
            own[offset[s] + v] = neither + (one - none)
            other[offset[s] + v] = one - none
            match[offset[s] + v] = both - (one - none)
    return base


fold = inner(fold_weights)
