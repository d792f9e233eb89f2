"""Workers of one machine: as many processes, started again from the last snapshot when one of them dies.

Bytewax processes depend on each other: when one ends badly, all are ended and started anew. Time between starts grows,
and after too many in an hour the supervisor gives up.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from netclust.stream.bus.base import BusError
from netclust.stream.config import load_config
from netclust.stream.logs import Log
from netclust.stream.sharding.recovery import lock_recovery, prepare_recovery, recovery_dir, refuse_used_topics
from netclust.stream.sharding.worker import BUS_AWAY, check_sharding

__all__ = ["Supervisor"]

POLL_SECONDS = 0.05
SETTLE_SECONDS = 0.2
FIRST_WAIT, MAX_WAIT = 0.2, 30.0
BUS_WAIT = 5.0
HEALTHY_SECONDS = 60.0
HOUR = 3600.0
BAD_INPUT = 2


class Supervisor:
    """Runs the workers until SIGTERM, or until they end by themselves."""

    def __init__(self, path: Path, workers: int, *, until_idle: float | None = None) -> None:
        self.path, self.workers, self.until_idle = path, workers, until_idle
        self.config = load_config(path)
        self.sharding, _ = check_sharding(self.config, str(path))
        self.log = Log(self.config.log.format, self.config.log.level)
        self.restarts = 0
        self._stop = threading.Event()
        self._children: list[subprocess.Popen[bytes]] = []

    def run(self) -> int:
        """The exit code: 0 after a clean stop."""
        folder = recovery_dir(self.config, self.sharding)
        for warning in self.config.old_spellings:
            self.log.warning(warning)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        if self.workers > self.sharding.partitions:
            self.log.warning("more workers than partitions: the last have nothing to do", workers=self.workers,
                             partitions=self.sharding.partitions)  # fmt: skip
        if not self._topics_are_new(folder):
            return 0
        prepare_recovery(folder, self.sharding)
        with lock_recovery(folder) as held:
            return self._run(held.fileno())

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop.set()

    def _topics_are_new(self, folder: Path) -> bool:
        """Wait for the bus where there is no state yet; False: it was told to stop."""
        while not self._stop.is_set():
            try:
                refuse_used_topics(folder, self.sharding)
                return True
            except BusError as error:
                self.log.error("the bus does not answer: it is asked again", why=str(error), seconds=BUS_WAIT)
                self._stop.wait(BUS_WAIT)
        return False

    def _run(self, held: int) -> int:
        failures: deque[float] = deque()
        wait = FIRST_WAIT
        while True:
            began = time.monotonic()
            code = self._once(held)
            if code in (0, BAD_INPUT) or self._stop.is_set():
                return 0 if code == -signal.SIGTERM else code
            now = time.monotonic()
            if code != BUS_AWAY:  # a bus is waited for as long as it takes
                failures.append(now)
            while failures and now - failures[0] > HOUR:
                failures.popleft()
            if len(failures) > self.sharding.max_restarts:
                self.log.error("workers died too often: gives up", restarts=len(failures) - 1)
                return 1
            wait = FIRST_WAIT if now - began > HEALTHY_SECONDS else min(2 * wait, MAX_WAIT)
            self.restarts += 1
            what = "the bus is away" if code == BUS_AWAY else "a worker died"
            self.log.warning(f"{what}: all start again", code=code, seconds=wait, restarts=self.restarts)
            if self._stop.wait(wait):
                return 0

    def _once(self, held: int) -> int:
        """Start all workers, and wait; 0 if all ended well, else the first other code."""
        ports = free_ports(self.workers)
        addresses = ";".join(f"127.0.0.1:{port}" for port in ports)
        try:
            for process in range(self.workers):
                words = [sys.executable, "-m", "netclust", "shards", "run", "--config", str(self.path)]
                words += ["--process-id", str(process), "--addresses", addresses, "--parent", str(os.getpid())]
                words += [] if self.until_idle is None else ["--until-idle", str(self.until_idle)]
                self._children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=(held,)))  # noqa: S603
            return self._watch()
        finally:
            self._end_all()

    def _watch(self) -> int:
        stopping, deadline = False, float("inf")
        while True:
            codes = [child.poll() for child in self._children]
            # One that is told to stop before it has begun ends by the signal.
            bad = next((code for code in codes if code and not (stopping and code == -signal.SIGTERM)), None)
            if bad is not None:
                time.sleep(SETTLE_SECONDS)  # the others notice, and one of them may know why
                codes = [child.poll() for child in self._children]
                return next((code for code in (BAD_INPUT, BUS_AWAY) if code in codes), bad)
            # Without one that had not begun none has: the others wait for it, and have nothing to keep.
            if None not in codes or (stopping and -signal.SIGTERM in codes):
                return 0
            if self._stop.is_set() and not stopping:
                stopping, deadline = True, time.monotonic() + self.config.daemon.shutdown_timeout
                for child in self._children:
                    child.send_signal(signal.SIGTERM)
            if time.monotonic() > deadline:
                self.log.warning("workers did not stop in time: what was not kept is read again at the next start")
                return 1
            time.sleep(POLL_SECONDS)

    def _end_all(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
        for child in self._children:
            child.wait()
        self._children = []


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
