"""Multi-label models as a structured task: features, losses, oracles, and what theory says of training with them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from netclust.errors import InputError
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.models.multilabel.binary_network import METHODS, Inference, Labelling
from netclust.models.multilabel.multilabel_problem import LabelRows, MultilabelProblem, hamming, hamming_rows
from netclust.models.multilabel.oracle_theory import Approximate, most_constraints, objective


def drawn(seed: int, rows: int = 30, labels: int = 4, features: int = 3) -> tuple[LabelRows, Any]:
    """Labels of a noisy network, so that no weights are right everywhere."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(rows, features - 1)), np.ones(rows)])
    Y = (X @ rng.normal(size=(features, labels)) + rng.normal(0, 0.8, (rows, labels)) > 0).astype(np.uint8)
    Y[:, 1] |= Y[:, 0]
    return LabelRows(X), Y


def every_output(labels: int) -> list[Any]:
    return [np.array(y, float) for y in product((0.0, 1.0), repeat=labels)]


def plain_features(x: LabelRows, h: Labelling, edges: bool) -> Any:
    total: Any = 0
    for row, y, pairs in zip(np.asarray(x.features), h.labels, h.pairs(), strict=True):
        total = total + np.concatenate([np.outer(y, row).ravel(), pairs if edges else []])
    return total / len(x)


@pytest.mark.parametrize("edges", [True, False])
def test_scores_are_linear_in_the_features(edges: bool) -> None:
    x, y = drawn(0)
    problem = MultilabelProblem(4, 3, edges=edges)
    assert problem.dimension == 12 + 6 * edges
    rng = np.random.default_rng(1)
    for labels in (y.astype(float), rng.choice([0.0, 0.5, 1.0], y.shape)):
        w = rng.normal(size=problem.dimension)
        h = Labelling(labels, problem.pair(w) > 0)
        assert np.allclose(problem.joint_features(x, h), plain_features(x, h, edges))
        assert problem.scores(x, h, w).mean() == pytest.approx(w @ problem.joint_features(x, h))


def test_published_numbers_of_weights() -> None:
    for labels, features, expected in ((6, 294, 1779), (14, 103, 1533), (10, 47236, 472405), (10, 120, 1245),
                                       (6, 6000, 36015), (10, 40, 445)):  # fmt: skip
        assert MultilabelProblem(labels, features).dimension == expected


@pytest.mark.parametrize("oracle", METHODS)
def test_the_oracle_finds_the_labelling_of_the_plain_sum(oracle: Inference) -> None:
    x, y = drawn(2, rows=12)
    problem = MultilabelProblem(4, 3, oracle=oracle)
    w = np.random.default_rng(3).normal(size=problem.dimension) * 20
    h, loss = problem.max_violating(x, y, w, 2.0)
    assert loss == pytest.approx(hamming(y, h.labels)) == pytest.approx(problem.loss(y, h))
    found = problem.scores(x, h, w) + 2.0 * hamming_rows(y, h.labels)
    for i in range(len(x)):
        row = x.take(np.array([i]))
        best = max(
            float(problem.scores(row, Labelling(z[None], h.attractive), w)[0]) + 2.0 * 100 * np.abs(y[i] - z).mean()
            for z in every_output(4)
        )
        if oracle == "exact":
            assert found[i] == pytest.approx(best)
        elif oracle in ("lp", "cut"):
            assert found[i] >= best - 1e-9
        else:
            assert found[i] <= best + 1e-9


def test_rows_of_a_sparse_matrix_stay_sparse() -> None:
    x, y = drawn(4)
    sparse = LabelRows(scipy.sparse.csr_matrix(x.features))
    problem = MultilabelProblem(4, 3, oracle="cut")
    fits = [OneSlack(C=100.0).fit(problem, [(rows, y)]) for rows in (x, sparse)]
    assert np.allclose(fits[0].w, fits[1].w)
    wide = LabelRows(scipy.sparse.random(200, 50_000, density=1e-4, format="csr", random_state=0))  # 80 MB if dense
    labels = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(np.uint8)
    problem = MultilabelProblem(3, 50_000)
    fit = OneSlack(C=10.0, max_iterations=3).fit(problem, [(wide, labels)])
    assert problem.predict(wide.take(np.arange(5)), fit.w).labels.shape == (5, 3)


def test_blocks_of_one_row_train_the_same_model() -> None:
    x, y = drawn(5, rows=15)
    problem = MultilabelProblem(4, 3)
    whole = OneSlack(C=50.0, epsilon=0.001).fit(problem, [(x, y)])
    apart = [(x.take(np.array([i])), y[i : i + 1]) for i in range(15)]
    for learner in (OneSlack(C=50.0, epsilon=0.001), NSlack(C=50.0, epsilon=0.001)):
        fit = learner.fit(problem, apart)
        assert fit.objective == pytest.approx(whole.objective, abs=2 * 0.001 * 50)
    assert FrankWolfe(C=50.0).fit(problem, apart).objective == pytest.approx(whole.objective, rel=0.05)


def test_without_edges_labels_are_independent() -> None:
    x, y = drawn(6)
    problem = MultilabelProblem(4, 3, edges=False)
    fit = OneSlack(C=1000.0).fit(problem, [(x, y)])
    assert (problem.predict(x, fit.w).labels == (problem.theta(x, fit.w) > 0)).all()
    assert fit.xi + 0.1 >= hamming(y, problem.predict(x, fit.w).labels)


# What theory says (spec: Lemma 1, Theorems 8 to 13), on problems whose outputs can all be tried.


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("oracle", [*METHODS, 0.9, 0.7])
def test_training_keeps_its_bounds(oracle: Any, seed: int) -> None:
    x, y = drawn(seed)
    C, epsilon = 200.0, 0.05
    exact = MultilabelProblem(4, 3)
    rho = oracle if isinstance(oracle, float) else None
    problem = MultilabelProblem(4, 3, oracle="exact" if rho else oracle, predictor="exact" if rho else oracle, rho=rho)
    best = OneSlack(C=C, epsilon=1e-4).fit(exact, [(x, y)])
    fit = OneSlack(C=C, epsilon=epsilon).fit(problem, [(x, y)])
    assert fit.converged

    # Theorems 8, 11: whatever the oracle, so many constraints. |psi| of a row is at most that of all labels on.
    radius = 2 * max(float(np.linalg.norm(np.append(np.tile(row, 4), np.ones(6)))) for row in x.features)
    assert fit.iterations <= most_constraints(C, epsilon, 100.0, radius)

    h, loss = problem.max_violating(x, y, fit.w, 1.0)
    gold = float(exact.scores(x, exact.gold(x, y, fit.w), fit.w).mean())
    value = float(problem.scores(x, h, fit.w).mean()) + loss
    worst, worst_loss = exact.max_violating(x, y, fit.w, 1.0)
    needed = float(exact.scores(x, worst, fit.w).mean()) + worst_loss - gold  # H of the worst output
    risk = hamming(y, problem.predict(x, fit.w).labels)
    if oracle in ("lp", "cut"):
        # Theorem 12: feasible in the full program, and so no better than its optimum; Theorem 13: a bound on the risk.
        assert needed <= fit.xi + epsilon + 1e-9
        assert objective(fit.w, C, fit.xi + epsilon) >= best.dual - 1e-6
        assert fit.xi + epsilon >= risk
        return
    share = min(1.0, value / (needed + gold))  # the rho that this call reached
    search = Approximate(share, value, gold)
    assert needed <= search.feasible_slack() + 1e-9  # Lemma 1
    low, high = search.optimum(fit.w, C, fit.xi)  # Theorem 9
    assert low - 1e-6 <= best.objective
    assert best.dual <= high + 1e-6
    if oracle == "exact":
        assert fit.xi + epsilon >= risk


@pytest.mark.parametrize("seed", range(5))
def test_the_risk_of_an_approximate_predictor_stays_within_its_bound(seed: int) -> None:
    """Theorem 10, with predictions that are as bad as rho allows."""
    x, y = drawn(seed, rows=10)
    problem, rng = MultilabelProblem(4, 3), np.random.default_rng(seed)
    for scale in (1.0, 10.0, 100.0):
        w = rng.normal(size=problem.dimension) * scale
        w[-6:] = np.abs(w[-6:])  # the best value is above 0
        h, loss = problem.max_violating(x, y, w, 1.0)
        gold = problem.scores(x, problem.gold(x, y, w), w)
        xi = float((problem.scores(x, h, w) - gold).mean()) + loss
        outputs = every_output(4)
        values = np.array([problem.scores(x, Labelling(np.tile(z, (10, 1)), h.attractive), w) for z in outputs])
        losses = np.array([hamming_rows(y, np.tile(z, (10, 1))) for z in outputs])
        for rho in (0.8, 0.5):
            allowed = values >= rho * values.max(axis=0) - 1e-12
            risk = float(np.where(allowed, losses, 0.0).max(axis=0).mean())
            bound = Approximate(rho, 0.0, float(gold.mean())).risk_bound(xi)
            assert risk <= bound + 1e-9


def test_bad_rows_are_refused() -> None:
    x, y = drawn(0)
    problem = MultilabelProblem(4, 3)
    w = np.zeros(problem.dimension)
    with pytest.raises(InputError, match="labels have shape"):
        problem.max_violating(x, y[:, :3], w, 1.0)
    with pytest.raises(InputError, match="rows have 3 features, the model 5"):
        MultilabelProblem(4, 5).predict(x, w)
    with pytest.raises(InputError, match="features are a matrix"):
        LabelRows(np.zeros(3))
    with pytest.raises(InputError, match="a block of rows is empty"):
        problem.joint_features(LabelRows(np.zeros((0, 3))), Labelling(np.zeros((0, 4)), np.zeros((4, 4), bool)))
    with pytest.raises(InputError, match="inference 'magic'"):
        MultilabelProblem(4, 3, oracle="magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 labels and 3 features"):
        MultilabelProblem(0, 3)
    with pytest.raises(InputError, match="rho is 0"):
        Approximate(0.0, 1.0, 1.0)
