"""Feedback: labels that arrive late, for a record or for a cluster, and their undoing.

Events are applied in the order in which they count; of all that is said of a member, a true label of the stream
included, the last word is in force. A label is inherited by later records that link to the one that carries it. Every
member remembers which event its label comes from and which member that event was about: that is what undoing follows,
so that it restores what would be in force without the event, also when others came after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.kernels.linking import link as kernels
from netclust.linking.state import MAX_NUMBER, PartitionState

Scope = Literal["record", "cluster", "undo"]

Before = tuple[int, int, int, int]
"""The label, side, event and origin that a member had before."""

UNKNOWN: Before = (kernels.NOVEL_LABEL, kernels.OTHER_SIDE, -1, kernels.ROOT)


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
    undone: bool = False
    before: dict[int, Before] = msgspec.field(default_factory=dict)
    cluster_before: tuple[int, int] | None = None  # the label of the cluster's summary, and its event

    def fits(self, labels: int, events: int) -> bool:
        """Whether an event that was read from a snapshot can be one of so many, and its labels."""
        beneath = [(label, event) for label, _, event, _ in self.before.values()]
        if self.cluster_before is not None:
            beneath.append(self.cluster_before)
        handles = [*self.before, *(origin for *_, origin in self.before.values())]
        return (
            0 <= self.event < events
            and (self.scope == "undo" or 0 <= self.label < labels)
            and all(0 <= k < MAX_NUMBER for k in (self.from_tick, self.covered))
            and 0 <= self.source < 1 << 16
            and 0 <= self.number < 1 << 64
            and all(kernels.NOVEL_LABEL <= label < labels and -1 <= event < events for label, event in beneath)
            and all(0 <= side <= kernels.OTHER_SIDE for _, side, _, _ in self.before.values())
            and all(-MAX_NUMBER < handle < MAX_NUMBER for handle in handles)
        )

    @property
    def order(self) -> tuple[int, int]:
        """Events are applied in this order."""
        return self.from_tick, self.event


class LabelledMembers:
    """References and windows seen as one set of labelled members, addressed by handle."""

    def __init__(
        self,
        refs: kernels.References,
        partitions: list[PartitionState],
        is_normal: NDArray[np.bool_],
        *,
        maturing: bool,
    ) -> None:
        self.refs = refs
        self.partitions = partitions
        self.is_normal = is_normal
        self.maturing = maturing

    def side(self, label: int) -> int:
        """The side of a label."""
        return kernels.NORMAL_SIDE if label >= 0 and self.is_normal[label] else kernels.OTHER_SIDE

    def groups(
        self,
    ) -> Iterator[tuple[kernels.References | kernels.Window, NDArray[np.int64], slice, PartitionState | None]]:
        """References, then each partition's representatives and window: arrays, handles, live part, partition."""
        yield self.refs, self.refs.origin, slice(0, len(self.refs.label)), None
        for partition in self.partitions:
            for members, live in partition.groups():
                yield members, members.tick, live, partition

    def change(
        self,
        members: kernels.References | kernels.Window,
        at: int,
        to: Before,
        partition: PartitionState | None,
    ) -> Before:
        """Give one member a label, side, event and origin; return what it had. A trusted one will mature anew."""
        side = int(members.side[at])
        if partition is not None and isinstance(members, kernels.Window) and members.trusted[at]:
            members.trusted[at] = 0
            partition.cursor[kernels.TRUSTED] -= 1
            side = kernels.WITHHELD
        had = (int(members.label[at]), side, int(members.event[at]), int(members.origin[at]))
        members.label[at], members.side[at], members.event[at], members.origin[at] = to
        return had

    def without(self, undone: LabelEvent, handle: int, origin: int) -> Before:
        """What a member has without an event that was about the member `origin`."""
        label, side, event, beneath = undone.before.get(origin, UNKNOWN)
        if self.maturing and side == kernels.NORMAL_SIDE and handle != origin:
            side = kernels.WITHHELD  # what is inherited has to mature
        return label, side, event, beneath

    def mature_again(self) -> None:
        """Let the engine look at all members again: what may mature has changed."""
        for partition in self.partitions:
            partition.cursor[kernels.MATURED] = 0


def apply_label(event: LabelEvent, store: LabelledMembers) -> None:
    """Bring a label into force on the record or the cluster's members that can still be linked to."""
    side = store.side(event.label)
    for members, handles, live, partition in store.groups():
        if event.scope == "record":
            if isinstance(members, kernels.References):
                continue
            match = (members.seq[live] == event.number) & (members.source[live] == event.source)
        else:
            match = members.cluster[live] == event.number
        for at in np.flatnonzero(match) + live.start:
            handle = int(handles[at])
            event.before[handle] = store.change(members, int(at), (event.label, side, event.event, handle), partition)
    event.covered = len(event.before)
    if event.scope == "cluster":
        for partition in store.partitions:
            table = partition.clusters
            for slot in np.flatnonzero(table.ident == event.number):
                event.cluster_before = int(table.label[slot]), int(table.event[slot])
                table.label[slot], table.event[slot] = event.label, event.event
    store.mature_again()


def apply_undo(event: LabelEvent, undone: LabelEvent, others: list[LabelEvent], store: LabelledMembers) -> None:
    """Restore what is in force without `undone`, on its members and on all that inherited its label."""
    for members, handles, live, partition in store.groups():
        for at in np.flatnonzero(members.event[live] == undone.event) + live.start:
            to = store.without(undone, int(handles[at]), int(members.origin[at]))
            store.change(members, int(at), to, partition)
            event.covered += 1
    if undone.cluster_before is not None:
        for partition in store.partitions:
            table = partition.clusters
            for slot in np.flatnonzero(table.event == undone.event):
                table.label[slot], table.event[slot] = undone.cluster_before
    # A later event that covered the undone label must not bring it back when it is undone itself.
    for later in others:
        for handle, had in later.before.items():
            if had[2] == undone.event:
                later.before[handle] = store.without(undone, handle, had[3])
        if later.cluster_before is not None and later.cluster_before[1] == undone.event:
            later.cluster_before = undone.cluster_before
    undone.undone = True
    store.mature_again()
