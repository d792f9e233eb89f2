"""Records, alerts and a view of them, for tests of the console."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netclust.linking.verdicts import KNOWN_ATTACK, NORMAL, NOVEL, REFERENCE, ROOT, WINDOW, Verdicts
from netclust.records.batch import Batch
from netclust.stream.console.forest import LinkForest, Node


def batch_of(n: int, first: int = 0) -> Batch:
    """Records without attributes, a second apart."""
    made = Batch(num=np.zeros((n, 1), np.float32), code=np.zeros((n, 0), np.uint16))
    made.seq[:] = np.arange(first, first + n)
    made.time[:] = (first + np.arange(n)) * 10**9
    return made


def verdicts_of(parents: Sequence[int], cluster: int = 7, verdict: int = NOVEL) -> Verdicts:
    """Verdicts with these parents: -1 the root, below it references."""
    made = Verdicts.empty(len(parents))
    made.parent[:] = parents
    made.cluster[:] = cluster
    made.verdict[:] = verdict
    made.via[:] = [ROOT if p == -1 else REFERENCE if p < -1 else WINDOW for p in parents]
    made.label[:] = {NORMAL: 0, KNOWN_ATTACK: 1, NOVEL: -2}[verdict]
    made.score[:] = 1.5
    return made


def grown(forest: LinkForest, parents: Sequence[int], first: int = 0, **how: int) -> LinkForest:
    """The forest after some more records."""
    verdicts = verdicts_of(parents, **how)
    forest.take(first, batch_of(len(parents), first), verdicts, ["normal", "scan"], None, now=0)
    return forest


def saved_of(forest: LinkForest) -> list[Node]:
    """What of a forest is to be stored."""
    return forest.found(forest.to_save())
