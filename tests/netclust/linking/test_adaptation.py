"""Adapting a model to a site: what it may change, what it promises, what it must not learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.errors import InputError
from netclust.linking.adaptation import (
    MIN_RECORDS,
    Adaptation,
    adapt,
    adaptation_of,
    clearly_attacks,
    without_lookalikes,
)
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.records.batch import Batch, concat_batches
from netclust.scoring.model import Model

RATE = 0.01


@pytest.fixture(scope="module")
def model() -> Model:
    params = TrainParams(
        learner="margin", scale="spread", steps=60, training_window=300, reference_size=300, false_alarm_rate=RATE
    )
    return train_network(simulate(12_000, seed=1).table(), params, seed=0)


@pytest.fixture(scope="module")
def site(model: Model) -> Batch:
    """Ordinary traffic of another day: the warm-up, and what comes after it."""
    return model.encoding.encode(simulate(9000, seed=5, day=9, attacks=()).table())


def judged(model: Model, batch: Batch) -> np.ndarray:
    plain = replace(batch, label=np.full(len(batch), -1, np.int32))
    return Linker(model, LinkerConfig(referent_window=0)).process(plain).anomalous


def attacks(model: Model, name: str, n: int = 600) -> Batch:
    table = simulate(n, seed=7, day=9, attacks=(name,), attack_share=0.5).table()
    return model.encoding.encode(table[table.label_names() == name])


def test_adaptation_does_not_leave_a_site_noisier_than_it_was(model: Model, site: Batch) -> None:
    adapted = adapt(model, site[:4000], rate=RATE, references=1000)
    before, after = judged(model, site[4000:]).mean(), judged(adapted, site[4000:]).mean()
    assert after <= before
    assert after < 2 * RATE


def test_places_of_referents_do_not_move_and_the_others_come_behind(model: Model, site: Batch) -> None:
    adapted = adapt(model, site[:2000], rate=RATE, references=400)
    own = len(model.reference)
    said = adaptation_of(adapted)
    assert said is not None
    assert len(adapted.reference) == own + said.references <= own + 400
    same = (adapted.reference.num[:own] == model.reference.num).all(axis=1)
    same &= adapted.reference.label[:own] == model.reference.label
    assert (~same).sum() <= said.replaced
    is_normal = model.encoding.label_table().is_normal
    assert not is_normal[model.reference.label[~same]].any(), "only attacks give their place away"
    assert is_normal[adapted.reference.label[own:]].all()


def test_an_attack_in_the_warm_up_is_not_taken_for_normal(model: Model, site: Batch) -> None:
    flood = attacks(model, "syn_flood")
    warm = concat_batches([site[:1000], flood, site[1000:2000]])
    adapted = adapt(model, warm, rate=RATE, references=1000)
    said = adaptation_of(adapted)
    assert said is not None
    clear = clearly_attacks(model, flood)
    assert said.attacks >= clear.sum() > 0.8 * len(flood)
    assert judged(adapted, flood[clear]).mean() >= 0.9


def test_the_rate_is_not_promised_with_too_few_records_and_the_root_is_not_raised(model: Model, site: Batch) -> None:
    adapted = adapt(model, site[:200], rate=0.001, references=100)
    assert adapted.calibration is not None
    assert model.calibration is not None
    assert adapted.calibration.records <= 100
    assert 1 / 101 <= adapted.calibration.false_alarm_rate < 0.02
    assert adapted.calibration.root <= model.calibration.root


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.3])
def test_the_share_below_the_root_is_never_beyond_the_rate_that_is_said(model: Model, site: Batch, rate: float) -> None:
    adapted = adapt(model, site[:4000], rate=rate, references=600)
    assert adapted.calibration is not None
    assert adapted.calibration.obtained <= adapted.calibration.false_alarm_rate
    assert adapted.calibration.false_alarm_rate == rate or adapted.calibration.records < 1 / rate


def test_the_same_traffic_does_not_give_two_models(model: Model, site: Batch) -> None:
    one, two = (adapt(model, site[:1500], rate=RATE, references=300, seed=4) for _ in range(2))
    assert one.to_bytes() == two.to_bytes()
    assert one.fingerprint != adapt(model, site[:1500], rate=RATE, references=300, seed=5).fingerprint


def test_labels_of_the_warm_up_are_not_read(model: Model, site: Batch) -> None:
    hinted = replace(site[:1500], label=np.arange(1500, dtype=np.int32) % len(model.encoding.labels))
    assert adapt(model, hinted).fingerprint == adapt(model, site[:1500]).fingerprint


def test_a_file_does_not_forget_where_it_came_from(model: Model, site: Batch) -> None:
    adapted = adapt(model, site[:1500], rate=RATE, references=300)
    again = Model.from_bytes(adapted.to_bytes())
    assert again.fingerprint == adapted.fingerprint
    assert adaptation_of(again) == adaptation_of(adapted)
    said = adaptation_of(again)
    assert isinstance(said, Adaptation)
    assert (said.adapted_from, said.records, said.rate) == (model.fingerprint, 1500, RATE)
    assert again.provenance.data == model.provenance.data


def test_a_spoiled_note_does_not_make_a_model_unusable(model: Model) -> None:
    import msgspec

    spoiled = msgspec.structs.replace(model.provenance, params={"adaptation": {"records": "many"}})
    assert adaptation_of(replace(model, provenance=spoiled)) is None


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        (MIN_RECORDS - 1, {}, "too few to adapt to"),
        (100, {"rate": 0.0}, "false-alarm rate"),
        (100, {"rate": 1.0}, "false-alarm rate"),
        (100, {"references": 1}, "references must lie"),
        (100, {"references": 1 << 21}, "references must lie"),
    ],
)
def test_what_cannot_work_is_not_tried(
    model: Model, site: Batch, records: int, options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        adapt(model, site[:records], **options)  # type: ignore[arg-type]


def test_a_warm_up_of_attacks_alone_is_refused(model: Model) -> None:
    flood = attacks(model, "syn_flood")
    clear = clearly_attacks(model, flood)
    with pytest.raises(InputError, match="look like known attacks"):
        adapt(model, concat_batches([flood[clear]] * 2))


def test_clear_attacks_are_few_among_ordinary_records_and_most_of_the_attacks(model: Model, site: Batch) -> None:
    assert clearly_attacks(model, site).mean() < 0.005
    assert clearly_attacks(model, attacks(model, "syn_flood")).mean() > 0.8


def test_what_the_model_does_not_know_is_no_clear_attack_because_it_is_far_from_all(model: Model) -> None:
    far = attacks(model, HELD_BACK[1])
    far = replace(far, num=far.num + np.float32(40))
    assert not clearly_attacks(model, far).any()


def test_lookalikes_give_way_and_nothing_else_does(model: Model, site: Batch) -> None:
    """An attack referent that is in truth an ordinary record of this site draws its like until it is replaced."""
    is_normal = model.encoding.label_table().is_normal
    place = int(np.flatnonzero(~is_normal[model.reference.label])[0])
    reference = model.reference[np.arange(len(model.reference))]
    verdicts = Linker(model, LinkerConfig(referent_window=0)).process(site[:1000])
    typical = int(np.argmin(verdicts.normal))
    reference.num[place], reference.code[place] = site.num[typical], site.code[typical]
    planted = replace(model, reference=reference)
    cleaned, replaced = without_lookalikes(planted, site[:1000], 0.0)
    assert replaced >= 1
    assert is_normal[cleaned.reference.label[place]]
    assert planted.reference.label[place] == model.reference.label[place], "the model given is not changed"
    assert not judged(replace(cleaned, calibration=None, rooted=False), site[:1000]).any()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(MIN_RECORDS, 400), references=st.integers(2, 300), same=st.booleans(), seed=st.integers(0, 99))
def test_no_size_and_no_repetition_breaks_it(
    model: Model, site: Batch, n: int, references: int, same: bool, seed: int
) -> None:
    rows = np.zeros(n, np.int64) + 3 if same else np.arange(n)
    adapted = adapt(model, site[rows], rate=0.001, references=references, seed=seed)
    said = adaptation_of(adapted)
    assert said is not None
    assert said.references <= min(references, n - said.attacks)
    assert np.isfinite(adapted.reference.num).all()
    assert adapted.calibration is not None
    assert np.isfinite(adapted.calibration.root)
    Linker(adapted, LinkerConfig()).process(site[:50])
