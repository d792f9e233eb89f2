"""Splits of labelled collections into training and test sets, for experiments in supervised clustering.

No cluster of a test set is in training: what is measured is whether the learned likeness carries over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from netclust.datasets.item_sets import ItemTable, read_items
from netclust.datasets.set_splits import drawn_sets, whole_cluster_sets
from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
from netclust.models.clustering.train_clusterer import Example
from netclust.models.experiments.clustering.correlation_table import ItemSetSplit

__all__ = ["Citations", "Generated", "Newsgroups"]

CITATION_FEATURES = TextFeatures(fields=("3", "5", "7", "10"), words=(1, 2), missing=False)
NEWSGROUP_FEATURES = TextFeatures(
    fields=("text", "quoted", "subject", "from", "organization"),
    words=(1,),
    stem=True,
    sublinear=True,
    common=0.2,
    missing=False,
)


@dataclass(frozen=True)
class Citations:
    """cora: every set has 60 to 120 citations of whole clusters; half of the sets are for training."""

    path: str
    low: int = 60
    high: int = 120

    def __call__(self, seed: int) -> ItemSetSplit:
        """Group all citations anew, and deal the groups."""
        table = _items(self.path, "2", CITATION_FEATURES.fields)
        sets = whole_cluster_sets(table.clusters(), self.low, self.high, seed)
        order = np.random.default_rng([seed, 0xC0]).permutation(len(sets))
        half = len(sets) // 2
        train, test = ([table.rows(sets[k]) for k in part] for part in (order[:half], order[half:]))
        return text_split(CITATION_FEATURES, train, test)


@dataclass(frozen=True)
class Newsgroups:
    """20 newsgroups: sets of 100 posts from 5 to 10 groups; half of the groups are for training."""

    path: str
    sets: int = 10
    items: int = 100

    def __call__(self, seed: int) -> ItemSetSplit:
        """Deal the groups, then draw posts."""
        table = _items(self.path, None, NEWSGROUP_FEATURES.fields)
        labels = table.clusters()
        groups = np.random.default_rng([seed, 0x20]).permutation(int(labels.max()) + 1)
        half = len(groups) // 2
        train, test = (
            [
                table.rows(rows)
                for rows in drawn_sets(labels, self.items, 5, half, self.sets, seed, clusters=part.tolist())
            ]
            for part in (groups[:half], groups[half:])
        )
        return text_split(NEWSGROUP_FEATURES, train, test)


@dataclass(frozen=True)
class Generated:
    """Sets of a generator of `netclust.datasets.simulators.synthetic_sets`, half of them for training."""

    make: Callable[..., Example]
    sets: int = 10

    def __call__(self, seed: int) -> ItemSetSplit:
        """Generate all sets anew."""
        made = [self.make(seed=seed * 1000 + n) for n in range(2 * self.sets)]
        return ItemSetSplit(made[: self.sets], made[self.sets :])


def text_split(spec: TextFeatures, train: list[ItemTable], test: list[ItemTable]) -> ItemSetSplit:
    """Pair features of text sets; how rare words are is learned from the training sets alone."""
    text = TextPairs.fit(spec, train)
    return ItemSetSplit(*([(text.build(table), table.clusters()) for table in part] for part in (train, test)))


@lru_cache(maxsize=2)
def _items(path: str, label: str | None, fields: tuple[str, ...]) -> ItemTable:
    return read_items(path, label=label, fields=fields)
