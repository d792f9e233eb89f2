"""The detector: the same records give the same verdicts and events, however they are cut, and again after a restart."""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.linking.linker import Linker
from netclust.linking.verdicts import NORMAL, NOVEL
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.stream.alerts.alert_events import AlertEvent, Notice
from netclust.stream.alerts.suppression import Suppression
from netclust.stream.config import Config, parse_config
from netclust.stream.detection.answers import MAX_PINS, Answer, Result
from netclust.stream.detection.detector import Detector, RuleChange
from netclust.stream.detection.verdict_lines import verdict_lines
from netclust.stream.sources.base import Arrival, numbered

RECORDS = 1200


@cache
def model() -> Model:
    return train_network(simulate(3000, seed=1, attacks=KNOWN).table(), load_params("late"), seed=0)


@cache
def today() -> Table:
    return simulate(RECORDS, seed=2, day=1, attacks=HELD_BACK).table()


def config(warmup: int = 0, more: str = "") -> Config:
    return parse_config(
        f'[[source]]\nkind = "records"\npath = "-"\n[warmup]\nrecords = {warmup}\nreferences = {warmup // 2}\n{more}'
    )


def new_detector(warmup: int, linker: Linker | None = None) -> Detector:
    return Detector(model(), config(abs(warmup)), linker=linker, patient=warmup >= 0)


def arrival(first: int, last: int, table: Table | None = None) -> Arrival:
    part = numbered((today() if table is None else table)[first:last], first)
    return Arrival(part, None, 0.0, int(part.time.max(initial=-1)))


def told(outcomes: list[Any]) -> tuple[bytes, list[Any]]:
    """What is written of outcomes: verdict lines and events."""
    lines = b"".join(verdict_lines(outcome, "all") for outcome in outcomes)
    return lines, [msgspec.to_builtins(event) for outcome in outcomes for event in outcome.events]


def decisions() -> list[Answer | RuleChange]:
    rule = Suppression(id="s-1", reason="test", label="novel", attribute="service=http")
    return [
        Answer(number=1, from_tick=500, label="normal", clusters=(len(model().encoding.labels),)),
        RuleChange(id="s-1", from_tick=640, rule=rule),
        Answer(number=2, from_tick=700, label="newattack", records=("0:650", "0:660")),
        Answer(number=3, from_tick=900, undo=1),
        RuleChange(id="s-1", from_tick=950, rule=None),
    ]


@pytest.fixture(scope="module", params=[0, 300, -300])
def whole(request: pytest.FixtureRequest) -> tuple[int, tuple[bytes, list[Any]]]:
    """Below 0: a warm-up that is fitted while records come."""
    detector = new_detector(request.param)
    for decision in decisions():
        detector.decide(decision)
    return request.param, told(detector.take(0, arrival(0, RECORDS)))


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, RECORDS), max_size=12), restart=st.integers(0, 12))
def test_no_cut_and_no_restart_changes_a_verdict_or_an_event(
    whole: tuple[int, tuple[bytes, list[Any]]], cuts: list[int], restart: int
) -> None:
    warmup, expected = whole
    detector = new_detector(warmup)
    for decision in decisions():
        detector.decide(decision)
    ends = [0, *sorted(cuts), RECORDS]
    lines, events = b"", []
    for k, (first, last) in enumerate(itertools.pairwise(ends)):
        if k == restart:
            facts, arrays = detector.freeze()
            facts = json.loads(msgspec.json.encode(facts))
            linker = Linker.restore(detector.model, detector.linker.snapshot())
            detector = new_detector(warmup, linker)
            detector.restore(facts, arrays, "checkpoint")
        more = told(detector.take(0, arrival(first, last)))
        lines, events = lines + more[0], events + more[1]
    assert lines == expected[0]
    assert events == expected[1]


def novel_cluster(detector: Detector) -> int:
    """The new one with most records."""
    classes = len(detector.model.encoding.labels)
    return max((c for c in detector.linker.clusters() if c.id >= classes), key=lambda c: c.records).id


def test_a_cluster_that_was_answered_normal_is_not_told_again_and_comes_back_when_undone(small_model: Model) -> None:
    attack = simulate(400, seed=4, day=1, attacks=HELD_BACK, attack_share=0.9).table()
    detector = Detector(small_model, config())
    detector.take(0, arrival(0, 400, attack))
    cluster = novel_cluster(detector)
    detector.decide(Answer(number=1, from_tick=400, label="normal", clusters=(cluster,)))
    results = [r for o in detector.take(0, arrival(0, 400, attack)) for r in o.results]
    assert results[0].covered > 0
    assert results[0].pinned > 0
    rows = detector.linker.score_only(small_model.encoding.encode(attack))
    before = np.mean(rows.verdict == NORMAL)
    detector.decide(Answer(number=2, from_tick=800, undo=1))
    detector.take(0, arrival(0, 400, attack))
    after = np.mean(detector.linker.score_only(small_model.encoding.encode(attack)).verdict == NORMAL)
    assert after < before


def test_an_answer_outlives_the_window_that_it_was_given_in(small_model: Model) -> None:
    attack = simulate(300, seed=4, day=1, attacks=HELD_BACK, attack_share=0.9).table()
    calm = simulate(1500, seed=9, day=1, attacks=()).table()
    detector = Detector(small_model, config(more="[window]\nreferent_window = 200\n"))
    detector.take(0, arrival(0, 300, attack))
    detector.decide(Answer(number=1, from_tick=300, label="normal", clusters=(novel_cluster(detector),)))
    detector.take(0, arrival(0, 1500, calm))  # everything that was answered has left the window
    verdicts = detector.linker.score_only(small_model.encoding.encode(attack)).verdict
    plain = Linker(small_model).score_only(small_model.encoding.encode(attack)).verdict
    assert np.mean(verdicts == NORMAL) > np.mean(plain == NORMAL)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"clusters": (0,)}, "class of the model"),
        ({"clusters": (10**9,)}, "not known"),
        ({"undo": 77}, "not known"),
        ({"records": ("nonsense",)}, "record id"),
    ],
)
def test_an_answer_about_nothing_is_refused_and_changes_nothing(answer: dict[str, Any], why: str) -> None:
    detector = Detector(model(), config())
    detector.take(0, arrival(0, 100))
    before = detector.linker.snapshot()
    detector.decide(Answer(number=5, from_tick=100, label="normal", **answer))
    results: list[Result] = [r for o in detector.take(0, arrival(0, 0)) for r in o.results]
    assert why in results[0].refused
    assert detector.linker.snapshot() == before


def test_pins_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netclust.stream.detection.answers.MAX_PINS", 3)
    detector = Detector(model(), config())
    detector.take(0, arrival(0, 300))
    for number in range(4):
        ids = tuple(f"0:{k}" for k in range(250 + 2 * number, 252 + 2 * number))
        detector.decide(Answer(number=number, from_tick=300, label="normal", records=ids))
    detector.take(0, arrival(0, 10))
    assert detector.answers.pins == 3 < MAX_PINS
    assert len(detector.model.reference) == len(model().reference) + 3


def test_what_is_new_while_the_site_is_learned_is_counted_and_not_told() -> None:
    detector = Detector(model(), config(300))
    outcomes = detector.take(0, arrival(0, 300))
    assert detector.counters["not_told_in_warmup"] >= sum((o.verdicts.verdict == NOVEL).sum() for o in outcomes) > 0
    alerts = [e for o in outcomes for e in o.events if isinstance(e, AlertEvent)]
    assert all(event.alert.kind == "known_attack" for event in alerts)
    notices = [e for o in outcomes for e in o.events if isinstance(e, Notice)]
    assert [n.topic for n in notices] == ["warmup"]
    assert not detector.warming
    assert len(detector.model.reference) > len(model().reference)


def test_updates_of_the_weights_are_off_unless_asked_for() -> None:
    for more, moved in (("", False), ("[model]\nonline_updates = true\n", True)):
        detector = Detector(model(), config(more=more))
        detector.take(0, arrival(0, 300))
        detector.decide(Answer(number=1, from_tick=300, label="normal", clusters=(novel_cluster(detector),)))
        detector.take(0, arrival(300, 310))
        assert (not np.array_equal(detector.model.averaged, model().averaged)) == moved


def test_a_file_too_short_to_learn_from_keeps_its_attacks_to_itself() -> None:
    detector = Detector(model(), config(5000))
    before = [e for o in detector.take(0, arrival(0, RECORDS)) for e in o.events if isinstance(e, AlertEvent)]
    assert detector.warming
    told = detector.finish()
    assert [e.topic for e in told if isinstance(e, Notice)] == ["warmup"]
    opened = [e.alert for e in told if isinstance(e, AlertEvent) and e.action == "open"]
    assert opened
    assert {a.id for a in opened}.isdisjoint(e.alert.id for e in before)
    closed = [e.alert for e in told if isinstance(e, AlertEvent) and e.action == "close"]
    assert not detector.book.open_alerts
    assert sum(alert.records for alert in closed) >= detector.counters["not_told_in_warmup"]


def test_what_was_held_back_is_not_told_once_the_site_is_known() -> None:
    detector = Detector(model(), config(300))
    detector.take(0, arrival(0, RECORDS))
    assert not any(isinstance(e, Notice) for e in detector.finish())


def test_drift_that_goes_to_and_fro_is_counted_each_time_and_told_once_an_hour() -> None:
    detector = Detector(model(), config())
    hour = 3600 * 10**9
    for k, minutes in enumerate((0, 0, 10, 59, 60, 70, 120)):
        facts: dict[str, float | int | str | None] = {"what": "root_rate"}
        notice = Notice(topic="drift", time=hour + minutes * 60 * 10**9, key=str(k), message="", facts=facts)
        detector._note_drift([notice])
    assert detector.counters["drift_root_rate"] == 7
    assert [notice.key for notice in detector._notices] == ["0", "4", "6"]
