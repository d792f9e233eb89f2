"""Alerts of the detector on a site's log, with the settings that `netclust watch` has by default.

A record counts as found if it was in a reported alert. What is held back in the warm-up, by the cool-down or by the
limit of alerts per hour is not.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from netclust.metrics.detection_metrics import share
from netclust.models.network.site.site_records import Site
from netclust.scoring.model import Model
from netclust.stream.commands.run_watch import WARMUP_RECORDS
from netclust.stream.config import Config, named
from netclust.stream.detection.detector import Detector
from netclust.stream.sources.base import Arrival

__all__ = ["watch_site"]

SECONDS = 1e9


def watch_site(site: Site, model: Model, warmup: int = WARMUP_RECORDS) -> dict[str, Any]:
    """Return the alerts that `watch` reports on a site's log: how many a day, what is in them, how soon.

    `attacks_in_alert` and `benign_in_alert` are shares of the judged records after the warm-up.
    """
    raw = {"source": [{"kind": "zeek", "path": "-"}], "warmup": {"records": warmup, "references": max(warmup // 2, 2)}}
    detector = Detector(model, named(msgspec.convert(raw, Config), "evaluation"))
    table = site.table
    truth: dict[str, set[bool]] = {}
    in_alert = np.zeros(len(site), np.bool_)
    delays: list[int] = []
    for row in range(len(site)):
        before = detector.book.counters.records
        detector.take(0, Arrival(table[row : row + 1], None, 0.0))
        if detector.book.counters.records == before or not (alerts := detector.book.open_alerts):
            continue
        alert = max(alerts, key=lambda a: a.last_record == f"0:{table.seq[row]}")
        if alert.last_record == f"0:{table.seq[row]}":
            in_alert[row] = True
            if site.judged[row]:
                truth.setdefault(alert.id, set()).add(bool(site.attack[row]))
    counters = detector.book.counters
    after = np.arange(len(site)) >= warmup
    attacks, benign = site.attack & after, site.benign & after
    start = site.start
    found = np.flatnonzero(attacks & in_alert)
    if len(found):
        delays.append(int(start[found[0]] - start[np.flatnonzero(attacks)[0]]))
    opened = sum(n for by_severity in counters.opened.values() for n in by_severity.values())
    return {
        "warmup_records": warmup,
        "records": len(site),
        "days": round(site.days, 3),
        "attacks_after_warmup": int(attacks.sum()),
        "benign_after_warmup": int(benign.sum()),
        "attacks_in_alert": share(int((attacks & in_alert).sum()), int(attacks.sum())),
        "benign_in_alert": share(int((benign & in_alert).sum()), int(benign.sum())),
        "alerts": opened,
        "alerts_per_day": opened / site.days,
        "benign_only_alerts_per_day": sum(seen == {False} for seen in truth.values()) / site.days,
        "seconds_to_first_alert": delays[0] / SECONDS if delays else None,
        "held_back_in_warmup": int(detector.counters["not_told_in_warmup"]),
    }
