"""Snapshots of a linker: whole, or what has changed since an earlier one; and a linker that changes its model.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.linking.linker import Linker, LinkerConfig
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> today = model.encoding.encode(simulate(900, seed=2, day=1).table())
>>> linker = Linker(model, LinkerConfig.stream(referent_window=200))
>>> _ = linker.process(today[:500])
>>> base = linker.freeze()
>>> _ = linker.process(today[500:600])
>>> changes = linker.freeze(since=base.tick)
>>> again = Linker.restore(model, changes.pack(), base=base.pack())
>>> again.process(today[600:]).score.tobytes() == linker.process(today[600:]).score.tobytes()
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.kernels.linking import link as kernels
from netclust.kernels.linking.score import unary_parts
from netclust.linking.feedback import LabelEvent
from netclust.linking.linker_config import LinkerConfig
from netclust.linking.linker_memory import LinkerMemory
from netclust.linking.state import (
    MAX_NUMBER,
    SnapshotLimits,
    join_partition,
    partition_arrays,
    restore_partition,
    restore_references,
)
from netclust.records.encoding import Encoding
from netclust.scoring.model import Model

KIND = "netclust.linker"


@dataclass(frozen=True, eq=False)
class Frozen:
    """A linker's state at an arrival number. `since` is that of the snapshot it goes with, None if whole.

    As long as this lives, its arrays do not change; some are views of the linker's own.
    """

    arrays: Arrays
    header: dict[str, Any]
    tick: int
    since: int | None

    def pack(self) -> bytes:
        """As a file's content."""
        return container.pack_container(KIND, self.arrays, self.header)

    def parts(self) -> Iterator[bytes | memoryview]:
        """As a file's content, bit by bit: what others do meanwhile does not wait."""
        return container.parts(KIND, self.arrays, self.header)


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    config: LinkerConfig
    model: str
    labels: list[str]
    tick: int
    next_event: int
    events: list[LabelEvent]
    since: int | None = None

    def check(self, limits: SnapshotLimits, where: str) -> None:
        """Refuse counts and events that cannot be."""
        if not (0 <= self.tick < MAX_NUMBER and 0 <= self.next_event < MAX_NUMBER):
            raise ModelError(f"{where}: counts more records or events than there can be")
        if len(self.labels) != limits.labels or len(self.events) > self.config.max_events:
            raise ModelError(f"{where}: names a label twice, or has more events than its configuration allows")
        if len({e.event for e in self.events}) < len(self.events):
            raise ModelError(f"{where}: has two label events of the same number")
        if not all(e.fits(limits.labels, limits.events) for e in self.events):
            raise ModelError(f"{where}: has a label event that cannot be")


def freeze_snapshot(memory: LinkerMemory, model: Model, config: LinkerConfig, since: int | None = None) -> Frozen:
    """Copy the state; see Linker.freeze."""
    references = memory.references
    arrays: Arrays = {
        "refs.label": references.label.copy(),
        "refs.side": references.side.copy(),
        "refs.event": references.event.copy(),
    }
    for p, part in enumerate(memory.partitions):
        arrays |= partition_arrays(part, p, since)
    header = {
        "config": config,
        "model": model.fingerprint,
        "labels": list(memory.labels.names),
        "tick": memory.tick,
        "next_event": memory.next_event,
        "events": msgspec.Raw(msgspec.json.encode(memory.events)),  # they change while others pack this
    }
    if since is not None:
        header["since"] = since
    frozen = Frozen(arrays, header, memory.tick, since)
    for part in memory.partitions:
        part.lent_to.add(frozen)
    return frozen


@dataclass(frozen=True, eq=False)
class Opened:
    """A snapshot that was read, with what its base has, and is not restored yet."""

    arrays: Arrays
    header: _Header

    @property
    def config(self) -> LinkerConfig:
        """The configuration of the linker that it was taken of."""
        return self.header.config

    def restore(self, memory: LinkerMemory, model: Model, where: str) -> None:
        """Fill the memory of a linker that has seen no record; ModelError says what does not fit."""
        header, config, labels = self.header, self.header.config, memory.labels
        if header.labels[: len(labels)] != labels.names:
            raise ModelError(f"{where}: its labels are not the model's")
        for name in header.labels:
            labels.add(name)
        limits = SnapshotLimits(
            tick=header.tick,
            labels=len(labels),
            events=header.next_event,
            references=len(model.reference),
            kept=config.kept,
            trusted=config.mature_cap if config.mature_after is not None else 0,
            widths=model.layout.width,
        )
        header.check(limits, where)
        memory.tick, memory.next_event, memory.events = header.tick, header.next_event, header.events
        restore_references(memory.references, self.arrays, limits, where)
        for p, part in enumerate(memory.partitions):
            restore_partition(part, self.arrays, p, limits, where)
        if sum(int(part.cursor[kernels.PUSHED]) for part in memory.partitions) != memory.tick:
            raise ModelError(f"{where}: the partitions do not add up to {memory.tick} records")


def open_snapshot(model: Model, snapshot: bytes, where: str, base: bytes | None) -> Opened:
    """Read a snapshot that was taken with this model; see Linker.restore."""
    arrays, header = _unpack(snapshot, where)
    if header.model != model.fingerprint:
        raise ModelError(f"{where}: was taken with another model")
    if sum(name.endswith(".cursor") for name in arrays) != header.config.partitions:
        raise ModelError(f"{where}: does not hold {header.config.partitions} partitions")
    if header.since is not None:
        _complete(arrays, header, base, where)
    return Opened(arrays, header)


def _unpack(snapshot: bytes, where: str) -> tuple[Arrays, _Header]:
    arrays, raw = container.unpack_container(snapshot, KIND, where)
    try:
        return arrays, msgspec.convert(raw, _Header, str_keys=True)
    except (msgspec.ValidationError, InputError) as error:
        raise ModelError(f"{where}: {error}") from None


def _complete(arrays: Arrays, header: _Header, base: bytes | None, where: str) -> None:
    """Add what the base has."""
    if base is None:
        raise ModelError(f"{where}: holds changes only, and the snapshot that they belong to is missing")
    before, first = _unpack(base, f"{where}: its base")
    if first.since is not None or first.tick != header.since or first.model != header.model:
        raise ModelError(f"{where}: holds changes to another snapshot than the one given")
    for p in range(header.config.partitions):
        join_partition(arrays, before, p, where)


def count_on(old: LinkerMemory, new: LinkerMemory, classes: int) -> None:
    """Count records and clusters from where the old memory stands: ids of clusters are never given twice."""
    new.tick = old.tick
    new.partitions[0].cursor[kernels.PUSHED] = sum(int(part.cursor[kernels.PUSHED]) for part in old.partitions)
    opened = max(int(part.cursor[kernels.NEXT_CLUSTER]) for part in old.partitions) + classes
    for part in new.partitions:
        part.cursor[kernels.NEXT_CLUSTER] = opened


def carry_over_snapshot(old: LinkerMemory, new: LinkerMemory, model: Model, references: int) -> None:
    """Move everything that is remembered to the memory of a new model, whose first references are the old ones."""
    new.tick, new.labels = old.tick, old.labels
    new.events, new.next_event = old.events, old.next_event
    for name in ("label", "side", "event"):
        getattr(new.references, name)[:references] = getattr(old.references, name)
    new.partitions = old.partitions
    for part in new.partitions:
        part.window = part.window._replace(unary=unary_parts(part.window.code, model.scorer))  # the old may be lent
        member = part.kept.member
        part.kept = part.kept._replace(member=member._replace(unary=unary_parts(member.code, model.scorer)))


def goes_on(old: Model, new: Model) -> bool:
    """Return whether members of the old model's window are members of the new one's."""
    k = len(old.reference)
    first = new.reference[:k]
    return (
        _same_encoding(old.encoding, new.encoding)
        and len(new.reference) >= k
        and np.array_equal(first.num, old.reference.num)
        and np.array_equal(first.code, old.reference.code)
    )


def _same_encoding(a: Encoding, b: Encoding) -> bool:
    names = (a.schema, a.kept, a.vocabularies, a.labels) == (b.schema, b.kept, b.vocabularies, b.labels)
    return names and np.array_equal(a.low, b.low) and np.array_equal(a.span, b.span)
