"""Class profiles of the simulator: what each kind of benign traffic and each attack looks like. All invented.

A profile says how connections of one kind come about (which hosts, how fast, how long,
how many bytes). It does
not say what the traffic attributes are (`count`, `serror_rate`, `dst_host_*`): those are counted from the
simulated stream, so they agree with each other and with whatever else happens at that moment.

>>> PROFILES["syn_flood"].flags
{'S0': 1.0}
>>> sorted(set(CATEGORIES.values()))
['dos', 'exfiltration', 'probe', 'r2l']
>>> [name for name in HELD_BACK if CATEGORIES[name] == "r2l"]
['mail_password_spray']
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Draw:
    """A whole number: 0 unless `present` (a probability), else log-normal around `median`, at most `high`."""

    median: float
    spread: float = 0.0
    present: float = 1.0
    high: float = 2e9


ZERO = Draw(0.0)


def _chance(probability: float) -> Draw:
    """Return A 0/1 attribute."""
    return Draw(1.0, present=probability)


def _bump(hour: float, width: float, floor: float) -> tuple[float, ...]:
    """Weights of the 24 hours: a bell around `hour`, never below `floor`, mean 1."""
    away = [min((h - hour) % 24, (hour - h) % 24) for h in range(24)]
    weights = [floor + math.exp(-0.5 * (a / width) ** 2) for a in away]
    return tuple(24 * w / sum(weights) for w in weights)


ALWAYS = (1.0,) * 24
OFFICE = _bump(13, 3.5, 0.08)
EVENING = _bump(19, 4.0, 0.15)
NIGHT = _bump(2, 1.2, 0.002)

# Hosts are numbers. Attacks aim at the same hosts that benign users visit.
WEB_SERVERS = range(6)
MAIL_SERVERS = range(6, 9)
RESOLVERS = range(9, 11)
FILE_SERVERS = range(11, 15)
SHELL_HOSTS = range(11, 40)
LAN = range(250)
INTERNET = range(1000, 3000)
DROP_HOSTS = range(5000, 5040)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One kind of traffic. Connections come in sessions (an attack's session is an episode)."""

    name: str
    category: str = NORMAL
    share: float  # weight among the benign kinds, or among the attacks
    protocol: str = "tcp"
    services: Mapping[str, float]
    service_changes: bool = False  # drawn for each connection, not once for each session
    flags: Mapping[str, float] = field(default_factory=lambda: {"SF": 1.0})
    hosts: range
    stay: float = 1.0  # probability that a connection goes to the session's own host
    session: float  # median number of connections
    gap: float  # mean seconds between them
    hours: tuple[float, ...] = ALWAYS
    source_port: int | None = None  # None: a new ephemeral port each time, but for `port_reuse`
    port_reuse: float = 0.0
    duration: Draw = ZERO
    src_bytes: Draw = ZERO
    dst_bytes: Draw = ZERO
    content: Mapping[str, Draw] = field(default_factory=dict)
    altered: frozenset[str] = frozenset()  # attributes that differ from benign traffic of the same service


_LOGIN = {"logged_in": _chance(0.97)}
_SCANNED = (
    "auth", "domain", "exec", "finger", "ftp", "http", "imap4", "ldap", "login", "netbios_ssn", "pop_3",
    "printer", "private", "shell", "smtp", "ssh", "sunrpc", "telnet", "uucp", "X11",
)  # fmt: skip
# Ports without a name of their own count as private.
_ANY_SERVICE = {service: 2.0 if service == "private" else 1.0 for service in _SCANNED}

BENIGN: tuple[Profile, ...] = (
    Profile(
        name="web", share=34, services={"http": 0.6, "http_443": 0.4}, hours=EVENING,
        flags={"SF": 0.95, "RSTO": 0.02, "RSTR": 0.01, "S1": 0.01, "S0": 0.01},
        hosts=INTERNET, stay=0.7, session=6, gap=0.25,
        duration=Draw(2, 1.2, 0.25), src_bytes=Draw(270, 0.5), dst_bytes=Draw(3500, 1.4, 0.97),
        content=_LOGIN,
    ),
    Profile(
        name="web_own_site", share=12, services={"http": 1.0}, hours=EVENING,
        flags={"SF": 0.96, "RSTR": 0.02, "S1": 0.01, "REJ": 0.01},
        hosts=WEB_SERVERS, stay=0.95, session=8, gap=0.15,
        duration=Draw(1, 0.9, 0.15), src_bytes=Draw(240, 0.4), dst_bytes=Draw(2600, 1.2, 0.98),
        content=_LOGIN,
    ),
    Profile(
        name="web_upload", share=1.2, services={"http": 0.5, "http_443": 0.5}, hours=EVENING,
        flags={"SF": 0.97, "RSTO": 0.03}, hosts=INTERNET, session=2, gap=2.0,
        duration=Draw(12, 1.0), src_bytes=Draw(400_000, 1.4), dst_bytes=Draw(900, 0.8), content=_LOGIN,
    ),
    Profile(
        name="smtp", share=9, services={"smtp": 1.0}, hours=OFFICE,
        flags={"SF": 0.96, "S1": 0.01, "RSTO": 0.02, "REJ": 0.01}, hosts=MAIL_SERVERS, session=2, gap=1.0,
        duration=Draw(2, 0.7, 0.8), src_bytes=Draw(1500, 1.1), dst_bytes=Draw(330, 0.15), content=_LOGIN,
    ),
    Profile(
        name="mail_fetch", share=5, services={"pop_3": 0.4, "imap4": 0.6}, hours=OFFICE,
        flags={"SF": 0.98, "RSTO": 0.02}, hosts=MAIL_SERVERS, session=2, gap=4.0,
        duration=Draw(2, 1.0, 0.6), src_bytes=Draw(60, 0.5), dst_bytes=Draw(900, 1.5),
        content={"logged_in": _chance(0.96), "num_failed_logins": Draw(1, 0.2, 0.03)},
    ),
    Profile(
        name="dns", share=18, protocol="udp", services={"domain_u": 1.0}, hours=EVENING,
        hosts=RESOLVERS, stay=0.9, session=4, gap=0.2,
        src_bytes=Draw(42, 0.15), dst_bytes=Draw(95, 0.5, 0.96),
    ),
    Profile(
        name="dns_long_names", share=1.0, protocol="udp", services={"domain_u": 1.0}, hours=EVENING,
        hosts=RESOLVERS, stay=0.9, session=8, gap=0.3, src_bytes=Draw(110, 0.3), dst_bytes=Draw(180, 0.4),
    ),
    Profile(
        name="ftp", share=1.6, services={"ftp": 1.0}, hours=OFFICE,
        flags={"SF": 0.96, "RSTO": 0.03, "S1": 0.01}, hosts=FILE_SERVERS, session=1.5, gap=6.0,
        duration=Draw(25, 1.0), src_bytes=Draw(220, 0.6), dst_bytes=Draw(900, 0.6),
        content={
            "hot": Draw(1.5, 0.7, 0.5), "logged_in": _chance(0.95), "is_guest_login": _chance(0.3),
            "num_failed_logins": Draw(1, 0.4, 0.06), "num_file_creations": Draw(2, 0.6, 0.1),
            "num_access_files": Draw(1, 0.4, 0.05),
        },
    ),
    Profile(
        name="ftp_data", share=3.5, services={"ftp_data": 1.0}, hours=OFFICE,
        flags={"SF": 0.98, "S1": 0.01, "RSTR": 0.01}, hosts=FILE_SERVERS, session=4, gap=1.2,
        source_port=20, duration=Draw(2, 1.0, 0.4), src_bytes=Draw(9000, 2.0), dst_bytes=ZERO, content=_LOGIN,
    ),
    Profile(
        name="ssh", share=3, services={"ssh": 1.0}, hours=OFFICE,
        flags={"SF": 0.95, "RSTO": 0.02, "S1": 0.01, "REJ": 0.02}, hosts=SHELL_HOSTS, session=1.3, gap=5.0,
        duration=Draw(90, 1.8), src_bytes=Draw(4500, 1.0), dst_bytes=Draw(6500, 1.2),
        content={"logged_in": _chance(0.93)},
    ),
    Profile(
        name="deployment", share=0.7, services={"ssh": 1.0}, hours=OFFICE,
        hosts=SHELL_HOSTS, stay=0.4, session=12, gap=0.6,
        duration=Draw(3, 0.6), src_bytes=Draw(2600, 0.5), dst_bytes=Draw(2900, 0.4),
        content={"logged_in": _chance(0.9)},
    ),
    Profile(
        name="telnet", share=0.6, services={"telnet": 1.0}, hours=OFFICE,
        flags={"SF": 0.94, "RSTO": 0.04, "S1": 0.02}, hosts=SHELL_HOSTS, session=1.2, gap=8.0,
        duration=Draw(120, 1.2), src_bytes=Draw(500, 1.0), dst_bytes=Draw(3000, 1.2),
        content={
            "hot": Draw(1.2, 0.6, 0.25), "logged_in": _chance(0.93), "num_failed_logins": Draw(1, 0.3, 0.08),
            "num_compromised": Draw(1, 0.5, 0.08), "su_attempted": _chance(0.04), "root_shell": _chance(0.03),
            "num_root": Draw(3, 0.8, 0.1), "num_shells": _chance(0.02), "num_access_files": Draw(1, 0.5, 0.08),
            "num_file_creations": Draw(2, 0.7, 0.12),
        },
    ),
    Profile(
        name="ntp", share=3.5, protocol="udp", services={"ntp_u": 1.0}, hosts=INTERNET[:12], stay=0.6,
        session=2, gap=1.0, source_port=123, src_bytes=Draw(48), dst_bytes=Draw(48, present=0.98),
    ),
    Profile(
        name="ping", share=2.2, protocol="icmp", services={"eco_i": 0.5, "ecr_i": 0.5}, hosts=LAN,
        stay=0.85, session=4, gap=0.9, source_port=0, src_bytes=Draw(64, 0.25),
    ),
    Profile(
        name="reachability_check", share=1.8, protocol="icmp", services={"eco_i": 1.0}, hosts=LAN,
        stay=0.0, session=14, gap=0.15, source_port=0, src_bytes=Draw(32, 0.3),
    ),
    Profile(
        name="rejected", share=2.2, services={"auth": 0.35, "private": 0.3, "http": 0.15, "smtp": 0.2},
        flags={"REJ": 0.8, "RSTR": 0.2}, hosts=LAN, session=2, gap=0.8,
    ),
    Profile(
        name="unanswered", share=1.4, services={"private": 0.3, "http": 0.4, "smtp": 0.2, "ldap": 0.1},
        flags={"S0": 1.0}, hosts=LAN, session=3, gap=1.0,
    ),
    Profile(
        name="inventory", share=0.5, services=_ANY_SERVICE, service_changes=True, hours=NIGHT,
        flags={"SF": 0.45, "REJ": 0.45, "S0": 0.1}, hosts=LAN, stay=0.7, session=15, gap=0.4,
        src_bytes=Draw(12, 0.5, 0.5), dst_bytes=Draw(90, 0.8, 0.7),
    ),
    Profile(
        name="netbios", share=1.4, protocol="udp", services={"netbios_ns": 1.0}, hours=OFFICE, hosts=LAN,
        stay=0.7, session=3, gap=0.7, source_port=137, src_bytes=Draw(78, 0.1), dst_bytes=Draw(62, 0.3, 0.5),
    ),
    Profile(
        name="syslog", share=2.0, protocol="udp", services={"private": 0.7, "other": 0.3},
        hosts=FILE_SERVERS[2:], session=6, gap=0.2, source_port=514, src_bytes=Draw(130, 0.4),
    ),
    Profile(
        name="backup", share=2.2, services={"ssh": 0.4, "ftp_data": 0.6}, hours=NIGHT, hosts=FILE_SERVERS[:2],
        flags={"SF": 0.99, "RSTO": 0.01}, session=20, gap=1.5,
        duration=Draw(40, 0.8), src_bytes=Draw(6e6, 1.0), dst_bytes=Draw(1500, 0.8, 0.6), content=_LOGIN,
    ),
)  # fmt: skip

# Attributes that change together: how busy the target is, what fails there, how its services and callers mix.
_BUSY = frozenset({"count", "srv_count", "dst_host_count", "dst_host_srv_count"})
_UNFINISHED = frozenset({"serror_rate", "srv_serror_rate", "dst_host_serror_rate", "dst_host_srv_serror_rate"})
_REFUSED = frozenset({"rerror_rate", "srv_rerror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate"})
_RECENT_MIX = frozenset({"same_srv_rate", "diff_srv_rate"})
_SERVICE_MIX = frozenset({"dst_host_same_srv_rate", "dst_host_diff_srv_rate"})
_ONE_TARGET = frozenset({"dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate"})
_NO_ANSWER = frozenset({"flag", "src_bytes", "dst_bytes", "logged_in"})

ATTACKS: tuple[Profile, ...] = (
    Profile(
        name="syn_flood", category="dos", share=3, services={"http": 0.5, "smtp": 0.2, "private": 0.3},
        flags={"S0": 1.0}, hosts=WEB_SERVERS, session=700, gap=0.003,
        altered=_BUSY | _UNFINISHED | _ONE_TARGET | _SERVICE_MIX | _NO_ANSWER | {
            "duration", "srv_diff_host_rate", "dst_host_srv_rerror_rate",
        },
    ),
    Profile(
        name="udp_flood", category="dos", share=3, protocol="udp", services={"private": 0.5, "other": 0.5},
        hosts=LAN, session=500, gap=0.004, src_bytes=Draw(900, 0.3),
        content={"wrong_fragment": Draw(2, 0.4, 0.4)},
        altered=_BUSY | _ONE_TARGET | _SERVICE_MIX | {"src_bytes", "wrong_fragment"},
    ),
    Profile(
        name="icmp_flood", category="dos", share=3, protocol="icmp", services={"ecr_i": 1.0},
        hosts=WEB_SERVERS, session=500, gap=0.004, source_port=0, src_bytes=Draw(1020, 0.1),
        altered=_BUSY | {"src_bytes", "dst_host_srv_diff_host_rate", "srv_diff_host_rate"},
    ),
    Profile(
        name="http_flood", category="dos", share=2, services={"http": 1.0},
        flags={"SF": 0.86, "S1": 0.05, "RSTR": 0.06, "REJ": 0.03}, hosts=WEB_SERVERS, session=160, gap=0.05,
        duration=Draw(3, 0.8, 0.4), src_bytes=Draw(190, 0.25), dst_bytes=Draw(1900, 0.9, 0.9),
        content={"logged_in": _chance(0.95)},
        altered=_BUSY | _UNFINISHED | _REFUSED | _ONE_TARGET | {"src_bytes", "srv_diff_host_rate"},
    ),
    Profile(
        name="port_scan", category="probe", share=2, services=_ANY_SERVICE, service_changes=True,
        flags={"REJ": 0.75, "S0": 0.13, "SF": 0.07, "RSTR": 0.05}, hosts=LAN, session=120, gap=0.03,
        src_bytes=Draw(6, 0.5, 0.3), dst_bytes=Draw(60, 0.8, 0.5), port_reuse=0.7,
        altered=_BUSY | _UNFINISHED | _REFUSED | _ONE_TARGET | _RECENT_MIX | _SERVICE_MIX | _NO_ANSWER | {
            "service", "duration", "srv_diff_host_rate",
        },
    ),
    Profile(
        name="host_sweep", category="probe", share=1.5, protocol="icmp", services={"eco_i": 1.0},
        hosts=LAN, stay=0.0, session=90, gap=0.08, source_port=0, src_bytes=Draw(16, 0.5),
        altered=frozenset({
            "src_bytes", "srv_count", "srv_diff_host_rate", "dst_host_srv_count",
            "dst_host_srv_diff_host_rate",
        }),
    ),
    Profile(
        name="slow_scan", category="probe", share=1, services=_ANY_SERVICE, service_changes=True,
        flags={"REJ": 0.55, "S0": 0.25, "SF": 0.1, "RSTR": 0.1}, hosts=LAN, stay=0.95, session=40, gap=3.0,
        src_bytes=Draw(6, 0.5, 0.3), dst_bytes=Draw(60, 0.8, 0.5), port_reuse=0.5,
        altered=_REFUSED | _ONE_TARGET | _RECENT_MIX | _SERVICE_MIX | _NO_ANSWER | {
            "service", "duration", "srv_count", "srv_diff_host_rate", "serror_rate",
            "dst_host_serror_rate", "dst_host_srv_serror_rate", "dst_host_count", "dst_host_srv_count",
        },
    ),
    Profile(
        name="ssh_brute_force", category="r2l", share=1.5, services={"ssh": 1.0},
        flags={"SF": 0.8, "RSTO": 0.2}, hosts=SHELL_HOSTS, session=60, gap=0.7,
        duration=Draw(2, 0.5), src_bytes=Draw(1700, 0.25), dst_bytes=Draw(2300, 0.2),
        content={"logged_in": _chance(0.01)},
        altered=_BUSY | _REFUSED | _ONE_TARGET | _SERVICE_MIX | {
            "duration", "src_bytes", "dst_bytes", "logged_in",
        },
    ),
    Profile(
        name="ftp_brute_force", category="r2l", share=1.2, services={"ftp": 1.0},
        flags={"SF": 0.75, "RSTO": 0.25}, hosts=FILE_SERVERS, session=40, gap=0.9,
        duration=Draw(4, 0.5), src_bytes=Draw(90, 0.4), dst_bytes=Draw(330, 0.3),
        content={"num_failed_logins": Draw(2, 0.6, 0.85), "logged_in": _chance(0.02), "hot": _chance(0.1)},
        altered=_BUSY | _REFUSED | _ONE_TARGET | _SERVICE_MIX | {
            "duration", "src_bytes", "dst_bytes", "logged_in", "num_failed_logins", "hot",
            "is_guest_login",
        },
    ),
    Profile(
        name="mail_password_spray", category="r2l", share=1, services={"pop_3": 0.5, "imap4": 0.5},
        flags={"SF": 0.9, "RSTO": 0.1}, hosts=MAIL_SERVERS, stay=0.8, session=40, gap=2.5,
        duration=Draw(1, 0.6, 0.6), src_bytes=Draw(40, 0.3), dst_bytes=Draw(130, 0.3),
        content={"num_failed_logins": Draw(1, 0.3, 0.8), "logged_in": _chance(0.02)},
        altered=_SERVICE_MIX | {
            "logged_in", "num_failed_logins", "src_bytes", "dst_bytes", "dst_host_srv_count",
            "dst_host_rerror_rate", "dst_host_srv_rerror_rate",
        },
    ),
    Profile(
        name="dns_exfiltration", category="exfiltration", share=1.2, protocol="udp",
        services={"domain_u": 1.0}, hosts=RESOLVERS, session=70, gap=0.25,
        src_bytes=Draw(170, 0.25), dst_bytes=Draw(120, 0.4),
        altered=_BUSY | _ONE_TARGET | {"src_bytes"},
    ),
    Profile(
        name="bulk_upload", category="exfiltration", share=0.8,
        services={"http": 0.3, "http_443": 0.5, "ssh": 0.2}, flags={"SF": 0.97, "RSTO": 0.03},
        hosts=DROP_HOSTS, session=15, gap=4.0,
        duration=Draw(60, 0.7), src_bytes=Draw(4e6, 0.8), dst_bytes=Draw(2000, 0.7), content=_LOGIN,
        altered=_ONE_TARGET | {
            "duration", "src_bytes", "dst_bytes", "count", "srv_count", "dst_host_count",
            "srv_diff_host_rate",
        },
    ),
    Profile(
        name="file_harvest", category="exfiltration", share=0.8, services={"telnet": 0.5, "ftp": 0.5},
        flags={"SF": 0.96, "RSTO": 0.04}, hosts=SHELL_HOSTS, stay=0.6, session=8, gap=5.0,
        duration=Draw(180, 0.8), src_bytes=Draw(900, 0.6), dst_bytes=Draw(60_000, 1.2),
        content={
            "hot": Draw(4, 0.7, 0.9), "logged_in": _chance(1.0), "num_compromised": Draw(2, 0.7, 0.6),
            "root_shell": _chance(0.5), "su_attempted": _chance(0.25), "num_root": Draw(5, 0.8, 0.5),
            "num_access_files": Draw(4, 0.6, 0.9), "num_shells": _chance(0.3),
        },
        altered=_SERVICE_MIX | {
            "duration", "src_bytes", "dst_bytes", "hot", "num_compromised", "root_shell", "su_attempted",
            "num_root", "num_shells", "num_access_files",
        },
    ),
    Profile(
        name="icmp_tunnel", category="exfiltration", share=1, protocol="icmp",
        services={"eco_i": 0.5, "ecr_i": 0.5}, hosts=DROP_HOSTS, session=60, gap=0.3,
        source_port=0, src_bytes=Draw(700, 0.5),
        altered=_BUSY | {"src_bytes", "dst_host_srv_diff_host_rate", "srv_diff_host_rate"},
    ),
)  # fmt: skip

PROFILES: dict[str, Profile] = {p.name: p for p in (*BENIGN, *ATTACKS)}
CATEGORIES: dict[str, str] = {p.name: p.category for p in ATTACKS}
# One of each category, so that finding what was never trained on can be measured for all of them.
HELD_BACK: tuple[str, ...] = ("udp_flood", "slow_scan", "mail_password_spray", "icmp_tunnel")
KNOWN: tuple[str, ...] = tuple(name for name in CATEGORIES if name not in HELD_BACK)
