"""Representatives: members that left the referent window and can still be linked to, in a store of fixed size.

Whoever leaves the window takes a free place, or that of one whose cluster holds most: a flood crowds out itself, not
the rare. Within a cluster, priority decides who stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner
from netclust.kernels.linking.score import best_two, score_referents

if TYPE_CHECKING:
    from netclust.kernels.linking.link import Window

# What gives a member priority: chance, so that those of a cluster are a uniform sample of it (the k highest of random
# numbers); how many records linked to it; how close its verdict was.
RESERVOIR, MEDOID, DIFFICULTY = 0, 1, 2

DRAWS = 32  # places looked at when the store is full


class Kept(NamedTuple):
    """The store, in no order of arrival: places below `size[0]` are taken, and each stays taken."""

    member: Window  # never trusted: what has matured counts as such only in the window
    priority: NDArray[np.float32]
    size: NDArray[np.int64]  # [1]
    held: NDArray[np.int64]  # how many there are of the cluster in each slot of the summaries
    weight: NDArray[np.float32]  # the priority to be of the members of the window, beside its buffer


@borrowing(inner)
def _mix(h: Any) -> Any:
    """Scatter a number over all 64 bits (the finaliser of splitmix64)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@borrowing(inner)
def _draw(number: Any, k: Any) -> Any:
    """Return the k-th random number of a record, by its number in its partition: the same whenever it is asked for."""
    return _mix(_mix(np.uint64(number)) + np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15))


@borrowing(inner)
def first_weight(policy: Any, number: Any, score: Any) -> Any:
    """A record's priority when it comes. One that had nothing on a side to compare with is as hard as can be."""
    if policy == RESERVOIR:
        return np.float32(_draw(number, 0) >> np.uint64(40)) * np.float32(2.0**-24)
    if policy == DIFFICULTY and abs(score) < np.float32(np.inf):
        return np.float32(-abs(score))
    return np.float32(0)


@borrowing(inner)
def _kept_of_cluster(store: Any, clusters: Any, cluster: Any, slot: Any) -> Any:
    """Return how many of a cluster are kept; 1 if its summary was given up, since then nobody counts."""
    return store.held[slot] if clusters.ident[slot] == cluster else np.int64(1)


@borrowing(inner)
def _place_to_give_up(store: Any, clusters: Any, number: Any) -> Any:
    """Return (place, how many of its cluster are kept) of the lowest: most, then lowest priority, then oldest."""
    member = store.member
    room = len(member.label)
    at = most = np.int64(-1)
    for k in range(min(room, DRAWS)):
        place = np.int64(k) if room <= DRAWS else np.int64(_draw(number, k + 1) % np.uint64(room))
        many = _kept_of_cluster(store, clusters, member.cluster[place], member.slot[place])
        if many < most:
            continue
        if many == most:
            if store.priority[place] > store.priority[at]:
                continue
            if store.priority[place] == store.priority[at] and member.tick[place] >= member.tick[at]:
                continue
        at, most = place, many
    return at, most


@borrowing(inner)
def retain_representative(store: Any, win: Any, at: Any, number: Any, clusters: Any) -> None:
    """Keep a member that leaves the window, unless its cluster has its share and its priority is too low."""
    member = store.member
    cluster, slot = win.cluster[at], win.slot[at]
    to = store.size[0]
    if to < len(member.label):
        store.size[0] = to + 1
    else:
        own = _kept_of_cluster(store, clusters, cluster, slot)
        to, most = _place_to_give_up(store, clusters, number)
        if own > most or (own == most and store.weight[at] < store.priority[to]):
            return
        if clusters.ident[member.slot[to]] == member.cluster[to]:
            store.held[member.slot[to]] -= 1
    if clusters.ident[slot] == cluster:
        store.held[slot] += 1
    store.priority[to] = store.weight[at]
    for f in range(len(win.num)):
        member.num[f, to] = win.num[f, at]
    for s in range(len(win.code)):
        member.code[s, to] = win.code[s, at]
    member.unary[to] = win.unary[at]
    member.label[to] = win.label[at]
    member.truth[to] = win.truth[at]
    member.side[to] = win.side[at]
    member.trusted[to] = 0
    member.event[to] = win.event[at]
    member.origin[to] = win.origin[at]
    member.cluster[to] = cluster
    member.slot[to] = slot
    member.tick[to] = win.tick[at]
    member.time[to] = win.time[at]
    member.source[to] = win.source[at]
    member.seq[to] = win.seq[at]


@borrowing(inner)
def _oldest_equal(acc: Any, member: Any, at: Any, n: Any) -> Any:
    """Return the oldest member on the side that scores as the one at `at`. None of them lies before it."""
    if at < 0:
        return at
    best, side, first = acc[at], member.side[at], at
    for k in range(first + 1, n):
        if acc[k] == best and member.side[k] == side and member.tick[k] < member.tick[at]:
            at = k
    return at


@borrowing(inner)
def best_kept(x: Any, codes: Any, start: Any, matches: Any, scorer: Any, store: Any, acc: Any) -> Any:
    """The best normal and the best other of the kept: (score, place) of each, of equals the oldest."""
    member, n, lo = store.member, store.size[0], np.int64(0)
    score_referents(
        x, codes, start, matches, scorer.slope, scorer.far, member.num, member.code, member.unary, lo, n, acc
    )
    normal, normal_at, other, other_at = best_two(acc, member.side, lo, n)
    return normal, _oldest_equal(acc, member, normal_at, n), other, _oldest_equal(acc, member, other_at, n)
