"""Matchings by assignment, blossoms and linear programs, against each other and against every matching there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.latent import LatentSvm
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.models.matching.matching_loss import delta_matching, edge_price, wrong_edges
from netclust.models.matching.matching_problem import Allowed, AllowedMatchingProblem, MatchExample, MatchingProblem
from netclust.models.matching.matching_program import all_odd_sets, b_matching, relaxed_matching
from netclust.models.matching.matchings import (
    MatchGraph,
    best_matching,
    bipartite,
    chosen_edges,
    complete_graph,
    partners_of,
    violating_matching,
)


def every_matching(graph: MatchGraph, *, perfect: bool = False) -> np.ndarray:
    """All of them, a row of partners each."""
    found: list[np.ndarray] = []

    def extend(edge: int, partner: np.ndarray) -> None:
        if edge == len(graph.left):
            if not perfect or (partner >= 0).all():
                found.append(partner.copy())
            return
        extend(edge + 1, partner)
        a, b = graph.left[edge], graph.right[edge]
        if partner[a] < 0 and partner[b] < 0:
            partner[a], partner[b] = b, a
            extend(edge + 1, partner)
            partner[a] = partner[b] = -1

    extend(0, np.full(graph.nodes, -1))
    return np.array(found)


def value(graph: MatchGraph, scores: Any, partner: Any) -> float:
    return float(np.asarray(scores)[chosen_edges(graph, partner)].sum())


def highest(graph: MatchGraph, scores: Any, *, perfect: bool = False) -> float:
    every = every_matching(graph, perfect=perfect)
    return float(max(value(graph, scores, partner) for partner in every))


def random_graph(rng: np.random.Generator, nodes: int, share: float) -> MatchGraph:
    whole = complete_graph(nodes)
    kept = rng.random(len(whole.left)) < share
    return MatchGraph(nodes, whole.left[kept], whole.right[kept])


def is_matching(graph: MatchGraph, partner: np.ndarray) -> bool:
    edges = {(int(a), int(b)) for a, b in zip(graph.left, graph.right, strict=True)}
    taken = [(v, int(p)) for v, p in enumerate(partner) if p >= 0]
    return all(partner[p] == v and ((v, p) in edges or (p, v) in edges) for v, p in taken)


@pytest.mark.parametrize("nodes", range(1, 8))
def test_the_best_matching_of_a_graph_is_the_best_of_all(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    for share in (0.4, 0.7, 1.0):
        for _ in range(3):
            graph = random_graph(rng, nodes, share)
            scores = rng.normal(size=len(graph.left)) + 0.5
            found = best_matching(graph, scores)
            assert is_matching(graph, found)
            assert value(graph, scores, found) == pytest.approx(highest(graph, scores), abs=1e-9)


@pytest.mark.parametrize("nodes", [2, 4, 6, 8])
def test_the_best_perfect_matching_is_the_best_of_all_perfect_ones(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    graph = complete_graph(nodes)
    every = every_perfect(nodes)
    for _ in range(30):
        scores = rng.normal(size=len(graph.left))
        found = best_matching(graph, scores, perfect=True)
        assert is_matching(graph, found)
        assert (found >= 0).all()
        assert value(graph, scores, found) == pytest.approx(max(value(graph, scores, p) for p in every), abs=1e-9)


def every_perfect(nodes: int) -> list[np.ndarray]:
    """All perfect matchings of the complete graph: (2n)! / (2^n n!) for 2n nodes."""

    def pair_off(free: list[int]) -> list[list[tuple[int, int]]]:
        if not free:
            return [[]]
        first, rest = free[0], free[1:]
        return [[(first, b), *more] for b in rest for more in pair_off([v for v in rest if v != b])]

    found = []
    for pairs in pair_off(list(range(nodes))):
        partner = np.empty(nodes, np.int64)
        for a, b in pairs:
            partner[a], partner[b] = b, a
        found.append(partner)
    return found


def test_six_nodes_have_fifteen_perfect_matchings() -> None:
    assert [len(every_perfect(n)) for n in (2, 4, 6, 8)] == [1, 3, 15, 105]
    assert len(every_matching(complete_graph(6), perfect=True)) == 15


def by_subsets(graph: MatchGraph, weights: np.ndarray) -> int:
    """The highest sum, by dynamic programming over sets of nodes."""
    table = np.zeros((graph.nodes, graph.nodes), np.int64)
    table[graph.left, graph.right] = table[graph.right, graph.left] = weights
    best = [0] * (1 << graph.nodes)
    for nodes in range(1, 1 << graph.nodes):
        v = nodes.bit_length() - 1
        rest = nodes ^ (1 << v)
        others = [u for u in range(v) if rest >> u & 1]
        best[nodes] = max([best[rest], *(int(table[u, v]) + best[rest ^ (1 << u)] for u in others)])
    return best[-1]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10), st.sampled_from([2, 5, 1000]), st.floats(0.2, 1.0), st.integers(0, 2**32 - 1))
def test_blossoms_within_blossoms(nodes: int, largest: int, share: float, seed: int) -> None:
    """Small whole numbers: many ties, many odd cycles."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, nodes, share)
    weights = rng.integers(1, largest + 1, len(graph.left))
    found = best_matching(graph, weights.astype(np.float64))
    assert is_matching(graph, found)
    assert value(graph, weights, found) == by_subsets(graph, weights)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_bipartite_graphs_by_assignment_blossoms_linear_program_and_brute_force(
    left: int, right: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    whole = bipartite(left, right)
    kept = np.flatnonzero(rng.random(left * right) < 0.8)
    graph = MatchGraph(whole.nodes, whole.left[kept], whole.right[kept], left)
    same = MatchGraph(whole.nodes, graph.left, graph.right)
    scores = rng.normal(size=len(kept)) + 0.3
    found = best_matching(graph, scores)
    assert is_matching(graph, found)
    most = highest(graph, scores)
    assert value(graph, scores, found) == pytest.approx(most, abs=1e-9)
    assert value(graph, scores, best_matching(same, scores)) == pytest.approx(most, abs=1e-9)
    relaxed = relaxed_matching(graph, scores)
    assert relaxed.value == pytest.approx(most, abs=1e-7)
    assert relaxed.integral()


def duplicate(graph: MatchGraph, scores: NDArray[Any]) -> tuple[MatchGraph, NDArray[Any]]:
    """Return two copies of a graph, every node joined to its copy by an edge of score 0.

    Its best perfect matching is, in each copy, a best matching of the graph, and has twice its score.
    """
    own, n = np.arange(graph.nodes), graph.nodes
    left = np.concatenate([graph.left, graph.left + n, own])
    right = np.concatenate([graph.right, graph.right + n, own + n])
    return MatchGraph(2 * n, left, right), np.concatenate([scores, scores, np.zeros(n)])


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_a_perfect_matching_of_two_copies_is_a_matching_of_one(nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, nodes, 0.8)
    scores = rng.normal(size=len(graph.left)) + 0.3
    doubled, scored = duplicate(graph, scores)
    found = best_matching(doubled, scored, perfect=True)
    most = value(graph, scores, best_matching(graph, scores))
    assert value(doubled, scored, found) == pytest.approx(2 * most, abs=1e-9)
    first = found[:nodes].copy()
    first[first >= nodes] = -1  # joined to its copy: alone
    second = found[nodes:] - nodes
    second[second < 0] = -1
    for copy in (first, second):
        assert is_matching(graph, copy)
        assert value(graph, scores, copy) == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize("nodes", [4, 7, 10, 12])
def test_with_odd_sets_the_linear_program_is_the_best_matching(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    graph = complete_graph(nodes)
    for perfect in (False, True) if nodes % 2 == 0 else (False,):
        scores = rng.normal(size=len(graph.left)) + 0.5
        scores[rng.random(len(scores)) < 0.3] = 1.0  # ties among odd cycles
        relaxed = relaxed_matching(graph, scores, perfect=perfect)
        found = best_matching(graph, scores, perfect=perfect)
        assert relaxed.value == pytest.approx(value(graph, scores, found), abs=1e-7)


def test_without_odd_sets_corners_are_half_integral() -> None:
    rng = np.random.default_rng(0)
    fractional = 0
    for _ in range(40):
        graph = complete_graph(7)
        scores = rng.normal(size=21) + 1.0
        relaxed = relaxed_matching(graph, scores, odd_sets=False)
        assert np.allclose(2 * relaxed.edges, np.rint(2 * relaxed.edges), atol=1e-7)
        assert relaxed.value >= value(graph, scores, best_matching(graph, scores)) - 1e-9
        fractional += not relaxed.integral()
    assert fractional > 5


def test_a_triangle_of_halves() -> None:
    relaxed = relaxed_matching(complete_graph(3), np.ones(3), odd_sets=False)
    assert relaxed.edges.tolist() == [0.5, 0.5, 0.5]
    exact = relaxed_matching(complete_graph(3), np.ones(3))
    assert exact.value == 1.0
    assert exact.odd_sets.tolist() == [0b111]


@pytest.mark.parametrize("nodes", range(3, 9))
def test_how_many_odd_sets_there_are(nodes: int) -> None:
    assert len(all_odd_sets(nodes)) == 2 ** (nodes - 1) - nodes


@pytest.mark.parametrize("seed", range(4))
def test_reviewers_and_papers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(3, 3))
    found = b_matching(scores, per_column=2, most_per_row=2)
    assert (found.sum(axis=0) == 2).all()
    assert (found.sum(axis=1) <= 2).all()
    tables = (np.arange(512)[:, None] >> np.arange(9) & 1).reshape(-1, 3, 3)
    allowed = tables[(tables.sum(axis=1) == 2).all(axis=1) & (tables.sum(axis=2) <= 2).all(axis=1)]
    assert scores[found].sum() == pytest.approx((allowed * scores).sum(axis=(1, 2)).max())


def test_one_reviewer_a_paper_and_one_paper_a_reviewer_is_a_perfect_matching() -> None:
    scores = np.random.default_rng(5).normal(size=(5, 5))
    found = b_matching(scores, per_column=1, most_per_row=1)
    partner = best_matching(bipartite(5, 5), scores.ravel(), perfect=True)
    assert found.argmax(axis=1).tolist() == (partner[:5] - 5).tolist()


def test_the_loss_counts_edges_on_either_side() -> None:
    graph = bipartite(2, 3)
    for y in every_matching(graph):
        for h in every_matching(graph):
            differ = int((chosen_edges(graph, y) != chosen_edges(graph, h)).sum())
            assert wrong_edges(y, h) == differ
            assert delta_matching(y, h) == pytest.approx(differ * edge_price(y))
            assert (delta_matching(y, h) == 0) == (y.tolist() == h.tolist())
            assert delta_matching(y, h) <= 100


def test_a_swapped_pair_has_four_wrong_edges_of_four() -> None:
    """The source's example counts each wrong edge once: 2. Of 0/1 vectors the Hamming distance is 4."""
    assert wrong_edges(np.array([2, 3, 0, 1]), np.array([3, 2, 1, 0])) == 4


@pytest.mark.parametrize("graph", [bipartite(3, 2), complete_graph(5)], ids=["bipartite", "general"])
def test_the_max_violating_matching_is_the_worst_of_all(graph: MatchGraph) -> None:
    rng = np.random.default_rng(3)
    every = every_matching(graph)
    for _ in range(10):
        scores, y = rng.normal(size=len(graph.left)), every[rng.integers(len(every))]
        found = violating_matching(graph, scores, y, cost=0.7)
        total = [value(graph, scores, h) + 0.7 * wrong_edges(y, h) for h in every]
        assert value(graph, scores, found) + 0.7 * wrong_edges(y, found) == pytest.approx(max(total))


@pytest.mark.parametrize("general", [False, True])
def test_every_learner_finds_the_same_weights(general: bool) -> None:
    rng = np.random.default_rng(7)
    graph = complete_graph(6) if general else bipartite(3, 3)
    truth, examples = np.array([2.0, -1.0, -0.5]), []
    for _ in range(8):
        features = np.column_stack([rng.normal(size=(len(graph.left), 2)), np.ones(len(graph.left))])
        examples.append((MatchExample(graph, features), best_matching(graph, features @ truth)))
    problem = MatchingProblem(3)
    learners = (OneSlack(C=100.0, epsilon=1e-3), NSlack(C=100.0, epsilon=1e-3), FrankWolfe(C=100.0, epsilon=1e-3))
    fits = [learner.fit(problem, examples) for learner in learners]  # type: ignore[attr-defined]
    for fit in fits[1:]:
        assert fit.objective == pytest.approx(fits[0].objective, abs=0.2)
    wrong = [delta_matching(y, problem.predict(x, fits[0].w)) for x, y in examples]
    assert np.mean(wrong) < 20


@pytest.mark.parametrize("graph", [bipartite(3, 3), complete_graph(5)], ids=["bipartite", "general"])
def test_latent_matchings_by_all_there_are(graph: MatchGraph) -> None:
    rng = np.random.default_rng(4)
    every = every_matching(graph)
    problem = AllowedMatchingProblem(2)
    for _ in range(10):
        right = rng.random(len(graph.left)) < 0.4
        y = Allowed(graph, right, rng.normal(size=len(right)))
        x, w = MatchExample(graph, rng.normal(size=(len(right), 2))), rng.normal(size=2)
        chosen = np.array([chosen_edges(graph, h) for h in every])
        found = (chosen & right).sum(axis=1)
        wrong = (chosen & ~right).sum(axis=1)
        assert y.possible == found.max()
        losses = y.price * (wrong + found.max() - found)
        assert [problem.loss(y, h) for h in every] == pytest.approx(losses.tolist())
        assert losses.min() == 0
        assert losses.max() <= 100 + 1e-9
        scores = chosen @ (x.features @ w)
        h, loss = problem.max_violating(x, y, w, C=0.05)
        assert problem.joint_features(x, h) @ w + 0.05 * loss == pytest.approx((scores + 0.05 * losses).max())
        gold = problem.gold(x, y, w)
        assert problem.loss(y, gold) == 0
        assert problem.joint_features(x, gold) @ w == pytest.approx(scores[losses == 0].max())
        first = problem.gold(x, y, np.zeros(2))
        assert value(graph, y.start, first) == pytest.approx((chosen @ y.start)[losses == 0].max())


def test_the_latent_learner_finds_which_edges_are_meant() -> None:
    """Two right edges share a node; the features say which one recurs."""
    graph = bipartite(2, 1)
    y = Allowed(graph, np.array([True, True]), np.array([0.1, 0.2]))
    features = np.array([[1.0, 0.2], [0.4, 1.0]])
    fit = LatentSvm(OneSlack(C=100.0, epsilon=0.01)).fit(
        AllowedMatchingProblem(2), [(MatchExample(graph, features), y)]
    )
    assert y.graph is graph
    h = AllowedMatchingProblem(2).predict(MatchExample(graph, features), fit.w)
    assert AllowedMatchingProblem(2).loss(y, h) == 0


def test_errors_say_what_is_wrong() -> None:
    graph = bipartite(2, 2, np.array([[0, 0], [1, 0]]))
    with pytest.raises(InputError, match="no perfect matching"):
        best_matching(graph, np.ones(2), perfect=True)
    with pytest.raises(InputError, match="no perfect matching"):
        best_matching(MatchGraph(4, np.array([0, 0]), np.array([1, 2])), np.ones(2), perfect=True)
    with pytest.raises(InputError, match="no perfect matching"):
        relaxed_matching(graph, np.ones(2), perfect=True)
    with pytest.raises(InputError, match="left alone"):
        best_matching(complete_graph(3), np.ones(3), perfect=True)
    with pytest.raises(InputError, match="finite"):
        best_matching(graph, np.array([1.0, np.nan]))
    with pytest.raises(InputError, match="node 2 has two partners"):
        partners_of(graph, np.array([True, True]))
    with pytest.raises(InputError, match="twice"):
        MatchGraph(3, np.array([0, 1]), np.array([1, 0]))
    with pytest.raises(InputError, match="left side"):
        MatchGraph(4, np.array([0]), np.array([1]), split=2)
    with pytest.raises(InputError, match="too few"):
        b_matching(np.ones((2, 3)), per_column=2, most_per_row=2)
    with pytest.raises(InputError, match="18 nodes are the most"):
        relaxed_matching(complete_graph(19), np.ones(171))
    with pytest.raises(InputError, match="25,000,000 pairs are the most"):
        bipartite(6000, 6000, np.zeros((0, 2)))
    with pytest.raises(InputError, match="2,000 are the most"):
        MatchGraph(3000, np.zeros(0, np.int64), np.zeros(0, np.int64))


def test_nothing_to_match() -> None:
    assert best_matching(bipartite(0, 3), np.zeros(0)).tolist() == [-1] * 3
    assert best_matching(complete_graph(1), np.zeros(0)).tolist() == [-1]
    assert best_matching(complete_graph(0), np.zeros(0)).tolist() == []
