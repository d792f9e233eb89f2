"""Attractive (associative) Markov networks: labels of nodes that like to agree with those they are tied to.

A labelling's score is the sum of its nodes' scores, and of every clique whose members all have one label k what that
clique adds for k, never below 0. One node is sure of label 1, its two neighbours lean to 0 by less than a tie is worth:

>>> network = AttractiveNetwork(
...     np.array([[0.0, 3.0], [0.25, 0.0], [0.25, 0.0]]), Cliques.of_edges([[0, 1], [1, 2]]), np.ones((2, 2))
... )
>>> best_labels(network).tolist(), network.score(np.array([1, 1, 1]))
([1, 1, 1], 5.0)

With two labels one minimum cut is the best labelling, whatever the cliques. With more, alpha-expansion goes from label
to label and takes every one that is better, each move a minimum cut; what it ends with is within the size of the
largest clique of the best, as far as cliques are concerned. The linear relaxation bounds the best from above:

>>> relaxed = relax_network(network)
>>> relaxed.value, relaxed.integral, round_labels(network, relaxed).tolist()
(5.0, True, [1, 1, 1])

Repulsion (an attraction below 0) is refused: no cut is then the best labelling.

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; chapter 7 and section 3.3.2. The link of the printed cut has a direction (from u to v), or cuts are not the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError, NetclustError
from netclust.foundation.optional import require_optional
from netclust.models.attractive.smallest_cut import MinCut
from netclust.structures.pairs import Indices, Vector

__all__ = [
    "AttractiveNetwork",
    "Cliques",
    "RelaxedLabels",
    "best_labels",
    "expand_network",
    "network_agreements",
    "network_majority",
    "relax_network",
    "round_labels",
    "with_loss",
]

Labels = NDArray[np.int64]
Matrix = NDArray[np.float64]

LARGEST_PROGRAM = 200_000
"""Variables of a linear relaxation: what ends in minutes on one core."""
SNAP = 1e-9
"""A share so close to 0 or 1 is 0 or 1."""
LEAST_GAIN = 1e-9
"""A move must gain more than this share of the scores, so that rounding cannot make moves go on for ever."""


@dataclass(frozen=True, eq=False)
class Cliques:
    """Sets of two or more nodes: clique c is `members[at[c] : at[c + 1]]`."""

    at: Indices
    members: Indices

    @staticmethod
    def of_edges(edges: ArrayLike) -> Cliques:
        """Pairs of nodes, a row each."""
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        return Cliques(2 * np.arange(len(pairs) + 1, dtype=np.int64), pairs.ravel())

    @staticmethod
    def of_sets(sets: Iterable[Sequence[int]]) -> Cliques:
        """Sets of nodes of any sizes."""
        rows = [np.asarray(row, np.int64) for row in sets]
        at = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return Cliques(at, np.concatenate([np.zeros(0, np.int64), *rows]))

    def __len__(self) -> int:
        """How many cliques there are."""
        return len(self.at) - 1

    @property
    def sizes(self) -> Indices:
        """Members of every clique."""
        return np.diff(self.at)

    def check(self, nodes: int) -> None:
        """Refuse cliques that are none of a network of so many nodes."""
        if self._flaw:
            raise InputError(self._flaw)
        if self._last >= nodes:
            raise InputError(f"a clique names node {self._last}, and there are {nodes} (from 0)")

    @cached_property
    def _last(self) -> int:
        return int(self.members.max(initial=-1))

    @cached_property
    def _flaw(self) -> str:
        """What is wrong with the cliques, looked for once: a network is made of them at every step of a training."""
        if (self.sizes < 2).any():
            return f"clique {int(np.argmax(self.sizes < 2)) + 1} has fewer than two members"
        if self.members.min(initial=0) < 0:
            return f"a clique names node {int(self.members.min())}: nodes count from 0"
        clique = np.repeat(np.arange(len(self)), self.sizes)
        order = np.lexsort((self.members, clique))
        twice = (np.diff(self.members[order]) == 0) & (np.diff(clique) == 0)
        return f"clique {int(clique[1:][twice][0]) + 1} names a node twice" if twice.any() else ""


@dataclass(frozen=True, eq=False)
class AttractiveNetwork:
    """Scores of nodes [n, K] and of cliques [C, K], the latter not below 0."""

    node: Matrix
    cliques: Cliques
    attraction: Matrix

    def __post_init__(self) -> None:
        """Refuse what is no attractive network."""
        n, K = self.node.shape
        if K < 2:
            raise InputError(f"{K} label: at least two are needed")
        self.cliques.check(n)
        if self.attraction.shape != (len(self.cliques), K):
            raise InputError(f"attractions have shape {self.attraction.shape}, expected {(len(self.cliques), K)}")
        if not (np.isfinite(self.node).all() and np.isfinite(self.attraction).all()):
            raise InputError("scores of an attractive network are finite numbers")
        if (self.attraction < 0).any():
            clique = int(np.argmax((self.attraction < 0).any(axis=1)))
            raise InputError(
                f"clique {clique + 1} repels ({self.attraction[clique].min():g}): attractions are 0 or more; "
                "no minimum cut is the best labelling otherwise"
            )

    def score(self, y: Labels) -> float:
        """The score of a labelling."""
        agreed = network_agreements(self.cliques, y)
        tied = np.flatnonzero(agreed >= 0)
        return float(self.node[np.arange(len(y)), y].sum() + self.attraction[tied, agreed[tied]].sum())


def network_agreements(cliques: Cliques, y: Labels) -> Labels:
    """Return the label that all members of a clique have, or -1."""
    from netclust.models.attractive.attractive_kernels import attractive_agreements as agree

    agreed = np.empty(len(cliques), np.int64)
    agree(cliques.at, cliques.members, np.ascontiguousarray(y, np.int64), agreed)
    return agreed


def best_labels(network: AttractiveNetwork, start: Labels | None = None) -> Labels:
    """The best labelling of two labels, by one cut; of more, what alpha-expansion from `start` ends with.

    Never worse than `start`, which is every node's own best label unless it is given. On ties label 0 (two labels).
    """
    n, K = network.node.shape
    if K == 2:
        return expand_network(network, np.zeros(n, np.int64), 1)
    y = network.node.argmax(axis=1).astype(np.int64) if start is None else np.asarray(start, np.int64).copy()
    score, last, k = network.score(y), 0, 0
    least = LEAST_GAIN * max(1.0, float(np.abs(network.node).max(initial=0.0)))
    while last < K:  # labels in turn, until none of them has been better since the last that was
        found = expand_network(network, y, k)
        gained = network.score(found)
        if gained > score + least:
            y, score, last = found, gained, 0
        last, k = last + 1, (k + 1) % K
    return y


def expand_network(network: AttractiveNetwork, y: Labels, k: int) -> Labels:
    """Return the best labelling in which every node keeps its label or takes k: one minimum cut."""
    from netclust.models.attractive.attractive_kernels import count_expansion, fill_expansion

    n, (at, members) = len(y), (network.cliques.at, network.cliques.members)
    node, attraction = np.ascontiguousarray(network.node), np.ascontiguousarray(network.attraction)
    y = np.ascontiguousarray(y, np.int64)
    arcs, helpers = count_expansion(at, members, attraction, y, k)
    tail, head = np.empty(arcs + n, np.int64), np.empty(arcs + n, np.int64)
    capacity = np.empty(arcs + n)
    used = fill_expansion(node, at, members, attraction, y, k, tail, head, capacity)
    cut = MinCut(n + 2 + helpers, tail[:used], head[:used], capacity[:used])
    _, reached = cut.solve(n, n + 1)
    return np.where(reached[:n], k, y)


def with_loss(network: AttractiveNetwork, y: Labels, weight: float | Vector) -> AttractiveNetwork:
    """The network in which every node that has not its label of y adds `weight`: what is searched for the worst."""
    n, K = network.node.shape
    wrong = np.arange(K) != np.asarray(y)[:, None]
    node = network.node + wrong * np.broadcast_to(np.asarray(weight, np.float64), n)[:, None]
    return AttractiveNetwork(node, network.cliques, network.attraction)


@dataclass(frozen=True, eq=False)
class RelaxedLabels:
    """Labels by shares: `node[v, k]` sum to 1 over k, `clique[c, k]` is the least share of k among its members."""

    node: Matrix
    clique: Matrix
    value: float

    @property
    def integral(self) -> bool:
        """Whether every node has one label: it is then the best labelling."""
        return bool(((self.node == 0) | (self.node == 1)).all())


def relax_network(network: AttractiveNetwork, *, largest: int = LARGEST_PROGRAM) -> RelaxedLabels:
    """Solve the linear relaxation by HiGHS; no labelling has a higher value; of two labels some has it."""
    highspy, sparse = (
        require_optional("highspy", "the LP relaxation"),
        require_optional("scipy.sparse", "the LP relaxation"),
    )
    n, K = network.node.shape
    at, members, C = network.cliques.at, network.cliques.members, len(network.cliques)
    if (n + C) * K > largest:
        raise InputError(
            f"{n:,} nodes and {C:,} cliques of {K} labels are too large for the LP relaxation: {(n + C) * K:,} "
            f"variables (up to {largest:,} are taken); use cuts, or raise the limit"
        )
    clique_of = np.repeat(np.arange(C), network.cliques.sizes)
    label = np.arange(K)
    own = (members[:, None] * K + label).ravel()  # the variable of a member's share, and of its clique's
    shared = (n * K + clique_of[:, None] * K + label).ravel()
    ties = np.arange(len(own))
    ones = sparse.coo_matrix((np.ones(n * K), (np.repeat(np.arange(n), K), np.arange(n * K))), (n, (n + C) * K))
    below = sparse.coo_matrix(
        (np.concatenate([np.ones(len(own)), -np.ones(len(own))]), (np.tile(ties, 2), np.concatenate([shared, own]))),
        (len(own), (n + C) * K),
    )
    rows = sparse.csr_matrix(sparse.vstack([ones, below]))
    scale = max(float(np.abs(network.node).max(initial=0.0)), float(network.attraction.max(initial=0.0))) or 1.0
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)  # the same answer on any machine
    count = (n + C) * K
    solver.addVars(count, np.zeros(count), np.ones(count))
    cost = np.concatenate([network.node.ravel(), network.attraction.ravel()]) / scale
    solver.changeColsCost(count, np.arange(count, dtype=np.int32), -cost)
    low = np.concatenate([np.ones(n), np.full(len(own), -np.inf)])
    high = np.concatenate([np.ones(n), np.zeros(len(own))])
    solver.addRows(
        len(low), low, high, rows.nnz, rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32), rows.data
    )
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise NetclustError(f"the linear program ended as {solver.modelStatusToString(status)}")
    share = np.clip(np.asarray(solver.getSolution().col_value)[: n * K].reshape(n, K), 0.0, 1.0)
    share[share < SNAP] = 0.0
    share /= share.sum(axis=1, keepdims=True)
    share[share > 1 - SNAP] = 1.0
    together = np.minimum.reduceat(share[members], at[:-1], axis=0) if C else np.zeros((0, K))
    value = float((network.node * share).sum() + (network.attraction * together).sum())
    return RelaxedLabels(share, np.asarray(together), value)


def round_labels(network: AttractiveNetwork, relaxed: RelaxedLabels, seed: int | None = None) -> Labels:
    """Kleinberg and Tardos: draws of a label and a threshold; without a seed the best draws are taken, not chance.

    What nodes score is kept, and of what a clique scores its size's fraction at least: in the mean over seeds, and
    always without a seed.
    """
    from netclust.models.attractive.attractive_kernels import round_by_draws, round_by_promise

    n, K = network.node.shape
    mu = np.ascontiguousarray(relaxed.node)
    y = np.full(n, -1, np.int64)
    if seed is None:
        round_by_promise(
            np.ascontiguousarray(network.node), network.cliques.at, network.cliques.members,
            np.ascontiguousarray(network.attraction), mu, y,
        )  # fmt: skip
        return y
    rng = np.random.default_rng(seed)
    while round_by_draws(mu, rng.integers(0, K, 64), 1.0 - rng.random(64), y):
        pass
    return y


def network_majority(cliques: Cliques, y: Labels, labels: int, own: float = 1.0) -> Labels:
    """Give every node the most frequent label among its neighbours, as a baseline; its own has `own` votes.

    On ties a node keeps its label if that is one of the most frequent, else the first of these.
    """
    from netclust.models.attractive.attractive_kernels import count_votes

    y = np.ascontiguousarray(y, np.int64)
    votes = np.zeros((len(y), labels))
    votes[np.arange(len(y)), y] = own
    count_votes(cliques.at, cliques.members, y, votes)
    kept = votes[np.arange(len(y)), y] >= votes.max(axis=1)
    found: Any = np.where(kept, y, votes.argmax(axis=1))
    return np.asarray(found, np.int64)
