from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from every_partition import (
    FIGURE_31,
    FIGURE_32,
    FIVE,
    all_triangles,
    brute_force,
    cycle5,
    full_lp,
    planted,
    random_scores,
    star,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.losses.partition_loss import with_pairwise_loss
from netclust.models.clustering.partitions.relaxed import Round, relaxed_partition
from netclust.models.clustering.partitions.rounding import clustering_bounds, round_links, round_pivot
from netclust.structures.pairs import PairIndex, all_pairs
from netclust.structures.partition import PairScores, canonical_partition, partition_square
from netclust.structures.sizes import LIMITS, check_size, estimate_size

# Separation


def twin_triangles(e):
    items = len(e)
    middle, excess = [], []
    for i, k in zip(*np.triu_indices(items, 1), strict=True):
        both = e[i] + e[k]
        both[[i, k]] = -np.inf
        middle.append(int(np.argmax(both)) if items > 2 else -1)
        excess.append(both.max() - 1.0 - e[i, k])
    return middle, excess


def twin_stored_triangles(items, left, right, e):
    number = {(int(i), int(j)): at for at, (i, j) in enumerate(zip(left, right, strict=True))}
    number |= {(j, i): at for (i, j), at in number.items()}
    found = []
    for pair in range(len(left)):
        i, k = int(left[pair]), int(right[pair])
        both = [
            (e[number[i, j]] + e[number[k, j]], number[i, j], number[k, j])
            for j in range(items)
            if (i, j) in number and (k, j) in number
        ]
        best = max(both, key=lambda row: row[0], default=(-np.inf, -1, -1))
        found.append((best[1], best[2], best[0] - 1.0 - e[pair]))
    return found


def twin_star(e, i, tolerance):
    best, best_leaves = tolerance, []
    for begin in range(len(e)):
        if begin == i or not tolerance < e[i, begin] < 1.0 - tolerance:
            continue
        gain = e[i].copy()
        gain[i] = -np.inf
        leaves, total, t = [], -1.0, begin
        while gain[t] > tolerance:
            leaves.append(t)
            total += gain[t]
            gain[t] = -np.inf
            gain -= e[t]
            t = int(np.argmax(gain))
        if total > best:
            best, best_leaves = total, leaves
    return best_leaves, best


@given(st.integers(2, 9), st.integers(0, 10**6), st.sampled_from([1, 2, 4, 1000]))
@settings(max_examples=60, deadline=None)
def test_kernels_do_not_differ_from_plain_numpy(items, seed, grid):
    from netclust.models.clustering.partitions.triangle_program import _Stored
    from netclust.models.clustering.partitions.triangles_kernels import (
        violated_stars,
        worst_stored_triangles,
        worst_triangles,
    )

    rng = np.random.default_rng(seed)
    pairs = items * (items - 1) // 2
    values = rng.integers(0, grid + 1, size=pairs) / grid
    e = partition_square(values, items)
    middle, excess = np.empty(pairs, np.int64), np.empty(pairs)
    worst_triangles(e, middle, excess)
    assert (middle.tolist(), excess.tolist()) == twin_triangles(e)

    kept = rng.random(pairs) < 0.7
    index = PairIndex(*(side[kept] for side in all_pairs(items)))
    stored = _Stored(items, index)
    count = len(index.left)
    first, second, over = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    lists = (stored.left, stored.right, stored.start, stored.neighbour, stored.edge)
    worst_stored_triangles(*lists, values[kept], first, second, over)
    assert list(zip(first, second, over, strict=True)) == twin_stored_triangles(items, *index, values[kept])

    leaves, size, found = np.zeros((items, items), np.int64), np.zeros(items, np.int64), np.zeros(items)
    violated_stars(e, 1e-6, leaves, size, found)
    for i in range(items):
        assert (leaves[i, : size[i]].tolist(), found[i]) == twin_star(e, i, 1e-6)


# The relaxation


@given(st.integers(2, 9), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_lazy_triangles_do_not_change_the_program(items, seed):
    scores = random_scores(items, np.random.default_rng(seed))
    relaxed = relaxed_partition(scores)
    assert relaxed.value == pytest.approx(full_lp(scores), abs=1e-6)
    assert relaxed.bound == pytest.approx(relaxed.value, abs=1e-6)  # the prices prove it: primal = dual
    assert all_triangles(items).dot(relaxed.together).max(initial=0.0) <= 1 + 2e-6
    if items <= 8:
        assert relaxed.bound >= brute_force(scores) - 1e-9


def test_lazy_triangles_find_the_full_program_on_a_larger_set():
    scores = planted(25, 4, 1.5, 3)
    told: list[Round] = []
    relaxed = relaxed_partition(scores, on_round=told.append)
    assert relaxed.value == pytest.approx(full_lp(scores), abs=1e-5)
    assert told[-1].violated == 0
    assert len(told) == relaxed.rounds
    assert all(a.value >= b.value - 1e-9 for a, b in pairwise(told))  # every round is a bound


@pytest.mark.parametrize("noise", [0.5, 1.5, 4.0])
def test_a_hard_program_does_not_end_elsewhere_by_the_interior_point_method(monkeypatch, noise):
    scores = planted(25, 4, noise, 3)
    easy = relaxed_partition(scores)
    monkeypatch.setattr("netclust.models.clustering.partitions.triangle_program.SIMPLEX_STEPS", 1)
    hard = relaxed_partition(scores)
    assert hard.value == pytest.approx(easy.value, abs=1e-6)
    assert hard.bound == pytest.approx(easy.value, abs=1e-6)
    assert hard.integral() == easy.integral()
    assert all_triangles(25).dot(hard.together).max() <= 1 + 2e-6


@pytest.mark.parametrize(
    ("scores", "truth", "value"),
    [(FIGURE_31, [0, 0, 0, 0, 1, 1, 1, 2, 2], 47.0), (FIGURE_32, [0, 0, 0, 1, 1], 21.0), (FIVE, [0, 0, 0, 1, 1], 2.2)],
)
def test_worked_examples_are_not_fractional(scores, truth, value):
    relaxed = relaxed_partition(scores)
    assert relaxed.value == pytest.approx(value)
    assert relaxed.integral()
    for rule in ("first", "ball"):
        assert round_links(relaxed.together, scores.items, rule=rule).tolist() == truth
    assert round_pivot(scores, relaxed).tolist() == truth
    assert brute_force(scores) == pytest.approx(value)


def test_the_loss_in_the_scores_moves_figure_32_to_its_max_violating_partition():
    augmented = with_pairwise_loss(FIGURE_32, np.array([0, 0, 0, 1, 1]))
    assert augmented.values.tolist() == [-1, -14, 9, 3, -3, 7, 2, 12, 6, -1]
    relaxed = relaxed_partition(augmented)
    assert relaxed.value == pytest.approx(23)
    assert round_pivot(augmented, relaxed).tolist() == [0, 1, 1, 1, 1]


def test_the_augmented_bound_of_five_items_is_69_962():
    y = np.array([0, 0, 0, 1, 1])
    augmented = with_pairwise_loss(PairScores(5, FIVE.values / 25), y)
    constant = 40.0  # the loss of singletons: four of ten pairs
    assert relaxed_partition(augmented).value + constant == pytest.approx(69.962, abs=5e-4)
    assert brute_force(augmented) + constant == pytest.approx(60.048)
    assert augmented.within(np.array([0, 0, 1, 1, 0])) + constant == pytest.approx(60.048)
    plain = with_pairwise_loss(FIVE, y)  # without 1 / m^2 the same partition is best
    assert plain.within(np.array([0, 0, 1, 1, 0])) + constant == pytest.approx(61.2) == brute_force(plain) + constant


def test_no_random_set_has_a_bound_below_its_best_partition_and_a_tenth_are_fractional():
    rng = np.random.default_rng(1)
    fractional = 0
    for _ in range(100):
        scores = random_scores(7, rng)
        relaxed = relaxed_partition(scores)
        best = brute_force(scores)
        assert relaxed.bound >= best - 1e-9
        assert (relaxed.value > best + 1e-6) == (not relaxed.integral(1e-5))
        fractional += not relaxed.integral(1e-5)
    assert 3 <= fractional <= 20


def test_six_random_items_are_seldom_fractional():
    rng = np.random.default_rng(2)
    sets = [PairScores(6, (m + m.T)[np.triu_indices(6, 1)] / 2) for m in rng.normal(size=(200, 6, 6))]
    tight = sum(relaxed_partition(scores).value <= brute_force(scores) + 1e-6 for scores in sets)
    assert 182 <= tight <= 200


def printed_direction(scores):
    """The constraint as the paper prints it, e_ab + e_bc >= e_ac: the one of distances."""
    from scipy.optimize import linprog

    rows = -all_triangles(scores.items)
    solved = linprog(-scores.values, A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(0, 1))
    return float(-solved.fun)


def test_the_printed_triangle_would_accept_what_is_no_clustering():
    relaxed = relaxed_partition(star(3))
    assert relaxed.value == pytest.approx(1.5)
    assert relaxed.together == pytest.approx([0.5, 0.5, 0.5, 0, 0, 0])
    assert printed_direction(star(3)) == pytest.approx(3.0)  # leaves apart, all with the centre
    apart = PairScores(3, np.array([-1.0, 1.0, -1.0]))
    assert relaxed_partition(apart).value == pytest.approx(1.0)
    assert relaxed_partition(apart).together.tolist() == [0, 1, 0]
    assert printed_direction(apart) == pytest.approx(0.0)  # {a, c}, {b} is forbidden


@pytest.mark.parametrize("leaves", [3, 4, 5])
def test_a_star_is_bounded_by_half_its_leaves(leaves):
    assert brute_force(star(leaves)) == 1
    assert relaxed_partition(star(leaves)).value == pytest.approx(leaves / 2)


def test_a_cycle_of_five_is_bounded_by_two_and_a_half():
    assert brute_force(cycle5()) == 2
    assert relaxed_partition(cycle5()).value == pytest.approx(2.5)


def ordered_dual(scores):
    """(11.6) over ordered triples with their diagonal: min sum of lambda + sum of z."""
    from scipy.optimize import linprog

    m, S = scores.items, scores.matrix()
    triples = [(j, k, last) for j in range(m) for k in range(m) for last in range(m)]
    number = {triple: at for at, triple in enumerate(triples)}
    rows, sides = [], []
    for j in range(m):
        for k in range(m):
            row = np.zeros(len(triples) + m)
            for last in range(m):
                row[number[j, k, last]] += 1
                row[number[last, j, k]] += 1
                row[number[k, last, j]] -= 1
            if j == k:
                row[len(triples) + j] = 1
            rows.append(-row)
            sides.append(-S[j, k])
    bounds = [(0, None)] * len(triples) + [(None, None)] * m
    return float(linprog(np.ones(len(triples) + m), A_ub=rows, b_ub=sides, bounds=bounds).fun)


@pytest.mark.parametrize("items", [4, 5, 6])
def test_the_ordered_dual_is_not_other_than_twice_the_value(items):
    scores = random_scores(items, np.random.default_rng(items))
    assert ordered_dual(scores) / 2 == pytest.approx(relaxed_partition(scores).value, abs=1e-6)
    assert relaxed_partition(scores).value >= brute_force(scores) - 1e-9


def test_items_that_nothing_connects_do_not_enter_one_program():
    one, two = star(3).matrix(), FIVE.matrix()
    both = np.full((9, 9), -0.5)
    both[:4, :4], both[4:, 4:] = one, two
    scores = PairScores(9, both[np.triu_indices(9, 1)])
    rows: list[Round] = []
    relaxed = relaxed_partition(scores, on_round=rows.append)
    assert relaxed.value == pytest.approx(1.5 + 2.2)
    assert relaxed.value == pytest.approx(full_lp(scores))
    assert [told.number for told in rows].count(1) == 2


def test_stored_pairs_do_not_give_a_bound_below_the_best_partition():
    rng = np.random.default_rng(5)
    for _ in range(30):
        whole = random_scores(7, rng)
        kept = rng.random(21) < 0.6
        index = PairIndex(*(side[kept] for side in all_pairs(7)))
        stored = PairScores(7, whole.values[kept], index)
        filled = PairScores(7, np.where(kept, whole.values, 0.0))
        assert relaxed_partition(stored).bound >= relaxed_partition(filled).value - 1e-6  # fewer triangles: weaker
        assert relaxed_partition(filled).bound >= brute_force(stored) - 1e-9
    everything = PairScores(7, whole.values, all_pairs(7))
    assert relaxed_partition(everything).value == pytest.approx(relaxed_partition(whole).value, abs=1e-6)


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e9])
def test_the_size_of_the_scores_does_not_spoil_the_solution(factor):
    scores = planted(12, 3, 1.0, 0)
    scaled = relaxed_partition(PairScores(12, scores.values * factor))
    assert scaled.value == pytest.approx(relaxed_partition(scores).value * factor, rel=1e-6)


# Rounding


@pytest.mark.parametrize(("order", "ball"), [([0, 1, 2], [0, 0, 1]), ([1, 0, 2], [0, 0, 0]), ([2, 0, 1], [0, 1, 0])])
def test_rounding_follows_the_order_of_the_items_and_seven_tenths_is_no_link(order, ball):
    e = partition_square(np.array([0.9, 0.7, 0.8]), 3)[np.ix_(order, order)][np.triu_indices(3, 1)]
    assert round_links(e, 3, rule="ball").tolist() == ball
    assert round_links(e, 3, rule="first").tolist() == [0, 0, 0]


def twin_first(e, threshold):
    clusters = [{i} for i in range(len(e))]
    for x in range(len(e)):
        own = next(c for c in clusters if x in c)
        linked = [other for other in range(len(e)) if other != x and e[x, other] > threshold]
        if len(own) > 1 or not linked:
            continue
        target = next(c for c in clusters if linked[0] in c)
        clusters.remove(own)
        target.add(x)
    return canonical_partition(np.array([next(at for at, c in enumerate(clusters) if x in c) for x in range(len(e))]))


@given(st.integers(0, 9), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_first_link_rounding_is_not_other_than_algorithm_5(items, seed):
    values = np.random.default_rng(seed).random(items * (items - 1) // 2)
    assert round_links(values, items).tolist() == twin_first(partition_square(values, items), 0.7).tolist()
    assert round_links(values, items, all_pairs(items)).tolist() == round_links(values, items).tolist()


def test_bounds_do_not_mix_the_three_objectives_up():
    bounds = clustering_bounds(star(3), np.array([0, 0, 1, 2]), relaxed_partition(star(3)))
    assert (bounds.value, bounds.positive, bounds.negative) == (1, 3, -3)
    assert (bounds.agreement, bounds.disagreement) == (4, 2)
    assert bounds.ratio == pytest.approx((1 + 3) / (1.5 + 3))
    assert clustering_bounds(PairScores(1, np.zeros(0)), np.zeros(1)).ratio == 1.0


# Bad input and sizes


@pytest.mark.parametrize("items", [0, 1])
def test_a_set_without_pairs_is_no_failure(items):
    relaxed = relaxed_partition(PairScores(items, np.zeros(0)))
    assert (relaxed.value, relaxed.bound, relaxed.rounds) == (0, 0, 0)
    assert round_links(relaxed.together, items).tolist() == [0] * items


@pytest.mark.parametrize(("score", "together"), [(2.0, 1.0), (-2.0, 0.0), (0.0, 0.0)])
def test_two_items_follow_the_sign(score, together):
    assert relaxed_partition(PairScores(2, np.array([score]))).together.tolist() == [together]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (PairScores(3, np.array([1.0, np.nan, 0.0])), r"pair score 1 is nan"),
        (PairScores(3, np.array([1.0, np.inf, 0.0])), r"pair score 1 is inf"),
        (PairScores(3, np.array([1.0, 0.0])), "3 items need 3 pair scores"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(scores, message):
    with pytest.raises(InputError, match=message):
        relaxed_partition(scores)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="tolerance"):
        relaxed_partition(FIVE, tolerance=0.0)
    with pytest.raises(InputError, match="rule 'last'"):
        round_links(np.zeros(3), 3, rule="last")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="3 items need 3 values"):
        round_links(np.zeros(2), 3)
    with pytest.raises(InputError, match="method 'magic'"):
        estimate_size(5, "magic")  # type: ignore[arg-type]


def test_a_set_that_is_too_large_is_refused_before_the_start():
    with pytest.raises(InputError, match=r"a set of 500 items is too large for the LP relaxation: 124,750 variables"):
        relaxed_partition(PairScores(500, np.ones(124_750)))
    with pytest.raises(InputError, match=r"12,497,500 variables.*GB of memory.*largest=5000"):
        check_size(5000, "lp")
    for method, limit in LIMITS.items():
        check_size(limit, method)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="greedy merging or local search"):
            check_size(limit + 1, method)  # type: ignore[arg-type]
    check_size(5000, "lp", pairs=2000)
    check_size(5000, "lp", largest=5000)


def test_full_sizes_are_those_of_the_thesis():
    assert estimate_size(9, "lp-full")[:2] == (36, 252)
    assert estimate_size(150, "lp-full")[:2] == (11_175, 1_653_900)
    assert estimate_size(100, "lp-full")[:2] == (4_950, 485_100)
    assert estimate_size(0, "lp") == (0, 0, 0)
