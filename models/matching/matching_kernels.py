"""Edmonds' blossom algorithm: the matching of the highest weight in a general graph, O(n^3), in whole numbers.

Nodes count from 1, and 0 is nothing; numbers above the nodes are blossoms (odd cycles of tight edges, shrunk to one
node). Nodes and blossoms have prices; an edge is tight where the prices of its ends are twice its weight. A phase grows
alternating trees from all free nodes at once: an outer node's tight edge takes up a new node, closes a blossom or
completes an augmenting path; where no edge is tight, prices move until one is. A matching of tight edges that covers
every node whose price is above 0 is the heaviest.

Reference: Z. Galil, "Efficient algorithms for finding maximum matching in graphs", ACM Computing Surveys 18, 1986.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netclust.kernels.jit import inner, kernel

UNSEEN, OUTER, INNER = -1, 0, 1
NODES, TAKEN, QUEUED, SEARCHES = 0, 1, 2, 3  # places in `count`


class _State(NamedTuple):
    """What the parts work on. A blossom's `weight`, `tail` and `head` are those of its edge nearest to being tight."""

    weight: Any  # 0: no edge
    tail: Any
    head: Any
    price: Any
    match: Any  # the node at the other end of the matched edge
    slack: Any  # the outer node whose edge to this one is nearest to being tight
    top: Any  # the outermost blossom that a node is in; 0: the number is not used
    parent: Any  # the outer node through which an inner one was reached
    side: Any
    seen: Any
    through: Any  # through[b, v]: the member of blossom b that node v is in
    flower: Any  # members of blossoms in the order of the cycle, the base first
    size: Any
    queue: Any
    stack: Any
    pairs: Any
    count: Any


@inner
def _short(s: Any, a: Any, b: Any) -> Any:
    """How far the edge that stands for a and b is from being tight."""
    u, v = s.tail[a, b], s.head[a, b]
    return s.price[u] + s.price[v] - 2 * s.weight[u, v]


@inner
def _offer_slack(s: Any, u: Any, x: Any) -> None:
    if s.slack[x] == 0 or _short(s, u, x) < _short(s, s.slack[x], x):
        s.slack[x] = u


@inner
def _find_slack(s: Any, x: Any, n: Any) -> None:
    s.slack[x] = 0
    for u in range(1, n + 1):
        if s.weight[u, x] > 0 and s.top[u] != x and s.side[s.top[u]] == OUTER:
            _offer_slack(s, u, x)


@inner
def _enqueue(s: Any, x: Any, n: Any) -> None:
    """All nodes in x are to be looked at."""
    s.stack[0] = x
    open_ = 1
    while open_ > 0:
        open_ -= 1
        y = s.stack[open_]
        if y <= n:
            s.queue[s.count[QUEUED]] = y
            s.count[QUEUED] += 1
            continue
        for k in range(s.size[y]):
            s.stack[open_] = s.flower[y, k]
            open_ += 1


@inner
def _set_top(s: Any, x: Any, b: Any, n: Any) -> None:
    s.stack[0] = x
    open_ = 1
    while open_ > 0:
        open_ -= 1
        y = s.stack[open_]
        s.top[y] = b
        if y <= n:
            continue
        for k in range(s.size[y]):
            s.stack[open_] = s.flower[y, k]
            open_ += 1


@inner
def _even_place(s: Any, b: Any, member: Any) -> Any:
    """The place of a member in the cycle of b, which is turned round if that were odd."""
    place = 0
    while s.flower[b, place] != member:
        place += 1
    if place % 2 == 0:
        return place
    first, last = 1, s.size[b] - 1
    while first < last:
        s.flower[b, first], s.flower[b, last] = s.flower[b, last], s.flower[b, first]
        first += 1
        last -= 1
    return s.size[b] - place


@inner
def _set_match(s: Any, a: Any, b: Any, n: Any) -> None:
    """Match a by its edge to b, and what is inside a accordingly."""
    s.pairs[0, 0], s.pairs[0, 1] = a, b
    open_ = 1
    while open_ > 0:
        open_ -= 1
        x, y = s.pairs[open_, 0], s.pairs[open_, 1]
        s.match[x] = s.head[x, y]
        if x <= n:
            continue
        base = s.through[x, s.tail[x, y]]
        place = _even_place(s, x, base)
        for k in range(place):
            s.pairs[open_, 0], s.pairs[open_, 1] = s.flower[x, k], s.flower[x, k ^ 1]
            open_ += 1
        s.pairs[open_, 0], s.pairs[open_, 1] = base, y
        open_ += 1
        for k in range(s.size[x]):
            s.stack[k] = s.flower[x, (k + place) % s.size[x]]
        for k in range(s.size[x]):
            s.flower[x, k] = s.stack[k]


@inner
def _augment(s: Any, u: Any, v: Any, n: Any) -> None:
    """Flip the path from u up to its root, u now being matched by its edge to v."""
    while True:
        mate = s.top[s.match[u]]
        _set_match(s, u, v, n)
        if mate == 0:
            return
        up = s.top[s.parent[mate]]
        _set_match(s, mate, up, n)
        u, v = up, mate


@inner
def _common_ancestor(s: Any, u: Any, v: Any) -> Any:
    s.count[SEARCHES] += 1
    search = s.count[SEARCHES]
    while u != 0 or v != 0:
        if u != 0:
            if s.seen[u] == search:
                return u
            s.seen[u] = search
            u = s.top[s.match[u]]
            if u != 0:
                u = s.top[s.parent[u]]
        u, v = v, u
    return 0


@inner
def _half_cycle(s: Any, b: Any, x: Any, ancestor: Any, n: Any) -> None:
    """The members of blossom b on the way from x up to the ancestor."""
    while x != ancestor:
        mate = s.top[s.match[x]]
        s.flower[b, s.size[b]], s.flower[b, s.size[b] + 1] = x, mate
        s.size[b] += 2
        _enqueue(s, mate, n)
        x = s.top[s.parent[mate]]


@inner
def _shrink(s: Any, u: Any, ancestor: Any, v: Any, n: Any) -> None:
    """The cycle over u, v and their common ancestor becomes a blossom."""
    b = n + 1
    while b <= s.count[NODES] and s.top[b] != 0:
        b += 1
    s.count[NODES] = max(s.count[NODES], b)
    s.price[b] = 0
    s.side[b] = OUTER
    s.match[b] = s.match[ancestor]
    s.flower[b, 0] = ancestor
    s.size[b] = 1
    _half_cycle(s, b, u, ancestor, n)
    first, last = 1, s.size[b] - 1
    while first < last:
        s.flower[b, first], s.flower[b, last] = s.flower[b, last], s.flower[b, first]
        first += 1
        last -= 1
    _half_cycle(s, b, v, ancestor, n)
    _set_top(s, b, b, n)
    count = s.count[NODES]
    for x in range(1, count + 1):
        s.weight[b, x] = 0
        s.weight[x, b] = 0
    for x in range(1, n + 1):
        s.through[b, x] = 0
    for k in range(s.size[b]):
        member = s.flower[b, k]
        for x in range(1, count + 1):
            if s.weight[member, x] == 0:
                continue
            if s.weight[b, x] == 0 or _short(s, member, x) < _short(s, b, x):
                s.weight[b, x], s.tail[b, x], s.head[b, x] = s.weight[member, x], s.tail[member, x], s.head[member, x]
                s.weight[x, b], s.tail[x, b], s.head[x, b] = s.weight[x, member], s.tail[x, member], s.head[x, member]
        for x in range(1, n + 1):
            if s.through[member, x] != 0:
                s.through[b, x] = member
    _find_slack(s, b, n)


@inner
def _expand(s: Any, b: Any, n: Any) -> None:
    """An inner blossom whose price is 0 falls apart; the even way from where it was reached stays in the tree."""
    for k in range(s.size[b]):
        _set_top(s, s.flower[b, k], s.flower[b, k], n)
    reached = s.through[b, s.tail[b, s.parent[b]]]
    place = _even_place(s, b, reached)
    for k in range(0, place, 2):
        x, y = s.flower[b, k], s.flower[b, k + 1]
        s.parent[x] = s.tail[y, x]
        s.side[x], s.side[y] = INNER, OUTER
        s.slack[x] = 0
        _find_slack(s, y, n)
        _enqueue(s, y, n)
    s.side[reached] = INNER
    s.parent[reached] = s.parent[b]
    for k in range(place + 1, s.size[b]):
        x = s.flower[b, k]
        s.side[x] = UNSEEN
        _find_slack(s, x, n)
    s.top[b] = 0


@inner
def _take(s: Any, a: Any, b: Any, n: Any) -> Any:
    """A tight edge from an outer node; whether it completed an augmenting path."""
    inside = s.tail[a, b]
    u, v = s.top[inside], s.top[s.head[a, b]]
    if s.side[v] == UNSEEN:
        s.parent[v] = inside
        s.side[v] = INNER
        mate = s.top[s.match[v]]
        s.slack[v] = 0
        s.slack[mate] = 0
        s.side[mate] = OUTER
        _enqueue(s, mate, n)
    elif s.side[v] == OUTER:
        ancestor = _common_ancestor(s, u, v)
        if ancestor == 0:
            _augment(s, u, v, n)
            _augment(s, v, u, n)
            return True
        _shrink(s, u, ancestor, v, n)
    return False


@inner
def _scan(s: Any, n: Any) -> Any:
    """Take the tight edges of all outer nodes that wait; whether a path was found."""
    while s.count[TAKEN] < s.count[QUEUED]:
        u = s.queue[s.count[TAKEN]]
        s.count[TAKEN] += 1
        if s.side[s.top[u]] == INNER:
            continue
        for v in range(1, n + 1):
            if s.weight[u, v] == 0 or s.top[u] == s.top[v]:
                continue
            if _short(s, u, v) == 0:
                if _take(s, u, v, n):
                    return True
            else:
                _offer_slack(s, u, s.top[v])
    return False


@inner
def _move_prices(s: Any, n: Any) -> Any:
    """As far as all edges stay possible; False where a free node's price is 0: the matching is the heaviest."""
    step = np.int64(2**62)
    count = s.count[NODES]
    for x in range(1, count + 1):
        if s.top[x] != x:
            continue
        if x > n and s.side[x] == INNER:
            step = min(step, s.price[x] // 2)
        if s.slack[x] != 0:
            if s.side[x] == UNSEEN:
                step = min(step, _short(s, s.slack[x], x))
            elif s.side[x] == OUTER:
                step = min(step, _short(s, s.slack[x], x) // 2)
    for u in range(1, n + 1):
        if s.side[s.top[u]] == OUTER and s.price[u] <= step:
            return False
    for u in range(1, n + 1):
        if s.side[s.top[u]] == OUTER:
            s.price[u] -= step
        elif s.side[s.top[u]] == INNER:
            s.price[u] += step
    for b in range(n + 1, count + 1):
        if s.top[b] == b:
            if s.side[b] == OUTER:
                s.price[b] += 2 * step
            elif s.side[b] == INNER:
                s.price[b] -= 2 * step
    return True


@inner
def _phase(s: Any, n: Any) -> Any:
    """One more matched edge, or False where that would not be heavier."""
    for x in range(1, s.count[NODES] + 1):
        s.side[x] = UNSEEN
        s.slack[x] = 0
    s.count[TAKEN] = s.count[QUEUED] = 0
    for x in range(1, s.count[NODES] + 1):
        if s.top[x] == x and s.match[x] == 0:
            s.parent[x] = 0
            s.side[x] = OUTER
            _enqueue(s, x, n)
    if s.count[QUEUED] == 0:
        return False
    while True:
        if _scan(s, n):
            return True
        if not _move_prices(s, n):
            return False
        s.count[TAKEN] = s.count[QUEUED] = 0
        for x in range(1, s.count[NODES] + 1):
            near = s.slack[x]
            if s.top[x] == x and near != 0 and s.top[near] != x and _short(s, near, x) == 0 and _take(s, near, x, n):
                return True
        for b in range(n + 1, s.count[NODES] + 1):
            if s.top[b] == b and s.side[b] == INNER and s.price[b] == 0:
                _expand(s, b, n)


@kernel
def match_by_blossom(n: Any, left: Any, right: Any, weight: Any, partner: Any) -> None:
    """Set partner[v] to the node matched with v, or -1; nodes from 0, weights whole numbers above 0, edges once."""
    most = n + n // 2 + 2
    s = _State(
        np.zeros((most, most), np.int64),
        np.zeros((most, most), np.int32),
        np.zeros((most, most), np.int32),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros((most, n + 1), np.int32),
        np.zeros((most, n + 2), np.int32),
        np.zeros(most, np.int64),
        np.zeros(2 * most, np.int64),
        np.zeros(2 * most, np.int64),
        np.zeros((2 * most, 2), np.int64),
        np.zeros(4, np.int64),
    )
    s.count[NODES] = n
    heaviest = np.int64(0)
    for e in range(len(weight)):
        u, v = left[e] + 1, right[e] + 1
        s.weight[u, v] = s.weight[v, u] = weight[e]
        heaviest = max(heaviest, weight[e])
    for u in range(1, n + 1):
        for v in range(1, n + 1):
            s.tail[u, v], s.head[u, v] = u, v
        s.top[u] = u
        s.through[u, u] = u
        s.price[u] = heaviest
    while _phase(s, n):
        pass
    for u in range(1, n + 1):
        partner[u - 1] = s.match[u] - 1
