"""The E structure on rows: `starts[j]:starts[j + 1]` are item j's pairs with the items right before it, oldest first.

An antecedent is the number of a row, -1 is the root. Arcs only point forward, so the best tree is the best row of each
item (Algorithm 5 of I. Haponchyk, PhD thesis, University of Trento, 2018).
"""

from __future__ import annotations

from typing import Any

from netclust.kernels.jit import inlined, kernel


@inlined
def _candidate(starts: Any, j: Any, row: Any) -> Any:
    """Return the earlier item of one of j's rows."""
    return j - (starts[j + 1] - row)


@inlined
def _has_own(starts: Any, labels: Any, j: Any) -> Any:
    """Return whether one of j's candidates is in its cluster."""
    row = starts[j]
    while row < starts[j + 1] and labels[_candidate(starts, j, row)] != labels[j]:
        row += 1
    return row < starts[j + 1]


@kernel
def best_antecedent_rows(starts: Any, scores: Any, chosen: Any) -> None:
    """Set chosen[j] to j's best row, or the root, which scores 0; of equal ones the root, then the oldest."""
    for j in range(len(chosen)):
        best, chosen[j] = 0.0, -1
        for row in range(starts[j], starts[j + 1]):
            if scores[row] > best:
                best, chosen[j] = scores[row], row


@kernel
def gold_antecedent_rows(starts: Any, scores: Any, labels: Any, chosen: Any) -> None:
    """Set chosen[j] to j's best row within its cluster, or the root where it has none."""
    for j in range(len(chosen)):
        best, chosen[j] = 0.0, -1
        for row in range(starts[j], starts[j + 1]):
            if labels[_candidate(starts, j, row)] == labels[j] and (chosen[j] < 0 or scores[row] > best):
                best, chosen[j] = scores[row], row


@kernel
def violating_antecedent_rows(
    starts: Any, scores: Any, labels: Any, within: Any, across: Any, root: Any, C: Any, chosen: Any
) -> None:
    """Search like `best_antecedent_rows` with C times the price of every arc on top. A root arc costs `root` where a
    link is right."""
    for j in range(len(chosen)):
        best, chosen[j] = 0.0, -1
        if _has_own(starts, labels, j):
            best = C * root
        for row in range(starts[j], starts[j + 1]):
            price = within if labels[_candidate(starts, j, row)] == labels[j] else across
            score = scores[row] + C * price
            if score > best:
                best, chosen[j] = score, row


@kernel
def price_rows(starts: Any, chosen: Any, labels: Any, within: Any, across: Any, root: Any, prices: Any) -> Any:
    """prices[j] = the price of j's arc; returns for how many items a link is right."""
    links = 0
    for j in range(len(chosen)):
        linked, row = _has_own(starts, labels, j), chosen[j]
        links += linked
        if row < 0:
            prices[j] = root if linked else 0.0
        elif labels[_candidate(starts, j, row)] == labels[j]:
            prices[j] = within
        else:
            prices[j] = across
    return links


@kernel
def follow_rows(starts: Any, chosen: Any, parents: Any, labels: Any) -> Any:
    """Node numbers of the parents (0 the root, i + 1 item i) and clusters by first appearance; returns how many."""
    count = 0
    for j in range(len(chosen)):
        if chosen[j] < 0:
            parents[j], labels[j] = 0, count
            count += 1
        else:
            i = _candidate(starts, j, chosen[j])
            parents[j], labels[j] = i + 1, labels[i]
    return count
