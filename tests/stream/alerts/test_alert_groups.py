"""Groups of open alerts: which alert a record joins, and whose it opens."""

from __future__ import annotations

from typing import Any

import pytest

from netclust.stream.alerts.alert_episode import Episode
from netclust.stream.alerts.alert_groups import FEW, LOUD, MOST, AlertPlace, Group, Groups
from netclust.stream.alerts.alert_summary import MANY


def episode(entity: str, kind: Any = "source", victim: str = "", role: Any = "single") -> Episode:
    return Episode(
        id=entity, kind="novel", label="novel", source="x", first_record="0:1", entity=entity, entity_kind=kind,
        victim=victim, role=role,
    )  # fmt: skip


def busy(singles: int, *, many: bool = True) -> Group:
    group = Group("")
    for k in range(singles):
        group.enter(episode(f"s{k}"))
    if many:
        group.enter(episode(MANY, "cluster", role="many"))
    return group


def test_a_record_opens_an_alert_of_its_source_then_its_destination_then_its_cluster() -> None:
    group = Group("")
    assert group.place("a", "v", "7") == AlertPlace("single", "source", "a", "v")
    assert group.place("a", "", "7") == AlertPlace("single", "source", "a")
    assert group.place("", "v", "7") == AlertPlace("single", "destination", "v")
    assert group.place("", "", "7") == AlertPlace("single", "cluster", "cluster 7")
    assert Group("novel").place("", "", "7").entity == "cluster 7"
    assert Group("smurf").place("", "", "7").entity == "smurf"


def test_records_of_one_source_join_its_alert_and_a_second_destination_makes_it_a_scan() -> None:
    group, alert = Group(""), episode("a", victim="v")
    group.enter(alert)
    assert group.find("a", "v", "7") is alert
    assert alert.victim == "v"
    assert group.find("a", "w", "7") is alert
    assert alert.victim == ""
    assert group.find("b", "v", "7") is None  # v is nobody's only destination now
    assert group.find("a", "v", "7") is alert


def test_a_second_source_to_the_only_destination_makes_it_the_alert_of_that_destination() -> None:
    group, alert = Group(""), episode("a", victim="v")
    group.enter(alert)
    assert group.find("", "v", "7") is None  # without a source nothing is turned
    assert group.find("b", "v", "7") is alert
    assert (alert.entity, alert.entity_kind, alert.victim) == ("v", "destination", "")
    assert group.find("c", "v", "7") is group.find("", "v", "7") is group.find("a", "v", "7") is alert
    assert group.find("a", "w", "7") is None
    group.leave(alert)
    assert group.find("c", "v", "7") is None
    assert group.singles == 0


def test_without_addresses_records_join_by_what_they_are() -> None:
    group, alert = Group("novel"), episode("cluster 7", "cluster")
    group.enter(alert)
    assert group.find("", "", "7") is alert
    assert group.find("", "", "8") is None
    assert group.find("a", "", "7") is None
    group.leave(alert)
    assert group.find("", "", "7") is None


def test_beyond_a_few_alerts_others_join_a_collective_one() -> None:
    assert busy(FEW - 1, many=False).place("a", "v", "7").role == "single"
    assert busy(FEW, many=False).place("a", "v", "7") == AlertPlace("many", "cluster", MANY)
    group = busy(FEW)
    group.leave(group.by_source["s0"])
    assert group.singles == FEW - 1
    assert group.place("a", "v", "7").role == "single"


@pytest.mark.parametrize("singles", [FEW, MOST - 1, MOST])
def test_what_is_loud_in_the_collective_alert_gets_its_own_up_to_a_bound(singles: int) -> None:
    for at, addresses, own in (
        ("sources", ("a", "v"), AlertPlace("single", "source", "a", "v")),
        ("destinations", ("a", "v"), AlertPlace("single", "destination", "v")),
        ("sources", ("a", ""), AlertPlace("single", "source", "a")),
        ("destinations", ("", "v"), AlertPlace("single", "destination", "v")),
        ("clusters", ("", ""), AlertPlace("single", "cluster", "cluster 7")),
    ):
        group = busy(singles)
        assert group.many is not None
        counts = getattr(group.many, at).counts
        key = {"sources": "a", "destinations": "v", "clusters": "7"}[at]
        counts[key] = LOUD - 1
        assert group.place(*addresses, "7").role == "many"
        counts[key] = LOUD
        assert group.place(*addresses, "7") == (own if singles < MOST else AlertPlace("many", "cluster", MANY))


def test_the_collective_alert_comes_and_goes() -> None:
    group = busy(2)
    many = group.many
    assert many is not None
    assert group.singles == 2
    group.leave(many)
    assert group.many is None
    assert group.singles == 2


def test_records_with_addresses_share_a_group_and_others_have_one_per_label() -> None:
    groups = Groups()
    found = groups.of_rows(["x", "y", "x", "x"], ["a", "", "", ""], ["", "v", "", ""])
    assert found[0] is found[1] is groups.of("")
    assert found[2] is found[3] is groups.of("x") is not groups.of("")
    found[2].enter(episode("cluster 7", "cluster"))
    groups.of("many").enter(episode(MANY, "cluster", role="many"))
    groups.drop_empty()
    assert groups.of("x") is found[2]
    assert groups.of("many").many is not None
    assert groups.of("") is not found[0]
