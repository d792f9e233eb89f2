"""Two network namespaces of a test's own, joined by a veth pair: traffic there reaches nobody else."""

from __future__ import annotations

import ctypes
import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from needed import need_program, need_root

Result = TypeVar("Result")
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


@dataclass(frozen=True)
class Link:
    """The names of the namespaces; the interface is `va` (10.77.0.1) in the one, `vb` (10.77.0.2) in the other."""

    a: str
    b: str

    def udp(self, namespace: str) -> socket.socket:
        """A UDP socket there."""
        return inside(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def send(self, count: int, size: int = 100, end: bytes = b"END") -> None:
        """Numbered datagrams from a to b, and one that says that they were the last."""
        with self.udp(self.a) as sock:
            for number in range(count):
                sock.sendto(number.to_bytes(4, "big").ljust(size, b"."), ("10.77.0.2", 9999))
            sock.sendto(end, ("10.77.0.2", 9999))


def inside(namespace: str, function: Callable[[], Result]) -> Result:
    """Call a function in a namespace, in a thread: sockets that it makes stay there, this thread does not go."""
    done: list[Any] = []

    def call() -> None:
        try:
            with open(f"/run/netns/{namespace}", "rb") as handle:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(handle.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            done.append((function(), None))
        except BaseException as err:
            done.append((None, err))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    result, error = done[0]
    if error is not None:
        raise error
    made: Result = result
    return made


def ip(*words: str) -> str:
    """Run iproute2."""
    ran = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise OSError(f"ip {' '.join(words)}: {ran.stderr.strip()}")
    return ran.stdout


@contextmanager
def joined() -> Iterator[Link]:
    """The pair, removed at the end."""
    name = f"netclust-{os.getpid()}-{next(_numbers)}"
    link = Link(f"{name}-a", f"{name}-b")
    try:
        for namespace in (link.a, link.b):
            ip("netns", "add", namespace)
            inside(namespace, _no_ipv6)
        ip("link", "add", "va", "netns", link.a, "type", "veth", "peer", "name", "vb", "netns", link.b)
        for namespace, face, address in ((link.a, "va", "10.77.0.1/24"), (link.b, "vb", "10.77.0.2/24")):
            ip("-n", namespace, "addr", "add", address, "dev", face)
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", face, "up")
        yield link
    finally:
        for namespace in (link.a, link.b):
            if Path("/run/netns", namespace).exists():
                ip("netns", "del", namespace)


def joined_or_skip() -> Iterator[Link]:
    """The pair as a fixture, skipped with the reason where it cannot be made."""
    need_root("to make network namespaces")
    need_program("ip")
    pair = joined()
    try:
        link = pair.__enter__()
    except OSError as err:
        pytest.skip(f"no network namespaces with a veth pair here: {err}")
    try:
        yield link
    finally:
        pair.__exit__(None, None, None)


def _no_ipv6() -> None:
    """No neighbour discovery among the packets; /proc/sys/net is that of the calling thread's namespace."""
    for which in ("all", "default"):
        knob = Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
        if knob.exists():
            knob.write_text("1")


def make_again(link: Link) -> None:
    """The pair of interfaces anew, as it was."""
    ip("link", "add", "va", "netns", link.a, "type", "veth", "peer", "name", "vb", "netns", link.b)
    for namespace, face, address in ((link.a, "va", "10.77.0.1/24"), (link.b, "vb", "10.77.0.2/24")):
        ip("-n", namespace, "addr", "add", address, "dev", face)
        ip("-n", namespace, "link", "set", face, "up")
