"""What the HTTP side may know and do: the daemon's answers, from threads that are not its own."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from netclust._version import __version__
from netclust.stream.console.view import View
from netclust.stream.daemon.measures import trouble_of
from netclust.stream.store import Store

if TYPE_CHECKING:
    from netclust.stream.daemon.service import Daemon

STALLED_SECONDS = 30.0
RELOAD_SECONDS = 60.0


class DaemonControl:
    """See netclust.stream.http_api.Control."""

    def __init__(self, daemon: Daemon, store: Store, view: View, token: str) -> None:
        self._daemon = daemon
        self.view = view
        self.store = store
        self.token = token
        self._lock = threading.Lock()

    def metrics(self) -> tuple[bytes, str]:
        """The exposition."""
        return self._daemon.telemetry.exposition()

    def healthy(self) -> tuple[bool, dict[str, Any]]:
        """It should be left running while its loop comes round."""
        idle = time.monotonic() - self._daemon.came_round
        return idle < STALLED_SECONDS, {"seconds_since_last_round": round(idle, 3)}

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """It gives verdicts: sources are open, and it is not stopping."""
        daemon = self._daemon
        running, _ = self.healthy()
        facts = {
            "phase": daemon.phase,
            "warming_up": daemon.detector.warming,
            "warmth": round(daemon.detector.warmth, 4),
        }
        return running and daemon.phase == "running", facts

    def status(self) -> dict[str, Any]:
        """What it is doing."""
        daemon = self._daemon
        detector = daemon.detector
        queues = daemon.inbox.queues
        return {
            "version": __version__,
            "phase": daemon.phase,
            "warming_up": detector.warming,
            "warmth": round(detector.warmth, 4),
            "records": detector.linker.tick,
            "model": detector.model.fingerprint,
            "generation": detector.generation,
            "schema": detector.model.encoding.schema.name,
            "open_alerts": detector.book.open_count,
            "sources": {
                queue.source.name: {"ended": queue.ended, "waiting": queue.records, "trouble": trouble_of(queue)}
                for queue in queues
            },
            "troubles": daemon.outputs.troubles(),
        }

    def reload(self) -> tuple[bool, str]:
        """Ask the daemon to reload, and wait for what comes of it."""
        with self._lock:
            return self._daemon.reloader.request_and_wait(RELOAD_SECONDS)

    def note_change(self) -> None:
        """Something was decided: it counts from the next batch on."""
        self._daemon.decisions.look_now()
        self._daemon.inbox.wake()
