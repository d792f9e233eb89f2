from __future__ import annotations

import numpy as np
import pytest
from every_partition import FIGURE_31, FIGURE_32, FIVE, brute_force, cycle5, planted, random_scores, star
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.losses.partition_loss import with_pairwise_loss
from netclust.models.clustering.partitions.exact import exact_clusters
from netclust.models.clustering.partitions.relaxed import relaxed_partition
from netclust.structures.pairs import PairIndex, all_pairs
from netclust.structures.partition import PairScores, canonical_partition


@given(st.integers(2, 8), st.integers(0, 10**6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_partition_is_better_than_the_exact_one(items, seed, whole_numbers):
    scores = random_scores(items, np.random.default_rng(seed))
    if whole_numbers:  # many ties and zeros
        scores = PairScores(items, np.round(2 * scores.values))
    found = exact_clusters(scores)
    assert found.optimal
    assert found.value == pytest.approx(brute_force(scores), abs=1e-7)
    assert found.value == scores.within(found.labels) == found.bound
    assert found.labels.tolist() == canonical_partition(found.labels).tolist()


@pytest.mark.parametrize(
    ("scores", "labels", "value"),
    [
        (FIGURE_31, [0, 0, 0, 0, 1, 1, 1, 2, 2], 47.0),
        (FIGURE_32, [0, 0, 0, 1, 1], 21.0),
        (with_pairwise_loss(FIGURE_32, np.array([0, 0, 0, 1, 1])), [0, 1, 1, 1, 1], 23.0),
        (FIVE, [0, 0, 0, 1, 1], 2.2),
        (with_pairwise_loss(PairScores(5, FIVE.values / 25), np.array([0, 0, 0, 1, 1])), [0, 0, 1, 1, 0], 20.048),
    ],
)
def test_worked_examples_do_not_end_elsewhere(scores, labels, value):
    found = exact_clusters(scores)
    assert found.labels.tolist() == labels
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(("scores", "best"), [(star(3), 1), (star(4), 1), (star(5), 1), (cycle5(), 2)])
def test_fractional_relaxations_do_not_pass_as_partitions(scores, best):
    found = exact_clusters(scores)
    assert (found.value, found.optimal) == (best, True)
    assert relaxed_partition(scores).value > best + 0.4


def test_branching_agrees_with_a_mixed_integer_program():
    from every_partition import all_triangles
    from scipy.optimize import LinearConstraint, milp

    for seed in range(4):
        scores = planted(13, 3, 3.0, seed)
        rows = LinearConstraint(all_triangles(13), ub=1.0)
        solved = milp(-scores.values, constraints=rows, integrality=np.ones(78), bounds=(0, 1))
        found = exact_clusters(scores)
        assert found.value == pytest.approx(-solved.fun, abs=1e-6)
        assert found.optimal


def test_a_fractional_set_is_split_until_it_is_proved():
    found = exact_clusters(planted(20, 4, 4.0, 0))
    assert found.programs > 0
    assert found.optimal
    assert found.value == pytest.approx(118.5635838785205)


def test_sixty_items_with_noise_are_no_trouble():
    scores = planted(60, 8, 1.2, 0)
    found = exact_clusters(scores)
    assert found.optimal
    assert found.value == pytest.approx(relaxed_partition(scores).value)


def test_a_time_limit_does_not_give_a_bound_that_is_too_low():
    scores = planted(20, 4, 4.0, 0)
    best = exact_clusters(scores).value
    for seconds in (0.0, 0.01, 0.05):
        late = exact_clusters(scores, limit_seconds=seconds)
        assert late.value <= best + 1e-9
        assert late.bound >= best - 1e-9
        assert late.optimal == (late.value == pytest.approx(best) and late.bound == late.value)
    assert not exact_clusters(scores, limit_seconds=0.0).optimal


def test_a_start_is_not_lost_when_time_is_out():
    scores = planted(20, 4, 4.0, 0)
    best = exact_clusters(scores)
    late = exact_clusters(scores, limit_seconds=0.0, start=best.labels)
    assert late.value == best.value
    assert late.labels.tolist() == best.labels.tolist()
    with pytest.raises(InputError, match="labels of 3 items"):
        exact_clusters(scores, start=np.zeros(3))


def test_stored_pairs_do_not_give_anything_but_a_partition():
    rng = np.random.default_rng(5)
    for _ in range(20):
        kept = rng.random(21) < 0.5
        index = PairIndex(*(side[kept] for side in all_pairs(7)))
        stored = PairScores(7, rng.normal(size=int(kept.sum())), index)
        found = exact_clusters(stored)
        assert found.value == pytest.approx(brute_force(stored), abs=1e-9)
        assert found.value == pytest.approx(stored.within(found.labels))


def test_the_order_of_stored_pairs_does_not_matter():
    order = np.random.default_rng(0).permutation(36)
    index = PairIndex(*(side[order] for side in all_pairs(9)))
    shuffled = PairScores(9, FIGURE_31.values[order], index)
    assert exact_clusters(shuffled).labels.tolist() == exact_clusters(FIGURE_31).labels.tolist()
    assert relaxed_partition(shuffled).value == pytest.approx(47)


@pytest.mark.parametrize("items", [0, 1])
def test_a_set_without_pairs_is_no_failure(items):
    found = exact_clusters(PairScores(items, np.zeros(0)))
    assert (found.labels.tolist(), found.value, found.optimal) == ([0] * items, 0.0, True)


@pytest.mark.parametrize(("score", "labels"), [(1.0, [0, 0]), (-1.0, [0, 1]), (0.0, [0, 1])])
def test_two_items_follow_the_sign(score, labels):
    assert exact_clusters(PairScores(2, np.array([score]))).labels.tolist() == labels


def test_what_cannot_be_solved_is_refused():
    with pytest.raises(InputError, match="pair score"):
        exact_clusters(PairScores(3, np.array([1.0, np.nan, 0.0])))
    with pytest.raises(InputError, match="a set of 200 items is too large for branch and cut"):
        exact_clusters(PairScores(200, np.ones(19_900)))
    assert exact_clusters(PairScores(200, -np.ones(19_900))).optimal  # nothing connects: nothing to solve
