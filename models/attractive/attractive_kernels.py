"""Attractive networks: agreements of cliques, the arcs of one expansion, roundings of relaxed labels, votes.

Cliques are rows: those of clique c are `members[at[c] : at[c + 1]]`; `g[v, k]` are scores of nodes, `attraction[c, k]`
what clique c adds where all its members have label k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel


@kernel
def attractive_agreements(at: Any, members: Any, y: Any, agreed: Any) -> None:
    """Fill `agreed` with the label that all members of a clique have, or -1."""
    for c in range(len(at) - 1):
        k = y[members[at[c]]]
        for p in range(at[c] + 1, at[c + 1]):
            if y[members[p]] != k:
                k = -1
                break
        agreed[c] = k


@inner
def _clique_parts(at: Any, members: Any, attraction: Any, y: Any, k: Any, c: Any) -> Any:
    """(members that could take k, what it adds if all take k, what it adds if all keep theirs)."""
    moving, first, same = 0, -1, True
    for p in range(at[c], at[c + 1]):
        label = y[members[p]]
        if label != k:
            moving += 1
        if first < 0:
            first = label
        same &= label == first
    keep = attraction[c, first] if same and moving > 0 else 0.0
    return moving, attraction[c, k], keep


@kernel
def count_expansion(at: Any, members: Any, attraction: Any, y: Any, k: Any) -> Any:
    """(arcs, helper nodes) that the cliques take in the expansion of label k from y."""
    arcs, helpers = 0, 0
    for c in range(len(at) - 1):
        moving, take, keep = _clique_parts(at, members, attraction, y, k, c)
        if moving == 2:
            arcs += take + keep > 0
        elif moving > 2:
            arcs += (take > 0) * (moving + 1) + (keep > 0) * (moving + 1)
            helpers += (take > 0) + (keep > 0)
    return arcs, helpers


@kernel
def fill_expansion(
    g: Any, at: Any, members: Any, attraction: Any, y: Any, k: Any, tail: Any, head: Any, capacity: Any
) -> Any:
    """The arcs of the expansion of label k from y: a node on the source's side takes k. Returns how many there are.

    Nodes 0 to n - 1 are the network's, n the source, n + 1 the sink, helpers follow. Two moving members: the directed
    gadget (source -> u: both take, u -> v: both, v -> sink: both keep). More: a helper on either side. What the cliques
    put on source and sink arcs is put together with the nodes' scores, one arc a node at most.
    """
    n = len(y)
    source, sink, helper, e = n, n + 1, n + 2, 0
    gain = np.empty(n)  # of taking k over keeping
    for v in range(n):
        gain[v] = g[v, k] - g[v, y[v]]
    low, high = np.zeros(n), np.zeros(n)  # capacities to the sink and from the source
    for c in range(len(at) - 1):
        moving, take, keep = _clique_parts(at, members, attraction, y, k, c)
        if moving == 0 or take + keep <= 0:
            continue
        if moving > 2:
            if take > 0:
                tail[e], head[e], capacity[e] = source, helper, take
                e += 1
                for p in range(at[c], at[c + 1]):
                    if y[members[p]] != k:
                        tail[e], head[e], capacity[e] = helper, members[p], take
                        e += 1
                helper += 1
            if keep > 0:
                tail[e], head[e], capacity[e] = helper, sink, keep
                e += 1
                for p in range(at[c], at[c + 1]):
                    tail[e], head[e], capacity[e] = members[p], helper, keep
                    e += 1
                helper += 1
            continue
        u, v = -1, -1
        for p in range(at[c], at[c + 1]):
            if y[members[p]] != k:
                if u < 0:
                    u = members[p]
                else:
                    v = members[p]
        high[u] += take
        if moving == 1:
            low[u] += keep
        else:
            low[v] += keep
            tail[e], head[e], capacity[e] = u, v, take + keep
            e += 1
    for v in range(n):
        if y[v] == k:
            continue
        balance = gain[v] + high[v] - low[v]
        if balance > 0:
            tail[e], head[e], capacity[e] = source, v, balance
            e += 1
        elif balance < 0:
            tail[e], head[e], capacity[e] = v, sink, -balance
            e += 1
    return e


@kernel
def round_by_draws(mu: Any, label: Any, threshold: Any, y: Any) -> Any:
    """Kleinberg and Tardos: each draw (label, threshold) is taken by nodes without a label with mu[v, label] >= it.

    `y` is -1 where a node has no label yet. Returns how many still have none.
    """
    left = 0
    for v in range(len(y)):
        left += y[v] < 0
    for t in range(len(label)):
        if left == 0:
            break
        for v in range(len(y)):
            if y[v] < 0 and mu[v, label[t]] >= threshold[t]:
                y[v] = label[t]
                left -= 1
    return left


@inner
def _promise(g: Any, at: Any, members: Any, attraction: Any, mu: Any, y: Any) -> Any:
    """A bound from below on what rounding goes on to, in the mean: the score of what is labelled, and chances.

    A clique of which the members R have no label yet ends in k with a chance of at least min over R of mu(k), over the
    sum over labels of the max over R of mu: the chance that the first draw that touches R is taken by all of R.
    """
    n, K = g.shape
    total = 0.0
    for v in range(n):
        if y[v] >= 0:
            total += g[v, y[v]]
        else:
            for k in range(K):
                total += mu[v, k] * g[v, k]
    for c in range(len(at) - 1):
        only, apart, free = -1, False, 0
        for p in range(at[c], at[c + 1]):
            label = y[members[p]]
            if label < 0:
                free += 1
            elif only < 0:
                only = label
            elif label != only:
                apart = True
                break
        if apart:
            continue
        if free == 0:
            total += attraction[c, only]
            continue
        touched, gained = 0.0, 0.0
        for k in range(K):
            low, high = np.inf, 0.0
            for p in range(at[c], at[c + 1]):
                v = members[p]
                if y[v] < 0:
                    low = min(low, mu[v, k])
                    high = max(high, mu[v, k])
            touched += high
            if only < 0 or only == k:
                gained += low * attraction[c, k]
        total += gained / touched
    return total


@kernel
def round_by_promise(g: Any, at: Any, members: Any, attraction: Any, mu: Any, y: Any) -> None:
    """The same rounding without chance: of all draws that change something, the one of the best promise is taken."""
    n, K = mu.shape
    trial = y.copy()
    while True:
        best, best_label, best_threshold = -np.inf, -1, 0.0
        for k in range(K):
            level = np.inf
            while True:  # the values of mu[:, k] of nodes without a label, from the top
                following = 0.0
                for v in range(n):
                    if y[v] < 0 and following < mu[v, k] < level:
                        following = mu[v, k]
                if following == 0.0:
                    break
                level = following
                for v in range(n):
                    trial[v] = k if y[v] < 0 and mu[v, k] >= level else y[v]
                found = _promise(g, at, members, attraction, mu, trial)
                if found > best:
                    best, best_label, best_threshold = found, k, level
        if best_label < 0:
            return
        for v in range(n):
            if y[v] < 0 and mu[v, best_label] >= best_threshold:
                y[v] = best_label


@kernel
def count_votes(at: Any, members: Any, y: Any, votes: Any) -> None:
    """Add to votes[v, k] the members with label k of every clique that v is in, v itself not counted."""
    for c in range(len(at) - 1):
        for p in range(at[c], at[c + 1]):
            for q in range(at[c], at[c + 1]):
                if p != q:
                    votes[members[p], y[members[q]]] += 1
