"""The nine features, the learned loss and its regressors, against fractions that were worked out by hand."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from every_partition import partitions
from hypothesis import given, settings
from hypothesis import strategies as st
from learned_loss_cases import mela, random_truth

from netclust.errors import InputError
from netclust.losses.learned_loss import LearnedLoss, Truth, nine_features
from netclust.problems.loss_learning import OnlineRegressor, RegressionSet, Regressor, fit_loss, measure_loss

KEY = [[1, 6], [2, 3, 5, 7], [4]]

ALL = range(1, 8)


def example(response: list[list[int]]) -> tuple[Truth, np.ndarray]:
    """The truth over the items of a response to KEY, and the response's clusters."""
    items = sorted(i for cluster in response for i in cluster)
    entity = {i: k for k, members in enumerate(KEY) for i in members}
    cluster = {i: r for r, members in enumerate(response) for i in members}
    truth = Truth(np.array([entity.get(i, -1) for i in items]), np.array([2, 4, 1]))
    return truth, np.array([cluster[i] for i in items])


PERFECT = "1 1 1"
FIGURE = [  # response; MUC, B3, simplified CEAF as P, R, F1; MELA
    ([[1, 6], [2], [3], [4], [5], [7]], "1 1/4 2/5", "1 4/7 8/11", "3/5 6/5 4/5", 55.353535),
    ([[2, 3], [1], [4], [5], [6], [7]], "1 1/4 2/5", "1 1/2 2/3", "19/30 19/15 38/45", 52.839506),
    ([[*ALL]], "2/3 1 4/5", "3/7 1 3/5", "563/396 563/1188 563/792", 58.787879),
    ([[i] for i in ALL], "0 0 0", "1 3/7 3/5", "59/105 59/45 59/75", 33.777778),
    ([[1, 6, 4], [2, 3], [5, 7]], "3/4 3/4 3/4", "17/21 5/7 85/112", "79/90 79/90 79/90", 66.593915),
    ([[1, 6], [2, 3, 8], [5, 7], [9]], "3/4 3/4 3/4", "2/3 4/7 8/13", "47/84 47/63 94/147", 61.385836),
    (KEY, PERFECT, PERFECT, PERFECT, 100.0),
]


@pytest.mark.parametrize(("response", "muc", "b3", "ceaf", "value"), FIGURE)
def test_the_nine_features_of_the_published_example_do_not_change(
    response: list[list[int]], muc: str, b3: str, ceaf: str, value: float
) -> None:
    truth, z = example(response)
    fractions = [100 * float(Fraction(x)) for x in f"{muc} {b3} {ceaf}".split()]
    assert nine_features(truth, z) == pytest.approx(fractions, abs=1e-12)
    assert mela(truth, z) == pytest.approx(value, abs=5e-7)


def test_missed_and_spurious_mentions_are_counted_as_in_the_published_row() -> None:
    truth, z = example([[1, 6], [2, 3, 8], [5, 7], [9]])
    published = [75, 75, 75, 66.666667, 57.142857, 61.538462, 55.952381, 74.603175, 63.945578]
    assert nine_features(truth, z) == pytest.approx(published, abs=5e-7)
    assert (truth.detected, truth.mentions, truth.links) == (6, 7, 4)
    assert truth.labels.tolist() == [0, 1, 1, 1, 0, 1, 3, 4]


def test_features_of_a_tree_that_still_grows_leave_out_what_is_not_placed() -> None:
    truth, loss = Truth.of_labels([0, 1, 0, 1]), LearnedLoss.mean_f1()
    for z, expected in [
        ([0, -1, -1, -1], 77.777778),
        ([0, 1, -1, -1], 64.444444),
        ([0, 0, -1, -1], 66.666667),
        ([0, 1, 0, -1], 24.358974),
        ([0, 1, 0, 0], 28.692810),
    ]:
        assert loss.rho(nine_features(truth, np.array(z))) == pytest.approx(expected, abs=5e-7)
    assert nine_features(truth, np.full(4, -1)).tolist() == [0.0] * 9


def test_the_simplified_measure_is_not_mistaken_for_a_share() -> None:
    """It can be above 1, and be 1 for a wrong response."""
    alone = nine_features(Truth.of_labels(np.arange(7)), np.zeros(7, np.int64))
    assert alone[6] == pytest.approx(175.0)
    crossed = nine_features(Truth.of_labels([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    assert crossed[8] == pytest.approx(100.0)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
def test_features_do_not_depend_on_names_and_are_whole_for_the_truth(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_truth(rng, n, 4)
    z = rng.integers(-1, 4, size=n)
    renamed = np.where(z >= 0, 7 * (9 - z), z)
    assert np.allclose(nine_features(truth, z), nine_features(truth, renamed), rtol=0, atol=1e-12)
    whole = Truth.of_labels(rng.integers(0, 4, size=n))
    psi = nine_features(whole, whole.labels)
    assert psi[3:] == pytest.approx([100.0] * 6)
    assert psi[:3] == pytest.approx([100.0 if whole.links else 0.0] * 3)


def test_the_scales_of_the_loss_agree() -> None:
    psi, loss = np.arange(9.0), LearnedLoss(np.full(9, 0.5), 2.0)
    assert loss.predicted(psi) == 20.0
    assert loss.rho(psi) == 80.0
    assert loss.scaled(psi, 50) == 40.0


def test_a_saved_loss_comes_back_exactly() -> None:
    loss = LearnedLoss(np.random.default_rng(0).normal(size=9), 1 / 3)
    back = LearnedLoss.from_json(json.loads(json.dumps(loss.to_json())))
    assert back.v.tolist() == loss.v.tolist()
    assert back.bias == loss.bias


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="smaller than what was found"):
        Truth(np.array([0, 0]), np.array([1]))
    with pytest.raises(InputError, match="spurious"):
        Truth(np.array([0, 3]), np.array([1]))
    with pytest.raises(InputError, match="3 items were clustered"):
        nine_features(Truth.of_labels([0, 1]), np.zeros(3, np.int64))
    with pytest.raises(InputError, match="finite"):
        LearnedLoss(np.array([np.nan]))
    with pytest.raises(InputError, match="written as"):
        LearnedLoss.from_json({"v": [1.0]})
    with pytest.raises(InputError, match="2 features for 9 weights"):
        LearnedLoss.mean_f1().rho(np.ones(2))
    with pytest.raises(InputError, match="row of features each"):
        fit_loss(np.ones((2, 3)), np.ones(3))
    with pytest.raises(InputError, match="least-squares"):
        fit_loss(np.ones((2, 3)), np.ones(2), "ridge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stable between 0 and 2"):
        OnlineRegressor(9, eta=2.0)


@pytest.fixture(scope="module")
def every_response() -> tuple[np.ndarray, np.ndarray]:
    """The features and MELA of all 877 partitions of the published example's mentions."""
    truth = Truth.of_labels([0, 1, 1, 2, 1, 0, 1])
    rows = partitions(7)
    assert len(rows) == 877
    return np.array([nine_features(truth, z) for z in rows]), np.array([mela(truth, z) for z in rows])


def test_least_squares_over_all_partitions_is_as_published(every_response: tuple[np.ndarray, np.ndarray]) -> None:
    psi, target = every_response
    mse, scc = measure_loss(fit_loss(psi, target, "least-squares"), psi, target)
    assert mse == pytest.approx(1.964, abs=5e-4)
    assert scc == pytest.approx(0.9865, abs=5e-5)
    v = np.linalg.lstsq(psi, target, rcond=None)[0]
    mse, scc = measure_loss(LearnedLoss(v), psi, target)
    assert (mse, scc) == (pytest.approx(3.884, abs=5e-4), pytest.approx(0.9738, abs=5e-5))
    assert measure_loss(LearnedLoss.mean_f1(), psi, target)[0] == pytest.approx(127.5, abs=0.05)


def test_vector_regression_is_hardly_worse_than_least_squares(every_response: tuple[np.ndarray, np.ndarray]) -> None:
    psi, target = every_response
    loss = fit_loss(psi, target)
    assert measure_loss(loss, psi, target)[0] == pytest.approx(1.964, abs=0.01)
    again = fit_loss(psi, target)
    assert loss.v.tolist() == again.v.tolist()


def test_few_examples_with_features_that_go_together_do_not_ruin_the_usual_regressor(
    every_response: tuple[np.ndarray, np.ndarray],
) -> None:
    psi, target = every_response
    errors: dict[Regressor, list[float]] = {"svr": [], "least-squares": []}
    for seed in range(20):
        few = np.random.default_rng(seed).choice(len(psi), 15, replace=False)
        for method, found in errors.items():
            found.append(measure_loss(fit_loss(psi[few], target[few], method), psi, target)[0])
    assert np.mean(errors["svr"]) < np.mean(errors["least-squares"])


def test_error_and_correlation_are_those_worked_out_by_hand() -> None:
    psi, target = np.array([[50.0], [60.0], [70.0], [90.0]]), np.array([52.0, 58.0, 75.0, 88.0])
    mse, scc = measure_loss(LearnedLoss(np.ones(1)), psi, target)
    assert mse == 9.25
    assert scc == pytest.approx(0.960733, abs=5e-7)
    assert measure_loss(LearnedLoss(np.zeros(1)), psi, target)[1] == 0.0


@pytest.mark.parametrize("method", ["least-squares", "svr"])
def test_a_feature_that_never_varies_does_not_break_the_fit(method: Regressor) -> None:
    rng = np.random.default_rng(0)
    psi = np.column_stack([rng.uniform(0, 100, 50), np.full(50, 100.0), np.zeros(50)])
    loss = fit_loss(psi, 0.5 * psi[:, 0] + 20, method)
    assert measure_loss(loss, psi, 0.5 * psi[:, 0] + 20)[0] < 0.1
    assert np.abs(loss.v[1:]).max() < 1e-6


def test_an_output_that_comes_again_is_not_counted_again() -> None:
    seen = RegressionSet()
    for psi, target in [([1.0, 2.0], 3.0), ([1.0, 2.0], 3.0), ([1.0, 2.0], 4.0), ([2.0, 1.0], 3.0)]:
        seen.add(np.array(psi), target)
    assert seen.features.tolist() == [[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]
    assert seen.targets.tolist() == [3.0, 4.0, 3.0]


def test_the_printed_step_of_the_online_regressor_diverges_and_the_normalised_one_does_not() -> None:
    v, psi, residuals = np.zeros(9), np.ones(9), []
    for _ in range(4):
        residuals.append(0.3 - v @ psi)
        v = v + residuals[-1] * psi
    assert residuals == pytest.approx([0.3, -2.4, 19.2, -153.6])
    for eta in (0.1, 1.0, 1.9):
        online = OnlineRegressor(9, eta)
        errors = np.abs([online.learn(psi, 0.3) for _ in range(200)])
        assert errors[0] == 0.3
        assert (np.diff(errors) <= 1e-15).all()
        assert errors[-1] < 1e-6


def test_the_online_regressor_goes_back_and_stays_when_its_error_rises() -> None:
    online = OnlineRegressor(2, eta=1.0)
    psi = np.array([60.0, 80.0])
    for target in (70.0, 70.5):
        online.learn(psi, target)
        online.end_epoch()
    kept = online.loss
    assert not online.frozen
    online.learn(psi, 20.0)
    online.end_epoch()
    assert online.frozen
    assert online.loss.v.tolist() == kept.v.tolist()
    assert online.learn(psi, 20.0) == pytest.approx(-50.5)
    online.end_epoch()
    assert online.loss.v.tolist() == kept.v.tolist()
    assert online.errors == pytest.approx([70.0, 0.5, 50.5])


def test_the_online_regressor_learns_a_linear_measure(every_response: tuple[np.ndarray, np.ndarray]) -> None:
    psi, target = every_response
    online = OnlineRegressor(9)
    for _ in range(30):
        for row, value in zip(psi, target, strict=True):
            online.learn(row, value)
        online.end_epoch()
    assert measure_loss(online.loss, psi, target)[1] > 0.95
