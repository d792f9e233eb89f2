"""Tuning: what counts as better, what is tried, what a budget is, and that the answer can be trained with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

import netclust.models.network.measuring as measuring
from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.models.network.folds import Use, make_folds
from netclust.models.network.measuring import FoldResult, measure_fold, measurer
from netclust.models.network.params import PRESETS, TrainParams, load_params, parse_params
from netclust.models.network.tuning import (
    OBJECTIVES,
    SEARCH_RATE,
    SPACES,
    STARTS,
    Search,
    TuningTrial,
    attribute_groups,
    params_toml,
    parse_budget,
    tune,
)
from netclust.records.schema import load_schema
from netclust.records.table import Table

KDD = load_schema("kdd")
UNLEARNED = STARTS["unlearned"]


class World:
    """Numbers by a rule instead of by training, and a clock that goes on a second a candidate."""

    def __init__(self, rule: Any, seconds: float = 1.0) -> None:
        self.rule, self.seconds, self.now = rule, seconds, 0.0
        self.asked: list[TrainParams] = []

    def clock(self) -> float:
        return self.now

    def measure(self, candidates: Sequence[TrainParams]) -> list[list[FoldResult | str]]:
        self.asked += candidates
        self.now += self.seconds * len(candidates)
        return [[self._result(params), self._result(params)] for params in candidates]

    def _result(self, params: TrainParams) -> FoldResult | str:
        numbers = self.rule(params)
        if isinstance(numbers, str):
            return numbers
        base = {"auc": 0.9, "detection_at_1": 0.5, "accuracy": 0.8, "hidden_balanced_accuracy": 0.8}
        return FoldResult(base | numbers, {"duration": 0.1, "src_bytes": 0.3, "land": 0.2})

    def search(
        self, start: TrainParams = UNLEARNED, budget: float = 1e6, use: Use = "reference", fixed: Sequence[str] = ()
    ) -> Search:
        made = Search(use=use, measure=self.measure, budget=budget, clock=self.clock, fixed=frozenset(fixed))
        made.run(start, KDD)
        return made


# What is better


@pytest.mark.parametrize(
    ("use", "a", "b", "better"),
    [
        ("reference", (0.91, 0.1), (0.90, 0.9), True),
        ("reference", (0.90, 0.9), (0.91, 0.1), False),
        ("reference", (0.9000, 0.6), (0.9004, 0.5), True),
        ("reference", (0.9004, 0.5), (0.9000, 0.6), False),
        ("reference", (0.9, 0.5), (0.9, 0.5), False),
        ("late", (0.9003, 0.1), (0.9, 0.9), True),
        ("late", (0.9001, 0.1), (0.9, 0.9), False),
    ],
)
def test_the_better_one_is_kept(use: Use, a: tuple[float, float], b: tuple[float, float], better: bool) -> None:
    objective = OBJECTIVES[use]
    first, second = ({objective.first: x[0], objective.second: x[1]} for x in (a, b))
    assert objective.better(first, second) is better


def test_a_walk_of_ties_stays_at_the_best() -> None:
    # Every step loses 0.0015 of AUC and gains detection: only the first one may be taken.

    def rule(params: TrainParams) -> dict[str, float]:
        steps = (params.scale == "spread") + (params.symbol_weight == 0.3) + (params.far == 1.0)
        return {"auc": 0.9 - 0.0015 * steps, "detection_at_1": 0.5 + 0.1 * steps}

    best = World(rule).search().best
    assert best is not None
    assert best.mean["auc"] == pytest.approx(0.8985)


# What is tried


def test_the_search_finds_what_one_parameter_at_a_time_finds() -> None:
    def rule(params: TrainParams) -> dict[str, float]:
        good = (params.symbol_weight == 0.3) + (params.far == 2.0) + (params.transform == "log1p")
        return {"auc": 0.8 + 0.01 * good, "hidden_balanced_accuracy": 0.9 if params.false_alarm_rate == 0.03 else 0.8}

    world = World(rule)
    search = world.search()
    assert search.best is not None
    changed = {"symbol_weight": 0.3, "far": 2.0, "transform": "log1p", "false_alarm_rate": 0.03}
    assert search.best.changed == changed
    assert search.best.params == msgspec.structs.replace(UNLEARNED, **changed)
    assert (search.passes, search.exhausted) == (2, False)
    assert [trial.step for trial in search.trials if trial.kept] == [
        "start", "symbol_weight", "far", "transform", "false_alarm_rate",
    ]  # fmt: skip
    assert all(params.false_alarm_rate == SEARCH_RATE for params in world.asked[:-4])


def test_no_candidate_is_measured_twice() -> None:
    for learner, start in STARTS.items():
        world = World(lambda params: {"auc": 0.5 + len(params_toml(params)) % 17 / 100})
        search = world.search(start)
        assert len(world.asked) == len(set(world.asked)) == len(search.trials)
        moved = {trial.step for trial in search.trials}
        assert moved >= {"start", "false_alarm_rate"}
        assert moved - {"start", "false_alarm_rate"} <= set(SPACES[learner])


def test_what_is_fixed_is_not_moved() -> None:
    start = msgspec.structs.replace(UNLEARNED, reference_choice="normal", transform="none")
    world = World(lambda params: {"auc": 0.5 + len(params_toml(params)) % 17 / 100})
    search = world.search(start, fixed=("reference_choice", "transform"))
    assert {params.reference_choice for params in world.asked} == {"normal"}
    assert {params.transform for params in world.asked} == {"none"}
    assert {trial.step for trial in search.trials} >= {"scale", "symbol_weight", "far"}
    with pytest.raises(InputError, match="epochs is not searched for learner unlearned"):
        World(lambda params: {}).search(fixed=("epochs",))


def test_the_start_takes_the_false_alarm_rate_of_the_search() -> None:
    search = World(lambda params: {}).search(msgspec.structs.replace(UNLEARNED, false_alarm_rate=0.3))
    assert search.start.false_alarm_rate == SEARCH_RATE
    assert search.best is not None
    assert search.best.params.false_alarm_rate == 0.005  # all equal: the first


def test_late_labels_may_do_without_a_root() -> None:
    late = World(lambda params: {"accuracy": 0.9 if params.false_alarm_rate is None else 0.8}).search(use="late")
    assert late.best is not None
    assert late.best.params.false_alarm_rate is None
    reference = World(lambda params: {}).search()
    assert all(trial.params.false_alarm_rate is not None for trial in reference.trials)


def test_attributes_are_left_out_in_order() -> None:
    noise = {"land", "dst_bytes"}

    def rule(params: TrainParams) -> dict[str, float]:
        return {"auc": 0.8 + 0.01 * len(noise & set(params.without)) - 0.03 * len(set(params.without) - noise)}

    search = World(rule).search(STARTS["margin"])
    tried = [trial.params.without for trial in search.trials if trial.step == "without"]
    groups = attribute_groups(KDD)
    assert [set(names) for names in tried[: len(groups)]] == [set(group) for group in groups]
    # Then single ones, the smallest weight first; what was kept stays out.
    assert tried[len(groups) :] == [("duration",), ("land",), ("land", "src_bytes")]
    assert search.best is not None
    assert search.best.params.without == ("land",)


def test_the_search_continues_past_a_candidate_that_cannot_be_measured() -> None:
    search = World(lambda params: "too few records" if params.far is not None else {}).search()
    failed = [trial for trial in search.trials if trial.error]
    assert [trial.params.far for trial in failed] == [1.0, 2.0, 4.0]
    assert not any(trial.kept for trial in failed)
    assert failed[0].to_json()["error"] == "too few records"
    with pytest.raises(InputError, match="the start parameters cannot be measured: too few records"):
        World(lambda params: "too few records").search()
    rates = World(lambda params: "too few" if params.false_alarm_rate == 0.005 else {}).search()
    assert rates.best is not None
    assert rates.best.params.false_alarm_rate == 0.01


def test_the_budget_is_kept() -> None:
    everything = World(lambda params: {})
    whole = everything.search(STARTS["margin"])
    assert not whole.exhausted
    world = World(lambda params: {}, seconds=10.0)
    cut = world.search(STARTS["margin"], budget=100.0)
    assert cut.exhausted
    searched = [trial for trial in cut.trials if trial.step != "false_alarm_rate"]
    assert len(searched) == 9  # the tenth candidate's time is the decision rule's
    assert [t.changed for t in searched] == [t.changed for t in whole.trials[:9]]  # a budget cuts, it does not steer
    tiny = World(lambda params: {}, seconds=10.0).search(budget=1.0)
    assert {trial.step for trial in tiny.trials} == {"start", "false_alarm_rate"}


def test_every_space_fits_its_learner() -> None:
    for learner, space in SPACES.items():
        for name, values in space.items():
            for value in values:
                TrainParams(learner=learner, **{name: value})  # type: ignore[arg-type]
    assert all(start.learner == learner for learner, start in STARTS.items())


def test_groups_are_attributes() -> None:
    groups = attribute_groups(KDD)
    features = {a.name for a in KDD.features}
    assert groups
    assert all(set(group) < features and len(group) >= 3 for group in groups)


# Text


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5h", 5400), (" 1s ", 1)])
def test_budgets_are_read(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "30", "m", "30 m", "-5m", "0s", "0.0h", "1d", "30min", "1h30m", "nan", "infs", "1e3s", "9999999h", "٣m"],
)
def test_impossible_budgets_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="such as 90s, 30m or 2h"):
        parse_budget(text)


def test_written_parameters_are_read_back() -> None:
    odd = TrainParams(
        learner="margin", far=1e-5, pull=0.0, reach=2.0, steps=200, C=2, without=("a b", 'quo"te', "π\\"), sign=1
    )
    for params in (TrainParams(), odd, *STARTS.values(), *map(load_params, PRESETS)):
        assert parse_params(params_toml(params)) == params
    assert params_toml(TrainParams()) == ""
    assert "epochs" not in params_toml(odd)


# With real training


@pytest.fixture(scope="module")
def table() -> Table:
    return simulate(2500, seed=1).table()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A space of two candidates, and rates that a few records can promise."""
    monkeypatch.setitem(SPACES, "unlearned", {"scale": ("spread",)})
    for use, objective in list(OBJECTIVES.items()):
        rates = tuple(rate for rate in objective.rates if rate is None or rate >= 0.02)
        monkeypatch.setitem(OBJECTIVES, use, msgspec.structs.replace(objective, rates=rates))


@pytest.mark.parametrize("use", ["reference", "late"])
@pytest.mark.usefixtures("small")
def test_a_tuned_model_can_be_made(use: Use, table: Table) -> None:
    seen: list[TuningTrial] = []
    found = tune(table, UNLEARNED, use=use, budget=60, jobs=1, on_trial=seen.append)
    again = tune(table, UNLEARNED, use=use, budget=60, jobs=1)
    assert seen == found.trials
    assert [(t.changed, t.mean, t.folds) for t in found.trials] == [(t.changed, t.mean, t.folds) for t in again.trials]
    assert [trial.step for trial in found.trials[:2]] == ["start", "scale"]
    assert not found.interrupted
    assert found.searched.params.false_alarm_rate == SEARCH_RATE
    for trial in found.trials:
        assert len(trial.folds) == len(found.folds) == 5
        for name, value in trial.mean.items():
            assert value == pytest.approx(np.mean([numbers[name] for numbers in trial.folds]))
            assert 0 <= value <= 1
    assert parse_params(params_toml(found.best.params)) == found.best.params


def test_candidates_measured_together_equal_those_alone(table: Table) -> None:
    fold = make_folds(table)[0]
    rates = [msgspec.structs.replace(UNLEARNED, false_alarm_rate=rate) for rate in (0.02, 0.05, None)]
    together = measure_fold(table, fold, "reference", rates)
    alone = [measure_fold(table, fold, "reference", [params])[0] for params in rates]
    assert together == alone
    assert together[0] != together[1]


def test_a_measure_needs_no_known_attacks(table: Table) -> None:
    fold = make_folds(table)[0]
    (result,) = measure_fold(table, fold, "reference", [UNLEARNED])
    assert isinstance(result, FoldResult)
    fit = measuring.fit_network(table[fold.train], UNLEARNED, seed=measuring.FIT_SEED)
    aucs = []
    for seed in range(1, measuring.DRAWS + 1):
        evaluation = measuring.evaluate_network(
            fit.draw(seed), [table[fold.validation]], measuring.LinkerConfig.thesis(feedback="none")
        )
        score, names = evaluation.verdicts.score, evaluation.label_names
        normal = score[names == "normal"]
        for name in fold.types:  # a type counts as one, whatever its size
            attack = score[names == name]
            above = (attack[:, None] > normal).mean() + (attack[:, None] == normal).mean() / 2
            aucs.append(above)
    assert result.numbers["auc"] == pytest.approx(np.mean(aucs))
    assert set(result.weights) <= {a.name for a in KDD.features}


@pytest.mark.usefixtures("small")
def test_an_interruption_keeps_the_best(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_at(count: int) -> Any:
        def on_trial(trial: TuningTrial) -> None:
            nonlocal count
            count -= 1
            if count == 0:
                raise KeyboardInterrupt

        return on_trial

    found = tune(table, UNLEARNED, jobs=1, on_trial=stop_at(2))
    assert found.interrupted
    assert found.best.step == "start"
    monkeypatch.setattr(measuring, "measure_fold", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        tune(table, UNLEARNED, jobs=1)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_processes_measure_the_same(table: Table) -> None:
    folds = make_folds(table)[:2]
    params = [msgspec.structs.replace(UNLEARNED, false_alarm_rate=0.05)]
    with measurer(table, folds, "reference", 2) as many, measurer(table, folds, "reference", 1) as one:
        assert many(params) == one(params)
