"""Planning: connections and what is said in them, a vector of connections at a time, before any packet is made.

>>> plan = ConnectionPlan(World(seed=1), TrafficTemplates(), np.random.default_rng(1), 0.0, 900.0)
>>> talk = Talk(2)
>>> talk.say(0, plan.pool.add(b"hello"), wait=0.1)
>>> talk.say(1, filler=np.array([100, 0]), when=np.array([True, False]))
>>> plan.tcp("web", plan.world.people[:2], plan.world.outside[:2], 80, np.array([1.0, 2.0]), talk)
>>> connections, messages = plan.arrays()
>>> connections["dport"].tolist(), (connections["last"] - connections["first"]).tolist(), len(messages)
([80, 80], [2, 1], 3)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.datasets.simulators.capture_templates import EMPTY, Parts, TrafficTemplates
from netclust.datasets.simulators.capture_world import Floats, Ints, World
from netclust.datasets.simulators.profiles import ALWAYS, OFFICE
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire

NORMAL = "normal"
_CLOSINGS = {
    wire.FIN_A: 0.52, wire.FIN_B: 0.26, wire.FIN_B_RESET_A: 0.08, wire.RESET_A: 0.05, wire.RESET_B: 0.03,
    wire.LEFT_OPEN: 0.03, wire.HALF_CLOSED: 0.03,
}  # fmt: skip
_FAULTS = {wire.FINE: 0.984, wire.RESENT: 0.006, wire.REORDERED: 0.004, wire.LOST_BEFORE: 0.004, wire.SYN_LOST: 0.002}
_OPENINGS = {wire.OPENED: 0.978, wire.UNANSWERED: 0.010, wire.REFUSED: 0.012}
SIX_SHARE = 0.17  # of the connections between hosts that could use version 6: about one in ten of all


class Talk:
    """What `n` connections say, one step after the other; a step may be left out by some of them."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._steps: list[tuple[Any, ...]] = []
        self._exchange = 0

    def say(
        self, side: int, template: ArrayLike = EMPTY, *, filler: ArrayLike = 0, wait: ArrayLike = 0.0,
        when: ArrayLike = True, table: int = frames.NOISE,
    ) -> None:  # fmt: skip
        """One message: side 0 is who opened the connection; an answer repeats what its question drew at random."""
        self._exchange += side == 0
        step = (side, table, template, filler, wait, self._exchange, when)
        self._steps.append(step)

    def seal(self, side: int, size: ArrayLike, *, wait: ArrayLike = 0.0, when: ArrayLike = True) -> None:
        """As many encrypted TLS records as this many bytes need."""
        sizes = np.maximum(np.asarray(size, np.int64), 1)
        whole = sizes + 5 * -(-sizes // (frames.SEALED_BLOCK - 5))
        self.say(side, filler=whole, wait=wait, when=when, table=frames.SEALED)

    def messages(self) -> tuple[Ints, NDArray[Any]]:
        """How many messages every connection has, and all of them."""
        grid = np.zeros((self.n, len(self._steps)), frames.MESSAGE)
        present = np.zeros((self.n, len(self._steps)), bool)
        for k, (side, table, template, filler, wait, salt, when) in enumerate(self._steps):
            column = grid[:, k]
            column["side"], column["table"], column["salt"] = side, table, salt
            column["template"], column["filler"], column["wait"] = template, filler, wait
            present[:, k] = when
        return present.sum(axis=1), grid[present]


class ConnectionPlan:
    """The connections that begin in one slice of time (seconds since the start of the simulation)."""

    def __init__(
        self, world: World, pool: TrafficTemplates, rng: np.random.Generator, begin: float, end: float, *,
        hour: float = 12.0, day: int = 0, scale: float = 1.0,
    ) -> None:  # fmt: skip
        self.world, self.pool, self.rng = world, pool, rng
        self.begin, self.end, self.hour, self.day, self.scale = begin, end, hour, day, scale
        self._connections: list[NDArray[Any]] = []
        self._messages: list[NDArray[Any]] = []
        self._said = 0
        self.kinds: list[tuple[int, str, str]] = []

    def tcp(
        self, kind: str, a: ArrayLike, b: ArrayLike, dport: ArrayLike, start: Floats, talk: Talk | None = None, *,
        opening: ArrayLike | None = None, closing: ArrayLike | None = None, tries: ArrayLike | None = None,
        six: bool = True, fault: ArrayLike | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """TCP connections; whether they open, how they close and what goes wrong is drawn unless it is given."""
        n = len(start)
        c = self._new(n, a, b, frames.TCP, start, six)
        c["opening"] = self.pick(_OPENINGS, n) if opening is None else opening
        if tries is None:
            again = 3 if n and self.rng.random() < 0.5 else 4
            windows = self.world.arrays()[0]["stack"][c["a"]] == frames.WINDOWS
            tries = np.where(
                c["opening"] == wire.UNANSWERED, self.rng.integers(2, 3 + again, n), np.where(windows, 3, 1)
            )
        c["tries"] = tries
        c["closing"] = self.pick(_CLOSINGS, n) if closing is None else closing
        c["fault"] = self.pick(_FAULTS, n) if fault is None else fault
        self._finish(kind, c, dport, talk, more)

    def udp(
        self, kind: str, a: ArrayLike, b: ArrayLike, dport: ArrayLike, start: Floats, talk: Talk, *, six: bool = True,
        **more: Any,
    ) -> None:  # fmt: skip
        """UDP exchanges."""
        self._finish(kind, self._new(len(start), a, b, frames.UDP, start, six), dport, talk, more)

    def icmp(
        self, kind: str, a: ArrayLike, b: ArrayLike, start: Floats, talk: Talk, *, icmp: int = 0x0800, **more: Any
    ) -> None:
        """ICMP exchanges (type and code in one number); of version 6 where the addresses are."""
        c = self._new(len(start), a, b, frames.ICMP, start, False)
        six = self.world.arrays()[0]["v6"][c["a"]] == 1
        c["proto"] = np.where(six, frames.ICMP6, frames.ICMP)
        c["icmp"] = icmp
        self._finish(kind, c, 0, talk, {"mss": 1472, **more})

    def arp(self, kind: str, a: ArrayLike, b: ArrayLike, start: Floats, answered: ArrayLike, **more: Any) -> None:
        """ARP questions; those in `answered` get their answer."""
        talk = Talk(len(start))
        talk.say(0)
        talk.say(1, when=answered)
        self._finish(kind, self._new(len(start), a, b, frames.ARP, start, False), 0, talk, more)

    def _new(self, n: int, a: ArrayLike, b: ArrayLike, proto: int, start: Floats, six: bool) -> NDArray[Any]:
        c = np.zeros(n, frames.CONNECTION)
        c["a"], c["b"], c["proto"], c["start"] = a, b, proto, start
        if six:
            # Endpoints beyond the world's own have no second address.
            known = len(self.world.v6)
            a6 = np.where(c["a"] < known, self.world.v6[np.minimum(c["a"], known - 1)], -1)
            b6 = np.where(c["b"] < known, self.world.v6[np.minimum(c["b"], known - 1)], -1)
            swap = (a6 >= 0) & (b6 >= 0) & (self.rng.random(n) < SIX_SHARE)
            c["a"], c["b"] = np.where(swap, a6, c["a"]), np.where(swap, b6, c["b"])
        return c

    def _finish(self, kind: str, c: NDArray[Any], dport: ArrayLike, talk: Talk | None, more: dict[str, Any]) -> None:
        n = len(c)
        if not n:
            return
        label = more.pop("label", NORMAL)
        ends = self.world.arrays()[0]
        a, b = ends[c["a"]], ends[c["b"]]
        c["dport"] = dport
        # Linux and the others draw their ports from different ranges; address translators shift them.
        low = np.where(a["stack"] == frames.LINUX, 32768, np.where(a["stack"] == frames.SMALL, 1024, 49152))
        high = np.where(a["stack"] == frames.LINUX, 61000, 65536)
        c["sport"] = low + (self.rng.random(n) * (high - low)).astype(np.int64)
        local = (a["trip"] < 0.02) & (b["trip"] < 0.02)
        c["rate"] = np.where(local, 6e7, 4e6) * self.rng.lognormal(0.0, 0.6, n)
        paths = np.where(c["a"] % 17 == 3, 1412, np.where(c["b"] % 23 == 5, 1400, 1460))
        c["mss"] = np.where(c["proto"] == frames.UDP, 1350, paths - 20 * a["v6"].astype(np.int64))
        c["seed"] = self.rng.integers(0, 1 << 62, n)
        for name, value in more.items():
            c[name] = value
        if talk is None:
            counts, said = np.zeros(n, np.int64), np.zeros(0, frames.MESSAGE)
        else:
            counts, said = talk.messages()
        ends_at = np.cumsum(counts) + self._said
        c["first"], c["last"] = ends_at - counts, ends_at
        self._said += len(said)
        self._connections.append(c)
        self._messages.append(said)
        self.kinds.append((n, label, kind))

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """All connections and messages so far."""
        if not self._connections:
            return np.zeros(0, frames.CONNECTION), np.zeros(0, frames.MESSAGE)
        return np.concatenate(self._connections), np.concatenate(self._messages)

    def pick(self, weights: dict[int, float], n: int) -> Ints:
        """`n` of the keys, by weight."""
        values = np.array(list(weights.values()))
        return np.array(list(weights))[self.rng.choice(len(values), n, p=values / values.sum())]

    def sizes(self, n: int, median: float, spread: float, low: float = 1, high: float = 4e8) -> Ints:
        """Log-normal whole numbers."""
        return np.clip(median * np.exp(spread * self.rng.standard_normal(n)), low, high).astype(np.int64)

    def templates(self, name: str, make: Callable[..., Parts], *columns: ArrayLike) -> Ints:
        """The template for every row of small numbers; `make` is asked once for each different row."""
        rows = np.stack(np.broadcast_arrays(*[np.asarray(column, np.int64) for column in columns]), axis=-1)
        rows = rows.reshape(-1, rows.shape[-1])
        key = np.zeros(len(rows), np.int64)
        for k in range(rows.shape[1]):
            key = key * 65536 + rows[:, k]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        numbers = [self.template((name, *row), make, *row) for row in rows[first].tolist()]
        return np.array(numbers, np.int64)[inverse]

    def template(self, key: Hashable, make: Callable[..., Parts], *arguments: Any) -> int:
        """One template, made when it is first asked for."""
        return self.pool.once(key, lambda: make(*arguments))

    def arrivals(
        self, name: str, hosts: Ints, per_hour: float, curve: tuple[float, ...] = ALWAYS, drifting: bool = True
    ) -> tuple[Ints, Floats]:
        """Which of the hosts do something in this slice, and when: by the hour, the weekday and their own habits."""
        world, rng = self.world, self.rng
        own = np.minimum(hosts, world.hosts - 1)
        hour = (self.hour + (world.early[own] if curve is not ALWAYS else np.zeros(len(own)))) % 24.0
        weight = np.array(curve)[hour.astype(np.int64) % 24]
        if curve is not ALWAYS:
            weight = weight * world.activity[own]
        if curve is OFFICE and self.day % 7 in (5, 6):
            weight = weight * 0.3
        phase = zlib.crc32(name.encode()) / 2**32
        drift = np.exp(0.3 * np.sin(2 * np.pi * (self.day / 23.0 + phase))) if drifting else 1.0
        counts = rng.poisson(per_hour * weight * drift * self.scale * (self.end - self.begin) / 3600.0)
        who = np.repeat(hosts, counts)
        return who, rng.uniform(self.begin, self.end, len(who))

    def ticks(self, hosts: Ints, periods: NDArray[Any], jitter: float) -> tuple[Ints, Floats, Ints]:
        """Regular events of the hosts in this slice (host, time, place in `hosts`), each with its phase and jitter."""
        who, when, place = [], [], []
        for k, (host, period) in enumerate(zip(hosts.tolist(), periods.tolist(), strict=True)):
            phase = (host * 0.6180339887) % 1.0 * period
            first = int(np.ceil((self.begin - phase) / period))
            last = int(np.ceil((self.end - phase) / period))
            times = phase + np.arange(first, last) * period
            if len(times):
                times = times + jitter * period * self.rng.uniform(0.0, 1.0, len(times))
                who.append(np.full(len(times), host))
                when.append(times)
                place.append(np.full(len(times), k))
        if not who:
            return np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        return np.concatenate(who), np.concatenate(when), np.concatenate(place)

    def sites(self, hosts: Ints) -> Ints:
        """Where people of these hosts go: half the time to their own favourites, else to what is popular that day."""
        n = len(hosts)
        own = self.world.favourites[hosts, (24 * self.rng.random(n) ** 2).astype(np.int64)]
        return np.where(self.rng.random(n) < 0.5, own, self.world.popular(self.rng, n, float(self.day)))
