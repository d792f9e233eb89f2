"""How far a cluster has come: what its recovery folder says, and what still waits on the bus. Reads only.

State is that of the last epoch which was kept, so a cluster at work is up to `epoch_seconds` further than what is told
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

from netclust import container
from netclust.errors import InputError, ModelError
from netclust.stream.alert_limits import Counters
from netclust.stream.bus.base import BusError
from netclust.stream.bus.factory import open_reader
from netclust.stream.cluster.placement import lane_keys, part_name
from netclust.stream.cluster.recovery import CAMPAIGNS_STEP, FLOW, LANES_STEP, SHARDS_STEP, find, recovery_dir
from netclust.stream.cluster.shard_state import KIND
from netclust.stream.daemon.config import ClusterConfig, Config
from netclust.stream.store_words import iso
from netclust.stream.traffic_clock import TrafficClock

__all__ = ["ClusterStatus", "LaneStatus", "cluster_status", "plain_state"]

_BUSY_SECONDS = 5.0


class LaneStatus(msgspec.Struct, kw_only=True):
    """A lane and its shard. Times are UTC; empty: not known, as nothing came yet."""

    lane: int
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


class ClusterStatus(msgspec.Struct, kw_only=True):
    """All lanes. `campaigns`: those that are told now; None where none are looked for."""

    partitions: int
    recovery: str
    kept: str
    campaigns: int | None
    lanes: list[LaneStatus]


class _Kept(NamedTuple):
    at: str
    state: str | bytes | None


# What is looked at of a shard's snapshot; it has more.


class _Episode(msgspec.Struct):
    told: bool


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


class _Campaigns(msgspec.Struct):
    told: dict[str, Any]


def cluster_status(config: Config, cluster: ClusterConfig) -> ClusterStatus:
    """Ask the folder, then the bus; InputError if one of them cannot be read."""
    folder = recovery_dir(config, cluster)
    store = find(folder, cluster)
    kept = {} if store is None else _read(store)
    lanes = [_lane(cluster, lane, kept) for lane in range(cluster.partitions)]
    return ClusterStatus(
        partitions=cluster.partitions,
        recovery=str(folder),
        kept=max((lane.kept for lane in lanes), default=""),
        campaigns=_campaigns(kept, folder) if cluster.campaigns else None,
        lanes=lanes,
    )


def _lane(cluster: ClusterConfig, lane: int, kept: dict[tuple[str, str], _Kept]) -> LaneStatus:
    at, position = kept.get((LANES_STEP, part_name(lane)), _Kept("", None))
    reader = open_reader(cluster.input, lane)
    try:
        waiting = reader.waiting(position if isinstance(position, str) else None)
    except BusError as error:
        raise InputError(f"{error}: what waits in lane {lane} is not known") from None
    finally:
        reader.close()
    found = LaneStatus(lane=lane, waiting=waiting, position=position if isinstance(position, str) else None, kept=at)
    snapshot = kept.get((SHARDS_STEP, lane_keys(cluster.partitions)[lane]), _Kept("", None)).state
    if isinstance(snapshot, bytes) and snapshot:
        _tell_shard(found, snapshot)
    return found


def _tell_shard(found: LaneStatus, snapshot: bytes) -> None:
    where = f"the snapshot of shard {found.lane}"
    _, header = container.unpack(snapshot, KIND, where)
    try:
        shard = msgspec.convert(header, _Shard)
    except msgspec.ValidationError as error:
        raise ModelError(f"{where}: {error}") from None
    counters, book = shard.counters, shard.detector.book
    found.messages, found.records = counters.get("messages", 0), counters.get("records", 0)
    found.verdicts, found.events = shard.numbers["verdicts"], shard.numbers["events"]
    found.alerts = sum(sum(by_severity.values()) for by_severity in book.counters.opened.values())
    found.alerts_open = sum(episode.told for episode in book.episodes)
    found.last_time = iso(shard.detector.clock.now)
    if found.messages:
        came = found.records + counters.get("duplicates", 0) + counters.get("wrong_lane", 0)
        found.records_waiting = round(found.waiting * came / found.messages)


def _campaigns(kept: dict[tuple[str, str], _Kept], folder: Path) -> int:
    states = [one.state for (step, _), one in kept.items() if step == CAMPAIGNS_STEP]
    try:
        return sum(len(msgspec.json.decode(state, type=_Campaigns).told) for state in states if state)
    except msgspec.DecodeError as error:
        raise ModelError(f"{folder}: the campaigns' snapshot: {error}") from None


def _read(store: Path) -> dict[tuple[str, str], _Kept]:
    """The newest state of every key of the steps of ours, and when it was kept."""
    rows: list[tuple[int, str, str, str, bytes | None]] = []
    steps = (LANES_STEP, SHARDS_STEP, CAMPAIGNS_STEP)
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
