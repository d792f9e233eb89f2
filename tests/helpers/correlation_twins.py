"""Plain twins of the correlation clustering kernels, and the worked examples of the literature."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import numpy as np

from netclust.losses.partition_loss import mitre_loss, pairwise_loss
from netclust.structures.pairs import PairIndex, all_pairs, pair_count
from netclust.structures.partition import PairScores


def scores_of(*rows: list[float]) -> PairScores:
    """Scores from the rows of an upper triangle."""
    return PairScores(len(rows) + 1, np.array([v for row in rows for v in row], float))


FIG_3_1 = scores_of(
    [9, -9, 1, -7, -5, -2, -6, -8],
    [7, 9, -8, -3, -4, 8, -6],
    [9, -4, -3, -4, -9, -5],
    [-8, -4, -9, -9, -3],
    [4, 7, -3, -6],
    [6, -6, -5],
    [-8, -4],
    [4],
)
FIG_3_2 = scores_of([9, -4, -1, -7], [7, -3, -8], [2, -4], [9])
F2 = scores_of([1, -0.4, -1, 0.2], [0.9, -0.5, -0.3], [0.3, -0.6], [0.7])
F7 = scores_of([1, -0.1, -0.1], [1, 1], [-0.1])


def random_scores(seed: int, items: int, whole: bool = False) -> PairScores:
    """Normal scores, or small whole numbers, which sum without rounding and tie often."""
    random = np.random.default_rng(seed)
    pairs = pair_count(items)
    return PairScores(items, random.integers(-3, 4, pairs).astype(float) if whole else random.normal(size=pairs))


def stored(scores: PairScores, seed: int | None = None) -> PairScores:
    """The same scores with those of 0 left out, in an order of chance if there is a seed."""
    kept = np.flatnonzero(scores.values)
    if seed is not None:
        kept = np.random.default_rng(seed).permutation(kept)
    left, right = all_pairs(scores.items)
    return PairScores(scores.items, scores.values[kept], PairIndex(left[kept], right[kept]))


def partitions(m: int) -> Iterator[np.ndarray]:
    """Every partition of m items, as labels."""

    def grow(labels: list[int]) -> Iterator[np.ndarray]:
        if len(labels) == m:
            yield np.array(labels, np.int64)
            return
        for label in range(max(labels, default=-1) + 2):
            yield from grow([*labels, label])

    yield from grow([])


def plain_merges(matrix: np.ndarray) -> list[tuple[int, int, float]]:
    """Algorithm 3, looking at every pair every time."""
    S, alive, merges = matrix.copy(), list(range(len(matrix))), []
    while True:
        pairs = [(i, j) for k, i in enumerate(alive) for j in alive[k + 1 :] if S[i, j] > 0]
        if not pairs:
            return merges
        a, b = max(pairs, key=lambda p: (S[p], -p[0], -p[1]))
        merges.append((a, b, float(S[a, b])))
        alive.remove(b)
        S[a] += S[b]
        S[:, a] = S[a]


def plain_cost(within: float, loss: float, rescaling: str, weight: float, gold: float) -> float:
    """H, as the kernels count it."""
    return within + weight * loss if rescaling == "margin" else loss * (1.0 + within - gold)


def plain_violating(
    matrix: np.ndarray, y: np.ndarray, loss: str, rescaling: str, weight: float, gold: float
) -> list[tuple[int, int, float]]:
    """Algorithm 4, computing the loss of every merged partition anew."""
    delta = pairwise_loss if loss == "pairwise" else mitre_loss
    S, alive, labels, within = matrix.copy(), list(range(len(matrix))), np.arange(len(matrix)), 0.0
    cost = plain_cost(within, delta(y, labels), rescaling, weight, gold)
    merges = []
    while True:
        best, a, b = cost, -1, -1
        for k, i in enumerate(alive):
            for j in alive[k + 1 :]:
                merged = np.where(labels == j, i, labels)
                new = plain_cost(within + S[i, j], delta(y, merged), rescaling, weight, gold)
                if new > best:
                    best, a, b = new, i, j
        if a < 0:
            return merges
        merges.append((a, b, float(best - cost)))
        within, cost = within + S[a, b], best
        labels[labels == b] = a
        alive.remove(b)
        S[a] += S[b]
        S[:, a] = S[a]


def plain_moves(matrix: np.ndarray, labels: np.ndarray, order: np.ndarray, least: float) -> np.ndarray:
    """Items that move while they gain, with a queue of those that may have a reason."""
    labels, queue = labels.copy(), deque(int(i) for i in order)
    free = [c for c in range(len(labels) - 1, -1, -1) if c not in labels]
    while queue:
        i = queue.popleft()
        neighbours = np.flatnonzero(matrix[i])
        a, sums = labels[i], {}
        for j in neighbours:
            sums[labels[j]] = sums.get(labels[j], 0.0) + matrix[i, j]
        own = sums.pop(a, 0.0)
        to = min(sums, key=lambda c: (-sums[c], c), default=-1)
        if to >= 0 and sums[to] <= 0.0:
            to = -1
        if (sums[to] if to >= 0 else 0.0) - own <= least:
            continue
        if to < 0:
            to = free.pop()
        labels[i] = to
        if a not in labels:
            free.append(int(a))
        for j in neighbours:
            content = labels[j] == to if matrix[i, j] > 0 else labels[j] == a
            if not content and j not in queue:
                queue.append(int(j))
    return labels


class SplitMix:
    """The splitmix64 numbers, in whole Python numbers."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def share(self) -> float:
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return ((z ^ (z >> 31)) >> 11) / 2**53


def plain_annealing(matrix: np.ndarray, labels: np.ndarray, temperatures: np.ndarray, seed: int) -> np.ndarray:
    """Items that choose by chance among their neighbours' clusters and being alone."""
    labels, random = labels.copy(), SplitMix(seed)
    free = [c for c in range(len(labels) - 1, -1, -1) if c not in labels]
    for temperature in temperatures:
        for i in range(len(labels)):
            sums: dict[int, float] = {}
            for j in np.flatnonzero(matrix[i]):
                sums[int(labels[j])] = sums.get(int(labels[j]), 0.0) + float(matrix[i, j])
            highest = max(0.0, *sums.values()) if sums else 0.0
            alone = math.exp(-highest / temperature)
            chances = {c: math.exp((s - highest) / temperature) for c, s in sums.items()}
            whole = alone
            for chance in chances.values():
                whole += chance
            left, a, to = random.share() * whole - alone, int(labels[i]), -1
            if left >= 0:
                for c, chance in chances.items():
                    left -= chance
                    if left < 0:
                        to = c
                        break
            if to == a or (to < 0 and (labels == a).sum() == 1):
                continue
            labels[i] = free.pop() if to < 0 else to
            if a not in labels:
                free.append(a)
    return labels


def plain_violating_moves(
    matrix: np.ndarray, y: np.ndarray, labels: np.ndarray, loss: str, rescaling: str, weight: float, gold: float
) -> np.ndarray:
    """Items in turn go where H is highest, every H computed anew."""
    delta = pairwise_loss if loss == "pairwise" else mitre_loss
    m = len(labels)

    def cost(z: np.ndarray) -> float:
        within = float(np.triu(matrix * (z[:, None] == z[None, :]), 1).sum())
        return plain_cost(within, delta(y, z), rescaling, weight, gold)

    labels, quiet, i = labels.copy(), 0, 0
    while quiet < m:
        now = cost(labels)
        best, to = now + 1e-10 * max(1.0, abs(now)), -1
        empty = [c for c in range(m) if c not in labels][:1] if (labels == labels[i]).sum() > 1 else []
        for c in sorted({*labels.tolist(), *empty} - {int(labels[i])}):
            moved = labels.copy()
            moved[i] = c
            if cost(moved) > best:
                best, to = cost(moved), c
        quiet += 1
        if to >= 0:
            labels[i], quiet = to, 0
        i = (i + 1) % m
    return labels
