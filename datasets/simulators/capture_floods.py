"""Floods, reflections and scans of the capture simulator. All harmless, all invented.

>>> syn_flood.__doc__.partition(",")[0]
'SYNs from invented sources'
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators import capture_payloads as said
from netclust.datasets.simulators import capture_services as service
from netclust.datasets.simulators.capture_campaigns import (
    OPEN_PORTS,
    AttackCampaign,
    campaign_attacker,
    campaign_pace,
    campaign_server,
    log_uniform,
)
from netclust.datasets.simulators.capture_devices import unreachable_device
from netclust.datasets.simulators.capture_plan import ConnectionPlan, Talk
from netclust.datasets.simulators.capture_world import Ints
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire

MAX_CONNECTIONS = 20_000
"""Of one campaign, so that the memory of a slice stays bounded."""
_COMMON = (
    21,
    22,
    23,
    25,
    53,
    80,
    110,
    111,
    135,
    139,
    143,
    443,
    445,
    993,
    995,
    1433,
    1723,
    3306,
    3389,
    5432,
    5900,
    8080,
    8443,
)


def syn_flood(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """SYNs from invented sources, faster than the server forgets them; a part is answered, in vain."""
    rng, world = plan.rng, plan.world
    n = int(log_uniform(rng, 400, MAX_CONNECTIONS))
    rate = log_uniform(rng, 20, 2000)
    victim = campaign_server(plan)
    port = int(rng.choice(OPEN_PORTS[victim]))
    pool = world.strangers(world.anywhere(n, rng), rng)
    if rng.random() < 0.3:
        pool = rng.choice(pool[: max(1, n // 50)], n)
    answered = rng.random(n) < rng.uniform(0.05, 0.95)
    # A host that really exists resets an answer that it did not ask for.
    resets = answered & (rng.random(n) < rng.uniform(0.0, 0.15))
    opening = np.where(resets, wire.OPEN_RESET, np.where(answered, wire.HALF_OPEN, wire.UNANSWERED))
    tries = np.where(answered & ~resets, rng.integers(1, 4, n), 1)
    more = {"sport": rng.integers(1024, 65536, n)} if rng.random() < 0.6 else {}
    plan.tcp(
        c.name,
        pool,
        world.inside[victim],
        port,
        campaign_pace(plan, c.start, n, rate),
        None,
        opening=opening,
        tries=tries,
        six=False,
        fault=wire.FINE,
        label=c.name,
        **more,
    )


def _answers(plan: ConnectionPlan, targets: Ints, ports: Ints, filtered: float) -> Ints:
    """What a SYN finds there: open where the service is, else closed or silence."""
    is_open = np.zeros(len(targets), bool)
    for number, offered in OPEN_PORTS.items():
        is_open |= (targets == plan.world.inside[number]) & np.isin(ports, offered)
    silent = plan.rng.random(len(targets)) < filtered
    return np.where(is_open, wire.OPEN_RESET, np.where(silent, wire.UNANSWERED, wire.REFUSED))


def port_scan(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """SYNs to many ports of one or a few hosts, slow or fast, by raw packets or by plain connections."""
    rng, world = plan.rng, plan.world
    me = campaign_attacker(plan, 0.5)
    hosts = min(int(log_uniform(rng, 1, 12)), len(world.inside) - 1)
    count = int(log_uniform(rng, 15, 2500 / hosts + 16))
    targets = rng.choice(world.inside[world.inside != me], hosts, replace=False)
    if rng.random() < 0.5:
        targets[0] = world.inside[campaign_server(plan)]
    targets = np.unique(targets[targets != me])
    ports = np.unique(np.concatenate([_COMMON, rng.permutation(np.arange(1, 10_000))[:count]]))[: count + len(_COMMON)]
    grid = np.stack(np.meshgrid(targets, rng.permutation(ports)[:count], indexing="ij"), -1).reshape(-1, 2)
    grid = rng.permutation(grid) if rng.random() < 0.7 else grid
    n = len(grid)
    opening = _answers(plan, grid[:, 0], grid[:, 1], float(rng.choice([0.0, 0.1, 0.6])))
    more = {}
    if rng.random() < 0.5:
        # Scanners that make their own packets use one port and few options; the stack is that of small devices.
        me = int(
            world.impostors(
                np.array([me]), world.addresses4(np.array([me])), stack=int(rng.choice([frames.SMALL, frames.BARE]))
            )[0]
        )
        more = {"sport": np.full(n, int(rng.integers(33000, 65000)))} if rng.random() < 0.7 else {}
    else:
        opening = np.where((opening == wire.OPEN_RESET) & (rng.random() < 0.5), wire.OPENED, opening)
    tries = np.where(opening == wire.UNANSWERED, int(rng.integers(1, 3)), 1)
    plan.tcp(
        c.name,
        np.full(n, me),
        grid[:, 0],
        grid[:, 1],
        campaign_pace(plan, c.start, n, log_uniform(rng, 0.3, 400)),
        None,
        opening=opening,
        tries=tries,
        closing=wire.RESET_A,
        six=False,
        fault=wire.FINE,
        label=c.name,
        **more,
    )


def _everyone(plan: ConnectionPlan, share: float) -> tuple[Ints, NDArray[np.bool_]]:
    """A part of the addresses of the inside network in some order, and whether somebody is there."""
    rng, world = plan.rng, plan.world
    low, size = int(world.clients.network_address), min(world.clients.num_addresses, 1024)
    addresses = np.arange(low + 2, low + size - 1)[: max(8, int(share * size))]
    here = dict(zip(world.addresses4(world.inside).tolist(), world.inside.tolist(), strict=True))
    there = np.array([address in here for address in addresses.tolist()])
    ends = np.array([here.get(address, -1) for address in addresses.tolist()])
    ends[~there] = world.absent(addresses[~there])
    if rng.random() < 0.4:
        order = rng.permutation(len(ends))
        return ends[order], there[order]
    return ends, there


def arp_scan(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """One inside host asks for every address of the network."""
    rng, world = plan.rng, plan.world
    me = int(rng.choice(world.inside))
    ends, there = _everyone(plan, float(rng.uniform(0.25, 1.0)))
    ends, there = ends[ends != me], there[ends != me]
    for attempt in range(int(rng.integers(1, 3))):
        on = np.ones(len(ends), bool) if attempt == 0 else ~there
        start = campaign_pace(plan, c.start + 2.0 * attempt, int(on.sum()), log_uniform(rng, 2, 600))
        plan.arp(c.name, np.full(len(start), me), ends[on], start, there[on], label=c.name)


def host_sweep(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Pings to every address of the network; from outside the router answers for a few who are not there."""
    rng = plan.rng
    me = campaign_attacker(plan, 0.6)
    ends, there = _everyone(plan, float(rng.uniform(0.3, 1.0)))
    ends, there = ends[ends != me], there[ends != me]
    talk = Talk(len(ends))
    size, times = int(rng.choice([0, 8, 32, 56, 120])), int(rng.integers(1, 4))
    for k in range(times):
        talk.say(0, filler=size, wait=1.0 if k else 0.0)
        talk.say(1, filler=size, when=there & (rng.random(len(ends)) < 0.95))
    more = {"sport": int(rng.integers(1, 65535))} if rng.random() < 0.5 else {}
    plan.icmp(
        c.name,
        np.full(len(ends), me),
        ends,
        campaign_pace(plan, c.start, len(ends), log_uniform(rng, 1, 300)),
        talk,
        label=c.name,
        **more,
    )


def botnet_scan(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """An infected device tries telnet on one outside address after the other; few answer."""
    rng, world = plan.rng, plan.world
    devices = world.role("camera", "sensor", "tv", "printer")
    me = int(rng.choice(devices if len(devices) else world.people))
    n = int(log_uniform(rng, 200, 6000))
    targets = world.strangers(world.anywhere(n, rng), rng)
    ports = rng.choice([23, 2323], n, p=[0.9, 0.1])
    opening = plan.pick({wire.UNANSWERED: 0.8, wire.REFUSED: 0.16, wire.OPENED: 0.04}, n)
    talk = Talk(n)
    for side, text in (
        (1, "login: "),
        (0, "root\r\n"),
        (1, "Password: "),
        (0, "admin\r\n"),
        (1, "\r\nLogin incorrect\r\nlogin: "),
    ):
        talk.say(side, plan.template(("telnet", text), lambda text=text: (text.encode(),)), wait=0.3)
    more = {"sport": int(rng.integers(1024, 65535))} if rng.random() < 0.3 else {}
    plan.tcp(
        c.name,
        np.full(n, me),
        targets,
        ports,
        campaign_pace(plan, c.start, n, log_uniform(rng, 1, 150)),
        talk,
        opening=opening,
        tries=1,
        six=False,
        label=c.name,
        **more,
    )


def amplification_flood(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Send large answers of open servers that the victim never requested: DNS, NTP or SNMP, one way."""
    rng, world = plan.rng, plan.world
    victim = int(rng.choice(world.inside))
    reflectors = world.outside[rng.permutation(len(world.outside))[: int(log_uniform(rng, 5, 400))]]
    port = int(rng.choice([53, 123, 161]))
    if port == 53:
        texts = tuple(said.text_data("x" * int(rng.integers(100, 250))) for _ in range(int(rng.integers(2, 6))))
        answer = said.dns_answer(world.names[0].partition(".")[2], said.TXT, texts)
    elif port == 123:
        # An answer of mode 6: the header, and variables as text in the filler.
        answer = (b"\x16\x82\0\1\x06\x15\0\0\0\0\1\xd4",)
    else:
        answer = service.snmp(0xA2, int(rng.integers(10, 50)))
    number = plan.pool.add(*answer)
    packets = int(log_uniform(rng, 300, 15_000))
    flows = min(len(reflectors) * int(rng.choice([1, 4])), packets)
    each = max(1, min(packets // flows, 60))
    talk = Talk(flows)
    gap = flows / log_uniform(rng, 50, 3000)
    for k in range(each):
        talk.say(
            0,
            number,
            filler=468 if port == 123 else 0,
            wait=rng.exponential(gap, flows) if k else 0.0,
            table=frames.TEXT,
        )
    target = rng.integers(1024, 65535, flows) if rng.random() < 0.6 else np.full(flows, int(rng.choice([80, 443, 53])))
    start = c.start + rng.uniform(0.0, gap, flows)
    plan.udp(
        c.name,
        rng.choice(reflectors, flows),
        np.full(flows, victim),
        target,
        start,
        talk,
        sport=port,
        six=False,
        mss=1472,
        label=c.name,
    )
    few = rng.permutation(flows)[: min(flows, 15)]
    unreachable_device(
        plan,
        np.full(len(few), victim),
        _sources(plan, few),
        np.sort(start[few]) + 0.001,
        np.full(len(few), port),
        target[few],
        frames.UDP,
        3,
        label=c.name,
    )


def _sources(plan: ConnectionPlan, few: Ints) -> Ints:
    """Who sent the connections that were planned last."""
    last = plan.arrays()[0]
    return last["a"][len(last) - plan.kinds[-1][0] :][few].astype(np.int64)


def udp_flood(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Datagrams of any size to one or many ports of a victim, from one host, several, or invented ones."""
    rng, world = plan.rng, plan.world
    victim = int(world.inside[campaign_server(plan)])
    packets, rate = int(log_uniform(rng, 800, 30_000)), log_uniform(rng, 50, 4000)
    flows = min(MAX_CONNECTIONS, int(log_uniform(rng, 1, packets / 4)))
    each = min(packets // flows, 2000)
    size = int(log_uniform(rng, 10, 1400))
    if rng.random() < 0.5:
        sources = world.strangers(world.anywhere(flows, rng), rng)
    else:
        sources = rng.choice(np.array([campaign_attacker(plan, 0.2) for _ in range(3)]), flows)
    sources = np.where(sources == victim, world.outside[0], sources)
    ports = (
        rng.integers(1, 65535, flows)
        if rng.random() < 0.5
        else np.full(flows, int(rng.choice([53, 80, 123, 443, 5060])))
    )
    talk = Talk(flows)
    gap, table = flows / rate, int(rng.choice([frames.QUIC, frames.TEXT]))
    for k in range(each):
        length = size if rng.random() < 0.5 else plan.sizes(flows, size, 0.3, 1, 1400)
        talk.say(0, filler=length, wait=rng.exponential(gap, flows) if k else 0.0, table=table)
    start = c.start + rng.uniform(0.0, gap, flows)
    plan.udp(c.name, sources, np.full(flows, victim), ports, start, talk, six=False, mss=1472, label=c.name)


def syn_ack_reflection(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Answers of real servers to SYNs that somebody sent in the victim's name; it resets them, or is silent."""
    rng, world = plan.rng, plan.world
    victim = int(rng.choice(world.inside))
    reflectors = world.outside[rng.permutation(len(world.outside))[: int(log_uniform(rng, 10, 1000))]]
    n = int(log_uniform(rng, 200, 8000))
    resets = rng.random(n) < float(rng.choice([0.0, 0.5, 1.0]))
    opening = np.where(resets, wire.ANSWER_RESET, wire.ANSWER_ONLY)
    ports = rng.choice([80, 443, 22, 25, 53, 179], n, p=[0.3, 0.4, 0.1, 0.1, 0.05, 0.05])
    plan.tcp(
        c.name,
        rng.choice(reflectors, n),
        np.full(n, victim),
        rng.integers(1024, 65535, n),
        campaign_pace(plan, c.start, n, log_uniform(rng, 10, 1000)),
        None,
        opening=opening,
        tries=np.where(resets, 1, rng.integers(1, 5, n)),
        sport=ports,
        six=False,
        label=c.name,
    )
