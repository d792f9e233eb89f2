"""Steering by answers: towards the true side, by small steps, never far from where the weights began."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from netclust.datasets.simulators.simulate import simulate
from netclust.linking.weight_updates import REACH, STEP, Record, update_margin, update_weights
from netclust.models.network.train_network import train_network
from netclust.scoring.model import Model


@pytest.fixture(scope="module")
def model() -> Model:
    return train_network(simulate(2000, seed=1).table(), seed=0)


@pytest.fixture
def sides(model: Model) -> tuple[Record, Record, Record]:
    """A record and two referents that differ from it in other attributes."""
    reference = model.reference
    record, right = ((reference.num[i], reference.code[i]) for i in (0, 1))
    gaps = np.abs(reference.num - record[0]) - np.abs(right[0] - record[0])
    far = int(np.argmax((gaps > 0.01).sum(axis=1) * (gaps < -0.01).sum(axis=1)))
    return record, right, (reference.num[far], reference.code[far])


def ratios(after: Model, before: Model, name: str = "averaged") -> NDArray[np.float64]:
    features = before.layout.features
    return np.asarray(getattr(after, name)[:features] / getattr(before, name)[:features])


def test_the_margin_is_how_much_nearer_the_true_side_is(model: Model, sides: tuple[Record, Record, Record]) -> None:
    record, right, wrong = sides
    assert update_margin(model, record, right, wrong) == pytest.approx(-update_margin(model, record, wrong, right))
    assert update_margin(model, record, right, right) == 0
    assert update_margin(model, record, record, wrong) > 0


def test_an_answer_raises_the_margin_and_keeps_every_sign(model: Model, sides: tuple[Record, Record, Record]) -> None:
    record, right, wrong = sides
    for near, far in ((right, wrong), (wrong, right)):
        after = update_weights(model, record, near, far, rate=0.5, start=model)
        assert update_margin(after, record, near, far) > update_margin(model, record, near, far)
        for name in ("averaged", "last"):
            assert not np.array_equal(getattr(after, name), getattr(model, name))
            assert np.all(ratios(after, model, name) > 0)
        features = model.layout.features
        assert np.array_equal(after.averaged[features:], model.averaged[features:])


def test_weights_move_where_the_sides_differ_and_nowhere_else(
    model: Model, sides: tuple[Record, Record, Record]
) -> None:
    record, right, wrong = sides
    moved = np.log(ratios(update_weights(model, record, right, wrong, rate=0.5, start=model), model))
    far = np.full(len(moved), np.inf) if model.far is None else model.far
    gap = np.minimum(np.abs(record[0] - wrong[0]), far) - np.minimum(np.abs(record[0] - right[0]), far)
    assert np.all(np.sign(moved[np.abs(gap) > 1e-6]) == np.sign(gap[np.abs(gap) > 1e-6]))
    assert np.all(np.abs(moved[np.abs(gap) < 1e-9]) < 1e-12)
    small = np.log(ratios(update_weights(model, record, right, wrong, rate=0.25, start=model), model))
    free = (np.abs(moved) < STEP * 0.999) & (np.abs(moved) > 1e-9)
    assert np.allclose(moved[free], 2 * small[free])


def test_a_verdict_that_is_wrong_moves_more_than_one_that_is_safe(
    model: Model, sides: tuple[Record, Record, Record]
) -> None:
    record, right, wrong = sides
    m = update_margin(model, record, right, wrong)
    near, far = (right, wrong) if m > 0 else (wrong, right)
    safe = np.abs(np.log(ratios(update_weights(model, record, near, far, rate=1e-3, start=model), model)))
    corrected = np.abs(np.log(ratios(update_weights(model, record, far, near, rate=1e-3, start=model), model)))
    assert np.all(corrected >= safe)
    assert np.sum(corrected) / np.sum(safe) == pytest.approx(np.exp(abs(m)), rel=1e-3)


def test_one_answer_moves_a_weight_by_one_step_at_most(model: Model, sides: tuple[Record, Record, Record]) -> None:
    record, right, wrong = sides
    moved = np.log(ratios(update_weights(model, record, wrong, right, rate=1e9, start=model), model))
    assert np.max(moved) == pytest.approx(STEP)
    assert np.min(moved) == pytest.approx(-STEP)


def test_many_answers_move_a_weight_no_further_than_its_reach(
    model: Model, sides: tuple[Record, Record, Record]
) -> None:
    record, right, wrong = sides
    after = model
    for _ in range(round(3 * REACH / STEP)):
        # Whichever side wins by now, the answer is the same: half of the weights go up, half go down.
        after = update_weights(after, record, wrong, right, rate=1e300, start=model)
    moved = np.log(ratios(after, model))
    assert np.all(np.abs(moved) < REACH + 1e-9)
    assert np.max(np.abs(moved)) == pytest.approx(REACH)


def test_huge_margins_are_no_overflow(model: Model, sides: tuple[Record, Record, Record]) -> None:
    record, right, wrong = sides
    huge = replace(model, averaged=model.averaged * 1e6, last=model.last * 1e6)
    for near, far in ((right, wrong), (wrong, right)):
        assert np.all(np.isfinite(update_weights(huge, record, near, far, rate=0.1, start=huge).averaged))
