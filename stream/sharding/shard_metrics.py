"""The numbers of one worker process for Prometheus: those of its shards added up, and how far behind each one is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from netclust.errors import InputError
from netclust.stream.daemon.daemon_metrics import linker_counts
from netclust.stream.detection.detector import Outcome
from netclust.stream.http.guard import parse_listen
from netclust.stream.sharding.partitions import Progress
from netclust.stream.sharding.shard import Shard
from netclust.stream.telemetry.telemetry import Sample, Telemetry

__all__ = ["Measures"]

_NO_LATENCY = np.zeros(0)
_WRITTEN = ("verdicts", "events", "campaigns")


class Measures:
    """Asks the shards of this process when Prometheus does."""

    def __init__(self, progress: Progress) -> None:
        self.telemetry = Telemetry()
        self._progress = progress
        self._shards: dict[int, Shard] = {}
        self.telemetry.set_alerts(self._alerts)
        self.telemetry.set_linker(self._linker, window=1)
        self.telemetry.add_gauges("process", self._process)
        self.telemetry.add_samples("cluster", self._samples)

    @property
    def records(self) -> int:
        """Records that the shards here have judged, those before a restart included."""
        return sum(shard.records for shard in self._shards.values())

    def watch(self, shard: Shard) -> None:
        """A shard begins to work here."""
        self._shards[shard.partition] = shard
        window = shard.detector.linker.config.referent_window * len(self._shards)
        self.telemetry.set_linker(self._linker, window=window, continues=True)
        model = shard.detector.model
        self.telemetry.set_model(
            model.fingerprint,
            model.encoding.schema.name,
            generation=shard.detector.generation,
            references=len(model.reference),
        )

    def seen(self, outcome: Outcome) -> None:
        """A shard has judged some records."""
        self.telemetry.observe_batch(outcome.verdicts, _NO_LATENCY)

    def serve(self, listen: str, offset: int) -> None:
        """Listen so many ports above the address: processes of one machine stand side by side."""
        from prometheus_client import start_http_server

        host, port = parse_listen(listen)
        try:
            start_http_server(port + offset, host, self.telemetry.registry)
        except (OSError, OverflowError) as error:
            raise InputError(f"sharding.metrics {host}:{port + offset}: {error}") from None

    def _process(self) -> dict[str, float]:
        """What the daemon's rules ask about: a quiet partition is no stuck process, and all that came may be kept."""
        progress, shards = self._progress, list(self._shards.values())
        waits = progress.last > progress.kept
        return {
            "ready": float(progress.polled > 0),
            "heartbeat_timestamp_seconds": progress.polled,
            "labels": float(max((len(shard.detector.linker.labels) for shard in shards), default=0)),
            "warmup_progress_ratio": min((shard.detector.warmth for shard in shards), default=1.0),
            "checkpoint_age_seconds": time.time() - max(progress.kept, progress.first) if waits else 0.0,
        }

    def _linker(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for shard in list(self._shards.values()):
            total.update(linker_counts(shard.detector.linker))
        return dict(total)

    def _alerts(self) -> dict[Any, int]:
        total: Counter[Any] = Counter()
        for shard in list(self._shards.values()):
            total.update(shard.detector.alert_counts())
        return dict(total)

    def _samples(self) -> Iterator[Sample]:
        now = time.time()
        counters: Counter[str] = Counter()
        for partition, shard in sorted(self._shards.items()):
            counters.update(shard.counters)
            newest = shard.detector.now
            current = newest < 0 or partition in self._progress.caught_up
            yield "shard_behind_seconds", (str(partition),), 0.0 if current else max(now - newest / 1e9, 0.0)
        yield "shards", (), len(self._shards)
        yield "bus_messages_total", ("input", "read"), counters["messages"]
        yield "bus_messages_total", ("input", "unreadable"), counters["unreadable"]
        for topic in _WRITTEN:
            for result in ("written", "skipped", "refused"):
                yield "bus_messages_total", (topic, result), self._progress.counters[f"{topic}_{result}"]
        for reason in ("duplicates", "wrong_lane"):
            yield "shard_records_dropped_total", (reason,), counters[reason]
        yield "bus_positions_lost_total", (), self._progress.counters["positions_lost"]
        for way in ("in", "out"):
            yield "bus_errors_total", (way,), self._progress.counters[f"bus_errors_{way}"]
