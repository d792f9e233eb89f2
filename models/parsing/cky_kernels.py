"""CKY: the best binary tree over a sentence, and sums over all of them. Weights and scores add up; -inf is impossible.

A chart has a row a symbol for every span (s, e). The score of a tree is the sum of the weights of its rules and its
root, of `leaf` of its words' symbols, and for every node of `span` of the labels that its symbol stands for; a node
whose symbol is not that of `gold` at its span has `penalty` besides (gold -1: nothing there is right).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel


@kernel
def sum_span_features(features: Any, W: Any, span: Any) -> None:
    """span[s, e, k] += the weights W[f, k] of the features of a span; a feature of -1 is none."""
    n, K = features.shape[0], W.shape[1]
    for s in range(n):
        for e in range(s + 1, n + 1):
            for t in range(features.shape[2]):
                f = features[s, e, t]
                if f >= 0:
                    for k in range(K):
                        span[s, e, k] += W[f, k]


@kernel
def spread_span_features(features: Any, expected: Any, W: Any) -> None:
    """The other way round: W[f, k] += expected[s, e, k] for the features of a span."""
    n, K = features.shape[0], W.shape[1]
    for s in range(n):
        for e in range(s + 1, n + 1):
            for t in range(features.shape[2]):
                f = features[s, e, t]
                if f >= 0:
                    for k in range(K):
                        W[f, k] += expected[s, e, k]


@kernel
def tree_slots(
    rows: Any, features: Any, label_at: Any, label: Any, K: Any, root_at: Any, span_at: Any, sign: Any, keys: Any,
    n: Any,
) -> Any:  # fmt: skip
    """The weights that a derivation adds up, each as often as it does: doubled, plus `sign`, into keys[n:]; the new n.

    Rules come first among the weights, `root_at` is that of the derivation's root, and W of spans begins at `span_at`.
    """
    keys[n] = 2 * root_at + sign
    n += 1
    for i in range(len(rows)):
        s, e, A, r = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 4]
        if r >= 0:
            keys[n] = 2 * r + sign
            n += 1
        for t in range(features.shape[2]):
            f = np.int64(features[s, e, t])
            if f >= 0:
                for j in range(label_at[A], label_at[A + 1]):
                    keys[n] = 2 * (span_at + f * K + label[j]) + sign
                    n += 1
    return n


@inner
def _extra(s: Any, e: Any, A: Any, span: Any, label_at: Any, label: Any, gold: Any, penalty: Any) -> Any:
    """What a node of symbol A at (s, e) scores by itself."""
    value = 0.0
    for i in range(label_at[A], label_at[A + 1]):
        value += span[s, e, label[i]]
    if gold[s, e] != A:
        value += penalty
    return value


@kernel
def fill_viterbi(
    leaf: Any, span: Any, label_at: Any, label: Any, rule_at: Any, rules: Any, weight: Any, root: Any, gold: Any,
    penalty: Any, best: Any, split: Any, rule: Any,
) -> Any:  # fmt: skip
    """Spec 5: S*(s,e,A) = max over A -> B C and s < m < e of weight + S*(s,m,B) + S*(m,e,C). Of equal ones the first.

    Into `best` the chart, into `split` and `rule` how its values came about. Returns the root's symbol (-1: no tree).
    """
    n, N = leaf.shape
    live, lives = np.empty((n, n + 1, N), np.int32), np.zeros((n, n + 1), np.int64)
    best[:] = -np.inf
    for length in range(1, n + 1):
        for s in range(n - length + 1):
            e = s + length
            here = best[s, e]
            if length == 1:
                for A in range(N):
                    here[A] = leaf[s, A]
            for m in range(s + 1, e):
                lefts, rights = best[s, m], best[m, e]
                for i in range(lives[s, m]):
                    B = live[s, m, i]
                    for r in range(rule_at[B], rule_at[B + 1]):
                        right = rights[rules[r, 1]]
                        if right == -np.inf:
                            continue
                        A = rules[r, 2]
                        value = (lefts[B] + right) + weight[r]
                        if value > here[A]:
                            here[A] = value
                            split[s, e, A] = m
                            rule[s, e, A] = r
            count = 0
            for A in range(N):
                if here[A] > -np.inf:
                    here[A] += _extra(s, e, A, span, label_at, label, gold, penalty)
                    live[s, e, count] = A
                    count += 1
            lives[s, e] = count
    top, most = -1, -np.inf
    for A in range(N):
        value = best[0, n, A] + root[A]
        if value > most:
            top, most = A, value
    return top


@kernel
def read_back(s: Any, e: Any, symbol: Any, split: Any, rule: Any, rules: Any, rows: Any) -> None:
    """The tree below a node of the chart, parents first: [start, end, symbol, split, rule] into `rows`."""
    waiting = np.empty((e - s + 1, 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = s, e, symbol
    count, at = 1, 0
    while count > 0:
        count -= 1
        a, b, A = waiting[count, 0], waiting[count, 1], waiting[count, 2]
        rows[at, 0], rows[at, 1], rows[at, 2] = a, b, A
        rows[at, 3], rows[at, 4] = -1, -1
        if b > a + 1:
            m, r = split[a, b, A], rule[a, b, A]
            rows[at, 3], rows[at, 4] = m, r
            # waiting[count] is free again: the right part goes there, the left one on top of it
            waiting[count, 0], waiting[count, 1] = m, b
            waiting[count + 1, 0], waiting[count + 1, 1] = a, m
            waiting[count, 2] = rules[r, 1]
            waiting[count + 1, 2] = rules[r, 0]
            count += 2
        at += 1


@inner
def _log_add(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b))."""
    high, low = max(a, b), min(a, b)
    if low == -np.inf:
        return high
    return high + np.log1p(np.exp(low - high))


@kernel
def fill_inside(
    leaf: Any, span: Any, label_at: Any, label: Any, rule_at: Any, rules: Any, weight: Any, root: Any, inside: Any
) -> Any:
    """The same recursion with sums for maxima, in logarithms; returns log Z, the sum over all trees."""
    n, N = leaf.shape
    nowhere = np.full((n, n + 1), -1, np.int32)
    inside[:] = -np.inf
    for length in range(1, n + 1):
        for s in range(n - length + 1):
            e = s + length
            here = inside[s, e]
            if length == 1:
                for A in range(N):
                    here[A] = leaf[s, A]
            for m in range(s + 1, e):
                for B in range(N):
                    left = inside[s, m, B]
                    if left == -np.inf:
                        continue
                    for r in range(rule_at[B], rule_at[B + 1]):
                        right = inside[m, e, rules[r, 1]]
                        if right > -np.inf:
                            A = rules[r, 2]
                            here[A] = _log_add(here[A], (left + right) + weight[r])
            for A in range(N):
                if here[A] > -np.inf:
                    here[A] += _extra(s, e, A, span, label_at, label, nowhere, 0.0)
    total = -np.inf
    for A in range(N):
        if root[A] > -np.inf:
            total = _log_add(total, inside[0, n, A] + root[A])
    return total


@kernel
def fill_outside(
    inside: Any, span: Any, label_at: Any, label: Any, rule_at: Any, rules: Any, weight: Any, root: Any, log_z: Any,
    outside: Any, expected: Any,
) -> None:  # fmt: skip
    """What is around every node, in logarithms, and into `expected` how often each rule is expected in a tree."""
    n, N = inside.shape[0], inside.shape[2]
    nowhere = np.full((n, n + 1), -1, np.int32)
    outside[:] = -np.inf
    for A in range(N):
        outside[0, n, A] = root[A]
    for length in range(n, 1, -1):
        for s in range(n - length + 1):
            e = s + length
            around = np.full(N, -np.inf)
            for A in range(N):
                if outside[s, e, A] > -np.inf and inside[s, e, A] > -np.inf:
                    around[A] = outside[s, e, A] + _extra(s, e, A, span, label_at, label, nowhere, 0.0)
            for m in range(s + 1, e):
                for B in range(N):
                    left = inside[s, m, B]
                    if left == -np.inf:
                        continue
                    for r in range(rule_at[B], rule_at[B + 1]):
                        C, A = rules[r, 1], rules[r, 2]
                        right = inside[m, e, C]
                        if right == -np.inf or around[A] == -np.inf:
                            continue
                        here = around[A] + weight[r]
                        outside[s, m, B] = _log_add(outside[s, m, B], here + right)
                        outside[m, e, C] = _log_add(outside[m, e, C], here + left)
                        expected[r] += np.exp(here + left + right - log_z)
