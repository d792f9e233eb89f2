"""State is bounded whatever comes in, and what matures cannot be led astray quickly."""

from __future__ import annotations

import numpy as np
import pytest
from linker_cases import LONG, line, line_model

from netclust.linking.linker import Linker, LinkerConfig


def arrays_of(linker):
    parts = [a for part in linker.memory.partitions for a in (*part.window, *part.clusters, part.cursor)]
    return [(id(a), a.nbytes) for a in (*parts, *linker.memory.references, *linker._acc, *linker._matches)]


def test_a_flood_of_new_things_does_not_grow_the_state():
    linker = Linker(line_model(), LinkerConfig(referent_window=16, max_clusters=8))
    before = arrays_of(linker)
    n = 100_000 if LONG else 5_000
    values = 10.0 * np.arange(1, n + 1)  # each far from all others
    for at in range(0, n, 500):
        assert (linker.process(line(values[at : at + 500], first=at)).verdict == 2).all()
    assert arrays_of(linker) == before
    assert [c.id for c in linker.clusters()] == list(range(3 + n - 8, 3 + n))
    counts = linker.counters()
    assert counts["clusters_opened_total"] == n
    assert counts["clusters_forgotten_total"] == n - 8
    assert counts["referents"] == 16
    assert counts["records_unsummed_total"] == 0
    size = len(linker.snapshot())
    linker.process(line(-values[:500], first=n))
    assert abs(len(linker.snapshot()) - size) < 64


def test_a_cluster_that_is_joined_outlives_a_flood():
    linker = Linker(line_model(), LinkerConfig(referent_window=16, max_clusters=8))
    flood = iter(10.0 * np.arange(1, 1001))
    for k in range(100):  # something new, then a joiner of the first new thing, again and again
        linker.process(line([next(flood), next(flood), 0.5], first=3 * k))
    kept = {c.id: c for c in linker.clusters()}
    ident = linker.process(line([0.5], first=300)).cluster[0]
    assert kept[int(ident)].records == 100
    assert len(kept) == 8


def test_a_forgotten_cluster_keeps_its_id_and_its_joiners_are_counted_as_unsummed():
    linker = Linker(line_model(), LinkerConfig(referent_window=16, max_clusters=1))
    linker.process(line([0.5, 5.0]))
    v = linker.process(line([0.5, 5.0, 0.5], first=2))
    assert v.cluster.tolist() == [3, 4, 3]
    assert [c.id for c in linker.clusters()] == [4]
    assert linker.counters()["records_unsummed_total"] == 2
    assert linker.label_cluster(3, "worm").covered == 3  # its members can still be named
    assert linker.labels.name(linker.process(line([0.5], first=5)).label[0]) == "worm"


def chain(seconds, n=30):
    """From normal (0.1) away in small steps, within so many seconds."""
    return line(0.1 + 0.1 * np.arange(n), times=1000 + np.linspace(0, seconds, n))


def normal_only():
    return line_model([(0.1, "normal")])


def test_without_maturing_a_chain_of_small_steps_is_followed_anywhere():
    v = Linker(normal_only(), LinkerConfig(referent_window=100)).process(chain(10))
    assert not v.anomalous.any()


def test_with_maturing_a_quick_chain_never_makes_a_far_record_normal():
    for share in (0.01, 0.5, 1.0):
        config = LinkerConfig(referent_window=100, mature_after=60, mature_share=share)
        linker = Linker(normal_only(), config)
        v = linker.process(chain(59.9))
        # Only what the reference set itself accepts: 0.1 and 0.2.
        assert np.flatnonzero(~v.anomalous).tolist() == [0, 1]
        assert linker.counters()["trusted"] == 0


def test_repeating_the_chain_while_its_alarms_stand_does_not_help():
    linker = Linker(normal_only(), LinkerConfig(referent_window=200, mature_after=60, mature_share=1.0))
    for lap in range(5):
        batch = chain(50)
        batch.time = batch.time + lap * 50_000_000_000
        v = linker.process(batch)
        assert v.anomalous[5:].all()
    assert {c.label for c in linker.clusters() if c.id >= 3} == {"novel"}


def test_slow_drift_matures():
    """One small step every two minutes is taken for what normal traffic becomes."""
    linker = Linker(normal_only(), LinkerConfig(referent_window=100, mature_after=60, mature_share=1.0))
    v = linker.process(chain(120 * 29))
    assert not v.anomalous.any()
    assert linker.counters()["matured_total"] == 29


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_share_of_matured_records_is_capped(share):
    linker = Linker(normal_only(), LinkerConfig(referent_window=20, mature_after=1, mature_share=share))
    rng = np.random.default_rng(0)
    cap = int(share * 20)
    for k in range(205):
        event = None
        if k % 7 == 3:  # labels and their undoing do not open a way around it
            event = linker.label_cluster(0, str(rng.choice(["dos", "normal"])))
        linker.process(line([0.1], first=k, times=[1000 + 2 * k]))
        assert linker.counters()["trusted"] <= cap
        if event is not None:
            linker.undo(event.event)
    window, live = linker.memory.partitions[0].window, linker.memory.partitions[0].live
    trusted = linker.counters()["trusted"]
    assert max(cap - 1, 0) <= trusted <= cap  # the oldest may just have left
    assert int((window.side[live] == 1).sum()) == trusted


def test_what_joins_while_a_label_stands_has_to_mature_after_its_undoing():
    linker = Linker(normal_only(), LinkerConfig(referent_window=50, mature_after=60, mature_share=1.0))
    linker.process(line([0.1], times=[1000]))
    event = linker.label_cluster(0, "dos")
    assert linker.process(line([0.2], first=1, times=[1001])).anomalous.all()
    linker.undo(event.event)
    v = linker.process(line([0.2, 0.3], first=2, times=[1002, 1003]))
    assert v.anomalous.tolist() == [False, True]  # 0.3 is within reach of 0.2, which is not trusted yet


def test_records_without_a_time_never_mature_and_hold_nothing_up():
    linker = Linker(normal_only(), LinkerConfig(referent_window=50, mature_after=60, mature_share=1.0))
    batch = line([0.2, 0.12, 0.1], times=[0, 1000, 1061])
    batch.time[0] = -1
    linker.process(batch)
    assert linker.counters()["trusted"] == 1
    v = linker.process(line([0.26, 0.3], first=3, times=[1062, 1063]))
    assert v.anomalous.tolist() == [False, True]


def test_a_long_stream_without_times_matures_at_once_when_times_come():
    linker = Linker(normal_only(), LinkerConfig(referent_window=5, mature_after=0, mature_share=1.0))
    linker.process(line([0.1] * 1000))
    assert linker.counters()["trusted"] == 0
    linker.process(line([0.1, 0.1], first=1000, times=[1, 2]))
    assert linker.counters()["trusted"] == 1


def test_an_anomalous_cluster_never_matures():
    linker = Linker(line_model(), LinkerConfig(referent_window=50, mature_after=1, mature_share=1.0, label_delay=0))
    # Record 0 opens a cluster; its true label is normal, but its cluster stays one that nobody vouched for.
    linker.process(line([0.5, 0.6], labels=[0, -1], times=[1000, 1001]))
    v = linker.process(line([0.7], first=2, times=[2000]))
    assert v.anomalous.all()
    linker.label_cluster(3, "normal")
    assert not linker.process(line([0.64], first=3, times=[2001])).anomalous.any()
