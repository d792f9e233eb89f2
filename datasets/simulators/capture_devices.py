"""What devices and the network itself do: telemetry, clocks, discovery, monitoring, noise. All invented.

Much of it is regular: a sensor that reports every minute is as punctual as a beacon of malware, and benign.

>>> sorted(DEVICES)[:3]
['arp', 'dhcp', 'discovery']
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from netclust.datasets.simulators import capture_dialogues as talks
from netclust.datasets.simulators import capture_payloads as said
from netclust.datasets.simulators import capture_services as service
from netclust.datasets.simulators.capture_plan import ConnectionPlan, Talk
from netclust.datasets.simulators.capture_templates import Parts
from netclust.datasets.simulators.capture_world import BUILD, FILES, MAIL, MONITOR, Floats, Ints
from netclust.datasets.simulators.profiles import ALWAYS, OFFICE
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire

NOISE_PORTS = (22, 23, 25, 80, 443, 445, 1433, 3306, 3389, 5060, 5900, 6379, 8080, 8443, 9200)
_SERVICES = (
    "_airplay._tcp.local",
    "_ipp._tcp.local",
    "_googlecast._tcp.local",
    "_spotify-connect._tcp.local",
    "_smb._tcp.local",
)


def _telemetry(plan: ConnectionPlan) -> None:
    """Report from sensors and cameras at regular, jittered intervals, by HTTPS or by MQTT on a connection that
    stays."""
    world, rng = plan.world, plan.rng
    devices = world.role("sensor", "camera", "tv", "printer")
    if not len(devices):
        return
    secure, brokered = devices[devices % 2 == 0], devices[devices % 2 == 1]
    periods = 30.0 + (secure * 37 % 19) * 25.0
    who, when, _ = plan.ticks(secure, periods, 0.02 + 0.1 * float(world.activity[0] % 1))
    n = len(who)
    sites = (20 + who % 9) % len(world.outside)
    talk = Talk(n)
    talks.open_tls(plan, talk, talks.tls_kinds(plan, who), sites)
    talk.seal(0, 180 + 8 * (who % 40) + rng.integers(0, 24, n), wait=0.004)
    talk.seal(1, 90 + rng.integers(0, 30, n), wait=rng.lognormal(-3.4, 0.3, n))
    plan.tcp(
        "telemetry",
        who,
        world.outside[sites],
        443,
        when,
        talk,
        closing=np.where(who % 3 > 0, wire.FIN_A, wire.FIN_B),
    )

    # An MQTT session lasts for a day quarter or so; here it is renewed every 50 minutes, as brokers behind NAT do.
    who, when, place = plan.ticks(brokered, np.full(len(brokered), 3000.0), 0.02)
    n = len(who)
    if not n:
        return
    period = 15.0 + (who * 53 % 13) * 20.0
    talk = Talk(n)
    talk.say(0, plan.templates("mqtt", lambda k: said.mqtt_connect(f"device-{k:04d}"), who))
    talk.say(1, plan.template("connack", lambda: (b"\x20\x02\0\0",)), wait=0.002)
    reports = np.minimum((2900.0 / period).astype(np.int64), 190)
    for k in range(int(reports.max(initial=0))):
        pause = period * rng.uniform(0.97, 1.03, n)
        talk.say(
            0,
            plan.templates("publish", lambda d: said.mqtt_publish(f"office/{d}/temperature"), who),
            wait=pause,
            when=reports > k,
        )
        if k % 4 == 3:
            talk.say(0, plan.template("pingreq", lambda: (b"\xc0\0",)), wait=0.01, when=reports > k)
            talk.say(1, plan.template("pingresp", lambda: (b"\xd0\0",)), wait=0.001, when=reports > k)
    plan.tcp(
        "mqtt",
        who,
        world.outside[(40 + place % 3) % len(world.outside)],
        1883,
        when,
        talk,
        closing=wire.FIN_A,
        six=False,
    )


def _push(plan: ConnectionPlan) -> None:
    """Keep one connection for news per phone or program: small records now and then for most of an hour."""
    world, rng = plan.world, plan.rng
    who, when, _ = plan.ticks(world.people, 1500.0 + (world.people * 71 % 23) * 100.0, 0.3)
    n = len(who)
    sites = (30 + who % 6) % len(world.outside)
    talk = Talk(n)
    talks.open_tls(plan, talk, talks.tls_kinds(plan, who), sites)
    for _ in range(10):
        talk.seal(1, plan.sizes(n, 90, 0.8, 24, 4000), wait=rng.exponential(140.0, n))
        talk.seal(0, 31, wait=0.01, when=rng.random(n) < 0.6)
    plan.tcp(
        "push",
        who,
        world.outside[sites],
        rng.choice([443, 5223, 5228], n),
        when,
        talk,
        keepalive=240.0,
    )


def _updates(plan: ConnectionPlan) -> None:
    """Look for updates and report statistics every few minutes, also from people's hosts."""
    world, rng = plan.world, plan.rng
    hosts = np.concatenate([world.people, world.inside[:4]])
    who, when, _ = plan.ticks(hosts, 300.0 + (hosts * 41 % 31) * 60.0, 0.15)
    n = len(who)
    sites = (50 + who * 3 % 25) % len(world.outside)
    talk = Talk(n)
    talks.open_tls(plan, talk, talks.tls_kinds(plan, who), sites)
    talk.seal(0, plan.sizes(n, 500, 0.6, 80, 20000), wait=0.003)
    found = rng.random(n) < 0.03
    talk.seal(1, np.where(found, plan.sizes(n, 2e6, 1.2, 1e4, 3e7), plan.sizes(n, 350, 0.6)), wait=0.03)
    plan.tcp("updates", who, world.outside[sites], 443, when, talk)


def _clocks(plan: ConnectionPlan) -> None:
    """Ask for the time by NTP from every host."""
    world, rng = plan.world, plan.rng
    who, when, _ = plan.ticks(world.inside, 256.0 * 2.0 ** (world.inside % 4), 0.03)
    n = len(who)
    talk = Talk(n)
    talk.say(0, plan.template("ntp", service.ntp, 3))
    talk.say(1, plan.template("ntp answer", service.ntp, 4), wait=0.0001, when=rng.random(n) < 0.99)
    port = np.where(who % 3 == 0, 123, rng.integers(32768, 61000, n))
    plan.udp("ntp", who, world.outside[(10 + who % 4) % len(world.outside)], 123, when, talk, sport=port, tos=0xB8)


def _discovery(plan: ConnectionPlan) -> None:
    """Send mDNS and SSDP to everybody."""
    world, rng = plan.world, plan.rng
    who, start = plan.arrivals("mdns", world.role("mac", "phone", "tablet", "tv", "printer", "windows"), 1.6, ALWAYS)
    n = len(who)
    talk = Talk(n)
    names = plan.templates(
        "mdns", lambda k, m: service.mdns(_SERVICES[k : k + m + 1]), rng.integers(0, 4, n), rng.integers(0, 3, n)
    )
    for k in range(3):
        talk.say(0, names, wait=float(k), when=rng.random(n) < 0.7 if k else True)
    plan.udp("mdns", who, world.mdns, 5353, start, talk, sport=5353, six=False)
    who, start = plan.arrivals("ssdp", world.role("windows", "tv", "phone"), 0.8, ALWAYS)
    n = len(who)
    talk = Talk(n)
    search = plan.templates(
        "ssdp",
        lambda k: service.ssdp(("ssdp:all", "upnp:rootdevice", "urn:dial-multiscreen-org:service:dial:1")[k]),
        rng.integers(0, 3, n),
    )
    for _ in range(4):
        talk.say(0, search, wait=rng.uniform(0.9, 1.1, n))
    plan.udp("ssdp", who, world.ssdp, 1900, start, talk, six=False)


def _arp(plan: ConnectionPlan) -> None:
    """Resolve addresses of hosts and router; also neighbours of version 6, and now and then a host that is not
    there."""
    world, rng = plan.world, plan.rng
    everyone = world.inside
    who, start = plan.arrivals("arp", everyone, 14.0, ALWAYS, drifting=False)
    n = len(who)
    peers = np.where(rng.random(n) < 0.7, world.router, rng.choice(everyone, n))
    peers = np.where(peers == who, world.router, peers)
    reverse = rng.random(n) < 0.35
    a, b = (
        np.where(reverse & (peers == world.router), world.router, who),
        np.where(reverse & (peers == world.router), who, peers),
    )
    gone = rng.random(n) < 0.03
    k = int(gone.sum())
    b[gone] = world.absent(world.unused(k, rng))
    plan.arp("arp", a, b, start, ~gone)
    for _ in range(2):
        again = rng.random(k) < 0.7
        plan.arp(
            "arp", a[gone][again], b[gone][again], start[gone][again] + rng.uniform(0.9, 2.1, int(again.sum())), False
        )
    # The router looks for a row of hosts that it has not heard of for a while.
    if rng.random() < 0.3:
        count = int(rng.integers(4, 20))
        ends = rng.choice(everyone, count)
        plan.arp(
            "arp",
            np.full(count, world.router),
            ends,
            np.sort(rng.uniform(plan.begin, plan.end - 1.0) + rng.uniform(0, 1.0, count)),
            rng.random(count) < 0.9,
        )

    six = everyone[world.v6[everyone] >= 0]
    who, start = plan.arrivals("nd", six, 3.0, ALWAYS, drifting=False)
    n = len(who)
    other = rng.choice(six, n)
    keep = other != who
    a6, b6 = world.v6[who[keep]], world.v6[other[keep]]
    _, addresses, macs = world.arrays()

    def neighbour(target: int, owner: int, option: int) -> Parts:
        return (addresses[target].tobytes() + bytes([option, 1]) + macs[owner].tobytes(),)

    talk = Talk(len(a6))
    talk.say(0, plan.templates("ns", neighbour, b6, a6, 1))
    talk.say(1, plan.templates("na", neighbour, b6, b6, 2))
    plan.icmp("neighbour", a6, b6, start[keep], talk, icmp=0x8700)


def _dhcp(plan: ConnectionPlan) -> None:
    """Renew leases at half their time, and serve hosts that join again."""
    world, rng = plan.world, plan.rng
    _, addresses, macs = world.arrays()
    home = addresses[world.router, :4].tobytes()

    def message(kind: int, host: int, number: int) -> Parts:
        return service.dhcp(
            kind, macs[host].tobytes(), addresses[host, :4].tobytes(), home, struct.pack(">HH", host, number)
        )

    who, when, _ = plan.ticks(world.inside, np.full(len(world.inside), 7200.0), 0.02)
    talk = Talk(len(who))
    number = (when / 7200.0).astype(np.int64)
    talk.say(0, plan.templates("dhcp", message, 3, who, number))
    talk.say(1, plan.templates("dhcp", message, 5, who, number), wait=0.002)
    plan.udp("dhcp", who, world.router, 67, when, talk, sport=68, six=False)
    who, when = plan.arrivals("dhcp", world.role("phone", "tablet", "windows", "mac"), 0.12, OFFICE)
    n = len(who)
    if n:
        asking = world.impostors(who, np.zeros(n, np.int64))
        number = rng.integers(0, 60000, n)
        ask, tell = Talk(n), Talk(n)
        for kind, side in ((1, ask), (3, ask), (2, tell), (5, tell)):
            side.say(0, plan.templates("dhcp", message, kind, who, number), wait=0.0 if kind in (1, 2) else 0.05)
        plan.udp("dhcp", asking, world.broadcast, 67, when, ask, sport=68, six=False)
        plan.udp("dhcp", world.router, world.broadcast, 68, when + 0.01, tell, sport=67, six=False)


def _monitoring(plan: ConnectionPlan) -> None:
    """Ping all hosts, read their counters, try services and collect logs from one host; people ping too."""
    world, rng = plan.world, plan.rng
    me = int(world.inside[MONITOR])
    checked = np.concatenate([world.inside[world.inside % 2 == 0], [world.router], world.outside[:4]])
    checked = checked[checked != me]
    who, when, _ = plan.ticks(checked, np.full(len(checked), 300.0), 0.04)
    n = len(who)
    talk = Talk(n)
    up = rng.random(n) < 0.97
    for k in range(4):
        talk.say(0, filler=56, wait=rng.uniform(0.9, 1.0, n) if k else 0.0)
        talk.say(1, filler=56, when=up)
    plan.icmp("ping", np.full(n, me), who, when, talk)
    people, start = plan.arrivals("ping", world.people, 0.25, OFFICE)
    n = len(people)
    talk = Talk(n)
    size = rng.choice([32, 56, 56, 64, 1000, 1400], n)
    counts = np.minimum(rng.geometric(0.15, n), 30)
    for k in range(30):
        talk.say(0, filler=size, wait=1.0 if k else 0.0, when=counts > k)
        talk.say(1, filler=size, when=(counts > k) & (rng.random(n) < 0.97))
    plan.icmp(
        "ping", people, np.where(rng.random(n) < 0.5, world.router, world.outside[world.popular(rng, n)]), start, talk
    )

    who, when, _ = plan.ticks(
        np.concatenate([world.role("printer", "tv"), world.inside[:3], [world.router]]),
        np.full(len(world.role("printer", "tv")) + 4, 60.0),
        0.05,
    )
    talk = Talk(len(who))
    for k in range(3):
        talk.say(0, plan.template("snmp get", service.snmp, 0xA0, 0), wait=0.002 * k)
        talk.say(1, plan.template(f"snmp {k}", service.snmp, 0xA2, 1 + 2 * k), wait=0.003)
    plan.udp("snmp", np.full(len(who), me), who, 161, when, talk, six=False)

    ports = np.array([22, 80, 25, 443, 21])
    targets = np.repeat(world.inside[[MAIL, FILES, BUILD]], len(ports))
    who, when, place = plan.ticks(targets, np.full(len(targets), 120.0), 0.1)
    offered = np.array([[0, 1, 1, 1, 0], [1, 0, 0, 0, 1], [1, 1, 0, 0, 0]], bool).reshape(-1)[place]
    ends = np.where(offered, wire.OPENED, wire.REFUSED)
    closing = np.where(rng.random(len(who)) < 0.5, wire.RESET_A, wire.FIN_A)
    plan.tcp(
        "check",
        np.full(len(who), me),
        who,
        ports[place % len(ports)],
        when,
        None,
        opening=ends,
        closing=closing,
        tries=1,
    )

    who, start = plan.arrivals("syslog", world.role("printer", "camera", "server"), 9.0, ALWAYS)
    who, start = who[who != me], start[who != me]
    talk = Talk(len(who))
    lines = np.minimum(rng.geometric(0.5, talk.n), 6)
    for k in range(6):
        talk.say(
            0,
            plan.templates("syslog", lambda h: service.syslog_service(f"host{h}"), who),
            wait=rng.exponential(0.5, talk.n) if k else 0.0,
            when=lines > k,
        )
    plan.udp("syslog", who, me, 514, start, talk, sport=514, six=False)


def _noise(plan: ConnectionPlan) -> None:
    """Send single SYNs and stray answers from the internet, and the unreachable messages that they cause."""
    world, rng = plan.world, plan.rng
    _, start = plan.arrivals("noise", np.array([world.router]), 14.0, ALWAYS)
    n = len(start)
    strangers = world.strangers(world.anywhere(n, rng), rng)
    there = rng.random(n) < 0.5
    targets = np.where(there, rng.choice(world.inside, n), 0)
    targets[~there] = world.absent(world.unused(int((~there).sum()), rng))
    opening = np.where(there & (rng.random(n) < 0.5), wire.REFUSED, wire.UNANSWERED)
    plan.tcp(
        "noise",
        strangers,
        targets,
        rng.choice(NOISE_PORTS, n),
        start,
        None,
        opening=opening,
        tries=rng.integers(1, 4, n),
    )
    _, start = plan.arrivals("stray", np.array([world.router]), 3.0, ALWAYS)
    n = len(start)
    strangers = world.outside[world.popular(rng, n)]
    opening = np.where(rng.random(n) < 0.5, wire.ANSWER_RESET, wire.ANSWER_ONLY)
    plan.tcp(
        "noise",
        strangers,
        rng.choice(world.people, n),
        rng.integers(32768, 65535, n),
        start,
        None,
        opening=opening,
        tries=rng.integers(1, 3, n),
        sport=rng.choice([80, 443], n),
        six=False,
    )

    # Late answers to closed ports: the host says so.
    who, start = plan.arrivals("late", world.people, 0.25, OFFICE)
    n = len(who)
    talk = Talk(n)
    talk.say(0, plan.template("ntp answer", service.ntp, 4))
    sport, site = rng.integers(32768, 61000, n), world.outside[(10 + who % 4) % len(world.outside)]
    plan.udp("late", site, who, sport, start, talk, sport=123, six=False)
    unreachable_device(plan, who, site, start + 0.0005, np.full(n, 123), sport, frames.UDP, 3)
    # Hosts that are down: the router says so, after the connection has been tried in vain.
    who, start = plan.arrivals("down", world.people, 0.12, OFFICE)
    n = len(who)
    port = rng.choice([80, 443, 445, 9100], n)
    local = rng.integers(49152, 65535, n)
    gone = world.strangers(world.anywhere(n, rng), rng)
    plan.tcp("web", who, gone, port, start, None, opening=wire.UNANSWERED, tries=rng.integers(1, 4, n), sport=local)
    unreachable_device(plan, np.full(n, world.router), who, start + 0.05, local, port, frames.TCP, 1, about=gone)


def unreachable_device(
    plan: ConnectionPlan, a: Ints, b: Ints, start: Floats, sport: Ints, dport: Ints, proto: int, code: int, *,
    about: Ints | None = None, label: str = "normal",
) -> None:  # fmt: skip
    """Send ICMP from `a` to `b`: a packet of `b` (`sport` to `dport`) did not arrive at `about`, else `a`."""
    addresses = plan.world.arrays()[1]
    target = a if about is None else about
    quotes = []
    for k in range(len(start)):
        quoted = struct.pack(
            ">BBHHHBBH", 0x45, 0, 76 if proto == frames.UDP else 60, int(sport[k]) ^ 0x5A5A, 0x4000, 57, proto, 0
        )
        quoted += addresses[int(b[k]), :4].tobytes() + addresses[int(target[k]), :4].tobytes()
        check = int(frames.checksum(np.frombuffer(bytearray(quoted), np.uint8), 0, 20))
        quoted = quoted[:10] + struct.pack(">H", check) + quoted[12:]
        ports = struct.pack(">HH", int(sport[k]), int(dport[k]))
        quoted += ports + (
            struct.pack(">HH", 56, 0) if proto == frames.UDP else struct.pack(">I", int(sport[k]) * 40503)
        )
        quotes.append(plan.pool.add(quoted))
    talk = Talk(len(start))
    talk.say(0, np.array(quotes, np.int64))
    plan.icmp("unreachable", a, b, start, talk, icmp=0x0300 + code, label=label)


DEVICES: dict[str, Callable[[ConnectionPlan], None]] = {
    "telemetry": _telemetry, "push": _push, "updates": _updates, "ntp": _clocks, "discovery": _discovery, "arp": _arp,
    "dhcp": _dhcp, "monitoring": _monitoring, "noise": _noise,
}  # fmt: skip
