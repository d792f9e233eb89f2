"""What the HTTP side may know and do: the daemon's answers, from threads that are not its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from netclust._version import __version__
from netclust.stream.daemon.daemon_metrics import trouble_of
from netclust.stream.daemon.decisions import Decisions
from netclust.stream.daemon.outputs import Outputs
from netclust.stream.daemon.queues import Inbox
from netclust.stream.daemon.reloading import Reloader
from netclust.stream.detection.detector import Detector
from netclust.stream.store.store import Store
from netclust.stream.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from netclust.stream.console.view import View

STALLED_SECONDS = 30.0
RELOAD_SECONDS = 60.0


class DaemonControl:
    """See netclust.stream.daemon.http_app.Control."""

    def __init__(
        self,
        store: Store,
        view: View,
        token: str,
        *,
        detector: Detector,
        telemetry: Telemetry,
        inbox: Inbox,
        outputs: Outputs,
        decisions: Decisions,
        reloader: Reloader,
        phase: Callable[[], str],
        last_round: Callable[[], float],
    ) -> None:
        self.view = view
        self.store = store
        self.token = token
        self._detector = detector
        self._telemetry = telemetry
        self._inbox = inbox
        self._outputs = outputs
        self._decisions = decisions
        self._reloader = reloader
        self._phase = phase
        self._last_round = last_round
        self._lock = threading.Lock()

    def metrics(self) -> tuple[bytes, str]:
        """The exposition."""
        return self._telemetry.exposition()

    def healthy(self) -> tuple[bool, dict[str, Any]]:
        """It should be left running while its loop comes round."""
        idle = time.monotonic() - self._last_round()
        return idle < STALLED_SECONDS, {"seconds_since_last_round": round(idle, 3)}

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """It gives verdicts: sources are open, and it is not stopping."""
        phase = self._phase()
        running, _ = self.healthy()
        facts = {
            "phase": phase,
            "warming_up": self._detector.warming,
            "warmth": round(self._detector.warmth, 4),
        }
        return running and phase == "running", facts

    def status(self) -> dict[str, Any]:
        """What it is doing."""
        detector = self._detector
        queues = self._inbox.queues
        return {
            "version": __version__,
            "phase": self._phase(),
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
            "troubles": self._outputs.troubles(),
        }

    def reload(self) -> tuple[bool, str]:
        """Ask the daemon to reload, and wait for what comes of it."""
        with self._lock:
            return self._reloader.request_and_wait(RELOAD_SECONDS)

    def note_change(self) -> None:
        """Something was decided: it counts from the next batch on."""
        self._decisions.look_now()
        self._inbox.wake()
