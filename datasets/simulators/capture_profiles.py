"""What people of a simulated office do: the web, names, mail, shells. All invented.

Every kind is a function that adds the connections of one slice of time to a plan; `BENIGN` has all of them,
with large transfers (`capture_transfers`) and those of devices and of the network itself (`capture_devices`).

>>> list(BENIGN)[:4]
['web', 'quic', 'plain_web', 'dns']
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators import capture_dialogues as talks
from netclust.datasets.simulators import capture_payloads as said
from netclust.datasets.simulators import capture_services as service
from netclust.datasets.simulators.capture_devices import DEVICES
from netclust.datasets.simulators.capture_plan import ConnectionPlan, Talk
from netclust.datasets.simulators.capture_templates import Parts
from netclust.datasets.simulators.capture_transfers import TRANSFERS
from netclust.datasets.simulators.capture_world import BUILD, FILES, MAIL, USERS, Floats, Ints
from netclust.datasets.simulators.profiles import ALWAYS, EVENING, OFFICE
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire

PAGES_PER_HOUR = 11.0
PATHS = (
    "/",
    "/index.html",
    "/img/logo.png",
    "/style.css",
    "/api/v1/items?page=2",
    "/news/2024/01/",
    "/search?q=printer+paper",
    "/login",
    "/assets/app.js",
    "/feed.xml",
)
_TYPES = (
    "text/html; charset=utf-8",
    "text/html",
    "application/octet-stream",
    "text/css",
    "application/json",
    "application/javascript",
)
_SERVERS = ("nginx", "Apache/2.4.57", "cloudfront", "Microsoft-IIS/10.0")
_STATUS = ("200 OK", "200 OK", "200 OK", "200 OK", "304 Not Modified", "404 Not Found", "302 Found", "403 Forbidden")


def _pages(
    plan: ConnectionPlan, name: str, per_hour: float, curve: tuple[float, ...], fan: float
) -> tuple[Ints, Ints, Floats]:
    """Hosts, sites and times of the connections of page views: several at once, to a few sites, after their lookups."""
    who, start = plan.arrivals(name, plan.world.people, per_hour, curve)
    main = plan.sites(who)
    counts = 1 + plan.rng.poisson(fan, len(who))
    hosts, sites, times = np.repeat(who, counts), np.repeat(main, counts), np.repeat(start, counts)
    other = plan.rng.random(len(hosts)) < 0.6
    other[np.cumsum(counts) - counts] = False
    sites = np.where(other, plan.sites(hosts), sites)
    times = times + np.where(other, plan.rng.gamma(1.5, 0.4, len(hosts)), plan.rng.uniform(0.0, 0.05, len(hosts)))
    fresh = plan.rng.random(len(hosts)) < 0.55
    talks.dns_dialogue(plan, hosts[fresh], sites[fresh], times[fresh] - plan.rng.uniform(0.03, 0.2, int(fresh.sum())))
    return hosts, sites, times


def _web(plan: ConnectionPlan) -> None:
    """Simulate HTTPS: some requests per connection, idle times with keep-alives, every way to close."""
    hosts, sites, times = _pages(plan, "web", PAGES_PER_HOUR, OFFICE, 3.0)
    n, rng = len(hosts), plan.rng
    talk = Talk(n)
    talks.open_tls(plan, talk, talks.tls_kinds(plan, hosts), sites)
    requests = np.minimum(rng.geometric(0.4, n), 12)
    weight = rng.lognormal(0.0, 1.0, n)
    for k in range(12):
        on = requests > k
        if not on.any():
            break
        pause = np.where(rng.random(n) < 0.06, rng.uniform(10.0, 150.0, n), rng.exponential(0.5, n)) if k else 0.002
        talk.seal(0, plan.sizes(n, 420, 0.5, 60, 6000), wait=pause, when=on)
        talk.seal(1, plan.sizes(n, 4500, 1.3, 80, 6e6) * weight, wait=rng.lognormal(-3.5, 0.9, n), when=on)
    linger = np.where(rng.random(n) < 0.6, rng.uniform(0.0, 3.0, n), rng.uniform(5.0, 120.0, n))
    plan.tcp("web", hosts, plan.world.outside[sites], 443, times, talk, keepalive=45.0, linger=linger)


def _quic(plan: ConnectionPlan) -> None:
    """Simulate HTTP/3."""
    hosts, sites, times = _pages(plan, "quic", 0.12 * PAGES_PER_HOUR, OFFICE, 2.0)
    n, rng = len(hosts), plan.rng
    talk = Talk(n)
    talk.say(0, plan.template("quic", said.quic_initial, 8))
    talk.say(1, plan.template("quic server", said.quic_handshake), wait=0.002)
    requests = np.minimum(rng.geometric(0.3, n), 15)
    for k in range(15):
        talk.say(
            0,
            filler=plan.sizes(n, 250, 0.5, 40, 1200),
            wait=rng.exponential(1.0, n),
            when=requests > k,
            table=frames.QUIC,
        )
        size = plan.sizes(n, 15000, 1.3, 60, 2e6)
        talk.say(1, filler=size, wait=rng.lognormal(-3.5, 0.8, n), when=requests > k, table=frames.QUIC)
    plan.udp("quic", hosts, plan.world.outside[sites], 443, times, talk, acks=rng.integers(2, 10, n))


def _exchange(
    plan: ConnectionPlan,
    talk: Talk,
    agents: Ints,
    hosts: NDArray[np.int64] | int,
    size: Ints,
    wait: Floats,
    on: NDArray[np.bool_],
) -> None:
    """Request one of the usual paths and respond, in clear; host -1 is the office's own."""
    rng, n = plan.rng, talk.n

    def ask(agent: int, site: int, path: int) -> Parts:
        host = "www.office.test" if site == 65535 else plan.world.names[site]
        return said.http_request(talks.AGENTS[agent], host, PATHS[path], "POST" if path == 7 else "GET")

    def tell(status: int, kind: int, server: int) -> Parts:
        return said.http_response(_STATUS[status], _TYPES[kind], _SERVERS[server])

    path, status = rng.integers(0, len(PATHS), n), rng.integers(0, len(_STATUS), n)
    site = np.where(np.asarray(hosts) < 0, 65535, hosts)
    form = np.where(path == 7, rng.integers(20, 200, n), 0)
    talk.say(0, plan.templates("get", ask, agents, site, path), filler=form, wait=wait, when=on, table=frames.TEXT)
    body = np.where(status == 4, 0, np.where(status > 4, rng.integers(150, 900, n), size))
    head = plan.templates("response", tell, status, path % len(_TYPES), site % len(_SERVERS))
    talk.say(1, head, filler=body, wait=rng.lognormal(-4.0, 0.9, n), when=on, table=frames.TEXT)


def _plain_web(plan: ConnectionPlan) -> None:
    """Simulate HTTP without encryption: old sites, mirrors, certificate checks, visitors of the office's own server."""
    hosts, sites, times = _pages(plan, "plain_web", 0.18 * PAGES_PER_HOUR, OFFICE, 1.0)
    n, rng, world = len(hosts), plan.rng, plan.world
    talk = Talk(n)
    agents = talks.tls_kinds(plan, hosts)
    requests = np.minimum(rng.geometric(0.45, n), 10)
    for k in range(10):
        wait = rng.exponential(0.6, n) if k else np.full(n, 0.001)
        _exchange(plan, talk, agents, sites, plan.sizes(n, 5000, 1.4, 40, 2e7), wait, requests > k)
    plan.tcp("http", hosts, world.outside[sites], 80, times, talk, linger=rng.exponential(3.0, n))

    who, start = plan.arrivals("visitors", np.array([MAIL]), 22.0, EVENING)
    counts = 1 + rng.geometric(0.35, len(who))
    start = np.repeat(start, counts) + rng.exponential(2.0, int(counts.sum()))
    visitors = np.repeat(world.strangers(world.anywhere(len(who), rng), rng), counts)
    n = len(start)
    browsers = [talks.AGENTS.index(a) for a in ("chrome", "firefox", "safari", "crawler", "curl", "python", "go")]
    agents = np.repeat(rng.choice(browsers, len(who), p=[0.45, 0.15, 0.15, 0.12, 0.04, 0.05, 0.04]), counts)
    secure = rng.random(n) < 0.6
    for on, port in ((secure, 443), (~secure, 80)):
        k = int(on.sum())
        talk = Talk(k)
        requests = np.minimum(rng.geometric(0.3, k), 12)
        if port == 443:
            talks.open_tls(plan, talk, agents[on] % len(talks.KINDS), np.zeros(k, np.int64), inside=True)
        for r in range(12):
            size = plan.sizes(k, 7000, 1.2, 100, 4e6)
            wait = rng.exponential(1.0, k) if r else np.full(k, 0.002)
            if port == 443:
                talk.seal(0, plan.sizes(k, 450, 0.4), wait=wait, when=requests > r)
                talk.seal(1, size, wait=0.01, when=requests > r)
            else:
                _exchange(plan, talk, agents[on], -1, size, wait, requests > r)
        plan.tcp(
            "visitor",
            visitors[on],
            world.inside[MAIL],
            port,
            start[on],
            talk,
            six=False,
            linger=rng.exponential(4.0, k),
        )


def _dns(plan: ConnectionPlan) -> None:
    """Simulate lookups of their own: reverse names, mail exchangers, texts, misspelt names, hashed names; some by
    TCP."""
    world, rng = plan.world, plan.rng
    who, start = plan.arrivals("dns", world.inside, 7.0, OFFICE)
    n = len(who)
    sites = plan.sites(who)
    sort = rng.choice(6, n, p=[0.25, 0.12, 0.18, 0.22, 0.13, 0.10])

    def query(site: int, sort: int, flavour: int) -> Parts:
        return (said.dns_carrier("av.telix.test", (8 + flavour, 32), frames.HEX, said.A) if sort == 4 else
                said.dns_query(*_odd(plan, site, sort)[:2], edns=flavour > 2))  # fmt: skip

    def reply(site: int, sort: int, flavour: int) -> Parts:
        if sort == 4:
            return said.carried(query(site, sort, flavour), said.A, (b"\x7f\0\0", bytes([2 + flavour])))
        name, kind, data, code = _odd(plan, site, sort)
        return said.dns_answer(name, kind, data, code)

    flavour = rng.integers(0, 5, n)
    site = np.where(sort == 4, 0, sites)
    by_tcp = rng.random(n) < 0.03
    slow = rng.lognormal(-3.6, 0.8, n)
    resolver = np.where(who % 5 == 2, world.outside[7 % len(world.outside)], world.router)
    for on in (by_tcp, ~by_tcp):
        talk = Talk(int(on.sum()))
        columns = (site[on], sort[on], flavour[on])
        if on is by_tcp:
            talk.say(0, plan.templates("odd tcp", lambda *row: said.over_tcp(query(*row)), *columns))
            talk.say(
                1, plan.templates("odd reply tcp", lambda *row: said.over_tcp(reply(*row)), *columns), wait=slow[on]
            )
            plan.tcp("dns", who[on], resolver[on], 53, start[on], talk)
        else:
            talk.say(0, plan.templates("odd", query, *columns))
            talk.say(1, plan.templates("odd reply", reply, *columns), wait=slow[on], when=rng.random(talk.n) < 0.985)
            plan.udp("dns", who[on], resolver[on], 53, start[on], talk)


def _odd(plan: ConnectionPlan, site: int, sort: int) -> tuple[str, int, tuple[bytes, ...], int]:
    name = plan.world.names[site]
    if sort == 0:
        a, b, c, d = plan.world.arrays()[1][int(plan.world.outside[site]), :4].tolist()
        return f"{d}.{c}.{b}.{a}.in-addr.arpa", said.PTR, (said.name_data(name),), 0
    if sort == 1:
        return name.partition(".")[2], said.MX, (said.mail_data(f"mx1.{name}"), said.mail_data(f"mx2.{name}")), 0
    if sort == 2:
        return name.replace("test", "tset"), said.A, (), 3
    if sort == 3:
        text = "v=spf1 include:_spf." + name + " ip4:198.51.100.0/24 ~all" + " v=DKIM1; k=rsa; p=" * (site % 4)
        return name.partition(".")[2], said.TXT, (said.text_data(text),), 0
    return f"_service._tcp.{name}", said.SRV, (), 3


def _mail(plan: ConnectionPlan) -> None:
    """Send mail, and fetch it by POP3 and IMAP: in clear inside, under TLS outside; servers deliver to the office."""
    world, rng = plan.world, plan.rng
    for name, rate in (("smtp", 0.5), ("pop3", 1.2), ("imap", 1.5), ("mail_tls", 1.5), ("delivery", 9.0)):
        clients = world.people if name != "delivery" else np.array([MAIL])
        who, start = plan.arrivals(name, clients, rate, OFFICE)
        n = len(who)
        if not n:
            continue
        users, sites = rng.integers(0, len(USERS), n), plan.sites(who)
        waiting = np.minimum(rng.poisson(1.0, n), 6)
        talk = Talk(n)
        if name in ("smtp", "delivery"):
            where = np.minimum(sites, 60)
            talks.speak(
                plan,
                talk,
                "smtp",
                lambda u, s: service.smtp_lines("mail.office.test", USERS[u], world.names[s]),
                users,
                where,
            )
            head = plan.templates(
                "mail", lambda u, s: service.mail_head(USERS[u], "mail.office.test", world.names[s]), users, where
            )
            talk.say(0, head, filler=plan.sizes(n, 9000, 1.8, 300, 2e7), wait=0.002, table=frames.TEXT)
            talks.speak(plan, talk, "smtp end", lambda _: service.smtp_end(), 0)
            source = who if name == "smtp" else world.outside[sites]
            plan.tcp("smtp", source, world.inside[MAIL], 25, start, talk, closing=wire.FIN_B, six=name == "smtp")
        elif name in ("pop3", "imap"):
            lines = service.pop3_lines if name == "pop3" else service.imap_lines
            talks.speak(
                plan, talk, name, lambda u, w, lines=lines: lines("mail.office.test", USERS[u], w), users, waiting
            )
            for k in range(6):
                text = f"RETR {k + 1}" if name == "pop3" else f"a{k + 4} UID FETCH {900 + k} BODY[]"
                talk.say(0, plan.template(text, service.service_line, text), wait=0.01, when=waiting > k)
                ok = "+OK 5123 octets" if name == "pop3" else f"* {300 + k} FETCH (BODY[] {{5123}}"
                talk.say(
                    1,
                    plan.template(ok, service.service_line, ok),
                    filler=5123,
                    wait=0.005,
                    when=waiting > k,
                    table=frames.TEXT,
                )
            bye = "QUIT" if name == "pop3" else "a99 LOGOUT"
            if name == "imap":
                # Half of the clients stay and wait for news.
                idle = rng.random(n) < 0.5
                talk.say(0, plan.template("idle", service.service_line, "a50 IDLE"), wait=0.05, when=idle)
                talk.say(1, plan.template("idling", service.service_line, "+ idling"), when=idle)
                for _ in range(4):
                    talk.say(
                        1,
                        plan.template("exists", service.service_line, "* 301 EXISTS"),
                        wait=rng.uniform(60, 500, n),
                        when=idle,
                    )
                talk.say(0, plan.template("done", service.service_line, "DONE"), wait=rng.uniform(1, 300, n), when=idle)
            talk.say(0, plan.template(bye, service.service_line, bye), wait=0.02)
            talk.say(
                1,
                plan.template(f"bye {name}", service.service_line, "+OK Bye." if name == "pop3" else "* BYE"),
                wait=0.002,
            )
            plan.tcp(name, who, world.inside[MAIL], 110 if name == "pop3" else 143, start, talk, keepalive=120.0)
        else:
            talks.open_tls(plan, talk, np.full(n, talks.KINDS.index("mail")), sites % 12)
            for k in range(5):
                talk.seal(0, plan.sizes(n, 60, 0.5, 20, 3000), wait=rng.exponential(0.3, n))
                talk.seal(1, plan.sizes(n, 400, 1.6, 30, 3e6), wait=0.03, when=waiting >= k - 2)
            plan.tcp(
                "mail_tls",
                who,
                world.outside[sites % 12],
                rng.choice([993, 995, 465, 587], n, p=[0.7, 0.1, 0.1, 0.1]),
                start,
                talk,
                keepalive=75.0,
                linger=rng.exponential(20.0, n),
            )


def _ssh(plan: ConnectionPlan) -> None:
    """Simulate shells with typing, copies and scripts that log in to several hosts, sometimes with a wrong password."""
    world, rng = plan.world, plan.rng
    staff = np.concatenate([world.role("linux", "mac"), world.inside[[BUILD]]])
    who, start = plan.arrivals("ssh", staff, 1.0, OFFICE)
    robots, run = plan.arrivals("ssh robots", world.inside[[BUILD]], 0.8, ALWAYS)
    counts = rng.integers(3, 14, len(robots))
    who = np.concatenate([who, np.repeat(robots, counts)])
    start = np.concatenate([start, np.repeat(run, counts) + rng.uniform(0.0, 20.0, int(counts.sum()))])
    # And a few colleagues from outside.
    away, then = plan.arrivals("ssh away", world.inside[[BUILD]], 0.7, EVENING)
    n_in, n = len(who), len(who) + len(away)
    sources = np.concatenate([who, world.outside[world.popular(rng, len(away))]])
    targets = np.where(
        rng.random(n) < 0.7, rng.choice(world.inside[[MAIL, FILES, BUILD]], n), world.outside[world.popular(rng, n)]
    )
    targets[n_in:] = world.inside[BUILD]
    targets = np.where(targets == sources, world.inside[FILES], targets)
    script = np.zeros(n, bool)
    script[n_in - int(counts.sum()) : n_in] = True
    talk = Talk(n)
    talks.open_ssh(
        plan, talk, np.where(script, rng.integers(5, 9, n), rng.integers(0, 6, n)), targets % len(service.SSH_SERVERS)
    )
    wrong = rng.choice(3, n, p=[0.86, 0.1, 0.04])
    for k in range(3):
        typed = np.where(script, 0.005, rng.uniform(1.0, 6.0, n))
        talks.try_password(plan, talk, typed, wrong == k, when=wrong >= k)
    copying = rng.random(n) < 0.35
    talk.say(0, filler=plan.sizes(n, 3e5, 2.2, 2000, 6e7), wait=0.05, when=copying)
    talk.say(1, filler=60, wait=0.01, when=copying)
    keys = np.where(copying, 0, np.where(script, 3, np.minimum(rng.geometric(0.012, n), 220)))
    for k in range(int(keys.max(initial=0))):
        talk.say(0, filler=36, wait=np.where(script, 0.02, rng.lognormal(-1.2, 1.3, n)), when=keys > k)
        talk.say(1, filler=plan.sizes(n, 60, 0.9, 36, 9000), wait=0.002, when=keys > k)
    plan.tcp("ssh", sources, targets, 22, np.concatenate([start, then]), talk, keepalive=60.0, tos=0x10)


BENIGN: dict[str, Callable[[ConnectionPlan], None]] = {
    "web": _web, "quic": _quic, "plain_web": _plain_web, "dns": _dns, "mail": _mail, "ssh": _ssh,
    **TRANSFERS, **DEVICES,
}  # fmt: skip
