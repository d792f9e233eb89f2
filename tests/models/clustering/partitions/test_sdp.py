from __future__ import annotations

import numpy as np
import pytest
from every_partition import brute_force, cycle5, planted, random_scores, star
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.clustering.partitions.relaxed import relaxed_partition
from netclust.models.clustering.partitions.rounding import clustering_bounds, round_pivot
from netclust.structures.pairs import PairIndex, all_pairs
from netclust.structures.partition import PairScores, partition_square
from netclust.structures.sdp import relax_sdp
from netclust.structures.sizes import INTERIOR_ITEMS

SOLVERS = ["clarabel", "admm"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("leaves", [3, 4, 5])
def test_a_star_is_bounded_by_the_root_of_its_leaves(leaves, solver):
    relaxed = relax_sdp(star(leaves), solver=solver)
    assert relaxed.value == pytest.approx(np.sqrt(leaves), abs=1e-4)
    assert relaxed.bound == pytest.approx(np.sqrt(leaves), abs=1e-4)
    assert relaxed.solver == solver


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_cycle_of_five_is_bounded_by_3_0902(solver):
    assert relax_sdp(cycle5(), solver=solver).value == pytest.approx(2.5 * (np.sqrt(5) - 1), abs=1e-4)  # 3.0902


def test_neither_relaxation_is_always_the_tighter_one():
    gaps = [relax_sdp(star(leaves)).value - relaxed_partition(star(leaves)).value for leaves in (3, 4, 5)]
    assert gaps == pytest.approx([np.sqrt(3) - 1.5, 0, np.sqrt(5) - 2.5], abs=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@given(items=st.integers(2, 8), seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_primal_and_dual_are_feasible_equal_and_not_below_a_partition(solver, items, seed):
    scores = random_scores(items, np.random.default_rng(seed))
    relaxed = relax_sdp(scores, solver=solver)
    size = np.abs(scores.values).sum()
    X = partition_square(relaxed.together, items) + np.eye(items)
    assert X.min() >= 0
    assert np.linalg.eigvalsh(X)[0] >= -1e-9
    assert relaxed.value == pytest.approx(scores.values @ relaxed.together)
    assert relaxed.prices.min() >= 0
    dual = np.diag(relaxed.diagonal) - scores.matrix() - partition_square(relaxed.prices, items)
    assert np.linalg.eigvalsh(dual)[0] >= -1e-9 * (1 + size)
    assert relaxed.bound == pytest.approx(relaxed.diagonal.sum() / 2)
    assert -1e-9 * size <= relaxed.bound - relaxed.value <= 2e-6 * size
    assert relaxed.bound >= brute_force(scores) - 1e-9 * (1 + size)


def test_the_two_solvers_do_not_differ():
    scores = planted(25, 4, 1.5, 1)
    interior, steps = (relax_sdp(scores, solver=solver) for solver in SOLVERS)
    assert steps.value == pytest.approx(interior.value, rel=1e-4)
    assert steps.bound >= interior.value - 1e-6


def test_the_solver_follows_the_size_and_stays_certified():
    assert relax_sdp(planted(INTERIOR_ITEMS, 4, 0.5, 0)).solver == "clarabel"
    scores = planted(INTERIOR_ITEMS + 20, 4, 0.5, 0)
    relaxed = relax_sdp(scores)
    assert relaxed.solver == "admm"
    labels = round_pivot(scores, relaxed)
    bounds = clustering_bounds(scores, labels, relaxed)
    assert bounds.value <= bounds.upper
    assert bounds.ratio > 0.999  # little noise: the planted partition, and proof of it


def test_pairs_that_are_not_stored_score_nothing():
    index = PairIndex(np.array([0, 1, 0]), np.array([1, 2, 3]))
    stored = PairScores(4, np.array([1.0, 1.0, -2.0]), index)
    filled = PairScores(4, stored.matrix()[tuple(all_pairs(4))])
    assert relax_sdp(stored).value == pytest.approx(relax_sdp(filled).value)
    assert len(relax_sdp(stored).together) == 3


@pytest.mark.parametrize("items", [0, 1, 2])
def test_a_set_without_scores_is_no_failure(items):
    relaxed = relax_sdp(PairScores(items, np.zeros(items // 2)))
    assert (relaxed.value, relaxed.bound, relaxed.solver) == (0, 0, "none")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("score", "value"), [(2.0, 2.0), (-2.0, 0.0)])
def test_two_items_follow_the_sign(score, value, solver):
    assert relax_sdp(PairScores(2, np.array([score])), solver=solver).value == pytest.approx(value, abs=1e-5)


def test_what_cannot_be_solved_is_refused():
    with pytest.raises(InputError, match="pair score"):
        relax_sdp(PairScores(3, np.array([1.0, np.nan, 0.0])))
    with pytest.raises(InputError, match="solver 'magic'"):
        relax_sdp(star(3), solver="magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too large for the semidefinite relaxation"):
        relax_sdp(PairScores(500, np.ones(124_750)))
