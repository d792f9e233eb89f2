"""A labelled packet capture of a small office, benign sessions with attack campaigns among them. Synthetic: `NOTICE`.

A slice of time after the other is planned, made into packets and written; packets that lie beyond the slice wait for
theirs. The same arguments give the same bytes.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     made = simulate_capture(f"{folder}/c.pcap", f"{folder}/c.csv", hours=0.02, attacks="syn_flood", hosts=10)
...     lines = Path(folder, "c.csv").read_text().splitlines()
>>> lines[0]
'source,source_port,destination,destination_port,protocol,start,end,label,kind'
>>> made.connections == len(lines) - 1, made.labels["syn_flood"] > 10
(True, True)
"""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.capture_attacks import ATTACKS, HELD_BACK, KNOWN
from netclust.datasets.simulators.capture_campaigns import AttackCampaign, campaigns
from netclust.datasets.simulators.capture_plan import ConnectionPlan
from netclust.datasets.simulators.capture_profiles import BENIGN
from netclust.datasets.simulators.capture_templates import TrafficTemplates
from netclust.datasets.simulators.capture_world import CLIENTS, MIN_HOSTS, SERVERS, World
from netclust.datasets.simulators.simulate import NOTICE
from netclust.errors import InputError
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire

__all__ = [
    "HELD_BACK",
    "KNOWN",
    "LABEL_HEADER",
    "NOTICE",
    "CaptureSummary",
    "expected_capture_bytes",
    "simulate_capture",
]

LABEL_HEADER = "source,source_port,destination,destination_port,protocol,start,end,label,kind"
FIRST_MIDNIGHT = 1_704_067_200  # Monday 2024-01-01, UTC
SNAP_LENGTH = 200
SLICE_SECONDS = 900.0
NOISE_BYTES = 1 << 20
HOST_HOUR_BYTES, WHOLE_FRAMES, FRAME_BYTES = 1_400_000, 5, 1500
"""A host's packets of an hour, on average over a day, and how much more it is when bulk data is not cut."""
MAX_HOURS, MAX_DAY, MAX_HOSTS, MAX_SCALE, MAX_SNAP = 24.0 * 366, 36_500, 5000, 1000.0, 65_535
_PROTOCOLS = {frames.TCP: "tcp", frames.UDP: "udp", frames.ICMP: "icmp", frames.ICMP6: "icmp", frames.ARP: "arp"}
_WORDS = (
    b"the order was sent on monday and will arrive in two weeks; please find the figures below. Regards, sales team\r\n"
)


@dataclass(frozen=True)
class CaptureSummary:
    """What was made."""

    packets: int
    bytes: int
    """Size of the capture before packing."""
    seconds: float
    """How long it took to make."""
    connections: int
    kinds: dict[str, int] = field(default_factory=dict)
    """Benign connections by kind."""
    labels: dict[str, int] = field(default_factory=dict)
    """Connections by label, `normal` among them."""


def simulate_capture(
    path: str | Path,
    labels: str | Path | None = None,
    *,
    hours: float = 0.25,
    seed: int = 0,
    attacks: str = "known",
    scale: float = 1.0,
    hosts: int = 40,
    clients: str = CLIENTS,
    servers: str = SERVERS,
    start: str | None = None,
    day: int = 0,
    snaplen: int = SNAP_LENGTH,
    campaigns_per_hour: float = 1.5,
) -> CaptureSummary:
    """Write a capture (packed if it ends in .gz or .xz) and, if asked, one line for every connection in it.

    `attacks`: known, all, none, or names with commas; every one named happens at least once. `snaplen` cuts bulk data,
    not protocol text; 0 keeps all. The capture begins at `start`, else at midnight of `day`; day 0 is a Monday.

    >>> simulate_capture("x.pcap", attacks="sharknado")
    Traceback (most recent call last):
    netclust.errors.InputError: --attacks: no attack is called 'sharknado'. Known: amplification, ...
    """
    chosen = _chosen(attacks)
    _check(hours, seed, scale, hosts, day, snaplen, campaigns_per_hour)
    inside, outside = _network("--clients", clients), _network("--servers", servers)
    if inside.overlaps(outside):
        raise InputError(f"--servers: {outside} overlaps the clients' {inside}")
    if hosts > inside.num_addresses - 3:
        raise InputError(f"--hosts: {inside} has room for {max(inside.num_addresses - 3, 0)} hosts, not {hosts}")
    epoch = _epoch(start, day)
    clock = time.perf_counter()
    maker = _Maker(World(seed, hosts, str(inside), str(outside)), seed, epoch, hours * 3600.0, scale, snaplen)
    planned = campaigns(chosen, hours * 3600.0, campaigns_per_hour, seed, epoch)
    with _sink(path) as capture, _sink(labels) as table:
        capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        table.write(f"{LABEL_HEADER}\n".encode())
        maker.run(planned, capture, table)
    return CaptureSummary(
        maker.packets, maker.size + 24, time.perf_counter() - clock, maker.rows,
        dict(sorted(maker.kinds.items())), dict(sorted(maker.labels.items())),
    )  # fmt: skip


def expected_capture_bytes(hours: float, hosts: int, scale: float, snaplen: int) -> int:
    """Estimate the size of a capture before it is made: right within a factor of two or three.

    >>> round(expected_capture_bytes(hours=24, hosts=40, scale=1, snaplen=200) / 1e9, 1)
    1.3
    """
    whole = (snaplen or MAX_SNAP) >= FRAME_BYTES
    return int(hours * hosts * scale * HOST_HOUR_BYTES * (WHOLE_FRAMES if whole else 1))


def _chosen(attacks: str) -> tuple[str, ...]:
    groups: dict[str, tuple[str, ...]] = {"known": KNOWN, "all": (*KNOWN, *HELD_BACK), "none": ()}
    if attacks in groups:
        return groups[attacks]
    names = tuple(dict.fromkeys(name.strip() for name in attacks.split(",") if name.strip()))
    for name in names:
        if name not in ATTACKS:
            raise InputError(f"--attacks: no attack is called {name!r}. Known: {', '.join(sorted(ATTACKS))}")
    if not names:
        raise InputError("--attacks: known, all, none, or names with commas")
    return names


def _check(hours: float, seed: int, scale: float, hosts: int, day: int, snaplen: int, rate: float) -> None:
    bounds: tuple[tuple[str, float, float, float], ...] = (
        ("--hours", hours, 1e-3, MAX_HOURS), ("--seed", seed, 0, 2.0**63), ("--scale", scale, 0.0, MAX_SCALE),
        ("--hosts", hosts, MIN_HOSTS, MAX_HOSTS), ("--day", day, 0, MAX_DAY), ("--snaplen", snaplen, 0, MAX_SNAP),
        ("--campaigns-per-hour", rate, 0.0, 100.0),
    )  # fmt: skip
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise InputError(f"{name} must be between {low:g} and {high:g}, not {value}")
    if 0 < snaplen < 64:
        raise InputError(f"--snaplen must be 0 (all) or at least 64, which holds the headers, not {snaplen}")


def _network(option: str, text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise InputError(f"{option}: {text!r} is not an IPv4 network like 10.20.0.0/24: {error}") from None


def _epoch(start: str | None, day: int) -> int:
    if start is None:
        return FIRST_MIDNIGHT + day * 86_400
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        raise InputError(f"--start: {start!r} is not a time like 2024-01-01T00:00:00Z") from None
    seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if not 0 <= seconds < 2**32 - int(MAX_HOURS * 3600):
        raise InputError(f"--start: {start!r} does not fit a capture file (1970 to 2105)")
    return seconds


@contextmanager
def _sink(path: str | Path | None) -> Iterator[BinaryIO]:
    """A file that appears when it is whole; nothing for no path."""
    if path is None:
        with open(os.devnull, "wb") as nowhere:
            yield nowhere
        return
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as raw:
            if target.suffix == ".gz":
                # No name and no time in the header: the same packets give the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
                    yield packed  # type: ignore[misc]
            elif target.suffix == ".xz":
                with lzma.LZMAFile(raw, "wb", preset=1) as packed_xz:
                    yield packed_xz  # type: ignore[misc]
            else:
                yield raw
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _noise(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Two tables of filler, bytes that look encrypted and text, with their running sums."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(b"noise")]))
    words = np.array([*_WORDS.split(b" ")], object)
    text = b" ".join(words[rng.integers(0, len(words), NOISE_BYTES // 3)].tolist())[:NOISE_BYTES]
    table = np.stack([rng.integers(0, 256, NOISE_BYTES, np.uint8), np.frombuffer(text.ljust(NOISE_BYTES), np.uint8)])
    sums = np.zeros((2, NOISE_BYTES + 1), np.int64)
    for k in range(2):
        frames.running_sums(table[k], sums[k])
    return table, sums


class _Maker:
    """Slices of time to packets and label rows."""

    def __init__(self, world: World, seed: int, epoch: int, seconds: float, scale: float, snap: int) -> None:
        self.world, self.seed, self.epoch, self.seconds, self.scale, self.snap = (
            world,
            seed,
            epoch,
            seconds,
            scale,
            snap,
        )
        self.pool, self.noise = TrafficTemplates(), _noise(seed)
        self.packets = self.size = self.rows = 0
        self.kinds: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self._last = 0
        # Packets of connections that began earlier, and the rows of those connections.
        self._arena, self._times = np.zeros(0, np.uint8), np.zeros(0, np.int64)
        self._spans = np.zeros((0, 4), np.int64)
        self._names: list[tuple[str, str, str]] = []
        self._seen = np.zeros((0, 3), np.int64)

    def run(self, planned: list[AttackCampaign], capture: BinaryIO, table: BinaryIO) -> None:
        begin = 0.0
        while begin < self.seconds:
            end = min(begin + SLICE_SECONDS, self.seconds)
            plan = self._plan(begin, end, planned)
            self._emit(plan)
            self._write(end, capture, table)
            self.world.forget()
            begin = end

    def _plan(self, begin: float, end: float, planned: list[AttackCampaign]) -> ConnectionPlan:
        moment = self.epoch + begin
        day = int(moment // 86_400) - FIRST_MIDNIGHT // 86_400
        key = [self.seed, int(moment * 1000)]
        plan = ConnectionPlan(self.world, self.pool, np.random.default_rng(0), begin, end, day=day, scale=self.scale)
        plan.hour = moment % 86_400 / 3600.0
        for name, make in BENIGN.items():
            plan.rng = np.random.default_rng(np.random.SeedSequence([*key, zlib.crc32(name.encode())]))
            make(plan)
        for number, campaign in enumerate(planned):
            if begin <= campaign.start < end:
                plan.rng = np.random.default_rng(
                    np.random.SeedSequence([*key, number, zlib.crc32(campaign.name.encode())])
                )
                ATTACKS[campaign.name](plan, campaign)
        return plan

    def _emit(self, plan: ConnectionPlan) -> None:
        connections, messages = plan.arrays()
        first = len(self._names)
        self._names += self._row_names(plan, connections)
        self._seen = np.concatenate([self._seen, np.zeros((len(connections), 3), np.int64)])
        cursor = np.array([len(self._times), len(self._arena), 0], np.int64)
        said = int(messages["filler"].sum()) // 1000 + 3 * len(messages)
        packets = cursor[0] + int(1.3 * said) + 12 * len(connections) + 1000
        size = cursor[1] + 130 * (packets - cursor[0]) + 4_000_000
        book, world = self.pool.book(), self.world.arrays()
        done = 0
        while True:
            self._grow(int(packets), int(size))
            sink = (self._arena, self._times, self._spans, cursor)
            done = wire.write_packets(connections, messages, done, first, book, world, self.noise, sink, self.snap)
            if done == len(connections):
                break
            packets, size = 1.5 * packets, 1.5 * size
        n, used = int(cursor[0]), int(cursor[1])
        self._arena, self._times, self._spans = self._arena[:used], self._times[:n], self._spans[:n]

    def _grow(self, packets: int, size: int) -> None:
        arena, times, spans = np.empty(size, np.uint8), np.empty(packets, np.int64), np.empty((packets, 4), np.int64)
        arena[: len(self._arena)] = self._arena
        times[: len(self._times)] = self._times
        spans[: len(self._spans)] = self._spans
        self._arena, self._times, self._spans = arena, times, spans

    def _row_names(self, plan: ConnectionPlan, connections: NDArray[Any]) -> list[tuple[str, str, str]]:
        ends, places = np.unique(np.stack([connections["a"], connections["b"]]), return_inverse=True)
        texts = np.array([self.world.text(int(end)) for end in ends], object)
        source, target = texts[places.reshape(2, -1)]
        ported = np.isin(connections["proto"], (frames.TCP, frames.UDP))
        heads = []
        for i, proto in enumerate(connections["proto"].tolist()):
            if ported[i]:
                sport, dport = connections["sport"][i], connections["dport"][i]
                heads.append(f"{source[i]},{sport},{target[i]},{dport},{_PROTOCOLS[proto]}")
            else:
                heads.append(f"{source[i]},,{target[i]},,{_PROTOCOLS[proto]}")
        tails = [(label, kind) for n, label, kind in plan.kinds for _ in range(n)]
        return [(head, *tail) for head, tail in zip(heads, tails, strict=True)]

    def _write(self, end: float, capture: BinaryIO, table: BinaryIO) -> None:
        """The packets before `end`, in order, and the rows that are complete with them."""
        order = np.argsort(self._times, kind="stable")
        cut = int(np.searchsorted(self._times[order], int(end * 1e6)))
        now, later = order[:cut], np.sort(order[cut:])
        size = int(self._spans[now, 1].sum()) + frames.RECORD_HEADER * len(now)
        out = np.empty(size, np.uint8)
        epoch = self.epoch * 1_000_000
        self._last = frames.write_frame_records(
            self._arena, self._times, self._spans, now, epoch, self._last, out, self._seen
        )
        capture.write(out.data)
        self.packets += len(now)
        self.size += size

        spans = self._spans[later]
        waiting = np.zeros(len(self._names), bool)
        waiting[spans[:, 3]] = True
        final = end >= self.seconds
        done = np.flatnonzero((self._seen[:, 2] > 0) if final else ~waiting)
        done = done[np.argsort(self._seen[done, 0], kind="stable")]
        table.write("".join(map(self._row, done.tolist())).encode())
        self.rows += len(done)
        kept = np.flatnonzero(waiting)
        self._names = [self._names[i] for i in kept.tolist()]
        self._seen = self._seen[kept]
        spans[:, 3] = (np.cumsum(waiting) - 1)[spans[:, 3]]
        pieces = [self._arena[start : start + used] for start, used in spans[:, :2].tolist()]
        self._arena = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)
        spans[:, 0] = np.cumsum(spans[:, 1]) - spans[:, 1]
        self._times, self._spans = self._times[later], spans

    def _row(self, i: int) -> str:
        head, label, kind = self._names[i]
        first, last, _ = self._seen[i].tolist()
        self.labels[label] += 1
        if label == "normal":
            self.kinds[kind] += 1
        times = f"{first // 1_000_000}.{first % 1_000_000:06d},{last // 1_000_000}.{last % 1_000_000:06d}"
        return f"{head},{times},{label},{kind}\n"
