"""Which records are one alert, and what is told of it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from alert_rows import SECOND, START, Record, rows_of

from netclust.stream.alerts.alert_book import AlertBook
from netclust.stream.alerts.alert_events import AlertEvent
from netclust.stream.alerts.alert_groups import FEW, LOUD, MOST
from netclust.stream.config import AlertConfig

FLOOD = 100_000


def book_of(categories: dict[str, str] | None = None, **settings: object) -> AlertBook:
    return AlertBook(msgspec.convert(settings, AlertConfig), source_names=["wire"], categories=categories)


def opened(events: list[AlertEvent]) -> list[str]:
    return [event.alert.summary for event in events if event.action == "open"]


def address(n: int) -> str:
    return f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"


def test_a_flood_of_a_hundred_thousand_records_is_not_more_than_one_alert_of_few_events() -> None:
    book = book_of({"syn_flood": "dos"})
    records = [Record(30 * i / FLOOD, "10.0.0.7", "10.0.0.1", 80, "syn_flood") for i in range(FLOOD)]
    events = book.take(rows_of(records)) + book.close_all()
    assert Counter(event.action for event in events) == {"open": 1, "update": len(events) - 2, "close": 1}
    assert len(events) <= 24
    last = events[-1].alert
    assert (last.records, last.entity, last.severity) == (FLOOD, "10.0.0.7", "high")
    assert last.summary == "syn_flood: 10.0.0.7 -> 10.0.0.1:80, 100000 records in 30 s"
    assert len({event.key for event in events}) == len(events)


def test_a_flood_from_a_hundred_thousand_spoofed_sources_is_one_alert_of_the_victim() -> None:
    book = book_of()
    records = [Record(30 * i / FLOOD, address(i), "192.0.2.1", 80, "syn_flood") for i in range(FLOOD)]
    events = book.take(rows_of(records)) + book.close_all()
    assert len({event.alert.id for event in events}) == 1
    assert len(events) <= 24
    last = events[-1].alert
    assert (last.entity_kind, last.entity, last.records) == ("destination", "192.0.2.1", FLOOD)
    assert abs(last.source_count - FLOOD) < 0.08 * FLOOD
    assert last.destination_count == last.port_count == 1
    assert len(last.sources) == 8


def test_a_scan_is_not_split_by_its_destinations() -> None:
    records = [Record(i / 100, "10.0.0.7", address(i), i % 900, "port_scan") for i in range(3000)]
    events = book_of().take(rows_of(records))
    assert len({event.alert.id for event in events}) == 1
    last = events[-1].alert
    assert last.entity_kind == "source"
    assert last.destination_count == last.records
    assert last.port_count == 900


def test_several_new_clusters_of_one_host_are_not_several_alerts() -> None:
    records = [Record(i, "10.0.0.9", "192.0.2.1", 4444, cluster=30 + i % 3) for i in range(8)]
    book = book_of()
    assert opened(book.take(rows_of(records))) == ["new: 10.0.0.9 -> 192.0.2.1:4444, 1 record"]
    assert book.open_alerts[0].clusters == [30, 31, 32]


def test_what_one_host_does_is_one_alert_however_it_is_taken_and_goes_by_what_most_of_it_is() -> None:
    labels = ["scan", "", "brute_force", "brute_force", "brute_force", "brute_force"]
    book = book_of()
    events = book.take(rows_of([Record(0, "10.0.0.9", "192.0.2.1", 22, label) for label in labels]))
    assert opened(events) == ["scan: 10.0.0.9 -> 192.0.2.1:22, 1 record"]
    (alert,) = book.open_alerts
    assert (alert.kind, alert.label) == ("known_attack", "brute_force")
    assert [(c.value, c.records) for c in alert.labels] == [("brute_force", 4), ("scan", 1), ("novel", 1)]
    assert any(e.action == "update" and e.alert.label == "brute_force" for e in events)


def test_a_second_source_at_the_same_server_turns_the_alert_into_the_servers() -> None:
    book = book_of()
    first = [Record(0, "10.0.0.1", "192.0.2.1", 80), Record(1, "10.0.0.2", "192.0.2.1", 80)]
    (event,) = [e for e in book.take(rows_of(first)) if e.action == "open"]
    assert (event.alert.entity_kind, event.alert.entity) == ("source", "10.0.0.1")
    (alert,) = book.open_alerts
    assert (alert.id, alert.entity_kind, alert.entity) == (event.alert.id, "destination", "192.0.2.1")
    assert alert.summary == "new on 192.0.2.1: 2 records from 2 sources, 1 port in 1 s"
    # Its first source is a source of its own elsewhere.
    book.take(rows_of([Record(2, "10.0.0.1", "192.0.2.2", 80)], first=2))
    assert [a.entity for a in book.open_alerts] == ["192.0.2.1", "10.0.0.1"]


def test_a_scanner_that_has_called_on_several_hosts_is_not_taken_for_a_victims_alert() -> None:
    book = book_of()
    records = [
        Record(0, "10.0.0.1", "192.0.2.1"),
        Record(1, "10.0.0.1", "192.0.2.2"),
        Record(2, "10.0.0.5", "192.0.2.1"),
    ]
    book.take(rows_of(records))
    assert [(a.entity_kind, a.entity) for a in book.open_alerts] == [("source", "10.0.0.1"), ("source", "10.0.0.5")]


def test_many_to_many_is_a_few_alerts_and_a_collective_one() -> None:
    records = [Record(i / 50, address(i), address(5000 + i), 445, "worm") for i in range(1000)]
    book = book_of()
    book.take(rows_of(records))
    alerts = book.open_alerts
    assert len(alerts) == FEW + 1
    many = alerts[-1]
    assert (many.entity_kind, many.entity, many.records) == ("cluster", "many", 1000 - FEW)
    assert many.summary.startswith("worm: 984 records from 984 sources to 984 hosts, 1 port in ")


def test_noise_does_not_hide_a_loud_entity_in_the_collective_alert() -> None:
    noise = [Record(i / 50, address(i), address(5000 + i), 445) for i in range(100)]
    loud = [Record(3, "172.16.0.1", address(9000 + i), 445) for i in range(LOUD + 10)]
    flood = [Record(4, address(20_000 + i), "192.0.2.1", 445) for i in range(LOUD + 10)]
    book = book_of()
    book.take(rows_of(noise + loud + flood))
    found = {(a.entity_kind, a.entity): a.records for a in book.open_alerts}
    assert found["source", "172.16.0.1"] == 10
    assert found["destination", "192.0.2.1"] == 10
    assert len(found) <= MOST + 1


def test_loud_entities_do_not_all_stand_alone() -> None:
    records = [Record(i / 1000, address(i % 60), address(5000 + i), 445, "worm") for i in range(60 * 2 * LOUD)]
    book = book_of()
    book.take(rows_of(records))
    assert len(book.open_alerts) == MOST + 1


def test_records_without_addresses_are_not_all_one_alert() -> None:
    records = [Record(None, label="neptune", cluster=3), Record(None, cluster=40), Record(None, cluster=41)]
    book = book_of()
    assert opened(book.take(rows_of(records * 3))) == [
        "neptune: 1 record",
        "new (cluster 40): 1 record",
        "new (cluster 41): 1 record",
    ]
    assert [a.entity for a in book.open_alerts] == ["neptune", "cluster 40", "cluster 41"]


def test_very_many_new_clusters_without_addresses_become_a_collective_alert() -> None:
    book = book_of()
    book.take(rows_of([Record(None, cluster=i) for i in range(50)]))
    assert len(book.open_alerts) == FEW + 1
    assert book.open_alerts[-1].summary == "new: 34 records in many clusters"
    book.take(rows_of([Record(None, cluster=99)] * (LOUD + 5), first=50))
    assert book.open_alerts[-1].entity == "cluster 99"


def test_a_record_with_a_destination_only_is_the_destinations() -> None:
    book = book_of()
    book.take(rows_of([Record(0, None, "192.0.2.1"), Record(0, "10.0.0.1", "192.0.2.1")]))
    assert [(a.entity_kind, a.entity, a.records) for a in book.open_alerts] == [("destination", "192.0.2.1", 2)]


def test_an_alert_does_not_close_before_its_quiet_time_nor_stay_open_after_it() -> None:
    book = book_of(quiet_seconds=60, cooldown_seconds=0)
    book.take(rows_of([Record(0, "10.0.0.1", "192.0.2.1"), Record(50, "10.0.0.1", "192.0.2.1")]))
    assert book.advance(START + 110 * SECOND) == []
    (closed,) = book.advance(START + 111 * SECOND)
    assert (closed.action, closed.alert.state, closed.alert.closed_by) == ("close", "closed", "quiet")
    assert book.open_alerts == []
    assert book.find(closed.alert.id) is None


def test_a_replayed_file_closes_alerts_on_its_own_time() -> None:
    book = book_of(quiet_seconds=60)
    events = book.take(rows_of([Record(0, "10.0.0.1", "192.0.2.1"), Record(100, "10.0.0.2", "192.0.2.2")]))
    assert [(e.action, e.alert.entity) for e in events] == [
        ("open", "10.0.0.1"),
        ("close", "10.0.0.1"),
        ("open", "10.0.0.2"),
    ]


def test_late_records_do_not_turn_first_and_last_seen_around() -> None:
    book = book_of()
    book.take(rows_of([Record(at, "10.0.0.1", "192.0.2.1") for at in (10, 5, None, 20, 12)]))
    (alert,) = book.open_alerts
    assert (alert.first_seen, alert.last_seen) == (START + 5 * SECOND, START + 20 * SECOND)
    assert (alert.first_record, alert.last_record) == ("0:0", "0:4")


def test_a_growing_alert_is_told_after_its_time_and_not_each_record() -> None:
    book = book_of(reminder_interval=60)
    events = book.take(rows_of([Record(i, "10.0.0.1", "192.0.2.1", 80, "beacon") for i in range(601)]))
    times = [(event.alert.last_seen - START) // SECOND for event in events]
    assert len(events) < 25
    assert all(b - a <= 60 for a, b in pairwise(times))


def test_explanation_and_example_are_those_of_the_opening_until_a_clearly_higher_score() -> None:
    book = book_of()
    events = book.take(rows_of([Record(i, "10.0.0.1", "192.0.2.1", score=2.0 + i / 100) for i in range(8)]))
    alert = events[-1].alert
    assert [note.name for note in alert.attributes] == ["duration"]
    assert (alert.attributes[0].value, alert.attributes[0].normal) == (12.5, 0.5)
    assert alert.example == {"score": 2.0, "number": "0", "odd": None}
    assert alert.explanation.startswith("Record 0:0 is novel, by a margin of 2")
    book.take(rows_of([Record(9, "10.0.0.1", "192.0.2.1", score=6.0)], first=8))
    (alert,) = book.open_alerts
    assert alert.explanation.startswith("Record 0:8 is novel, by a margin of 6")
    assert alert.example["number"] == "8"


def test_several_protocols_are_not_told_as_one() -> None:
    book = book_of()
    book.take(rows_of([Record(0, "10.0.0.1", "192.0.2.1", protocol=p) for p in ("tcp", "tcp")]))
    assert book.open_alerts[0].protocol == "tcp"
    book.take(rows_of([Record(0, "10.0.0.1", "192.0.2.1", protocol=p) for p in ("udp", "tcp")], first=2))
    assert book.open_alerts[0].protocol == ""


def test_what_was_told_does_not_change_afterwards() -> None:
    book = book_of()
    events = book.take(rows_of([Record(0, "10.0.0.1", "192.0.2.1", 80)]))
    before = msgspec.json.encode(events)
    book.take(rows_of([Record(0, "10.0.0.1", "192.0.2.1", 81), Record(0, "10.0.0.3", "192.0.2.1", 82)], first=1))
    assert msgspec.json.encode(events) == before


@pytest.mark.parametrize("score", [float("inf"), float("nan"), -1.0])
def test_a_score_that_json_cannot_hold_does_not_get_out(score: float) -> None:
    (event,) = book_of().take(rows_of([Record(0, "10.0.0.1", "192.0.2.1", score=score)]))
    assert 0 <= event.alert.top_score <= 1e9
    assert msgspec.json.decode(msgspec.json.encode(event), type=AlertEvent) == event


def test_an_overlong_or_broken_address_is_not_kept_as_it_is() -> None:
    (event,) = book_of().take(rows_of([Record(0, "x" * 100_000, "\ud800é", 80)]))
    assert len(event.alert.entity) == 128
    assert event.alert.destinations[0].value == "?é"
    msgspec.json.encode(event)


def test_ids_are_the_same_in_every_run() -> None:
    def run() -> list[str]:
        return [
            e.key for e in book_of().take(rows_of([Record(0, "10.0.0.1", "192.0.2.1"), Record(0, "10.0.0.2", "::1")]))
        ]

    assert run() == run() == ["a-87cbfe8d596e:0", "a-e15744b5cfe0:0"]
