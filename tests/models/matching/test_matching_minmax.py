"""Matchings by min-max and by certificates: the printed theorem, where it holds and where it does not."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.learners.one_slack import OneSlack
from netclust.models.matching.matching_loss import edge_price
from netclust.models.matching.matching_minmax import (
    is_certified,
    learn_certificates,
    matching_certificate,
    matching_inference,
    min_max,
)
from netclust.models.matching.matching_problem import MatchExample, MatchingProblem
from netclust.models.matching.matching_program import relaxed_matching
from netclust.models.matching.matchings import (
    best_matching,
    bipartite,
    chosen_edges,
    complete_graph,
    violating_matching,
)


def learnable(seed, graph, count, noise=0.3, dimension=3):
    rng = np.random.default_rng(seed)
    truth, examples = rng.normal(size=dimension), []
    for _ in range(count):
        features = rng.normal(size=(len(graph.left), dimension))
        scores = features @ truth + noise * rng.normal(size=len(graph.left))
        examples.append((features, best_matching(graph, scores, perfect=True)))
    return examples


def objective(graph, examples, w, C, *, perfect):
    """0.5 |w|^2 + C times the sum of hinges, by loss-augmented inference."""
    total = 0.5 * w @ w
    for features, y in examples:
        h = violating_matching(graph, features @ w, y, 1.0, perfect=perfect)
        right, found = chosen_edges(graph, y), chosen_edges(graph, h)
        total += C * (features[found].sum(axis=0) @ w + (right != found).sum() - features[right].sum(axis=0) @ w)
    return total


@pytest.mark.parametrize("perfect", [True, False])
@pytest.mark.parametrize("graph", [bipartite(3, 3), complete_graph(6)], ids=["bipartite", "general"])
def test_the_compiled_program_is_the_structural_svm(graph, perfect):
    """By the cutting planes of another learner, whose oracle is combinatorial."""
    examples = learnable(0, graph, 5)
    learned = min_max([matching_inference(graph, f, y, perfect=perfect) for f, y in examples], C=0.5)
    assert learned.primal == pytest.approx(objective(graph, examples, learned.w, 0.5, perfect=perfect), abs=1e-3)
    price = edge_price(examples[0][1])  # the shared learners count in percent and take the mean of slacks
    fit = OneSlack(C=0.5 * len(examples) * price, epsilon=1e-3).fit(
        MatchingProblem(3, perfect), [(MatchExample(graph, f), y) for f, y in examples]
    )
    assert fit.w / price == pytest.approx(learned.w, abs=1e-2)


def test_constraints_of_a_complete_graph_are_the_closed_forms():
    """Figure 10.2: one constraint per odd set and node for min-max, two per edge for a certificate."""
    nodes, y = 6, np.array([1, 0, 3, 2, 5, 4])
    graph = complete_graph(nodes)
    assert len(matching_certificate(graph, np.zeros((15, 1)), y).sides) == nodes * (nodes - 1)
    rows = matching_inference(graph, np.zeros((15, 1)), y, perfect=True).relaxed.rows
    odd_sets = sum(comb(nodes, size) for size in range(3, nodes + 1, 2))
    assert rows.shape[0] - 15 == odd_sets + nodes == 2 ** (nodes - 1)


def two_triangles(bridge):
    """Return triangles {0, 1, 2} and {3, 4, 5} of weight 1, a bridge 2-3, everything else -100; and {01, 23, 45}.

    That is the best perfect matching for every bridge above -100, but at 0.5 three halves on either triangle are more.
    """
    graph = complete_graph(6)
    scores = np.where(graph.left // 3 == graph.right // 3, 1.0, -100.0)
    scores[(graph.left == 2) & (graph.right == 3)] = bridge
    return graph, scores, np.array([1, 0, 3, 2, 5, 4])


@pytest.mark.parametrize(("bridge", "certified", "relaxed"), [(0.5, False, 3.0), (1.5, True, 3.5)])
def test_two_triangles_and_a_bridge(bridge, certified, relaxed):
    """The theorem's "if" half fails: {01, 23, 45} is the best either way."""
    graph, scores, y = two_triangles(bridge)
    assert best_matching(graph, scores, perfect=True).tolist() == y.tolist()
    assert scores[chosen_edges(graph, y)].sum() == 2 + bridge
    assert is_certified(graph, scores, y) is certified
    assert relaxed_matching(graph, scores, odd_sets=False, perfect=True).value == pytest.approx(relaxed)
    assert relaxed_matching(graph, scores, perfect=True).value == pytest.approx(2 + bridge)


def test_the_certificate_never_fails_on_bipartite_graphs_and_is_strict_on_others():
    rng = np.random.default_rng(0)
    graph = bipartite(4, 4)
    for _ in range(60):
        scores = rng.normal(size=16)
        assert is_certified(graph, scores, best_matching(graph, scores, perfect=True))
    graph, missed = complete_graph(6), 0
    for _ in range(200):
        scores = rng.normal(size=15)
        y = best_matching(graph, scores, perfect=True)
        relaxed = relaxed_matching(graph, scores, odd_sets=False, perfect=True)
        exact = relaxed.value <= scores[chosen_edges(graph, y)].sum() + 1e-7
        assert is_certified(graph, scores, y) == exact  # it certifies the program without odd sets
        missed += not exact
    assert 0 < missed < 30


def test_no_other_matching_is_ever_certified():
    rng = np.random.default_rng(1)
    graph = complete_graph(6)
    for _ in range(60):
        scores, other = rng.normal(size=15), rng.normal(size=15)
        y, best = (best_matching(graph, s, perfect=True) for s in (other, scores))
        if y.tolist() != best.tolist():
            assert not is_certified(graph, scores, y)


@pytest.mark.parametrize("graph", [bipartite(4, 4), complete_graph(6)], ids=["bipartite", "general"])
def test_learned_from_certificates_the_truth_is_the_best_by_its_margin(graph):
    examples = learnable(3, graph, 4, noise=0.0)
    certificates = [matching_certificate(graph, f, y) for f, y in examples]
    try:
        learned = learn_certificates(certificates)
    except InputError:
        assert graph.split is None  # strict: some truth of a general graph may not be certified
        return
    for features, y in examples:
        scores = features @ learned.w
        assert best_matching(graph, scores, perfect=True).tolist() == y.tolist()
        worst = violating_matching(graph, scores, y, 1.0 - 1e-6, perfect=True)
        assert worst.tolist() == y.tolist()


def test_what_no_weights_certify():
    """One feature of all edges: nothing tells matchings apart; and a matching that is not perfect."""
    graph = bipartite(2, 2)
    certificate = matching_certificate(graph, np.ones((4, 1)), np.array([2, 3, 0, 1]))
    with pytest.raises(InputError, match="no weights satisfy"):
        learn_certificates([certificate])
    priced = learn_certificates([certificate], C=10.0)
    assert priced.certified == [False]
    easy = matching_certificate(graph, np.array([[1.0], [0], [0], [1.0]]), np.array([2, 3, 0, 1]))
    assert learn_certificates([easy], C=10.0).certified == [True]
    with pytest.raises(InputError, match="node 1 has no partner"):
        matching_certificate(graph, np.ones((4, 1)), np.array([2, -1, 0, -1]))


def test_larger_weights_make_a_certificate_only_where_one_exists():
    """With the erratum in the features: the best matching of two triangles cannot be learned from, by itself."""
    for bridge, learnable_ in ((0.5, False), (1.5, True)):
        graph, scores, y = two_triangles(bridge)
        certificate = matching_certificate(graph, scores[:, None], y)
        if learnable_:
            w = learn_certificates([certificate]).w
            assert best_matching(graph, scores * w[0], perfect=True).tolist() == y.tolist()
        else:
            with pytest.raises(InputError, match="no weights satisfy"):
                learn_certificates([certificate])
            inference = matching_inference(graph, scores[:, None], y, perfect=True)
            w = min_max([inference], C=100.0).w  # with odd sets there is no such trouble
            assert w[0] > 0
            assert violating_matching(graph, scores * w[0], y, 1.0 - 1e-4, perfect=True).tolist() == y.tolist()
