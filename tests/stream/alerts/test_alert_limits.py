"""Cool-down and rate limit by themselves, at their edges; and how records that were held back are counted."""

from __future__ import annotations

from typing import Any

import pytest
from alert_rows import SECOND, START, Record, rows_of

from netclust.stream.alerts import alert_limits
from netclust.stream.alerts.alert_book import AlertBook
from netclust.stream.alerts.alert_episode import Episode
from netclust.stream.alerts.alert_limits import HOUR, AlertLimits, Closed, count_alert_limit
from netclust.stream.alerts.notifications import AlertReporter
from netclust.stream.config import AlertConfig

COOL = 100


def episode(entity: str = "a", **changes: Any) -> Episode:
    given: dict[str, Any] = {
        "id": entity, "kind": "novel", "label": "novel", "source": "x", "first_record": "0:1", "entity": entity,
        "entity_kind": "source", "severity_score": 50,
    }  # fmt: skip
    return Episode(**{**given, **changes})


def test_the_same_cools_down_until_its_time_and_no_longer() -> None:
    limits = AlertLimits(COOL, 5)
    assert limits.cooling_until(episode(), 0) is None
    limits.remember(episode(), 1000)
    assert limits.cooling_until(episode(), 1000) == 1000 + COOL
    assert limits.cooling_until(episode(), 999 + COOL) == 1000 + COOL
    assert limits.cooling_until(episode(), 1000 + COOL) is None


@pytest.mark.parametrize(
    "other", [{"kind": "known_attack"}, {"label": "smurf"}, {"entity_kind": "destination"}, {"entity": "b"}]
)
def test_something_else_does_not_cool_down(other: dict[str, Any]) -> None:
    limits = AlertLimits(COOL, 5)
    limits.remember(episode(), 1000)
    assert limits.cooling_until(episode(**other), 1001) is None


def test_a_worse_one_is_not_held_back_and_an_equal_or_lesser_one_is() -> None:
    limits = AlertLimits(COOL, 5)
    limits.remember(episode(severity_score=50), 1000)
    assert limits.cooling_until(episode(severity_score=99), 1001) is None
    assert limits.cooling_until(episode(severity_score=50), 1001) is not None
    assert limits.cooling_until(episode(severity_score=1), 1001) is not None


def test_the_first_record_of_a_flood_cools_down_with_its_victim() -> None:
    limits = AlertLimits(COOL, 5)
    limits.remember(episode("v", entity_kind="destination"), 1000)
    assert limits.cooling_until(episode("new", victim="v"), 1001) == 1000 + COOL
    assert limits.cooling_until(episode("new", victim="w"), 1001) is None
    limits.remember(episode("new"), 1050)
    assert limits.cooling_until(episode("new", victim="v"), 1060) == 1050 + COOL  # the later of both


def test_the_last_one_that_closed_counts_and_old_ones_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = AlertLimits(COOL, 5)
    limits.remember(episode("a"), 1000)
    limits.remember(episode("b"), 1010)
    limits.remember(episode("a"), 1020)
    assert [(c.entity, c.clock) for c in limits.closed] == [("b", 1010), ("a", 1020)]
    limits.remember(episode("c"), 1010 + COOL)
    assert [c.entity for c in limits.closed] == ["a", "c"]
    monkeypatch.setattr(alert_limits, "REMEMBERED", 2)
    limits.remember(episode("d"), 1010 + COOL)
    assert [c.entity for c in limits.closed] == ["c", "d"]


def test_an_hour_has_room_for_so_many() -> None:
    limits = AlertLimits(COOL, 2)
    for now in (0, 10):
        assert limits.has_room(now)
        limits.opened(now)
    assert not limits.has_room(10)
    assert not limits.has_room(HOUR - 1)
    assert limits.has_room(HOUR)
    limits.opened(HOUR)
    assert not limits.has_room(HOUR + 9)
    assert limits.has_room(HOUR + 10)


def test_a_clock_that_goes_back_takes_all_that_was_with_it() -> None:
    limits = AlertLimits(COOL, 1)
    limits.opened(5000)
    limits.remember(episode(), 5000)
    limits.set_back(1000)
    assert not limits.has_room(1000 + HOUR - 1)
    assert limits.has_room(1000 + HOUR)
    assert limits.cooling_until(episode(), 1000) == 1000 + COOL


def test_limits_come_back_from_a_checkpoint() -> None:
    limits, again = AlertLimits(COOL, 2), AlertLimits(COOL, 2)
    limits.remember(episode("a"), 1000)
    limits.opened(1000)
    again.restore(limits.closed, limits.openings)
    assert again.closed == limits.closed == [Closed("novel", "novel", "source", "a", 1000, 1)]
    assert list(again.openings) == [1000]


def test_counts_begin_at_nothing() -> None:
    counts: dict[str, int] = {}
    for by in (2, 3):
        count_alert_limit(counts, "x", by)
    assert counts == {"x": 5}


# Telling


@pytest.fixture
def reporter() -> AlertReporter:
    reporter = AlertReporter(AlertConfig(min_records=3, max_per_hour=1))
    reporter.now = 1000
    return reporter


@pytest.mark.parametrize("held", ["cooldown", "rate_limit"])
def test_records_that_were_held_back_are_counted_once(reporter: AlertReporter, held: Any) -> None:
    alert = episode(records=7, held=held, held_from=2)
    reporter.count_held_back(alert)
    reporter.count_held_back(alert)
    assert reporter.counters.suppressed_records == {held: 5}
    alert.records = 9
    reporter.end(alert, "quiet", 1000, [])
    assert reporter.counters.suppressed_records == {held: 7}
    assert reporter.counters.closed == {}


@pytest.mark.parametrize("held", ["min_records", "severity"])
def test_what_was_never_told_is_counted_at_its_end(reporter: AlertReporter, held: Any) -> None:
    alert = episode(records=7, held=held, held_from=2)
    reporter.count_held_back(alert)
    assert reporter.counters.suppressed_records == {}
    reporter.end(alert, "quiet", 1000, [])
    assert (reporter.counters.suppressed_alerts, reporter.counters.suppressed_records) == ({held: 1}, {held: 5})


def test_reasons_to_hold_an_alert_back_have_their_order(reporter: AlertReporter) -> None:
    assert reporter.reason_held_back(episode(records=2), None) == "min_records"
    assert reporter.reason_held_back(episode(records=3), None) == ""
    assert reporter.reason_held_back(episode(records=3), 5) == "cooldown"
    reporter.limits.opened(1000)
    assert reporter.reason_held_back(episode(records=3), None) == "rate_limit"
    reporter.configure(AlertConfig(min_records=3, max_per_hour=1, min_severity="critical"))
    assert reporter.reason_held_back(episode(records=3, severity_score=1), None) == "severity"


def test_a_told_alert_is_told_again_when_it_doubles_ages_worsens_or_is_something_else(reporter: AlertReporter) -> None:
    reporter.update = 50
    alert = episode(records=4)
    events: list[Any] = []
    reporter.report("open", alert, 4, events)
    assert (alert.reported, alert.update, alert.reported_records, alert.reported_clock) == (True, 0, 4, 1000)
    assert not reporter.worth_reporting(alert, 7)
    assert reporter.worth_reporting(alert, 8)
    reporter.now = 1049
    assert not reporter.worth_reporting(alert, 7)
    reporter.now = 1050
    assert reporter.worth_reporting(alert, 7)
    reporter.now = 1000
    alert.severity_score = 99
    assert reporter.worth_reporting(alert, 7)
    alert.severity_score = 50
    alert.label = "smurf"
    assert reporter.worth_reporting(alert, 7)
    reporter.report("update", alert, 8, events)
    reporter.report("close", alert, 8, events, "quiet")
    assert [(e.action, e.alert.update, e.alert.state) for e in events] == [
        ("open", 0, "open"), ("update", 1, "open"), ("close", 2, "closed")
    ]  # fmt: skip
    reporter.report("update", alert, 8, events)
    assert reporter.counters.updated == 2
    assert reporter.counters.opened == {"novel": {"medium": 1}}


def test_an_alert_that_has_grown_is_told_once_its_time_has_passed_though_nothing_more_comes() -> None:
    book = AlertBook(AlertConfig(reminder_interval=60, quiet_seconds=1e5, max_open=10), source_names=["wire"])
    events = book.take(rows_of([Record(at=k, source="10.0.0.1", destination="10.0.0.2") for k in range(2)]))
    told = max(event.alert.records for event in events)
    events = book.take(rows_of([Record(at=2, source="10.0.0.1", destination="10.0.0.2")], first=2))
    assert told == 2
    assert events == []
    opened = START + 1 * SECOND
    assert book.advance(opened + 59 * SECOND) == []
    assert book.report_grown() == []
    book.advance(opened + 60 * SECOND)
    (event,) = book.report_grown()
    assert (event.action, event.alert.records) == ("update", 3)
    assert book.report_grown() == []
