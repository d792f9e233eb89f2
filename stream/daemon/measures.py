"""What of a daemon Prometheus may ask: its sources, the linker, the alerts, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netclust.linker import Linker
from netclust.stream.daemon.config import Config
from netclust.stream.daemon.queues import Inbox, Lane
from netclust.stream.detector import Detector
from netclust.stream.telemetry import Telemetry

__all__ = ["linker_counts", "measure", "trouble_of"]


def trouble_of(lane: Lane) -> str:
    """What is wrong with a source now."""
    if lane.failure is not None:
        return f"{type(lane.failure).__name__}: {lane.failure}"
    return str(getattr(lane.source, "trouble", ""))


def linker_counts(linker: Linker) -> dict[str, int]:
    """Counts of a linker, with those of the labels that it left out."""
    return linker.counters() | {f"labels_dropped_{reason}": count for reason, count in linker.labels.dropped.items()}


def measure(
    telemetry: Telemetry, config: Config, inbox: Inbox, detector: Detector, folder: Path, ready: Callable[[], bool]
) -> None:
    """Let Prometheus ask everybody."""

    def gauges() -> dict[str, float]:
        labels = float(len(detector.linker.labels))
        return {"ready": float(ready()), "warmup_progress_ratio": detector.warmth, "labels": labels}

    for number, lane in enumerate(inbox.lanes):
        _add_source(telemetry, inbox, number, lane)
    window = config.window.referent_window * config.window.partitions
    telemetry.set_linker(lambda: linker_counts(detector.linker), window=window)
    telemetry.set_alerts(detector.alert_counts)
    telemetry.watch_folder(folder)
    telemetry.add_gauges("detector", gauges)


def _add_source(telemetry: Telemetry, inbox: Inbox, number: int, lane: Lane) -> None:
    def counters() -> dict[str, int]:
        return {**lane.source.counters, **{f"shed_{why}": n for why, n in lane.counters.items()}}

    def gauges() -> dict[str, float]:
        records, seconds = inbox.waiting(number)
        up = not lane.ended and not trouble_of(lane)
        found = {"up": float(up), "queue_records": float(records), "queue_seconds": seconds}
        if (flows := getattr(lane.source, "open_flows", None)) is not None:
            found["flow_table_open"] = float(flows)
        return found

    telemetry.add_source(lane.source.name, counters, gauges)
