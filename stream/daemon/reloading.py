"""Reload: configuration and model are built beside detection, then taken into use between two batches, or refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from netclust.errors import InputError, NetclustError
from netclust.scoring.model import Model
from netclust.stream.config import Config, load_config
from netclust.stream.daemon import build
from netclust.stream.logs import Log
from netclust.stream.telemetry.telemetry import Telemetry

FIXED = ("sources", "window", "daemon", "http", "store", "verdicts", "warmup", "ship")
"""Sections that a reload cannot change: they need a restart."""


class Reloader:
    """Reloads the configuration at `path` when it is asked to. The daemon calls `progress` between batches.

    `running` gives the configuration in use, `take_over` puts another one into use or raises InputError and changes
    nothing. `begin` is called before the building starts, `done` when it has ended, well or not.
    """

    def __init__(
        self,
        path: str | Path | None,
        log: Log,
        telemetry: Telemetry,
        *,
        running: Callable[[], Config],
        take_over: Callable[[Config, Model], None],
        begin: Callable[[], object],
        done: Callable[[], None],
    ) -> None:
        self._path = path
        self._log = log
        self._telemetry = telemetry
        self._running = running
        self._take_over = take_over
        self._begin = begin
        self._done = done
        self._requested = threading.Event()
        self._changed = threading.Condition()
        self._result: tuple[bool, str] | None = None
        self._building: Future[tuple[Config, Model]] | None = None

    def request(self) -> None:
        """Reload soon. From a signal handler or any thread."""
        self._requested.set()

    def request_and_wait(self, seconds: float) -> tuple[bool, str]:
        """Reload, and return what came of it."""
        with self._changed:
            self._result = None
            self._requested.set()
            self._changed.wait_for(lambda: self._result is not None, seconds)
            return self._result or (False, f"not done within {seconds:g} seconds")

    def progress(self) -> None:
        """Begin to build if it was asked for; swap when it is built."""
        if self._requested.is_set() and self._building is None:
            self._requested.clear()
            self._begin()
            thread = ThreadPoolExecutor(1, thread_name_prefix="reload")
            self._building = thread.submit(self._build)
            thread.shutdown(wait=False)
        if self._building is not None and self._building.done():
            building, self._building = self._building, None
            self._finish(building)

    def _build(self) -> tuple[Config, Model]:
        if self._path is None:
            raise InputError("there is no configuration file to reload")
        config = load_config(self._path)
        running = self._running()
        changed = [name for name in FIXED if getattr(config, name) != getattr(running, name)]
        if changed:
            raise InputError(f"{', '.join(changed)} cannot change while it runs: restart netclust instead")
        return config, build.check_config(config)

    def _finish(self, building: Future[tuple[Config, Model]]) -> None:
        try:
            self._take_over(*building.result())
            result = (True, "reloaded")
            self._log.info("reloaded")
        except NetclustError as error:
            result = (False, str(error))
            self._log.error("reload refused: it goes on as before", why=str(error))
        self._telemetry.reloaded(result[0])
        self._done()
        with self._changed:
            self._result = result
            self._changed.notify_all()
