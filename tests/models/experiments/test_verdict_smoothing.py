"""Verdicts smoothed: counts by hand, nodes of a judged day, votes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from netclust.models.attractive.attractive_networks import Cliques
from netclust.models.attractive.attractive_problem import NetworkFeatures
from netclust.models.experiments.detection.verdict_smoothing import day_network, outcome, voted


def made_day() -> Any:
    """What `JudgedDay` shows of six records."""
    label = np.array(["normal", "scan", "scan", "flood", "normal", "normal"])
    schema = SimpleNamespace(
        coded=[SimpleNamespace(name="service", kind="symbolic"), SimpleNamespace(name="x", kind="bit")]
    )
    table = SimpleNamespace(
        context={"source": np.array(list("aabbcc"))},
        schema=schema,
        sym=np.array([[1, 0]] * 3 + [[2, 0]] * 3),
        symbols=[["", "dns", "ssh"], ["", "0"]],
    )
    verdicts = SimpleNamespace(verdict=np.array([0, 1, 2, 0, 1, 0]), via=np.array([0, 0, 1, 2, 3, 0]))
    return SimpleNamespace(
        label=label, attack=label != "normal", table=table, verdicts=verdicts, score=np.arange(6) / 3 - 0.5,
        batch=SimpleNamespace(time=np.arange(6) * 10**9), alarm=verdicts.verdict > 0,
    )  # fmt: skip


def test_outcomes_equal_those_counted_by_hand() -> None:
    found = outcome("x", made_day(), np.array([True, True, False, False, False, False]))
    assert (found.false_alarms, found.missed) == (1, 2)
    assert (found.false_alarm_rate, found.detection, found.mean_detection) == (1 / 3, 1 - 2 / 3, 0.25)


def test_a_day_becomes_its_table() -> None:
    nodes = day_network(made_day()).nodes
    assert len(nodes) == 6
    assert nodes.columns["service"] == ("dns", "dns", "dns", "ssh", "ssh", "ssh")
    assert nodes.columns["label"] == ("normal", "attack", "attack", "attack", "normal", "normal")
    assert nodes.columns["verdict"][:3] == ("normal", "known_attack", "novel")
    assert nodes.columns["time"][1] == "1.000000"
    assert "x" not in nodes.columns


def test_votes_are_of_neighbours() -> None:
    x = NetworkFeatures(np.zeros((4, 1)), Cliques.of_edges([[0, 1], [0, 2], [0, 3]]))
    alarm = np.array([False, True, True, False])
    assert voted(x, alarm, 0.5).tolist() == [True, False, False, False]
    assert voted(x, alarm, 4.0).tolist() == alarm.tolist()
