"""Attractive networks: cuts, expansion, the relaxation and its roundings, votes; against brute force and twins."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.attractive import attractive_kernels as kernels
from netclust.models.attractive.attractive_networks import (
    AttractiveNetwork,
    Cliques,
    RelaxedLabels,
    best_labels,
    expand_network,
    network_agreements,
    network_majority,
    relax_network,
    round_labels,
    with_loss,
)
from netclust.models.attractive.smallest_cut import MinCut


def random_network(seed: int, nodes: int = 6, labels: int = 2, largest: int = 2, cliques: int = 7) -> AttractiveNetwork:
    """Node scores of both signs, attractions of which a quarter are 0."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(nodes, rng.integers(2, largest + 1), replace=False).tolist() for _ in range(cliques)]
    attraction = rng.uniform(0, 2, (cliques, labels)) * (rng.random((cliques, labels)) > 0.25)
    return AttractiveNetwork(rng.normal(0, 2, (nodes, labels)), Cliques.of_sets(sets), attraction)


def slow_score(network: AttractiveNetwork, y: Any) -> float:
    """The definition, clique by clique."""
    total = sum(network.node[v, k] for v, k in enumerate(y))
    at, members = network.cliques.at, network.cliques.members
    for c in range(len(network.cliques)):
        found = {int(y[v]) for v in members[at[c] : at[c + 1]]}
        if len(found) == 1:
            total += network.attraction[c, found.pop()]
    return float(total)


def best_by_force(network: AttractiveNetwork) -> float:
    n, K = network.node.shape
    return max(slow_score(network, y) for y in product(range(K), repeat=n))


@given(st.integers(0, 10_000), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_two_labels_are_the_best(seed, largest) -> None:
    """Pairs by the directed gadget, larger cliques by helpers."""
    network = random_network(seed, largest=largest)
    y = best_labels(network)
    assert network.score(y) == pytest.approx(slow_score(network, y))
    assert network.score(y) == pytest.approx(best_by_force(network), abs=1e-9)


def printed_cut(network: AttractiveNetwork, gadget: str) -> float:
    """The score of the labelling by the cut of section 7.3.1, its link read in one of three ways; label 0 is source."""
    n = len(network.node)
    arcs: list[tuple[int, int, float, float]] = []
    for v, (a, b) in enumerate(network.node):
        arcs.append((n, v, a - b, 0.0) if a > b else (v, n + 1, b - a, 0.0))
    for (u, v), (a, b) in zip(network.cliques.members.reshape(-1, 2), network.attraction, strict=True):
        if gadget == "symmetric":
            arcs += [(n, u, a / 2, 0.0), (n, v, a / 2, 0.0), (u, n + 1, b / 2, 0.0), (v, n + 1, b / 2, 0.0)]
            arcs.append((u, v, (a + b) / 2, (a + b) / 2))
        else:
            arcs += [(n, u, a, 0.0), (v, n + 1, b, 0.0), (u, v, a + b, a + b if gadget == "undirected" else 0.0)]
    tail, head, capacity, back = (np.array(column) for column in zip(*arcs, strict=True))
    _, reached = MinCut(n + 2, tail.astype(np.int64), head.astype(np.int64), capacity, back).solve(n, n + 1)
    return network.score(np.where(reached[:n], 0, 1))


def test_undirected_links_differ_from_directed_ones() -> None:
    """Of 150 problems the directed and the symmetric gadget are always the best, the undirected one often not."""
    wrong = {"directed": 0, "undirected": 0, "symmetric": 0}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        edges = [rng.choice(5, 2, replace=False).tolist() for _ in range(6)]
        network = AttractiveNetwork(
            rng.integers(-4, 5, (5, 2)).astype(float), Cliques.of_edges(edges), rng.integers(0, 5, (6, 2)).astype(float)
        )
        best = best_by_force(network)
        for gadget in wrong:
            wrong[gadget] += printed_cut(network, gadget) < best - 1e-9
        assert network.score(best_labels(network)) == best
    assert wrong["directed"] == wrong["symmetric"] == 0
    assert wrong["undirected"] > 20


@given(st.integers(0, 10_000), st.integers(2, 3))
@settings(max_examples=25, deadline=None)
def test_expansion_stays_within_its_factor(seed, largest) -> None:
    """Never below its start, no move gains, and nodes + size * cliques is not below the best."""
    network = random_network(seed, nodes=5, labels=3, largest=largest)
    start = np.random.default_rng(seed).integers(0, 3, 5)
    y = best_labels(network, start)
    assert network.score(y) >= network.score(start) - 1e-9
    for k in range(3):
        assert network.score(expand_network(network, y, k)) <= network.score(y) + 1e-6
    nodes = float(network.node[np.arange(5), y].sum())
    bound = nodes + int(network.cliques.sizes.max()) * (network.score(y) - nodes)
    assert bound >= best_by_force(network) - 1e-9


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_one_move_is_the_best_move(seed) -> None:
    network = random_network(seed, nodes=6, labels=3, largest=4)
    y = np.random.default_rng(seed + 1).integers(0, 3, 6)
    k = seed % 3
    moves = (np.where(np.array(taken), k, y) for taken in product([False, True], repeat=6))
    assert network.score(expand_network(network, y, k)) == pytest.approx(max(network.score(m) for m in moves), abs=1e-9)


def test_expansion_is_usually_the_best() -> None:
    """Within a factor 2 by theory; on random problems with three labels it is nearly always the best."""
    networks = [random_network(seed, nodes=5, labels=3) for seed in range(40)]
    best = [best_by_force(network) for network in networks]
    found = [network.score(best_labels(network)) for network in networks]
    assert np.isclose(found, best).mean() > 0.9


@given(st.integers(0, 10_000), st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_the_relaxation_of_two_labels_has_no_gap(seed, largest) -> None:
    network = random_network(seed, largest=largest)
    relaxed = relax_network(network)
    assert relaxed.integral
    assert relaxed.value == pytest.approx(best_by_force(network), abs=1e-6)
    assert network.score(round_labels(network, relaxed)) == pytest.approx(relaxed.value, abs=1e-6)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_the_relaxation_is_an_upper_bound(seed) -> None:
    network = random_network(seed, nodes=5, labels=3, largest=3)
    relaxed = relax_network(network)
    assert relaxed.value >= best_by_force(network) - 1e-6
    assert relaxed.node.sum(axis=1) == pytest.approx(1.0)
    if relaxed.integral:
        assert network.score(round_labels(network, relaxed, seed=0)) == pytest.approx(relaxed.value, abs=1e-6)


def halves(seed: int) -> tuple[AttractiveNetwork, RelaxedLabels]:
    """Shares that are no labelling, to be rounded: the bound of rounding holds for any of them."""
    network = random_network(seed, nodes=6, labels=3, largest=3)
    share = np.random.default_rng(seed).dirichlet(np.ones(3), 6)
    members, at = network.cliques.members, network.cliques.at
    together = np.minimum.reduceat(share[members], at[:-1], axis=0)
    return network, RelaxedLabels(share, together, 0.0)


def promised(network: AttractiveNetwork, relaxed: RelaxedLabels) -> float:
    sizes = network.cliques.sizes[:, None]
    return float((network.node * relaxed.node).sum() + (network.attraction * relaxed.clique / sizes).sum())


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_rounding_without_chance_keeps_its_bound(seed) -> None:
    network, relaxed = halves(seed)
    assert network.score(round_labels(network, relaxed)) >= promised(network, relaxed) - 1e-9


def slow_promise(network: AttractiveNetwork, mu: Any, y: Any) -> float:
    """The score of what is labelled, and a chance from below of what is not: clique by clique."""
    total = sum(network.node[v, k] if k >= 0 else mu[v] @ network.node[v] for v, k in enumerate(y))
    at, members = network.cliques.at, network.cliques.members
    for c in range(len(network.cliques)):
        row = members[at[c] : at[c + 1]]
        given, rest = set(y[row][y[row] >= 0].tolist()), mu[row[y[row] < 0]]
        if len(given) > 1:
            continue
        if not len(rest):
            total += network.attraction[c, given.pop()]
            continue
        chance = rest.min(axis=0) / rest.max(axis=0).sum()
        total += sum(chance[k] * network.attraction[c, k] for k in (given or range(mu.shape[1])))
    return float(total)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_rounding_without_chance_equals_its_twin(seed) -> None:
    network, relaxed = halves(seed)
    mu, y = relaxed.node, np.full(6, -1)
    while (y < 0).any():
        draws = [(k, level) for k in range(3) for level in sorted(set(mu[y < 0, k]), reverse=True) if level > 0]
        tried = [np.where((y < 0) & (mu[:, k] >= level), k, y) for k, level in draws]
        y = max(tried, key=lambda one: slow_promise(network, mu, one))  # of equals the first, as in the kernel
    assert round_labels(network, relaxed).tolist() == y.tolist()


def test_rounding_by_chance_keeps_its_bound_and_shares() -> None:
    network, relaxed = halves(3)
    drawn = np.array([round_labels(network, relaxed, seed=seed) for seed in range(1500)])
    assert (drawn[:30] == [round_labels(network, relaxed, seed=seed) for seed in range(30)]).all()
    shares = np.stack([(drawn == k).mean(axis=0) for k in range(3)], axis=1)
    assert shares == pytest.approx(relaxed.node, abs=0.06)
    assert np.mean([network.score(y) for y in drawn]) >= promised(network, relaxed) - 0.1


@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
@settings(max_examples=20, deadline=None)
def test_the_worst_labelling_is_found(seed, labels) -> None:
    network = random_network(seed, nodes=5, labels=labels)
    y = np.random.default_rng(seed).integers(0, labels, 5)
    harder = with_loss(network, y, 1.5)
    for other in product(range(labels), repeat=5):
        assert harder.score(np.array(other)) == pytest.approx(network.score(np.array(other)) + 1.5 * (y != other).sum())
    if labels == 2:
        assert harder.score(best_labels(harder)) == pytest.approx(best_by_force(harder))


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_kernels_equal_their_twins(seed) -> None:
    network = random_network(seed, labels=3, largest=4)
    rng = np.random.default_rng(seed)
    y, cliques = rng.integers(0, 3, 6), network.cliques
    rows = [cliques.members[a:b] for a, b in zip(cliques.at[:-1], cliques.at[1:], strict=True)]
    assert network_agreements(cliques, y).tolist() == [int(y[r[0]]) if len(set(y[r])) == 1 else -1 for r in rows]
    votes, slow = np.zeros((6, 3)), np.zeros((6, 3))
    kernels.count_votes(cliques.at, cliques.members, y, votes)
    for row in rows:
        for v in row:
            for u in row:
                slow[v, y[u]] += u != v
    assert (votes == slow).all()
    mu, label, threshold = rng.dirichlet(np.ones(3), 6), rng.integers(0, 3, 5), rng.random(5)
    fast, slow_y = np.full(6, -1), np.full(6, -1)
    left = kernels.round_by_draws(mu, label, threshold, fast)
    for k, t in zip(label, threshold, strict=True):
        slow_y[(slow_y < 0) & (mu[:, k] >= t)] = k
    assert fast.tolist() == slow_y.tolist()
    assert left == (slow_y < 0).sum()


def test_majority_equals_votes_counted_by_hand() -> None:
    cliques = Cliques.of_edges([[0, 1], [0, 2], [0, 3], [3, 4]])
    y = np.array([0, 1, 1, 1, 0])
    assert network_majority(cliques, y, 2).tolist() == [1, 1, 1, 0, 0]  # 1, 2 and 4 are tied, and keep theirs
    assert network_majority(cliques, y, 2, own=0.0).tolist() == [1, 0, 0, 0, 1]


def test_what_is_no_attractive_network_is_refused() -> None:
    node = np.zeros((3, 2))
    for cliques, attraction, word in [
        (Cliques.of_edges([[0, 1]]), [[1.0, -0.5]], "repels"),
        (Cliques.of_edges([[0, 3]]), [[1.0, 1.0]], "names node 3"),
        (Cliques.of_sets([[1, 2, 1]]), [[1.0, 1.0]], "twice"),
        (Cliques.of_sets([[1]]), [[1.0, 1.0]], "fewer than two"),
        (Cliques.of_edges([[0, 1]]), [[np.nan, 1.0]], "finite"),
        (Cliques.of_edges([[0, 1]]), [[1.0, 1.0, 1.0]], "shape"),
    ]:
        with pytest.raises(InputError, match=word):
            AttractiveNetwork(node, cliques, np.array(attraction))
    with pytest.raises(InputError, match="at least two"):
        AttractiveNetwork(np.zeros((3, 1)), Cliques.of_edges([]), np.zeros((0, 1)))
    with pytest.raises(InputError, match="too large for the LP"):
        relax_network(AttractiveNetwork(node, Cliques.of_edges([]), np.zeros((0, 2))), largest=3)


def test_ties_and_networks_without_cliques() -> None:
    network = AttractiveNetwork(np.array([[1.0, 1.0], [0.0, 2.0]]), Cliques.of_edges([]), np.zeros((0, 2)))
    assert best_labels(network).tolist() == [0, 1]
    assert relax_network(network).value == pytest.approx(3.0)
    empty = AttractiveNetwork(np.zeros((0, 2)), Cliques.of_edges([]), np.zeros((0, 2)))
    assert best_labels(empty).tolist() == []
