"""Chains over a host's verdicts: simulated days as they were judged, sequences of hosts, and what is compared."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.linking.linker import LinkerConfig
from netclust.models.experiments.detection.host_sequences import (
    METHODS,
    HostSettings,
    compare_day,
    host_rows,
    learn_smoother,
    voted,
)
from netclust.models.experiments.detection.judged_days import DayPlan, JudgedDay, judge_day, judged_days

PLAN = DayPlan(
    hours=0.2, hosts=8, scale=0.5, rate=0.05, references=50, trained_on="port_scan,ssh_brute_force",
    attacks="port_scan,ssh_brute_force,web_attack",
)  # fmt: skip
QUICK = HostSettings(cut=40, grid=(10.0,), epsilon=0.5)


@pytest.fixture(scope="module")
def days() -> list[JudgedDay]:
    return judged_days(PLAN)


def test_judged_days_are_of_one_office_and_not_those_that_were_trained_on(days: list[JudgedDay]) -> None:
    first, second = days
    for day in days:
        assert len(day) == len(day.table) == len(day.verdicts) == len(day.source) == len(day.destination)
        assert {"port_scan", "ssh_brute_force", "web_attack", "normal"} == set(day.label.tolist())
        assert day.attack.tolist() == (day.label != "normal").tolist()
        assert (np.diff(day.table.time) >= 0).all()
        # what the linker keeps is not asked for: a verdict depends on its record alone
        assert np.array_equal(day.alarm, day.score > 0) or day.alarm[day.score > 0].all()
    assert first.table.time.max() < second.table.time.min()
    assert set(first.source.tolist()) & set(second.source.tolist())
    assert "web_attack" not in first.encoding.labels
    with pytest.raises(InputError, match="at least one"):
        judged_days(DayPlan(days=0))


def test_features_are_the_same_columns_every_day(days: list[JudgedDay]) -> None:
    for attributes in (False, True):
        (names, x), (others, _) = (day.features(attributes=attributes) for day in days)
        assert names == others
        assert x.shape == (len(days[0]), len(names))
        assert np.isfinite(x).all()
    assert "protocol=tcp" in names
    assert x[:, names.index("score")] == pytest.approx(days[0].score)


def test_labels_are_not_shown_to_the_linker(days: list[JudgedDay]) -> None:
    day = days[0]
    from netclust.shipped.loading import load_shipped

    model = load_shipped("flow")
    hidden = day.table[np.arange(len(day))]
    hidden.label = np.zeros_like(hidden.label)
    config = LinkerConfig(referent_window=50, label_delay=0)
    shown, unseen = judge_day(model, day.table, config), judge_day(model, hidden, config)
    assert np.array_equal(shown.verdicts.score, unseen.verdicts.score)


def test_rows_of_hosts_keep_their_order_and_long_ones_are_cut() -> None:
    hosts = np.array(list("abacaabbaa"))
    assert [rows.tolist() for rows in host_rows(hosts)] == [[0, 2, 4, 5, 8, 9], [1, 6, 7], [3]]
    assert [rows.tolist() for rows in host_rows(hosts, 2)] == [[0, 2], [4, 5], [8, 9], [1, 6], [7], [3]]
    assert host_rows(np.array([], str)) == []


def test_a_vote_is_the_share_of_alarms_around(days: list[JudgedDay]) -> None:
    day, found = days[0], voted(days[0], 5)
    for rows in host_rows(day.source)[:10]:
        for k, row in enumerate(rows.tolist()):
            around = day.alarm[rows[max(k - 2, 0) : k + 3]]
            assert found[row] == pytest.approx(around.mean() - 0.5)


def test_without_transitions_a_score_is_its_own_record_alone(days: list[JudgedDay]) -> None:
    first, second = days
    alone = learn_smoother(first, HostSettings(cut=40, grid=(10.0,), epsilon=0.5, transitions=False))
    found = alone.scores(second)
    raw = second.features()[1]
    x = np.column_stack([(raw - alone.mean) / alone.spread, np.ones(len(raw))])
    node = alone.w.reshape(2, -1)
    assert found == pytest.approx(x @ (node[1] - node[0]))
    chain = learn_smoother(first, QUICK)
    assert not np.allclose(chain.scores(second), found)
    rows = np.flatnonzero(~first.attack)
    quiet = JudgedDay(first.table[rows], first.batch[rows], first.verdicts, first.encoding)
    with pytest.raises(InputError, match="needs attacks"):
        learn_smoother(quiet)


def test_every_method_is_measured_as_decided_and_at_equal_false_alarms(days: list[JudgedDay]) -> None:
    body = compare_day(*days, HostSettings(cut=40, grid=(10.0, 100.0), epsilon=0.5))
    detector = body["detector"]
    assert body["C"]["chain"] in (10.0, 100.0)
    for name in METHODS:
        own = body[name]
        assert set(own["by type"]) == {"port_scan", "ssh_brute_force", "web_attack"}
        assert own["at the detector's false alarms"]["false alarms"] <= detector["false alarms"]
        assert own["detected, mean of types"] == pytest.approx(np.mean(list(own["by type"].values())))
    assert body["chain"]["wrong"] <= detector["wrong"] + 0.02
