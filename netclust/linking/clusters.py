"""Cluster summaries: what is known of a root-linked record and its descendants, or of a reference class."""

from __future__ import annotations

from functools import reduce

import msgspec
import numpy as np

from netclust.kernels.linking import link as kernels
from netclust.records.labels import LabelTable


class ClusterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster. Ids never merge and are never reused; ticks are arrival numbers, times nanoseconds (-1: unknown).

    First and last are by arrival: `first_time` is the time of record `first_tick`. `label` is what the cluster is;
    `alarm` is what its last anomalous record, `alarm_tick`, was taken for ("" and -1 if there was none). They differ
    where true labels came late.
    """

    id: int
    label: str
    records: int
    anomalous: int
    alarm: str
    alarm_tick: int
    first_tick: int
    last_tick: int
    first_time: int
    last_time: int
    top_score: float


def summaries(tables: list[kernels.Clusters], labels: LabelTable, since: int = 0) -> list[ClusterSummary]:
    """The clusters that have records, by id; a reference class is the sum of its parts in all partitions.

    With `since`, those that a record of this arrival number or a later one has joined.
    """
    found: dict[int, ClusterSummary] = {}
    for table in tables:
        for slot in np.flatnonzero((table.records > 0) & (table.last_tick >= since)):
            one = _summary(table, int(slot), labels)
            found[one.id] = _joined(found[one.id], one) if one.id in found else one
    return [found[ident] for ident in sorted(found)]


def cluster_summary(tables: list[kernels.Clusters], cluster: int, labels: LabelTable) -> ClusterSummary | None:
    """Return the summary of one cluster, also of a class that no record has joined; None if nothing is kept of it."""
    parts = [_summary(table, int(slot), labels) for table in tables for slot in np.flatnonzero(table.ident == cluster)]
    joined = [part for part in parts if part.records] or parts[:1]
    return reduce(_joined, joined) if joined else None


def _summary(table: kernels.Clusters, slot: int, labels: LabelTable) -> ClusterSummary:
    return ClusterSummary(
        id=int(table.ident[slot]),
        label=labels.name(int(table.label[slot])),
        records=int(table.records[slot]),
        anomalous=int(table.anomalous[slot]),
        alarm=labels.name(int(table.alarm[slot])) if table.anomalous[slot] else "",
        alarm_tick=int(table.alarm_tick[slot]),
        first_tick=int(table.first_tick[slot]),
        last_tick=int(table.last_tick[slot]),
        first_time=int(table.first_time[slot]),
        last_time=int(table.last_time[slot]),
        top_score=float(table.top_score[slot]),
    )


def _joined(a: ClusterSummary, b: ClusterSummary) -> ClusterSummary:
    """One summary of two parts of the same cluster."""
    first, last = min(a, b, key=lambda c: c.first_tick), max(a, b, key=lambda c: c.last_tick)
    alarmed = max(a, b, key=lambda c: c.alarm_tick)
    return ClusterSummary(
        id=a.id,
        label=a.label,
        records=a.records + b.records,
        anomalous=a.anomalous + b.anomalous,
        alarm=alarmed.alarm,
        alarm_tick=alarmed.alarm_tick,
        first_tick=first.first_tick,
        last_tick=last.last_tick,
        first_time=first.first_time,
        last_time=last.last_time,
        top_score=max(a.top_score, b.top_score),
    )
