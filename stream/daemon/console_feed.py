"""What the daemon shows on its console: it follows what is linked, told and decided, and holds up none of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust._version import __version__
from netclust.linking.verdicts import ROOT, VERDICTS, VIAS
from netclust.stream.alerts.alert_events import AlertEvent, Event
from netclust.stream.config import Config
from netclust.stream.console.forest import Step
from netclust.stream.console.overview import Sample
from netclust.stream.console.packets import packet_captures
from netclust.stream.console.triage import Brief
from netclust.stream.console.view import View
from netclust.stream.daemon.daemon_metrics import trouble_of
from netclust.stream.daemon.outputs import Outputs
from netclust.stream.daemon.queues import Inbox
from netclust.stream.detection.detector import Detector, Outcome
from netclust.stream.store.store import Store
from netclust.stream.store.store_rows import LabelRow
from netclust.stream.telemetry.metric_table import DECODE_REASONS, INPUT_REASONS
from netclust.stream.telemetry.telemetry import Telemetry

EVERY_SECONDS = 1.0
SAVE_SECONDS = 5.0
RESTORED = 2000
"""Records of an earlier run that the link forest begins with."""
MAX_PATHS = 1024
"""Paths of alerts that may wait to be stored."""

_SKIPPED = frozenset((*DECODE_REASONS, *INPUT_REASONS)) - {"other"}


class ConsoleFeed:
    """The feed of one daemon's console. `observe`, `report` and `progress` are for the detector's thread."""

    def __init__(
        self,
        store: Store,
        config: Config,
        detector: Detector,
        telemetry: Telemetry,
        inbox: Inbox,
        outputs: Outputs,
        phase: Callable[[], str],
    ) -> None:
        self._config = config  # its sources and window, which no reload changes
        self._detector = detector
        self._telemetry = telemetry
        self._inbox = inbox
        self._outputs = outputs
        self._phase = phase
        self.view = View(
            store,
            classes=lambda: len(detector.model.encoding.labels),
            captures=lambda alert: packet_captures(config, alert),
        )
        self._paths: dict[str, list[Step]] = {}
        self._at = self._saved_at = 0.0
        self._latency = 0.0
        self._traffic_time = -1

    def restore(self) -> None:
        """Begin with what an earlier run has stored."""
        tick = self._detector.linker.tick
        if tick:
            self.view.forest.restore(self.view.history.newest(tick, RESTORED))

    def observe(self, outcome: Outcome, latency: float) -> None:
        """Records were linked."""
        self._latency = latency
        newest = int(outcome.batch.time.max(initial=-1))
        self._traffic_time = max(self._traffic_time, newest)

        def context(rows: NDArray[np.int64]) -> dict[str, NDArray[np.object_]]:
            return outcome.arrival.context_of(outcome.rows[rows])

        self.view.forest.take(
            outcome.first_tick, outcome.batch, outcome.verdicts, outcome.labels, outcome.shown, context,
            now=time.time_ns(),
        )  # fmt: skip
        self._follow_paths(outcome)

    def _follow_paths(self, outcome: Outcome) -> None:
        """The way from each told alert's newest record to the root, while it is remembered."""
        for event in outcome.events:
            if not isinstance(event, AlertEvent) or event.action == "close":
                continue
            source, _, seq = event.alert.last_record.partition(":")
            rows = np.flatnonzero((outcome.batch.seq == np.uint64(int(seq))) & (outcome.batch.source == int(source)))
            if len(rows) and len(self._paths) < MAX_PATHS:
                self._paths[event.alert.id] = self.view.forest.path(outcome.first_tick + int(rows[-1]))

    def report(self, events: Sequence[Event]) -> None:
        """Events go to open pages."""
        if self.view.hub.listeners:
            for event in events:
                if isinstance(event, AlertEvent):
                    brief = Brief.of(event.alert)
                    self.view.hub.publish("alert", {"action": event.action, "alert": brief})

    def labelled(self, rows: Sequence[LabelRow]) -> None:
        """Answers that were applied go to open pages."""
        for row in rows:
            self.view.hub.publish("label", row)

    def progress(self, store: Callable[[Callable[[], None]], bool]) -> None:
        """Between batches: a sample a second, and what is due goes to the store."""
        now = time.monotonic()
        if now - self._at < EVERY_SECONDS:
            return
        self._at = now
        self.view.now = self._sample(now)
        self.view.hub.publish("overview", self.view.now)
        self.save(store, everything=now - self._saved_at >= SAVE_SECONDS)

    def save(self, store: Callable[[Callable[[], None]], bool], *, everything: bool = True) -> None:
        """Have what is new stored: paths at once, the rest now and then. What cannot be is tried again, or given up."""
        forest, history, overview = self.view.forest, self.view.history, self.view.overview
        paths, ticks, minutes = self._paths, [], []
        if everything:
            self._saved_at = time.monotonic()
            ticks, minutes = forest.to_save(), overview.take_minutes()
        if not (minutes or ticks or paths):
            return

        def write() -> None:
            for minute, means in minutes:
                history.save_sample(minute, means)
            if nodes := forest.found(ticks):
                history.save_nodes(nodes)
            if paths:
                history.save_paths(paths)

        self._paths = {}
        if not store(write):
            overview.minutes = [*minutes, *overview.minutes]
            self._paths = paths

    def _sample(self, now: float) -> dict[str, Any]:
        detector, telemetry, queues = self._detector, self._telemetry, self._inbox.queues
        linker = detector.linker.counters()
        verdicts = {name: telemetry.value("verdicts_total", verdict=name) for name in VERDICTS}
        counted = [queue.source.counters for queue in queues]
        totals = {
            "records": float(sum(verdicts.values())),
            **verdicts,
            "roots": telemetry.value("links_total", via=VIAS[ROOT]),
            "shed": float(sum(sum(queue.counters.values()) for queue in queues)),
            "drops": float(sum(c["kernel_drops"] + c["queue_drops"] for c in counted)),
        }
        drift = detector.drift.scores()
        capacity = self._config.window.referent_window * self._config.window.partitions
        by_severity = detector.book.open_by_severity()
        gauges = {
            "drift": max(map(abs, drift.values()), default=0.0),
            "window": linker["referents"] / capacity if capacity else 0.0,
            "open_alerts": float(sum(by_severity.values())),
        }
        sample = self.view.overview.take(totals, gauges, seconds=now)
        return {
            **self._rates(sample, totals),
            "time": sample.time,
            "phase": self._phase(),
            "warming_up": detector.warming,
            "warmth": round(detector.warmth, 4),
            "version": __version__,
            "records": linker["records_total"],
            "anomalous_share": telemetry.value("anomalous_share"),
            "alerts": {
                "open": sum(by_severity.values()),
                "opened": detector.book.opened,
                "by_severity": by_severity,
            },
            "drift": drift,
            "drift_watched": detector.drift.watched,
            "skipped": sum(n for counters in counted for name, n in counters.items() if name in _SKIPPED),
            "window": {"referents": linker["referents"], "capacity": capacity},
            "checkpoint_age": round(telemetry.checkpoint_age(), 1),
            "latency": self._latency,
            "queue": sum(queue.records for queue in queues),
            "sources": {
                queue.source.name: {
                    "kind": next((s.kind for s in self._config.sources if s.name == queue.source.name), ""),
                    "ended": queue.ended,
                    "waiting": queue.records,
                    "trouble": trouble_of(queue),
                }
                for queue in queues
            },
            "troubles": self._outputs.troubles(),
            "traffic_time": self._traffic_time,
            "model": detector.model.fingerprint[:12],
            "schema": detector.model.encoding.schema.name,
        }

    @staticmethod
    def _rates(sample: Sample, totals: dict[str, float]) -> dict[str, Any]:
        rates = {name: round(rate, 3) for name, rate in sample.rates.items()}
        return {
            "records_per_second": rates["records"],
            "verdicts": {name: int(totals[name]) for name in VERDICTS},
            "rates": {name: rates[name] for name in VERDICTS},
            "root_rate": round(sample.gauges["root"], 6),
            "shed": int(totals["shed"]),
            "shed_per_second": rates["shed"],
            "drops": int(totals["drops"]),
            "drops_per_second": rates["drops"],
        }
