"""uvicorn in a thread of its own: bound before it returns, bounded in every direction, and stopped when told.

An endpoint whose answer has no end (events) says so: `scope["netclust.endless"] = True`. It may then take as long as it
likes, but its peer must take what is sent; and when the server stops, it is cut off a second later.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from netclust.errors import InputError
from netclust.stream.http.guard import parse_listen

__all__ = ["HttpServer", "serve"]

MAX_CONNECTIONS = 160
MAX_AT_ONCE = 96  # beyond, a request is told to come again (503): 32 streams of events and idle browsers leave room
MAX_HEADER_BYTES = 16 << 10
IDLE_SECONDS = 5
HEADER_SECONDS = 10.0
ANSWER_SECONDS = 120.0  # a reload builds a model
DRAIN_SECONDS = 20.0  # in which the peer of an endless answer takes all that was sent
CUT_SECONDS = 1.0  # that an endless answer has to end when the server stops
STOP_SECONDS = 3
START_SECONDS = 10.0


class BoundedConnection(H11Protocol):
    """A connection that is closed when its peer takes too long to ask, or to take the answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._busy = False
        self._look: asyncio.TimerHandle | None = None
        self._expecting = False
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._look_later()

    def _look_later(self) -> None:
        self._look = self.loop.call_later(HEADER_SECONDS / 4, self._look_now)

    def _look_now(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        endless = busy and self._is_endless()
        if endless:
            self._expect_acknowledgements()
        if busy != self._busy or (endless and self.transport.get_write_buffer_size() == 0):
            self._busy, self._since = busy, self.loop.time()
        limit = DRAIN_SECONDS if endless else ANSWER_SECONDS if busy else HEADER_SECONDS
        if self.loop.time() - self._since > limit:
            self.transport.abort()
        else:
            self._look_later()

    def on_response_complete(self) -> None:
        """The next request may take its time again."""
        self._busy, self._since = False, self.loop.time()
        super().on_response_complete()

    def _is_endless(self) -> bool:
        return self.cycle is not None and bool(cast(Scope, self.cycle.scope).get("netclust.endless"))

    def _expect_acknowledgements(self) -> None:
        """Let the kernel give up a peer that is gone without a word, such as a laptop that sleeps."""
        if not self._expecting and hasattr(socket, "TCP_USER_TIMEOUT"):
            own, wait = self.transport.get_extra_info("socket"), round(DRAIN_SECONDS * 1000)
            with contextlib.suppress(OSError):  # gone already
                own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, wait)
        self._expecting = True

    def cut(self) -> None:
        """The server stops: end what has no end, and what its peer does not take. Leave what is being worked on."""
        if self.cycle is None or self.cycle.response_complete or self._is_endless():
            self.transport.abort()
            if self.cycle is not None:
                self.cycle.disconnected = True  # at once: what is still sent goes nowhere, and nobody complains

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)


class _Answers:
    """The application, and its answers that are under way."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._running: dict[asyncio.Task[Any] | None, Scope] = {}
        self._cut: set[asyncio.Task[Any] | None] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        self._running[task] = scope
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:
            if task not in self._cut:
                raise
        finally:
            del self._running[task]
            self._cut.discard(task)

    def cut(self) -> None:
        """End those that have no end."""
        for task, scope in self._running.items():
            if task is not None and scope.get("netclust.endless"):
                self._cut.add(task)
                task.cancel()


class _Server(uvicorn.Server):
    """Does not wait for what has no end."""

    def __init__(self, config: uvicorn.Config, answers: _Answers) -> None:
        super().__init__(config)
        self._answers = answers

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was asked."""
        timer = asyncio.get_running_loop().call_later(CUT_SECONDS, self._cut)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    def _cut(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedConnection):
                connection.cut()
        self._answers.cut()


class HttpServer:
    """A running server."""

    def __init__(self, server: uvicorn.Server, listener: socket.socket, *, tls: bool) -> None:
        self.host, self.port = listener.getsockname()[:2]
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"{'https' if tls else 'http'}://{host}:{self.port}"
        self._server = server
        self._listener = listener
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self._server.started and self._thread.is_alive()

    def stop(self, seconds: float = STOP_SECONDS + 2.0) -> bool:
        """Finish what was asked, take nothing new; whether it ended in time."""
        self._server.should_exit = True
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(1.0)
        self._listener.close()
        return not self._thread.is_alive()


def serve(app: ASGIApp, listen: str, *, tls_cert: str = "", tls_key: str = "") -> HttpServer:
    """Serve in a thread. Raises InputError where the address or the TLS files cannot be used."""
    host, port = parse_listen(listen)
    if bool(tls_cert) != bool(tls_key):
        raise InputError("TLS needs both files: set tls_cert and tls_key")
    options: dict[str, Any] = {"ssl_certfile": tls_cert, "ssl_keyfile": tls_key} if tls_cert else {}
    answers = _Answers(app)
    config = uvicorn.Config(
        answers, http=BoundedConnection, ws="none", lifespan="off", loop="asyncio", log_config=None, log_level="error",
        access_log=False, server_header=False, proxy_headers=False, limit_concurrency=MAX_AT_ONCE,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES, timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS, **options,
    )  # fmt: skip
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{tls_cert}, {tls_key}: no certificate and key that can be used: {reason}") from None
    return HttpServer(_Server(config, answers), _bound(host, port, listen), tls=bool(tls_cert))


def _bound(host: str, port: int, listen: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(MAX_CONNECTIONS)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen at {listen}: {reason}: does another netclust run? else change listen under [http]"
        ) from None
    return listener
