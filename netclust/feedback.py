"""Feedback: labels that arrive late, for a record or for a cluster, and their undoing.

Events are applied in the order in which they count. A label is inherited by later records that link to the one that
carries it, and every member remembers which event its label comes from: that is what undoing follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.kernels import link as kernels
from netclust.state import PartitionState

Scope = Literal["record", "cluster", "undo"]

Before = tuple[int, int, int]
"""The label, side and event that a member had before."""


class LabelEvent(msgspec.Struct, kw_only=True):
    """One piece of feedback: what it is about, what it says, and from which arrival number on it counts.

    `covered` is how many referents it changed when it came into force. For `undo`, `number` is the event undone.
    """

    event: int
    scope: Scope
    from_tick: int
    label: int = -1
    source: int = 0
    number: int = 0
    covered: int = 0
    applied: bool = False
    before: dict[int, Before] = msgspec.field(default_factory=dict)
    fallback: Before | None = None


class Store:
    """References and windows seen as one set of labelled members, addressed by handle."""

    def __init__(
        self, refs: kernels.References, partitions: list[PartitionState], is_normal: NDArray[np.bool_]
    ) -> None:
        self.refs = refs
        self.partitions = partitions
        self.is_normal = is_normal

    def side(self, label: int) -> int:
        """The side of a label."""
        return kernels.NORMAL_SIDE if label >= 0 and self.is_normal[label] else kernels.OTHER_SIDE

    def groups(
        self,
    ) -> Iterator[tuple[kernels.References | kernels.Window, NDArray[np.int64], slice, PartitionState | None]]:
        """The reference set, then each partition's live window: arrays, handles, live part, partition."""
        yield (
            self.refs,
            -2 - np.arange(len(self.refs.label), dtype=np.int64),
            slice(0, len(self.refs.label)),
            None,
        )
        for partition in self.partitions:
            yield partition.window, partition.window.tick, partition.live, partition

    def change(
        self,
        members: kernels.References | kernels.Window,
        at: int,
        to: Before,
        partition: PartitionState | None,
    ) -> Before:
        """Give one member a label, side and event; return what it had."""
        had = (int(members.label[at]), int(members.side[at]), int(members.event[at]))
        members.label[at], members.side[at], members.event[at] = to
        if partition is not None and partition.window.trusted[at] and to[1] != kernels.NORMAL_SIDE:
            partition.window.trusted[at] = 0
            partition.cursor[kernels.TRUSTED] -= 1
        return had


def apply_label(event: LabelEvent, store: Store) -> None:
    """Bring a label into force on the record or the cluster's members that can still be linked to."""
    to = (event.label, store.side(event.label), event.event)
    for members, handles, live, partition in store.groups():
        if event.scope == "record":
            if partition is None:
                continue
            window = partition.window
            match = (window.seq[live] == event.number) & (window.source[live] == event.source)
        else:
            match = members.cluster[live] == event.number
        for at in np.flatnonzero(match) + live.start:
            event.before[int(handles[at])] = store.change(members, int(at), to, partition)
    event.covered = len(event.before)
    if event.scope == "cluster":
        for partition in store.partitions:
            for slot in np.flatnonzero(partition.clusters.ident == event.number):
                label = int(partition.clusters.label[slot])
                event.fallback = (label, store.side(label), -1)
                partition.clusters.label[slot] = event.label
    elif event.before:
        event.fallback = next(iter(event.before.values()))
    event.applied = True


def apply_undo(event: LabelEvent, undone: LabelEvent, others: list[LabelEvent], store: Store) -> None:
    """Restore what was in force before `undone`, on its members and on all that inherited its label."""
    fallback = undone.fallback or (kernels.NOVEL_LABEL, kernels.OTHER_SIDE, -1)
    for members, handles, live, partition in store.groups():
        for at in np.flatnonzero(members.event[live] == undone.event) + live.start:
            to = undone.before.get(int(handles[at]), fallback)
            store.change(members, int(at), to, partition)
            event.covered += 1
    if undone.scope == "cluster" and undone.fallback is not None:
        in_force = any(
            e.applied and e.scope == "cluster" and e.number == undone.number and e.event > undone.event for e in others
        )
        if not in_force:
            for partition in store.partitions:
                partition.clusters.label[partition.clusters.ident == undone.number] = undone.fallback[0]
    # A later event that covered the undone label must not bring it back when it is undone itself.
    for later in others:
        for handle, had in later.before.items():
            if had[2] == undone.event:
                later.before[handle] = undone.before.get(handle, fallback)
        if later.fallback is not None and later.event > undone.event:
            same_cluster = later.scope == "cluster" == undone.scope and later.number == undone.number
            if later.fallback[2] == undone.event or (same_cluster and later.fallback[0] == undone.label):
                later.fallback = fallback
    event.applied = True
