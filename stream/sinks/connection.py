"""A connection to a receiver of syslog messages that notices when the receiver has gone.

>>> Address.parse("tls://logs.example:6514")
Address(scheme='tls', host='logs.example', port=6514)
>>> str(Address.parse("udp://[::1]"))
'udp://[::1]:514'
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import ssl
import struct
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from netclust.errors import InputError

_PORTS = {"udp": 514, "tcp": 514, "tls": 6514}


@dataclass(frozen=True)
class Address:
    """Where to send to; of a Unix socket, `host` is its path."""

    scheme: str
    host: str
    port: int = 0

    @classmethod
    def parse(cls, given: str) -> Address:
        """From `udp://HOST:PORT`, `tcp://HOST:PORT`, `tls://HOST:PORT` or `unix:///PATH`."""
        try:
            parts = urlsplit(given)
            scheme, host, port = parts.scheme, parts.hostname, parts.port
        except ValueError as error:
            raise InputError(f"syslog address {given!r}: {error}") from None
        if scheme == "unix" and parts.path.startswith("/") and not parts.netloc:
            return cls("unix", parts.path)
        if scheme not in _PORTS or not host or parts.path not in ("", "/") or parts.query or "@" in parts.netloc:
            raise InputError(
                f"syslog address {given!r}: write udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or unix:///dev/log"
            )
        return cls(scheme, host, port or _PORTS[scheme])

    def __str__(self) -> str:
        """As it is written in a configuration."""
        if self.scheme == "unix":
            return f"unix://{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Certificates are checked: against this file, or what the system trusts."""
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"ca_file {ca_file}: cannot be used: {error.strerror or error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class SinkConnection:
    """Connects when something is to be sent, and again after an error. Every wait ends after `timeout` seconds."""

    def __init__(self, address: Address, timeout: float, context: ssl.SSLContext | None = None) -> None:
        self.address = address
        self._timeout = timeout
        self._context = context
        self._socket: socket.socket | None = None

    def send_each(self, messages: Sequence[bytes]) -> None:
        """Send datagrams."""
        connected = self._connected()
        for message in messages:
            connected.send(message)
        _raise_pending(connected)  # nobody listens: told at once on this machine, by the next message elsewhere

    def send_all(self, data: bytes) -> None:
        """Send on a stream, and wait until the other side's kernel has it: a receiver that hung up is an error."""
        if self._socket is not None and _hung_up(self._socket):
            self.close()
        connected = self._connected()
        connected.settimeout(self._timeout)
        connected.sendall(data)
        deadline = time.monotonic() + self._timeout
        wait = 0.0005
        while _unacknowledged(connected) and time.monotonic() < deadline:
            _raise_pending(connected)
            time.sleep(wait)
            wait = min(2 * wait, 0.05)
        _raise_pending(connected)
        if _unacknowledged(connected):
            raise TimeoutError(errno.ETIMEDOUT, "the receiver takes nothing")
        if _hung_up(connected):
            raise ConnectionResetError(errno.ECONNRESET, "the receiver hung up")

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = self._connect()
        return self._socket

    def _connect(self) -> socket.socket:
        target = self.address
        if target.scheme in ("tcp", "tls"):
            stream = socket.create_connection((target.host, target.port), self._timeout)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._context is None:
                return stream
            try:
                return self._context.wrap_socket(stream, server_hostname=target.host)
            except BaseException:
                stream.close()
                raise
        if target.scheme == "unix":
            family, where = socket.AF_UNIX, target.host
            datagrams = socket.socket(family, socket.SOCK_DGRAM)
        else:
            family, kind, protocol, _, where = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_DGRAM)[0]  # type: ignore[assignment]
            datagrams = socket.socket(family, kind, protocol)
        try:
            datagrams.settimeout(self._timeout)
            datagrams.connect(where)
        except BaseException:
            datagrams.close()
            raise
        return datagrams


def _hung_up(connected: socket.socket) -> bool:
    """Whether the receiver closed the connection. It has nothing to say: what it says is passed over."""
    connected.settimeout(0)
    try:
        for _ in range(64):
            if not connected.recv(4096):
                return True
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return False
    except OSError:
        return True
    return False


def _unacknowledged(connected: socket.socket) -> int:
    """Bytes that the other side's kernel has not acknowledged (SIOCOUTQ)."""
    answer: bytes = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
    return int(struct.unpack("i", answer)[0])


def _raise_pending(connected: socket.socket) -> None:
    number = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        raise OSError(number, os.strerror(number))
