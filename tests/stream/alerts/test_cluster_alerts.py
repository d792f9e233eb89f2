"""Alerts: one a cluster that turned anomalous, with the numbers of its summary."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.linking.clusters import ClusterSummary
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.train_network import train_network
from netclust.stream.alerts.cluster_alerts import alerts_of

FUZZ = settings(max_examples=2000 if os.environ.get("NETCLUST_LONG") else 150, deadline=None)


def cluster(ident: int, records: int, anomalous: int) -> ClusterSummary:
    return ClusterSummary(
        id=ident, label="normal", records=records, anomalous=anomalous, alarm=f"kind {ident}", alarm_tick=ident,
        first_tick=ident, last_tick=ident + 9, first_time=100 + ident, last_time=200 + ident, top_score=ident / 2,
    )  # fmt: skip


def test_an_alert_says_what_its_cluster_says() -> None:
    (alert,) = alerts_of([cluster(4, records=50, anomalous=30)])
    assert (alert.cluster, alert.kind, alert.records) == (4, "kind 4", 30)
    assert (alert.first_tick, alert.last_tick, alert.first_time, alert.last_time) == (4, 13, 104, 204)
    assert alert.top_score == 2.0


def test_quiet_traffic_raises_no_alert() -> None:
    assert alerts_of([]) == []
    assert alerts_of([cluster(0, records=10**9, anomalous=0)]) == []


@FUZZ
@given(st.dictionaries(st.integers(0, 100), st.integers(0, 5)))
def test_alerts_are_complete_and_in_order(anomalous: dict[int, int]) -> None:
    found = alerts_of(cluster(ident, 10, bad) for ident, bad in anomalous.items())
    assert {a.cluster: a.records for a in found} == {ident: bad for ident, bad in anomalous.items() if bad}
    keys = [(-a.records, a.cluster) for a in found]
    assert keys == sorted(keys)


def test_all_anomalous_records_are_in_the_alerts() -> None:
    model = train_network(simulate(2000, seed=1).table(), seed=0)
    linker = Linker(model, LinkerConfig.stream(referent_window=200))
    table = simulate(2000, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK), attack_share=0.3).table()
    verdicts = linker.process(model.encoding.encode(table, linker.labels))
    found = alerts_of(linker.clusters())
    assert sum(a.records for a in found) == int(verdicts.anomalous.sum()) > 0
    for alert in found:
        inside = np.flatnonzero((verdicts.cluster == alert.cluster) & verdicts.anomalous)
        assert len(inside) == alert.records
        members = np.flatnonzero(verdicts.cluster == alert.cluster)
        assert (alert.first_tick, alert.last_tick) == (members[0], members[-1])
        assert alert.top_score == verdicts.score[members].max()
        assert table.time[members[0]] == alert.first_time
