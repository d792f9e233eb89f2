"""Inference in fully connected binary networks, a batch at a time: f(y) = sum_u theta_u y_u + sum_{u<v} J_uv y_u y_v.

`theta` [n, l] has one row an example, `pair` [l, l] (symmetric, diagonal 0) is shared by all of them; `labels` [n, l]
is filled. Graph cuts, which need a flow, are in `binary_cut`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel

LOW = 10
"""Labels whose sums are tabulated together: 2^10 numbers stay in the first cache."""
DAMPING = 0.5
SWEEPS = 200
TOLERANCE = 1e-6
LEAST_GAIN = 1e-12
"""A flip must gain more than this share of the potentials: rounding must not make a label go on and off for ever."""


@inner
def _improve(theta: Any, pair: Any, y: Any, gain: Any) -> None:
    """Flip the label that gains most until none gains; `gain` [l] is what f gains by switching a label on."""
    count, least = len(theta), 0.0
    for u in range(count):
        gain[u] = theta[u]
        weight = abs(theta[u])
        for v in range(count):
            gain[u] += pair[u, v] * y[v]
            weight += abs(pair[u, v])
        least = max(least, LEAST_GAIN * weight)
    while True:
        best, at = least, -1
        for u in range(count):
            change = (1.0 - 2.0 * y[u]) * gain[u]
            if change > best:
                best, at = change, u
        if at < 0:
            return
        sign = 1.0 - 2.0 * y[at]
        y[at] += sign
        for v in range(count):
            gain[v] += sign * pair[at, v]


@kernel
def greedy_labels(theta: Any, pair: Any, labels: Any) -> None:
    """From no label at all, one flip at a time, the one of the largest gain (of equal ones the first)."""
    gain = np.empty(theta.shape[1])
    for i in range(len(theta)):
        labels[i] = 0.0
        _improve(theta[i], pair, labels[i], gain)


@inner
def _propagate(theta: Any, pair: Any, out: Any, into: Any, belief: Any, fresh: Any, change: Any) -> None:
    """Max-product messages as log-ratios, all at once; `out[u, v]` is what u tells v, `into` the same turned round.

    Leaves the beliefs. Loops go along rows and gather a label each, so that they are vectorised.
    """
    count = len(theta)
    out[:] = 0.0
    into[:] = 0.0
    belief[:] = theta
    for _ in range(SWEEPS):
        fresh[:] = theta
        change[:] = 0.0
        for u in range(count):
            for v in range(count):
                b = belief[u] - into[u, v]
                told = max(0.0, b + pair[u, v]) - max(0.0, b)  # 0 where v is u
                told = (1.0 - DAMPING) * told + DAMPING * out[u, v]
                change[v] = max(change[v], abs(told - out[u, v]))
                out[u, v] = told
                fresh[v] += told
        belief[:] = fresh
        most = 0.0
        for v in range(count):
            most = max(most, change[v])
        if most <= TOLERANCE:
            return
        for u in range(count):
            for v in range(count):
                into[u, v] = out[v, u]


@kernel
def lbp_labels(theta: Any, pair: Any, labels: Any) -> None:
    """Loopy belief propagation: damped, synchronous; a belief of exactly 0 is label 0."""
    n, count = theta.shape
    messages, work = np.empty((2, count, count)), np.empty((3, count))
    for i in range(n):
        _propagate(theta[i], pair, messages[0], messages[1], work[0], work[1], work[2])
        for u in range(count):
            labels[i, u] = 1.0 if work[0, u] > 0.0 else 0.0


@inner
def _value(theta: Any, pair: Any, y: Any) -> Any:
    """f(y) of whole labels."""
    total = 0.0
    for u in range(len(theta)):
        if y[u] > 0.0:
            total += theta[u]
            for v in range(u):
                if y[v] > 0.0:
                    total += pair[u, v]
    return total


@kernel
def combined_labels(theta: Any, pair: Any, labels: Any) -> None:
    """The better of greedy search and belief propagation; of equal ones the former."""
    n, count = theta.shape
    messages, work = np.empty((2, count, count)), np.empty((3, count))
    gain, other = np.empty(count), np.empty(count)
    for i in range(n):
        labels[i] = 0.0
        _improve(theta[i], pair, labels[i], gain)
        _propagate(theta[i], pair, messages[0], messages[1], work[0], work[1], work[2])
        for u in range(count):
            other[u] = 1.0 if work[0, u] > 0.0 else 0.0
        if _value(theta[i], pair, other) > _value(theta[i], pair, labels[i]):
            labels[i] = other


@inner
def _sums(theta: Any, first: Any, last: Any, sums: Any) -> None:
    """Of every subset of the labels first..last-1 (bit 0: the first of them) the sum of their potentials."""
    sums[0] = 0.0
    size = 1
    for u in range(first, last):
        for code in range(size):
            sums[size + code] = sums[code] + theta[u]
        size *= 2


@inner
def _pair_scores(pair: Any, scores: Any) -> None:
    """Of every subset of the labels the sum of its pairs: all rows share it."""
    count = len(pair)
    reach = np.empty(max(1, len(scores) // 2))
    scores[0] = 0.0
    size = 1
    for u in range(count):
        _sums(pair[u], 0, u, reach)
        for code in range(size):
            scores[size + code] = scores[code] + reach[code]
        size *= 2


@inner
def _write(code: Any, y: Any) -> None:
    for u in range(len(y)):
        y[u] = (code >> u) & 1


@inner
def _best_below(scores: Any, above: Any, below: Any, bar: Any, lane: Any, block_of: Any) -> Any:
    """The highest value at most `bar` and its code; of equal ones the lowest code, -1 where there is none.

    Codes are blocks of the same low labels: each keeps the best of its blocks, so that the loop is vectorised.
    """
    width = len(below)
    lane[:] = -np.inf
    block_of[:] = 0
    for block in range(len(above)):
        base, rest = block * width, above[block]
        for code in range(width):
            value = (scores[base + code] + rest) + below[code]
            better = (value > lane[code]) & (value <= bar)
            lane[code] = value if better else lane[code]
            block_of[code] = block if better else block_of[code]
    best, at = -np.inf, -1
    for code in range(width):
        full = block_of[code] * width + code
        if lane[code] > best or (lane[code] == best and full < at):
            best, at = lane[code], full
    return best, at


@kernel
def exact_labels(theta: Any, pair: Any, labels: Any) -> None:
    """The best of all 2^l labellings; of equal ones the lowest code (label u is bit u)."""
    n, count = theta.shape
    low = min(count, LOW)
    scores = np.empty(1 << count)
    _pair_scores(pair, scores)
    below, above = np.empty(1 << low), np.empty(1 << (count - low))
    lane, block_of = np.empty(1 << low), np.empty(1 << low, np.int64)
    for i in range(n):
        _sums(theta[i], 0, low, below)
        _sums(theta[i], low, count, above)
        _, code = _best_below(scores, above, below, np.inf, lane, block_of)
        _write(code, labels[i])


@kernel
def degraded_labels(theta: Any, pair: Any, offset: Any, rho: Any, labels: Any) -> None:
    """The best labelling whose value is at most rho times the best value; where there is none, the worst.

    Values are f(y) + offset_i, so that a loss's constant counts; of equal ones the lowest code.
    """
    n, count = theta.shape
    low = min(count, LOW)
    scores = np.empty(1 << count)
    _pair_scores(pair, scores)
    below, above = np.empty(1 << low), np.empty(1 << (count - low))
    lane, block_of = np.empty(1 << low), np.empty(1 << low, np.int64)
    for i in range(n):
        _sums(theta[i], 0, low, below)
        _sums(theta[i], low, count, above)
        above += offset[i]
        best, code = _best_below(scores, above, below, np.inf, lane, block_of)
        if rho < 1.0:
            _, code = _best_below(scores, above, below, rho * best, lane, block_of)
        if code < 0:
            _, code = _best_below(-scores, -above, -below, np.inf, lane, block_of)
        _write(code, labels[i])


@kernel
def count_better(theta: Any, pair: Any, value: Any, better: Any) -> None:
    """How many labellings have a value above the given one of their row (by more than rounding)."""
    n, count = theta.shape
    scores, sums = np.empty(1 << count), np.empty(1 << count)
    _pair_scores(pair, scores)
    for i in range(n):
        _sums(theta[i], 0, count, sums)
        bar, found = value[i] + 1e-9 * (1.0 + abs(value[i])), 0
        for code in range(1 << count):
            found += scores[code] + sums[code] > bar
        better[i] = found
