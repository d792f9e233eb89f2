"""Password guessing, tunnels, beacons and odd requests of the capture simulator. Harmless text, nothing that works.

>>> beaconing.__doc__.partition(" at ")[0]
'An infected host calls its controller'
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators import capture_dialogues as talks
from netclust.datasets.simulators import capture_payloads as said
from netclust.datasets.simulators import capture_services as service
from netclust.datasets.simulators.capture_campaigns import AttackCampaign, campaign_attacker, campaign_pace, log_uniform
from netclust.datasets.simulators.capture_plan import ConnectionPlan, Talk
from netclust.datasets.simulators.capture_templates import Part, Parts, Patch, size_of, template_noise
from netclust.datasets.simulators.capture_world import BUILD, FILES, MAIL, Floats
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire

_GUESSED = ("admin", "root", "test", "guest", "oracle", "postgres", "ubuntu", "user", "ftp", "backup", "www-data", "pi")
_ANSWERS = ("200 OK", "404 Not Found", "403 Forbidden", "500 Internal Server Error")
_ODD_PATHS = (
    "/item?id=1%27%20OR%20%271%27=%271",
    "/item?id=1%20UNION%20SELECT%20null,null--",
    "/search?q=%3Cscript%3Ealert(1)%3C/script%3E",
    "/search?q=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
    "/../../../../etc/passwd",
    "/item?id=1%27%20AND%20SLEEP(0)--",
    "/admin/",
    "/wp-login.php",
    "/.git/config",
    "/item?id=1;--",
    "/login?user=admin%27--",
    "/index.php?page=../../config",
)


def _guesses(plan: ConnectionPlan, c: AttackCampaign, most: float) -> tuple[NDArray[np.int64], Floats, int]:
    """Sources, times and target of password guesses: one attacker, or several in turn."""
    rng, world = plan.rng, plan.world
    n = int(log_uniform(rng, 12, most))
    sources = np.array([campaign_attacker(plan, 0.25) for _ in range(int(rng.choice([1, 1, 1, 3, 12])))])
    target = int(world.inside[FILES])
    sources = sources[sources != target]
    return rng.choice(sources, n), campaign_pace(plan, c.start, n, log_uniform(rng, 0.05, 12)), target


def ssh_brute_force(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Login after login; one to six passwords on a connection, all wrong, but for one at the end now and then."""
    rng, world = plan.rng, plan.world
    sources, start, target = _guesses(plan, c, 900)
    n = len(sources)
    target = int(rng.choice([target, int(world.inside[BUILD])]))
    talk = Talk(n)
    talks.open_ssh(
        plan,
        talk,
        np.full(n, int(rng.integers(0, len(service.SSH_CLIENTS)))),
        np.full(n, target % len(service.SSH_SERVERS)),
    )
    guesses = rng.integers(1, int(rng.integers(1, 7)) + 1, n)
    found = np.zeros(n, bool)
    found[-1] = rng.random() < 0.25
    for k in range(6):
        talks.try_password(plan, talk, rng.exponential(0.05, n), found & (guesses == k + 1), when=guesses > k)
    closing = plan.pick({wire.FIN_A: 0.5, wire.FIN_B: 0.35, wire.RESET_A: 0.1, wire.FIN_B_RESET_A: 0.05}, n)
    plan.tcp(c.name, sources, np.full(n, target), 22, start, talk, closing=closing, label=c.name)


def ftp_brute_force(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """The same over FTP: names and passwords in clear, one or a few on a connection."""
    rng = plan.rng
    sources, start, target = _guesses(plan, c, 1500)
    n = len(sources)
    talk = Talk(n)
    users = rng.integers(0, len(_GUESSED), n) if rng.random() < 0.5 else np.full(n, int(rng.integers(0, len(_GUESSED))))
    found = np.zeros(n, bool)
    found[-1] = rng.random() < 0.25
    slow = float(rng.choice([0.02, 1.0, 3.0]))
    for k in range(int(rng.choice([1, 1, 3]))):

        def lines(user: int, good: int, again: int) -> service.Lines:
            whole = service.ftp_login("files.office.test", _GUESSED[user], bool(good))
            return whole[1:] if again else whole

        talks.speak(plan, talk, f"guess {min(k, 1)}", lines, users, found, min(k, 1), wait=slow * 0.1)
    plan.tcp(c.name, sources, np.full(n, target), 21, start, talk, six=False, label=c.name)


def dns_exfiltration(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Data in the names of questions to one zone: short or long, fast or slow, through the resolver or past it."""
    rng, world = plan.rng, plan.world
    me = int(rng.choice(world.people))
    n = int(log_uniform(rng, 40, 3000))
    name = world.names[int(rng.integers(len(world.names)))]
    zone = f"{rng.choice(['t', 'ns', 'cdn', 'data'])}.{name.split('.')[1]}.test"
    alphabet = int(rng.choice([frames.BASE32, frames.HEX]))
    room = int(log_uniform(rng, 14, 200))
    widths = tuple(min(63, room - at) for at in range(0, room, 63) if room - at > 2)
    kind = int(rng.choice([said.A, said.AAAA, said.TXT, said.MX]))
    query = said.dns_carrier(zone, widths, alphabet, kind)
    answers: dict[int, Parts] = {
        said.A: (template_noise(4),),
        said.AAAA: (template_noise(16),),
        said.MX: (b"\0\x0a\x01a\xc0\x0c",),
        said.TXT: _text(int(log_uniform(rng, 8, 240)), alphabet),
    }
    failed = plan.pool.add(*said.carried(query, kind, (), 3))
    good = plan.pool.add(*said.carried(query, kind, answers[kind]))
    ask = plan.pool.add(*query)
    resolver = world.router if rng.random() < 0.7 else int(world.outside[7 % len(world.outside)])
    # Some tools keep one socket for many questions.
    each = int(rng.choice([1, 1, 20]))
    flows = -(-n // each)
    gap = 1.0 / log_uniform(rng, 0.1, 40)
    talk = Talk(flows)
    refused = float(rng.choice([0.0, 0.05, 1.0]))
    for k in range(each):
        talk.say(0, ask, wait=rng.exponential(gap, flows) if k else 0.0)
        talk.say(1, np.where(rng.random(flows) < refused, failed, good), wait=rng.lognormal(-3.0, 0.5, flows))
    plan.udp(
        c.name,
        np.full(flows, me),
        resolver,
        53,
        campaign_pace(plan, c.start, flows, 1.0 / (gap * each)),
        talk,
        label=c.name,
    )


def _text(width: int, alphabet: int) -> Parts:
    parts: tuple[Part, ...] = (Patch(alphabet, width),)
    return (bytes([size_of(parts)]), *parts)


def icmp_tunnel(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Echoes that carry data: sizes vary, both ways differ in pace, for minutes or hours."""
    rng, world = plan.rng, plan.world
    me, peer = int(rng.choice(world.people)), int(world.outside[int(rng.integers(len(world.outside)))])
    n = int(log_uniform(rng, 60, 4000))
    sessions = int(rng.integers(1, 5))
    talk = Talk(sessions)
    middle, spread, gap = (
        log_uniform(rng, 60, 1300),
        float(rng.choice([0.0, 0.3, 0.8])),
        1.0 / log_uniform(rng, 0.2, 60),
    )
    for k in range(n // sessions):
        size = plan.sizes(sessions, middle, spread, 24, 1440)
        talk.say(0, filler=size, wait=rng.gamma(0.5, 2.0 * gap, sessions) if k else 0.0)
        talk.say(
            1,
            filler=size if rng.random() < 0.3 else plan.sizes(sessions, middle, spread, 24, 1440),
            when=rng.random(sessions) < 0.95,
        )
    start = c.start + np.arange(sessions) * n / sessions * gap * 1.1
    plan.icmp(c.name, np.full(sessions, me), np.full(sessions, peer), start, talk, label=c.name)


def beaconing(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """An infected host calls its controller at intervals with jitter; now and then a longer answer brings work."""
    rng, world = plan.rng, plan.world
    me = int(rng.choice(np.concatenate([world.people, world.role("camera", "tv")])))
    site = int(rng.integers(len(world.outside)))
    period, jitter = log_uniform(rng, 4, 900), float(rng.choice([0.0, 0.05, 0.2, 0.5]))
    n = int(np.clip(log_uniform(rng, 1800, 8 * 3600) / period, 12, 1200))
    gaps = period * (1.0 + jitter * rng.uniform(-1.0, 1.0, n))
    start = c.start + np.cumsum(gaps) - gaps[0]
    talk = Talk(n)
    size, reply = int(log_uniform(rng, 60, 900)), int(log_uniform(rng, 40, 600))
    work = rng.random(n) < 0.04
    secure = rng.random() < 0.65
    hosts = np.full(n, me)
    if secure:
        kind = talks.KINDS.index(str(rng.choice(["go", "openssl", "windows", "chrome", "device"])))
        talks.open_tls(plan, talk, np.full(n, kind), np.full(n, site))
        talk.seal(0, size + rng.integers(0, 16, n), wait=0.003)
        talk.seal(1, np.where(work, plan.sizes(n, 40_000, 1.2, 1000, 5e6), reply), wait=0.02)
        talk.seal(0, plan.sizes(n, 3000, 1.5, 50, 1e6), wait=1.0, when=work)
    else:
        agent = str(rng.choice(["chrome", "go", "curl", "python", "windows"]))
        path = str(rng.choice(["/gate.php", "/api/v1/items?page=2", "/login", "/pixel.gif", "/news/2024/01/"]))
        ask = plan.pool.add(*said.http_request(agent, world.names[site], path, "POST" if rng.random() < 0.5 else "GET"))
        talk.say(0, ask, filler=size if rng.random() < 0.5 else 0, table=frames.TEXT)
        tell = plan.template("beacon answer", said.http_response, "200 OK", "text/html", "nginx")
        talk.say(
            1, tell, filler=np.where(work, plan.sizes(n, 40_000, 1.2, 1000, 5e6), reply), wait=0.02, table=frames.TEXT
        )
    if rng.random() < 0.5:
        talks.dns_dialogue(plan, hosts[:1], np.array([site]), start[:1] - 0.1)
    port = int(rng.choice([443, 443, 8443])) if secure else int(rng.choice([80, 80, 8080]))
    plan.tcp(c.name, hosts, world.outside[site], port, start, talk, six=False, label=c.name)


def web_attack(plan: ConnectionPlan, c: AttackCampaign) -> None:
    """Requests with odd parameters, one after the other, to the office's web server: harmless text, mostly refused."""
    rng, world = plan.rng, plan.world
    me = campaign_attacker(plan, 0.2)
    n = int(log_uniform(rng, 8, 600))
    agent = str(rng.choice(["chrome", "firefox", "curl", "python", "go"]))
    first, last = sorted(rng.choice(len(_ODD_PATHS) + 1, 2, replace=False).tolist())
    talk = Talk(n)
    each = int(rng.choice([1, 1, 4, 10]))
    for k in range(each):
        path = rng.integers(first, last, n)
        ask = plan.templates(
            f"odd {agent}",
            lambda p: said.http_request(agent, "www.office.test", _ODD_PATHS[p], "POST" if p % 5 == 4 else "GET"),
            path,
        )
        talk.say(
            0,
            ask,
            filler=np.where(path % 5 == 4, rng.integers(30, 400, n), 0),
            wait=rng.exponential(0.3, n) if k else 0.001,
            table=frames.TEXT,
        )
        status = rng.choice(4, n, p=[0.35, 0.3, 0.2, 0.15])
        head = plan.templates("odd answer", lambda s: said.http_response(_ANSWERS[s], "text/html", "nginx"), status)
        size = np.where(status == 0, plan.sizes(n, 6000, 0.8, 100, 1e5), rng.integers(150, 900, n))
        talk.say(1, head, filler=size, wait=rng.lognormal(-4.0, 0.9, n), table=frames.TEXT)
    plan.tcp(
        c.name,
        np.full(n, me),
        world.inside[MAIL],
        80,
        campaign_pace(plan, c.start, n, log_uniform(rng, 0.05, 20)),
        talk,
        six=False,
        label=c.name,
    )
