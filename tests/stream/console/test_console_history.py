"""The console's past and its list of work: what is shown is what was stored, and one answer settles what it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from console_cases import grown, saved_of
from store_cases import SECOND, START, Clock, alert, told

from netclust.stream.console.forest import LinkForest, Node, Step
from netclust.stream.console.history import History
from netclust.stream.console.triage import Triage
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store import Store
from netclust.stream.store.store_pruning import MAX_NODES
from netclust.stream.store.store_rows import ClusterRow

MINUTE = 60 * SECOND


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "netclust.db", clock=Clock()) as opened:
        yield opened


def node(tick: int, time: int, verdict: str = "novel", **values: float | str) -> Node:
    return Node(
        tick=tick, record=f"0:{tick}", time=time, verdict=verdict, label=verdict, score=1.0, cluster=7, via="window",
        link=tick - 1, hops=1, values=values,
    )  # fmt: skip


# The link forest


def test_a_record_is_found_as_it_was(store: Store) -> None:
    history = History(store)
    (first, *_) = saved = saved_of(grown(LinkForest(), [-1, 0, 1]))
    history.save_nodes(saved)
    history.save_nodes(saved)  # after a crash the same records come again
    assert history.node(first.tick) == first
    assert history.node(99) is None
    assert history.nodes(0, 10**18, 100) == saved
    assert history.newest(before=2, limit=1) == [saved[1]]
    assert history.of_cluster(7, 2) == saved[:0:-1]


def test_names_of_sites_do_not_get_into_the_store(store: Store) -> None:
    history = History(store)
    kept = {"source": "10.0.0.7", "service": "http", "destination_port": "80"}
    history.save_nodes([node(1, START, name="secret.example", duration=3.5, **kept)])
    found = history.node(1)
    assert found is not None
    assert found.values == kept


def test_where_there_is_too_much_the_anomalous_are_shown(store: Store) -> None:
    history = History(store)
    history.save_nodes([node(k, START + k, "normal" if k % 2 else "novel") for k in range(100)])
    found = history.nodes(START, START + 99, 50)
    assert [n.tick for n in found] == list(range(0, 100, 2))
    assert [n.tick for n in history.nodes(START + 10, START + 12, 50)] == [10, 11, 12]


def test_the_extent_counts_every_record_once(store: Store) -> None:
    history = History(store)
    assert history.extent(4) == {
        "from": -1, "to": -1, "step": 1, "nodes": 0, "counts": [0] * 4, "anomalous": [0] * 4,
    }  # fmt: skip
    history.save_nodes([node(k, START + k * SECOND, "normal" if k % 2 else "novel") for k in range(101)])
    extent = history.extent(10)
    assert (extent["from"], extent["to"], extent["nodes"]) == (START, START + 100 * SECOND, 101)
    assert sum(extent["counts"]) == 101
    assert sum(extent["anomalous"]) == 51
    assert all(extent["counts"])


def test_records_of_the_forest_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_NODES >= 100_000
    monkeypatch.setattr("netclust.stream.store.store_pruning.MAX_NODES", 10)
    history = History(store)
    history.save_nodes([node(k, START + k) for k in range(50)])
    assert store.prune()["nodes"] == 40
    assert [n.tick for n in history.nodes(0, START + 100, 100)] == list(range(40, 50))


# Minutes and paths


def test_minutes_survive_and_grow_old(store: Store) -> None:
    history = History(store)
    for k in range(3):
        history.save_sample(START + k * MINUTE, {"records": float(k)})
    history.save_sample(START, {"records": 9.0})
    assert history.samples(START + MINUTE) == [(START + k * MINUTE, {"records": float(k)}) for k in (1, 2)]
    store.prune(START + 91 * 24 * 60 * MINUTE)
    assert history.samples(0) == []


def test_a_path_is_kept_until_a_newer_one_comes(store: Store) -> None:
    history = History(store)
    assert history.path("a-1") == []
    history.save_paths({"a-1": [Step(kind="root", record="root")]})
    newer = [Step(kind="record", record="0:5", tick=5, hops=2), Step(kind="root", record="root", hops=0)]
    history.save_paths({"a-1": newer})
    assert history.path("a-1") == newer


def test_alerts_over_time_are_counted_where_they_began(store: Store) -> None:
    history = History(store)
    assert sum(map(sum, history.timeline(None, None, 5)["counts"].values())) == 0
    for k, severity in enumerate(("low", "high", "high")):
        store.save_events([told(f"a-{k}", first_seen=START + k * MINUTE, severity=severity)])
    found = history.timeline(None, None, 3)
    assert found["counts"] == {"low": [1, 0, 0], "medium": [0] * 3, "high": [0, 1, 1], "critical": [0] * 3}
    assert sum(map(sum, history.timeline(START + MINUTE, START + 2 * MINUTE, 7)["counts"].values())) == 2


def test_clusters_are_asked_for_in_parts(store: Store) -> None:
    rows = [
        ClusterRow(ident=k, label="x", records=1, anomalous=0, first_time=0, last_time=0, top_score=0.0, stored=0)
        for k in range(1200)
    ]

    class Summary:
        def __init__(self, row: ClusterRow) -> None:
            self.id, self.label, self.records, self.anomalous = row.ident, row.label, row.records, row.anomalous
            self.first_time, self.last_time, self.top_score = row.first_time, row.last_time, row.top_score

    store.save_clusters(map(Summary, rows))
    assert {row.ident for row in History(store).clusters(range(1150, 2400))} == set(range(1150, 1200))
    assert History(store).clusters([]) == []


# What is to be answered


def test_what_settles_most_comes_first(store: Store) -> None:
    store.save_events([
        told("a-1", clusters=[41], records=10), told("a-2", clusters=[41, 42], records=1, severity_score=10),
        told("a-3", clusters=[3, 41], records=500), told("a-4", clusters=[], records=5, severity_score=90),
    ])  # fmt: skip
    found = [(brief.id, *settled) for brief, settled in Triage(store).backlog(classes=10)]
    # a-3 is also about a class of the model, which no answer to another alert settles.
    assert found == [("a-3", 2, 510), ("a-2", 2, 11), ("a-4", 1, 5), ("a-1", 1, 10)]
    assert Triage(store).resolves("a-2", 10) == (2, 11)


def test_what_was_answered_or_muted_does_not_wait(store: Store) -> None:
    triage = Triage(store)
    store.save_events([told("a-1"), told("a-2", entity="10.0.0.8", example={"source": "10.0.0.8"}), told("a-3")])

    def waiting() -> list[str]:
        return sorted(brief.id for brief, _ in triage.backlog(0))

    assert waiting() == ["a-1", "a-2", "a-3"]
    label = store.add_label("a-1", "normal", by="eve")
    assert waiting() == ["a-2", "a-3"]
    store.add_undo(label.label_seq, by="eve")
    assert waiting() == ["a-1", "a-2", "a-3"]
    rule = store.add_suppression(SuppressionRule(source="10.0.0.8"), reason="scanner", by="eve")
    assert waiting() == ["a-1", "a-3"]
    assert {b.id: b.muted_by for b in triage.briefs(store.alerts())} == {"a-1": "", "a-2": rule.id, "a-3": ""}
    store.remove_suppression(rule.id, by="eve")
    again = store.add_label("cluster:41", "attack:scan", by="bob")
    assert waiting() == [], "all are about cluster 41, which was answered"
    (brief,) = triage.found(["a-3"])
    assert brief.answer is not None
    assert (brief.answer.by, brief.answer.label, brief.answer.status) == ("bob", "attack:scan", "pending")
    store.label_result(again.label_seq, status="refused", reason="it is a class of the model")
    assert waiting() == ["a-1", "a-2", "a-3"]
    assert [row.label for row in triage.labels("cluster", "41")] == ["attack:scan"]
    assert [b.id for b in triage.of_cluster(41, 2)] == ["a-3", "a-2"]


def test_a_brief_is_the_alert_in_a_line(store: Store) -> None:
    made = alert("a-7")
    (brief,) = Triage(store).briefs([made])
    for name in ("id", "summary", "severity", "records", "clusters", "first_seen"):
        assert getattr(brief, name) == getattr(made, name)
