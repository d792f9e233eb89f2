from __future__ import annotations

import numpy as np
import pytest
from every_partition import all_triangles, memberships

from netclust.errors import InputError
from netclust.models.clustering.clustering_minmax import LpMinMax, SdpMinMax, triangle_rows
from netclust.models.clustering.partitions.relaxed import relaxed_partition
from netclust.structures.pairs import ComputedPairs, PairIndex, StoredPairs, all_pairs, same_cluster
from netclust.structures.partition import PairScores
from netclust.structures.sdp import clarabel_solution, relax_sdp

LEARNERS = {LpMinMax: relaxed_partition, SdpMinMax: relax_sdp}


def random_examples(seed, sizes, dimension=3):
    """Sets whose true partition is learnable up to some noise."""
    rng = np.random.default_rng(seed)
    examples = []
    for items in sizes:
        y = rng.integers(2, size=items)
        X = y[:, None] * np.array([2.0] + [0.0] * (dimension - 2)) + rng.normal(size=(items, dimension - 1))
        examples.append((StoredPairs(items, ComputedPairs(X).dense()), y))
    return examples


def brute_force_svm(examples, C):
    """min 0.5 |w|^2 + C sum of xi over all partitions, every constraint written out."""
    import clarabel
    from scipy import sparse

    dimension, n = examples[0][0].dimension, len(examples)
    rows, sides = [], []
    for i, (pairs, y) in enumerate(examples):
        same = same_cluster(y, None).astype(float)
        for together in memberships(pairs.items):
            slack = np.zeros(n)
            slack[i] = 1.0
            rows.append(-np.concatenate([pairs.weighted_sum(same - together), slack]))
            sides.append(-np.abs(same - together).sum())
    P = sparse.diags(np.r_[np.ones(dimension), np.zeros(n)], format="csc")
    q = np.r_[np.zeros(dimension), np.full(n, C)]
    solution = clarabel_solution(
        P, q, sparse.csc_matrix(np.array(rows)), np.array(sides), [clarabel.NonnegativeConeT(len(sides))]
    )
    return np.array(solution.x[:dimension]), float(solution.obj_val)


def augmented(pairs, y, w):
    return PairScores(pairs.items, pairs.scores(w) + 1.0 - 2.0 * same_cluster(y, None))


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_primal_and_dual_values_do_not_differ(learner, C):
    examples = random_examples(0, [5, 6, 2])
    learned = learner(C).fit(examples)
    assert learned.primal == pytest.approx(0.5 * learned.w @ learned.w + C * learned.slacks.sum())
    assert -1e-7 <= learned.gap <= 1e-5 * (1 + learned.primal)


@pytest.mark.parametrize("learner", LEARNERS)
def test_weights_are_c_times_truth_minus_the_relaxed_partition(learner):
    examples = random_examples(1, [5, 4])
    learned = learner(0.3).fit(examples)
    difference = sum(
        pairs.weighted_sum(same_cluster(y, None) - mu) for (pairs, y), mu in zip(examples, learned.mu, strict=True)
    )
    assert learned.w == pytest.approx(0.3 * difference)  # (11.10)


@pytest.mark.parametrize("learner", LEARNERS)
def test_slacks_are_those_of_the_relaxation_that_was_learned_through(learner):
    examples = random_examples(2, [6, 5])
    learned = learner(0.5).fit(examples)
    for (pairs, y), mu, slack in zip(examples, learned.mu, learned.slacks, strict=True):
        same = same_cluster(y, None)
        found = LEARNERS[learner](augmented(pairs, y, learned.w))
        assert slack == pytest.approx(found.bound + same.sum() - pairs.scores(learned.w) @ same, abs=1e-4)
        # mu is itself a maximiser: complementary slackness
        assert augmented(pairs, y, learned.w).values @ mu == pytest.approx(found.value, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_the_relaxed_learner_is_the_structural_svm_where_the_relaxation_is_tight(seed):
    examples = random_examples(seed, [5, 6])
    w, objective = brute_force_svm(examples, 0.2)
    learned = LpMinMax(0.2).fit(examples)
    assert learned.primal >= objective - 1e-5  # a relaxation over-generates
    gaps = []
    for pairs, y in examples:
        scores = augmented(pairs, y, w)
        gaps.append(relaxed_partition(scores).value - (memberships(pairs.items) @ scores.values).max())
    if max(gaps) < 1e-6:
        assert learned.w == pytest.approx(w, abs=1e-4)
        assert learned.primal == pytest.approx(objective, abs=1e-4)


def test_some_of_those_relaxations_are_tight():
    examples = random_examples(3, [4, 4])
    w, objective = brute_force_svm(examples, 0.2)
    learned = LpMinMax(0.2).fit(examples)
    assert learned.primal == pytest.approx(objective, abs=1e-5)
    assert learned.w == pytest.approx(w, abs=1e-4)


def ordered_lp(pairs, y, C):
    """Program (11.7) as it is printed: ordered pairs and triples, with a diagonal; the variables w, xi, lambda, z."""
    import clarabel
    from scipy import sparse

    m, d = pairs.items, pairs.dimension
    left, right = all_pairs(m)
    features = np.zeros((m, m, d))
    features[left, right] = features[right, left] = pairs.psi
    same = (y[:, None] == y[None, :]).astype(float)
    loss = 1.0 - 2.0 * same  # -1 on the diagonal, which is in l(0) too
    triples = {(j, k, t): at for at, (j, k, t) in enumerate(np.ndindex(m, m, m))}
    size = d + 1 + len(triples) + m
    first = np.zeros(size)  # w . f(y) + xi >= l(0) + sum of lambda + sum of z
    first[:d], first[d] = (same[:, :, None] * features).sum(axis=(0, 1)), 1.0
    first[d + 1 :] = -1.0
    rows, sides = [-first], [-same.sum()]
    for j in range(m):
        for k in range(m):
            row = np.zeros(size)
            for t in range(m):
                row[d + 1 + triples[j, k, t]] += 1
                row[d + 1 + triples[t, j, k]] += 1
                row[d + 1 + triples[k, t, j]] -= 1
            row[:d] = -features[j, k]
            if j == k:
                row[d + 1 + len(triples) + j] = 1.0
            rows.append(-row)
            sides.append(-loss[j, k])
    for at in range(len(triples)):
        row = np.zeros(size)
        row[d + 1 + at] = -1.0
        rows.append(row)
        sides.append(0.0)
    P = sparse.diags(np.r_[np.ones(d), np.zeros(size - d)], format="csc")
    q = np.zeros(size)
    q[d] = C
    A = sparse.csc_matrix(np.array(rows))
    solution = clarabel_solution(P, q, A, np.array(sides), [clarabel.NonnegativeConeT(len(sides))])
    return np.array(solution.x[:d]), float(solution.obj_val)


def test_ordered_pairs_are_the_same_learner_with_half_the_c():
    ((pairs, y),) = random_examples(4, [5])
    w, objective = ordered_lp(pairs, y, C=0.1)
    learned = LpMinMax(0.2).fit([(pairs, y)])
    assert learned.w == pytest.approx(w, abs=1e-4)
    assert learned.primal == pytest.approx(objective, abs=1e-4)


def test_dot_products_of_pair_features_are_all_that_learning_needs():
    import clarabel
    from scipy import sparse

    ((pairs, y),) = random_examples(5, [6])
    C, same = 0.2, same_cluster(y, None).astype(float)
    gram = pairs.psi @ pairs.psi.T  # a linear kernel between pairs
    rows = np.vstack([all_triangles(6), -np.eye(15), np.eye(15)])
    sides = np.r_[np.ones(len(all_triangles(6))), np.zeros(15), np.ones(15)]
    q = -(1.0 - 2.0 * same) - C * gram @ same
    solution = clarabel_solution(
        sparse.csc_matrix(np.triu(C * gram)), q, sparse.csc_matrix(rows), sides, [clarabel.NonnegativeConeT(len(sides))]
    )
    w = C * pairs.weighted_sum(same - np.array(solution.x))
    assert LpMinMax(C).fit([(pairs, y)]).w == pytest.approx(w, abs=1e-4)


@pytest.mark.parametrize("learner", LEARNERS)
def test_separable_sets_are_clustered_as_they_were_taught(learner):
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 1, 1, 2, 2])
    X = 4.0 * y[:, None] + rng.normal(scale=0.2, size=(7, 1))
    pairs = StoredPairs(7, np.column_stack([np.exp(-(ComputedPairs(X, constant=False).dense() ** 2)), np.ones(21)]))
    learned = learner(100.0).fit([(pairs, y)])
    assert learned.slacks == pytest.approx([0.0], abs=1e-4)
    scores = PairScores(7, pairs.scores(learned.w))
    found = relaxed_partition(scores)
    assert found.integral()
    assert found.together.tolist() == same_cluster(y, None).astype(float).tolist()


def test_triangles_are_all_there_once():
    expected = all_triangles(6)
    rows = triangle_rows(6).toarray()
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, expected.tolist()))
    assert triangle_rows(2).shape == (0, 1)


@pytest.mark.parametrize("learner", LEARNERS)
def test_pairs_that_are_not_stored_have_no_features(learner):
    ((pairs, y),) = random_examples(6, [5])
    kept = np.array([0, 3, 4, 7, 9])
    index = PairIndex(*(side[kept] for side in all_pairs(5)))
    filled = np.zeros_like(pairs.psi)
    filled[kept] = pairs.psi[kept]
    stored = learner(0.5).fit([(StoredPairs(5, pairs.psi[kept], index), y)])
    assert stored.w == pytest.approx(learner(0.5).fit([(StoredPairs(5, filled), y)]).w, abs=1e-6)


def test_sets_of_one_item_do_not_matter():
    examples = random_examples(7, [4])
    single = (StoredPairs(1, np.zeros((0, 3))), np.array([0]))
    alone = LpMinMax(1.0).fit(examples)
    beside = LpMinMax(1.0).fit([single, *examples, single])
    assert beside.w == pytest.approx(alone.w)
    assert len(beside.slacks) == len(beside.mu) == 3
    assert beside.slacks[[0, 2]].tolist() == [0.0, 0.0]


def test_what_cannot_be_learned_from_is_refused():
    ((pairs, y),) = random_examples(8, [4])
    for C in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="C is"):
            LpMinMax(C)
    learner = LpMinMax(1.0)
    with pytest.raises(InputError, match="no examples"):
        learner.fit([])
    with pytest.raises(InputError, match="nothing to learn from"):
        learner.fit([(StoredPairs(1, np.zeros((0, 3))), np.array([0]))])
    with pytest.raises(InputError, match="3 labels for a set of 4 items"):
        learner.fit([(pairs, y[:3])])
    with pytest.raises(InputError, match="sets have 3 and 1 features"):
        learner.fit([(pairs, y), (StoredPairs(2, np.zeros((1, 1))), np.array([0, 1]))])
    large = ComputedPairs(np.zeros((60, 1)))
    for kind, name in ((LpMinMax, "LP"), (SdpMinMax, "SDP")):
        with pytest.raises(InputError, match=f"60 items is too large for the {name} min-max learner"):
            kind(1.0).fit([(large, np.zeros(60))])
