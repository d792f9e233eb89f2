"""Pair scores of one record against many referents, vectorised across the referents.

Referents lie column by column (`num[f, k]`, `code[s, k]`): each attribute adds one straight pass over them. A score is
accumulated in float32: the base, then the numeric block, then the coded attributes, each in schema order, so that any
implementation that keeps this order agrees bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import kernel


LANES = 32
"""Scoring goes in whole vectors: columns and `acc` reach LANES - 1 beyond the last referent, with any valid content."""


class Scorer(NamedTuple):
    """Weights in the form that scores: score(a, b) = base + sum_f slope_f |a_f - b_f| + sum_s table_s[a_s, b_s].

    `tables` holds the tables one behind the other: row a of attribute s starts at `offset[s] + a * width[s]`.
    """

    base: np.float32
    slope: NDArray[np.float32]
    tables: NDArray[np.float32]
    offset: NDArray[np.int64]
    width: NDArray[np.int64]


def columns(rows: NDArray[Any]) -> NDArray[Any]:
    """Records turned into referents: one column each, LANES more behind them."""
    turned = np.zeros((rows.shape[1], len(rows) + LANES), rows.dtype)
    turned[:, : len(rows)] = rows.T
    return turned


@kernel
def score_referents(
    x: Any,
    rows: Any,
    base: Any,
    slope: Any,
    tables: Any,
    width: Any,
    num: Any,
    code: Any,
    lo: int,
    hi: int,
    acc: Any,
) -> None:
    """acc[k] = score of record x with referent lo + k; `rows[s]` is where x's row of table s starts."""
    n = (hi - lo + LANES - 1) // LANES * LANES  # no scalar remainder: it would cost more than the padding
    hi = lo + n
    for k in range(n):
        acc[k] = base
    features = len(num)
    f = 0
    # Four attributes a pass: the running sum stays in registers; the order of additions is that of the schema.
    while f + 4 <= features:
        x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
        w0, w1, w2, w3 = slope[f], slope[f + 1], slope[f + 2], slope[f + 3]
        r0, r1, r2, r3 = num[f, lo:hi], num[f + 1, lo:hi], num[f + 2, lo:hi], num[f + 3, lo:hi]
        for k in range(n):
            s = acc[k] + w0 * abs(x0 - r0[k])
            s = s + w1 * abs(x1 - r1[k])
            s = s + w2 * abs(x2 - r2[k])
            acc[k] = s + w3 * abs(x3 - r3[k])
        f += 4
    while f < features:
        xf, wf, rf = x[f], slope[f], num[f, lo:hi]
        for k in range(n):
            acc[k] += wf * abs(xf - rf[k])
        f += 1
    for s in range(len(code)):
        at = rows[s]
        c = code[s, lo:hi]
        if width[s] == 2:  # one bit: a select is cheaper than a gather
            unset, is_set = tables[at], tables[at + 1]
            for k in range(n):
                acc[k] += is_set if c[k] == 1 else unset
        else:
            row = tables[at : at + width[s]]
            for k in range(n):
                acc[k] += row[c[k]]


@kernel
def best_link(acc: Any, n: int) -> Any:
    """(score, position) of the first maximum of acc[:n]; (-inf, -1) if there is none."""
    best = np.float32(-np.inf)
    at = -1
    for k in range(n):
        if acc[k] > best:
            best = acc[k]
            at = k
    return best, at


@kernel
def best_two(acc: Any, side: Any, lo: int, n: int) -> Any:
    """First maxima of the normal (side 1) and of the non-normal (side 2) referents lo.., in one pass."""
    normal = other = np.float32(-np.inf)
    normal_at = other_at = -1
    for k in range(n):
        s = acc[k]
        if side[lo + k] == 1:
            if s > normal:
                normal = s
                normal_at = lo + k
        elif side[lo + k] == 2 and s > other:
            other = s
            other_at = lo + k
    return normal, normal_at, other, other_at


@kernel
def best_augmented(acc: Any, label: Any, lo: int, n: int, y: int, C: Any) -> Any:
    """First maximum of score + C*[class differs] and first maximum among the same class (Algorithm 5, eq. 5.5)."""
    worst = right = -np.inf
    worst_at = right_at = -1
    for k in range(n):
        if label[lo + k] == y:
            s = acc[k]
            if s > right:
                right = s
                right_at = lo + k
        else:
            s = acc[k] + C
        if s > worst:
            worst = s
            worst_at = lo + k
    return worst, worst_at, right, right_at


@kernel
def fill_row(w: Any, at: Any, values: Any, c: Any, row: Any, to: Any) -> None:
    """Row c of one coded attribute's table: the and/or/neither weights of its values folded into one number a pair.

    `w[at + 3*(v-1) : ...]` are the weights AND, OR, NOR of value v = 1..values; code 0 has no bit set.
    """
    neither = 0.0
    for v in range(values):
        neither += w[at + 3 * v + 2]
    own = 0.0
    if c > 0:
        own = w[at + 3 * (c - 1) + 1] - w[at + 3 * (c - 1) + 2]
    row[to] = neither + own
    for v in range(1, values + 1):
        if v == c:
            row[to + v] = neither + own + w[at + 3 * (c - 1)]
        else:
            row[to + v] = neither + own + (w[at + 3 * (v - 1) + 1] - w[at + 3 * (v - 1) + 2])


@kernel
def fold(w: Any, features: int, sign: int, at: Any, width: Any, offset: Any, slope: Any, tables: Any) -> Any:
    """Weights to scoring form: fills `slope` and `tables`, returns the base (phi_f = 1 + sign*|a-b|)."""
    base = 0.0
    for f in range(features):
        base += w[f]
        slope[f] = np.float32(sign * w[f])
    for s in range(len(width)):
        for c in range(width[s]):
            fill_row(w, at[s], width[s] - 1, c, tables, offset[s] + c * width[s])
    # +0.0, not -0.0: sums that start from it then never end at -0.0.
    return np.float32(base + 0.0)
