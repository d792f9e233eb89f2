"""Tools and rights that some tests need: without one a test is left out, and says how to get it.

Each is looked for by itself, because a machine with `ip` may lack libpcap. The closing lines of a run count what was
left out, by reason.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

# From a program to the Debian package that has it, where its name is another.
_PACKAGES = {
    "amtool": "prometheus-alertmanager",
    "ip": "iproute2",
    "mount": "mount",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "promtool": "prometheus",
    "setpriv": "util-linux",
    "systemd-analyze": "systemd",
}
# From a module to the target of the Makefile that installs it, where that is not `make test`.
_TARGETS = {
    "axe_playwright_python": "test-system", "dpkt": "test-peers", "matplotlib": "test", "nfstream": "test-peers",
    "playwright": "test-system", "pysad": "test-peers", "scapy": "test-system",
    "schemathesis": "test-system",
}  # fmt: skip
_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
_NO_WHEEL = {"bytewax": "Python 3.13 and newer have none", "nfstream": "its library is not built for this system"}


def need_program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"needs {name}: apt install {_PACKAGES.get(name, name)}")
    return found


def need_module(name: str) -> Any:
    """Return a module, or skip the test (or, outside a test, its whole file)."""
    package = name.partition(".")[0]
    how = f"make {_TARGETS.get(package, 'test')} installs it"
    if package in _NO_WHEEL:
        how += f", if there is a wheel: {_NO_WHEEL[package]}"
    return pytest.importorskip(name, reason=f"needs {package}: {how}", exc_type=ImportError)


def need_filters() -> None:
    """Skip the test where nothing compiles capture filters."""
    from netclust.stream.packets import bpf

    if bpf._libpcap() is None and shutil.which("tcpdump", path=_PATH) is None:
        pytest.skip("needs libpcap: apt install libpcap0.8")


def need_root(why: str) -> None:
    """Skip the test of an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip(f"needs root {why}: run the tests as root")


def need_packet_sockets() -> None:
    """Skip the test where packets of interfaces cannot be read."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except PermissionError:
        pytest.skip("needs CAP_NET_RAW: run the tests as root")


def need_file(path: str, what: str) -> None:
    """Skip the test on a system without a special file."""
    if not Path(path).exists():
        pytest.skip(f"needs {path}: {what}")
