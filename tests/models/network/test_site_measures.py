"""Measures of the judge for real sites, beside scikit-learn's, and its rivals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from needed import need_module

from netclust.datasets.simulators.simulate import simulate
from netclust.models.network.site.site_measures import RATES, mean_measures, measure_scores, summarise
from netclust.models.network.site.site_rivals import FAST_RIVALS, SITE_RIVALS, RivalScorer, ecod_scores, make_rivals
from netclust.models.network.site.site_scorers import FailedConnections, upper_quantile


def _cases() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(4)
    cases = []
    for n in (30, 400, 3000):
        truth = rng.random(n) < 0.3
        cases.append((rng.normal(truth.astype(float), 1.0), truth))
        cases.append((np.round(rng.normal(truth.astype(float), 1.0)), truth))  # with ties
    return cases


@pytest.mark.parametrize("case", range(6))
def test_measures_equal_those_of_scikit_learn(case: int) -> None:
    metrics = need_module("sklearn.metrics")
    score, truth = _cases()[case]
    found = measure_scores(score, truth, {})
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(truth, score), abs=1e-12)
    assert found["average_precision"] == pytest.approx(metrics.average_precision_score(truth, score), abs=1e-12)
    false_alarms, detections, _ = metrics.roc_curve(truth, score, drop_intermediate=False)
    for rate in RATES:
        best = detections[false_alarms <= rate + 1e-12].max()
        assert found["detection_at"][f"{rate:g}"] == pytest.approx(best, abs=1e-12)


def test_what_was_obtained_is_counted_on_benign_records_alone() -> None:
    truth = np.array([True, True, False, False, False, False])
    flags = {0.01: np.array([True, False, True, False, False, False])}
    found = measure_scores(np.arange(6.0), truth, flags)
    assert (found["obtained"], found["found"]) == ({"0.01": 0.25}, {"0.01": 0.5})


def test_answered_attacks_and_kinds_are_measured_apart() -> None:
    score = np.array([9.0, 8.0, 1.0, 5.0, 2.0])
    truth = np.array([True, True, True, False, False])
    answered = np.array([False, True, True, True, True])
    kind = np.array(["scan", "worm", "worm", "", ""], object)
    found = measure_scores(score, truth, {}, answered, kind)
    assert (found["answered_attacks"], found["answered_auc"]) == (2, 0.5)
    assert {name: (k["records"], k["auc"]) for name, k in found["kinds"].items()} == {
        "scan": (1, 1.0),
        "worm": (2, 0.5),
    }


def test_infinite_scores_rank_above_all_others() -> None:
    truth = np.array([True, False, False])
    assert measure_scores(np.array([math.inf, 3.0, -math.inf]), truth, {})["auc"] == 1.0


def test_the_worst_host_is_the_one_with_most_false_alarms_and_fewest_detections() -> None:
    hosts = [{"auc": 0.9, "found": {"0.01": 0.2}, "obtained": {"0.01": 0.01}}]
    hosts.append({"auc": 0.7, "found": {"0.01": 0.6}, "obtained": {"0.01": 0.3}})
    found = summarise(hosts)
    assert (found["auc_worst"], found["found_worst"], found["obtained_worst"]) == (0.7, {"0.01": 0.2}, {"0.01": 0.3})
    assert found["obtained"]["0.01"] == pytest.approx(0.155)


def test_measures_that_are_no_fractions_are_those_of_the_first_draw() -> None:
    assert mean_measures([{"records": 3, "auc": None}, {"records": 3, "auc": None}]) == {"records": 3, "auc": None}


@pytest.mark.parametrize("rate", RATES)
def test_the_quantile_lets_no_more_than_the_rate_through_on_average(rate: float) -> None:
    rng = np.random.default_rng(1)
    obtained = [float((rng.random(2000) > upper_quantile(rng.random(1999), rate)).mean()) for _ in range(200)]
    assert np.mean(obtained) == pytest.approx(rate, rel=0.2)


def test_every_rival_finds_records_that_are_far_from_the_past() -> None:
    for name in ("sklearn", "river", "pysad"):
        need_module(name)
    benign = simulate(500, seed=1, attacks=()).table()
    far = benign[:20]
    far = type(far).from_columns(
        far.schema,
        {a.name: [1e7] * 20 if a.name.endswith("_bytes") else [1] * 20 for a in far.schema.numeric}
        | {a.name: [1 if a.kind == "binary" else "never seen"] * 20 for a in far.schema.coded},
    )
    for name in SITE_RIVALS:
        rival = RivalScorer(name)
        rival.fit(benign)
        assert np.median(rival.scores(far)) > np.median(rival.scores(benign)), name
        assert rival.flags(benign, 0.05).mean() < 0.2, name


def test_rivals_that_draw_random_numbers_are_run_with_several_seeds() -> None:
    names = [rival.name for rival in make_rivals(FAST_RIVALS, seed=3, draws=4)]
    assert names == ["isolation forest"] * 4 + ["10th neighbour", "ECOD"]


def test_ecod_adds_tails_over_columns() -> None:
    past = np.stack([np.linspace(0, 1, 99), np.linspace(0, 1, 99) ** 8], axis=1)
    rows = np.array([[0.5, 0.0], [0.5, 1.0], [2.0, 1.0]])
    scores = ecod_scores(past, rows)
    assert scores[2] == pytest.approx(-math.log(1 / 100) - math.log(2 / 100))  # above all, and with the highest
    assert scores[0] < scores[1] < scores[2]


def test_the_rule_counts_failed_connections_of_the_source() -> None:
    assert FailedConnections().scores(simulate(50, seed=1).table()).tolist() == [0.0] * 50  # schema kdd has none
