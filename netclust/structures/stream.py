"""Cluster the records of a batch by their best earlier links: what training rebuilds, without reference set or labels.

>>> from netclust.datasets.simulate import simulate
>>> from netclust.models.network import train_network
>>> model = train_network(simulate(2000, seed=1).table(), seed=0)
>>> tree = link_earlier(model, model.encoding.encode(simulate(300, seed=2).table()), window=100)
>>> int(tree.parents[0]), len(tree.clusters)  # the first record has only the root
(-1, 300)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.batch import Batch
from netclust.errors import InputError
from netclust.model import Model
from netclust.structures.tree import clusters


@dataclass(frozen=True, eq=False)
class LinkedBatch:
    """Parents (-1: the root), scores of the links, and the cluster of every record, numbered by first appearance."""

    parents: NDArray[np.int64]
    scores: NDArray[np.float32]
    clusters: NDArray[np.int64]


def link_earlier(model: Model, batch: Batch, window: int) -> LinkedBatch:
    """Link each record to its best among the `window` before it, or to the root (E structure, spec 3.1)."""
    from netclust.kernels.score import columns, unary_parts
    from netclust.kernels.tree import best_earlier_links

    if window < 1:
        raise InputError(f"a window has 1 record or more, not {window}")
    parents, scores = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.float32)
    code, scorer = columns(batch.code), model.scorer
    unary = unary_parts(code, scorer)
    root = model.root_scores(batch)
    best_earlier_links(columns(batch.num), code, unary, root, scorer, min(window, len(batch)), parents, scores)
    return LinkedBatch(parents, scores, np.asarray(clusters(parents + 1), np.int64))
