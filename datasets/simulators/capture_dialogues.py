"""Parts of conversations that several kinds of traffic share: TLS and SSH openings, lookups, line protocols.

Benign sessions and attacks speak through the same functions, so that only what is said tells them apart.

>>> from netclust.datasets.simulators.capture_templates import TrafficTemplates
>>> from netclust.datasets.simulators.capture_world import World
>>> plan = ConnectionPlan(World(seed=1), TrafficTemplates(), np.random.default_rng(1), 0.0, 900.0)
>>> talk = Talk(3)
>>> open_tls(plan, talk, np.zeros(3, int), np.arange(3))
>>> talk.messages()[0].tolist()
[3, 3, 3]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from netclust.datasets.simulators import capture_payloads as said
from netclust.datasets.simulators import capture_services as service
from netclust.datasets.simulators.capture_plan import ConnectionPlan, Talk
from netclust.datasets.simulators.capture_services import Lines
from netclust.datasets.simulators.capture_templates import Parts
from netclust.datasets.simulators.capture_world import Floats, Ints
from netclust.kernels.packets import packet_frames as frames

KINDS = tuple(said.HELLOS)
AGENTS = tuple(said.AGENTS)


def tls_kinds(plan: ConnectionPlan, hosts: Ints) -> Ints:
    """Which TLS library each connection of these inside hosts uses: mostly the host's own."""
    own = np.array([KINDS.index(kind) for kind in plan.world.tls])[hosts]
    other = plan.rng.choice([KINDS.index(k) for k in ("windows", "openssl", "go")], len(hosts))
    small = plan.world.arrays()[0]["stack"][hosts] == frames.SMALL
    return np.where((plan.rng.random(len(hosts)) < 0.15) & ~small, other, own)


def open_tls(
    plan: ConnectionPlan, talk: Talk, kinds: Ints, sites: Ints, *, inside: bool = False, when: ArrayLike = True
) -> None:
    """A TLS handshake with the servers of these numbers (or, inside, with the office's own)."""

    def hello(kind: int, site: int) -> Parts:
        return said.client_hello(KINDS[kind], "intranet.office.test" if inside else plan.world.names[site])

    def answer(kind: int, cipher: int) -> Parts:
        modern = said.HELLOS[KINDS[kind]].tls13
        return said.server_hello(
            KINDS[kind], (0x1301, 0x1302, 0x1303)[cipher] if modern else (0xC02B, 0xC02F, 0x9C)[cipher]
        )

    n = len(kinds)
    modern = np.array([said.HELLOS[kind].tls13 for kind in KINDS])[kinds]
    size = np.where(modern, plan.sizes(n, 2800, 0.35, 900, 9000), 40)
    where = 0 * np.asarray(sites) if inside else sites
    talk.say(0, plan.templates(f"hello{inside}", hello, kinds, where), when=when)
    talk.say(
        1, plan.templates("server hello", answer, kinds, np.asarray(where) % 3), filler=size, wait=0.001, when=when
    )
    talk.say(
        0, plan.templates("finished", lambda kind: said.client_finished(KINDS[kind]), kinds), wait=0.001, when=when
    )


def speak(
    plan: ConnectionPlan, talk: Talk, name: str, lines: Callable[..., Lines], *columns: ArrayLike, wait: float = 0.02,
    thinking: float = 0.0, when: ArrayLike = True,
) -> None:  # fmt: skip
    """A dialogue of lines that depends on small numbers; the client thinks that long, on average, before it speaks."""
    if not talk.n:
        return
    example = lines(*(int(np.asarray(column).flat[0]) for column in columns))
    for k, (side, _) in enumerate(example):

        def one(*row: int, k: int = k) -> Parts:
            return lines(*row)[k][1]

        pause = wait * plan.rng.lognormal(0.0, 0.7, talk.n)
        if thinking and side == 0:
            pause = pause + plan.rng.exponential(thinking, talk.n)
        talk.say(side, plan.templates(f"{name} {k}", one, *columns), wait=pause, when=when)


def open_ssh(plan: ConnectionPlan, talk: Talk, clients: Ints, servers: Ints) -> None:
    """Banners, key exchange, first encrypted packets up to where authentication begins."""
    n, rng = talk.n, plan.rng
    talk.say(0, plan.templates("ssh client", lambda k: service.ssh_banner(service.SSH_CLIENTS[k]), clients))
    talk.say(1, plan.templates("ssh server", lambda k: service.ssh_banner(service.SSH_SERVERS[k]), servers), wait=0.01)
    talk.say(0, plan.templates("ssh kex", service.ssh_kexinit, clients), wait=0.001)
    talk.say(1, plan.templates("ssh kex server", service.ssh_kexinit, servers), wait=0.001)
    talk.say(0, plan.template("ssh dh", service.ssh_exchange), wait=0.002)
    talk.say(1, plan.template("ssh reply", service.ssh_reply), wait=0.004)
    talk.say(0, plan.template("ssh newkeys", service.ssh_newkeys), wait=0.002)
    talk.say(0, filler=44, wait=0.001)
    talk.say(1, filler=44, wait=0.001)
    talk.say(0, filler=60 + 8 * rng.integers(0, 3, n), wait=0.001)


def try_password(
    plan: ConnectionPlan, talk: Talk, wait: ArrayLike, accepted: ArrayLike, when: ArrayLike = True
) -> None:
    """One password over SSH: a refusal is slower and longer than a welcome."""
    n, rng = talk.n, plan.rng
    talk.say(1, filler=52, wait=0.003, when=when)
    talk.say(0, filler=84 + 16 * rng.integers(0, 5, n), wait=wait, when=when)
    talk.say(1, filler=28, wait=0.01 * rng.lognormal(0.0, 0.5, n), when=np.logical_and(when, accepted))
    slow = rng.uniform(0.3, 2.2, n)
    talk.say(1, filler=52, wait=slow, when=np.logical_and(when, np.logical_not(accepted)))


def dns_dialogue(plan: ConnectionPlan, hosts: Ints, sites: Ints, start: Floats) -> None:
    """Ask the DNS questions before a connection: address, often also of version 6, sometimes HTTPS."""
    world, rng = plan.world, plan.rng
    n = len(hosts)
    if not n:
        return
    for kind, share in ((said.A, 1.0), (said.AAAA, 0.45), (said.HTTPS, 0.12)):
        some = rng.random(n) < share
        k = int(some.sum())
        talk = Talk(k)
        talk.say(0, plan.templates(f"ask{kind}", lambda s, kind=kind: _question(plan, s, kind), sites[some]))
        slow = np.where(rng.random(k) < 0.6, 0.0002, rng.lognormal(-3.5, 0.9, k))
        talk.say(1, plan.templates(f"tell{kind}", lambda s, kind=kind: _answer(plan, s, kind), sites[some]), wait=slow)
        when = start[some] + rng.uniform(0.0, 0.002, k)
        plan.udp("dns", hosts[some], world.router, 53, when, talk)


def _question(plan: ConnectionPlan, site: int, kind: int) -> Parts:
    """Return the question of a host about a site."""
    return said.dns_query(plan.world.names[site], kind, edns=site % 3 == 0)


def _answer(plan: ConnectionPlan, site: int, kind: int) -> Parts:
    """Return the resolver's answer: addresses, or that there are none of that kind."""
    world = plan.world
    end = int(world.outside[site])
    addresses = world.arrays()[1]
    data: tuple[bytes, ...] = ()
    if kind == said.A:
        data = tuple(
            addresses[int(world.outside[(site + k) % len(world.outside)]), :4].tobytes() for k in range(1 + site % 4)
        )
        data = (addresses[end, :4].tobytes(), *data[1:])
    elif kind == said.AAAA and world.v6[end] >= 0:
        data = (addresses[int(world.v6[end])].tobytes(),)
    return said.dns_answer(world.names[site], kind, data, ttl=60 + 60 * (site % 9))
