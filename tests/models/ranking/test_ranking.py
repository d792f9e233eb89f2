"""Rankings: the loss of average precision, both searches, FindMaxRank, Algorithms 7 and 8: by hand, by brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.kernels.structured import rankings as kernels
from netclust.learners.perceptron import Lsp
from netclust.models.ranking.ranking_loss import ap_terms, delta_ap
from netclust.models.ranking.ranking_metrics import average_precision, measure_rankings
from netclust.models.ranking.ranking_problem import HalfStep, JointProblem, RankingProblem, RankQuery, both_steps
from netclust.structures.pairs import StoredPairs, all_pairs
from netclust.structures.partition import PairScores
from netclust.structures.rankings import (
    best_joint,
    best_ranking,
    find_max_rank,
    gold_joint,
    gold_ranking,
    position_weights,
    ranking_score,
    violating_joint,
    violating_ranking,
)

F10_SCORES, F10_LABELS = np.array([2.0, 1.5, 1.0, 0.5, -0.5]), np.array([1, 0, 1, 0, 0])


def value(scores: Any, y: Any, order: Any, C: float) -> float:
    """What the max-violating ranking is searched for."""
    order = np.asarray(order)
    return ranking_score(scores, order) + C * delta_ap(y[order])


def stands_together(order: Any, clusters: Any) -> bool:
    names = [clusters[i] for i in order]
    changes = sum(a != b for a, b in pairwise(names))
    return changes == len(set(names)) - 1


def test_the_loss_is_one_minus_average_precision() -> None:
    """Every 0/1 list up to length 8."""
    for length in range(1, 9):
        for ranked in product((0, 1), repeat=length):
            if any(ranked):
                assert delta_ap(np.array(ranked)) == pytest.approx(1 - average_precision(ranked), abs=1e-12)
                assert (delta_ap(np.array(ranked)) == 0) == (list(ranked) == sorted(ranked, reverse=True))


def test_hand_computed_precisions() -> None:
    found = [average_precision(r) for r in ((1, 0, 1, 0), (0, 0, 1, 1), (0, 1, 0, 1, 1), (0, 0, 0, 1))]
    assert [Fraction(f).limit_denominator(60) for f in found] == [
        Fraction(5, 6), Fraction(5, 12), Fraction(8, 15), Fraction(1, 4)]  # fmt: skip
    assert ap_terms(np.array([0, 1, 0, 1, 1])) == pytest.approx([19 / 60, 0, 3 / 20, 0, 0])
    scores = measure_rankings([(0, 1, 0, 1), (1, 0, 0), (0, 0)])
    assert (scores.map, scores.mrr, scores.p1, scores.queries, scores.skipped) == (0.75, 0.75, 0.5, 2, 1)
    assert np.isnan(measure_rankings([(0, 0)]).map)


@pytest.mark.parametrize(
    ("C", "greedy", "exact"),
    [(0, 3.108333, 3.108333), (1, 3.275, 3.316667), (2, 3.691667, 3.841667), (5, 4.941667, 5.658333),
     (20, 11.191667, 15.783333)],
)  # fmt: skip
def test_hand_computed_searches(C: float, greedy: float, exact: float) -> None:
    """By value: one of the exact orders is a tie."""
    for search, expected in (("greedy", greedy), ("exact", exact)):
        order = violating_ranking(F10_SCORES, F10_LABELS, C, search)  # type: ignore[arg-type]
        assert value(F10_SCORES, F10_LABELS, order, C) == pytest.approx(expected, abs=1e-6)
    assert gold_ranking(F10_SCORES, F10_LABELS).tolist() == [0, 2, 1, 3, 4]
    assert violating_ranking(F10_SCORES, F10_LABELS, 5.0).tolist() == [1, 3, 0, 4, 2]


SOME = st.lists(st.tuples(st.floats(-3, 3), st.integers(0, 1)), min_size=1, max_size=6)


@settings(max_examples=60)
@given(some=SOME, C=st.sampled_from([0.0, 0.5, 2.0, 10.0]))
def test_no_ranking_violates_more_than_the_exact_one(some: list[tuple[float, int]], C: float) -> None:
    scores, y = np.array([s for s, _ in some]), np.array([label for _, label in some])
    best = max(value(scores, y, order, C) for order in permutations(range(len(y))))
    exact, greedy = (violating_ranking(scores, y, C, search) for search in ("exact", "greedy"))
    assert value(scores, y, exact, C) == pytest.approx(best, abs=1e-9)
    assert sorted(greedy) == sorted(exact) == list(range(len(y)))
    if C == 0:
        assert ranking_score(scores, best_ranking(scores)) == pytest.approx(best, abs=1e-9)


def exact_twin(right: Any, wrong: Any, weight: Any, C: float) -> tuple[float, list[bool]]:
    """The kernel in plain Python, additions in the same order."""
    P, Q = len(right), len(wrong)
    best: dict[tuple[int, int], tuple[float, bool]] = {(0, 0): (C, False)}
    for a, b in product(range(P + 1), range(Q + 1)):
        k = a + b
        options = []
        if a:
            options.append((best[a - 1, b][0] + weight[k - 1] * right[a - 1] - C * a / (P * k), True))
        if b:
            options.append((best[a, b - 1][0] + weight[k - 1] * wrong[b - 1], False))
        if options:
            best[a, b] = max(options, key=lambda option: option[0])
    a, b, found = P, Q, []
    while a + b:
        found.append(best[a, b][1])
        a, b = (a - 1, b) if found[-1] else (a, b - 1)
    return best[P, Q][0], found[::-1]


def test_the_kernel_equals_its_twin() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        right, wrong = (np.sort(rng.normal(size=n))[::-1].copy() for n in rng.integers(0, 7, 2))
        weight, C = position_weights(len(right) + len(wrong)), float(rng.choice([0, 1, 4]))
        is_right = np.empty(len(weight), np.bool_)
        gain = kernels.place_exactly(right, wrong, weight, C, is_right)
        assert (gain, is_right.tolist()) == exact_twin(right, wrong, weight, C)


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [([0, 1, 1, 2, 0], 4.825), ([0, 1, 2, 0, 3], 4.933333), ([0, 1, 2, 3, 4], 5.266667), ([0] * 5, 5.266667)],
)
def test_hand_computed_find_max_rank(clusters: list[int], expected: float) -> None:
    """By value: the order of the second is a tie."""
    scores = np.array([3.0, 2.5, 2.0, 1.0, 0.5])
    found, score = find_max_rank(scores, np.array(clusters))
    assert stands_together(found, clusters)
    assert score == pytest.approx(ranking_score(scores, found)) == pytest.approx(expected, abs=1e-6)


def test_clusters_are_ordered_as_well_as_by_trying_all_orders() -> None:
    """Without a loss always the best; with one it is a search, and seldom anything but the best."""
    rng = np.random.default_rng(1)
    missed = 0
    for C in (0.0, 2.0):
        for _ in range(40):
            scores, y, clusters = rng.normal(size=6), rng.integers(0, 2, 6), rng.integers(0, 4, 6)
            y[:2] = 0, 1
            order, found = find_max_rank(scores, clusters, y=y if C else None, C=C)
            best = max(value(scores, y, o, C) for o in permutations(range(6)) if stands_together(o, clusters))
            assert stands_together(order, clusters)
            assert found == pytest.approx(value(scores, y, order, C), abs=1e-9)
            if C == 0:
                assert found == pytest.approx(best, abs=1e-9)
            missed += found < best - 1e-9
    assert missed <= 2


def forests(pairs: list[tuple[int, int]], n: int) -> list[tuple[int, ...]]:
    """Every set of pairs without a cycle."""
    found: list[tuple[int, ...]] = []

    def grow(at: int, chosen: tuple[int, ...], names: tuple[int, ...]) -> None:
        if at == len(pairs):
            found.append(chosen)
            return
        grow(at + 1, chosen, names)
        a, b = names[pairs[at][0]], names[pairs[at][1]]
        if a != b:
            grow(at + 1, (*chosen, at), tuple(a if name == b else name for name in names))

    grow(0, (), tuple(range(n)))
    return found


def test_joint_search_against_all_joint_objects() -> None:
    rng, n = np.random.default_rng(2), 4
    left, right = all_pairs(n)
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    every = forests(pairs, n)
    orders = list(permutations(range(n)))
    optimal, trials = 0, 40
    for _ in range(trials):
        scores, values = rng.normal(0, 1, n), rng.normal(0, 0.7, len(pairs))
        best = -np.inf
        for chosen in every:
            names = PairForest(n, [pairs[k] for k in chosen]).names
            top = max(ranking_score(scores, np.array(o)) for o in orders if stands_together(o, names))
            best = max(best, top + values[list(chosen)].sum())
        found = best_joint(scores, PairScores(n, values))
        assert stands_together(found.order, found.clusters())
        assert found.value(scores, PairScores(n, values)) <= best + 1e-9
        once = best_joint(scores, PairScores(n, values), passes=1)
        assert once.value(scores, PairScores(n, values)) <= found.value(scores, PairScores(n, values)) + 1e-9
        optimal += found.value(scores, PairScores(n, values)) >= best - 1e-9
    assert optimal >= 0.85 * trials


class PairForest:
    """The components of a set of pairs."""

    def __init__(self, n: int, pairs: list[tuple[int, int]]) -> None:
        names = list(range(n))
        for a, b in pairs:
            names = [names[a] if name == names[b] else name for name in names]
        self.names = names


def test_the_printed_proposition_is_false() -> None:
    """One pass misses what repeated passes find (spec 8.4)."""
    scores, pairs = np.array([10.0, 5.0, 0.0]), PairScores(3, np.array([0.4, 0.5, 0.0]))
    once, again = best_joint(scores, pairs, passes=1), best_joint(scores, pairs)
    assert once.value(scores, pairs) == pytest.approx(12.9)
    assert again.value(scores, pairs) == pytest.approx(13.4)


def test_a_right_joint_object_has_no_error() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores, y, pairs = rng.normal(size=7), rng.integers(0, 2, 7), PairScores(7, rng.normal(0.3, 1, 21))
        y[:2] = 0, 1
        found = gold_joint(scores, pairs, y)
        assert delta_ap(y[found.order]) == 0
        left, right = found.forest.pairs()
        assert (y[left] == y[right]).all()
        worse = violating_joint(scores, pairs, y, 3.0)
        gains = [
            value(scores, y, one.order, 3.0) + one.forest.sum(pairs.values) for one in (found, worse)
        ]  # fmt: skip
        assert gains[1] >= gains[0] - 1e-9


SIMILAR, TWO = np.array([[0.9], [0.2], [0.3], [0.1], [0.4], [0.8]]), np.array([1, 1, 0, 0])


@pytest.mark.parametrize(
    ("start", "expected"), [(0.0, [-0.6, -1.2, -1.8, -2.4]), (1.0, [1.8, 1.4, 2.2, 1.8])]
)  # fmt: skip
def test_cold_start_of_pair_weights(start: float, expected: list[float]) -> None:
    """Hand-computed: from 0 the weight runs away, from 1 it does not."""
    problem = JointProblem(1, 1)
    step = HalfStep(RankQuery(np.zeros((4, 1)), StoredPairs(4, SIMILAR)), "clustering")
    found: list[float] = []
    Lsp().fit(problem, [(step, TWO)], epochs=4, w0=np.array([0.0, start]), on_epoch=lambda m: found.append(m.last[1]))
    assert found == pytest.approx(expected, abs=1e-9)


def test_weights_of_pairs_can_leave_zero() -> None:
    problem = JointProblem(1, 1, spanning=True)
    step = HalfStep(RankQuery(np.zeros((4, 1)), StoredPairs(4, SIMILAR)), "clustering")
    assert Lsp().fit(problem, [(step, TWO)], epochs=4).last[1] > 0


def test_a_step_of_one_part_leaves_the_other() -> None:
    rng = np.random.default_rng(4)
    items, y = rng.normal(size=(5, 2)), np.array([0, 1, 0, 1, 0])
    examples = both_steps([(RankQuery(items, StoredPairs(5, rng.normal(size=(10, 3)))), y)])
    problem = JointProblem(2, 3)
    w = rng.normal(size=5)
    for (step, _), own in zip(examples, (slice(0, 2), slice(2, 5)), strict=True):
        h, loss = problem.max_violating(step, y, w, 5.0)
        change = problem.joint_features(step, problem.gold(step, y, w)) - problem.joint_features(step, h)
        assert loss > 0
        assert (np.delete(change, np.arange(5)[own]) == 0).all()
        assert change[own].any()
        assert problem.loss(y, h) >= loss


def test_separable_queries_are_learned() -> None:
    rng = np.random.default_rng(5)

    def query() -> tuple[RankQuery, Any]:
        items = rng.normal(size=(8, 3))
        y = (items @ [2.0, -1.0, 0.5] > 0.8).astype(np.int64)
        y[0], items[0] = 1, [3.0, -3.0, 1.0]
        return RankQuery(items), y

    examples = [query() for _ in range(15)]
    problem = RankingProblem(3)
    fitted = Lsp().fit(problem, examples, epochs=60, C=0.01)
    assert measure_rankings(y[problem.predict(x, fitted.last)] for x, y in examples).map > 0.99


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        best_ranking(np.array([1.0, np.nan]))
    with pytest.raises(InputError, match="pairs of 2"):
        best_joint(np.zeros(3), PairScores(2, np.zeros(1)))
