"""Tell systemd how we are: ready, reloading, stopping, alive. Without systemd nothing happens.

>>> Notifier("").ready("watching 1 source")
False
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

__all__ = ["Notifier"]


class Notifier:
    """The protocol of sd_notify: datagrams to the socket that NOTIFY_SOCKET names."""

    def __init__(self, address: str | None = None) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        self._every = int(microseconds) / 2e6 if microseconds.isdigit() else 0.0
        self._last = 0.0

    def _send(self, *lines: str) -> bool:
        if not self._address:
            return False
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto("\n".join(lines).encode(), address)
            return True
        return False

    def ready(self, status: str) -> bool:
        """Everything is open and records are being linked."""
        return self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> bool:
        """A reload begins; `ready` ends it."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> bool:
        """The end has begun."""
        return self._send("STOPPING=1")

    def status(self, text: str) -> bool:
        """One line for `systemctl status`."""
        return self._send(f"STATUS={text}")

    def alive(self) -> bool:
        """Called often: feeds the watchdog twice as often as it asks for."""
        if self._every and time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            return self._send("WATCHDOG=1")
        return False
