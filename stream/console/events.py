"""Events for pages that are open: made once, however many listen, and never waited for.

The detector's thread publishes; the server's loop hands out. A page that takes too little is told that it missed some.

>>> event_frame("label", {"label_seq": 1})
b'event: label\\ndata: {"label_seq":1}\\n\\n'
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

__all__ = ["MAX_LISTENERS", "EventHub", "event_frame"]

MAX_LISTENERS = 32
WAITING = 256
"""Events that may wait for one page."""
PING_SECONDS = 10.0
"""A sign of life this often, so that both ends notice when the other is gone."""

LAGGED = b"event: lagged\ndata: {}\n\n"
BYE = b"event: bye\ndata: {}\n\n"


def event_frame(event: str, data: Any) -> bytes:
    """Return one event as it is sent; JSON has no line breaks of its own."""
    return b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


class _Listener:
    """One page: what waits for it."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.ready = asyncio.Event()
        self.lags = 0  # how often all was dropped since it took anything

    def give(self, message: bytes) -> None:
        if len(self.waiting) >= WAITING:
            self.waiting.clear()
            self.waiting.append(LAGGED)
            self.lags += 1
        self.waiting.append(message)
        self.ready.set()

    def take(self) -> bytes:
        self.ready.clear()
        self.lags = 0
        messages = b"".join(self.waiting)
        self.waiting.clear()
        return messages


class EventHub:
    """Who listens. `publish` and `close` are for any thread, `listen` is for the server's loop."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def listeners(self) -> int:
        """How many pages listen."""
        return len(self._listeners)

    def publish(self, event: str, data: Any) -> None:
        """Tell all; costs nothing where nobody listens."""
        if self._listeners:
            self._in_loop(self._spread, event_frame(event, data))

    def close(self) -> None:
        """Say goodbye: the streams end."""
        self._in_loop(self._end)

    def _in_loop(self, do: Callable[..., None], *given: bytes) -> None:
        with self._lock, contextlib.suppress(RuntimeError):  # the server may have stopped
            if self._loop is not None:
                self._loop.call_soon_threadsafe(do, *given)

    def _spread(self, message: bytes) -> None:
        for listener in self._listeners:
            listener.give(message)
        # One that left before its answer began never takes anything, and nobody says so.
        self._listeners -= {listener for listener in self._listeners if listener.lags > 1}

    def _end(self) -> None:
        self._spread(BYE)
        self._closed = True

    def listen(self, *first: bytes) -> AsyncIterator[bytes]:
        """Messages for one page, `first` before all others; ends with the daemon. It counts from now on."""
        listener = _Listener()
        with self._lock:
            self._loop = asyncio.get_running_loop()
        for message in first:
            listener.give(message)
        self._listeners.add(listener)
        return self._messages(listener)

    async def _messages(self, listener: _Listener) -> AsyncIterator[bytes]:
        try:
            while listener.waiting or not self._closed:
                try:
                    async with asyncio.timeout(PING_SECONDS):
                        await listener.ready.wait()
                except TimeoutError:
                    yield b": still here\n\n"
                if messages := listener.take():
                    yield messages
        finally:
            self._listeners.discard(listener)
