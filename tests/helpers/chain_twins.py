"""Chains in plain Python: every labelling of small ones, and the recursions of the kernels step by step."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray


def labellings(places: int, labels: int) -> NDArray[np.int64]:
    """All of them, a row each."""
    return np.array(list(product(range(labels), repeat=places)), np.int64).reshape(-1, places)


def scores_of(node: Any, edge: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    at = np.arange(node.shape[0])
    return np.array([node[at, row].sum() + edge[row[:-1], row[1:]].sum() for row in rows])


def viterbi(node: Any, edge: Any) -> tuple[list[int], float]:
    """best_k(y) = max_y' best_{k-1}(y') + edge(y', y) + node_k(y); ties to the lowest label."""
    best, back = node[0].copy(), []
    for t in range(1, len(node)):
        through = best[:, None] + edge
        back.append(through.argmax(axis=0))
        best = through.max(axis=0) + node[t]
    labels = [int(best.argmax())]
    for came in reversed(back):
        labels.append(int(came[labels[-1]]))
    return labels[::-1], float(best.max())


def max_entropy(mu: Any, pair: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """a(y) = product of the marginals of neighbours over those of places between them, 0/0 = 0 (spec 2.4)."""
    found = []
    for row in rows:
        mass = mu[0, row[0]]
        for t in range(1, len(row)):
            below = mu[t - 1, row[t - 1]]
            mass = mass * pair[t, row[t - 1], row[t]] / below if below > 0 else 0.0
        found.append(mass)
    return np.array(found)


def joint(x: Any, row: Any, labels: int) -> NDArray[np.float64]:
    """Features of a labelling as `ChainProblem` lays them out."""
    node, start, edge = np.zeros((labels, x.shape[1])), np.zeros(labels), np.zeros((labels, labels))
    for t, k in enumerate(row):
        node[k] += x[t]
        if t:
            edge[row[t - 1], k] += 1
        else:
            start[k] += 1
    return np.concatenate([node.ravel(), start, edge.ravel()])
