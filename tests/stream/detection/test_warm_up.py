"""The warm-up: the model changes at one record, in any cut and after any restart, and failing is not the end."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays
from netclust.records.batch import Batch
from netclust.scoring.model import Model
from netclust.stream.detection.warm_up import WarmUp

CALM = simulate(500, seed=2, day=1, attacks=()).table()
REFERENCES = 40


@pytest.fixture
def site(small_model: Model) -> Batch:
    return small_model.encoding.encode(CALM)


def new(model: Model, *, reserve: int = 0, records: int = 200) -> WarmUp:
    return WarmUp(model, records=records, references=REFERENCES, rate=0.01, reserve=reserve)


def fitted_at(warm_up: WarmUp, site: Batch, step: int) -> tuple[int, Model]:
    """Give records in steps, none beyond what it asks for: at which record it is over, and the model."""
    at = 0
    while True:
        count = min(step, warm_up.until_next)
        model = warm_up.take(site[at : at + count])
        at += count
        if model is not None:
            return at, model
        assert warm_up.active


@pytest.mark.parametrize("reserve", [0, 100])
@pytest.mark.parametrize("step", [7, 50, 10_000])
def test_the_model_comes_at_the_same_record_and_is_the_same_in_any_cut(
    small_model: Model, site: Batch, reserve: int, step: int
) -> None:
    at, model = fitted_at(new(small_model, reserve=reserve), site, step)
    assert at == 200 + reserve
    assert len(model.reference) == len(small_model.reference) + REFERENCES
    _, whole = fitted_at(new(small_model), site, 200)
    assert model.fingerprint == whole.fingerprint  # the reserve is not learned from


@pytest.mark.parametrize(("reserve", "stop"), [(0, 0), (0, 60), (100, 0), (100, 60), (100, 200), (100, 260)])
def test_after_a_restart_it_continues(small_model: Model, site: Batch, reserve: int, stop: int) -> None:
    first = new(small_model, reserve=reserve)
    for begin in range(0, stop, 20):
        assert first.take(site[begin : begin + 20]) is None
    second = new(small_model, reserve=reserve)
    second.restore(first.left, first.state(), "here")
    assert (second.left, second.until_next, second.progress) == (first.left, first.until_next, first.progress)
    at, model = fitted_at(second, site[stop:], 20)
    assert at + stop == 200 + reserve
    assert model.fingerprint == fitted_at(new(small_model), site, 200)[1].fingerprint


def test_progress_goes_from_0_to_1_over_records_and_reserve(small_model: Model, site: Batch) -> None:
    warm_up = new(small_model, reserve=100)
    assert (warm_up.progress, warm_up.until_next, warm_up.active) == (0.0, 200, True)
    warm_up.take(site[:150])
    assert (warm_up.progress, warm_up.until_next) == (0.5, 50)
    warm_up.take(site[150:200])
    assert warm_up.until_next == 100
    warm_up.take(site[200:299])
    assert (warm_up.until_next, warm_up.active) == (1, True)
    assert warm_up.take(site[299:300]) is not None
    assert (warm_up.progress, warm_up.active, warm_up.state()) == (1.0, False, {})


def test_no_warm_up_where_none_is_wanted_or_the_model_fits_the_site_already(small_model: Model, site: Batch) -> None:
    none = new(small_model, records=0)
    assert (none.active, none.progress) == (False, 1.0)
    _, adapted = fitted_at(new(small_model), site, 200)
    assert not new(adapted).active


@pytest.mark.parametrize("reserve", [0, 100])
def test_a_site_that_cannot_be_learned_begins_again_with_other_records(
    small_model: Model, site: Batch, reserve: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Model:
        raise InputError("hardly anything but attacks")

    warm_up = new(small_model, reserve=reserve)
    with monkeypatch.context() as patch:
        patch.setattr("netclust.stream.detection.warm_up.adapt", refuse)
        with pytest.raises(InputError, match="hardly anything"):
            fitted_at(warm_up, site, 50)
    assert (warm_up.left, warm_up.state()) == (200 + reserve, {})
    later = site[300:]
    at, model = fitted_at(warm_up, later if not reserve else site, 50)
    assert at == 200 + reserve
    expected = fitted_at(new(small_model), later if not reserve else site, 200)[1]
    assert model.fingerprint == expected.fingerprint


def test_records_of_another_schema_or_of_different_length_are_refused(small_model: Model, site: Batch) -> None:
    warm_up = new(small_model)
    warm_up.take(site[:50])
    for name in ("site.num", "site.code", "site.time"):
        arrays: Arrays = dict(warm_up.state())
        arrays[name] = arrays[name][:-1]
        with pytest.raises(ModelError, match=r"^here: .* do not fit the model"):
            new(small_model).restore(150, arrays, "here")
        if name != "site.time":
            arrays = {**warm_up.state(), name: warm_up.state()[name][:, 1:]}
            with pytest.raises(ModelError, match="do not fit"):
                new(small_model).restore(150, arrays, "here")
    assert np.array_equal(warm_up.state()["site.num"], site.num[:50])
