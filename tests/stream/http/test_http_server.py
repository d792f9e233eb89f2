"""The HTTP server's bounds: addresses, TLS, sizes, slow and silent clients, stopping."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_cases import TOKEN, FakeControl, certificate
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from netclust.errors import InputError
from netclust.stream.daemon.http_app import make_app
from netclust.stream.http import server as http_server
from netclust.stream.http.guard import parse_listen
from netclust.stream.http.operations import MAX_BODY_BYTES
from netclust.stream.http.server import HttpServer, serve
from netclust.stream.store.store import Store


@pytest.fixture
def control(tmp_path: Path) -> Iterator[FakeControl]:
    with Store(tmp_path / "netclust.db") as store:
        yield FakeControl(store)


@pytest.fixture
def server(control: FakeControl) -> Iterator[HttpServer]:
    running = serve(make_app(control), "127.0.0.1:0")
    yield running
    assert running.stop()


def get(server: HttpServer, path: str = "/healthz", **options: Any) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=20, **options) as client:
        return client.get(server.url + path)


def raw(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


# Addresses


def test_a_port_in_use_is_found_at_once(server: HttpServer, control: FakeControl) -> None:
    with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{server.port}: Address already in use"):
        serve(make_app(control), f"127.0.0.1:{server.port}")
    assert get(server).status_code == 200


@pytest.mark.parametrize(
    "listen", ["", "9471", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "::1:80", "a b:1", "[::1]"]
)
def test_an_address_that_is_none_is_refused(listen: str, control: FakeControl) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        parse_listen(listen)
    with pytest.raises(InputError, match="HOST:PORT"):
        serve(make_app(control), listen)


def test_an_address_of_another_machine_is_refused(control: FakeControl) -> None:
    with pytest.raises(InputError, match=r"cannot listen at 192\.0\.2\.77:0"):
        serve(make_app(control), "192.0.2.77:0")


def test_ipv6_loopback_works(control: FakeControl) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    server = serve(make_app(control, "[::1]:0"), "[::1]:0")
    assert server.url == f"http://[::1]:{server.port}"
    assert get(server).status_code == 200
    assert server.stop()


# TLS


def test_the_token_does_not_travel_in_the_clear_with_tls(control: FakeControl, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    server = serve(make_app(control), "127.0.0.1:0", tls_cert=str(cert), tls_key=str(key))
    try:
        assert server.url.startswith("https://")
        trust = ssl.create_default_context(cafile=str(cert))
        assert get(server, verify=trust).status_code == 200
        with pytest.raises(httpx.ConnectError, match="certificate"):
            get(server, verify=ssl.create_default_context())
        with raw(server) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" not in _all(plain)
    finally:
        assert server.stop()


def test_bad_tls_files_are_refused(control: FakeControl, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    _, other = certificate(tmp_path, "other")
    empty = tmp_path / "empty"
    empty.touch()
    for files in ((cert, other), (cert, tmp_path / "none"), (empty, key), (key, cert)):
        with pytest.raises(InputError, match="no certificate and key that can be used"):
            serve(make_app(control), "127.0.0.1:0", tls_cert=str(files[0]), tls_key=str(files[1]))
    with pytest.raises(InputError, match="both files"):
        serve(make_app(control), "127.0.0.1:0", tls_cert=str(cert))


# Sizes


def _all(connection: socket.socket) -> bytes:
    """What comes until the other end closes."""
    data = b""
    try:
        while part := connection.recv(65_536):
            data += part
    except ConnectionResetError:
        pass
    return data


def test_a_body_without_end_is_refused(server: HttpServer, control: FakeControl) -> None:
    head = f"POST /api/v1/labels HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with raw(server) as connection:
        connection.sendall(head.encode())
        chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
        sent = 0
        try:
            while sent < 64 << 20:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        answer = _all(connection)
    assert sent < 64 << 20
    assert b" 413 " in answer.split(b"\r\n")[0] or answer == b""  # reset before it could be read
    with httpx.Client(trust_env=False) as client:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        large = client.post(server.url + "/api/v1/labels", content=b" " * (MAX_BODY_BYTES + 1), headers=headers)
        assert large.status_code == 413
    assert get(server).status_code == 200


def test_headers_without_end_are_refused(server: HttpServer) -> None:
    with raw(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        try:
            for _ in range(4096):
                connection.sendall(b"x" * 4096)
        except OSError:
            pass
        answer = _all(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert get(server).status_code == 200


def test_garbage_does_not_stop_the_server(server: HttpServer) -> None:
    for garbage in (
        b"\x16\x03\x01" + bytes(300),
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"\xff" * 9000,
    ):
        with raw(server) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            assert b" 200 " not in _all(connection)
    assert get(server).status_code == 200


# Time


def test_silent_and_dripping_clients_do_not_keep_others_out(
    control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.4)
    monkeypatch.setattr(http_server, "MAX_AT_ONCE", 8)
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 12)
    server = serve(make_app(control), "127.0.0.1:0")
    try:
        silent = [raw(server) for _ in range(20)]
        dripping = raw(server)
        closed = threading.Event()

        def drip() -> None:
            try:
                while True:
                    dripping.sendall(b"G")
                    time.sleep(0.05)
            except OSError:
                closed.set()

        threading.Thread(target=drip, daemon=True).start()
        assert closed.wait(20)
        for connection in silent:
            assert _all(connection) == b""  # closed by the server
            connection.close()
        dripping.close()
        assert get(server).status_code == 200
    finally:
        assert server.stop()


def test_a_body_that_never_comes_is_not_waited_for(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netclust.stream.http.operations.BODY_SECONDS", 0.2)
    server = serve(make_app(control), "127.0.0.1:0")
    try:
        with raw(server) as connection:
            head = f"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{".encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 408")
    finally:
        assert server.stop()


def test_a_request_under_way_is_answered_before_a_stop(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()

    def slow() -> dict[str, Any]:
        began.set()
        time.sleep(0.5)
        return {"records": 7}

    monkeypatch.setattr(control, "status", slow)
    server = serve(make_app(control), "127.0.0.1:0")
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(get(server, "/api/v1/status")))
    asking.start()
    assert began.wait(20)
    assert server.stop()
    asking.join(20)
    assert answers[0].json() == {"records": 7}
    assert not server.running
    with pytest.raises(OSError, match="refused"):
        raw(server)
    assert server.stop()  # again does no harm


def test_requests_are_not_logged(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        get(server)
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []


# Answers without end


class Events:
    """An application with an endless answer that does not end when told, and with one that has an end."""

    def __init__(self, part: bytes = b"data: x\n\n", pause: float = 0.05) -> None:
        self.part, self.pause = part, pause
        self.open = 0
        self.app = Starlette(routes=[Route("/events", self.events), Route("/healthz", self.health)])

    async def health(self, request: Request) -> Response:
        return Response(b"fine")

    async def events(self, request: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            self.open += 1
            try:
                while True:
                    yield self.part
                    await asyncio.sleep(self.pause)
            finally:
                self.open -= 1

        request.scope["netclust.endless"] = True
        return StreamingResponse(parts(), media_type="text/event-stream")

    async def deaf(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same by hand: hears nothing of a peer that has gone."""
        scope["netclust.endless"] = True
        self.open += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": self.part, "more_body": True})
                await asyncio.sleep(self.pause)
        finally:
            self.open -= 1


def listen(server: HttpServer, cert: str = "") -> socket.socket:
    """A client of events that has its first ones."""
    connection = raw(server)
    if cert:
        connection = ssl.create_default_context(cafile=cert).wrap_socket(connection, server_hostname="127.0.0.1")
    connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    return connection


def eventually(done: Any, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(done())


def test_an_endless_answer_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("HEADER_SECONDS", 0.1), ("ANSWER_SECONDS", 0.2), ("DRAIN_SECONDS", 0.4)):
        monkeypatch.setattr(http_server, name, seconds)
    server = serve(Events().app, "127.0.0.1:0")
    with listen(server) as connection:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert connection.recv(4096)
    assert server.stop()


@pytest.mark.parametrize("tls", [False, True])
def test_a_peer_that_takes_no_events_is_dropped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tls: bool) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.4)
    monkeypatch.setattr(http_server, "DRAIN_SECONDS", 0.5)
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)  # or the kernel closes it before us
    events = Events(part=b"x" * 65_536, pause=0.0)
    cert, key = certificate(tmp_path) if tls else ("", "")
    server = serve(events.app, "127.0.0.1:0", tls_cert=str(cert), tls_key=str(key))
    with listen(server, str(cert)):
        assert eventually(lambda: events.open == 1)
        assert eventually(lambda: events.open == 0)
    assert server.stop()


def test_a_peer_that_sleeps_is_dropped_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        pytest.skip("only Linux can be asked")
    set_options: list[int] = []

    class Seen(http_server.BoundedConnection):
        def _look_now(self) -> None:
            super()._look_now()
            own = self.transport.get_extra_info("socket")
            set_options.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.4)
    monkeypatch.setattr(http_server, "BoundedConnection", Seen)
    server = serve(Events().app, "127.0.0.1:0")
    with listen(server):
        assert eventually(lambda: 20_000 in set_options)
    assert server.stop()


def test_listeners_to_events_do_not_keep_others_out(control: FakeControl) -> None:
    server = serve(Events().app, "127.0.0.1:0")
    streams = [listen(server) for _ in range(32)]
    idle = [raw(server) for _ in range(60)]
    assert get(server).status_code == 200
    for connection in streams + idle:
        connection.close()
    assert server.stop()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("deaf", [False, True])
def test_listeners_to_events_do_not_hold_up_a_stop(
    deaf: bool, tls: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    events = Events()
    app: ASGIApp = events.deaf if deaf else events.app
    cert, key = certificate(tmp_path) if tls else ("", "")
    server = serve(app, "127.0.0.1:0", tls_cert=str(cert), tls_key=str(key))
    streams = [listen(server, str(cert)) for _ in range(5)]
    listen(server, str(cert)).close()  # one has gone: who is deaf has not heard
    logs = logging.StreamHandler()
    logging.getLogger().addHandler(logs)
    try:
        begin = time.monotonic()
        assert server.stop()
        assert time.monotonic() - begin < http_server.STOP_SECONDS - 0.5
    finally:
        logging.getLogger().removeHandler(logs)
    assert events.open == 0
    for connection in streams:
        with contextlib.suppress(ssl.SSLError):  # cut off, not ended
            _all(connection)
        connection.close()
    assert capfd.readouterr() == ("", "")


def test_a_peer_that_takes_no_answer_does_not_hold_up_a_stop(capfd: pytest.CaptureFixture[str]) -> None:
    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(bytes(32 << 20))(scope, receive, send)

    server = serve(large, "127.0.0.1:0")
    with raw(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        begin = time.monotonic()
        assert server.stop()
        assert time.monotonic() - begin < http_server.STOP_SECONDS - 0.5
    assert capfd.readouterr() == ("", "")


def test_events_that_end_when_asked_are_not_cut_off(capfd: pytest.CaptureFixture[str]) -> None:
    async def polite(scope: Scope, receive: Receive, send: Send) -> None:
        async def parts() -> AsyncIterator[bytes]:
            yield b"event: hello\n\n"
            while not server._server.should_exit:
                await asyncio.sleep(0.02)
            yield b"event: bye\n\n"

        scope["netclust.endless"] = True
        await StreamingResponse(parts())(scope, receive, send)

    server = serve(polite, "127.0.0.1:0")
    with listen(server) as connection:
        begin = time.monotonic()
        assert server.stop()
        assert time.monotonic() - begin < 1.0
        assert b"event: bye" in _all(connection)
    assert capfd.readouterr() == ("", "")
