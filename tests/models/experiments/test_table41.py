"""Table 4.1: every row there, the same referents in both methods of a pair, and intervals that can be believed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick_presets import quick

import netclust.models.experiments.detection.table41_runs as runs_module
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.linking.linker import LinkerConfig
from netclust.metrics.detection_metrics import auc, decision_metrics, detection_at
from netclust.models.experiments.bootstrap import paired_interval
from netclust.models.experiments.detection.table41 import (
    NEAREST,
    NEAREST_MANY,
    NETCLUST,
    PERCEPTRON,
    PUBLISHED_METHOD,
    UNLEARNED,
    Paired,
    Results,
    TestStream,
    table41_settings,
)
from netclust.models.experiments.detection.table41_plots import write_plots
from netclust.models.experiments.detection.table41_runs import check_peers, chosen_peers, run_table41
from netclust.models.experiments.peers import PEERS, PeerRun, anomalies, run_peer
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import PRESETS, TrainParams, load_params
from netclust.models.network.train_network import fit_network
from netclust.records.table import Table

pytestmark = pytest.mark.peers

METRICS = {
    "accuracy", "detection_rate", "false_positive_rate", "auc", "unseen_detection_rate", "detection_at_fpr",
}  # fmt: skip
LSP = {
    "TR": (0.7582, 0.5935, 0.0242),
    "TR+TE_pred d=100": (0.7430, 0.5686, 0.0265),
    "TR+TE_gold d=100": (0.8918, 0.8661, 0.0785),
    "TR+TE_gold d=200": (0.8924, 0.8682, 0.0756),
    "TR+TE_gold d=1000": (0.8855, 0.8523, 0.0706),
    "TR+TE_gold d=2000": (0.8826, 0.8444, 0.0669),
}
NONE = "no test labels, 280 referents"
MORE = ["gold d=100, 1000 referents", "gold d=100, 5000 referents", NONE]
SHORT = ["TR", "TR+TE_gold d=100", MORE[0], NONE]
PEER = "perceptron"


@pytest.fixture(scope="module")
def past() -> Table:
    return simulate(2000, seed=1).table()


@pytest.fixture(scope="module")
def tests() -> list[TestStream]:
    everything = (*KNOWN, *HELD_BACK)
    return [
        TestStream("one", simulate(1500, seed=2, day=1, attacks=everything).table(), published=True),
        TestStream("two", simulate(700, seed=3, day=2, attacks=everything).table()),
    ]


@pytest.fixture(scope="module")
def results(past: Table, tests: list[TestStream]) -> Results:
    presets = {name: quick(name) for name in PRESETS}
    return run_table41(past, tests, draws=2, seeds=2, peers=[PEER], picture=True, presets=presets)


@pytest.fixture(scope="module")
def pairs(results: Results) -> list[Paired]:
    return results.paired(resamples=300)


# Rows


def test_every_row_is_there(results: Results) -> None:
    wanted = {("one", PUBLISHED_METHOD, setting) for setting in LSP}
    wanted |= {("one", name, setting) for name in (NETCLUST, UNLEARNED) for setting in [*LSP, *MORE]}
    wanted |= {("two", PUBLISHED_METHOD, setting) for setting in SHORT[:2]}
    wanted |= {("two", name, setting) for name in (NETCLUST, UNLEARNED) for setting in SHORT}
    late = [setting for setting in [*LSP, *MORE] if "gold" in setting]
    wanted |= {("one", PERCEPTRON, setting) for setting in late}
    wanted |= {("two", PERCEPTRON, setting) for setting in late if setting in SHORT}
    rules = (NEAREST, NEAREST_MANY)
    wanted |= {(test, rule, setting) for test in ("one", "two") for setting in ("TR", NONE) for rule in rules}
    wanted |= {(test, PEERS[PEER].label, "no test labels") for test in ("one", "two")}
    rows = results.rows()
    assert len(rows) == len(wanted)
    assert {(row.test, row.name, row.setting) for row in rows} == wanted
    extra = [f"gold d=100, {window} referents" for window in (300, 3000)]
    expected = [("one", name, setting) for setting in extra for name in (PERCEPTRON, NETCLUST, UNLEARNED)]
    assert [(row.test, row.name, row.setting) for row in results.rows(picture=True)] == expected


def test_every_row_has_all_numbers(results: Results) -> None:
    for row in results.rows():
        assert set(row.mean) == set(row.sd) == METRICS
        assert set(row.mean["detection_at_fpr"]) == {"0.001", "0.01", "0.06"}
        for name in METRICS - {"detection_at_fpr"}:
            assert 0 <= row.mean[name] <= 1, (row.name, row.setting, name)
            assert row.sd[name] >= 0
        assert row.draws == 2
        assert row.seeds == (2 if row.name in (NETCLUST, UNLEARNED, NEAREST, NEAREST_MANY) else 1)


def test_printed_numbers_stand_at_their_rows(results: Results) -> None:
    printed = {(row.name, row.setting): row.published for row in results.rows() if row.published}
    for setting, numbers in LSP.items():
        found = printed.pop((PUBLISHED_METHOD, setting))
        assert tuple(found.values()) == numbers
    assert printed == {
        (PEERS[PEER].label, "no test labels"): {
            "accuracy": 0.7628,
            "detection_rate": 0.6609,
            "false_positive_rate": 0.0837,
        }
    }
    assert not any(row.published for row in results.rows() if row.test == "two")


@pytest.mark.parametrize(
    ("method", "preset", "key", "config", "options"),
    [
        (PUBLISHED_METHOD, "thesis", "gold-200", LinkerConfig.thesis(delay=200), {"size": 280}),
        (NETCLUST, "reference-280", "predicted", LinkerConfig.thesis(feedback="predicted"), {"size": 280}),
        (NETCLUST, "late", "window-1000", LinkerConfig.thesis(referent_window=1000, whole=False), {"size": 280}),
        (UNLEARNED, "unlearned-late", "gold-100", LinkerConfig.thesis(), {"size": 280}),
        (PERCEPTRON, "perceptron-late", "gold-100", LinkerConfig.thesis(), {"size": 280}),
        (NEAREST_MANY, "nearest-normal", "none", LinkerConfig.thesis(feedback="none"), {"choice": "normal"}),
        (
            NEAREST,
            "nearest-normal",
            "none",
            LinkerConfig.thesis(feedback="none"),
            {"choice": "proportional", "only_normal": True},
        ),
    ],
)
def test_a_run_is_what_its_setting_says(
    results: Results, past: Table, method: str, preset: str, key: str, config: LinkerConfig, options: Any
) -> None:
    seed = 0 if method in (PUBLISHED_METHOD, PERCEPTRON) else 1
    model = fit_network(past, quick(preset), seed=seed).draw(1, **options)
    test = results.tests[0]
    evaluation = evaluate_network(model, [test.table], config)
    run = results.entries[test.name, method, key].runs[seed, 1]
    assert (run.anomalous == evaluation.verdicts.anomalous).all()
    assert (run.score == evaluation.verdicts.score).all()
    truth = anomalies(test.table)
    d = decision_metrics(run.anomalous, truth)
    assert (run.metrics["accuracy"], run.metrics["auc"]) == (d.accuracy, auc(run.score, truth))
    assert run.metrics["detection_at_fpr"]["0.06"] == detection_at(run.score, truth, 0.06)
    assert run.metrics["unseen_detection_rate"] == evaluation.metrics()["unseen_detection_rate"]


def test_means_are_of_their_runs(results: Results) -> None:
    runs = results.entries["one", NETCLUST, "TR"].runs
    assert set(runs) == {(seed, draw) for seed in range(2) for draw in range(2)}
    row = results.row(("one", NETCLUST, "TR"))
    values = [run.metrics["accuracy"] for run in runs.values()]
    assert row.mean["accuracy"] == pytest.approx(np.mean(values))
    assert row.sd["accuracy"] == pytest.approx(np.std(values, ddof=1))


def test_a_peer_is_the_one_named(results: Results, past: Table) -> None:
    for test in results.tests:
        for draw, run in [
            (draw, run) for (_, draw), run in results.entries[test.name, PEERS[PEER].label, PEER].runs.items()
        ]:
            assert (run.score == run_peer(PEER, past, test.table, seed=draw).score).all()


def test_a_peer_runs_and_learns_as_often_as_planned(past: Table, tests: list[TestStream], monkeypatch: Any) -> None:
    calls: list[tuple[str, int, int, Any]] = []

    def decide(name: str, train: Table, test: Table, *, seed: int, delay: int, pretrain: int | None) -> PeerRun:
        assert (train is past, delay) == (True, 100)
        calls.append((name, len(test), seed, pretrain))
        return PeerRun(np.zeros(len(test), np.bool_), np.zeros(len(test)), 0.0, 0.0)

    monkeypatch.setattr(runs_module, "run_peer", decide)
    presets = dict.fromkeys(PRESETS, TrainParams(learner="unlearned", reference_size=60))
    names = chosen_peers("all")
    short = [TestStream(test.name, test.table[:length]) for test, length in zip(tests, (150, 70), strict=True)]
    results = run_table41(past, short, draws=4, seeds=1, peers=names, pretrain=1900, presets=presets)
    wanted = []
    for name in names:
        draws = 1 if not PEERS[name].varies else 2 if name == "river-arf" else 3
        for length in (150,) if name == "river-arf" else (150, 70):
            wanted += [(name, length, draw, 1900 if "river" in name else None) for draw in range(draws)]
    assert sorted(calls, key=str) == sorted(wanted, key=str)
    rows = {(row.test, row.name): row for row in results.rows()}
    assert rows["one", PEERS["river-arf"].label].draws == 2
    assert rows["one", PEERS["river-arf"].label].setting == "late labels d=100"
    assert rows["one", PEERS["linear-svm"].label].sd["accuracy"] is None  # one run
    assert ("two", PEERS["river-arf"].label) not in rows


def test_peers_in_another_process_decide_the_same(past: Table, tests: list[TestStream]) -> None:
    presets = dict.fromkeys(PRESETS, TrainParams(learner="unlearned", reference_size=60))
    here, beside = (
        run_table41(past, tests[:1], draws=1, seeds=1, peers=["perceptron"], presets=presets, jobs=jobs).rows()
        for jobs in (1, 2)
    )
    assert here == beside


# Pairs


def test_pairs_with_the_unlearned_rule_share_their_referents(results: Results, pairs: list[Paired]) -> None:
    for at, entry in results.entries.items():
        if at[1] != NETCLUST:
            continue
        other = results.entries[at[0], UNLEARNED, at[2]].runs
        for place, run in entry.runs.items():
            assert len(run.referents) == 280
            assert (run.referents == other[place].referents).all()
        assert (entry.runs[0, 0].referents != entry.runs[0, 1].referents).any()
    assert all(pair.same_referents == (pair.against == UNLEARNED) for pair in pairs)


def test_the_nearest_normal_rule_has_the_same_normal_referents(results: Results, past: Table) -> None:
    normal = ~anomalies(past)
    ours = results.entries["one", NETCLUST, "none"].runs
    for place, run in results.entries["one", NEAREST, "none"].runs.items():
        mine = ours[place].referents.astype(np.int64)
        assert run.referents.tolist() == mine[normal[mine]].tolist()
    for run in results.entries["one", NEAREST_MANY, "none"].runs.values():
        assert len(run.referents) == 280
        assert normal[run.referents.astype(np.int64)].all()


@pytest.mark.parametrize("name", ["reference", "reference-280", "late"])
def test_the_presets_of_a_pair_draw_the_same_referents(name: str) -> None:
    learned, unlearned = load_params(name), load_params(f"unlearned-{name}")
    for part in ("transform", "without", "reference_size", "reference_choice", "holdout"):
        assert getattr(learned, part) == getattr(unlearned, part), part
    assert (learned.false_alarm_rate is None) == (unlearned.false_alarm_rate is None)


def test_other_referents_are_noticed(past: Table, tests: list[TestStream]) -> None:
    presets = {name: TrainParams(learner="unlearned") for name in PRESETS}
    presets["unlearned-late"] = TrainParams(learner="unlearned", reference_choice="balanced")
    pairs = run_table41(past, tests[1:], draws=1, seeds=1, presets=presets).paired(resamples=50)
    late = {setting.label for setting in table41_settings() if setting.late}
    pairs = [pair for pair in pairs if pair.against == UNLEARNED]
    assert {pair.setting for pair in pairs if not pair.same_referents} == late
    assert all(pair.auc is None for pair in pairs)  # one draw


def test_what_no_seed_changes_is_trained_once(past: Table, tests: list[TestStream], monkeypatch: Any) -> None:
    fits: list[tuple[str, int]] = []

    def counted(table: Table, params: TrainParams, *, seed: int) -> Any:
        fits.append((params.learner, seed))
        return fit_network(table, params, seed=seed)

    monkeypatch.setattr(runs_module, "fit_network", counted)
    plain = TrainParams(learner="unlearned", reference_size=60)
    presets = dict.fromkeys(PRESETS, plain) | {"late": TrainParams(learner="unlearned", false_alarm_rate=0.1)}
    done: list[tuple[int, int]] = []
    results = run_table41(past, tests[1:], draws=1, seeds=2, presets=presets, on_progress=lambda *at: done.append(at))
    assert sorted(fits) == [("unlearned", seed) for seed in (*[0] * 10, 1)]
    total = sum(len(entry.runs) for entry in results.entries.values())
    assert done == [(i + 1, total) for i in range(total)]
    assert len(results.paired(resamples=50)) == 9 + 2 + 2


def test_pairs_agree_with_the_rows(results: Results, pairs: list[Paired]) -> None:
    wanted = [(UNLEARNED, "one", s) for s in [*LSP, *MORE]] + [(UNLEARNED, "two", s) for s in SHORT]
    for rule in (NEAREST, NEAREST_MANY):
        wanted += [(rule, test, setting) for test in ("one", "two") for setting in ("TR", NONE)]
    assert [(p.against, p.test, p.setting) for p in pairs] == wanted
    for pair in pairs:
        first, second = (
            next(r for r in results.rows() if (r.test, r.name, r.setting) == (pair.test, name, pair.setting))
            for name in (NETCLUST, pair.against)
        )
        at_6 = [row.mean["detection_at_fpr"]["0.06"] for row in (first, second)]
        assert pair.detection_at_6 is not None
        assert pair.detection_at_6.difference == pytest.approx(at_6[0] - at_6[1])
        for metric, found in (("accuracy", pair.accuracy), ("auc", pair.auc)):
            assert found is not None
            assert found.difference == pytest.approx(first.mean[metric] - second.mean[metric])
            assert found.low <= found.difference <= found.high
            assert found.excludes_zero == (found.low > 0 or found.high < 0)


# The bootstrap


def test_identical_runs_have_no_difference() -> None:
    right = np.random.default_rng(0).random((2, 3, 400)) < 0.8
    found = paired_interval(right.astype(np.int8), right.astype(np.int8))
    assert (found.difference, found.low, found.high, found.excludes_zero) == (0, 0, 0, False)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    # A true difference of 0.05, more in some draws than in others. Of 60 intervals of 95 % 57 would hold it, of 90 %
    # (20 draws are few) 54, give or take 2.3.
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        shift = 0.05 + 0.02 * rng.normal(size=(1, 20, 1))
        first, second = rng.random((1, 20, 300)) < 0.7 + shift, rng.random((1, 20, 300)) < 0.7
        found = paired_interval(first.astype(np.int8), second.astype(np.int8), resamples=200)
        held += found.low <= 0.05 <= found.high
    assert held >= 47


def test_runs_that_share_a_draw_are_not_independent() -> None:
    draws = np.random.default_rng(2).normal(size=(1, 10))
    one, many = (paired_interval(np.repeat(draws, seeds, axis=0), np.zeros((seeds, 10))) for seeds in (1, 5))
    assert many.high - many.low == pytest.approx(one.high - one.low, rel=0.1)


def test_the_records_are_resampled() -> None:
    n = 400
    first = np.zeros((2, 2, n))
    first[..., : n // 2] = 1  # the same in every run: what varies are the records
    found = paired_interval(first, np.zeros((2, 2, n)))
    assert found.difference == 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / n), rel=0.1)
    assert paired_interval(first, np.zeros((2, 2, n))) == found


# What cannot work


def test_what_cannot_work_is_refused_before_the_start(past: Table, tests: list[TestStream]) -> None:
    with pytest.raises(InputError, match="1 draw and 1 seed"):
        run_table41(past, tests, draws=0)
    with pytest.raises(InputError, match="needs test records"):
        run_table41(past, [])
    with pytest.raises(InputError, match="a name of its own"):
        run_table41(past, [tests[0], tests[0]])
    with pytest.raises(InputError, match="normal records to learn from, 1300 are needed"):
        run_table41(past, tests, peers=["river-hst"], pretrain=500)
    table = simulate(50, seed=9).table()
    table.label[3] = 0
    with pytest.raises(InputError, match="holes: 1 records have no label"):
        run_table41(past, [TestStream("holes", table)])


def test_an_absent_package_is_named_before_the_start(monkeypatch: Any) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("river", "sklearn") else found(name))
    with pytest.raises(InputError, match=r"needs river and scikit-learn: pip install 'netclust\[bench\]'"):
        check_peers(chosen_peers("fast"))
    check_peers(chosen_peers("none"))
    check_peers([PEER])


# Pictures


def test_every_picture_is_written(results: Results, tmp_path: Path) -> None:
    written = write_plots(results, tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(written)
    names = {path.name for path in written}
    assert names == {"windows.svg"} | {
        f"{kind}-{what}.svg" for kind in ("roc", "detection", "scores") for what in ("no-test-labels", "late-labels")
    }
    text = (tmp_path / "windows.svg").read_text()
    assert all(f"<!-- {window} -->" in text for window in ("100", "300", "1,000", "3,000", "5,000"))
    assert NEAREST in (tmp_path / "roc-no-test-labels.svg").read_text()
