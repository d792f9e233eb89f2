"""The compiled program against the exponential one: every output of tiny chains, networks and matchings written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.learners.minmax import Inference, linear_set, min_max
from netclust.models.matching.certificate import Certificate, learn_certificates, spanning_tree_certificate
from netclust.structures.sdp import clarabel_solution


def exponential(examples, outputs, C, nonnegative=()):
    """(4.3): min 0.5 |w|^2 + C sum of xi, a row for every output (its 0/1 vector of variables)."""
    import clarabel
    from scipy import sparse

    dimension, n = examples[0].features.shape[1], len(examples)
    rows, sides = [], []
    for i, (one, every) in enumerate(zip(examples, outputs, strict=True)):
        for mu in every:
            slack = np.zeros(n)
            slack[i] = 1.0
            rows.append(-np.concatenate([one.features.T @ (one.truth - mu), slack]))
            sides.append(-(one.constant + one.loss @ mu))
    for k in nonnegative:
        rows.append(-np.eye(dimension + n)[k])
        sides.append(0.0)
    P = sparse.diags(np.r_[np.ones(dimension), np.zeros(n)], format="csc")
    q = np.r_[np.zeros(dimension), np.full(n, C)]
    cones = [clarabel.NonnegativeConeT(len(sides))]
    solution = clarabel_solution(P, q, sparse.csc_matrix(np.array(rows)), np.array(sides), cones)
    return np.array(solution.x[:dimension]), float(solution.obj_val)


def chain(rng, length, labels):
    """A chain's inference: variables of nodes, then of edges; and all its labellings as 0/1 vectors."""
    nodes, edges = length * labels, (length - 1) * labels**2

    def edge(t, a, b):
        return nodes + (t * labels + a) * labels + b

    rows, sides = [], []
    for t in range(length):
        row = np.zeros(nodes + edges)
        row[t * labels : (t + 1) * labels] = 1
        rows.append(row)
        sides.append(1.0)
    for t in range(length - 1):
        for a in range(labels):
            out, into = np.zeros(nodes + edges), np.zeros(nodes + edges)
            out[t * labels + a], into[(t + 1) * labels + a] = -1, -1
            for b in range(labels):
                out[edge(t, a, b)] = 1
                into[edge(t, b, a)] = 1
            rows += [out, into]
            sides += [0.0, 0.0]
    every = []
    for y in product(range(labels), repeat=length):
        mu = np.zeros(nodes + edges)
        for t, a in enumerate(y):
            mu[t * labels + a] = 1
            if t + 1 < length:
                mu[edge(t, a, y[t + 1])] = 1
        every.append(mu)
    x = rng.normal(size=(length, 2))
    features = np.zeros((nodes + edges, 2 * labels + labels**2))
    for t in range(length):
        for a in range(labels):
            features[t * labels + a, 2 * a : 2 * a + 2] = x[t]
    features[nodes:, 2 * labels :] = np.tile(np.eye(labels**2), (length - 1, 1))
    truth = every[rng.integers(len(every))]
    loss = np.concatenate([1.0 - truth[:nodes], np.zeros(edges)])
    relaxed = linear_set(np.array(rows), np.array(sides), equal=len(rows))
    return Inference(features, loss, 0.0, truth, relaxed), np.array(every)


def network(rng, nodes, edges):
    """An attractive network of two labels: mu_v(k), and mu_e(k) where both ends have k; any graph is exact."""
    variables = 2 * nodes + 2 * len(edges)
    equal, below = [], []
    for v in range(nodes):
        row = np.zeros(variables)
        row[2 * v : 2 * v + 2] = 1
        equal.append(row)
    for e, ends in enumerate(edges):
        for v, k in product(ends, range(2)):
            row = np.zeros(variables)
            row[2 * nodes + 2 * e + k], row[2 * v + k] = 1, -1
            below.append(row)
    every = []
    for y in product(range(2), repeat=nodes):
        mu = np.zeros(variables)
        mu[2 * np.arange(nodes) + np.array(y)] = 1
        for e, (a, b) in enumerate(edges):
            mu[2 * nodes + 2 * e + y[a]] = y[a] == y[b]
        every.append(mu)
    x = rng.normal(size=(nodes, 2))
    features = np.zeros((variables, 6))
    for v in range(nodes):
        features[2 * v, :2] = features[2 * v + 1, 2:4] = x[v]
    for e in range(len(edges)):
        features[2 * nodes + 2 * e, 4] = features[2 * nodes + 2 * e + 1, 5] = 1.0
    truth = every[rng.integers(len(every))]
    loss = np.concatenate([1.0 - truth[: 2 * nodes], np.zeros(2 * len(edges))])
    sides = np.concatenate([np.ones(nodes), np.zeros(len(below))])
    return Inference(features, loss, 0.0, truth, linear_set(np.array(equal + below), sides, equal=nodes)), every


def check(examples, outputs, C, nonnegative=()):
    w, objective = exponential(examples, outputs, C, nonnegative)
    learned = min_max(examples, C, nonnegative=nonnegative)
    assert learned.primal == pytest.approx(objective, abs=1e-4)
    assert -1e-6 <= learned.gap <= 1e-5 * (1 + learned.primal)
    assert learned.w == pytest.approx(w, abs=1e-3)
    for one, every, slack in zip(examples, outputs, learned.slacks, strict=True):
        scores = one.features @ learned.w + one.loss
        most = max(float(scores @ mu) for mu in every)
        assert slack == pytest.approx(one.constant + most - one.features @ learned.w @ one.truth, abs=1e-4)
    return learned


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_chains(C):
    rng = np.random.default_rng(0)
    examples, outputs = zip(*(chain(rng, length, 2) for length in (3, 4, 2)), strict=True)
    check(examples, outputs, C)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_attractive_networks_of_two_labels(C):
    rng = np.random.default_rng(1)
    graphs = [(4, [(0, 1), (1, 2), (2, 3), (3, 0)]), (3, [(0, 1), (1, 2), (0, 2)]), (4, [(0, 1), (0, 2), (0, 3)])]
    examples, outputs = zip(*(network(rng, *graph) for graph in graphs), strict=True)
    learned = check(examples, outputs, C, nonnegative=(4, 5))
    assert learned.w[4:].min() >= 0


def test_weights_that_are_kept_at_zero_or_above():
    """The second of two choices is right: by 1 with weights -0.5 and 0.5, or with 0 and 1."""
    choice = linear_set(np.ones((1, 2)), np.ones(1), equal=1)
    one = Inference(np.eye(2), np.array([1.0, 0.0]), 0.0, np.array([0.0, 1.0]), choice)
    free, kept = min_max([one], 10.0), min_max([one], 10.0, nonnegative=[0])
    assert free.w == pytest.approx([-0.5, 0.5], abs=1e-6)
    assert kept.w == pytest.approx([0.0, 1.0], abs=1e-6)
    assert kept.primal == pytest.approx(0.5, abs=1e-6)
    assert kept.dual == pytest.approx(0.5, abs=1e-6)
    w, objective = exponential([one], [np.eye(2)], 10.0, [0])
    assert w == pytest.approx(kept.w, abs=1e-5)
    assert objective == pytest.approx(kept.primal, abs=1e-5)


def test_prices_are_dual_feasible():
    rng = np.random.default_rng(2)
    one, _ = chain(rng, 3, 2)
    learned = min_max([one], 1.0)
    count = one.relaxed.rows.shape[0] - len(one.loss)
    covered = one.relaxed.rows[:count].T @ learned.prices[0][:count]
    assert (covered >= one.features @ learned.w + one.loss - 1e-5).all()
    value = one.relaxed.sides[:count] @ learned.prices[0][:count]
    assert value == pytest.approx((one.features @ learned.w + one.loss) @ learned.mu[0], abs=1e-4)


def test_errors():
    choice = linear_set(np.ones((1, 2)), np.ones(1), equal=1)
    one = Inference(np.eye(2), np.zeros(2), 0.0, np.array([1.0, 0.0]), choice)
    with pytest.raises(InputError, match="positive"):
        min_max([one], 0.0)
    with pytest.raises(InputError, match="no examples"):
        min_max([], 1.0)
    with pytest.raises(InputError, match="for 2 variables"):
        Inference(np.eye(2), np.zeros(3), 0.0, np.array([1.0, 0.0]), choice)
    with pytest.raises(InputError, match="different numbers"):
        min_max([one, Inference(np.ones((2, 3)), np.zeros(2), 0.0, np.array([1.0, 0.0]), choice)], 1.0)


def best_tree(nodes, left, right, scores):
    """Kruskal, in plain Python."""
    component, tree = list(range(nodes)), np.zeros(len(left), bool)
    for e in np.argsort(-scores, kind="stable"):
        a, b = component[left[e]], component[right[e]]
        if a != b:
            tree[e] = True
            component = [a if c == b else c for c in component]
    return tree


@pytest.mark.parametrize("seed", range(4))
def test_the_learned_spanning_tree_is_the_heaviest_by_its_margin(seed):
    rng = np.random.default_rng(seed)
    left, right = np.triu_indices(6, 1)
    truth, examples, certificates = rng.normal(size=3), [], []
    for _ in range(5):
        features = rng.normal(size=(15, 3))
        tree = best_tree(6, left, right, features @ truth)
        examples.append((features, tree))
        certificates.append(spanning_tree_certificate(6, left, right, features, tree, np.ones(15)))
    learned = learn_certificates(certificates)
    for features, tree in examples:
        scores = features @ learned.w
        assert (best_tree(6, left, right, scores) == tree).all()
        worst = best_tree(6, left, right, scores + np.where(tree, 0.0, 1.0 - 1e-6))
        assert (worst == tree).all()  # even with the loss added


def test_trees_that_no_weights_explain():
    left, right, features = np.array([0, 0, 1]), np.array([1, 2, 2]), np.ones((3, 1))
    rows = spanning_tree_certificate(3, left, right, features, np.array([True, True, False]), np.ones(3))
    with pytest.raises(InputError, match="no weights satisfy"):
        learn_certificates([rows])
    with pytest.raises(InputError, match="no weights satisfy"):
        learn_certificates([Certificate(rows.weighted, rows.own, rows.sides), rows])
    priced = learn_certificates([rows], C=1.0)
    assert priced.certified == [False]
    assert priced.missing[0] == pytest.approx([1.0, 1.0], abs=1e-6)
    with pytest.raises(InputError, match="2 edges, not 3"):
        spanning_tree_certificate(3, left, right, features, np.ones(3, bool), np.ones(3))
    cycle = np.array([True, True, True, False])
    with pytest.raises(InputError, match="cycle"):
        spanning_tree_certificate(4, np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), np.ones((4, 1)), cycle, np.ones(4))
