"""A daemon that is none, for tests of its HTTP side."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from needed import need_program

from netclust.stream.console.view import View
from netclust.stream.store.store import Store

TOKEN = "correct horse battery staple"  # noqa: S105


class FakeControl:
    """What the daemon gives to its HTTP side; tests change it."""

    def __init__(self, store: Store, token: str = TOKEN) -> None:
        self.store = store
        self.view = View(store)
        self.token = token
        self.fine = True
        self.changes = 0
        self.reloads = (True, "reloaded")

    def metrics(self) -> tuple[bytes, str]:
        return b"netclust_records_total 7\n", "text/plain; version=0.0.4; charset=utf-8"

    def healthy(self) -> tuple[bool, dict[str, Any]]:
        return self.fine, {"phase": "running"}

    def ready(self) -> tuple[bool, dict[str, Any]]:
        return self.fine, {"warming_up": False}

    def status(self) -> dict[str, Any]:
        return {"records": 7}

    def reload(self) -> tuple[bool, str]:
        return self.reloads

    def note_change(self) -> None:
        self.changes += 1


def certificate(folder: Path, name: str = "tls") -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    need_program("openssl")
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "2", "-subj", "/CN=netclust", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key
