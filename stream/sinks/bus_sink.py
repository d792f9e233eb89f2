"""Writes each event, as the document of `netclust.stream.sinks.ecs`, to a topic of a bus: one message each.

An event may come twice; its `event.id` is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import Event
from netclust.stream.bus.base import BusError, MessageRefusedError, Outgoing
from netclust.stream.bus.factory import UNDIVIDED, check_bus, open_writer
from netclust.stream.sinks.base import Facts, SinkError
from netclust.stream.sinks.ecs import encode_ecs

__all__ = ["BusSender", "BusSink"]


class BusSender:
    """Bodies to partitions of a topic, with the errors that a runner understands. The bus may come later than we."""

    def __init__(self, url: str, partitions: int) -> None:
        self._url = url
        self._writer = open_writer(url, partitions)
        self._open = False

    def check(self) -> None:
        """What can be checked without the bus."""
        check_bus(self._url)

    def reach(self) -> None:
        """Make the first contact, if there was none."""
        if self._open:
            return
        try:
            self._writer.open()
        except (BusError, InputError) as error:
            raise SinkError(str(error)) from None
        self._open = True

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Send all, or SinkError; then none may have been."""
        self.reach()
        try:
            self._writer.send(messages)
        except MessageRefusedError as error:
            raise SinkError(str(error), retry=False) from None
        except (BusError, InputError) as error:
            self._open = False
            raise SinkError(str(error)) from None

    def close(self) -> None:
        """Let go."""
        self._open = False
        self._writer.close()


class BusSink:
    """Events to a topic."""

    cuts_back = False

    def __init__(self, name: str, url: str, *, observer: str = "") -> None:
        self.name = name
        self._sender = BusSender(url, 0)
        self._observer = observer

    def open(self, facts: Facts | None) -> None:
        """Check what can be checked without the bus."""
        self._sender.check()

    def write(self, events: Sequence[Event]) -> None:
        """Send them."""
        self._sender.send([Outgoing(UNDIVIDED, 0, encode_ecs(event, self._observer)) for event in events])

    def sync(self) -> Facts:
        """Nothing to keep: what was sent was acknowledged."""
        return {}

    def reopen(self) -> None:
        """Connect anew."""
        self._sender.close()

    def close(self) -> None:
        """Let go."""
        self._sender.close()
