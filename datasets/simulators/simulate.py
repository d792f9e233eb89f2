"""A labelled connection stream in the KDD record format, for when no data is at hand. Synthetic: `NOTICE`.

A simulated day is up to 24 slices, one for each hour, as if a capture ran for a few minutes of every hour.
Benign sessions follow the hour of the day and drift slowly from day to day; attacks are episodes among them.

>>> stream = simulate(2000, seed=7)
>>> len(stream), stream.columns["duration"].dtype, int((stream.label != "normal").sum())
(2000, dtype('int64'), 400)
>>> next(stream.lines()).count(",")
42
>>> set(HELD_BACK) & set(stream.label.tolist())
set()
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.profiles import (
    ATTACKS,
    BENIGN,
    CATEGORIES,
    HELD_BACK,
    KNOWN,
    NORMAL,
    OFFICE,
    PROFILES,
    ZERO,
    Draw,
    Profile,
)
from netclust.errors import InputError
from netclust.foundation.container import write_container_bytes
from netclust.records.schema import load_schema
from netclust.records.table import Table
from netclust.records.traffic_counts import traffic_attributes

__all__ = ["CATEGORIES", "HELD_BACK", "KNOWN", "NOTICE", "PROFILES", "Simulated", "simulate"]

NOTICE = "Synthetic data: simulated from invented class profiles; it says nothing about detection on real traffic."

Columns = Mapping[str, NDArray[Any]]

FIRST_MIDNIGHT_NS = 1_704_067_200 * 10**9  # Monday 2024-01-01, UTC
DAY_NS, HOUR_NS = 86_400 * 10**9, 3_600 * 10**9
BENIGN_PER_SECOND = 4.0
SLICE_SECONDS = 60.0  # shorter days have fewer slices rather than shorter ones
DRIFT_DAYS = 23.0
MAX_ATTACK_SHARE = 0.9
MAX_DAY = 36_500
# Connections that never got going: no time, no bytes, no content.
SILENT_FLAGS = ("S0", "REJ")
INTRINSIC = (
    "duration", "src_bytes", "dst_bytes", "land", "wrong_fragment", "urgent", "hot", "num_failed_logins",
    "logged_in", "num_compromised", "root_shell", "su_attempted", "num_root", "num_file_creations",
    "num_shells", "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login",
)  # fmt: skip
LABEL_TYPE = f"U{max(map(len, CATEGORIES))}"
LINES_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated stream. It is synthetic: `NOTICE` says what that means.

    >>> stream = simulate(500, seed=1, attacks=("port_scan",))
    >>> sorted(set(stream.label.tolist()))
    ['normal', 'port_scan']
    >>> list(stream.columns)[:4]
    ['duration', 'protocol_type', 'service', 'flag']
    """

    columns: Columns
    """The 41 attributes by name, in schema order: whole numbers, rates, and strings."""
    label: NDArray[np.str_]
    """`normal`, or the name of the attack."""
    time: NDArray[np.int64]
    """Nanoseconds since the epoch, UTC, never decreasing."""

    def __len__(self) -> int:
        """How many records."""
        return len(self.time)

    @property
    def hours(self) -> NDArray[np.int64]:
        """Hour of the day of each record, 0 to 23."""
        return self.time % DAY_NS // HOUR_NS

    def table(self) -> Table:
        """The records as a reader would give them, with their times, which the text format has no room for."""
        table = Table.from_columns(load_schema("kdd"), {**self.columns, "label": self.label})
        return replace(table, time=self.time)

    def lines(self) -> Iterator[str]:
        """The records as NSL-KDD writes them: 43 comma-separated columns, no newline; the difficulty is 0."""
        for start in range(0, len(self), LINES_AT_ONCE):
            part = slice(start, start + LINES_AT_ONCE)
            texts = [_texts(values[part]) for values in (*self.columns.values(), self.label)]
            for row in zip(*texts, strict=True):
                yield ",".join(row) + ",0"

    def write(self, path: str | Path) -> None:
        """Write the lines to a file, all or nothing; `.gz` and `.xz` are compressed."""
        whole = io.BytesIO()
        with _compressed(whole, Path(path).suffix) as sink:
            for line in self.lines():
                sink.write(f"{line}\n".encode("ascii"))
        write_container_bytes(path, whole.getvalue())


def simulate(
    records: int,
    *,
    seed: int = 0,
    day: int = 0,
    attacks: Sequence[str] = KNOWN,
    attack_share: float = 0.2,
) -> Simulated:
    """Exactly `records` synthetic records of one day, `attack_share` of them attacks of the types named.

    Day 0 is a Monday. The same arguments give the same records. Every class draws from its own random stream,
    so a new profile changes how many records the others get, not how they are drawn.

    >>> simulate(1000, attacks=()).label.tolist() == ["normal"] * 1000
    True
    >>> novel = simulate(1000, day=3, attacks=HELD_BACK, attack_share=0.5)
    >>> int((novel.label != "normal").sum())
    500
    >>> simulate(10, attacks=["sharknado"])
    Traceback (most recent call last):
    netclust.errors.InputError: no attack is called 'sharknado'. Known: bulk_upload, dns_exfiltration, ...
    """
    chosen = tuple(dict.fromkeys(attacks))
    _check(records, seed, day, chosen, attack_share)
    malicious = min(round(records * attack_share), records - 1) if chosen else 0
    clock = _clock(records - malicious)
    benign = _quotas({p.name: _benign_weight(p, day, clock) for p in BENIGN}, records - malicious)
    hostile = _quotas({p.name: p.share for p in ATTACKS if p.name in chosen}, malicious)

    parts = [_connections(PROFILES[name], n, seed, day, clock) for name, n in (benign | hostile).items() if n]
    stream = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(stream["active"], kind="stable")
    stream = {name: values[order] for name, values in stream.items()}
    time = clock.nanoseconds(stream["active"]) + FIRST_MIDNIGHT_NS + day * DAY_NS
    stream |= traffic_attributes(
        time,
        host=stream["host"],
        service=np.unique(stream["service"], return_inverse=True)[1],
        port=stream["port"],
        flag=stream["flag"],
    )
    return Simulated({a.name: stream[a.name] for a in load_schema("kdd").features}, stream["label"], time)


def _check(records: int, seed: int, day: int, attacks: Sequence[str], attack_share: float) -> None:
    for name in attacks:
        if name not in CATEGORIES:
            raise InputError(f"no attack is called {name!r}. Known: {', '.join(sorted(CATEGORIES))}")
    if records < 1:
        raise InputError(f"records must be at least 1, not {records}")
    if not 0 <= attack_share <= MAX_ATTACK_SHARE:
        raise InputError(f"attack share must be between 0 and {MAX_ATTACK_SHARE}, not {attack_share}")
    if seed < 0:
        raise InputError(f"seed must not be negative, not {seed}")
    if not 0 <= day <= MAX_DAY:
        raise InputError(f"day must be between 0 and {MAX_DAY}, not {day}")


@dataclass(frozen=True, slots=True)
class _Clock:
    """The day's slices put end to end: `active` seconds run through them without the pauses between."""

    hours: NDArray[np.int64]
    seconds: float

    def nanoseconds(self, active: NDArray[np.float64]) -> NDArray[np.int64]:
        """Since midnight."""
        index = np.minimum((active // self.seconds).astype(np.int64), len(self.hours) - 1)
        within = ((active - index * self.seconds) * 1e9).astype(np.int64)
        return self.hours[index] * HOUR_NS + np.minimum(within, HOUR_NS - 1)


def _clock(benign: int) -> _Clock:
    total = benign / BENIGN_PER_SECOND
    slices = int(np.clip(total // SLICE_SECONDS, 1, 24))
    hours = (np.arange(slices) * 24 + 12) // slices
    # More than a day's worth of records makes the day busier, not longer.
    return _Clock(hours, min(total / slices, 3600.0))


def _drift(name: str, day: int) -> float:
    """Where this name's slow wave stands that day, in -1..1; every name has its own phase."""
    phase = zlib.crc32(name.encode()) / 2**32
    return float(np.sin(2 * np.pi * (day / DRIFT_DAYS + phase)))


def _benign_weight(profile: Profile, day: int, clock: _Clock) -> float:
    weekend = 0.35 if profile.hours is OFFICE and day % 7 in (5, 6) else 1.0
    by_hour = float(np.mean(np.array(profile.hours)[clock.hours]))
    return profile.share * by_hour * weekend * float(np.exp(0.35 * _drift(profile.name, day)))


def _quotas(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers in proportion to the weights that sum to the total: the largest remainders round up."""
    exact = np.array(list(weights.values())) * (total / max(sum(weights.values()), 1e-300))
    counts = np.floor(exact).astype(np.int64)
    up = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[up] += 1
    return dict(zip(weights, counts.tolist(), strict=True))


def _connections(profile: Profile, n: int, seed: int, day: int, clock: _Clock) -> dict[str, NDArray[Any]]:
    """`n` connections of one kind, in no particular order, without their traffic attributes."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, day, zlib.crc32(profile.name.encode())]))
    sizes = np.maximum(np.rint(profile.session * rng.lognormal(0.0, 0.4, n)), 1).astype(np.int64)
    sessions = int(np.searchsorted(np.cumsum(sizes), n)) + 1
    session = np.repeat(np.arange(sessions), sizes[:sessions])[:n]

    hosts = _visited(profile, rng, session)
    ports = np.full(n, profile.source_port or 0)
    if profile.source_port is None:
        ports = _sticky(rng, session, profile.port_reuse, lambda k: rng.integers(1024, 65536, k))
    stay = 0.0 if profile.service_changes else 1.0
    stream: dict[str, NDArray[Any]] = {
        "active": _active_seconds(profile, rng, session, clock),
        "host": hosts,
        "port": ports,
        "label": np.full(n, NORMAL if profile.category == NORMAL else profile.name, LABEL_TYPE),
        "protocol_type": np.full(n, profile.protocol, "U4"),
        "service": _sticky(rng, session, stay, lambda k: _pick(rng, profile.services, k)),
        "flag": _pick(rng, profile.flags, n),
    }
    drawn = {"duration": profile.duration, "src_bytes": profile.src_bytes, "dst_bytes": profile.dst_bytes}
    drawn |= profile.content
    spoken = ~np.isin(stream["flag"], SILENT_FLAGS)
    for name in INTRINSIC:
        trend = float(np.exp(0.15 * _drift(f"{profile.name} {name}", day)))
        stream[name] = _numbers(drawn.get(name, ZERO), rng, session, trend) * spoken
    return stream


def _active_seconds(
    profile: Profile, rng: np.random.Generator, session: NDArray[np.int64], clock: _Clock
) -> NDArray[np.float64]:
    """When each connection happens: sessions start by the hour's weight and go on at their own pace."""
    sessions = int(session[-1]) + 1
    weights = np.array(profile.hours)[clock.hours]
    start = rng.choice(len(weights), sessions, p=weights / weights.sum()) + rng.random(sessions)
    pace = profile.gap * rng.lognormal(0.0, 0.3, sessions)
    elapsed = np.cumsum(rng.exponential(1.0, len(session)))
    first = np.searchsorted(session, np.arange(sessions))
    since_start = (elapsed - elapsed[first][session]) * pace[session]
    # What would run past midnight happens in the morning instead.
    return (start[session] * clock.seconds + since_start) % (len(weights) * clock.seconds)


def _visited(profile: Profile, rng: np.random.Generator, session: NDArray[np.int64]) -> NDArray[np.int64]:
    """Destination hosts; the first of the pool are the popular ones, except for whoever sweeps through it."""
    skew = 2.0 if profile.stay else 1.0
    size = len(profile.hosts)
    return profile.hosts.start + _sticky(
        rng, session, profile.stay, lambda k: (size * rng.random(k) ** skew).astype(np.int64)
    )


def _sticky(
    rng: np.random.Generator,
    session: NDArray[np.int64],
    stay: float,
    draw: Callable[[int], NDArray[Any]],
) -> NDArray[Any]:
    """One value for each connection: its session's own with probability `stay`, else a new one."""
    own = draw(int(session[-1]) + 1)[session]
    return np.where(rng.random(len(session)) < stay, own, draw(len(session)))


def _pick(rng: np.random.Generator, weights: Mapping[str, float], n: int) -> NDArray[np.str_]:
    share = np.array(list(weights.values()))
    return np.array(list(weights))[rng.choice(len(share), n, p=share / share.sum())]


def _numbers(draw: Draw, rng: np.random.Generator, session: NDArray[np.int64], trend: float) -> NDArray[np.int64]:
    """Whole numbers; a quarter of the variance is the session's, so its connections resemble each other."""
    n = len(session)
    if not draw.median:
        return np.zeros(n, np.int64)
    values = np.full(n, draw.median)
    if draw.spread:
        common = rng.normal(0.0, 0.5, int(session[-1]) + 1)[session]
        values = draw.median * trend * np.exp(draw.spread * (common + np.sqrt(0.75) * rng.normal(size=n)))
    whole = np.clip(np.rint(values), 1, draw.high).astype(np.int64)
    return np.where(rng.random(n) < draw.present, whole, 0)


@cache
def _rate_texts() -> NDArray[np.str_]:
    return np.array([f"{percent / 100:.2f}" for percent in range(101)])


def _texts(values: NDArray[Any]) -> list[str]:
    """Whole numbers plain, rates with two decimals."""
    if values.dtype.kind == "f":
        texts: list[str] = _rate_texts()[np.rint(values * 100).astype(np.int64)].tolist()
        return texts
    return [str(value) for value in values.tolist()]


def _compressed(raw: BinaryIO, suffix: str) -> AbstractContextManager[Any]:
    if suffix == ".gz":
        # No name and no time in the header: the same records give the same bytes.
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    return lzma.LZMAFile(raw, "wb") if suffix == ".xz" else nullcontext(raw)
