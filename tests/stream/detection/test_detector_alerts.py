"""What the detector hands to the book of alerts: addresses, ports, services; and decisions that meet."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.errors import InputError, ModelError
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.stream.alerts.alert_events import Alert, AlertEvent, Notice
from netclust.stream.alerts.suppression import Suppression
from netclust.stream.config import parse_config
from netclust.stream.detection.answers import Answer
from netclust.stream.detection.detector import NOTICE_RECORDS, Detector, ModelChange, Outcome, RuleChange
from netclust.stream.sources.base import Arrival, numbered

ATTACK = simulate(400, seed=4, day=1, attacks=HELD_BACK, attack_share=0.9).table()
CONTEXT = {
    "source": "10.0.0.9", "destination": "10.0.0.1", "destination_port": "8080", "protocol": "tcp", "service": "smtp",
}  # fmt: skip


def new(model: Model, more: str = "", warmup: int = 0) -> Detector:
    return Detector(
        model, parse_config(f'[[source]]\nkind = "records"\npath = "-"\n[warmup]\nrecords = {warmup}\n{more}')
    )


def arrival(table: Table, first: int = 0, context: dict[str, str] | None = None) -> Arrival:
    shown = CONTEXT if context is None else context

    def carried(rows: NDArray[np.int64]) -> dict[str, NDArray[np.object_]]:
        return {name: np.array([value] * len(rows), object) for name, value in shown.items()}

    return Arrival(numbered(table, first), None, 0.0, int(table.time.max(initial=-1)), carried)


def alerts(outcomes: list[Outcome]) -> list[Alert]:
    return [event.alert for outcome in outcomes for event in outcome.events if isinstance(event, AlertEvent)]


def test_an_alert_has_the_addresses_port_and_service_of_its_records(small_model: Model) -> None:
    detector = new(small_model)
    found = alerts(detector.take(0, arrival(ATTACK)))
    assert {alert.entity for alert in found} == {"10.0.0.9"}
    last = found[-1]
    assert (last.entity_kind, last.protocol, last.service) == ("source", "tcp", "smtp")
    assert [count.value for count in last.destinations] == ["10.0.0.1"]
    assert [count.value for count in last.ports] == ["8080"]
    assert {name: last.example[name] for name in CONTEXT if name != "service"} == {
        name: value for name, value in CONTEXT.items() if name != "service"
    }
    assert "src_bytes" in last.example


def test_without_context_an_attribute_of_the_schema_says_protocol_and_service(small_model: Model) -> None:
    detector = new(small_model)
    alert = alerts(detector.take(0, arrival(ATTACK, context={})))[0]
    values = dict(alert.example)
    assert alert.protocol in ("tcp", "udp", "icmp")
    assert alert.protocol == values["protocol_type"]
    assert alert.service == values["service"]
    assert alert.sources == []


def test_decisions_of_one_record_are_all_applied_before_it(small_model: Model) -> None:
    detector = new(small_model)
    detector.take(0, arrival(ATTACK[:300]))
    rule = Suppression(id="s-1", reason="test", label="novel")
    detector.decide(RuleChange(id="s-1", from_tick=300, rule=rule))
    detector.decide(ModelChange(model=small_model, from_tick=300))
    detector.decide(Answer(number=4, from_tick=300, label="normal", records=("0:299",)))
    detector.decide(RuleChange(id="s-0", from_tick=200, rule=None))  # its record has passed
    outcomes = detector.take(0, arrival(ATTACK[300:310], 300))
    assert [result.number for outcome in outcomes for result in outcome.results] == [-1, -1, -1, 4]
    assert [result.from_tick for outcome in outcomes for result in outcome.results] == [200, 300, 300, 300]
    assert len(outcomes) == 1
    assert detector.generation == 2  # another model, and one with a pin
    assert list(detector.rules) == ["s-1"]


def test_a_rule_that_ends_hides_nothing_more(small_model: Model) -> None:
    detector = new(small_model)
    rule = Suppression(id="s-1", reason="test", source="10.0.0.9")
    detector.decide(RuleChange(id="s-1", from_tick=0, rule=rule))
    assert alerts(detector.take(0, arrival(ATTACK[:100]))) == []
    detector.decide(RuleChange(id="s-1", from_tick=100, rule=None))
    assert alerts(detector.take(0, arrival(ATTACK[100:200], 100)))
    assert detector.rules == {}


def test_an_answer_that_it_is_an_attack_closes_nothing(small_model: Model) -> None:
    detector = new(small_model)
    told = alerts(detector.take(0, arrival(ATTACK)))
    alert = max(told, key=lambda a: a.records)
    clusters = tuple(c for c in alert.clusters if c >= len(small_model.encoding.labels))
    detector.decide(Answer(number=1, from_tick=400, label="worm", clusters=clusters, alert=alert.id))
    (outcome,) = detector.take(0, arrival(ATTACK[:0], 400))
    assert outcome.results[0].closed == ()
    assert alert.id in {a.id for a in detector.book.open_alerts}


def test_exemplars_are_kept_of_an_alert_that_is_told_after_another_was_closed(small_model: Model) -> None:
    detector = new(small_model)
    told = [e for o in detector.take(0, arrival(ATTACK[:50])) for e in o.events if isinstance(e, AlertEvent)]
    opened = told[-1]
    closed = AlertEvent(action="close", alert=msgspec.structs.replace(opened.alert, id="a-other"))
    detector.exemplars.clear()
    batch = small_model.encoding.encode(ATTACK[:50])
    detector._keep_exemplars([closed, opened], batch, detector.linker.score_only(batch))
    assert detector.exemplars.of_alert("a-other") is None
    kept = detector.exemplars.of_alert(opened.alert.id)
    assert kept is not None
    assert np.array_equal(kept[0][0], batch.num[int(opened.alert.last_record.partition(":")[2])])


def test_a_decision_of_a_later_record_waits_for_it(small_model: Model) -> None:
    detector = new(small_model)
    detector.decide(RuleChange(id="s-1", from_tick=7, rule=Suppression(id="s-1", reason="test", label="novel")))
    outcomes = detector.take(0, arrival(ATTACK[:20]))
    assert [(o.first_tick, len(o.verdicts), len(o.results)) for o in outcomes] == [(0, 7, 0), (7, 13, 1)]
    assert [o.rows.tolist() for o in outcomes] == [list(range(7)), list(range(7, 20))]


def test_batches_end_where_notices_are_told(small_model: Model) -> None:
    table = simulate(NOTICE_RECORDS + 100, seed=4, day=1).table()
    detector = new(small_model)
    detector._notices = [Notice(topic="drift", time=5, key="k", message="m")]
    first, second = detector.take(0, arrival(table))
    assert [len(o.verdicts) for o in (first, second)] == [NOTICE_RECORDS, 100]
    assert [e.key for e in first.events if isinstance(e, Notice)] == ["k"]
    assert not any(isinstance(e, Notice) for e in second.events)
    detector._note_drift([Notice(topic="drift", time=6, key="l", message="m", facts={"what": "link_score"})])
    later = detector.take(0, arrival(table, len(table)))
    assert [e.key for o in later for e in o.events if isinstance(e, Notice)] == ["l"]


def test_an_answer_to_an_alert_closes_it_and_its_examples_are_pinned(small_model: Model) -> None:
    detector = new(small_model)
    told = alerts(detector.take(0, arrival(ATTACK)))
    alert = max(told, key=lambda a: a.records)
    clusters = tuple(c for c in alert.clusters if c >= len(small_model.encoding.labels))
    detector.decide(Answer(number=1, from_tick=400, label="normal", clusters=clusters, alert=alert.id))
    (outcome,) = detector.take(0, arrival(ATTACK[:0], 400))
    (result,) = outcome.results
    assert alert.id in result.closed
    assert result.pinned > 0
    closed = [a for a in alerts([outcome]) if a.state == "closed"]
    assert {a.id for a in closed} == set(result.closed)
    assert {a.closed_by for a in closed} == {"label"}
    pinned = detector.model.reference[len(small_model.reference) :]
    kept = detector.exemplars.of_alert(alert.id)
    assert kept is not None
    assert {row.tobytes() for row in pinned.num} <= {row.tobytes() for row in kept[0]}


def test_another_model_begins_with_its_own_warm_up_and_no_exemplars(small_model: Model) -> None:
    detector = new(small_model, "references = 100\n", warmup=300)
    outcomes = detector.take(0, arrival(simulate(300, seed=2, day=1, attacks=()).table()))
    assert not detector.warming
    assert detector.generation == 1
    (notice,) = [e for o in outcomes for e in o.events if isinstance(e, Notice)]
    assert notice.key == "warmup:1:300"
    assert notice.facts == {"records": 300, "not_told": detector.counters["not_told_in_warmup"]}
    told = alerts(detector.take(0, arrival(ATTACK, 300)))
    assert detector.exemplars.of_alert(told[-1].id) is not None
    detector.swap(small_model)
    assert detector.warming
    assert detector.warmth == 0.0
    assert detector.generation == 2
    assert detector.model is detector.shipped is detector.answers.start is small_model
    assert detector.exemplars.of_alert(told[-1].id) is None
    assert detector.linker.tick == 700


def test_rules_of_the_configuration_change_while_it_runs_and_those_of_people_stay(small_model: Model) -> None:
    hide = '[[suppress]]\nreason = "scanner"\nsource = "10.0.0.9"\n'
    detector = new(small_model, hide)
    assert alerts(detector.take(0, arrival(ATTACK[:100]))) == []
    counts = detector.alert_counts()
    assert counts["open",] == 0
    assert sum(n for key, n in counts.items() if key[0] == "records_suppressed") > 0
    rule = Suppression(id="s-1", reason="test", label="normal")
    detector.decide(RuleChange(id="s-1", from_tick=0, rule=rule))
    detector.configure(new(small_model).config)
    told = alerts(detector.take(0, arrival(ATTACK[100:200], 100)))
    assert told
    assert [rule.id for rule in detector.book.suppressions.rules] == ["s-1"]
    counts = detector.alert_counts()
    assert counts["open",] == len(detector.book.open_alerts)
    assert sum(n for key, n in counts.items() if key[0] == "opened") == len({a.id for a in told})


def test_the_state_is_json_and_what_is_not_is_refused_by_its_name(small_model: Model) -> None:
    detector = new(small_model)
    detector.take(0, arrival(ATTACK[:100]))
    detector.decide(Answer(number=9, from_tick=150, label="normal", records=("0:1",)))
    detector.decide(RuleChange(id="s-1", from_tick=160, rule=None))
    detector.decide(ModelChange(model=small_model, from_tick=170))
    facts, arrays = detector.freeze()
    facts = json.loads(msgspec.json.encode(facts))
    again = new(small_model)
    again.restore(facts, arrays, "here")
    assert again._due == detector._due[:2]  # a model is asked for again
    assert msgspec.json.encode(again.freeze()[0]) == msgspec.json.encode(facts)
    for spoilt in ({**facts, "pins": "many"}, {**facts, "more": 1}, {k: v for k, v in facts.items() if k != "book"}):
        with pytest.raises(ModelError, match=r"^here: "):
            new(small_model).restore(spoilt, arrays, "here")


def test_a_site_that_cannot_be_learned_is_told_and_tried_again(
    small_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Model:
        raise InputError("hardly anything but attacks")

    detector = new(small_model, "references = 50\n", warmup=200)
    calm = simulate(400, seed=2, day=1, attacks=()).table()
    with monkeypatch.context() as patch:
        patch.setattr("netclust.stream.detection.warm_up.adapt", refuse)
        outcomes = detector.take(0, arrival(calm[:200]))
    (notice,) = [e for o in outcomes for e in o.events if isinstance(e, Notice)]
    assert (notice.topic, notice.key) == ("warmup", "warmup-failed:200")
    assert "hardly anything but attacks" in notice.message
    assert notice.time == int(calm.time[:200].max())
    assert (detector.warming, detector.generation) == (True, 0)
    outcomes = detector.take(0, arrival(calm[200:], 200))
    assert [e.key for o in outcomes for e in o.events if isinstance(e, Notice)] == ["warmup:1:400"]
    assert not detector.warming


def test_values_of_context_are_shown_and_matched_as_text(small_model: Model) -> None:
    hide = '[[suppress]]\nreason = "scanner"\nattribute = "user=eve"\n'
    for user, hidden in (("eve", True), ("ada", False)):
        detector = new(small_model, hide)
        assert (alerts(detector.take(0, arrival(ATTACK[:100], context={**CONTEXT, "user": user}))) == []) == hidden


def test_time_passes_without_records(small_model: Model) -> None:
    detector = new(small_model)
    assert detector.advance(5, arrival(ATTACK[:0])) is None
    detector.take(0, arrival(ATTACK))
    assert detector.book.open_alerts
    later = int(ATTACK.time.max()) + 10 * 86_400 * 10**9
    outcome: Any = detector.advance(later, arrival(ATTACK[:0], 400))
    assert {a.closed_by for a in alerts([outcome])} >= {"quiet"}
    assert outcome.arrival.received == 0.0
    assert (len(outcome.verdicts), len(outcome.batch), outcome.first_tick, outcome.results) == (0, 0, 400, [])
    assert not detector.book.open_alerts
