"""The linker's state as arrays: one referent window and one table of cluster summaries a partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust import container
from netclust.container import Arrays
from netclust.errors import ModelError
from netclust.kernels import link as kernels
from netclust.model import Model

NANOSECONDS = 1_000_000_000


@dataclass(eq=False)
class PartitionState:
    """What one partition remembers."""

    window: kernels.Window
    clusters: kernels.Clusters
    cursor: NDArray[np.int64]

    @property
    def live(self) -> slice:
        """The members of the referent window, oldest first."""
        return slice(int(self.cursor[kernels.START]), int(self.cursor[kernels.END]))


def new_window(capacity: int, features: int, coded: int) -> kernels.Window:
    """An empty referent window."""
    return kernels.Window(
        num=np.zeros((features, capacity), np.float32),
        code=np.zeros((coded, capacity), np.uint16),
        label=np.zeros(capacity, np.int32),
        truth=np.zeros(capacity, np.int32),
        side=np.zeros(capacity, np.uint8),
        trusted=np.zeros(capacity, np.uint8),
        event=np.zeros(capacity, np.int64),
        cluster=np.zeros(capacity, np.int64),
        slot=np.zeros(capacity, np.int64),
        tick=np.zeros(capacity, np.int64),
        time=np.zeros(capacity, np.int64),
        source=np.zeros(capacity, np.uint16),
        seq=np.zeros(capacity, np.uint64),
    )


def new_clusters(classes: int, slots: int) -> kernels.Clusters:
    """Summaries: one slot a reference class, and `slots` for clusters that hang on the root."""
    n = classes + slots
    ident = np.full(n, -1, np.int64)
    ident[:classes] = np.arange(classes)
    label = np.full(n, kernels.NOVEL_LABEL, np.int32)
    label[:classes] = np.arange(classes)
    return kernels.Clusters(
        ident=ident,
        label=label,
        records=np.zeros(n, np.int64),
        anomalous=np.zeros(n, np.int64),
        first_tick=np.zeros(n, np.int64),
        last_tick=np.zeros(n, np.int64),
        first_time=np.full(n, -1, np.int64),
        last_time=np.full(n, -1, np.int64),
        top_score=np.full(n, -np.inf, np.float32),
        used=np.zeros(n, np.uint8),
    )


def new_partition(model: Model, kept: int, max_clusters: int) -> PartitionState:
    """An empty partition whose window keeps `kept` records."""
    features, coded, classes = (
        len(model.encoding.kept),
        len(model.encoding.widths),
        len(model.encoding.labels),
    )
    # Twice what is kept, so that moving the live half to the front costs one copy a record.
    capacity = max(2 * kept, 64) if kept else 0
    cursor = np.zeros(kernels.CURSORS, np.int64)
    cursor[kernels.HAND] = classes
    return PartitionState(new_window(capacity, features, coded), new_clusters(classes, max_clusters), cursor)


def new_references(model: Model) -> kernels.References:
    """The reference set, column by column."""
    ref = model.reference
    normal = model.encoding.label_table().is_normal[ref.label]
    return kernels.References(
        num=np.ascontiguousarray(ref.num.T),
        code=np.ascontiguousarray(ref.code.T),
        label=ref.label.copy(),
        side=np.where(normal, kernels.NORMAL_SIDE, kernels.OTHER_SIDE).astype(np.uint8),
        cluster=ref.label.astype(np.int64),
        event=np.full(len(ref), -1, np.int64),
    )


def partition_arrays(state: PartitionState, p: int) -> Arrays:
    """What a snapshot keeps of a partition: live members, summaries in use, cursors."""
    arrays: Arrays = {f"{p}.cursor": state.cursor.copy()}
    live = state.live
    for name, array in state.window._asdict().items():
        arrays[f"{p}.window.{name}"] = array[..., live].copy()
    in_use = int(np.flatnonzero(state.clusters.ident >= 0)[-1]) + 1 if (state.clusters.ident >= 0).any() else 0
    for name, array in state.clusters._asdict().items():
        arrays[f"{p}.clusters.{name}"] = array[:in_use].copy()
    return arrays


def restore_partition(state: PartitionState, arrays: Arrays, p: int, where: str) -> None:
    """Fill an empty partition from a snapshot, checking everything that an index is made from."""
    cursor = container.need(arrays, f"{p}.cursor", np.int64, (kernels.CURSORS,), where)
    n = int(cursor[kernels.END] - cursor[kernels.START])
    capacity, slots = len(state.window.label), len(state.clusters.ident)
    tick = arrays.get(f"{p}.window.tick")
    if tick is None or not 0 <= n <= capacity or len(tick) != n or n > cursor[kernels.PUSHED]:
        raise ModelError(f"{where}: the referent window does not fit the configuration")
    for name, array in state.window._asdict().items():
        shape = (*array.shape[:-1], n)
        array[..., :n] = container.need(arrays, f"{p}.window.{name}", array.dtype, shape, where)
    ident = arrays.get(f"{p}.clusters.ident")
    in_use = -1 if ident is None else len(ident)
    if not 0 <= in_use <= slots:
        raise ModelError(f"{where}: more cluster summaries than the configuration allows")
    for name, array in state.clusters._asdict().items():
        given = arrays.get(f"{p}.clusters.{name}")
        if given is None or given.dtype != array.dtype or given.shape != (in_use,):
            raise ModelError(f"{where}: {p}.clusters.{name} is missing or of the wrong shape")
        array[:in_use] = given
    slot = state.window.slot[:n]
    if (slot < 0).any() or (slot >= slots).any() or not 0 <= cursor[kernels.HAND] < slots:
        raise ModelError(f"{where}: a member names a cluster summary that does not exist")
    if (cursor < 0).any() or (cursor[[kernels.REVEALED, kernels.MATURED]] > cursor[kernels.PUSHED]).any():
        raise ModelError(f"{where}: the cursors are out of range")
    state.cursor[:] = cursor
    state.cursor[kernels.START], state.cursor[kernels.END] = 0, n
