"""Telemetry: the daemon's numbers for Prometheus. What there is: netclust.stream.telemetry.metric_table.

Objects that count already (sources, sinks, the linker, the alert book) are asked when Prometheus scrapes; batches are
counted as arrays; the rest is set. Nothing is global, and every method may be called from any thread.

>>> telemetry = Telemetry()
>>> telemetry.add_source("office", counters=lambda: {"records": 7, "not_a_number": 1}, gauges=lambda: {"up": 1})
>>> text, content_type = telemetry.exposition()
>>> [line for line in text.decode().splitlines() if line.startswith("netclust_records_total")]
['netclust_records_total{source="office"} 7.0']
"""

from __future__ import annotations

import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from netclust._version import __version__
from netclust.errors import InputError
from netclust.linking.verdicts import NORMAL, VERDICTS, VIAS, Verdicts
from netclust.records.labels import Dropped
from netclust.stream.telemetry.metric_table import (
    DECODE_REASONS,
    EVENT_REASONS,
    INPUT_REASONS,
    LINE_REASONS,
    METRICS,
    PREFIX,
    SHED_REASONS,
    SINK_RESULTS,
    MetricDoc,
    documented,
    label_values,
)
from netclust.stream.telemetry.vector_histogram import VectorHistogram

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

__all__ = ["CONTENT_TYPE", "Sample", "Telemetry"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_NAMES = 64
"""Sources, and sinks, of one configuration: each brings some dozen time series."""

SHARE_RECORDS = 4096
"""After so many records an old one counts half in the share of anomalous ones."""

_BUCKETS = {
    "netclust_link_score": (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
    "netclust_verdict_latency_seconds": (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
    "netclust_batch_seconds": (0.001, 0.005, 0.02, 0.1, 0.5, 2.0),
}

# What sources and sinks call their counts, and what they are here. None: said already by another one.
SOURCE_COUNTERS = {
    "packets": "packets_total",
    "bytes": "bytes_total",
    "records": "records_total",
    "kernel_drops": "kernel_drops_total",
    "queue_drops": "kernel_drops_total",
    "flows_evicted": "flow_table_evictions_total",
    "decoded": None,
    "flows": None,
    "kernel_packets": None,
    "lines": None,
    "files": None,
}
_SOURCE_GAUGES = {
    "up": "source_up",
    "queue_records": "queue_records",
    "queue_seconds": "queue_seconds",
    "flow_table_open": "flow_table_open",
}
_SINK_GAUGES = {"queue": "sink_queue", "spool_bytes": "sink_spool_bytes"}
_LINKER_COUNTERS = {
    "matured_total": "records_matured_total",
    "clusters_opened_total": "clusters_opened_total",
    "clusters_forgotten_total": "clusters_forgotten_total",
}
_ALERT_COUNTERS = {
    "opened": "alerts_opened_total",
    "closed": "alerts_closed_total",
    "suppressed": "alerts_suppressed_total",
    "records_suppressed": "alert_records_suppressed_total",
    "open": "alerts_open",
}

Series = tuple[str, tuple[str, ...]]
"""A metric's name and the values of its labels."""
Sample = tuple[str, tuple[str, ...], float]
Counts = Callable[[], Mapping[str, int]]
Gauges = Callable[[], Mapping[str, float]]
AlertCounts = Callable[[], Mapping[Any, int]]


@dataclass(eq=False)
class _Feed:
    """Something that is asked during a scrape; what it said last; and what those before it had counted."""

    read: Callable[[], Iterable[Sample]]
    last: dict[Series, float] = field(default_factory=dict)
    before: dict[Series, float] = field(default_factory=dict)

    def query(self) -> bool:
        """Ask for new numbers; False where that failed and the last ones stay."""
        try:
            found: dict[Series, float] = {}
            for name, labels, value in self.read():
                series = _checked(documented(PREFIX + name), labels)
                found[series] = found.get(series, 0.0) + float(value)
        except Exception:  # of whoever is asked; a scrape goes on without it
            return False
        for series, value in self.last.items():
            # Counted from 0 again, or no longer named.
            if documented(series[0]).type == "counter" and found.get(series, 0.0) < value:
                self.before[series] = self.before.get(series, 0.0) + value
        self.last = found
        return True

    def retire(self) -> dict[Series, float]:
        """What it has counted in all, for the one that takes its place."""
        self.query()
        return {s: v for s, v in self.series() if documented(s[0]).type == "counter"}

    def series(self) -> Iterator[tuple[Series, float]]:
        """Everything, with what was before."""
        for series in dict.fromkeys([*self.last, *self.before]):
            yield series, self.last.get(series, 0.0) + self.before.get(series, 0.0)


class Telemetry:
    """All metrics of one daemon."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._lock = threading.Lock()  # of numbers; never held while others are asked
        self._scrape = threading.Lock()  # of feeds
        self._feeds: dict[str, _Feed] = {}
        self._left: dict[str, dict[Series, float]] = {}
        self._values: dict[Series, float] = _zeros()
        self._histograms = {name: VectorHistogram(bounds) for name, bounds in _BUCKETS.items()}
        self._checkpoint_at = time.monotonic()
        self._share = -1.0
        self._build()
        self.registry.register(self)

    def _build(self) -> None:
        from numba import __version__ as numba_version

        from netclust.kernels.jit import CACHE_FOLDER

        self.set("build_info", 1, version=__version__, python=platform.python_version(), numba=numba_version)
        self.set("kernel_cache", CACHE_FOLDER is not None, state="cached")
        self.set("kernel_cache", CACHE_FOLDER is None, state="uncached")
        self.set("config_last_reload_successful", 1)
        self.set("config_last_reload_success_timestamp_seconds", time.time())

    # Numbers that are set

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge; `name` is without the prefix."""
        series = self._series(name, labels, "gauge")
        with self._lock:
            self._values[series] = float(value)

    def inc(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter; `name` is without prefix, with `_total`."""
        series = self._series(name, labels, "counter")
        if by < 0:
            raise ValueError(f"{name} does not go down")
        with self._lock:
            self._values[series] = self._values.get(series, 0.0) + by

    @staticmethod
    def _series(name: str, labels: Mapping[str, str], kind: str) -> Series:
        doc = documented(PREFIX + name)
        if doc.type != kind or set(labels) != set(doc.labels):
            raise ValueError(f"{doc.name} is a {doc.type} with labels {doc.labels}")
        return _checked(doc, tuple(labels[label] for label in doc.labels))

    def value(self, name: str, **labels: str) -> float:
        """A number that was set or counted here; `name` is without the prefix."""
        with self._lock:
            return self._values.get((PREFIX + name, tuple(labels.values())), 0.0)

    def checkpoint_age(self) -> float:
        """Seconds since the last checkpoint, or since the start."""
        with self._lock:
            return time.monotonic() - self._checkpoint_at

    def set_model(self, fingerprint: str, schema: str, *, generation: int, references: int) -> None:
        """The model in use; the one before is no longer shown."""
        series = self._series("model_info", {"fingerprint": fingerprint[:12], "schema": schema[:32]}, "gauge")
        with self._lock:
            for old in [s for s in self._values if s[0] == series[0]]:
                del self._values[old]
            self._values[series] = 1.0
        self.set("model_generation", generation)
        self.set("references", references)

    def heartbeat(self) -> None:
        """The linking loop came round."""
        self.set("heartbeat_timestamp_seconds", time.time())

    def reloaded(self, ok: bool) -> None:
        """A new configuration was taken into use, or refused."""
        self.inc("reloads_total", result="ok" if ok else "failed")
        self.set("config_last_reload_successful", ok)
        if ok:
            self.set("config_last_reload_success_timestamp_seconds", time.time())

    def checkpointed(self, ok: bool, *, seconds: float = 0.0, size: int = 0, pause: float = 0.0) -> None:
        """A checkpoint was written, or failed; what it took and how long detection waited."""
        self.inc("checkpoints_total", result="ok" if ok else "failed")
        self.set("checkpoint_seconds", seconds)
        self.set("checkpoint_pause_seconds", pause)
        if ok:
            self.set("checkpoint_bytes", size)
            with self._lock:
                self._checkpoint_at = time.monotonic()

    def feedback(self, kind: str, accepted: bool) -> None:
        """A label or an undo (`kind`) was given."""
        self.inc("feedback_total", kind=kind, result="accepted" if accepted else "refused")

    # Batches

    def observe_batch(self, verdicts: Verdicts, latencies: NDArray[np.float64], seconds: float | None = None) -> None:
        """Count a batch: its verdicts, the seconds from arrival to verdict of each record, and what the batch took."""
        n = len(verdicts)
        by_verdict = np.bincount(verdicts.verdict, minlength=len(VERDICTS)).tolist()
        by_via = np.bincount(verdicts.via, minlength=len(VIAS)).tolist()
        with self._lock:
            for value, count in zip(VERDICTS, by_verdict, strict=True):
                self._values[("netclust_verdicts_total", (value,))] += count
            for value, count in zip(VIAS, by_via, strict=True):
                self._values[("netclust_links_total", (value,))] += count
            if n:
                share = 1.0 - by_verdict[NORMAL] / n
                kept = 0.5 ** (n / SHARE_RECORDS) if self._share >= 0 else 0.0
                self._share = kept * self._share + (1.0 - kept) * share
                self._values[("netclust_anomalous_share", ())] = self._share
            self._histograms["netclust_link_score"].observe(verdicts.score)
            self._histograms["netclust_verdict_latency_seconds"].observe(latencies)
            if seconds is not None:
                self._histograms["netclust_batch_seconds"].observe(np.array([seconds]))

    # Whoever counts already

    def add_source(self, name: str, counters: Counts, gauges: Gauges) -> None:
        """Ask a source. `counters`: as Source.counters, and `shed_REASON`; `gauges`: up, queue_*, flow_table_open.

        One of the same name is taken over from: what it had counted stays in the sums.
        """
        self._add(f"source {name}", lambda: _source_samples(name, dict(counters()), dict(gauges())))

    def remove_source(self, name: str) -> None:
        """It is gone from the configuration, and from /metrics."""
        self._remove(f"source {name}")

    def add_sink(self, name: str, counters: Counts, gauges: Gauges) -> None:
        """Ask a sink: delivered, refused, dropped, spool_dropped, spooled, retried, errors; queue and spool_bytes."""
        self._add(f"sink {name}", lambda: _sink_samples(name, dict(counters()), dict(gauges())))

    def remove_sink(self, name: str) -> None:
        """It is gone from the configuration, and from /metrics."""
        self._remove(f"sink {name}")

    def set_linker(self, counters: Counts, *, window: int, continues: bool = False) -> None:
        """Ask a linker (Linker.counters), with room for `window` referents in all partitions.

        `continues`: its counts include those of the linker before, whose state it was given.
        """
        self._add("linker", lambda: _linker_samples(dict(counters()), window), continues=continues)

    def set_alerts(self, counters: AlertCounts, *, continues: bool = False) -> None:
        """Ask the alert book: open; (opened, kind, severity); (closed | suppressed | records_suppressed, by)."""
        self._add("alerts", lambda: _alert_samples(dict(counters())), continues=continues)

    def add_gauges(self, key: str, read: Gauges) -> None:
        """Ask for gauges without labels, by name without prefix: store_rows, store_bytes, feedback_pending, ..."""
        self._add(f"gauges {key}", lambda: [(name, (), value) for name, value in read().items()])

    def add_samples(self, key: str, read: Callable[[], Iterable[Sample]]) -> None:
        """Ask for whatever the metric table has: names without prefix, values of labels, numbers."""
        self._add(f"samples {key}", read)

    def watch_folder(self, folder: Path) -> None:
        """Show how much room there is where the state is kept."""

        def room() -> dict[str, float]:
            usage = shutil.disk_usage(folder)
            return {"state_dir_free_bytes": usage.free, "state_dir_size_bytes": usage.total}

        self.add_gauges("state_dir", room)

    def _add(self, key: str, read: Callable[[], Iterable[Sample]], *, continues: bool = False) -> None:
        with self._scrape:
            old = self._feeds.pop(key, None)
            before = old.retire() if old is not None else self._left.pop(key, {})
            kind = key.partition(" ")[0]
            if sum(k.partition(" ")[0] == kind for k in self._feeds) >= MAX_NAMES:
                raise InputError(f"more than {MAX_NAMES} {kind}s: metrics would be too many")
            self._feeds[key] = _Feed(read, before={} if continues else before)

    def _remove(self, key: str) -> None:
        with self._scrape:
            feed = self._feeds.pop(key, None)
            if feed is not None:
                self._left[key] = feed.retire()
            while len(self._left) > MAX_NAMES:  # names that come and go: the oldest would begin at 0
                self._left.pop(next(iter(self._left)))

    # Scraping

    def exposition(self) -> tuple[bytes, str]:
        """The answer to GET /metrics: body and content type."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry), CONTENT_TYPE

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for during a scrape."""
        with self._scrape:
            failed = sum(not feed.query() for feed in self._feeds.values())
            asked = [found for feed in self._feeds.values() for found in feed.series()]
        if failed:
            self.inc("scrape_errors_total", failed)
        with self._lock:
            values = dict(self._values)
            values[("netclust_checkpoint_age_seconds", ())] = time.monotonic() - self._checkpoint_at
            buckets = {name: (h.cumulative(), h.sum) for name, h in self._histograms.items()}
        values.update(asked)
        families: dict[str, Metric] = {doc.name: _family(doc) for doc in METRICS}
        for (name, labels), value in values.items():
            families[name].add_sample(name, dict(zip(documented(name).labels, labels, strict=True)), value)
        for name, (cumulative, total) in buckets.items():
            for bound, count in cumulative:
                families[name].add_sample(f"{name}_bucket", {"le": bound}, count)
            if _BUCKETS[name][0] >= 0:  # else a sum could go down, which OpenMetrics forbids
                families[name].add_sample(f"{name}_count", {}, cumulative[-1][1])
                families[name].add_sample(f"{name}_sum", {}, total)
        yield from families.values()


def _family(doc: MetricDoc) -> Metric:
    from prometheus_client.metrics_core import Metric

    return Metric(doc.name.removesuffix("_total") if doc.type == "counter" else doc.name, doc.help, doc.type)


def _checked(doc: MetricDoc, labels: tuple[str, ...]) -> Series:
    """The series, with what is in no closed list as "other"."""
    checked = []
    for label, value in zip(doc.labels, labels, strict=True):
        allowed = label_values(doc.name, label)
        if allowed is not None and value not in allowed:
            if "other" not in allowed:
                raise ValueError(f"{doc.name}: {label} is one of {', '.join(allowed)}")
            checked.append("other")
        else:
            checked.append(str(value))
    return doc.name, tuple(checked)


def _zeros() -> dict[Series, float]:
    """Every series that is known beforehand, at 0: an increase can only be seen from there."""
    found: dict[Series, float] = {}
    for doc in METRICS:
        values = [label_values(doc.name, label) for label in doc.labels]
        if doc.type != "histogram" and all(v is not None for v in values):
            found |= {(doc.name, labels): 0.0 for labels in product(*(v for v in values if v is not None))}
    return found


def _source_samples(name: str, counters: dict[str, int], gauges: dict[str, float]) -> Iterator[Sample]:
    for metric in filter(None, SOURCE_COUNTERS.values()):
        yield metric, (name,), 0
    for reason in SHED_REASONS:
        yield "records_shed_total", (name, reason), 0
    for metric in ("input_errors_total", "decode_errors_total"):
        yield metric, (name, "other"), 0
    if "packets" not in counters:  # it reads lines; what reads packets names all its reasons itself
        for reason in LINE_REASONS:
            yield "input_errors_total", (name, reason), 0
    for key, value in counters.items():
        if key in SOURCE_COUNTERS:
            counter = SOURCE_COUNTERS[key]
            if counter is not None:
                yield counter, (name,), value
        else:
            metric, reason = classified(key)
            yield metric, (name, reason), value
    for key, metric in _SOURCE_GAUGES.items():
        yield metric, (name,), gauges.get(key, 0)


def classified(key: str) -> tuple[str, str]:
    """The metric and the reason of what a source counts under some name.

    >>> classified("bad_ip"), classified("shed_late"), classified("bad_weather")
    (('decode_errors_total', 'bad_ip'), ('records_shed_total', 'late'), ('input_errors_total', 'other'))
    """
    if key == "shed" or key.startswith("shed_"):
        return "records_shed_total", key.removeprefix("shed").removeprefix("_") or "other"
    lists = {
        "decode_errors_total": DECODE_REASONS,
        "input_errors_total": INPUT_REASONS,
        "source_events_total": EVENT_REASONS,
    }
    for metric, reasons in lists.items():
        if key in reasons:
            return metric, key
    wrong = key.startswith(("bad_", "not_", "no_", "unknown_", "invalid_")) or "error" in key
    return ("input_errors_total" if wrong else "source_events_total"), "other"


def _sink_samples(name: str, counters: dict[str, int], gauges: dict[str, float]) -> Iterator[Sample]:
    for result in SINK_RESULTS:
        yield "sink_events_total", (name, result), counters.get(result, 0)
    yield "sink_events_total", (name, "dropped"), counters.get("spool_dropped", 0)
    yield "sink_errors_total", (name,), counters.get("errors", 0)
    for key, metric in _SINK_GAUGES.items():
        yield metric, (name,), gauges.get(key, 0)


def _linker_samples(counters: dict[str, int], window: int) -> Iterator[Sample]:
    for key, metric in _LINKER_COUNTERS.items():
        yield metric, (), counters.get(key, 0)
    for reason in get_args(Dropped):
        yield "labels_dropped_total", (reason,), counters.get(f"labels_dropped_{reason}", 0)
    yield "referents", (), counters.get("referents", 0)
    yield "window_fill_ratio", (), counters.get("referents", 0) / window if window else 0.0
    yield "clusters", (), counters.get("clusters_opened_total", 0) - counters.get("clusters_forgotten_total", 0)


def _alert_samples(counters: dict[Any, int]) -> Iterator[Sample]:
    for key, value in counters.items():
        what, *labels = key.split(":") if isinstance(key, str) else key
        if what in _ALERT_COUNTERS:
            yield _ALERT_COUNTERS[what], tuple(labels), value
