"""Lines from a bus: each message is one line, or some. The topic itself is read, all of it, as others write it.

>>> from netclust.stream.bus.base import Outgoing
>>> from netclust.stream.bus.factory import open_writer
>>> open_writer("memory://lines/eve", 0).send([Outgoing(-1, 0, b"one"), Outgoing(-1, 0, b"two")])
>>> feed = BusFeed("memory://lines/eve")
>>> feed.open(None)
>>> feed.take(1.0).lines.data, feed.facts()["position"]
(b'one\\ntwo\\n', '2')
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from netclust.errors import ModelError
from netclust.records.reader import MAX_LINE_BYTES
from netclust.stream.bus.base import Incoming
from netclust.stream.bus.factory import UNDIVIDED, parse_bus_url
from netclust.stream.sources.bus_partitions import FollowedPartition, Patience
from netclust.stream.sources.lines import GATHER_SECONDS, Lines, Piece

__all__ = ["BusFeed"]

MAX_MESSAGES = 1024


class BusFeed:
    """A topic. It never ends by itself, and can be read again from any position."""

    replayable = True
    sheds = False

    def __init__(self, url: str) -> None:
        self.where = str(parse_bus_url(url))
        self.ended = False
        self.counters: Counter[str] = Counter()
        self._patience = Patience(self.counters)
        self._partition = FollowedPartition(url, UNDIVIDED, self._patience)
        self._taken = 0  # messages, since the first
        self._fresh = True

    @property
    def trouble(self) -> str:
        """Why the bus cannot be read now."""
        return self._patience.trouble

    def open(self, facts: dict[str, Any] | None) -> None:
        """Go on behind the last message."""
        position, taken = (facts or {}).get("position"), (facts or {}).get("offset", 0)
        if not isinstance(position, str | None) or not isinstance(taken, int):
            raise ModelError(f"{self.where}: the state says what is never written")
        self._taken, self._fresh = taken, not taken
        self._partition.begin(position)

    def take(self, timeout: float) -> Piece | None:
        """The lines of the next messages."""
        if self._patience.stopped.is_set():
            self.ended = True
            return None
        messages = self._partition.take(timeout, MAX_MESSAGES)
        until = time.monotonic() + GATHER_SECONDS / 2
        while messages and len(messages) < MAX_MESSAGES and (left := until - time.monotonic()) > 0:
            more = self._partition.take(left, MAX_MESSAGES - len(messages))
            if not more:
                break
            messages += more
        return self._piece(messages) if messages else None

    def _piece(self, messages: list[Incoming]) -> Piece:
        parts: list[bytes] = []
        for message in messages:
            body = message.body if message.body.endswith(b"\n") else message.body + b"\n"
            parts += [body] if len(body) <= MAX_LINE_BYTES else body.splitlines(keepends=True)
        kept = [part for part in parts if len(part) <= MAX_LINE_BYTES]
        self.counters["long_line"] += len(parts) - len(kept)
        data = b"".join(kept)
        consumed = sum(len(part) for part in parts)
        self.counters["bytes"] += consumed
        self._taken += len(messages)
        fresh, self._fresh = self._fresh, False
        lines = Lines(data, consumed, data.count(b"\n") + len(parts) - len(kept))
        return Piece(lines, where=self.where, fresh=fresh)

    def facts(self) -> dict[str, Any]:
        """Where it stands."""
        file = self.where if self._taken else ""  # its header can only be looked at once it is read
        return {"offset": self._taken, "position": self._partition.position, "file": file}

    def stop(self) -> None:
        """End."""
        self._patience.stopped.set()

    def close(self) -> None:
        """Let go."""
        self._partition.close()
