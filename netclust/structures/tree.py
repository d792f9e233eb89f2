"""The E structure: a rooted tree in which every record links to its best earlier record, or to the root.

Nodes are 0 (the root) and 1..n in order of arrival; an arc (i, j) goes from i to a later j. Whatever is known
of arcs is a matrix of shape [n, n+1] with arc (i, j) at `[j-1, i]`; only 0 <= i < j is read. A tree is its
parents: `h[j-1]` is the parent of node j. Arcs only point forward, so the best tree is the best arc into each
node.

>>> scores = np.array([[0, 0, 0, 0, 0], [0, 0.6, 0, 0, 0], [0, -0.4, 0.3, 0, 0], [0, 0.2, -0.5, -0.1, 0]])
>>> h = best_tree(scores)
>>> h.tolist(), tree_clusters(h).tolist(), round(arc_sum(scores, h), 9)
([0, 1, 2, 1], [0, 0, 0, 0], 1.1)
>>> h = gold_tree(scores, np.array([1, 2, 2, 1]))
>>> h.tolist(), tree_clusters(h).tolist()
([0, 0, 2, 1], [0, 1, 1, 0])

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of
Trento, 2018; the structure is in chapter 2, the max-violating tree is Algorithm 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Parents = NDArray[np.int64]
Labels = NDArray[np.integer]
Mask = NDArray[np.bool_]


def best_tree(scores: Matrix) -> Parents:
    """Algorithm 5: the best arc into each node; of equal ones the root, then the oldest.

    Give `w.phi` to predict, `w.phi + C*l` for the max-violating tree. An arc of score -inf is no candidate.
    """
    return _best_of(scores, candidate_arcs(len(scores)))


def gold_tree(scores: Matrix, y: Labels) -> Parents:
    """Return h*, the best tree that induces y: the first of a cluster takes the root, the others a member."""
    return _best_of(scores, gold_arcs(y))


def candidate_arcs(n: int) -> Mask:
    """Return the arcs of n nodes: from the root and from every earlier node.

    >>> candidate_arcs(2).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return np.tri(n, n + 1, dtype=np.bool_)


def gold_arcs(y: Labels, candidates: Mask | None = None) -> Mask:
    """Return the arcs of which every tree that induces y is made, and no other tree.

    Where not every arc is a candidate, the root is right for a node that has no earlier member among its candidates.

    >>> gold_arcs(np.array([7, 5, 7])).astype(int).tolist()
    [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    """
    n = len(y)
    arcs = np.zeros((n, n + 1), np.bool_)
    arcs[:, 1:] = np.tril(y[:, None] == y, -1)
    if candidates is not None:
        arcs &= candidates
    arcs[:, 0] = ~arcs.any(axis=1)
    return arcs


def tree_clusters(h: Parents) -> NDArray[np.int64]:
    """Return the cluster of each node, numbered from 0 by first appearance, in one left-to-right pass.

    >>> tree_clusters(np.array([0, 0, 2, 1, 0])).tolist()
    [0, 1, 1, 0, 2]
    """
    ids: list[int] = []
    new = 0
    for j, parent in enumerate(h.tolist(), start=1):
        if not 0 <= parent < j:
            raise ValueError(f"node {j} has parent {parent}: it must be the root (0) or an earlier node")
        ids.append(ids[parent - 1] if parent else new)
        new += not parent
    return np.array(ids, np.int64)


def arc_sum(matrix: Matrix, h: Parents) -> float:
    """Return the sum over the arcs of a tree: its score from a score matrix, its loss from a loss matrix."""
    return float(matrix[np.arange(len(h)), h].sum())


def _best_of(scores: Matrix, allowed: Mask) -> Parents:
    if scores.shape != allowed.shape:
        raise ValueError(f"scores of arcs have shape {scores.shape}, expected {allowed.shape}: one row per node")
    # argmax returns the first maximum, and the columns are in the order of the tie rule
    best: Parents = np.where(allowed, scores, -np.inf).argmax(axis=1)
    return best
