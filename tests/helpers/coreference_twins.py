"""Coreference metrics by their definitions, on sets, and plain twins of the kernels that count them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations, product
from typing import Any

from scipy.optimize import linear_sum_assignment

Sets = list[frozenset[Any]]
Four = tuple[float, float, float, float]


def letters(text: str) -> Sets:
    """Clusters written as words whose letters are mentions; a letter that was there before is left out."""
    seen: set[str] = set()
    found = []
    for word in text.split():
        found.append(frozenset(word) - seen)
        seen |= set(word)
    return [cluster for cluster in found if cluster]


def both_ways(one_way: Any, key: Sets, response: Sets) -> Four:
    return (*one_way(key, response), *one_way(response, key))


def muc(key: Sets, response: Sets) -> tuple[float, float]:
    parts = 0
    for k in key:
        met = [k & r for r in response if k & r]
        parts += len(met) + len(k.difference(*met))
    return sum(map(len, key)) - parts, sum(len(k) - 1 for k in key)


def b3(key: Sets, response: Sets) -> tuple[float, float]:
    recalled = 0.0
    for k in key:
        for mention in k:
            recalled += next((len(k & r) for r in response if mention in r), 0) / len(k)
    return recalled, sum(map(len, key))


def links(cluster: frozenset[Any]) -> set[frozenset[Any]]:
    """The pairs of a cluster, and of a singleton the link to itself."""
    return {frozenset(pair) for pair in combinations(cluster, 2)} or {cluster}


def lea(key: Sets, response: Sets) -> tuple[float, float]:
    theirs = set().union(*(links(r) for r in response))
    return sum(len(k) * len(links(k) & theirs) / len(links(k)) for k in key), sum(map(len, key))


def mentions(key: Sets, response: Sets) -> tuple[float, float]:
    ours, theirs = frozenset().union(*key), frozenset().union(*response)
    return len(ours & theirs), len(ours)


def together(clusters: Sets) -> set[frozenset[Any]]:
    return {frozenset(pair) for cluster in clusters for pair in combinations(cluster, 2)}


def apart(clusters: Sets) -> set[frozenset[Any]]:
    return {frozenset(pair) for a, b in combinations(clusters, 2) for pair in product(a, b)}


def kept(pairs: Any, key: Sets, response: Sets) -> tuple[float, float]:
    ours, theirs = pairs(key), pairs(response)
    return len(ours & theirs), len(ours)


def alike(k: frozenset[Any], r: frozenset[Any], by_mention: bool) -> float:
    return float(len(k & r)) if by_mention else 2.0 * len(k & r) / (len(k) + len(r))


def ceaf(key: Sets, response: Sets, by_mention: bool) -> Four:
    matrix = [[alike(k, r, by_mention) for r in response] for k in key] or [[]]
    total = sum(matrix[i][j] for i, j in zip(*linear_sum_assignment(matrix, maximize=True), strict=True))
    sizes = [sum(map(len, side)) if by_mention else len(side) for side in (key, response)]
    return total, sizes[0], total, sizes[1]


def best_by_trying(key: Sets, response: Sets, by_mention: bool) -> float:
    """The highest total over all one-to-one maps: for few clusters."""
    few, many = sorted((key, response), key=len)
    return max(
        sum(alike(a, b, by_mention) for a, b in zip(few, chosen, strict=True))
        for chosen in permutations(many, len(few))
    )


def plain_counts(key: Sets, response: Sets) -> dict[str, Four | tuple[Four, Four]]:
    """Every metric's sums, recall before precision."""
    return {
        "mentions": both_ways(mentions, key, response),
        "muc": both_ways(muc, key, response),
        "b3": both_ways(b3, key, response),
        "ceafm": ceaf(key, response, True),
        "ceafe": ceaf(key, response, False),
        "blanc": (
            (*kept(together, key, response), *kept(together, response, key)),
            (*kept(apart, key, response), *kept(apart, response, key)),
        ),
        "lea": both_ways(lea, key, response),
    }


def slow_cells(key: list[int], response: list[int]) -> list[tuple[int, int, int]]:
    """`cells_of`: row, column and size of every cell."""
    counted = Counter((k, r) for k, r in zip(key, response, strict=True) if k >= 0 and r >= 0)
    return [(*cell, counted[cell]) for cell in sorted(counted)]


def slow_sums(rows: list[int], columns: list[int], cells: list[tuple[int, int, int]]) -> list[Four]:
    """`sum_table`, with the same additions in the same order."""
    b3_recall = b3_precision = lea_recall = lea_precision = 0.0
    for k, r, n in cells:
        b3_recall += n * n / rows[k]
        b3_precision += n * n / columns[r]
        alone = float(rows[k] == columns[r] == 1)
        lea_recall += rows[k] * (n * (n - 1) // 2 / (rows[k] * (rows[k] - 1) // 2)) if rows[k] > 1 else alone
        lea_precision += (
            columns[r] * (n * (n - 1) // 2 / (columns[r] * (columns[r] - 1) // 2)) if columns[r] > 1 else alone
        )
    shared = [(k, r) for k, r, n in cells for _ in range(n)]
    linked = sum(a == b for a, b in combinations(shared, 2))
    unlike = sum(a[0] != b[0] and a[1] != b[1] for a, b in combinations(shared, 2))
    inside = [sum(n * (n - 1) // 2 for n in side) for side in (rows, columns)]
    across = [sum(a * b for a, b in combinations(side, 2)) for side in (rows, columns)]
    needed = [sum(n - 1 for n in side if n) for side in (rows, columns)]
    right, there = sum(n - 1 for *_, n in cells), [sum(rows), sum(columns)]
    return [
        (right, needed[0], right, needed[1]),
        (b3_recall, there[0], b3_precision, there[1]),
        (linked, inside[0], linked, inside[1]),
        (unlike, across[0], unlike, across[1]),
        (lea_recall, there[0], lea_precision, there[1]),
        (len(shared), there[0], len(shared), there[1]),
    ]


def slow_blocks(
    rows: list[int], columns: list[int], cells: list[tuple[int, int, int]], by_mention: bool
) -> tuple[float, list[list[int]], list[float]]:
    """`assignment_blocks`: clusters that share mentions are gathered until nothing joins any more."""
    blocks = [({k}, set()) for k in range(len(rows))]
    blocks += [(set(), {r}) for r in range(len(columns))]
    for k, r, _ in cells:
        one = next(block for block in blocks if k in block[0])
        other = next(block for block in blocks if r in block[1])
        if one is not other:
            blocks[min(blocks.index(one), blocks.index(other))] = (one[0] | other[0], one[1] | other[1])
            blocks = [block for block in blocks if block is not one and block is not other]
    value = {(k, r): float(n) if by_mention else 2.0 * n / (rows[k] + columns[r]) for k, r, n in cells}
    small, shapes, values = 0.0, [], []
    for ks, rs in blocks:
        matrix = [value.get((k, r), 0.0) for k in sorted(ks) for r in sorted(rs)]
        if min(len(ks), len(rs)) > 1:
            shapes.append([len(ks), len(rs)])
            values += matrix
        else:
            small += max(matrix, default=0.0)
    return small, shapes, values
