"""Models of the margin learner, reference sets drawn many times, and the warm-up without labels."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.linking.linker import LinkerConfig
from netclust.metrics.detection_metrics import auc
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import PRESETS, TrainParams, load_params
from netclust.models.network.train_network import best_scores, fit_network, taken_for_normal, train_network
from netclust.records.table import Table
from netclust.scoring.model import Model

MARGIN = TrainParams(
    learner="margin", scale="spread", far=2.0, steps=60, training_window=300, false_alarm_rate=0.05, holdout=0.2
)


@pytest.fixture(scope="module")
def table() -> Table:
    return simulate(3000, seed=1).table()


@pytest.fixture(scope="module")
def later() -> Table:
    return simulate(2000, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).table()


def with_(params: TrainParams, **changes: Any) -> TrainParams:
    return msgspec.structs.replace(params, **changes)


def test_a_margin_model_survives_its_file(table: Table, later: Table) -> None:
    model = train_network(table, MARGIN, seed=4)
    again = Model.from_bytes(model.to_bytes())
    assert model.far is not None
    assert again.far is not None
    assert again.far.tobytes() == model.far.tobytes()
    assert again.fingerprint == model.fingerprint
    config = LinkerConfig.thesis(feedback="none")
    scores = [evaluate_network(m, [later], config).verdicts.score.tobytes() for m in (model, again)]
    assert scores[0] == scores[1]


def test_learning_separates_better_than_its_start(table: Table, later: Table) -> None:
    found = []
    for learner in ("margin", "unlearned"):
        model = train_network(table, with_(MARGIN, learner=learner), seed=0)
        run = evaluate_network(model, [later], LinkerConfig.thesis(feedback="none"))
        found.append(auc(run.verdicts.score, run.truth) or 0.0)
    assert found[0] > found[1]


def test_draws_share_weights_and_not_referents(table: Table) -> None:
    fit = fit_network(table, MARGIN, seed=0)
    a, b, same = fit.draw(0), fit.draw(1), fit.draw(0)
    assert a.w is b.w
    assert a.fingerprint == same.fingerprint
    assert a.reference.seq.tolist() != b.reference.seq.tolist()
    assert a.calibration != b.calibration
    assert len(fit.draw(0, size=50).reference) == 50


def test_the_unlearned_rule_has_the_same_referents_and_held_out_records(table: Table) -> None:
    learned, unlearned = (fit_network(table, with_(MARGIN, learner=x), seed=3) for x in ("margin", "unlearned"))
    assert learned.held_out.seq.tolist() == unlearned.held_out.seq.tolist()
    assert learned.draw(5).reference.seq.tolist() == unlearned.draw(5).reference.seq.tolist()


@pytest.mark.parametrize("choice", ["proportional", "balanced", "normal"])
def test_a_reference_set_is_what_was_chosen(table: Table, choice: Any) -> None:
    fit = fit_network(table, with_(MARGIN, learner="unlearned"), seed=0)
    labels = fit.draw(0, size=200, choice=choice).reference.label
    counts = np.bincount(labels, minlength=len(fit.encoding.labels))
    share = counts[0] / 200
    assert counts.sum() == 200
    if choice == "normal":
        assert share == 1
    else:
        assert (counts > 0).all()
        assert (share > 0.6) == (choice == "proportional")


def test_alarms_count_links_to_attacks(table: Table) -> None:
    fit = fit_network(table, MARGIN, seed=0)
    model = fit.draw(0)
    calibration = model.calibration
    assert calibration is not None
    best, others = best_scores(model, fit.held_out)
    below = best <= np.float32(calibration.root)
    assert calibration.obtained == below.mean() <= 0.05
    assert calibration.alarms == (below | others).mean() >= calibration.obtained
    verdicts = evaluate_network(
        model, [table[np.isin(np.arange(len(table)), fit.held_out.seq)]], LinkerConfig.thesis(feedback="none")
    )
    assert calibration.alarms == verdicts.verdicts.anomalous.mean()


def test_attributes_left_out_are_not_scored(table: Table) -> None:
    fit = fit_network(table, with_(MARGIN, without=("src_bytes", "service", "logged_in")), seed=0)
    assert "src_bytes" not in fit.encoding.kept
    model = fit.draw(0)
    batch = model.encoding.encode(table)
    service = [a.name for a in model.encoding.schema.coded].index("service")
    assert (batch.code[:, service] == 0).all()
    with pytest.raises(InputError, match="schema kdd has no attribute bytes to leave out"):
        fit_network(table, with_(MARGIN, without=("bytes",)))


def test_a_warm_up_without_labels_finds_attacks(table: Table, later: Table) -> None:
    quiet = table[np.flatnonzero(table.label_names() == "normal")]
    model = train_network(taken_for_normal(quiet), with_(MARGIN, learner="unlearned", false_alarm_rate=0.02), seed=0)
    assert model.encoding.labels == ("normal",)
    run = evaluate_network(model, [later], LinkerConfig.thesis(feedback="none"))
    assert run.decisions.detection_rate is not None
    assert run.decisions.false_positive_rate is not None
    assert run.decisions.detection_rate > 5 * run.decisions.false_positive_rate
    assert (run.verdicts.anomalous == (run.verdicts.via == 2)).all()  # the root is all that can


def test_a_margin_model_of_normal_traffic_alone_trains(table: Table) -> None:
    quiet = table[np.flatnonzero(table.label_names() == "normal")]
    model = train_network(quiet, MARGIN, seed=0)
    assert np.isfinite(model.w).all()


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains(name: str, table: Table) -> None:
    params = load_params(name, table.schema)
    changes: dict[str, Any] = {"reference_size": min(params.reference_size, 500), "steps": 5, "epochs": 1}
    if params.false_alarm_rate is not None:
        changes["false_alarm_rate"] = max(params.false_alarm_rate, 0.02)
    assert len(train_network(table, with_(params, **changes), seed=0).reference) == changes["reference_size"]


def test_presets_of_a_pair_share_their_referents() -> None:
    for name in PRESETS:
        if name.startswith("unlearned-"):
            ours, theirs = load_params(name), load_params(name.removeprefix("unlearned-"))
            for field in ("reference_size", "reference_choice", "holdout"):
                assert getattr(ours, field) == getattr(theirs, field), name
            assert (ours.false_alarm_rate is None) == (theirs.false_alarm_rate is None), name
