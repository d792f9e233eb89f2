"""What the tests of the learned loss share: random documents, MELA, and Algorithm 6 without any increments."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from netclust.losses.learned_loss import LearnedLoss, Truth, nine_features
from netclust.models.coreference.global_loss import TIE
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import Indices, Vector
from netclust.structures.tree import tree_clusters

Labels = NDArray[np.int64]


def mela(truth: Truth, z: Labels) -> float:
    """The mean F1 of MUC, B3 and CEAF_e in percent, the last with the best alignment."""
    psi = nine_features(truth, z)
    table = np.zeros((len(truth.sizes), int(z.max()) + 1))
    np.add.at(table, (truth.keys[truth.keys >= 0], z[truth.keys >= 0]), 1.0)
    sizes = np.bincount(z, minlength=table.shape[1])
    similarity = 2 * table / (truth.sizes[:, None] + sizes[None, :])
    total = similarity[linear_sum_assignment(-similarity)].sum()
    return float((psi[2] + psi[5] + 200 * total / (len(truth.sizes) + (sizes > 0).sum())) / 3)


def random_truth(rng: np.random.Generator, n: int, entities: int, spurious: float = 0.2, missed: float = 0.2) -> Truth:
    """Entities of uneven sizes; some items are spurious, some members were not found."""
    labels = np.minimum(rng.geometric(1.5 / entities, size=n), entities) - 1
    labels[rng.random(n) < spurious] = -1
    whole = Truth.of_labels(labels)
    sizes = whole.sizes + rng.binomial(2, missed, size=len(whole.sizes))
    return Truth(whole.keys, np.concatenate([sizes, rng.integers(1, 4, size=int(missed > 0))]).astype(np.int64))


def random_loss(rng: np.random.Generator) -> LearnedLoss:
    """As regressions give them: mostly positive weights, some negative."""
    return LearnedLoss(rng.normal(0.1, 0.15, size=9), float(rng.normal(0, 5)))


def random_arcs(rng: np.random.Generator, n: int, d: int, ties: bool = False) -> tuple[Indices, Vector]:
    """Starts of rows of at most d candidates, and scores of which many are equal if there are to be ties."""
    starts = np.concatenate([[0], np.cumsum(np.minimum(np.arange(n), d))]).astype(np.int64)
    scores = rng.integers(-1, 2, size=starts[-1]) * 0.5 if ties else rng.normal(-0.3, 1.0, size=starts[-1])
    return starts, scores.astype(np.float64)


def plain_tree(
    starts: Indices, scores: Vector, truth: Truth, loss: LearnedLoss, C: float, scaled: bool, passes: int = 100
) -> tuple[Labels, list[float]]:
    """Algorithm 6 that computes the features of every candidate's clustering anew, and the potential after each arc."""
    n = len(truth.keys)
    parents = np.full(n, -1, np.int64)
    potentials = []
    largest = np.abs(scores).max(initial=0.0) + 100 * C * truth.detected / 100 * (1 + np.abs(loss.v).sum())
    for done in range(passes):
        before = parents.copy()
        for j in range(n):
            first = j - (starts[j + 1] - starts[j])
            current = parents[j]
            order = [current] if current >= 0 else []
            best, parent = -np.inf, -1
            for p in [*order, 0, *range(first + 1, j + 1)]:
                parents[j] = p
                delta = loss.scaled(nine_features(truth, partial_clusters(parents)), truth.detected)
                share = C * (j + 1) / n if scaled else C
                value = (scores[starts[j] + p - 1 - first] if p else 0.0) + share * delta
                if parent < 0 or value > best + TIE * largest:
                    best, parent = value, p
            parents[j] = parent
            if done:
                potentials.append(plain_potential(starts, scores, parents, truth, loss, C, scaled))
        if (parents == before).all():
            break
    return parents, potentials


def partial_clusters(parents: Labels) -> Labels:
    """Clusters of a tree whose last nodes may not be placed: those are -1."""
    z = np.full(len(parents), -1, np.int64)
    placed = parents[parents >= 0]
    z[: len(placed)] = tree_clusters(placed)
    return z


def plain_potential(
    starts: Indices, scores: Vector, parents: Labels, truth: Truth, loss: LearnedLoss, C: float, scaled: bool
) -> float:
    """Pot of a whole tree, from its definition."""
    n = len(parents)
    total = C * loss.scaled(nine_features(truth, tree_clusters(parents)), truth.detected)
    for j in range(n):
        if parents[j]:
            first = j - (starts[j + 1] - starts[j])
            total += (n / (j + 1) if scaled else 1.0) * scores[starts[j] + parents[j] - 1 - first]
    return float(total)


def every_tree(n: int) -> list[Labels]:
    """All trees over n items with all candidates."""
    return [np.array(tree, np.int64) for tree in product(*(range(j + 1) for j in range(n)))]


def made_document(
    rng: np.random.Generator, mentions: int, *, attributes: int, noise: float, reach: int = 50, named: bool = False
) -> tuple[HashedPairs, Truth]:
    """Mentions of entities with noisy attributes, some spurious and some missed.

    A pair has a constant, a slot for every attribute (equal or not) and one for its distance. Where entities are
    `named`, nothing is spurious or missed and a slot tells whether both are of one entity: that can be learned.
    """
    wrong = 0.0 if named else 0.1
    truth = random_truth(rng, mentions, max(mentions // 5, 2), spurious=wrong, missed=wrong)
    labels = truth.labels
    values = rng.integers(0, 3, size=(labels.max() + 1, attributes))[labels]
    values = np.where(rng.random(values.shape) < noise, rng.integers(0, 3, size=values.shape), values)
    rows = []
    for j in range(mentions):
        for i in range(max(0, j - reach), j):
            equal = values[i] == values[j]
            slots = [0, 1 + int(np.log2(j - i)), *(10 + 2 * np.arange(attributes) + equal)]
            rows.append([*slots, 8 + int(labels[i] == labels[j])] if named else slots)
    candidates = [min(j, reach) for j in range(1, mentions)]
    return HashedPairs.of_rows(mentions, 10 + 2 * attributes, candidates, rows), truth
