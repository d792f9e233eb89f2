"""Snapshots of a shard: one checked container with its linker, the model in use, open alerts, streams and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np

from netclust.errors import ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.linking.linker import Linker
from netclust.scoring.model import Model
from netclust.stream.detection.detector import Detector

__all__ = ["OpenedShard", "ShardHeader", "pack_shard", "unpack_shard"]

KIND = "netclust.shard"
_LINKER, _MODEL, _PREFIX = "linker", "model", "detector."

_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class ShardHeader(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of a snapshot: which shard it is, and what it counts."""

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


def pack_shard(header: ShardHeader, detector: Detector, arrays: Arrays) -> bytes:
    """Return a shard's snapshot: its counts, and the arrays of its detector with the linker and the model in use."""
    whole: Arrays = {f"{_PREFIX}{name}": array for name, array in arrays.items()}
    whole[_LINKER] = np.frombuffer(detector.linker.snapshot(), np.uint8)
    if detector.model.fingerprint != header.configured:
        whole[_MODEL] = np.frombuffer(detector.model.to_bytes(), np.uint8)
    return container.pack_container(KIND, whole, header)


@dataclass(frozen=True, eq=False)
class OpenedShard:
    """A shard's snapshot that was read and checked, and is not restored yet."""

    header: ShardHeader
    where: str
    _arrays: Arrays

    @property
    def has_model(self) -> bool:
        """Whether the model in use is in it: it is not the configured one."""
        return _MODEL in self._arrays

    def model(self, configured: Model) -> Model:
        """Return the model in use."""
        return Model.from_bytes(self._arrays[_MODEL].tobytes(), self.where) if self.has_model else configured

    def linker(self, model: Model, shard: tuple[int, int] | None) -> Linker:
        """Return the linker, which must be that of the shard."""
        if _LINKER not in self._arrays:
            raise ModelError(f"{self.where}: has no linker")
        linker = Linker.restore(model, self._arrays[_LINKER].tobytes(), self.where)
        if linker.config.shard != shard:
            raise ModelError(f"{self.where}: its linker is that of another shard")
        return linker

    def detector_arrays(self) -> Arrays:
        """Return what the detector keeps besides the linker."""
        return {name.removeprefix(_PREFIX): a for name, a in self._arrays.items() if name.startswith(_PREFIX)}


def unpack_shard(snapshot: bytes) -> OpenedShard:
    """Read a shard's snapshot; ModelError says what is wrong with it."""
    arrays, raw = container.unpack_container(snapshot, KIND, "a shard's snapshot")
    try:
        header = msgspec.convert(raw, ShardHeader)
    except msgspec.ValidationError as error:
        raise ModelError(f"a shard's snapshot: {error}") from None
    where = f"snapshot of shard {header.partition}"
    if set(header.numbers) != {"verdicts", "events", "members"} or header.partition >= header.partitions:
        raise ModelError(f"{where}: does not count what a shard counts")
    return OpenedShard(header, where, arrays)
