"""Item sets whose right clustering is known, each made to show one thing about supervised clustering.

| generator | shows |
|---|---|
| `coreference_like` | chains: only neighbours in a chain look alike, so that a pair classifier breaks it up |
| `stars` | transitivity pays: spokes are easy, rim pairs ambiguous |
| `news_like` | easy topics, with each site's boilerplate in the long n-grams: pair classifiers do as well |
| `sets_with_irrelevant_features` | one dimension matters, the others are made alike: k-means cannot tell which |
| `marbles` | clusters of the test set are none of training's: a difference must be learned, not a class |

>>> pairs, labels = stars(clusters=3, size=4, seed=1)
>>> pairs.items, pairs.dimension, labels.tolist()
(12, 3, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
>>> X, labels = marbles(hues=(60, 180, 300), each=5, seed=1)
>>> X.shape
(15, 5)

References: T. Finley and T. Joachims, "Supervised clustering with support vector machines", ICML 2005; T. Finley,
"Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009 (sections 1.1 and 3.8; its corpora
are lost, these stand in); B. Taskar, "Learning Structured Prediction Models", PhD thesis, Stanford University, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.structures.pairs import StoredPairs, all_pairs

__all__ = ["coreference_like", "marbles", "news_like", "sets_with_irrelevant_features", "stars"]

Labels = NDArray[np.int64]
Items = NDArray[np.float64]

# Cluster sizes of noun phrases: most are mentioned once, 1.5 times on average.
_SIZES = np.arange(1, 9)
_SIZE_SHARES = np.array([0.76, 0.12, 0.05, 0.03, 0.01, 0.01, 0.01, 0.01])


def coreference_like(
    clusters: int = 100, seed: int = 0, *, cues: int = 5, noise: int = 5, strong: float = 0.9, chance: float = 0.05
) -> tuple[StoredPairs, Labels]:
    """Chains, mixed together in one order. Neighbours in a chain share most cues; others share them by chance.

    As many pairs across clusters as there are neighbours look half alike. Features: the cues, as many indicators of
    nothing as `noise` says, a constant.
    """
    _at_least(1, clusters=clusters, cues=cues)
    random = np.random.default_rng(seed)
    sizes = random.choice(_SIZES, clusters, p=_SIZE_SHARES)
    labels = random.permutation(np.repeat(np.arange(clusters), sizes)).astype(np.int64)
    left, right = all_pairs(len(labels))
    same = labels[left] == labels[right]
    place = _place_in_cluster(labels)
    neighbours = same & (place[right] == place[left] + 1)
    level = np.where(neighbours, strong, chance)
    apart = np.flatnonzero(~same)
    distracting = random.choice(apart, min(int(neighbours.sum()), len(apart)), replace=False)
    level[distracting] = (strong + chance) / 2
    shown = random.random((len(left), cues)) < level[:, None]
    unrelated = random.random((len(left), noise)) < 0.5
    psi = np.column_stack([shown, unrelated, np.ones(len(left))]).astype(np.float64)
    return StoredPairs(len(labels), psi), labels


def stars(clusters: int = 8, size: int = 6, seed: int = 0, *, deviation: float = 0.15) -> tuple[StoredPairs, Labels]:
    """Every cluster has a centre (its first item) that all its others resemble; they hardly resemble each other.

    Features: likeness (1 of a spoke, 0 of other pairs), a hint (a little higher within a cluster), a constant.
    """
    _at_least(1, clusters=clusters, size=size)
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(clusters), size).astype(np.int64)
    left, right = all_pairs(len(labels))
    same = labels[left] == labels[right]
    spoke = same & (left % size == 0)
    likeness = spoke + random.normal(0, deviation, len(left))
    hint = 0.2 * same + random.normal(0, 1, len(left))
    return StoredPairs(len(labels), np.column_stack([likeness, hint, np.ones(len(left))])), labels


def news_like(
    clusters: int = 10,
    each: int = 15,
    seed: int = 0,
    *,
    sites: int = 4,
    words: int = 60,
    boilerplate: int = 12,
    topical: float = 0.3,
    orders: Sequence[int] = (1, 2, 3),
) -> tuple[StoredPairs, Labels]:
    """Articles as word numbers: a topic's words among common ones, and the boilerplate of the site that has them.

    Features: the cosine of TF-IDF vectors of word n-grams of every order, and a constant. Long n-grams are mostly
    boilerplate: alike there means of one site, not of one topic.
    """
    _at_least(1, clusters=clusters, each=each, sites=sites, words=words, boilerplate=boilerplate)
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(clusters), each).astype(np.int64)
    common, own = 1000, 50
    share = 1 / np.arange(1, common + 1)
    text = random.choice(common, (len(labels), words), p=share / share.sum())
    topic = common + labels[:, None] * own + random.integers(0, own, text.shape)
    text = np.where(random.random(text.shape) < topical, topic, text)
    phrases = common + clusters * own + np.arange(sites * boilerplate).reshape(sites, boilerplate)
    text = np.column_stack([text, phrases[random.integers(0, sites, len(labels))]])
    cosines = [_cosines(text, order) for order in orders]
    return StoredPairs(len(labels), np.column_stack([*cosines, np.ones(len(cosines[0]))])), labels


def sets_with_irrelevant_features(
    points: int = 100, dimensions: int = 8, seed: int = 0, *, gap: float = 4.0, deviation: float = 0.7
) -> tuple[Items, Labels]:
    """Draw points [points, 1 + dimensions]: the first sets the cluster; each other is as bimodal by itself.

    Pairs are compared by `ComputedPairs(X, "gaussian")`.
    """
    _at_least(0, dimensions=dimensions)
    _at_least(1, points=points)
    random = np.random.default_rng(seed)
    side = random.integers(0, 2, (points, 1 + dimensions))
    return (side - 0.5) * gap + random.normal(0, deviation, side.shape), side[:, 0].astype(np.int64)


def marbles(
    hues: Sequence[float] = (0, 120, 240), each: int = 20, seed: int = 0, *, deviation: float = 8.0
) -> tuple[Items, Labels]:
    """Marbles of some hues in degrees: a point on the colour circle; size, weight and clarity, which say nothing.

    Train on red, green and blue, test on yellow, cyan and magenta (60, 180, 300).
    """
    _at_least(1, each=each)
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(hues)), each).astype(np.int64)
    hue = np.radians(np.asarray(hues, np.float64)[labels] + random.normal(0, deviation, len(labels)))
    return np.column_stack([np.cos(hue), np.sin(hue), random.normal(0, 1, (len(labels), 3))]), labels


def _place_in_cluster(labels: Labels) -> Labels:
    """How many earlier items are of the same cluster."""
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], labels[order])
    place = np.empty_like(labels)
    place[order] = np.arange(len(labels)) - start
    return place


def _cosines(text: NDArray[np.int64], order: int) -> NDArray[np.float64]:
    """Of all pairs, by n-grams of one order; texts are equally long."""
    windows = np.lib.stride_tricks.sliding_window_view(text, order, axis=1)
    _, gram = np.unique(windows.reshape(-1, order), axis=0, return_inverse=True)
    counts = np.zeros((len(text), int(gram.max()) + 1))
    np.add.at(counts, (np.repeat(np.arange(len(text)), windows.shape[1]), gram.ravel()), 1)
    counts *= np.log((1 + len(text)) / (1 + (counts > 0).sum(axis=0))) + 1
    counts /= np.linalg.norm(counts, axis=1, keepdims=True)
    left, right = all_pairs(len(text))
    return np.asarray((counts @ counts.T)[left, right], np.float64)


def _at_least(least: int, **counts: int) -> None:
    for name, count in counts.items():
        if count < least:
            raise InputError(f"{name} is {count}, expected {least} or more")
