"""How severe an alert is: five parts that add up, each with its steps, and the words for the sum."""

from __future__ import annotations

from typing import Any

import pytest
from alert_rows import Record, rows_of

from netclust.stream.alerts.alert_book import AlertBook
from netclust.stream.alerts.alert_episode import CLUSTERS_SHOWN
from netclust.stream.alerts.alert_severity import CATEGORY_POINTS, severity_name, severity_rank_of, severity_score
from netclust.stream.config import AlertConfig

LEAST: dict[str, Any] = {"top_score": 0.0, "records": 1, "fan_out": 1, "seconds": 0.0}


@pytest.mark.parametrize(
    ("kind", "category", "points"),
    [("novel", "", 15), ("novel", "u2r", 15), ("known_attack", "", 35), ("known_attack", "unheard of", 35)]
    + [("known_attack", category, points) for category, points in CATEGORY_POINTS.items()],
)
def test_what_it_is_counts_by_category(kind: Any, category: str, points: int) -> None:
    assert severity_score(kind, category, **LEAST) == points
    nothing = {"top_score": -5.0, "records": 0, "fan_out": 0, "seconds": -1.0}
    assert severity_score(kind, category, **nothing) == points


@pytest.mark.parametrize(
    ("part", "value", "points"),
    [
        ("top_score", 1.0, 4), ("top_score", 3.0, 8), ("top_score", 7.0, 12), ("top_score", 1e9, 12),
        ("records", 10, 4), ("records", 1000, 12), ("records", 100_000, 20), ("records", 10**9, 20),
        ("fan_out", 10, 5), ("fan_out", 100, 10), ("fan_out", 10_000, 20), ("fan_out", 10**9, 20),
        ("seconds", 90.0, 2), ("seconds", 99_990.0, 10), ("seconds", 1e12, 10),
    ],
)  # fmt: skip
def test_each_part_adds_its_points_up_to_its_most(part: str, value: float, points: int) -> None:
    assert severity_score("novel", "", **{**LEAST, part: value}) == 15 + points


def test_the_sum_is_at_most_100_and_has_four_words() -> None:
    most = {"top_score": 1e9, "records": 10**9, "fan_out": 10**9, "seconds": 1e12}
    assert severity_score("novel", "", **most) == 77
    assert severity_score("known_attack", "u2r", **most) == 100
    words = [(0, "low"), (29, "low"), (30, "medium"), (54, "medium"), (55, "high"), (79, "high"), (80, "critical")]
    assert [(score, severity_name(score)) for score, _ in words] == words
    assert [severity_rank_of(score) for score, _ in words] == [0, 0, 1, 1, 2, 2, 3]


def test_the_book_weighs_a_label_by_its_category() -> None:
    scores = []
    for category in ("probe", "u2r"):
        book = AlertBook(AlertConfig(), source_names=["wire"], categories={"smurf": category})
        (event,) = book.take(rows_of([Record(source="10.0.0.1", label="smurf", score=0.0)]))
        scores.append(event.alert.severity_score)
    assert scores == [20, 50]


def test_an_alert_shows_its_most_frequent_clusters_up_to_a_bound() -> None:
    book = AlertBook(AlertConfig(), source_names=["wire"])
    clusters = [*range(CLUSTERS_SHOWN + 4), *range(4, CLUSTERS_SHOWN + 4)]
    events = book.take(rows_of([Record(at=k, source="10.0.0.1", cluster=c) for k, c in enumerate(clusters)]))
    assert sorted(book.open_alerts[0].clusters) == list(range(4, CLUSTERS_SHOWN + 4))
    assert all(len(event.alert.clusters) <= CLUSTERS_SHOWN for event in events)
