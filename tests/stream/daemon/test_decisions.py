"""Decisions of people: taken up once, from a noted arrival number on, the same again after a crash."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_cases import told

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.scoring.model import Model
from netclust.stream.config import Config, parse_config
from netclust.stream.daemon import decisions as module
from netclust.stream.daemon.decisions import POLL_SECONDS, ROLLBACK, Decisions
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.detection.answers import Answer, Result
from netclust.stream.detection.detector import Decision, Detector, ModelChange, RuleChange
from netclust.stream.logs import Log
from netclust.stream.sources.base import Arrival, numbered
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store import Store, StoreError
from netclust.stream.telemetry.telemetry import Telemetry

TODAY = simulate(600, seed=2, day=1, attacks=HELD_BACK).table()


class Listening(Detector):
    """A detector that notes what it is asked to apply."""

    def __init__(self, model: Model, config: Config) -> None:
        super().__init__(model, config)
        self.decided: list[Decision] = []

    def decide(self, decision: Decision) -> None:
        self.decided.append(decision)
        super().decide(decision)


class Desk:
    """A store, a detector that has seen some records, and who carries decisions from one to the other."""

    def __init__(self, folder: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.store = Store(folder / "netclust.db")
        self.model = model
        self.archive = ModelArchive(folder)
        self.telemetry = Telemetry()
        self.output = io.StringIO()
        config = '[[source]]\nkind = "records"\npath = "-"\n[warmup]\nrecords = 0\n'
        self.config = parse_config(config)
        self.start()
        self.seen = 0
        self.pass_by(300)

    def start(self, **places: int) -> None:
        """A daemon that begins, or begins again."""
        self.detector = Listening(self.model, self.config)
        self.decisions = Decisions(
            self.store, self.detector, self.telemetry, Log("json", "info", self.output), archive=self.archive, **places
        )
        self.seen = 0

    def pass_by(self, count: int) -> list[Result]:
        """Link the next records; what came of decisions."""
        part = numbered(TODAY[self.seen : self.seen + count], self.seen)
        self.seen += count
        outcomes = self.detector.take(0, Arrival(part, None, 0.0))
        return [result for outcome in outcomes for result in outcome.results]

    def poll(self) -> list[Decision]:
        """Look when it is time; what the detector was asked for."""
        before = len(self.detector.decided)
        self.now += POLL_SECONDS
        self.decisions.poll()
        return self.detector.decided[before:]

    def refusals(self) -> list[str]:
        return [row.reason for row in self.store.labels() if row.status == "refused"]

    def logged(self, level: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.output.getvalue().splitlines())
        return [line for line in lines if line["level"] == level]

    def feedback(self, kind: str, result: str) -> float:
        return self.telemetry.value("feedback_total", kind=kind, result=result)

    def newest_novel_cluster(self) -> int:
        return max(c.id for c in self.detector.linker.clusters() if c.id >= len(self.model.encoding.labels))


@pytest.fixture
def desk(tmp_path: Path, small_model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk(tmp_path, small_model, monkeypatch)
    yield desk
    desk.store.close()


def test_a_label_counts_from_the_next_record_and_its_result_is_in_the_store(desk: Desk) -> None:
    cluster = desk.newest_novel_cluster()
    row = desk.store.add_label(str(cluster), "attack:worm", by="eve")
    assert desk.poll() == [Answer(number=row.label_seq, from_tick=300, label="worm", clusters=(cluster,))]
    kept = desk.store.label(row.label_seq)
    assert (kept.status, kept.from_tick) == ("pending", 300)
    assert kept.linker_event == {"label": "worm", "clusters": [cluster]}
    results = desk.pass_by(10)
    (done,) = desk.decisions.done(results)
    assert (done.status, done.from_tick, done.covered, done.reason) == ("applied", 300, results[0].covered, "")
    assert results[0].covered > 0
    assert done.effect == {"pinned": 0, "closed": []}
    assert desk.feedback("label", "accepted") == 1
    assert "worm" in desk.detector.linker.labels.names


def test_records_alerts_and_undoing_say_what_they_are_about(desk: Desk) -> None:
    classes = len(desk.model.encoding.labels)
    novel = desk.newest_novel_cluster()
    desk.store.save_events(
        [
            told("a-00000000000a", clusters=[1, novel, classes]),
            told("a-00000000000b", clusters=[classes - 1, 0], record_ids=["0:5", "0:6"]),
        ]
    )
    desk.store.add_label("0:299", "normal", by="eve")
    desk.store.add_label("a-00000000000a", "attack:worm", by="eve")
    desk.store.add_label("a-00000000000b", "normal", by="eve")
    desk.store.add_undo(1, by="eve")
    normal = desk.detector.linker.normal_label
    assert desk.poll() == [
        Answer(number=1, from_tick=300, label=normal, records=("0:299",)),
        Answer(number=2, from_tick=300, label="worm", clusters=(novel, classes), alert="a-00000000000a"),
        Answer(number=3, from_tick=300, label=normal, records=("0:5", "0:6"), alert="a-00000000000b"),
        Answer(number=4, from_tick=300, undo=1),
    ]
    assert desk.decisions.label_seq == 4


def test_after_a_crash_a_label_counts_from_the_record_that_was_noted(desk: Desk) -> None:
    cluster = desk.newest_novel_cluster()
    desk.store.add_label(str(cluster), "attack:worm", by="eve")
    asked = desk.poll()
    desk.start()
    desk.pass_by(500)  # further than before
    assert desk.poll() == asked
    assert desk.store.label(1).from_tick == 300
    desk.start(label_seq=1)
    assert desk.poll() == []  # a checkpoint has it


def test_what_cannot_be_is_refused_with_a_reason_and_not_looked_at_again(desk: Desk) -> None:
    labels = desk.detector.linker.labels
    labels.normal = frozenset({*labels.normal, "benign"})  # as in a model of another site
    desk.store.add_label("0:1", "attack:benign", by="eve")
    desk.store.add_label("0:2", "attack:worm", by="eve")
    asked = desk.poll()
    assert [a.number for a in asked if isinstance(a, Answer)] == [2]
    assert desk.refusals() == ["'benign' is a word for normal in this model: it cannot be the name of an attack"]
    assert desk.feedback("label", "refused") == 1
    desk.start()
    assert [a.number for a in desk.poll() if isinstance(a, Answer)] == [2]
    assert desk.feedback("label", "refused") == 1


def test_the_store_is_looked_at_now_and_then_or_when_somebody_asks(desk: Desk) -> None:
    desk.poll()
    desk.store.add_label("0:1", "normal", by="eve")
    desk.now += POLL_SECONDS * 0.9
    desk.decisions.poll()
    assert desk.detector.decided == []
    desk.decisions.look_now()
    desk.decisions.poll()
    assert len(desk.detector.decided) == 1
    assert desk.poll() == []


def test_an_unchanged_store_is_not_read_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    labels = desk.store.labels

    def counted(**given: Any) -> Any:
        nonlocal reads
        reads += 1
        return labels(**given)

    monkeypatch.setattr(desk.store, "labels", counted)
    desk.poll()
    desk.poll()
    assert reads == 1
    desk.store.set_meta("other", 1)
    desk.poll()
    assert reads == 2


def test_a_store_that_fails_is_logged_and_read_again_later(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.store.add_label("0:1", "normal", by="eve")

    def broken(**_: Any) -> Any:
        raise StoreError("disk on fire")

    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "labels", broken)
        assert desk.poll() == []
    assert desk.logged("error")[0]["why"] == "disk on fire"
    assert len(desk.poll()) == 1


# Rules


def test_a_rule_begins_and_ends_at_noted_records_and_is_asked_for_once(desk: Desk) -> None:
    row = desk.store.add_suppression(SuppressionRule(label="novel"), reason="test", by="eve")
    (begins,) = desk.poll()
    assert isinstance(begins, RuleChange)
    assert begins.rule is not None
    assert (begins.id, begins.from_tick, begins.rule.label, begins.rule.id) == (row.id, 300, "novel", row.id)
    assert desk.store.suppressions()[0].from_tick == 300
    desk.store.set_meta("other", 1)
    assert desk.poll() == []  # it waits for its record
    desk.pass_by(50)
    assert row.id in desk.detector.rules
    desk.store.remove_suppression(row.id, by="eve")
    assert desk.poll() == [RuleChange(id=row.id, from_tick=350, rule=None)]
    (kept,) = desk.store.suppressions(active_only=False)
    assert (kept.from_tick, kept.removed_tick) == (300, 350)
    desk.start()
    desk.pass_by(500)
    assert desk.poll() == []  # it is over: a detector that never had it needs nothing


def test_after_a_crash_a_rule_counts_from_the_record_that_was_noted(desk: Desk) -> None:
    row = desk.store.add_suppression(SuppressionRule(label="novel"), reason="test", by="eve")
    desk.poll()
    desk.start()
    desk.pass_by(500)
    (again,) = desk.poll()
    assert isinstance(again, RuleChange)
    assert again.from_tick == 300
    desk.pass_by(1)
    desk.store.remove_suppression(row.id, by="eve")
    desk.poll()
    rules = desk.detector.rules
    desk.start()
    desk.detector.rules = dict(rules)  # as a checkpoint had it
    desk.pass_by(550)
    assert desk.poll() == [RuleChange(id=row.id, from_tick=501, rule=None)]


def test_what_a_rule_of_people_hides_is_counted_once(desk: Desk) -> None:
    row = desk.store.add_suppression(SuppressionRule(label="novel"), reason="test", by="eve")
    desk.poll()
    desk.pass_by(1)
    counts = desk.detector.book.suppressions.counts
    counts[row.id] = 3
    counts["suppress 1"] = 9  # of the configuration: not in the store
    assert desk.decisions.newly_hidden() == {row.id: 3}
    assert desk.decisions.newly_hidden() == {}
    counts[row.id] = 5
    assert desk.decisions.newly_hidden() == {row.id: 2}


# An earlier model


def test_an_earlier_model_takes_over_at_a_noted_record_and_once(desk: Desk) -> None:
    desk.archive.save(desk.model)
    desk.store.set_meta(ROLLBACK, {"number": 3, "fingerprint": desk.model.fingerprint})
    (change,) = desk.poll()
    assert isinstance(change, ModelChange)
    assert (change.model.fingerprint, change.from_tick) == (desk.model.fingerprint, 300)
    assert desk.store.meta(ROLLBACK) == {"number": 3, "fingerprint": desk.model.fingerprint, "from_tick": 300}
    assert desk.decisions.rollback == 3
    desk.pass_by(10)
    assert desk.poll() == []
    (line,) = (line for line in desk.logged("info") if "from_record" in line)
    assert (line["model"], line["from_record"]) == (desk.model.fingerprint[:12], 300)
    desk.start(rollback=2)
    desk.pass_by(500)
    (change,) = desk.poll()
    assert isinstance(change, ModelChange)
    assert change.from_tick == 300  # as before the crash
    desk.start(rollback=3)
    assert desk.poll() == []


@pytest.mark.parametrize("asked", [{"number": 1, "fingerprint": "beef"}, {"number": 1}])
def test_a_model_that_is_not_kept_is_refused_once(desk: Desk, asked: dict[str, Any]) -> None:
    desk.store.set_meta(ROLLBACK, asked)
    assert desk.poll() == []
    assert [line["message"] for line in desk.logged("error")] == ["rollback refused"]
    desk.store.set_meta("other", 1)
    assert desk.poll() == []
    assert len(desk.logged("error")) == 1


@pytest.mark.parametrize("asked", [{"fingerprint": "beef"}, {}, ["beef"], "beef"])
def test_what_is_no_request_for_a_model_is_passed_over(desk: Desk, asked: Any) -> None:
    desk.store.set_meta(ROLLBACK, asked)
    assert desk.poll() == []
    assert desk.logged("error") == []


# What came of it


def test_results_are_written_down_with_their_reason(desk: Desk) -> None:
    for record in range(4):
        desk.store.add_label(f"0:{record}", "normal", by="eve")
    rows = desk.decisions.done(
        [
            Result(number=1, from_tick=300, covered=4, pinned=2, closed=("a-1", "a-2")),
            Result(number=2, from_tick=300, refused="no such record"),
            Result(number=-1, from_tick=300),  # a rule
            Result(number=3, from_tick=301),
            Result(number=4, from_tick=301, covered=1, pinned=-2),
        ]
    )
    assert [(r.label_seq, r.status, r.covered, r.reason) for r in rows] == [
        (1, "applied", 4, "2 pinned"),
        (2, "refused", 0, "no such record"),
        (3, "applied", 0, "nothing that it is about can still be linked to: it changes nothing"),
        (4, "applied", 1, ""),
    ]
    assert [r.from_tick for r in rows] == [300, 300, 301, 301]
    assert rows[0].effect == {"pinned": 2, "closed": ["a-1", "a-2"]}
    assert [row.status for row in desk.store.labels()] == ["applied", "refused", "applied", "applied"]
    assert (desk.feedback("label", "accepted"), desk.feedback("label", "refused")) == (3, 1)


def test_a_result_that_cannot_be_stored_is_logged_and_the_others_are_kept(desk: Desk) -> None:
    desk.store.add_label("0:1", "normal", by="eve")
    rows = desk.decisions.done([Result(number=77, from_tick=1, covered=1), Result(number=1, from_tick=1, covered=1)])
    assert [row.label_seq for row in rows] == [1]
    assert [line["label"] for line in desk.logged("error")] == [77]
