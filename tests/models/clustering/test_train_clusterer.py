"""Structures, learners and losses put together: what may be combined works, what may not is refused; C is chosen."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.models.clustering import cluster_selection
from netclust.models.clustering.cluster_selection import choose_cost, grid_of, losses
from netclust.models.clustering.train_clusterer import (
    ClusterSettings,
    LearnedClustering,
    Learner,
    Structure,
    check_sizes,
    cluster_with,
    clusterer_loss,
    learn_clusterer,
)
from netclust.structures.pairs import ComputedPairs, PairIndex, StoredPairs

LATENT = {"lsp", "lspa", "latent"}
FITTING = {
    "correlation": set(get_args(Learner)) - {"latent"},
    "kmeans": set(get_args(Learner)) - {"latent"},
    "E": LATENT,
    "K": LATENT,
}
EVERY = [(structure, learner) for structure in get_args(Structure) for learner in get_args(Learner)]


def separable(sets: int = 3, each: int = 3, seed: int = 0) -> list[tuple[ComputedPairs, Any]]:
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], each)
    return [(ComputedPairs(5.0 * y[:, None] + rng.normal(0, 0.1, (len(y), 1))), y) for _ in range(sets)]


def found_by(settings: ClusterSettings, learned: LearnedClustering, examples: list[Any]) -> list[float]:
    return losses(settings, learned, examples)


@pytest.mark.parametrize(("structure", "learner"), EVERY)
def test_fitting_learners_train_and_others_are_refused(structure: Any, learner: Any) -> None:
    C = 0.01 if learner == "lsp" else 1e4 if structure == "correlation" else 1.0
    if learner not in FITTING[structure]:
        with pytest.raises(InputError, match=f"structure {structure} is learned by .*, not by {learner}"):
            ClusterSettings(structure=structure, learner=learner)
        return
    settings = ClusterSettings(structure=structure, learner=learner, C=C)
    learned = learn_clusterer(settings, separable())
    assert np.isfinite(learned.w).all()
    assert learned.iterations >= 1
    assert (learned.gap is not None) == (learner in ("one-slack", "n-slack", "frank-wolfe", "latent"))
    worst = max(found_by(settings, learned, separable(2, seed=9)))
    assert worst <= (12.0 if learner == "lsp" else 0.0)  # a perceptron keeps no margin
    again = learn_clusterer(settings, separable())
    assert np.array_equal(again.w, learned.w)


@pytest.mark.parametrize("oracle", ["greedy", "local", "lp", "sdp", "exact"])
@pytest.mark.parametrize("predictor", [None, "single-link", "exact"])
def test_every_oracle_and_predictor_can_be_combined(oracle: str, predictor: str | None) -> None:
    settings = ClusterSettings(oracle=oracle, predictor=predictor, C=1e4)
    learned = learn_clusterer(settings, separable(2))
    assert learned.converged
    assert found_by(settings, learned, separable(1, seed=9)) == [0.0]


@pytest.mark.parametrize("method", ["iterative", "spectral", "discrete"])
def test_every_method_of_kmeans_gives_labels(method: str) -> None:
    settings = ClusterSettings(structure="kmeans", oracle=method, predictor=method, C=1.0)
    learned = learn_clusterer(settings, separable(2))
    ((x, y),) = separable(1, seed=9)
    assert cluster_with(settings, x, learned.w, 3).tolist() == y.tolist()


@pytest.mark.parametrize("learner", ["one-slack", "n-slack"])
@pytest.mark.parametrize("loss", ["pairwise", "mitre"])
def test_slack_rescaling_learns(learner: Any, loss: Any) -> None:
    settings = ClusterSettings(learner=learner, loss=loss, rescaling="slack", C=1e4)
    learned = learn_clusterer(settings, separable(2))
    assert found_by(settings, learned, separable(2, seed=9)) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"C": 0.0}, "must be above 0|is a loss in percent"),
        ({"C": float("inf")}, "must be above 0|is a loss in percent"),
        ({"epsilon": float("nan")}, "must be above 0|is a loss in percent"),
        ({"learner": "frank-wolfe", "rescaling": "slack"}, "for the cutting-plane learners"),
        ({"structure": "kmeans", "rescaling": "slack"}, "margin rescaling"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"restarts": 0}, "restarts is 0"),
        ({"seed": -1}, "seed and r must be 0 or more"),
        ({"r": -0.5}, "seed and r must be 0 or more"),
        ({"oracle": "guess"}, "oracle 'guess' is not known: one of greedy, local"),
        ({"predictor": "guess"}, "predictor 'guess' is not known: one of"),
        ({"oracle": "single-link"}, "oracle 'single-link' is not known"),
        ({"oracle": "lp", "loss": "mitre"}, "does not split over pairs"),
        ({"structure": "kmeans", "oracle": "lp"}, "method of k-means 'lp' is not known"),
        ({"structure": "kmeans", "predictor": "lp"}, "method of k-means 'lp' is not known"),
    ],
)
def test_settings_that_cannot_work_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        ClusterSettings(**given)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="no item sets to learn from"):
        learn_clusterer(ClusterSettings(), [])
    alone = [(ComputedPairs(np.zeros((1, 1))), np.array([0]))] * 2
    for settings in (ClusterSettings(), ClusterSettings(learner="pairwise"), ClusterSettings(structure="kmeans")):
        with pytest.raises(InputError, match="no set has two items"):
            learn_clusterer(settings, alone)
    together = [(ComputedPairs(np.arange(4.0)[:, None]), np.zeros(4, np.int64))]
    with pytest.raises(InputError, match="all 6 training pairs are together"):
        learn_clusterer(ClusterSettings(learner="pairwise"), together)


@pytest.mark.parametrize(
    ("structure", "learner"), [("correlation", "one-slack"), ("kmeans", "one-slack"), ("K", "lsp")]
)
def test_a_set_of_one_item_trains_among_others(structure: Any, learner: Any) -> None:
    settings = ClusterSettings(structure=structure, learner=learner, C=1e4 if learner == "one-slack" else 0.01)
    alone = ComputedPairs(np.zeros((1, 1)))
    learned = learn_clusterer(settings, [*separable(2), (alone, np.array([0]))])
    assert cluster_with(settings, alone, learned.w).tolist() == [0]
    assert found_by(settings, learned, separable(1, seed=9)) == [0.0]


@pytest.mark.parametrize(("k", "fine"), [(1, True), (9, True), (0, False), (10, False), (-1, False)])
def test_impossible_numbers_of_clusters_are_refused(k: int, fine: bool) -> None:
    settings = ClusterSettings(structure="kmeans", C=1.0)
    ((x, _),) = separable(1)
    w = np.array([-1.0, 0.0])
    if fine:
        assert len(set(cluster_with(settings, x, w, k).tolist())) <= k
    else:
        with pytest.raises(InputError, match="9 items has 1 to 9 clusters"):
            cluster_with(settings, x, w, k)


class Untouched:
    """Pair features that may be asked for their size alone."""

    def __init__(self, items: int, index: PairIndex | None = None) -> None:
        self.items, self.dimension, self.index = items, 2, index

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"training began: {name}")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"oracle": "lp"}, "the LP relaxation: 124,750 variables"),
        ({"oracle": "sdp"}, "the semidefinite relaxation"),
        ({"oracle": "exact", "predictor": "greedy"}, "branch and cut"),
        ({"predictor": "lp"}, "the LP relaxation"),
        ({"learner": "pairwise", "predictor": "exact"}, "branch and cut"),
    ],
)
def test_a_set_that_is_too_large_is_refused_before_the_start(given: dict[str, Any], what: str) -> None:
    examples: Any = [*separable(2), (Untouched(500), np.zeros(500, np.int64))]
    for begin in (learn_clusterer, choose_cost):
        with pytest.raises(InputError, match=f"500 items is too large for {what}.* of memory"):
            begin(ClusterSettings(**given), examples)  # type: ignore[operator]


def test_a_large_set_is_accepted_where_its_search_takes_it() -> None:
    few = PairIndex(np.arange(499), np.arange(1, 500))
    large: Any = [(Untouched(500, few), np.zeros(500, np.int64))]
    check_sizes(ClusterSettings(oracle="lp"), large)  # few pairs are stored
    check_sizes(ClusterSettings(oracle="lp", learner="pairwise", predictor="greedy"), large)  # no oracle at all
    dense: Any = [(Untouched(5000), np.zeros(5000, np.int64))]
    for settings in (ClusterSettings(), ClusterSettings(oracle="local"), ClusterSettings(structure="kmeans")):
        check_sizes(settings, dense)


def test_the_loss_is_that_of_the_settings() -> None:
    y, z = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])
    assert clusterer_loss(ClusterSettings(), y, z) == pytest.approx(100 * 4 / 6)
    assert clusterer_loss(ClusterSettings(loss="mitre"), y, z) == pytest.approx(100 * (1 - 2 * (2 / 3) / (2 / 3 + 1)))
    assert clusterer_loss(ClusterSettings(structure="kmeans"), y, y) == pytest.approx(0.0)


def test_pairs_of_one_set_are_trained_on_or_held_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = separable(6)
    trained: list[set[int]] = []
    held: list[set[int]] = []

    def watched_learn(settings: ClusterSettings, train: list[Any], **options: Any) -> LearnedClustering:
        trained.append({id(x) for x, _ in train})
        return LearnedClustering(np.array([-1.0, 1.0]), 1, True)

    def watched_cluster(settings: ClusterSettings, x: Any, w: Any, k: int | None = None) -> Any:
        held.append({id(x)})
        return np.zeros(x.items, np.int64)

    monkeypatch.setattr(cluster_selection, "learn_clusterer", watched_learn)
    monkeypatch.setattr(cluster_selection, "cluster_with", watched_cluster)
    seen: list[tuple[int, int]] = []
    found = choose_cost(
        ClusterSettings(), examples, grid=(3.0, 1.0, 2.0), folds=3, on_progress=lambda *at: seen.append(at)
    )
    every = {id(x) for x, _ in examples}
    assert len(trained) == 3 * 3
    assert [len(part) for part in trained] == [4] * 9  # whole sets
    for n, part in enumerate(trained):
        out = set().union(*held[2 * n : 2 * n + 2])
        assert out == every - part
    assert seen == [(n, 9) for n in range(1, 10)]
    assert found.grid == (1.0, 2.0, 3.0)
    assert found.C == 1.0  # all losses are equal: the smallest
    assert len(set(found.losses)) == 1


def test_the_best_cost_is_chosen_and_the_smallest_of_equals() -> None:
    examples = separable(4)
    found = choose_cost(ClusterSettings(), examples, grid=(1e6, 1e5, 1e-9), folds=2)
    assert found.C == 1e5
    assert found.losses[0] > found.losses[1] == found.losses[2] == 0
    assert choose_cost(ClusterSettings(), examples, grid=(1e6, 1e5, 1e-9), folds=2) == found
    assert choose_cost(ClusterSettings(), examples, grid=(1e5,), folds=50).C == 1e5  # no more folds than sets
    with pytest.raises(InputError, match="there is one set only: give C, or more sets"):
        choose_cost(ClusterSettings(), examples[:1])


@pytest.mark.parametrize(
    ("given", "lowest"), [({}, 1e4), ({"learner": "pairwise"}, 1e-3), ({"structure": "kmeans"}, 1e-2)]
)
def test_a_grid_is_that_of_its_learner(given: dict[str, Any], lowest: float) -> None:
    assert min(grid_of(ClusterSettings(**given))) == lowest
    assert max(grid_of(ClusterSettings(learner="lspa"))) == 100
    assert grid_of(ClusterSettings(structure="E", learner="lsp")) == grid_of(
        ClusterSettings(structure="K", learner="lsp")
    )


def test_several_jobs_and_stored_pairs_keep_the_weights() -> None:
    examples = separable(3)
    settings = ClusterSettings(C=1e4)
    w = learn_clusterer(settings, examples).w
    assert np.array_equal(learn_clusterer(settings, examples, jobs=2).w, w)
    stored = [(StoredPairs(x.items, x.dense()), y) for x, y in examples]
    assert np.allclose(learn_clusterer(settings, stored).w, w)
