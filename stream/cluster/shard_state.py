"""Snapshots of a shard: one checked container with its linker, the model in use, open alerts, streams and counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from netclust import container
from netclust.container import Arrays
from netclust.errors import ModelError
from netclust.linker import Linker
from netclust.model import Model
from netclust.stream.daemon.config import Config

if TYPE_CHECKING:
    from netclust.stream.cluster.shard import Seen, Shard

__all__ = ["pack", "unpack"]

KIND = "netclust.shard"
_LINKER, _MODEL, _PREFIX = "linker", "model", "detector."

_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    partition: _Count
    partitions: _Count
    configured: str  # fingerprint of the model of the configuration
    window: dict[str, Any]
    detector: dict[str, Any]
    streams: list[Any]
    given_up: _Count
    counters: dict[str, _Count]
    numbers: dict[str, _Count]
    labels: dict[str, _Count]
    labels_taken: _Count


def pack(shard: Shard) -> bytes:
    """See Shard.snapshot."""
    detector = shard.detector
    facts, kept = detector.freeze()
    arrays: Arrays = {f"{_PREFIX}{name}": array for name, array in kept.items()}
    arrays[_LINKER] = np.frombuffer(detector.linker.snapshot(), np.uint8)
    if detector.model.fingerprint != shard.configured.fingerprint:
        arrays[_MODEL] = np.frombuffer(detector.model.to_bytes(), np.uint8)
    header = _Header(
        partition=shard.partition,
        partitions=shard.partitions,
        configured=shard.configured.fingerprint,
        window=msgspec.to_builtins(shard.config.window),
        detector=facts,
        streams=shard.streams.state(),
        given_up=shard.streams.given_up,
        counters=dict(shard.counters),
        numbers=shard.numbers,
        labels=shard.labels,
        labels_taken=shard.labels_taken,
    )
    return container.pack(KIND, arrays, header)


def unpack(model: Model, config: Config, snapshot: bytes, seen: Seen | None) -> Shard:
    """See Shard.restore."""
    from netclust.stream.cluster.shard import Shard, linker_config

    arrays, raw = container.unpack(snapshot, KIND, "a shard's snapshot")
    try:
        header = msgspec.convert(raw, _Header)
    except msgspec.ValidationError as error:
        raise ModelError(f"a shard's snapshot: {error}") from None
    where = f"snapshot of shard {header.partition}"
    if set(header.numbers) != {"verdicts", "events", "members"} or header.partition >= header.partitions:
        raise ModelError(f"{where}: does not count what a shard counts")
    shard = Shard(model, config, header.partition, header.partitions, seen=seen)
    same = header.configured == model.fingerprint
    # What was written is counted on, whatever else changes: numbers must not be given twice.
    shard.counters = Counter(header.counters)
    shard.numbers = dict(header.numbers)
    shard.labels, shard.labels_taken = dict(header.labels), header.labels_taken
    shard.streams.restore(header.streams, where)
    shard.streams.given_up = header.given_up
    if not same and _MODEL not in arrays:
        shard.counters["begun_anew"] += 1  # by another model: nothing that was learned fits it
        return shard
    used = Model.from_bytes(arrays[_MODEL].tobytes(), where) if _MODEL in arrays else model
    if _LINKER not in arrays:
        raise ModelError(f"{where}: has no linker")
    linker = Linker.restore(used, arrays[_LINKER].tobytes(), where)
    wanted = linker_config(config, header.partition, header.partitions)
    if linker.config.shard != wanted.shard:
        raise ModelError(f"{where}: its linker is that of another shard")
    if header.window != msgspec.to_builtins(config.window):
        shard.counters["begun_anew"] += 1
        linker = linker.with_model(used, wanted)
    detector = shard._detector(linker)
    own = {name.removeprefix(_PREFIX): a for name, a in arrays.items() if name.startswith(_PREFIX)}
    detector.restore(header.detector, own, where)
    detector.book.source_names = shard.streams.names()
    shard.detector = detector
    if not same:
        shard.counters["begun_anew"] += 1
        detector.swap(model)
    return shard
