"""The status of the distributed engine: what its recovery folder says, and what still waits on the bus. Reads only.

State is that of the last epoch which was kept, so shards at work are up to `epoch_seconds` further than what is shown
here, and fewer messages wait. Nothing of the folder is run: of what Bytewax has pickled only the one text or block of
bytes in it is looked at.
"""

from __future__ import annotations

import pickletools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.stream.alerts.alert_limits import Counters
from netclust.stream.alerts.traffic_clock import TrafficClock
from netclust.stream.bus.base import BusError
from netclust.stream.bus.factory import open_reader
from netclust.stream.config import Config, ShardingConfig
from netclust.stream.sharding.placement import part_name, partition_keys
from netclust.stream.sharding.recovery import CAMPAIGNS_STEP, FLOW, INPUT_STEP, SHARDS_STEP, find_recovery, recovery_dir
from netclust.stream.sharding.shard_state import KIND
from netclust.stream.store.requests import iso

__all__ = ["PartitionStatus", "ShardingStatus", "plain_state", "sharding_status"]

_BUSY_SECONDS = 5.0


class PartitionStatus(msgspec.Struct, kw_only=True, rename={"partition": "lane"}):
    """A partition and its shard. Times are UTC; empty: not known, as nothing came yet."""

    partition: int
    waiting: int  # messages behind the position
    records_waiting: int | None = None  # about: as many to a message as there were before
    position: str | None = None  # behind which it would go on reading
    messages: int = 0  # read
    records: int = 0  # judged
    verdicts: int = 0  # messages written
    events: int = 0
    alerts: int = 0  # opened so far
    alerts_open: int = 0
    last_time: str = ""  # of the newest record: traffic time
    kept: str = ""  # when the last epoch ended


class ShardingStatus(msgspec.Struct, kw_only=True, rename={"partition_statuses": "lanes"}):
    """The status of all partitions. `campaigns`: those that are open; None where none are looked for."""

    partitions: int
    recovery: str
    kept: str
    campaigns: int | None
    partition_statuses: list[PartitionStatus]


class _Kept(NamedTuple):
    at: str
    state: str | bytes | None


# What is looked at of a shard's snapshot; it has more.


class _Episode(msgspec.Struct, rename={"reported": "told"}):
    reported: bool


class _Book(msgspec.Struct):
    episodes: list[_Episode]
    counters: Counters


class _Detector(msgspec.Struct):
    book: _Book
    clock: TrafficClock


class _Shard(msgspec.Struct):
    detector: _Detector
    counters: dict[str, int]
    numbers: dict[str, int]


class _Campaigns(msgspec.Struct, rename={"reported": "told"}):
    reported: dict[str, Any]


def sharding_status(config: Config, sharding: ShardingConfig) -> ShardingStatus:
    """Return the status from the folder and the bus; InputError if one of them cannot be read."""
    folder = recovery_dir(config, sharding)
    store = find_recovery(folder, sharding)
    kept = {} if store is None else _read(store)
    partition_statuses = [_partition_status(sharding, partition, kept) for partition in range(sharding.partitions)]
    return ShardingStatus(
        partitions=sharding.partitions,
        recovery=str(folder),
        kept=max((partition.kept for partition in partition_statuses), default=""),
        campaigns=_campaigns(kept, folder) if sharding.campaigns else None,
        partition_statuses=partition_statuses,
    )


def _partition_status(sharding: ShardingConfig, partition: int, kept: dict[tuple[str, str], _Kept]) -> PartitionStatus:
    at, position = kept.get((INPUT_STEP, part_name(partition)), _Kept("", None))
    reader = open_reader(sharding.input, partition)
    try:
        waiting = reader.waiting(position if isinstance(position, str) else None)
    except BusError as error:
        raise InputError(f"{error}: what waits in partition {partition} is not known") from None
    finally:
        reader.close()
    found = PartitionStatus(
        partition=partition, waiting=waiting, position=position if isinstance(position, str) else None, kept=at
    )
    snapshot = kept.get((SHARDS_STEP, partition_keys(sharding.partitions)[partition]), _Kept("", None)).state
    if isinstance(snapshot, bytes) and snapshot:
        _add_shard(found, snapshot)
    return found


def _add_shard(found: PartitionStatus, snapshot: bytes) -> None:
    where = f"the snapshot of shard {found.partition}"
    _, header = container.unpack_container(snapshot, KIND, where)
    try:
        shard = msgspec.convert(header, _Shard)
    except msgspec.ValidationError as error:
        raise ModelError(f"{where}: {error}") from None
    counters, book = shard.counters, shard.detector.book
    found.messages, found.records = counters.get("messages", 0), counters.get("records", 0)
    found.verdicts, found.events = shard.numbers["verdicts"], shard.numbers["events"]
    found.alerts = sum(sum(by_severity.values()) for by_severity in book.counters.opened.values())
    found.alerts_open = sum(episode.reported for episode in book.episodes)
    found.last_time = iso(shard.detector.clock.now)
    if found.messages:
        came = found.records + counters.get("duplicates", 0) + counters.get("wrong_lane", 0)
        found.records_waiting = round(found.waiting * came / found.messages)


def _campaigns(kept: dict[tuple[str, str], _Kept], folder: Path) -> int:
    states = [one.state for (step, _), one in kept.items() if step == CAMPAIGNS_STEP]
    try:
        return sum(len(msgspec.json.decode(state, type=_Campaigns).reported) for state in states if state)
    except msgspec.DecodeError as error:
        raise ModelError(f"{folder}: the campaigns' snapshot: {error}") from None


def _read(store: Path) -> dict[tuple[str, str], _Kept]:
    """The newest state of every key of the steps of ours, and when it was kept."""
    rows: list[tuple[int, str, str, str, bytes | None]] = []
    steps = (INPUT_STEP, SHARDS_STEP, CAMPAIGNS_STEP)
    for path in sorted(store.glob("part-*.sqlite3")):
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", _BUSY_SECONDS, uri=True)) as base:
                rows += base.execute(
                    "SELECT max(snap_epoch), step_id, state_key, created_at, ser_change FROM snaps "
                    "WHERE step_id IN (?, ?, ?) GROUP BY step_id, state_key",
                    [f"{FLOW}.{step}" for step in steps],
                )
        except sqlite3.Error as error:
            raise InputError(f"{path}: {error}") from None
    rows.sort(key=lambda row: row[0])
    return {
        (step.removeprefix(f"{FLOW}."), key): _Kept(f"{at.replace(' ', 'T')}Z", plain_state(raw))
        for _, step, key, at, raw in rows
    }


def plain_state(raw: bytes | None) -> str | bytes | None:
    """The text or the bytes that were pickled, found without running any of it.

    >>> plain_state(b"\\x80\\x04\\x8c\\x0317-\\x94."), plain_state(b"\\x80\\x04N."), plain_state(None)
    ('17-', None, None)
    """
    try:
        values = (value for _, value, _ in pickletools.genops(raw or b"."))
        return next((value for value in values if isinstance(value, str | bytes)), None)
    except ValueError as error:
        raise ModelError(f"what was kept cannot be read: {error}") from None
