"""Chains of labels: the best one, max-marginals, sums over all of them, features, and steps of structured SMO.

A sequence is rows of `node`, the scores [L, K] of its labels by themselves; `edge` [K, K] scores a label (row) followed
by another (column) and is the same everywhere. Sequences lie one after the other, `offsets` tells where each begins.
Ties go to the lowest label, from the end of a sequence to its start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel

LARGEST, WEIGHTED, SHARED = 0, 1, 2
"""What gives mass in a step of structured SMO: the likeliest labelling with the clique value that lacks most score, or
most score times mass (spec 2.7); or all labellings with that value, or all, each by its share."""

NOTHING = 1e-14
"""Marginals below this are rounding, and are taken for 0."""


@inner
def _forward(node: Any, edge: Any, best: Any, back: Any) -> None:
    """best[t, k]: the highest score of labels up to t that end in k; back[t, k]: the label before."""
    L, K = node.shape
    for k in range(K):
        best[0, k] = node[0, k]
    for t in range(1, L):
        for k in range(K):
            value, at = best[t - 1, 0] + edge[0, k], 0
            for j in range(1, K):
                other = best[t - 1, j] + edge[j, k]
                if other > value:
                    value, at = other, j
            best[t, k] = value + node[t, k]
            back[t, k] = at


@inner
def _backward(node: Any, edge: Any, rest: Any) -> None:
    """rest[t, k]: the highest score of all labels after t, where t has label k."""
    L, K = node.shape
    for k in range(K):
        rest[L - 1, k] = 0.0
    for t in range(L - 2, -1, -1):
        for j in range(K):
            value = edge[j, 0] + node[t + 1, 0] + rest[t + 1, 0]
            for k in range(1, K):
                value = max(value, edge[j, k] + node[t + 1, k] + rest[t + 1, k])
            rest[t, j] = value


@inner
def _trace(best: Any, back: Any, labels: Any) -> Any:
    L, K = best.shape
    at = 0
    for k in range(1, K):
        if best[L - 1, k] > best[L - 1, at]:
            at = k
    value = best[L - 1, at]
    for t in range(L - 1, -1, -1):
        labels[t] = at
        if t:
            at = back[t, at]
    return value


@kernel
def chain_viterbi(node: Any, edge: Any, offsets: Any, labels: Any, value: Any) -> None:
    """Find the best labels of every sequence, and their score (spec 2.1)."""
    longest = 0
    for i in range(len(value)):
        longest = max(longest, offsets[i + 1] - offsets[i])
    best, back = np.empty((longest, node.shape[1])), np.zeros((longest, node.shape[1]), np.int64)
    for i in range(len(value)):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            value[i] = 0.0
            continue
        _forward(node[a:b], edge, best[: b - a], back[: b - a])
        value[i] = _trace(best[: b - a], back[: b - a], labels[a:b])


@kernel
def fill_chain_marginals(node: Any, edge: Any, offsets: Any, out: Any) -> None:
    """Fill out[t, k] with the highest score of its sequence's labels among those that have k at t."""
    K = node.shape[1]
    back = np.zeros(node.shape, np.int64)
    rest = np.empty(node.shape)
    for i in range(len(offsets) - 1):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        _forward(node[a:b], edge, out[a:b], back[a:b])
        _backward(node[a:b], edge, rest[a:b])
        for t in range(a, b):
            for k in range(K):
                out[t, k] += rest[t, k]


@kernel
def sum_product(node: Any, edge: Any, offsets: Any, marginal: Any, pairs: Any, log_z: Any) -> None:
    """Probabilities exp(score) / Z: of a label at a place, and in `pairs` those of neighbouring labels, summed.

    Scaled at every place, so that only the spread of `edge` must not be beyond what exp can tell (about 700).
    """
    T, K = node.shape
    top = edge.max()
    weight = np.exp(edge - top)
    ahead, scale, after, mass = np.empty((T, K)), np.empty(T), np.empty(K), np.empty((T, K))
    pairs[:] = 0.0
    for i in range(len(log_z)):
        a, b = offsets[i], offsets[i + 1]
        log_z[i] = 0.0
        for t in range(a, b):
            high = node[t].max()
            total = 0.0
            for k in range(K):
                mass[t, k] = np.exp(node[t, k] - high)
                ahead[t, k] = 1.0 if t == a else 0.0
            if t > a:
                for j in range(K):
                    for k in range(K):
                        ahead[t, k] += ahead[t - 1, j] * weight[j, k]
            for k in range(K):
                ahead[t, k] *= mass[t, k]
                total += ahead[t, k]
            for k in range(K):
                ahead[t, k] /= total
            scale[t] = total
            log_z[i] += np.log(total) + high + (top if t > a else 0.0)
        for k in range(K):
            if b > a:
                marginal[b - 1, k] = ahead[b - 1, k]
            after[k] = 1.0
        for t in range(b - 1, a, -1):
            for k in range(K):
                after[k] *= mass[t, k] / scale[t]
            for j in range(K):
                total = 0.0
                for k in range(K):
                    both = weight[j, k] * after[k]
                    pairs[j, k] += ahead[t - 1, j] * both
                    total += both
                mass[t, j] = total  # the place is done with: it holds what comes after the one before
                marginal[t - 1, j] = ahead[t - 1, j] * total
            for j in range(K):
                after[j] = mass[t, j]


@kernel
def add_chain_features(x: Any, offsets: Any, labels: Any, by: Any, node: Any, start: Any, edge: Any) -> None:
    """Add `by` times the features of labels: of nodes [K, m], of first labels [K], of neighbours [K, K]."""
    m = x.shape[1]
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            k = labels[t]
            for f in range(m):
                node[k, f] += by * x[t, f]
            if t == offsets[i]:
                start[k] += by
            else:
                edge[labels[t - 1], k] += by


@inner
def _mass_maxima(mu: Any, pair: Any, head: Any, tail: Any, came: Any, goes: Any) -> None:
    """Max-product on the distribution of the highest entropy that has these marginals (spec 2.4), as a Markov chain.

    head[t, k]: the highest mass of labels up to t that end in k; tail[t, k]: the highest share of that which goes on.
    """
    L, K = mu.shape
    for k in range(K):
        head[0, k] = mu[0, k]
        tail[L - 1, k] = 1.0
    for t in range(1, L):
        for k in range(K):
            head[t, k] = 0.0
            came[t, k] = 0
        for j in range(K):
            if mu[t - 1, j] <= 0.0:
                continue
            share = head[t - 1, j] / mu[t - 1, j]
            for k in range(K):
                value = share * pair[t, j, k]
                if value > head[t, k]:
                    head[t, k], came[t, k] = value, j
    for t in range(L - 2, -1, -1):
        for j in range(K):
            tail[t, j] = 0.0
            goes[t, j] = 0
            if mu[t, j] <= 0.0:
                continue
            for k in range(K):
                value = pair[t + 1, j, k] / mu[t, j] * tail[t + 1, k]
                if value > tail[t, j]:
                    tail[t, j], goes[t, j] = value, k


@inner
def _select(
    node: Any, edge: Any, mu: Any, pair: Any, best: Any, rest: Any, head: Any, tail: Any, top: Any, select: Any,
    tolerance: Any,
) -> Any:  # fmt: skip
    """The value of a clique (place t, labels j before it and k at it) that has mass and lacks most of the best score.

    KKT (spec 2.6): labels with mass score as high as any. A clique value without mass that scores too high needs no
    look of its own: the others of its clique then lack. Returns (t, j, k); t = -1 if nothing lacks.
    """
    L, K = node.shape
    at, before, here, most = -1, 0, 0, 0.0
    for t in range(min(1, L - 1), L):
        for j in range(K):
            if t > 0 and mu[t - 1, j] <= 0.0:
                continue
            share = head[t - 1, j] / mu[t - 1, j] if t > 0 else 1.0
            for k in range(K):
                mass = share * pair[t, j, k] * tail[t, k] if t > 0 else mu[t, k]
                if mass <= 0.0:
                    continue
                score = best[t - 1, j] + edge[j, k] + node[t, k] + rest[t, k] if t > 0 else node[t, k]
                lacks = top - score
                value = lacks
                if select == WEIGHTED:
                    value *= mass
                elif select == SHARED:
                    value *= pair[t, j, k] if t > 0 else mass
                if lacks > tolerance and value > most:
                    at, before, here, most = t, j, k, value
            if t == 0:
                break
    return at, before, here


@inner
def _point(labels: Any, q: Any, both: Any) -> None:
    """Marginals of one labelling."""
    q[:] = 0.0
    both[:] = 0.0
    for t in range(len(labels)):
        q[t, labels[t]] = 1.0
        if t:
            both[t, labels[t - 1], labels[t]] = 1.0


@inner
def _given(t: Any, j: Any, k: Any, mu: Any, pair: Any, q: Any, both: Any) -> None:
    """Marginals of all labellings with j before t and k at it, each by its share of the mass (spec 2.4)."""
    L, K = mu.shape
    q[:] = 0.0
    both[:] = 0.0
    q[t, k] = 1.0
    if t > 0:
        q[t - 1, j] = 1.0
        both[t, j, k] = 1.0
    for s in range(t - 1, 0, -1):
        for b in range(K):
            if q[s, b] > 0.0 and mu[s, b] > 0.0:
                for a in range(K):
                    both[s, a, b] = q[s, b] * pair[s, a, b] / mu[s, b]
                    q[s - 1, a] += both[s, a, b]
    for s in range(t + 1, L):
        for a in range(K):
            if q[s - 1, a] > 0.0 and mu[s - 1, a] > 0.0:
                for b in range(K):
                    both[s, a, b] = q[s - 1, a] * pair[s, a, b] / mu[s - 1, a]
                    q[s, b] += both[s, a, b]


@inner
def _expected(node: Any, edge: Any, q: Any, both: Any) -> Any:
    """The mean score under marginals."""
    L, K = node.shape
    total = 0.0
    for t in range(L):
        for k in range(K):
            total += q[t, k] * node[t, k]
            if t:
                for j in range(K):
                    total += both[t, k, j] * edge[k, j]
    return total


@inner
def _apart(up: Any, gram: Any, start: Any, q: Any, both: Any, counts: Any) -> Any:
    """|E f - f(up)|^2, E being the mean under marginals; E - f(up) is left in `q` and, of neighbours, in `counts`."""
    L, K = q.shape
    counts[:] = 0.0
    for t in range(L):
        q[t, up[t]] -= 1.0
        if t:
            counts[up[t - 1], up[t]] -= 1.0
            for j in range(K):
                for k in range(K):
                    counts[j, k] += both[t, j, k]
    total = 0.0
    for k in range(K):
        total += start * q[0, k] ** 2
        for t in range(L):
            if q[t, k] != 0.0:
                for s in range(L):
                    total += q[t, k] * q[s, k] * gram[t, s]
        for j in range(K):
            total += counts[j, k] ** 2
    return total


@inner
def _move(
    up: Any, mass: Any, q: Any, both: Any, counts: Any, C: Any, node: Any, edge: Any, gram: Any, start: Any, mu: Any,
    pair: Any,
) -> None:  # fmt: skip
    """Mass goes from those that `q` (less `up`) and `both` are the marginals of to `up`; scores and weights follow."""
    L, K = mu.shape
    for k in range(K):
        for t in range(L):
            if q[t, k] != 0.0:
                change = C * mass * q[t, k]
                for s in range(L):
                    node[s, k] += change * gram[s, t]
                mu[t, k] -= mass * q[t, k]
                if mu[t, k] < NOTHING:
                    mu[t, k] = 0.0
        node[0, k] += C * mass * start * q[0, k]
        for j in range(K):
            edge[j, k] += C * mass * counts[j, k]
    for t in range(1, L):
        for j in range(K):
            for k in range(K):
                if both[t, j, k] != 0.0:
                    pair[t, j, k] -= mass * both[t, j, k]
                    if pair[t, j, k] < NOTHING:
                        pair[t, j, k] = 0.0
        pair[t, up[t - 1], up[t]] += mass


@inner
def _likeliest(t: Any, j: Any, k: Any, came: Any, goes: Any, mu: Any, pair: Any, labels: Any) -> Any:
    """The labelling of the highest mass with j before t and k at it, and its mass."""
    L = len(labels)
    labels[t] = k
    if t > 0:
        labels[t - 1] = j
        for s in range(t - 1, 0, -1):
            labels[s - 1] = came[s, labels[s]]
    for s in range(t, L - 1):
        labels[s + 1] = goes[s, labels[s]]
    mass = mu[0, labels[0]]
    least = mass
    for s in range(1, L):
        share = pair[s, labels[s - 1], labels[s]]
        mass *= share / mu[s - 1, labels[s - 1]]
        least = min(least, share)
    return min(mass, least)


@kernel
def smo_steps(
    node: Any, edge: Any, gram: Any, start: Any, mu: Any, pair: Any, C: Any, steps: Any, select: Any, enough: Any,
    tolerance: Any,
) -> Any:  # fmt: skip
    """Steps of structured SMO on one example (spec 2.7): mass goes from labels that lack score to the best ones.

    `node` holds w.f plus the loss and `edge` the transition weights; both follow the marginals `mu` [L, K] and `pair`
    [L, K, K]. `gram` is k(x, x) of the nodes, `start` 1 where the first label has a weight. Returns the gap to the best
    labels as it was before the first step, and how many steps were made.
    """
    L, K = node.shape
    best, rest, head, tail = np.empty((L, K)), np.empty((L, K)), np.empty((L, K)), np.empty((L, K))
    back, came, goes = np.zeros((L, K), np.int64), np.zeros((L, K), np.int64), np.zeros((L, K), np.int64)
    up, down, counts = np.empty(L, np.int64), np.empty(L, np.int64), np.empty((K, K))
    q, both = np.empty((L, K)), np.empty((L, K, K))
    gap, made = 0.0, 0
    for step in range(steps):
        _forward(node, edge, best, back)
        top = _trace(best, back, up)
        now = top - _expected(node, edge, mu, pair)
        if step == 0:
            gap = now
        if now <= enough:
            break
        _backward(node, edge, rest)
        _mass_maxima(mu, pair, head, tail, came, goes)
        t, j, k = _select(node, edge, mu, pair, best, rest, head, tail, top, select, tolerance)
        if t < 0:
            break
        if select == SHARED:
            mass = pair[t, j, k] if t > 0 else mu[0, k]
            _given(t, j, k, mu, pair, q, both)
        else:
            mass = _likeliest(t, j, k, came, goes, mu, pair, down)
            _point(down, q, both)
        A = top - _expected(node, edge, q, both)
        B = C * _apart(up, gram, start, q, both, counts)
        delta = mass if B <= 0.0 else min(A / B, mass)
        if select == SHARED:
            gain = delta * A - delta * delta * B / 2
            q[:] = mu
            both[:] = pair
            B = C * _apart(up, gram, start, q, both, counts)
            share = min(1.0, now / max(B, tolerance))
            if share * now - share * share * B / 2 >= gain:
                delta = share
            else:
                _given(t, j, k, mu, pair, q, both)
                _apart(up, gram, start, q, both, counts)
        if delta <= 0.0:
            break
        made += 1
        _move(up, delta, q, both, counts, C, node, edge, gram, start, mu, pair)
    return gap, made


@kernel
def best_by_errors(node: Any, edge: Any, y: Any, out: Any) -> None:
    """out[e]: the highest score of labels that differ from y in exactly e places; -inf where there are none."""
    L, K = node.shape
    now, then = np.full((L + 1, K), -np.inf), np.full((L + 1, K), -np.inf)
    for k in range(K):
        now[int(k != y[0]), k] = node[0, k]
    for t in range(1, L):
        then[:] = -np.inf
        for e in range(t + 1):
            for j in range(K):
                if now[e, j] > -np.inf:
                    for k in range(K):
                        at = e + int(k != y[t])
                        then[at, k] = max(then[at, k], now[e, j] + edge[j, k] + node[t, k])
        now, then = then, now
    for e in range(L + 1):
        out[e] = now[e].max()
