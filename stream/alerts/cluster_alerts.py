"""Alerts: clusters that turned anomalous, as an operator sees them. One line a cluster, never one a record.

>>> from netclust.linking.clusters import ClusterSummary
>>> times = dict(first_tick=0, last_tick=950, first_time=-1, last_time=-1, top_score=1.0)
>>> flood = ClusterSummary(id=7, label="novel", records=900, anomalous=900, alarm="novel", alarm_tick=950, **times)
>>> calm = ClusterSummary(id=0, label="normal", records=5000, anomalous=0, alarm="", alarm_tick=-1, **times)
>>> [(a.cluster, a.kind, a.records) for a in alerts_of([calm, flood])]
[(7, 'novel', 900)]
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from netclust.linking.clusters import ClusterSummary


class AnomalousCluster(msgspec.Struct, frozen=True, kw_only=True):
    """An anomalous cluster: what it is taken for, how large it grew, when, and how far from normal it got."""

    cluster: int
    kind: str
    records: int
    first_tick: int
    last_tick: int
    first_time: int
    last_time: int
    top_score: float


def alerts_of(clusters: Iterable[ClusterSummary]) -> list[AnomalousCluster]:
    """The clusters with anomalous records, largest first."""
    found = [
        AnomalousCluster(
            cluster=c.id,
            kind=c.alarm,
            records=c.anomalous,
            first_tick=c.first_tick,
            last_tick=c.last_tick,
            first_time=c.first_time,
            last_time=c.last_time,
            top_score=c.top_score,
        )
        for c in clusters
        if c.anomalous
    ]
    return sorted(found, key=lambda a: (-a.records, a.cluster))
