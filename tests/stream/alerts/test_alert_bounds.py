"""Bounds of what an alert shows and of what a book counts exactly, at their edges and after a restart."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from alert_rows import Record, rows_of

from netclust.errors import InputError
from netclust.stream.alerts.alert_book import AlertBook
from netclust.stream.alerts.alert_episode import LONGEST_EXAMPLE, RECORD_IDS, SHOWN, note_examples
from netclust.stream.alerts.alert_groups import AlertPlace
from netclust.stream.alerts.alert_tallies import KEPT, Budget, Tally
from netclust.stream.alerts.suppression import SuppressionSet, suppression_of
from netclust.stream.config import AlertConfig, SuppressConfig


def book() -> AlertBook:
    return AlertBook(AlertConfig(), source_names=["wire"])


def from_many(count: int, first: int = 0) -> list[Record]:
    """Records of many sources to one destination."""
    return [Record(at=k / 10, source=f"10.1.{k >> 8}.{k & 255}", destination="v") for k in range(first, first + count)]


@pytest.mark.parametrize("count", [RECORD_IDS - 1, RECORD_IDS, RECORD_IDS + 1])
def test_an_alert_names_its_first_records_up_to_a_bound(count: int) -> None:
    found = book()
    found.take(rows_of([Record(at=k, source="a", destination="v") for k in range(count)]))
    (alert,) = found.open_alerts
    assert alert.record_ids == [f"0:{k}" for k in range(min(count, RECORD_IDS))]
    assert alert.last_record == f"0:{count - 1}"


def test_an_alert_shows_the_most_frequent_values_and_counts_all() -> None:
    found = book()
    found.take(rows_of(from_many(3 * SHOWN)))
    (alert,) = found.open_alerts
    assert (len(alert.sources), alert.source_count) == (SHOWN, 3 * SHOWN)
    ports = [Record(at=k, source="a", destination="v", port=k) for k in range(3 * SHOWN)]
    scanned = book()
    scanned.take(rows_of(ports))
    (alert,) = scanned.open_alerts
    assert (len(alert.ports), alert.port_count) == (SHOWN, 3 * SHOWN)


def test_a_source_that_has_no_name_has_none() -> None:
    for number, name in ((0, "wire"), (1, ""), (7, "")):
        rows = rows_of([Record(source="a")])
        (event,) = book().take(replace(rows, source_id=np.array([number], rows.source_id.dtype)))
        assert event.alert.source == name
        assert event.alert.first_record == f"{number}:0"


def test_times_of_records_widen_an_alert_at_either_end_and_unknown_ones_do_not() -> None:
    found = book()
    found.take(rows_of([Record(at=at, source="a") for at in (50, 40, None, 60, 45)]))
    (alert,) = found.open_alerts
    assert alert.last_seen - alert.first_seen == 20 * 10**9


def test_ports_are_counted_by_records() -> None:
    found = book()
    found.take(
        rows_of([Record(at=k, source="a", destination="v", port=port) for k, port in enumerate([80, 22, 80, 80])])
    )
    (alert,) = found.open_alerts
    assert [(count.value, count.records) for count in alert.ports] == [("80", 3), ("22", 1)]


def test_examples_show_values_that_say_something() -> None:
    alert = book()._made(rows_of([Record(source="a")]), 0, "novel", AlertPlace("single", "source", "a"), [])
    note_examples(alert, "0:7", {"a": 1.5, "b": "x", "c": 0.0, "d": "", "e": None, "f": float("nan"), "g": "\0y" * 900})
    shown = alert.examples[-1]
    assert {name: shown[name] for name in ("record", "a", "b")} == {"record": "0:7", "a": 1.5, "b": "x"}
    assert set(shown) == {"record", "a", "b", "g"}
    assert len(str(shown["g"])) <= LONGEST_EXAMPLE


def test_the_sum_of_the_rate_limit_names_the_first_alerts_up_to_a_bound() -> None:
    found = AlertBook(AlertConfig(max_per_hour=0), source_names=["wire"])
    more = RECORD_IDS + 3
    found.take(rows_of([Record(at=k, source=f"10.0.0.{k}", destination=f"10.1.0.{k}") for k in range(more)]))
    (total,) = (alert for alert in found.open_alerts if alert.entity == "rate limit")
    assert total.record_ids == [f"0:{k}" for k in range(min(total.records, RECORD_IDS))]
    assert len(total.record_ids) == RECORD_IDS


def test_a_rule_on_an_attribute_hides_what_has_that_value_alone() -> None:
    rule = suppression_of(SuppressConfig(reason="test", attribute="service=http=x"), "suppress 1")
    rules = SuppressionSet([rule])
    for value, hidden in (("http=x", True), ("http", False), ("", False)):
        found = rules.hidden("a", "b", 1, 2, "novel", lambda value=value: {"service": value}, 0)
        assert (found is not None) == hidden
    assert rules.counts[rule.id] == 1


def test_the_budget_of_exact_counting_is_shared_to_its_last_value() -> None:
    budget = Budget(3 * KEPT)
    tally = Tally()
    for k in range(3 * KEPT):
        tally.add(str(k), 1, budget)
    assert budget.left == 0
    assert tally.registers is None
    assert tally.distinct == 3 * KEPT
    tally.add("one more", 1, budget)
    assert tally.registers is not None
    assert budget.left == 3 * KEPT


def test_a_restored_book_has_the_budget_that_its_alerts_have_left() -> None:
    found = book()
    found.take(rows_of(from_many(3 * KEPT)))
    again = book()
    again.restore(json.loads(json.dumps(found.state())))
    assert again._budget.left == found._budget.left < Budget().left


def test_an_end_of_a_rule_is_a_time_or_named_as_none() -> None:
    def until(text: str) -> int:
        rule: Any = suppression_of(SuppressConfig(reason="test", label="x", until=text), "suppress 3")
        return int(rule.until)

    assert until("2030-01-31T18:00:00Z") == until("2030-01-31T18:00:00") == 1_896_112_800 * 10**9
    assert until("2030-01-31T19:00:00+01:00") == 1_896_112_800 * 10**9
    assert until("1960-01-01") == 0
    assert until("9999-12-31") == (1 << 63) - 1
    with pytest.raises(InputError, match=r"^suppress 3: until 'soon'"):
        until("soon")
