"""What of a daemon Prometheus may ask: its sources, the linker, the alerts, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netclust.linking.linker import Linker
from netclust.stream.config import Config
from netclust.stream.daemon.queues import Inbox, SourceQueue
from netclust.stream.detection.detector import Detector
from netclust.stream.telemetry.telemetry import Telemetry

__all__ = ["linker_counts", "register_daemon_metrics", "trouble_of"]


def trouble_of(queue: SourceQueue) -> str:
    """What is wrong with a source now."""
    if queue.failure is not None:
        return f"{type(queue.failure).__name__}: {queue.failure}"
    return str(getattr(queue.source, "trouble", ""))


def linker_counts(linker: Linker) -> dict[str, int]:
    """Counts of a linker, with those of the labels that it left out."""
    return linker.counters() | {f"labels_dropped_{reason}": count for reason, count in linker.labels.dropped.items()}


def register_daemon_metrics(
    telemetry: Telemetry, config: Config, inbox: Inbox, detector: Detector, folder: Path, ready: Callable[[], bool]
) -> None:
    """Let Prometheus ask everybody."""

    def gauges() -> dict[str, float]:
        labels = float(len(detector.linker.labels))
        return {"ready": float(ready()), "warmup_progress_ratio": detector.warmth, "labels": labels}

    for number, queue in enumerate(inbox.queues):
        _add_source(telemetry, inbox, number, queue)
    window = config.window.referent_window * config.window.partitions
    telemetry.set_linker(lambda: linker_counts(detector.linker), window=window)
    telemetry.set_alerts(detector.alert_counts)
    telemetry.watch_folder(folder)
    telemetry.add_gauges("detector", gauges)


def _add_source(telemetry: Telemetry, inbox: Inbox, number: int, queue: SourceQueue) -> None:
    def counters() -> dict[str, int]:
        return {**queue.source.counters, **{f"shed_{why}": n for why, n in queue.counters.items()}}

    def gauges() -> dict[str, float]:
        records, seconds = inbox.waiting(number)
        up = not queue.ended and not trouble_of(queue)
        found = {"up": float(up), "queue_records": float(records), "queue_seconds": seconds}
        if (flows := getattr(queue.source, "open_flows", None)) is not None:
            found["flow_table_open"] = float(flows)
        return found

    telemetry.add_source(queue.source.name, counters, gauges)
