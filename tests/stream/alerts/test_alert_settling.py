"""One answer settles every alert that is about nothing else, and no other."""

from __future__ import annotations

from alert_rows import Record, rows_of

from netclust.stream.alerts.alert_book import AlertBook
from netclust.stream.alerts.alert_episode import EXAMPLES, PARTS
from netclust.stream.config import AlertConfig


def book_of(*records: Record) -> AlertBook:
    book = AlertBook(AlertConfig(), source_names=["in"])
    book.take(rows_of(records))
    return book


def sources(book: AlertBook) -> set[str]:
    return {alert.entity for alert in book.open_alerts}


HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
SHARED = [
    Record(source=HOSTS[0], destination="192.0.2.1", cluster=41),
    Record(source=HOSTS[1], destination="192.0.2.2", cluster=41),
    Record(source=HOSTS[2], destination="192.0.2.3", cluster=41),
    Record(source=HOSTS[2], destination="192.0.2.3", cluster=42),
]


def test_alerts_about_the_same_cluster_are_closed_by_one_answer() -> None:
    book = book_of(*SHARED)
    assert sources(book) == set(HOSTS)
    first = next(a.id for a in book.open_alerts if a.entity == HOSTS[0])
    closed = book.labelled(first, True, [41])
    assert {(e.action, e.alert.entity, e.alert.closed_by) for e in closed} == {
        ("close", HOSTS[0], "label"), ("close", HOSTS[1], "label"),
    }  # fmt: skip
    assert sources(book) == {HOSTS[2]}, "it is about cluster 42 as well"


def test_an_answer_to_a_cluster_alone_settles_too() -> None:
    book = book_of(*SHARED)
    assert len(book.labelled("", True, [41, 42])) == 3
    assert book.open_count == 0


def test_an_attack_goes_on() -> None:
    book = book_of(*SHARED)
    first = book.open_alerts[0].id
    assert book.labelled(first, False, [41, 42]) == []
    assert book.open_count == 3


def test_without_clusters_only_the_answered_one_is_closed() -> None:
    book = book_of(*SHARED)
    first = book.open_alerts[0].id
    assert [e.alert.id for e in book.labelled(first, True)] == [first]


def test_an_alert_of_more_clusters_than_are_counted_is_not_settled() -> None:
    many = [Record(source=HOSTS[0], destination="192.0.2.1", cluster=100 + k) for k in range(500)]
    book = book_of(*many)
    known = book.open_alerts[0].clusters
    assert book.labelled("", True, known) == []


def test_open_alerts_are_counted_by_severity() -> None:
    book = book_of(*SHARED)
    assert sum(book.open_by_severity().values()) == book.open_count == book.opened == 3


# What an alert page shows


def test_examples_are_bounded_and_hold_the_first_and_the_newest() -> None:
    records = [Record(at=float(k), source=HOSTS[0], destination="192.0.2.1") for k in range(400)]
    book = AlertBook(AlertConfig(), source_names=["in"])
    for first in range(0, 400, 40):
        book.take(rows_of(records[first : first + 40], first))
    (alert,) = book.open_alerts
    ids = [example["record"] for example in alert.examples]
    assert len(ids) == EXAMPLES
    assert ids[:3] == ["0:0", "0:1", "0:2"]
    assert int(str(ids[-1]).split(":")[1]) > 300
    assert all(None not in example.values() for example in alert.examples)


def test_parts_add_up_to_the_margin() -> None:
    (alert,) = book_of(Record(source=HOSTS[0], score=4.0)).open_alerts
    assert [(part.name, part.contribution) for part in alert.parts] == [
        ("(root)", 9.0),
        ("duration", 4.0),
        ("flag", -0.5),
    ]
    assert (alert.margin, alert.normal_record) == (4.0, "reference 3")
    assert len(alert.parts) <= PARTS + 1
