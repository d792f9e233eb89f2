"""The experiments on a small folder like LitBank's: what is tuned, what is trained, and what is not trained again."""

from __future__ import annotations

import numpy as np
import pytest
from mini_litbank import EPOCHS, FEATURES, SIZES, hurry, make_litbank

from netclust.errors import InputError
from netclust.metrics.clustering_metrics import PrecisionRecall
from netclust.models.coreference import learning
from netclust.models.coreference.learning import LearnedCoreference
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.experiments.coreference import litbank_experiments
from netclust.models.experiments.coreference.coreference_report import report_rows
from netclust.models.experiments.coreference.coreference_trials import CoreferenceTrial, Trials
from netclust.models.experiments.coreference.litbank_experiments import (
    BASELINES,
    MODELS,
    SplitData,
    best_settings,
    measure_regression,
    run_litbank_split,
    run_trial,
    tune_litbank,
)

pytestmark = pytest.mark.peers

FEW = ("LSP^E", "LSPA^K", "LSSVM^E", "LSP_rho")


@pytest.fixture(scope="module")
def litbank(tmp_path_factory):
    return make_litbank(tmp_path_factory.mktemp("data") / "litbank")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    hurry(monkeypatch)


@pytest.fixture
def trials(tmp_path):
    return Trials(tmp_path / "trials.jsonl")


@pytest.fixture
def trained(monkeypatch):
    """The settings that were really trained."""
    done, true = [], litbank_experiments.learn_coreference

    def spy(settings, *rest):
        done.append(settings)
        return true(settings, *rest)

    monkeypatch.setattr(litbank_experiments, "learn_coreference", spy)
    return done


def test_a_stopped_run_continues_without_training_again(litbank, trials, trained):
    data = SplitData(litbank, 0)
    tune_litbank(data, trials, FEW)
    # two values of C and then of r, for those that have one; the first r repeats nothing
    assert [one.model for one in trials] == ["LSP^E"] * 4 + ["LSPA^K"] * 3 + ["LSSVM^E"] * 2 + ["LSP_rho"] * 2
    assert all(one.stage == "tune" and not one.test and one.split == 0 for one in trials)
    assert {one.settings.features for one in trials} == {FEATURES}
    run_litbank_split(data, trials, FEW)
    run_litbank_split(data, trials, ("LSP^E",), SIZES)
    count = len(trained)
    assert count == 11 + 4 + 1
    table = [one for one in trials if one.stage == "table"]
    assert [one.model for one in table] == [*FEW, *BASELINES, "LSP^E"]
    assert all(set(one.test) >= {"mela", "muc", "b3", "ceafe"} for one in table)
    assert [len(one.curve) for one in table] == [EPOCHS, EPOCHS, 1, EPOCHS, 0, 0, EPOCHS]
    again = Trials(trials.path)
    tune_litbank(SplitData(litbank, 0), again, FEW)
    run_litbank_split(SplitData(litbank, 0), again, FEW)
    run_litbank_split(SplitData(litbank, 0), again, ("LSP^E",), SIZES)
    assert len(trained) == count
    assert list(again) == list(trials)
    found = {(row.name, row.features): row.mean for row in report_rows(trials)}
    assert found["LSP^E", None] > found["singletons", None]
    assert found["LSP^E", 300] > found["singletons", None]


def test_a_trial_repeats_from_run_to_run(litbank):
    settings = CoreferenceSettings(epochs=2, features=FEATURES, C=10.0)
    first, second = (run_trial(SplitData(litbank, 1, jobs=jobs), "LSP^E", settings, "table") for jobs in (1, 2))
    assert (first.curve, first.test, first.losses) == (second.curve, second.test, second.losses)
    assert first.split == 1


def test_test_documents_are_not_measured_while_tuning(litbank, monkeypatch):
    data = SplitData(litbank, 0)
    asked, true = [], data.part
    monkeypatch.setattr(data, "part", lambda name, *size: asked.append(name) or true(name, *size))
    trial = run_trial(data, "LSP^E", CoreferenceSettings(epochs=1, features=FEATURES), "tune")
    assert set(asked) == {"train", "dev"}
    assert trial.test == {}


def test_the_reported_epoch_is_the_measured_one(litbank, monkeypatch):
    """Of equally good epochs the first is the best, for the weights too."""
    settings = CoreferenceSettings(epochs=3, features=FEATURES)

    def learn(settings, train, look):
        for epoch in range(1, 4):
            look(epoch, np.full(FEATURES.dimension, float(epoch)))
        return LearnedCoreference(np.zeros(FEATURES.dimension), 0, ())

    used = []
    monkeypatch.setattr(litbank_experiments, "learn_coreference", learn)
    dev = {1.0: 0.5, 2.0: 0.7, 3.0: 0.7}
    for module in (learning, litbank_experiments):
        monkeypatch.setattr(module, "resolve_mentions", lambda settings, pairs, w: used.append(w[0]) or w[0])
    monkeypatch.setattr(
        learning, "measure_examples", lambda examples, found, metrics: {"mela": PrecisionRecall(0, 0, dev[found[0]])}
    )
    monkeypatch.setattr(
        litbank_experiments, "measure_examples", lambda examples, found: {"mela": PrecisionRecall(0, 0, 0)}
    )
    trial = run_trial(SplitData(litbank, 0), "LSP^E", settings, "table")
    assert (trial.curve, trial.epochs, used[-1]) == ((50.0, 70.0, 70.0), 2, 2.0)


def test_settings_are_chosen_on_development_documents_alone(trials):
    def add(C, curve, stage="tune", model="LSP^E"):
        settings = CoreferenceSettings(C=C)
        trials.add(
            CoreferenceTrial(split=0, model=model, stage=stage, settings=settings, curve=curve, test={"mela": C})
        )

    add(1.0, (60.0, 70.0))
    add(10.0, (75.0, 71.0))
    add(100.0, (75.0,))
    add(1000.0, (99.0,), stage="table")
    add(2000.0, (99.0,), model="LSP^K")
    assert best_settings(trials, "LSP^E").C == 10.0
    with pytest.raises(InputError, match=r"LSPA\^E has not been tuned"):
        best_settings(trials, "LSPA^E")


def test_few_features_are_chosen_on_training_documents_alone(litbank, monkeypatch):
    seen, true = [], litbank_experiments.choose_slots
    monkeypatch.setattr(
        litbank_experiments, "choose_slots", lambda examples, n: seen.append(examples) or true(examples, n)
    )
    data = SplitData(litbank, 0)
    sizes = {data.part(name, 300)[0].pairs.dimension for name in ("train", "dev", "test")}
    assert sizes == {300}
    assert seen == [data.part("train")]  # once, whoever asks


def test_the_regression_is_tested_on_other_sets_than_it_learned(litbank):
    found = measure_regression(SplitData(litbank, 0))
    assert [(one.train, one.test) for one in found] == [("S1", "S2"), ("S2", "S1")]
    assert all(one.examples > 5 and one.mse >= 0 and one.scc <= 1 for one in found)
    assert found == measure_regression(SplitData(litbank, 0))


def test_every_model_of_the_table_can_be_tuned_by_its_name():
    assert set(litbank_experiments._GRIDS) == set(MODELS)
    assert set(litbank_experiments.SIZED) <= set(MODELS)
    for name, settings in MODELS.items():
        assert settings.name == ("LSP^E" if name == "LSP_YJ" else name)
