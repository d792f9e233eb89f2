"""Made scenes: the same for a seed, other for another, and what is seen deceives as often as it should."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.datasets.simulators.synthetic_scenes import (
    CLASSES,
    LOOKS,
    made_scene,
    nearest_scene_points,
    scene_neighbours,
)
from netclust.errors import InputError


def test_scenes_of_one_seed_are_equal() -> None:
    a, b, c = made_scene(300, 1), made_scene(300, 1), made_scene(300, 2)
    assert all((x == y).all() for x, y in zip(a, b, strict=True))
    assert (a.place != c.place).any()
    assert np.isfinite(a.seen).all()
    assert (a.place[:, 2] >= 0).all()
    assert set(a.label.tolist()) == set(range(len(CLASSES)))


def test_patches_deceive_as_often_as_said() -> None:
    def deceived(share: float) -> float:
        scene = made_scene(6000, 3, noise=0.0, deceived=share)
        return float((np.abs(scene.seen[:, :3] - LOOKS[scene.label]) > 1e-9).any(axis=1).mean())

    assert deceived(0.0) == 0.0
    assert deceived(0.25) == pytest.approx(0.25, abs=0.05)


def test_neighbours_are_adjacent_and_named_once() -> None:
    scene = made_scene(400, 1)
    for edges in (scene_neighbours(scene, 1), nearest_scene_points(scene, 5)):
        assert (edges[:, 0] < edges[:, 1]).all()
        assert len(np.unique(edges, axis=0)) == len(edges)
    apart = scene.place[scene_neighbours(scene, 1)]
    ball = np.linalg.norm(apart[:, 0] - apart[:, 1], axis=1) <= 1.0
    upright = np.linalg.norm((apart[:, 0] - apart[:, 1])[:, :2], axis=1) <= 0.5
    assert (ball | upright).all()


def test_impossible_scenes_are_refused() -> None:
    for wrong in ({"points": 10}, {"noise": -1.0}, {"deceived": 2.0}, {"patch": 0.0}):
        with pytest.raises(InputError):
            made_scene(**wrong)
