"""How a linker looks for the best referents: by scoring all, or by bounds of groups; the same answer, bit for bit.

The groups are made from the members and are no part of what a linker remembers: a snapshot does not have them, and they
are made again where they are missing.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.linking.linker import Linker, LinkerConfig
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> today = model.encoding.encode(simulate(900, seed=2, day=1).table())
>>> config = LinkerConfig.stream(referent_window=500)
>>> full, pruned = Linker(model, config, search="full"), Linker(model, config, search="pruned")
>>> full.process(today).score.tobytes() == pruned.process(today).score.tobytes()
True
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from netclust.kernels.linking import boxes
from netclust.kernels.linking import link as kernels
from netclust.kernels.linking.boxes import Index
from netclust.linking.search_index import new_index, new_scratch, with_own_scratch
from netclust.linking.state import PartitionState
from netclust.scoring.model import Model

Search = Literal["auto", "full", "pruned"]
"""`full` scores every referent; `pruned` only groups that can win; `auto` the latter, where and while it costs less."""

PRUNE_FROM = 4096
"""Fewer members of a window than this are scored sooner than bounded."""
REFERENCES_FROM = 16_384
"""Likewise of references: a site's warm-up adds thousands, and the larger kernel is not to be compiled just then."""


class ReferentSearch:
    """The groups of a linker's referents: of the reference set, and of each partition's window."""

    def __init__(self, search: Search, model: Model, kept: int, references: int, partitions: int) -> None:
        self.search = search
        self._model = model
        self._kept = kept
        self._how = self._choose(kept, PRUNE_FROM)
        self._references_how = self._choose(references, REFERENCES_FROM)
        self._scratches = [new_scratch(model) for _ in range(partitions)]
        self._references = [self._new(references if self._references_how else 0)]
        self._windows = [self._new(kept + 1 if self._how else 0) for _ in range(partitions)]
        self._references_changed = True
        self._changed = [False] * partitions

    def _choose(self, members: int, least: int) -> int:
        if self.search == "full" or members == 0:
            return kernels.FULL
        if self.search == "pruned":
            return kernels.PRUNED
        return kernels.CHEAPEST if members >= least else kernels.FULL

    def scratch(self, p: int) -> kernels.SearchScratch:
        """Return a partition's own scratch space: several partitions may search at a time."""
        return self._scratches[p]

    def _new(self, slots: int) -> Index:
        return new_index(self._model.scorer, self._scratches[0].steps, slots)

    def changed(self) -> None:
        """Sides of members have changed from outside of the kernel."""
        self._references_changed = True
        self._changed = [True] * len(self._changed)

    def references(self, refs: kernels.References, p: int) -> tuple[Index, int]:
        """The groups of the reference set, with room for a partition to search in, and how to search."""
        first = self._references[0]
        if self._references_changed and self._references_how:
            if first.tally[boxes.LOST]:
                first = self._new(len(refs.label))
            kernels.link_references_by_side(first, refs, self._scratches[0], self._model.scorer)
            self._references = [first]
        self._references_changed = False
        while len(self._references) <= p:
            self._references.append(with_own_scratch(first))
        return self._references[p], self._references_how

    def window(self, p: int, part: PartitionState) -> tuple[Index, int]:
        """The groups of a partition's window, and how to search."""
        if self._how and self._windows[p].tally[boxes.LOST]:
            self._windows[p] = self._new(self._kept + 1)  # filled by the kernel, from what the window holds
        elif self._changed[p] and self._how:
            kernels.link_window_by_side(
                self._windows[p], part.window, part.cursor, self._scratches[p], self._model.scorer
            )
        self._changed[p] = False
        return self._windows[p], self._how

    def take_over(self, old: ReferentSearch) -> None:
        """Continue with the groups of another search's windows, where their members are what they were."""
        before, now = (list[Any](search._model.scorer) for search in (old, self))
        same = all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))
        if old._how == self._how and same:
            self._scratches, self._windows, self._changed = old._scratches, old._windows, old._changed

    def work(self) -> dict[str, int]:
        """What searching has cost so far: bounds and scores of referents, and records that were searched by bounds."""
        tallies = sum((index.tally for index in [*self._references, *self._windows]), np.zeros(boxes.TALLIES, np.int64))
        return {
            "bounds_total": int(tallies[boxes.BOUNDED]),
            "scored_total": int(tallies[boxes.SCORED]),
        }
