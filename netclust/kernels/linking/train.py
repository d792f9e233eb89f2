"""LSP and LSPA on a continuous stream: one loss-augmented arg-max and at most one update a record.

Algorithm 2 with the E structure, an edge loss with a price a kind of arc (Delta_F, 5.5, is one), section 6.4: the
training set is one long example, and the update on the segment since the last mistake equals the update on the
mistaken record alone. Scores are accumulated in float64 here: near-ties of 1e-9 decide updates, and in float32 the
published control rows come out a point off.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel
from netclust.kernels.linking.score import LANES, best_augmented, fold, score_referents

# Slots of the statistics array.
UPDATES, LOSS, NO_CORRECT_ARC, ROOT_LINKS, CORRECT = range(5)

PERCEPTRON, PASSIVE_AGGRESSIVE = 0, 1

# Columns of the prices: where a wrong arc of a record comes from.
FROM_ATTACK, FROM_NORMAL, FROM_ROOT = range(3)
PASSED_OVER = -2


class TrainingStream(NamedTuple):
    """The training records, column by column, in arrival order; `num` and `code` are LANES columns longer."""

    num: NDArray[np.float32]  # [F, n]
    code: NDArray[np.uint16]  # [S, n]
    label: NDArray[np.int32]
    normal: NDArray[np.bool_]
    first: NDArray[np.bool_]  # the first record of its class in the whole stream
    root: NDArray[np.float32]  # [n, K] features of the root arc


class TrainingRule(NamedTuple):
    """What is learned, and how."""

    training_window: int
    C: float
    prices: NDArray[np.float64]  # [the record is normal?, where its arc comes from]
    root_when_absent: bool  # policy "window": the root is right when no candidate has the class
    update: int
    cap: float
    sign: int


class LearnedWeights(NamedTuple):
    """Weights [numeric | AND, OR, NOR of every value | root], and what averaging needs."""

    w: NDArray[np.float64]
    u: NDArray[np.float64]
    at: NDArray[np.int64]  # where each coded attribute's weights start
    width: NDArray[np.int64]  # its codes, 0 included
    step: NDArray[np.int64]


@inner
def add_arc(g: Any, scale: float, i: Any, j: Any, stream: Any, learned: Any, sign: Any) -> None:
    """g += scale * phi(i, j); i < 0 is the root."""
    features = len(stream.num)
    if i < 0:
        start = len(g) - stream.root.shape[1]
        for k in range(stream.root.shape[1]):
            g[start + k] += scale * stream.root[j, k]
        return
    for f in range(features):
        g[f] += scale * (1.0 + sign * abs(np.float64(stream.num[f, i]) - np.float64(stream.num[f, j])))
    for s in range(len(stream.code)):
        at = learned.at[s]
        a, b = stream.code[s, i], stream.code[s, j]
        for v in range(1, learned.width[s]):
            bits = (a == v) + (b == v)
            which = at + 3 * (v - 1)
            if bits == 2:
                g[which] += scale
            if bits > 0:
                g[which + 1] += scale
            else:
                g[which + 2] += scale


@kernel
def train_records(stream: Any, rule: Any, learned: Any, lo: Any, hi: Any, stats: Any, parents: Any) -> None:
    """Learn from records lo..hi of the stream, in order; weights, averages and statistics are updated in place.

    `parents[j]` is where the max-violating arc of record j came from: a record, the root (-1), none (-2).
    """
    features = len(stream.num)
    coded = len(stream.code)
    roots = stream.root.shape[1]
    w, u = learned.w, learned.u
    D = len(w)
    acc = np.empty(rule.training_window + LANES, np.float64)
    g = np.empty(D, np.float64)
    x = np.empty(features, np.float64)
    slope = np.empty(features, np.float64)
    far = np.full(features, np.inf)
    codes = np.empty(coded, np.uint16)
    matches = np.empty(coded, np.float64)
    offset = np.empty(coded, np.int64)
    total = 0
    for s in range(coded):
        offset[s] = total
        total += learned.width[s]
    own, other, match = np.empty(total), np.empty(total), np.empty(total)
    unary = np.zeros(stream.num.shape[1], np.float64)
    base = 0.0
    stale = True
    for j in range(lo, hi):
        start = max(0, j - rule.training_window)
        fresh = j - 1  # with unchanged weights only the newest candidate lacks its unary part
        if stale:
            base = fold(w, features, rule.sign, learned.at, learned.width, offset, slope, own, other, match)
            fresh = start
            stale = False
        for k in range(max(fresh, start), j):
            unary[k] = 0.0
            for s in range(coded):
                unary[k] += other[offset[s] + stream.code[s, k]]
        for f in range(features):
            x[f] = stream.num[f, j]
        start_score = base
        for s in range(coded):
            codes[s] = stream.code[s, j]
            start_score += own[offset[s] + codes[s]]
            matches[s] = match[offset[s] + codes[s]]
        root = 0.0
        for k in range(roots):
            root += w[D - roots + k] * stream.root[j, k]
        n = j - start
        score_referents(x, codes, start_score, matches, slope, far, stream.num, stream.code, unary, start, j, acc)
        y = stream.label[j]
        price = rule.prices[1 if stream.normal[j] else 0]
        worst, worst_at, _, right_at = best_augmented(
            acc, stream.label, stream.normal, start, n, y, rule.C * price[FROM_ATTACK], rule.C * price[FROM_NORMAL]
        )
        learned.step[0] += 1
        root_right = right_at < 0 and (rule.root_when_absent or stream.first[j])
        if right_at < 0 and not root_right:
            stats[NO_CORRECT_ARC] += 1
            parents[j] = PASSED_OVER
            continue
        augmented_root = root if root_right else root + rule.C * price[FROM_ROOT]
        h_hat = worst_at
        loss = 0.0
        if worst_at < 0 or augmented_root >= worst:  # root first
            h_hat = -1
            stats[ROOT_LINKS] += 1
            loss = 0.0 if root_right else price[FROM_ROOT]
        elif stream.label[worst_at] != y:
            loss = price[FROM_NORMAL if stream.normal[worst_at] else FROM_ATTACK]
        parents[j] = h_hat
        if loss == 0.0:
            stats[CORRECT] += 1
            continue
        h_star = right_at
        stats[LOSS] += loss
        g[:] = 0.0
        add_arc(g, 1.0, h_star, j, stream, learned, rule.sign)
        add_arc(g, -1.0, h_hat, j, stream, learned, rule.sign)
        tau = 1.0
        if rule.update == PASSIVE_AGGRESSIVE:
            norm = 0.0
            margin = 0.0
            for d in range(D):
                norm += g[d] * g[d]
                margin += w[d] * g[d]
            if norm == 0.0:
                continue
            tau = (rule.C * loss - margin) / norm
            tau = min(tau, rule.cap)
            if tau <= 1e-12:
                continue
        stats[UPDATES] += 1
        stale = True
        past = np.float64(learned.step[0] - 1)
        for d in range(D):
            delta = tau * g[d]
            w[d] += delta
            u[d] += past * delta
