"""What keeps alerts few, and that nothing is held back without being counted."""

from __future__ import annotations

import itertools

import pytest
from alert_rows import SECOND, START, Record, rows_of
from test_alert_book import address, book_of

from netclust.stream.alerts.alert_severity import severity_name, severity_rank_of, severity_score
from netclust.stream.alerts.suppression import SuppressionSet, suppression_of
from netclust.stream.config import AlertConfig, SuppressConfig

ONE = Record(0, "10.0.0.1", "192.0.2.1", 80, "beacon")


def at(seconds: float, record: Record = ONE, **changes: object) -> Record:
    return Record(**{**vars(record), "at": seconds, **changes})


def test_an_alert_is_not_told_before_it_has_records_enough() -> None:
    book = book_of(min_records=20)
    assert book.take(rows_of([at(i) for i in range(19)])) == []
    assert book.open_alerts == []
    (event,) = book.take(rows_of([at(19)], first=19))
    assert (event.action, event.alert.records, event.alert.update) == ("open", 20, 0)
    assert book.counters.suppressed_records == {}


def test_what_never_had_records_enough_is_counted_when_it_is_over() -> None:
    book = book_of(min_records=20, quiet_seconds=60)
    book.take(rows_of([at(i) for i in range(19)]))
    assert book.advance(START + 100 * SECOND) == []
    assert book.counters.suppressed_alerts == {"min_records": 1}
    assert book.counters.suppressed_records == {"min_records": 19}


def test_an_alert_below_the_least_severity_is_silent_until_it_is_severe_enough() -> None:
    book = book_of(min_severity="high")
    assert book.take(rows_of([at(i / 10) for i in range(5)])) == []
    events = book.take(rows_of([at(1 + i / 10, destination=address(i), score=9.0) for i in range(200)], first=5))
    assert events[0].alert.severity == "high"
    assert book.counters.opened == {"known_attack": {"high": 1}}


def test_a_more_severe_alert_is_told_before_its_records_have_doubled() -> None:
    book = book_of(reminder_interval=1e6)
    events = book.take(rows_of([at(i / 10, port=i) for i in range(600)]))
    ranks = [severity_rank_of(event.alert.severity_score) for event in events]
    assert ranks == sorted(ranks)
    assert ranks[-1] > ranks[0]
    risen = [b for a, b in itertools.pairwise(events) if b.alert.records < 2 * a.alert.records]
    assert [event.alert.severity for event in risen] == ["high"]


def test_the_same_again_within_the_cool_down_is_counted_and_not_told() -> None:
    book = book_of(quiet_seconds=60, cooldown_seconds=3600)
    first = book.take(rows_of([at(0), at(1)])) + book.advance(START + 70 * SECOND)
    assert [event.action for event in first] == ["open", "update", "close"]
    assert book.take(rows_of([at(600), at(601)], first=2)) == []
    assert book.counters.suppressed_records == {"cooldown": 2}
    assert book.advance(START + 700 * SECOND) == []
    assert book.counters.suppressed_alerts == {"cooldown": 1}
    assert book.counters.suppressed_records == {"cooldown": 2}
    (again,) = book.take(rows_of([at(4000)], first=4))
    assert again.action == "open"
    assert again.alert.id != first[0].alert.id


def test_what_goes_on_longer_than_the_cool_down_is_told() -> None:
    book = book_of(quiet_seconds=60, cooldown_seconds=600, reminder_interval=1e6)
    book.take(rows_of([at(0)]))
    events = book.take(rows_of([at(100 + 30 * i) for i in range(30)], first=1))
    # The first one was over at 60 s, so that the cool-down is at 660 s.
    assert [(e.action, (e.alert.last_seen - START) / SECOND) for e in events if e.action == "open"] == [("open", 670.0)]
    assert book.counters.suppressed_records == {"cooldown": 20}


def test_what_comes_back_worse_is_told_within_the_cool_down() -> None:
    book = book_of(quiet_seconds=60)
    book.take(rows_of([at(0)]))
    events = book.take(rows_of([at(200 + i / 100, destination=address(i), port=i) for i in range(900)], first=1))
    (worse,) = [event for event in events if event.action == "open"]
    assert worse.alert.severity == "high"
    assert worse.alert.records > 1


def test_a_flood_from_other_spoofed_sources_is_not_told_again_within_the_cool_down() -> None:
    book = book_of(quiet_seconds=60)
    book.take(rows_of([at(i / 10, source=address(i)) for i in range(50)]))
    events = book.take(rows_of([at(200 + i / 10, source=address(100 + i)) for i in range(50)], first=50))
    assert [event.action for event in events] == ["close"]
    assert book.counters.suppressed_records == {"cooldown": 50}


def test_beyond_the_rate_limit_alerts_are_summed_up_in_one() -> None:
    book = book_of(max_per_hour=5)
    records = [at(i, source=address(i), destination=address(5000 + i), label=f"attack {i}") for i in range(15)]
    events = book.take(rows_of(records))
    opened = [event.alert for event in events if event.action == "open"]
    assert len(opened) == 6
    total = opened[-1]
    assert (total.entity_kind, total.entity, total.label) == ("cluster", "rate limit", "rate limit")
    found = book.find(total.id)
    assert found is not None
    assert found.summary == "rate limit: 10 more alerts not told one by one, 10 records"
    assert (found.source_count, found.records) == (10, 10)
    assert book.counters.suppressed_alerts == {"rate_limit": 10}
    assert book.counters.suppressed_records == {"rate_limit": 10}
    assert len(events) < 6 + 8
    assert [event.action for event in events if event.alert.id == total.id] == ["open", *["update"] * 3]
    assert [event.alert.update for event in events if event.alert.id == total.id] == [0, 1, 2, 3]


def test_the_rate_limit_ends_after_an_hour_and_what_still_goes_on_is_told() -> None:
    book = book_of(max_per_hour=1, quiet_seconds=1e5)
    book.take(rows_of([at(0), at(1, source="10.0.0.2", destination="192.0.2.2")]))
    events = book.take(rows_of([at(3700, source="10.0.0.2", destination="192.0.2.2")], first=2))
    assert [(e.action, e.alert.entity) for e in events] == [("open", "10.0.0.2")]


def test_the_sum_of_what_the_rate_limit_held_back_closes_too() -> None:
    book = book_of(max_per_hour=0, quiet_seconds=60)
    book.take(rows_of([at(0), at(1)]))
    (closed,) = book.advance(START + 100 * SECOND)
    assert closed.alert.summary == "rate limit: 1 more alert not told one by one, 2 records"
    assert book.counters.closed == {"quiet": 1}


def test_more_open_alerts_than_allowed_close_the_one_that_is_quiet_longest() -> None:
    book = book_of(max_open=3)
    records = [at(i, source=address(i), destination=address(5000 + i), label=f"attack {i}") for i in range(3)]
    book.take(rows_of([*records, at(4, records[0])]))
    events = book.take(rows_of([at(5, source="10.9.9.9", destination="10.9.9.8")], first=4))
    assert [(e.action, e.alert.label, e.alert.closed_by) for e in events] == [
        ("close", "attack 1", "limit"),
        ("open", "beacon", ""),
    ]
    assert book.counters.max_open_hits == 1
    assert len(book.open_alerts) == book.open_count == 3


def test_an_alert_that_a_person_calls_normal_is_closed_and_an_attack_is_not() -> None:
    book = book_of()
    (event,) = book.take(rows_of([ONE]))
    assert book.labelled(event.alert.id, normal=False) == []
    assert book.labelled("a-none", normal=True) == []
    (closed,) = book.labelled(event.alert.id, normal=True)
    assert closed.alert.closed_by == "label"
    assert book.open_alerts == []


def test_a_rule_hides_records_and_says_so() -> None:
    book = book_of()
    rule = suppression_of(SuppressConfig(reason="our scanner", source="10.0.0.0/30"))
    book.suppressions = SuppressionSet([rule])
    assert book.take(rows_of([at(0), at(1)])) == []
    assert len(book.take(rows_of([at(2, source="10.0.0.4")], first=2))) == 1
    assert book.suppressions.counts == {rule.id: 2}
    assert book.counters.suppressed_records == {"rule": 2}
    # Another set keeps the count of a rule that stays.
    book.suppressions = SuppressionSet([suppression_of(SuppressConfig(reason="more", port=1)), rule])
    assert book.suppressions.counts[rule.id] == 2


def test_a_rule_on_an_attribute_or_with_an_end_is_applied() -> None:
    book = book_of()
    book.suppressions = SuppressionSet(
        [
            suppression_of(SuppressConfig(reason="pings", attribute="protocol=icmp")),
            suppression_of(SuppressConfig(reason="until then", label="beacon", until="2023-11-14T22:13:30Z")),
        ]
    )
    events = book.take(rows_of([at(0), at(5, label="ping", protocol="icmp"), at(10)]))  # START + 10 s is its end
    assert [(e.alert.label, e.alert.first_record) for e in events] == [("beacon", "0:2")]


def test_counts_of_rules_come_back_after_a_restart_whenever_they_are_put_in_force() -> None:
    rule = suppression_of(SuppressConfig(reason="our scanner", source="10.0.0.0/30"))
    book = book_of()
    book.suppressions = SuppressionSet([rule])
    book.take(rows_of([at(0), at(1)]))
    again = book_of()
    again.restore(book.state())
    again.suppressions = SuppressionSet([rule])
    assert again.suppressions.counts == {rule.id: 2}


def test_settings_can_be_changed_while_alerts_are_open() -> None:
    book = book_of(quiet_seconds=60)
    book.take(rows_of([ONE]))
    book.configure(AlertConfig(quiet_seconds=10))
    assert book.config.quiet_seconds == 10
    assert len(book.advance(START + 20 * SECOND)) == 1


def test_a_counter_of_what_is_held_back_never_falls() -> None:
    book = book_of(quiet_seconds=60, cooldown_seconds=600)
    book.take(rows_of([at(0)]))
    seen = []
    for i in range(30):
        book.take(rows_of([at(100 + 30 * i)], first=1 + i))
        seen.append(book.counters.suppressed_records.get("cooldown", 0))
    assert seen == sorted(seen)
    assert seen[-1] == 20


@pytest.mark.parametrize(
    ("kind", "category", "top_score", "records", "fan_out", "seconds", "severity"),
    [
        ("novel", "", 1e9, 1, 1, 0, "low"),  # a single odd record, however odd
        ("novel", "", 2.0, 3, 1, 30, "low"),
        ("novel", "", 4.0, 1000, 300, 600, "medium"),
        ("novel", "", 8.0, 50_000, 5000, 3600, "high"),
        ("known_attack", "probe", 2.0, 800, 800, 40, "medium"),
        ("known_attack", "dos", 3.0, 100_000, 1, 60, "high"),
        ("known_attack", "dos", 3.0, 100_000, 100_000, 600, "critical"),
        ("known_attack", "r2l", 1.0, 1, 1, 0, "medium"),
        ("known_attack", "r2l", 3.0, 300, 1, 60, "high"),
        ("known_attack", "u2r", 3.0, 1, 1, 0, "high"),
        ("known_attack", "c2", 3.0, 500, 1, 86_400, "high"),
        ("known_attack", "r2l", 3.0, 10_000, 1000, 3600, "critical"),  # a worm
    ],
)
def test_a_person_would_not_rate_it_otherwise(
    kind: str, category: str, top_score: float, records: int, fan_out: int, seconds: float, severity: str
) -> None:
    score = severity_score(
        kind, category, top_score=top_score, records=records, fan_out=fan_out, seconds=seconds  # type: ignore[arg-type]
    )  # fmt: skip
    assert severity_name(score) == severity, score
