"""Receivers on this machine: syslog over any transport, and an HTTP server that answers as it is told."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any


class StreamReceiver:
    """Takes octet-counted messages over TCP or TLS. `port` may be that of one that was stopped."""

    def __init__(self, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.messages: list[bytes] = []
        self.connections = 0
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", port))
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                self.connections += 1
                with connection:
                    connection.settimeout(5)
                    wrapped = self._context.wrap_socket(connection, server_side=True) if self._context else connection
                    with wrapped:
                        self._read(wrapped)

    def _read(self, connection: socket.socket) -> None:
        connection.settimeout(0.05)
        held = b""
        while not self._stopped.is_set():
            try:
                data = connection.recv(65536)
            except TimeoutError:
                continue
            if not data:
                return
            held += data
            while b" " in held:
                count, rest = held.split(b" ", 1)
                if len(rest) < int(count):
                    break
                self.messages.append(rest[: int(count)])
                held = rest[int(count) :]


class HttpReceiver:
    """Answers with the next status of `statuses`, then 200; keeps (path, headers, body) of each request."""

    def __init__(self, port: int = 0) -> None:
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self._connections: list[socket.socket] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 5

            def setup(self) -> None:
                super().setup()
                receiver._connections.append(self.connection)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args: Any) -> None:
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def keys(self) -> list[str]:
        return [headers["Idempotency-Key"] for _, headers, _ in self.requests]

    def stop(self) -> None:
        self._server.shutdown()
        for connection in self._connections:  # those that are kept open
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def serving(port: int = 0) -> Iterator[HttpReceiver]:
    receiver = HttpReceiver(port)
    try:
        yield receiver
    finally:
        receiver.stop()
