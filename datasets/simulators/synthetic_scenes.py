"""Made scenes of points in space: buildings, trees, shrubs and cars, seen by features that often deceive.

A stand-in for laser scans that are not public: the shapes are simple, and what is seen of a point is drawn. A share of
patches (about a metre wide) looks like another class, as windows and hedges do, and every feature has noise of its own.

>>> scene = made_scene(points=500, seed=1)
>>> scene.place.shape, scene.seen.shape, sorted(set(scene.label.tolist()))
((500, 3), (500, 4), [0, 1, 2, 3])
>>> scene_neighbours(scene, seed=1).shape[1]
2

The scans are those of B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis,
Stanford University, 2004; section 7.5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional

__all__ = ["CLASSES", "Scene", "made_scene", "nearest_scene_points", "scene_neighbours"]

CLASSES = ("building", "tree", "shrub", "car")
# A point of each class by flat, scattered and upright; the fourth feature is its height.
LOOKS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.3], [0.1, 0.8, 0.0], [0.8, 0.1, 0.2]])
SIDE = 60.0
"""Metres, of the square that objects stand on."""


class Scene(NamedTuple):
    """Places [n, 3], what is seen of each [n, 4], classes."""

    place: NDArray[np.float64]
    seen: NDArray[np.float64]
    label: NDArray[np.int64]


def made_scene(
    points: int = 4000, seed: int = 0, *, noise: float = 0.7, deceived: float = 0.25, patch: float = 1.0
) -> Scene:
    """A scene of about forty objects; `deceived` is the share of patches that look like another class."""
    if points < 40 or not (noise >= 0 and 0 <= deceived <= 1 and patch > 0):
        raise InputError("a scene has 40 points or more, noise of 0 or more, a share of patches from 0 to 1")
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.repeat(np.arange(4), [8, 14, 12, 6]))
    centres = rng.uniform(0, SIDE, (len(kinds), 2))
    share = np.array([6.0, 2.0, 0.7, 0.8])[kinds]
    counts = rng.multinomial(points - len(kinds), share / share.sum()) + 1
    place = np.vstack([_object(k, c, n, rng) for k, c, n in zip(kinds, centres, counts, strict=True)])
    label = np.repeat(kinds, counts)
    # Patches: every point belongs to the nearest of some centres of its own class's looks.
    cell = np.floor(place / patch).astype(np.int64)
    cells, at = np.unique(np.column_stack([cell, label]), axis=0, return_inverse=True)
    swapped = rng.random(len(cells)) < deceived
    other = (cells[:, 3] + rng.integers(1, 4, len(cells))) % 4
    looks = np.where(swapped, other, cells[:, 3])[at.ravel()]
    seen = LOOKS[looks] + rng.normal(0, noise, (points, 3))
    height = place[:, 2] / 5.0 + rng.normal(0, 0.2, points)
    return Scene(place, np.column_stack([seen, height]), label.astype(np.int64))


def _object(kind: int, centre: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The points of one object."""
    if kind == 0:  # walls, and a fifth of the points on the roof
        size, height = rng.uniform(4, 10, 2), rng.uniform(4, 9)
        flat = rng.uniform(-0.5, 0.5, (n, 2))
        wall = rng.random(n) < 0.8
        side = rng.integers(0, 2, n)
        flat[np.flatnonzero(wall), side[wall]] = np.where(rng.random(int(wall.sum())) < 0.5, -0.5, 0.5)
        z = np.where(wall, rng.uniform(0, height, n), height)
        found = np.column_stack([flat * size, z])
    elif kind == 1:  # a crown
        found = rng.normal(0, 1, (n, 3)) * rng.uniform(0.8, 1.6) + [0, 0, rng.uniform(3, 5)]
    elif kind == 2:
        found = np.abs(rng.normal(0, 1, (n, 3))) * [1.0, 1.0, 0.4]
    else:
        found = rng.uniform(-0.5, 0.5, (n, 3)) * [4.2, 1.8, 1.4] + [0, 0, 0.8]
    found[:, :2] += centre
    found[:, 2] = np.maximum(found[:, 2], 0.0)
    return np.asarray(found, np.float64)


def nearest_scene_points(scene: Scene, count: int) -> NDArray[np.int64]:
    """Return edges from every point to so many that are nearest, each pair once."""
    tree = require_optional("scipy.spatial", "neighbours of points").cKDTree(scene.place)
    _, found = tree.query(scene.place, min(count + 1, len(scene.place)))
    return _pairs(np.repeat(np.arange(len(found)), found.shape[1] - 1), found[:, 1:].ravel())


def scene_neighbours(scene: Scene, seed: int = 0, *, near: float = 1.0, aside: float = 0.5) -> NDArray[np.int64]:
    """Return edges as of the source: three drawn in a ball round every point, three in an upright cylinder through
    it."""
    trees = require_optional("scipy.spatial", "neighbours of points").cKDTree
    rng = np.random.default_rng(seed)
    left: list[NDArray[np.int64]] = []
    right: list[NDArray[np.int64]] = []
    for found in (
        trees(scene.place).query_ball_point(scene.place, near),
        trees(scene.place[:, :2]).query_ball_point(scene.place[:, :2], aside),
    ):
        for i, near_by in enumerate(found):
            drawn = rng.choice(np.asarray(near_by, np.int64), min(3, len(near_by)), replace=False)
            left.append(np.full(len(drawn), i))
            right.append(drawn)
    return _pairs(np.concatenate(left), np.concatenate(right))


def _pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    pairs = np.sort(np.column_stack([left, right]), axis=1)
    return np.asarray(np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0), np.int64)
