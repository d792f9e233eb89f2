"""The program over a working set: against a general solver, its closed form, its caps, and planes that repeat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from netclust.learners.qp import solve_qp
from netclust.learners.working_set import WorkingSet


def by_scipy(G, losses, group, caps):
    """The value of the dual by SLSQP, in units in which it is about 1."""
    unit, height, T = caps.max(), np.abs(losses).max(), len(losses)
    sums = (group == np.arange(len(caps))[:, None]).astype(float)
    H, ell = G * unit / height, losses / height
    found = minimize(
        lambda a: a @ H @ a / 2 - ell @ a,
        (sums.T @ (caps / unit / np.maximum(sums.sum(axis=1), 1))) / 2,
        jac=lambda a: H @ a - ell,
        bounds=[(0, None)] * T,
        constraints=LinearConstraint(sums, -np.inf, caps / unit),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assume(found.success and (sums @ found.x <= caps / unit + 1e-9).all())  # now and then it leaves what is allowed
    return -found.fun * unit * height


@st.composite
def programs(draw):
    seed, T, D = draw(st.integers(0, 10_000)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    groups, C = draw(st.integers(1, 3)), draw(st.sampled_from([0.01, 1.0, 30.0, 1000.0]))
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(T, D)) * draw(st.sampled_from([0.1, 1.0]))
    return vectors, rng.uniform(1, 100, T), rng.integers(0, groups, T), np.full(groups, C / groups)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_the_value_equals_a_general_solvers(program) -> None:
    vectors, losses, group, caps = program
    G = vectors @ vectors.T
    solution = solve_qp(G, losses, group, caps)
    general = by_scipy(G, losses, group, caps)
    # SLSQP now and then ends early, below the maximum; the gap certifies ours
    assert solution.value >= general * (1 - 1e-6) - 1e-9
    assert solution.value == pytest.approx(general, rel=1e-3, abs=1e-9)
    assert -1e-9 * solution.value <= solution.gap <= 1e-8 * solution.value
    assert (solution.alpha >= 0).all()
    assert (np.bincount(group, solution.alpha, len(caps)) <= caps * (1 + 1e-12)).all()


@settings(max_examples=60, deadline=None)
@given(programs())
def test_the_primal_form_gives_the_same_solution(program) -> None:
    vectors, losses, group, caps = program
    solution = solve_qp(vectors @ vectors.T, losses, group, caps)
    narrow = np.concatenate([vectors, vectors, vectors])  # more planes than twice the dimensions, some of them equal
    for _ in range(3):
        narrow = np.concatenate([narrow, narrow])
    times = len(narrow) // len(vectors)
    again = solve_qp(narrow @ narrow.T, np.tile(losses, times), np.tile(group, times), caps, narrow)
    assert again.value == pytest.approx(solution.value, rel=1e-8)
    assert again.alpha @ narrow == pytest.approx(solution.alpha @ vectors, rel=1e-4, abs=1e-4 * np.abs(vectors).max())


def test_the_closed_form_of_one_constraint_is_met() -> None:
    psi, m, C = np.array([1.0, 2.0]), 5, 1000.0
    g = psi[None] / m**2
    solution = solve_qp(g @ g.T, np.array([100.0]), np.zeros(1, np.int64), np.array([C]))
    w = solution.alpha @ g
    assert w == pytest.approx(40 * psi, rel=1e-9)
    assert 100 - g[0] @ w == pytest.approx(92, rel=1e-9)
    assert 100 - C * psi @ psi / m**4 == pytest.approx(92)
    free = solve_qp(g @ g.T, np.array([100.0]), np.zeros(1, np.int64), np.array([1e7]))  # no slack is left
    assert np.linalg.norm(free.alpha @ g) == pytest.approx(100 * m**2 / np.linalg.norm(psi), rel=1e-6)


def test_planes_that_repeat_or_vanish_keep_the_solution() -> None:
    rng = np.random.default_rng(0)
    g = rng.normal(size=(3, 4))
    vectors = np.concatenate([g, g, g[:1], np.zeros((2, 4))])
    losses = np.array([50.0, 60, 70, 50, 60, 70, 50, 5, 0])
    for C in (1.0, 1e6):
        solution = solve_qp(vectors @ vectors.T, losses, np.zeros(9, np.int64), np.array([C]))
        once = solve_qp(
            vectors[[0, 1, 2, 7]] @ vectors[[0, 1, 2, 7]].T, losses[[0, 1, 2, 7]], np.zeros(4, np.int64), np.array([C])
        )
        assert solution.value == pytest.approx(once.value, rel=1e-8)
        assert solution.gap <= 1e-8 * solution.value


def test_an_example_takes_no_more_than_its_share_of_c() -> None:
    """E11: without the cap of its own an example would take all of C."""
    vectors, losses = np.eye(2) * 0.01, np.array([100.0, 1.0])
    apart = solve_qp(vectors @ vectors.T, losses, np.array([0, 1]), np.array([5.0, 5.0]))
    assert apart.alpha == pytest.approx([5, 5], rel=1e-9)
    shared = solve_qp(vectors @ vectors.T, losses, np.zeros(2, np.int64), np.array([10.0]))
    assert shared.alpha == pytest.approx([10, 0], abs=1e-8)


def test_no_planes_have_value_zero() -> None:
    solution = solve_qp(np.zeros((0, 0)), np.zeros(0), np.zeros(0, np.int64), np.ones(1))
    assert (solution.value, solution.gap, len(solution.alpha)) == (0, 0, 0)


def test_the_gram_matrix_that_grows_equals_the_whole_one() -> None:
    rng = np.random.default_rng(1)
    planes = WorkingSet(3, np.array([10.0]))
    for t in range(40):
        planes.add(rng.normal(size=3), float(rng.uniform(0, 100)))
        planes.solve()
        if t % 7 == 6:
            value, count = planes.dual, planes.count
            planes.purge(3)
            assert planes.count < count
            planes.solve()
            assert planes.dual == pytest.approx(value, rel=1e-8)
        assert planes.gram == pytest.approx(planes.vectors @ planes.vectors.T, rel=1e-12, abs=1e-12)
    assert planes.w == pytest.approx(planes.alpha @ planes.vectors)
    again = WorkingSet.from_arrays(planes.arrays(), 3, planes.caps, "x")
    assert all((a == again.arrays()[name]).all() for name, a in planes.arrays().items())
