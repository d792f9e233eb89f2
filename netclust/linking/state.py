"""The linker's state as arrays: a referent window, representatives and a table of cluster summaries a partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.kernels.linking import link as kernels
from netclust.kernels.linking.representatives import Kept
from netclust.kernels.linking.score import LANES, score_columns, unary_parts
from netclust.scoring.model import Model

NANOSECONDS = 1_000_000_000
SPARE = 1024  # room in a small window's buffer
MAX_NUMBER = 1 << 62  # of records, clusters, events


@dataclass(eq=False)
class PartitionState:
    """What one partition remembers."""

    window: kernels.Window
    clusters: kernels.Clusters
    cursor: NDArray[np.int64]
    kept: Kept
    lent_to: WeakSet[Any] = field(default_factory=WeakSet)  # those that look at settled columns in the buffer

    def __getstate__(self) -> tuple[kernels.Window, kernels.Clusters, NDArray[np.int64], Kept]:
        """A copy of it is lent to nobody."""
        return self.window, self.clusters, self.cursor, self.kept

    def __setstate__(self, state: tuple[kernels.Window, kernels.Clusters, NDArray[np.int64], Kept]) -> None:
        """Come back from a copy."""
        self.window, self.clusters, self.cursor, self.kept = state
        self.lent_to = WeakSet()

    @property
    def live(self) -> slice:
        """The members of the referent window, oldest first."""
        return slice(int(self.cursor[kernels.START]), int(self.cursor[kernels.END]))

    @property
    def representatives(self) -> kernels.Window:
        """Those that left the window and can still be linked to, in no order; the arrays are the store's own."""
        return _cut(self.kept.member, int(self.kept.size[0]))

    def groups(self) -> tuple[tuple[kernels.Window, slice], tuple[kernels.Window, slice]]:
        """All that can be linked to besides the references: arrays and where in them, representatives first."""
        return (self.kept.member, slice(0, int(self.kept.size[0]))), (self.window, self.live)

    def copy_representatives(self) -> kernels.Window:
        """A copy of them in order of arrival: the records to come may push some out."""
        kept = self.representatives
        order = np.argsort(kept.tick)
        return kernels.Window(**{name: array[..., order] for name, array in kept._asdict().items()})

    def find(self, tick: int) -> tuple[NDArray[np.float32], NDArray[np.uint16]] | None:
        """The numbers and codes of the member with this arrival number, None if it cannot be linked to any more."""
        for members, live in self.groups():
            for at in np.flatnonzero(members.tick[live] == tick) + live.start:
                return members.num[:, at], members.code[:, at]
        return None

    def make_room(self) -> int:
        """How many records can be appended, after the live members were moved to the front if there was no room."""
        capacity, live = len(self.window.label), self.live
        if live.stop == capacity:
            old, lent = self.window, len(self.lent_to) > 0
            if lent:  # the old buffer stays as it is for them
                self.window, self.lent_to = _new_window(capacity, len(old.num), len(old.code)), WeakSet()
            for name, array in self.window._asdict().items():
                members = getattr(old, name)[..., live]
                array[..., : live.stop - live.start] = members if lent else members.copy()
            if len(self.kept.weight):
                self.kept.weight[: live.stop - live.start] = self.kept.weight[live].copy()
            self.cursor[kernels.START], self.cursor[kernels.END] = 0, live.stop - live.start
        return capacity - int(self.cursor[kernels.END])


def _new_window(capacity: int, features: int, coded: int) -> kernels.Window:
    """Return an empty referent window."""
    return kernels.Window(
        num=np.zeros((features, capacity + LANES), np.float32),
        code=np.zeros((coded, capacity + LANES), np.uint16),
        unary=np.zeros(capacity + LANES, np.float32),
        label=np.zeros(capacity, np.int32),
        truth=np.zeros(capacity, np.int32),
        side=np.zeros(capacity, np.uint8),
        trusted=np.zeros(capacity, np.uint8),
        event=np.zeros(capacity, np.int64),
        origin=np.zeros(capacity, np.int64),
        cluster=np.zeros(capacity, np.int64),
        slot=np.zeros(capacity, np.int64),
        tick=np.zeros(capacity, np.int64),
        time=np.zeros(capacity, np.int64),
        source=np.zeros(capacity, np.uint16),
        seq=np.zeros(capacity, np.uint64),
    )


def _new_kept(representatives: int, capacity: int, slots: int, features: int, coded: int) -> Kept:
    """Return an empty store of representatives beside a window's buffer; of 0, nothing."""
    return Kept(
        member=_new_window(representatives, features, coded),
        priority=np.zeros(representatives, np.float32),
        size=np.zeros(1, np.int64),
        held=np.zeros(slots if representatives else 0, np.int64),
        weight=np.zeros(capacity if representatives else 0, np.float32),
    )


def _new_clusters(classes: int, slots: int) -> kernels.Clusters:
    """Return summaries: one slot per reference class, and `slots` for clusters that hang on the root."""
    n = classes + slots
    # np.full, also for zeros: memory that is taken at the start does not grow later, when it is first touched.
    ident = np.full(n, -1, np.int64)
    ident[:classes] = np.arange(classes)
    label = np.full(n, kernels.NOVEL_LABEL, np.int32)
    label[:classes] = np.arange(classes)
    return kernels.Clusters(
        ident=ident,
        label=label,
        event=np.full(n, -1, np.int64),
        records=np.full(n, 0, np.int64),
        anomalous=np.full(n, 0, np.int64),
        alarm=np.full(n, kernels.NOVEL_LABEL, np.int32),
        alarm_tick=np.full(n, -1, np.int64),
        first_tick=np.full(n, 0, np.int64),
        last_tick=np.full(n, 0, np.int64),
        first_time=np.full(n, -1, np.int64),
        last_time=np.full(n, -1, np.int64),
        top_score=np.full(n, -np.inf, np.float32),
        used=np.full(n, 0, np.uint8),
    )


def new_partition(model: Model, kept: int, max_clusters: int, representatives: int = 0) -> PartitionState:
    """An empty partition whose window keeps `kept` records, and some of those that left it."""
    features, coded, classes = (
        len(model.encoding.kept),
        len(model.encoding.widths),
        len(model.encoding.labels),
    )
    # At least twice what is kept, so that moving the live part to the front costs at most one copy a record.
    capacity = kept + max(kept, SPARE) if kept else 0
    cursor = np.zeros(kernels.CURSORS, np.int64)
    cursor[kernels.HAND] = classes
    store = _new_kept(representatives if kept else 0, capacity, classes + max_clusters, features, coded)
    return PartitionState(_new_window(capacity, features, coded), _new_clusters(classes, max_clusters), cursor, store)


def new_references(model: Model) -> kernels.References:
    """The reference set, column by column."""
    ref = model.reference
    normal = model.encoding.label_table().is_normal[ref.label]
    code = score_columns(ref.code)
    return kernels.References(
        num=score_columns(ref.num),
        code=code,
        unary=unary_parts(code, model.scorer),
        label=ref.label.copy(),
        side=np.where(normal, kernels.NORMAL_SIDE, kernels.OTHER_SIDE).astype(np.uint8),
        cluster=ref.label.astype(np.int64),
        event=np.full(len(ref), -1, np.int64),
        origin=-2 - np.arange(len(ref), dtype=np.int64),
    )


# What never changes of a member of the window once it is there: a snapshot of changes leaves out the old ones'.
SETTLED = ("num", "code", "unary", "truth", "cluster", "slot", "tick", "time", "source", "seq")


def partition_arrays(state: PartitionState, p: int, since: int | None = None) -> Arrays:
    """What a snapshot keeps of a partition: live members, summaries in use, cursors.

    With `since`, an arrival number: what is settled of older members is left out. Settled columns are views: a copy of
    a large window takes long, and nothing changes in them while the partition is `lent_to` somebody.
    """
    live = state.live
    cursor = state.cursor.copy()
    cursor[kernels.START], cursor[kernels.END] = 0, live.stop - live.start  # where in the buffer does not matter
    arrays: Arrays = {f"{p}.cursor": cursor}
    new = live if since is None else slice(live.start + int(np.searchsorted(state.window.tick[live], since)), live.stop)
    for name, array in state.window._asdict().items():
        arrays[f"{p}.window.{name}"] = array[..., new] if name in SETTLED else array[..., live].copy()
    in_use = int(np.flatnonzero(state.clusters.ident >= 0)[-1]) + 1 if (state.clusters.ident >= 0).any() else 0
    for name, array in state.clusters._asdict().items():
        arrays[f"{p}.clusters.{name}"] = array[:in_use].copy()
    if len(state.kept.priority):  # in full, also with `since`: they are few
        for name, array in state.representatives._asdict().items():
            arrays[f"{p}.kept.{name}"] = array.copy()
        arrays[f"{p}.kept.priority"] = state.kept.priority[: state.kept.size[0]].copy()
        arrays[f"{p}.kept.weight"] = state.kept.weight[live].copy()
    return arrays


def _cut(members: kernels.Window, n: int) -> kernels.Window:
    """The first n members."""
    return kernels.Window(**{name: array[..., :n] for name, array in members._asdict().items()})


def join_partition(arrays: Arrays, base: Arrays, p: int, where: str) -> None:
    """Complete a snapshot of changes by the members that its base has."""
    new = arrays.get(f"{p}.window.tick")
    live = arrays.get(f"{p}.window.label")
    if new is None or live is None or len(new) > len(live):
        raise ModelError(f"{where}: does not hold the changes of partition {p}")
    old = len(live) - len(new)
    for name in SETTLED:
        change, before = arrays.get(f"{p}.window.{name}"), base.get(f"{p}.window.{name}")
        if change is None or before is None or before.shape[-1] < old or change.shape[:-1] != before.shape[:-1]:
            raise ModelError(f"{where}: its base does not hold the members of partition {p}")
        kept = before[..., before.shape[-1] - old :]
        arrays[f"{p}.window.{name}"] = np.concatenate([kept, change], axis=-1)


@dataclass(frozen=True)
class SnapshotLimits:
    """What the numbers of a snapshot must lie below."""

    tick: int
    labels: int
    events: int
    references: int
    kept: int
    trusted: int
    widths: NDArray[np.int64]

    def check_labels(self, label: NDArray[np.int32], event: NDArray[np.int64], where: str) -> None:
        """Refuse labels and events that do not exist."""
        if (label < kernels.NOVEL_LABEL).any() or (label >= self.labels).any():
            raise ModelError(f"{where}: names labels that it does not have")
        if (event < -1).any() or (event >= self.events).any():
            raise ModelError(f"{where}: names label events that it does not have")

    def check_members(self, win: kernels.Window, slots: int, where: str) -> None:
        """Refuse members with what does not exist."""
        if (win.slot < 0).any() or (win.slot >= slots).any():
            raise ModelError(f"{where}: a member names a cluster summary that does not exist")
        self.check_labels(win.label, win.event, where)
        if (win.truth >= self.labels).any() or (win.code >= self.widths[:, None]).any():
            raise ModelError(f"{where}: a member has a label or a value that does not exist")
        if (win.side > kernels.OTHER_SIDE).any() or (win.trusted > 1).any():
            raise ModelError(f"{where}: a member has a side that does not exist")
        if (win.side[win.trusted == 1] != kernels.NORMAL_SIDE).any():
            raise ModelError(f"{where}: a trusted member is not normal")
        if (win.origin < kernels.ROOT - self.references).any() or (win.origin >= self.tick).any():
            raise ModelError(f"{where}: a member has its label from one that does not exist")


def restore_references(refs: kernels.References, arrays: Arrays, limits: SnapshotLimits, where: str) -> None:
    """Give the reference set the labels of a snapshot."""
    for name, array in (("label", refs.label), ("side", refs.side), ("event", refs.event)):
        array[:] = container.require_array(arrays, f"refs.{name}", array.dtype, array.shape, where)
    limits.check_labels(refs.label, refs.event, where)
    if (refs.side > kernels.OTHER_SIDE).any():
        raise ModelError(f"{where}: a reference has a side that does not exist")


def restore_partition(state: PartitionState, arrays: Arrays, p: int, limits: SnapshotLimits, where: str) -> None:
    """Fill an empty partition from a snapshot, checking everything that an index is made from."""
    cursor = container.require_array(arrays, f"{p}.cursor", np.int64, (kernels.CURSORS,), where)
    pushed, classes = int(cursor[kernels.PUSHED]), int(state.cursor[kernels.HAND])
    progress = cursor[[kernels.REVEALED, kernels.MATURED]]
    if (cursor < 0).any() or (cursor >= MAX_NUMBER).any() or pushed > limits.tick or (progress > pushed).any():
        raise ModelError(f"{where}: the cursors are out of range")
    n = int(cursor[kernels.END])
    if cursor[kernels.START] != 0 or n > min(pushed, limits.kept):
        raise ModelError(f"{where}: the referent window does not fit the configuration")
    for name, array in state.window._asdict().items():
        shape = (*array.shape[:-1], n)
        array[..., :n] = container.require_array(arrays, f"{p}.window.{name}", array.dtype, shape, where)
    _restore_clusters(state.clusters, arrays, p, classes, limits, where)
    slots = len(state.clusters.ident)
    win = _cut(state.window, n)
    if not classes <= cursor[kernels.HAND] < slots:
        raise ModelError(f"{where}: names a cluster summary that does not exist")
    limits.check_members(win, slots, where)
    if int(win.trusted.sum()) != cursor[kernels.TRUSTED] or cursor[kernels.TRUSTED] > limits.trusted:
        raise ModelError(f"{where}: more or fewer trusted members than it says")
    if n and (win.tick[0] < 0 or win.tick[-1] >= limits.tick or (np.diff(win.tick) <= 0).any()):
        raise ModelError(f"{where}: the members are not in order of arrival")
    state.cursor[:] = cursor
    if len(state.kept.priority):
        _restore_kept(state, arrays, p, limits, where)


def _restore_kept(state: PartitionState, arrays: Arrays, p: int, limits: SnapshotLimits, where: str) -> None:
    """Fill an empty store of representatives beside a window that is restored already."""
    store, live = state.kept, state.live
    tick = arrays.get(f"{p}.kept.tick")
    n = -1 if tick is None else len(tick)
    if not 0 <= n <= min(len(store.priority), int(state.cursor[kernels.PUSHED]) - live.stop):
        raise ModelError(f"{where}: the representatives are missing, or more than the configuration allows")
    for name, array in (store.member._asdict() | {"priority": store.priority}).items():
        array[..., :n] = container.require_array(arrays, f"{p}.kept.{name}", array.dtype, (*array.shape[:-1], n), where)
    store.weight[live] = container.require_array(arrays, f"{p}.kept.weight", np.float32, (live.stop,), where)
    store.size[0] = n
    kept = state.representatives
    limits.check_members(kept, len(state.clusters.ident), where)
    before = int(state.window.tick[0]) if live.stop else limits.tick
    if (kept.tick < 0).any() or (kept.tick >= before).any() or len(np.unique(kept.tick)) < n or kept.trusted.any():
        raise ModelError(f"{where}: a representative is still in the window, there twice, or trusted")
    if np.isnan(store.priority).any() or np.isnan(store.weight).any():
        raise ModelError(f"{where}: a priority is not a number")
    counted = state.clusters.ident[kept.slot] == kept.cluster
    store.held[:] = np.bincount(kept.slot[counted], minlength=len(store.held))


def _restore_clusters(
    table: kernels.Clusters, arrays: Arrays, p: int, classes: int, limits: SnapshotLimits, where: str
) -> None:
    """Fill an empty table of summaries."""
    ident = arrays.get(f"{p}.clusters.ident")
    in_use = -1 if ident is None else len(ident)
    if not 0 <= in_use <= len(table.ident):
        raise ModelError(f"{where}: more cluster summaries than the configuration allows")
    for name, array in table._asdict().items():
        given = arrays.get(f"{p}.clusters.{name}")
        if given is None or given.dtype != array.dtype or given.shape != (in_use,):
            raise ModelError(f"{where}: {p}.clusters.{name} is missing or of the wrong shape")
        array[:in_use] = given
    if (table.ident[:classes] != np.arange(classes)).any() or (table.ident < -1).any():
        raise ModelError(f"{where}: the cluster summaries are not in their places")
    limits.check_labels(table.label, table.event, where)
    limits.check_labels(table.alarm, table.event, where)
