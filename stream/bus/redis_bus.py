"""The bus on Redis: a partition is the stream `KEY:PARTITION`; `KEY` is undivided, as Suricata writes EVE lines.

A numbered message has the id NUMBER-0, so Redis itself refuses to take it twice; one without a number gets an id of its
time. The two do not mix on one partition. A stream keeps the newest `maxlen` messages, since Redis stores in memory.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.stream.bus.addresses import UNDIVIDED, BusUrl
from netclust.stream.bus.base import BusError, Incoming, Outgoing

__all__ = ["RedisReader", "RedisWriter"]

MAXLEN = 10_000
"""Messages that a partition keeps, unless the URL says otherwise."""
BODY, NUMBER = b"body", b"number"
_SURICATA = b"eve"
_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_SEND_MESSAGES, _SEND_BYTES = 1000, 8 << 20
_COUNTED = 64
"""Messages that are counted at a time: others wait meanwhile, and Redis has them twice in memory."""
# Redis cannot say how many there are behind an id: they are read where they are, and only their number is sent.
_COUNT = """
local found = redis.call('XREAD', 'COUNT', ARGV[2], 'STREAMS', KEYS[1], ARGV[1])
if not found then return {0, ARGV[1]} end
local messages = found[1][2]
return {#messages, messages[#messages][1]}
"""


class _Client:
    """A connection that is made when it is needed, and let go when it fails."""

    def __init__(self, address: BusUrl) -> None:
        self.address = address
        self.timeout = address.timeout
        self._library = require_optional("redis", str(address), "redis")
        self._connection: Any = None

    def key(self, partition: int) -> str:
        """Return the stream of a partition."""
        return self.address.topic if partition == UNDIVIDED else f"{self.address.topic}:{partition}"

    @contextlib.contextmanager
    def redis(self) -> Iterator[Any]:
        """The client, for one call; whatever goes wrong becomes a BusError, and the next call connects anew."""
        if self._connection is None:
            self._connection = self._connect()
        try:
            yield self._connection
        except (self._library.RedisError, OSError, UnicodeError) as error:
            self.close()
            raise BusError(f"{self.address}: {str(error) or type(error).__name__}") from None
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Any:
        address = self.address
        host, _, port = address.servers[0].rpartition(":")
        secure: dict[str, Any] = {}
        if address.tls:
            secure = {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
            names = {"ssl_ca_certs": address.ca_file, "ssl_certfile": address.options.get("tls_cert")}
            names["ssl_keyfile"] = address.options.get("tls_key")
            secure |= {name: path for name, path in names.items() if path}
        retry = require_optional("redis.retry", str(address), "redis").Retry(
            require_optional("redis.backoff", "", "redis").NoBackoff(), 0
        )
        return self._library.Redis(
            host=host.strip("[]"),
            port=int(port),
            db=address.database,
            username=address.user or None,
            password=address.password() or None,
            socket_timeout=self.timeout,
            socket_connect_timeout=self.timeout,
            protocol=2,
            retry=retry,
            **secure,
        )

    def check(self, partition: int) -> None:
        """That the key can be a stream."""
        key = self.key(partition)
        with self.redis() as client:
            kind = client.type(key).decode()
        if kind not in ("none", "stream"):
            raise InputError(f"{self.address}: {key} is a {kind}, not a stream (Suricata: set `mode: stream`)")

    def close(self) -> None:
        """Let go; it may be used again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()


class RedisReader:
    """A reader of one partition. Positions are ids; `lost`: how often messages behind one may have been removed."""

    def __init__(self, address: BusUrl, partition: int) -> None:
        self._client = _Client(address)
        self._partition = partition
        self._key = self._client.key(partition)
        self._field = address.options.get("field", "").encode()
        self._at = "0-0"
        self.lost = 0

    def open(self, position: str | None) -> None:
        """Go on behind an id."""
        at = self._parsed(position)
        self._client.close()
        self._at = at
        self._client.check(self._partition)
        if position is not None:
            self._see_what_is_lost()

    def _parsed(self, position: str | None) -> str:
        if position is not None and not _ID.fullmatch(position):
            raise InputError(f"{self._client.address}: {position[:40]!r} is no position in a Redis stream")
        return position or "0-0"

    def _see_what_is_lost(self) -> None:
        """The oldest go first: where the last one that was read is still there, so is all behind it."""
        with self._client.redis() as client:
            there = client.xrange(self._key, self._at, self._at, count=1)
            oldest = client.xrange(self._key, count=1)
        following = f"{_order(self._at)[0] + 1}-0"  # of numbered messages
        if not there and not (oldest and oldest[0][0].decode() == following):
            self.lost += 1

    def take(self, timeout: float, most: int) -> list[Incoming]:
        """The next messages."""
        deadline = time.monotonic() + timeout
        while True:
            left = min(deadline - time.monotonic(), self._client.timeout / 2)
            block = int(left * 1000)
            with self._client.redis() as client:
                found = client.xread({self._key: self._at}, count=max(most, 1), block=block if block > 0 else None)
            if found:
                messages = [self._message(ident, fields) for ident, fields in found[0][1]]
                self._at = messages[-1].position
                return messages
            if time.monotonic() >= deadline - 0.001:
                return []

    def waiting(self, position: str | None) -> int:
        """All of them if the oldest is behind the position, else counted some at a time."""
        at = self._parsed(position)
        self._client.check(self._partition)
        with self._client.redis() as client:
            oldest = client.xrange(self._key, count=1)
            if not oldest or _order(oldest[0][0].decode()) > _order(at):
                return int(client.xlen(self._key))
            total = 0
            while True:
                count, last = client.eval(_COUNT, 1, self._key, at, _COUNTED)
                total, at = total + int(count), last
                if count < _COUNTED:
                    return total

    def _message(self, ident: bytes, fields: dict[bytes, bytes] | None) -> Incoming:
        fields = fields or {}
        number = fields.get(NUMBER, b"0")
        only = next(iter(fields.values())) if len(fields) == 1 else b""
        body = fields.get(self._field or BODY, fields.get(_SURICATA, only) if not self._field else b"")
        return Incoming(ident.decode(), body, int(number) if len(number) < 20 and number.isdigit() else 0)

    def close(self) -> None:
        """Let go."""
        self._client.close()


def _order(ident: str) -> tuple[int, int]:
    first, _, second = ident.partition("-")
    return int(first), int(second or 0)


class RedisWriter:
    """A writer to `partitions` streams, in transactions: all of one or none."""

    def __init__(self, address: BusUrl, partitions: int) -> None:
        self._client = _Client(address)
        self._partitions = range(partitions) if partitions else range(UNDIVIDED, 0)
        self._maxlen = address.number("maxlen", MAXLEN) or None

    def open(self) -> None:
        """Reach the server. Streams are made by the first message."""
        self._client.check(self._partitions[0])

    def last(self, partition: int) -> int:
        """The number of the newest message."""
        with self._client.redis() as client:
            found = client.xrevrange(self._client.key(partition), count=1)
        return int(found[0][1].get(NUMBER, b"0")) if found else 0

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Append; a number that is not above the last one is there already."""
        for message in messages:
            if message.partition not in self._partitions:
                raise InputError(
                    f"{self._client.address}: there are {len(self._partitions)} partitions, "
                    f"no partition {message.partition}"
                )
        begin = size = 0
        for i, message in enumerate(messages):
            if i > begin and (i - begin >= _SEND_MESSAGES or size + len(message.body) > _SEND_BYTES):
                self._send(messages[begin:i])
                begin, size = i, 0
            size += len(message.body)
        if messages:
            self._send(messages[begin:])

    def _send(self, messages: Sequence[Outgoing]) -> None:
        with self._client.redis() as client:
            pipe = client.pipeline(transaction=True)
            for m in messages:
                fields = {BODY: m.body} | ({NUMBER: m.number} if m.number else {})
                ident = f"{m.number}-0" if m.number else "*"
                pipe.xadd(self._client.key(m.partition), fields, id=ident, maxlen=self._maxlen, approximate=True)
            answers = pipe.execute(raise_on_error=False)
        refused = [m for m, answer in zip(messages, answers, strict=True) if isinstance(answer, Exception)]
        errors = [answer for answer in answers if isinstance(answer, Exception)]
        if errors and not all("equal or smaller" in str(error) for error in errors):
            raise BusError(f"{self._client.address}: {errors[0]}")
        newest = {m.partition: m.number for m in refused}
        for partition, number in newest.items():
            if self.last(partition) < number:
                raise InputError(
                    f"{self._client.address}: {self._client.key(partition)} has messages that are not numbered: "
                    "use a key of its own"
                )

    def close(self) -> None:
        """Let go."""
        self._client.close()
