"""Reload: configuration and model are built beside detection, then taken into use between two batches, or refused."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from netclust.errors import InputError, NetclustError
from netclust.model import Model
from netclust.stream.daemon import build
from netclust.stream.daemon.config import Config, load_config

if TYPE_CHECKING:
    from netclust.stream.daemon.service import Daemon

FIXED = ("sources", "window", "daemon", "http", "store", "verdicts", "warmup", "ship")
"""Sections that a reload cannot change: they need a restart."""


class Reloader:
    """Reloads a daemon when it is asked to. The daemon calls `progress` between batches."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
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
            self._daemon.notifier.reloading()
            thread = ThreadPoolExecutor(1, thread_name_prefix="reload")
            self._building = thread.submit(self._build)
            thread.shutdown(wait=False)
        if self._building is not None and self._building.done():
            building, self._building = self._building, None
            self._finish(building)

    def _build(self) -> tuple[Config, Model]:
        daemon = self._daemon
        if daemon.path is None:
            raise InputError("there is no configuration file to reload")
        config = load_config(daemon.path)
        changed = [name for name in FIXED if getattr(config, name) != getattr(daemon.config, name)]
        if changed:
            raise InputError(f"{', '.join(changed)} cannot change while it runs: restart netclust instead")
        return config, build.check_config(config)

    def _finish(self, building: Future[tuple[Config, Model]]) -> None:
        daemon = self._daemon
        try:
            config, model = building.result()
            self._swap_sinks(config)  # what may still fail goes first
            daemon.take_over(config, model)
            result = (True, "reloaded")
            daemon.log.info("reloaded")
        except NetclustError as error:
            result = (False, str(error))
            daemon.log.error("reload refused: it goes on as before", why=str(error))
        daemon.telemetry.reloaded(result[0])
        daemon.notifier.ready(f"watching {len(daemon.inbox.queues)} sources")
        with self._changed:
            self._result = result
            self._changed.notify_all()

    def _swap_sinks(self, config: Config) -> None:
        """Other sinks; where one cannot be opened, those of before are back and InputError says why."""
        outputs = self._daemon.outputs
        before, after = ({sink.name: sink for sink in c.sinks} for c in (self._daemon.config, config))
        for name in [n for n in before if after.get(n) != before[n]]:
            outputs.remove(name, 2.0)
        try:
            self._add_sinks(config)
        except InputError:
            for name in [n for n in after if n in outputs.runners and after[n] != before.get(n)]:
                outputs.remove(name, 2.0)
            self._add_sinks(self._daemon.config)
            raise

    def _add_sinks(self, config: Config) -> None:
        for sink in build.build_sinks(config):
            if sink.name not in self._daemon.outputs.runners:
                self._daemon.outputs.add(sink, config, None)
