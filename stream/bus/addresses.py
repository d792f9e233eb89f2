"""Where a bus is: its URL, read and checked. Secrets are not in it: it names the file or variable that has them.

    kafka://HOST:PORT[,HOST:PORT...]/TOPIC      a partition of the topic each
    nats://HOST:PORT[,HOST:PORT...]/TOPIC       subject TOPIC.PARTITION of one JetStream stream
    redis://HOST:PORT[/DB]/KEY                  one Redis stream per partition, KEY:PARTITION (rediss:// with TLS)
    memory://NAME/TOPIC                         within this process, for tests

>>> address = parse_bus_url("redis://127.0.0.1:6379/2/eve?maxlen=100000")
>>> address.kind, address.servers, address.topic, address.database, address.number("maxlen", 0)
('redis', ('127.0.0.1:6379',), 'eve', 2, 100000)
>>> parse_bus_url("redis://127.0.0.1:6379/eve?maxlenn=5")
Traceback (most recent call last):
    ...
netclust.errors.InputError: redis://127.0.0.1:6379/0/eve: no option maxlenn; there are password_env, ...
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import parse_qsl, unquote, urlsplit

from netclust.errors import InputError

__all__ = ["MAX_PARTITIONS", "UNDIVIDED", "BusUrl", "is_bus", "parse_bus_url"]

UNDIVIDED = -1
"""The number that stands for the topic itself, which other programs write without partitions."""
MAX_PARTITIONS = 4096
MAX_URL = 2048

_PORTS = {"kafka": 9092, "nats": 4222, "redis": 6379}
_SCHEMES = {"kafka": "kafka", "nats": "nats", "redis": "redis", "rediss": "redis", "memory": "memory"}
# What can be a topic of Kafka; a subject of NATS and a key of Redis may be more, but need not.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,200}")
_COMMON = {
    "password_env": "an environment variable that has the password",
    "password_file": "a file that has the password",
    "timeout": "seconds until an answer is given up",
    "tls": "a file of CA certificates, or `system`",
    "tls_cert": "a client's certificate",
    "tls_key": "its key",
    "user": "who asks",
}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "kafka": _COMMON | {"mechanism": "of SASL", "replicas": "of a topic that is made"},
    "nats": _COMMON
    | {"max_age": "seconds", "max_bytes": "of a stream that is made", "replicas": "of it", "stream": ""},
    "redis": _COMMON | {"field": "that has the message", "maxlen": "messages kept per partition"},
    "memory": {},
}


@dataclass(frozen=True)
class BusUrl:
    """A bus and a topic on it. `str` shows neither options nor anything secret."""

    kind: str
    servers: tuple[str, ...]
    topic: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    database: int = 0  # of Redis
    tls: bool = False

    def __str__(self) -> str:
        """For messages."""
        database = f"/{self.database}" if self.kind == "redis" else ""
        return f"{self.kind}://{','.join(self.servers)}{database}/{self.topic}"

    def number(self, name: str, default: int, *, least: int = 0, most: int = 1 << 53) -> int:
        """An option that is a whole number."""
        text = self.options.get(name, str(default))
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise InputError(f"{self}: {name}={text[:40]}: a whole number from {least} to {most}")
        return int(text)

    @property
    def timeout(self) -> float:
        """Seconds after which the bus counts as away."""
        text = self.options.get("timeout", "5")
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0.05 <= seconds <= 300:
            raise InputError(f"{self}: timeout={text[:40]}: seconds, from 0.05 to 300")
        return seconds

    @property
    def ca_file(self) -> str:
        """CA certificates to trust; "": those of the system."""
        given = self.options.get("tls", "system")
        return "" if given == "system" else given

    @property
    def user(self) -> str:
        """Who asks; "": nobody by name."""
        return self.options.get("user", "")

    def password(self) -> str:
        """The password, read now, so that a new one counts with the next connection; "" where none is named."""
        if name := self.options.get("password_env"):
            if name not in os.environ:
                raise InputError(f"{self}: there is no environment variable {name} with the password")
            return os.environ[name]
        path = self.options.get("password_file")
        if not path:
            return ""
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(4096).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is no text"
            raise InputError(f"{self}: password_file {path}: {reason}") from None


def is_bus(path: str) -> bool:
    """Whether it is the URL of a bus, rather than a file or a socket.

    >>> [is_bus(path) for path in ("redis://localhost/eve", "tcp://127.0.0.1:9000", "eve.json")]
    [True, False, False]
    """
    return str(path).partition("://")[0] in _SCHEMES and "://" in str(path)


def parse_bus_url(url: str) -> BusUrl:
    """Read a URL and check it; InputError says what is wrong. Nothing is connected to."""
    shown = re.sub(r"//[^/@]*@", "//...@", url[:200]).partition("?")[0]
    scheme = url.partition("://")[0]
    if not is_bus(url) or len(url) > MAX_URL:
        raise InputError(
            f"{shown}: no bus: say kafka://HOST:PORT/TOPIC, nats://HOST:PORT/TOPIC or redis://HOST:PORT/KEY"
        )
    kind = _SCHEMES[scheme]
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise InputError(f"{shown}: no passwords in a URL: say ?user=NAME&password_file=FILE (or password_env=NAME)")
    if parts.fragment:
        raise InputError(f"{shown}: a URL of a bus has no part behind #")
    servers = tuple(_server(server, kind, shown) for server in parts.netloc.split(","))
    if kind in ("redis", "memory") and len(servers) > 1:
        raise InputError(f"{shown}: one server only")
    path = [unquote(part) for part in parts.path.split("/")[1:]]
    database = 0
    if kind == "redis" and len(path) == 2:
        if not re.fullmatch(r"[0-9]{1,5}", path[0]):
            raise InputError(f"{shown}: {path[0][:40]!r} is no number of a database: say redis://HOST:PORT/DB/KEY")
        database = int(path.pop(0))
    if kind == "redis" and len(path) == 1 and path[0].isdigit():  # what others take for a database
        raise InputError(f"{shown}: a database and no key: say redis://HOST:PORT/{path[0]}/KEY")
    if len(path) != 1 or not _TOPIC.fullmatch(path[0]) or path[0].strip(".") != path[0] or ".." in path[0]:
        raise InputError(f"{shown}: a topic is 1 to 200 letters, digits, -, _ or . (not first, last or doubled)")
    address = BusUrl(kind, servers, path[0], database=database)
    return _with_options(address, parts.query, tls=scheme == "rediss")


def _server(server: str, kind: str, shown: str) -> str:
    if kind == "memory":
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", server):
            raise InputError(f"{shown}: a bus in memory has a name of letters, digits, - and _")
        return server
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]{2,60}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?", server)
    if found is None or not 0 < int(found[2] or 1) < 65536:
        raise InputError(f"{shown}: {server[:60]!r} is no HOST:PORT")
    return f"{found[1]}:{found[2] or _PORTS[kind]}"


def _with_options(address: BusUrl, query: str, *, tls: bool) -> BusUrl:
    known = _OPTIONS[address.kind]
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=50):
        if name not in known:
            raise InputError(f"{address}: no option {name[:40]}; there are {', '.join(known) or 'none'}")
        if name in options or not value:
            raise InputError(f"{address}: option {name} is given {'twice' if name in options else 'no value'}")
        options[name] = value
    if "password_env" in options and "password_file" in options:
        raise InputError(f"{address}: password_env or password_file, not both")
    if ("tls_cert" in options) != ("tls_key" in options):
        raise InputError(f"{address}: tls_cert and tls_key go together")
    for name in ("tls", "tls_cert", "tls_key"):
        path = options.get(name, "system")
        if path != "system" and not os.access(path, os.R_OK):
            raise InputError(f"{address}: {name} {path}: cannot be read")
    tls = tls or any(name in options for name in ("tls", "tls_cert"))
    return BusUrl(
        address.kind, address.servers, address.topic, MappingProxyType(options), database=address.database, tls=tls
    )
