"""Who lives in a simulated network: inside hosts with their habits, outside hosts, and the addresses of both.

>>> world = World(seed=1, hosts=40)
>>> world.text(world.router), len(world.role("printer")) > 0, len(world.outside)
('10.20.0.1', True, 1500)
"""

from __future__ import annotations

import zlib
from ipaddress import IPv4Network, IPv6Address
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.packets.packet_frames import APPLE, ENDPOINT, LINUX, SMALL, WINDOWS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CLIENTS, SERVERS = "10.20.0.0/24", "198.18.0.0/15"
MIN_HOSTS = 8
OUTSIDE_HOSTS = 1500
# The first four inside hosts serve the others.
MAIL, FILES, BUILD, MONITOR = range(4)
_KINDS = {
    "windows": (0.34, WINDOWS, 128), "mac": (0.10, APPLE, 64), "linux": (0.10, LINUX, 64), "phone": (0.16, LINUX, 64),
    "tablet": (0.06, APPLE, 64), "camera": (0.06, SMALL, 64), "sensor": (0.10, SMALL, 255), "tv": (0.04, LINUX, 64),
    "printer": (0.04, SMALL, 64),
}  # fmt: skip
_OUI = {"windows": "d4bed9", "mac": "a483e7", "linux": "54bf64", "phone": "9c5c8e", "tablet": "f0b479",
        "camera": "4419b6", "sensor": "240ac4", "tv": "7c1c4e", "printer": "3c2af4", "server": "b49691"}  # fmt: skip
_TLS = {"windows": ("chrome", "firefox", "windows"), "mac": ("safari", "chrome"), "linux": ("firefox", "openssl", "go"),
        "phone": ("chrome", "go"), "tablet": ("safari",), "camera": ("device",), "sensor": ("device",),
        "tv": ("openssl", "chrome"), "printer": ("device",), "server": ("openssl", "go")}  # fmt: skip
_SYLLABLES = ("al", "ben", "cor", "dex", "eno", "fal", "gri", "hub", "ino", "jet", "kal", "lum", "mar", "nov", "ora",
              "pix", "qua", "rin", "sol", "tek", "uno", "vel", "wex", "yar", "zen")  # fmt: skip
_PREFIXES = ("www", "cdn", "api", "static", "img", "login", "app", "m", "update", "video")
USERS = (
    "alice",
    "bob",
    "carol",
    "dave",
    "erin",
    "frank",
    "grace",
    "heidi",
    "ivan",
    "judy",
    "mallory",
    "niaj",
    "olivia",
    "peggy",
)


class World:
    """Endpoints by number. A version 6 address is an endpoint of its own: `v6[e]` is that of the same host, or -1."""

    def __init__(self, seed: int = 0, hosts: int = 40, clients: str = CLIENTS, servers: str = SERVERS) -> None:
        rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(b"world")]))
        self.clients, self.servers = IPv4Network(clients), IPv4Network(servers)
        self.hosts = hosts
        self._ends: list[NDArray[Any]] = []
        self._addresses: list[NDArray[np.uint8]] = []
        self._macs: list[NDArray[np.uint8]] = []
        self.count = 0

        shares = np.array([kind[0] for kind in _KINDS.values()])
        quota = np.floor(np.cumsum(shares / shares.sum()) * (hosts - 4) + 0.5).astype(int)
        kinds = ["server"] * 4 + [
            name for name, k in zip(_KINDS, np.diff(quota, prepend=0), strict=True) for _ in range(k)
        ]
        self.kinds = kinds
        base = int(self.clients.network_address)
        spread = min(self.clients.num_addresses - 3, max(hosts, 230))
        inside = np.sort(rng.permutation(spread)[:hosts]) + base + 2
        rng.shuffle(inside)
        self.router_mac = np.array([0x00, 0x1A, 0x8C, 0x3F, *rng.integers(0, 256, 2)], np.uint8)
        macs = np.array([[*bytes.fromhex(_OUI[kind]), *rng.integers(0, 256, 3)] for kind in kinds], np.uint8)
        stack = np.array([_KINDS[kind][1] if kind in _KINDS else LINUX for kind in kinds])
        ttl = np.array([_KINDS[kind][2] if kind in _KINDS else 64 for kind in kinds])
        wireless = np.isin(kinds, ("phone", "tablet", "sensor", "tv"))
        trip = np.where(wireless, rng.uniform(0.002, 0.012, hosts), rng.uniform(0.00015, 0.0009, hosts))
        self.inside = self._add(inside, macs, ttl, stack, trip, rng)
        self.router = int(self._add(np.array([base + 1]), self.router_mac[None], [64], [LINUX], [0.0003], rng)[0])
        home = bytes.fromhex("20010db800200000")
        inside6, router6 = self._add6(self.inside, home), self._add6(np.array([self.router]), home)
        self.broadcast = self._special("255.255.255.255")
        self.subnet_broadcast = self._special(str(self.clients.broadcast_address))
        self.mdns, self.ssdp = self._special("224.0.0.251"), self._special("239.255.255.250")

        count = min(OUTSIDE_HOSTS, max(self.servers.num_addresses - 2, 1))
        low = int(self.servers.network_address) + (self.servers.num_addresses > 2)
        chosen = low + rng.permutation(min(max(self.servers.num_addresses - 2, 1), 1 << 20))[:count]
        self.outside = self.strangers(chosen, rng)
        six = self.outside[rng.random(count) < 0.5]
        outside6 = self._add6(six, bytes.fromhex("20010db8ffff0000"))
        self.v6 = np.full(self.count, -1, np.int64)
        # Devices with small stacks have no version 6.
        capable = stack != SMALL
        self.v6[self.inside[capable]] = inside6[capable]
        self.v6[six] = outside6
        self.v6[self.router] = router6[0]
        self.names = [self._site(rng) for _ in range(count)]
        self.static = self.count
        self._habits(rng)

    def _habits(self, rng: np.random.Generator) -> None:
        n = self.hosts
        people = np.isin(self.kinds, ("windows", "mac", "linux", "phone", "tablet"))
        self.people = self.inside[people]
        self.activity = rng.lognormal(0.0, 0.6, n)
        self.early = rng.normal(0.0, 1.2, n)
        self.favourites = self.popular(rng, (n, 24))
        self.tls = [_TLS[kind][int(rng.integers(len(_TLS[kind])))] for kind in self.kinds]
        self.users = [USERS[int(rng.integers(len(USERS)))] for _ in self.kinds]

    def role(self, *kinds: str) -> Ints:
        """Inside hosts of these kinds."""
        return self.inside[np.isin(self.kinds, kinds)]

    def popular(self, rng: np.random.Generator, size: int | tuple[int, ...], drift: float = 0.0) -> Ints:
        """Numbers of outside hosts, a few of them very often; which ones shifts with `drift`."""
        n = len(self.outside)
        rank = np.minimum(n ** rng.random(size) - 1.0, n - 1.0)
        return ((rank + 3.0 * drift).astype(np.int64) * 7 + 11) % n

    def strangers(self, addresses: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Outside hosts with these addresses, as any others: distances and stacks of all kinds, behind the router."""
        n = len(addresses)
        stack = rng.choice([LINUX, WINDOWS, APPLE, SMALL], n, p=[0.66, 0.2, 0.06, 0.08])
        ttl = np.where(stack == WINDOWS, 128, np.where(rng.random(n) < 0.06, 255, 64)) - rng.integers(5, 22, n)
        trip = np.clip(rng.lognormal(-3.6, 0.8, n), 0.003, 0.4)
        macs = np.broadcast_to(self.router_mac, (n, 6))
        return self._add(addresses, macs, ttl, stack, trip, rng)

    def anywhere(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Addresses drawn from the whole outside network."""
        low, size = int(self.servers.network_address), self.servers.num_addresses
        return low + (rng.integers(1, size - 1, n) if size > 2 else rng.integers(0, size, n))

    def impostors(self, like: Ints, addresses: NDArray[Any], stack: int | None = None, ttl: int | None = None) -> Ints:
        """Endpoints with the network cards and stacks of others but these addresses (spoofed, or not yet assigned)."""
        ends, _, macs = self.arrays()
        copied = ends[like].copy()
        if stack is not None:
            copied["stack"] = stack
        if ttl is not None:
            copied["ttl"] = ttl
        return self._append(copied, _bytes4(addresses), macs[like])

    def unused(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Inside addresses where nobody answers (or, in a full network, any)."""
        taken = set(self.addresses4(self.inside).tolist()) | {int(self.clients.network_address) + 1}
        every = np.arange(int(self.clients.network_address) + 2, int(self.clients.broadcast_address))[:65536]
        free = np.array([address for address in every.tolist() if address not in taken] or every.tolist())
        return free[rng.integers(0, len(free), n)]

    def absent(self, addresses: NDArray[Any]) -> Ints:
        """Endpoints for inside addresses that nobody holds: the router would pass packets on, and nobody answers."""
        return self.impostors(np.full(len(addresses), self.router), addresses)

    def addresses4(self, ends: Ints) -> Ints:
        """Version 4 addresses as numbers."""
        four = self.arrays()[1][ends, :4].astype(np.int64)
        numbers: Ints = four @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
        return numbers

    def arrays(self) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint8]]:
        """What the kernels read: endpoints, addresses, network cards."""
        if len(self._ends) > 1:
            self._ends = [np.concatenate(self._ends)]
            self._addresses = [np.concatenate(self._addresses)]
            self._macs = [np.concatenate(self._macs)]
        return self._ends[0], self._addresses[0], self._macs[0]

    def forget(self) -> None:
        """Drop the endpoints that were added after the world was made."""
        ends, addresses, macs = self.arrays()
        self._ends, self._addresses, self._macs = (
            [ends[: self.static]],
            [addresses[: self.static]],
            [macs[: self.static]],
        )
        self.count = self.static

    def text(self, end: int) -> str:
        """An endpoint's address as people write it."""
        ends, addresses, _ = self.arrays()
        raw = addresses[end]
        return str(IPv6Address(raw.tobytes())) if ends[end]["v6"] else ".".join(map(str, raw[:4].tolist()))

    def _site(self, rng: np.random.Generator) -> str:
        stem = "".join(_SYLLABLES[int(k)] for k in rng.integers(0, len(_SYLLABLES), int(rng.integers(2, 4))))
        return f"{_PREFIXES[int(rng.integers(len(_PREFIXES)))]}.{stem}.test"

    def _special(self, address: str) -> int:
        number = int.from_bytes(bytes(map(int, address.split("."))), "big")
        first = number >> 24
        group = [1, 0, 0x5E, (number >> 16) & 127, (number >> 8) & 255, number & 255]
        mac = np.array(group if 224 <= first < 240 else [255] * 6, np.uint8)
        return int(self._add(np.array([number]), mac[None], [1], [LINUX], [0.0], np.random.default_rng(0))[0])

    def _add(self, addresses: Any, macs: Any, ttl: Any, stack: Any, trip: Any, rng: np.random.Generator) -> Ints:
        ends = np.zeros(len(addresses), ENDPOINT)
        ends["ttl"], ends["stack"], ends["trip"] = ttl, stack, trip
        sizes = np.array(
            [[64240, 29200, 65535, 64240], [64240, 65535, 8192, 64240], [65535] * 4, [5744, 5840, 4380, 14600]]
        )
        ends["window"] = sizes[np.minimum(ends["stack"], SMALL), rng.integers(0, 4, len(addresses))]
        return self._append(ends, _bytes4(addresses), macs)

    def _add6(self, like: Ints, prefix: bytes) -> Ints:
        ends, _, macs = self.arrays()
        copied = ends[like].copy()
        copied["v6"] = 1
        addresses = np.zeros((len(like), 16), np.uint8)
        addresses[:, :8] = np.frombuffer(prefix, np.uint8)
        addresses[:, 8:11] = macs[like, :3]
        addresses[:, 8] ^= 2
        addresses[:, 11:13] = (255, 254)
        # Outside hosts share the router's card: their version 4 address tells them apart.
        addresses[:, 12:16] = self.arrays()[1][like, :4]
        return self._append(copied, addresses, macs[like])

    def _append(self, ends: NDArray[Any], addresses: NDArray[np.uint8], macs: Any) -> Ints:
        self._ends.append(ends)
        self._addresses.append(addresses)
        self._macs.append(np.array(macs, np.uint8))
        self.count += len(ends)
        return np.arange(self.count - len(ends), self.count)


def _bytes4(addresses: Any) -> NDArray[np.uint8]:
    out = np.zeros((len(addresses), 16), np.uint8)
    out[:, :4] = np.asarray(addresses, np.int64).astype(">u4").view(np.uint8).reshape(-1, 4)
    return out
