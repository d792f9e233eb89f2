"""Lines from standard input and named pipes, and from TCP and Unix sockets with several writers at once.

Every writer has lines of its own, given in its order; what it leaves unfinished when it goes is dropped and counted.

>>> import socket
>>> feed = SocketFeed("tcp://127.0.0.1:0")
>>> feed.open(None)
>>> with socket.create_connection(feed.address) as writer:
...     writer.sendall(b"one line\\nand a half")
...     feed.take(5.0).lines.data
b'one line\\n'
>>> feed.close()
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import stat
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from netclust.errors import InputError
from netclust.records.opening import STDIN
from netclust.stream.sources.base import is_socket
from netclust.stream.sources.lines import GATHER_SECONDS, NOTHING, READ_BYTES, LineCutter, Lines, Piece

__all__ = ["PipeFeed", "SocketFeed", "is_socket"]

_MOST_WAITING_BYTES = 4 << 20  # of all writers together; then they are given, however young
_POLL_SECONDS = 0.05  # how soon a stop is seen


class PipeFeed:
    """Standard input (`-`), to its end; or a named pipe, whose writers may come and go. The writer waits for us."""

    replayable = False
    sheds = False

    def __init__(self, path: str | Path = STDIN, *, max_lines: int = 8192) -> None:
        self.path = str(path)
        self.ended = False
        self.counters: Counter[str] = Counter()
        self._max_lines = max_lines
        self._cutter = LineCutter()
        self._stop = threading.Event()
        self._fd = -1
        self._fresh = True

    def open(self, facts: dict[str, Any] | None) -> None:
        """What came before cannot be read again: it goes on with what comes."""
        try:
            if self.path == STDIN:
                self._fd = os.dup(sys.stdin.fileno())
                self._cutter.push(_looked_at(self._fd))
            else:
                self._fd = os.open(
                    self.path, os.O_RDWR | os.O_NONBLOCK
                )  # open for both, it does not end between writers
        except (OSError, ValueError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "is closed"
            raise InputError(f"{self.path}: {reason}") from None

    def take(self, timeout: float) -> Piece | None:
        """The next lines; None if none came in time."""
        deadline = time.monotonic() + timeout
        first = 0.0
        while not self.ended:
            now = time.monotonic()
            due = self._cutter.waiting and (self._stop.is_set() or (first and now - first >= GATHER_SECONDS))
            if due or self._cutter.has_lines(self._max_lines):
                return self._piece(self._cutter.take(self._max_lines) or NOTHING)
            self.ended = self._stop.is_set()
            if self.ended or (now >= deadline and not self._cutter.waiting):
                return None
            if not select.select([self._fd], [], [], min(_POLL_SECONDS, GATHER_SECONDS))[0]:
                first = first or now
                continue
            try:
                data = os.read(self._fd, READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                self.counters["unreadable"] += 1
                data = b""
            if not data:
                return self._end()
            self._cutter.push(data)
            first = first or time.monotonic()
        return None

    def _end(self) -> Piece | None:
        """What is left, then the last line, which may lack its end."""
        if self._cutter.waiting:
            return self._piece(self._cutter.take(self._max_lines) or NOTHING)
        self.ended = True
        rest = self._cutter.rest()
        return None if rest is None else self._piece(rest, closed=True)

    def _piece(self, lines: Lines, *, closed: bool = False) -> Piece:
        fresh, self._fresh = self._fresh, False
        self.counters["bytes"] += lines.consumed
        self.counters["long_line"] += self._cutter.long_lines
        self._cutter.long_lines = 0
        return Piece(lines, where="standard input" if self.path == STDIN else self.path, fresh=fresh, closed=closed)

    def facts(self) -> dict[str, Any]:
        """Nothing: it cannot be read again."""
        return {}

    def stop(self) -> None:
        """Give what was read, then end."""
        self._stop.set()

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _Writer:
    """One connection and the lines that came over it."""

    def __init__(self, number: int, connection: socket.socket) -> None:
        self.number = number
        self.connection = connection
        self.cutter = LineCutter()
        self.since = 0.0  # when the oldest line that waits came
        self.newest = 0.0
        self.fresh = True
        self.gone = False


class SocketFeed:
    """Listens at `tcp://HOST:PORT` or `unix:///PATH` for writers of lines; all in the thread that calls `take`."""

    replayable = False
    sheds = True

    def __init__(self, url: str, *, max_writers: int = 64, max_lines: int = 1024) -> None:
        self.url = url
        self.max_writers = max_writers
        self.ended = False
        self.address: Any = None  # where it listens, once it is open
        self.counters: Counter[str] = Counter()
        self._max_lines = max_lines
        self._stop = threading.Event()
        self._selector: selectors.BaseSelector | None = None
        self._listening: socket.socket | None = None
        self._writers: dict[int, _Writer] = {}
        self._numbered = 0
        self._drained = False
        self._unix_path: tuple[str, int] | None = None

    def open(self, facts: dict[str, Any] | None) -> None:
        """Listen. A stale Unix socket is replaced; one that somebody listens at is not."""
        parts = urlsplit(self.url)
        try:
            listening = self._listen_unix(parts.path) if parts.scheme == "unix" else self._listen_tcp()
        except OSError as error:
            raise InputError(f"{self.url}: cannot listen there: {error.strerror or error}") from None
        listening.setblocking(False)
        self.address = listening.getsockname()
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ, None)

    def _listen_tcp(self) -> socket.socket:
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname or "127.0.0.1", parts.port
        except ValueError:
            port = None
        if port is None:
            raise InputError(f"{self.url}: no port: say tcp://HOST:PORT") from None
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(self.max_writers)
        except OSError:
            listening.close()
            raise
        return listening

    def _listen_unix(self, path: str) -> socket.socket:
        if not path.startswith("/"):
            raise InputError(f"{self.url}: no path: say unix:///PATH")
        _remove_stale(path, self.url)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # the file must not be open to others even for a moment
        try:
            listening.bind(path)
            listening.listen(self.max_writers)
        except OSError:
            listening.close()
            raise
        finally:
            os.umask(before)
        self._unix_path = path, os.stat(path).st_ino
        return listening

    def take(self, timeout: float) -> Piece | None:
        """The next lines of a writer; None if none came in time."""
        deadline = time.monotonic() + timeout
        while not self.ended:
            now = time.monotonic()
            stopping = self._stop.is_set()
            if stopping and not self._drained:
                self._poll(0)  # what had come before the stop
                self._drained = True
            if (writer := self._ripe(now, everything=stopping)) is not None:
                return self._piece(writer)
            self.ended = stopping
            if self.ended or now >= deadline:
                return None
            self._poll(min(_POLL_SECONDS, deadline - now))
        return None

    def _ripe(self, now: float, *, everything: bool) -> _Writer | None:
        """A writer that has gone, or whose lines are many, or have waited for long: the longest waiting."""
        everything = everything or sum(w.cutter.waiting_bytes for w in self._writers.values()) > _MOST_WAITING_BYTES
        ripe = [
            writer
            for writer in self._writers.values()
            if writer.gone
            or (
                writer.cutter.waiting
                and (everything or now - writer.since >= GATHER_SECONDS or writer.cutter.has_lines(self._max_lines))
            )
        ]
        return min(ripe, key=lambda writer: writer.since, default=None)

    def _piece(self, writer: _Writer) -> Piece:
        lines = writer.cutter.take(self._max_lines)
        since, writer.since = writer.since, writer.newest  # what is left came with what was read last
        closed = writer.gone and not writer.cutter.waiting
        if closed:
            self.counters["half_line"] += writer.cutter.rest() is not None
            del self._writers[writer.number]
        fresh, writer.fresh = writer.fresh, False
        self.counters["bytes"] += lines.consumed if lines is not None else 0
        self.counters["long_line"] += writer.cutter.long_lines
        writer.cutter.long_lines = 0
        where = f"{self.url} writer {writer.number}"
        return Piece(lines or NOTHING, writer=writer.number, where=where, fresh=fresh, closed=closed, since=since)

    def _poll(self, timeout: float) -> None:
        if self._selector is None:
            return
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._accept()
            else:
                self._receive(key.data)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()  # type: ignore[union-attr]
        except OSError:
            return  # gone again, or no descriptor is free: it is tried again
        if sum(not writer.gone for writer in self._writers.values()) >= self.max_writers:
            self.counters["refused_writers"] += 1
            connection.close()
            return
        connection.setblocking(False)
        writer = _Writer(self._numbered, connection)
        self._numbered += 1
        self._writers[writer.number] = writer
        self.counters["writers"] += 1
        self._selector.register(connection, selectors.EVENT_READ, writer)  # type: ignore[union-attr]

    def _receive(self, writer: _Writer) -> None:
        try:
            data = writer.connection.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # reset: as if closed
        if not data:
            self._hang_up(writer)
            return
        writer.newest = time.monotonic()
        if not writer.cutter.waiting:
            writer.since = writer.newest
        writer.cutter.push(data)

    def _hang_up(self, writer: _Writer) -> None:
        if not writer.gone:
            self._selector.unregister(writer.connection)  # type: ignore[union-attr]
            writer.connection.close()
            writer.gone = True

    def facts(self) -> dict[str, Any]:
        """Nothing: what came cannot be read again."""
        return {}

    def stop(self) -> None:
        """Give what was read, then end."""
        self._stop.set()

    def close(self) -> None:
        """Close all connections, and remove the socket's file if it is still ours."""
        for writer in self._writers.values():
            self._hang_up(writer)
        self._writers.clear()
        if self._selector is not None:
            self._selector.close()
            self._selector = None
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._unix_path is not None:
            path, inode = self._unix_path
            self._unix_path = None
            try:
                if os.stat(path).st_ino == inode:
                    os.unlink(path)
            except OSError:
                pass  # somebody else removed it


def _looked_at(fd: int) -> bytes:
    """What Python holds of standard input since somebody looked at its beginning; never waits for more."""
    stream: Any = sys.stdin.buffer
    blocking = os.get_blocking(fd)
    os.set_blocking(fd, False)
    try:
        held = len(stream.peek(1))
        return bytes(stream.read1(held)) if held else b""
    finally:
        os.set_blocking(fd, blocking)


def _remove_stale(path: str, url: str) -> None:
    """Remove a socket that nobody listens at; anything else in the place is an error."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise InputError(f"{url}: there is a file that is no socket: remove it, or choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError:
            pass
    raise InputError(f"{url}: another process listens there: stop it, or choose another path")
