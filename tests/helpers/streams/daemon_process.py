"""A real daemon in a process of its own, for tests: start it, wait for it, signal it, kill it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 90.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class DaemonProcess:
    """`netclust run` on a configuration. Its log is in `log`."""

    def __init__(self, folder: Path, config: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.config = folder / "netclust.toml"
        self.log = folder / "log"
        self.write(config)
        self.process: subprocess.Popen[bytes] | None = None

    def write(self, config: str) -> None:
        head = f'[daemon]\nstate_dir = "{self.folder}/state"\ncheckpoint_seconds = 0.3\n'
        http_part = f'[http]\nlisten = "127.0.0.1:{self.port}"\n'
        self.config.write_text(config if "[daemon]" in config else f"{head}{http_part}{config}")

    def start(self, **environment: str) -> DaemonProcess:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "netclust", "run", "--config", str(self.config)],
                stderr=log, stdout=log, stdin=subprocess.DEVNULL, env={**os.environ, **environment},
            )  # fmt: skip
        return self

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = PATIENCE) -> int:
        assert self.process is not None
        return self.process.wait(seconds)

    def stop(self) -> int:
        if self.process is None or self.process.poll() is not None:
            return 0 if self.process is None else int(self.process.returncode)
        self.signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self) -> DaemonProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def until(self, true: Callable[[], Any], what: str = "") -> Any:
        """Wait for something; what it gave."""
        limit = time.monotonic() + PATIENCE
        while (began := time.monotonic()) < limit:
            if found := true():
                return found
            assert self.process is None or self.process.poll() is None, f"ended early: {self.text()[-3000:]}"
            # Looking costs the daemon an answer, or a log that is read from its beginning: it must not be all that is
            # done meanwhile.
            time.sleep(min(max(0.02, 3 * (time.monotonic() - began)), 0.5))
        raise AssertionError(f"waited in vain for {what}: {self.text()[-3000:]}")

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def ready(self) -> DaemonProcess:
        self.until(lambda: self.get("/readyz")[0] == 200, "readiness")
        return self

    def status(self) -> dict[str, Any]:
        code, body = self.get("/api/v1/status")
        return json.loads(body) if code == 200 else {}

    def metrics(self) -> dict[str, float]:
        """Every sample by its name and labels, as it is written."""
        _, body = self.get("/metrics")
        lines = (line.rpartition(" ") for line in body.decode().splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}
