"""Estimators of supervised clustering: whatever form items have, fit, predict and score mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from netclust import ClusterModel
from netclust.clustering import CorrelationClusterer, KMeansClusterer, LinkClusterer, PairwiseClusterer
from netclust.datasets.simulators.synthetic_sets import marbles
from netclust.errors import InputError
from netclust.metrics.clustering_metrics import measure_sets
from netclust.models.clustering.train_clusterer import ClusterSettings
from netclust.models.experiments.clustering.baselines import PlainKMeans
from netclust.structures.pairs import ComputedPairs, StoredPairs

RNG = np.random.default_rng(0)
Y = np.repeat(["red", "green", "blue"], 4)


def items() -> Any:
    """The first feature tells clusters apart, the second says nothing."""
    order = np.repeat([0.0, 50.0, 100.0], 4)
    return np.column_stack([order + RNG.normal(0, 1, 12), RNG.normal(0, 50, 12)])


X, NEW = [items() for _ in range(4)], [items() for _ in range(2)]
LABELS = [Y, np.repeat([7, 1, 3], 4), pd.Series(Y), Y.tolist()]
TRUE = np.repeat([0, 1, 2], 4).tolist()
EVERY = [
    CorrelationClusterer(C=1e5),
    CorrelationClusterer(C=1e5, loss="mitre", rescaling="slack", learner="n-slack"),
    CorrelationClusterer(C=1e5, oracle="lp", predictor="single-link"),
    CorrelationClusterer(C=1e5, oracle="local", learner="frank-wolfe", relation="gaussian"),
    PairwiseClusterer(C=1.0),
    PairwiseClusterer(predictor="local"),
    KMeansClusterer(relation="difference"),
    KMeansClusterer(method="spectral", predictor="iterative", relation="difference"),
    LinkClusterer("E", C=0.01),
    LinkClusterer("K", C=0.01),
    LinkClusterer("E", "lspa"),
    LinkClusterer("K", "latent"),
]


def name_of(estimator: Any) -> str:
    return str(estimator).replace("\n", "")


@pytest.mark.parametrize("estimator", EVERY, ids=name_of)
def test_estimators_cluster_separable_sets(estimator: Any, tmp_path: Path) -> None:
    fitted = clone(estimator)
    assert fitted.fit(X, LABELS) is fitted
    told = {"k": 3} if isinstance(estimator, KMeansClusterer) else {}
    found = fitted.predict(NEW, **told)
    assert [z.tolist() for z in found] == [TRUE, TRUE]
    assert fitted.score(NEW, LABELS[:2]) == pytest.approx(1.0)
    assert fitted.coef_.shape == (3,)
    again = clone(fitted).fit(X, LABELS)  # deterministic
    assert np.array_equal(again.coef_, fitted.coef_)
    fitted.save(tmp_path / "m")
    model = ClusterModel.load(tmp_path / "m")
    assert model.settings == fitted.settings_
    assert [z.tolist() for z in model.cluster(NEW, **told)] == [z.tolist() for z in found]
    assert [z.tolist() for z in model.cluster(X)] == [z.tolist() for z in fitted.predict(X)]  # k is chosen


@pytest.mark.parametrize("estimator", EVERY, ids=name_of)
def test_parameters_survive_fit(estimator: Any) -> None:
    before = estimator.get_params()
    copy = clone(estimator)
    assert copy.get_params() == before
    copy.fit(X, LABELS)
    assert copy.get_params() == before
    copy.set_params(C=3.5)
    assert copy.fit(X, LABELS).C_ == copy.settings_.C == 3.5
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(colour="red")


def test_parameters_reach_the_learner() -> None:
    given = CorrelationClusterer("mitre", "local", "exact", "n-slack", "slack", 2.0, 0.5)._settings(2.0)
    wanted = ClusterSettings(
        loss="mitre", oracle="local", predictor="exact", learner="n-slack", rescaling="slack", C=2.0, epsilon=0.5
    )
    assert given == wanted
    assert PairwiseClusterer("lp")._settings(2.0) == ClusterSettings(learner="pairwise", predictor="lp", C=2.0)
    assert KMeansClusterer("spectral", "iterative", epsilon=0.5, seed=3)._settings(2.0) == ClusterSettings(
        structure="kmeans", oracle="spectral", predictor="iterative", C=2.0, epsilon=0.5, seed=3
    )
    assert LinkClusterer("K", "lspa", 3, 0.25)._settings(2.0) == ClusterSettings(
        structure="K", learner="lspa", epochs=3, r=0.25, C=2.0
    )


def test_the_form_of_items_does_not_change_what_is_learned() -> None:
    def fitted(forms: list[Any]) -> Any:
        return CorrelationClusterer(C=1e5).fit(forms, LABELS).coef_

    w = fitted(X)
    for form in (lambda x: pd.DataFrame(x, columns=["a", "b"]), lambda x: x.tolist()):
        assert np.array_equal(fitted([form(x) for x in X]), w)
    scale = np.concatenate(X).std(axis=0)
    computed = [ComputedPairs(x / scale) for x in X]
    assert np.array_equal(fitted(computed), w)
    dense = [StoredPairs(12, pairs.dense()) for pairs in computed]
    thin = [StoredPairs(12, sparse.csr_matrix(pairs.psi)) for pairs in dense]
    square = []
    for pairs in dense:
        cube = np.zeros((12, 12, 3))
        cube[np.triu_indices(12, 1)] = pairs.psi
        square.append(cube)
    for given in (dense, thin, square):
        # sums round otherwise, and ties of the search fall otherwise: not the same weights
        clusterer = CorrelationClusterer(C=1e5).fit(given, LABELS)
        assert [z.tolist() for z in clusterer.predict(given)] == [TRUE] * 4


def test_the_cost_is_chosen_on_held_out_sets() -> None:
    chosen = CorrelationClusterer(C="cv", folds=2).fit(X, LABELS)
    assert chosen.C_ == 1e4  # all are without loss: the smallest
    assert chosen.settings_.C == 1e4
    assert chosen.get_params()["C"] == "cv"
    assert [z.tolist() for z in chosen.predict(NEW)] == [TRUE, TRUE]
    assert PairwiseClusterer(C="cv", folds=2).fit(X, LABELS).C_ in (1e-3, 1e-2, 1e-1, 1.0, 1e1)
    with pytest.raises(InputError, match="one set only: give C, or more sets"):
        CorrelationClusterer(C="cv").fit(X[:1], LABELS[:1])


def test_the_number_of_clusters_is_the_one_asked_for() -> None:
    clusterer = KMeansClusterer(relation="difference").fit(X, LABELS)
    assert [z.max() + 1 for z in clusterer.predict(NEW, 2)] == [2, 2]
    assert [z.max() + 1 for z in clusterer.predict(NEW, np.int64(2))] == [2, 2]
    assert [z.max() + 1 for z in clusterer.predict(NEW, [2, 4])] == [2, 4]
    assert [z.max() + 1 for z in clusterer.predict(NEW, np.array([2, 4]))] == [2, 4]
    assert all(1 <= z.max() + 1 <= 12 for z in clusterer.predict(NEW))
    assert clusterer.predict([NEW[0][:1]])[0].tolist() == [0]
    with pytest.raises(InputError, match="2 item sets, but 3 numbers of clusters"):
        clusterer.predict(NEW, [2, 3, 4])
    with pytest.raises(InputError, match="12 items has 1 to 12 clusters, not 13"):
        clusterer.predict(NEW, 13)
    with pytest.raises(InputError, match="k is for k-means"):
        CorrelationClusterer(C=1e5).fit(X, LABELS).predict(NEW, 3)


def test_a_learned_likeness_is_better_than_an_unlearned_one() -> None:
    train = [marbles(each=6, seed=seed) for seed in range(3)]
    held = [marbles((60, 180, 300), each=6, seed=seed) for seed in range(10, 13)]
    sets, labels = [x for x, _ in train], [y for _, y in train]
    plain = [(y, PlainKMeans(seed=0).cluster(x, 3)) for x, y in held]
    unlearned = measure_sets(plain)["delta_p"].mean
    for estimator in (
        CorrelationClusterer(C=1e5),
        KMeansClusterer(relation="difference"),
        LinkClusterer("E", "lspa"),
        LinkClusterer("K", "lspa"),
    ):
        fitted = estimator.fit(sets, labels)
        counts = 3 if isinstance(estimator, KMeansClusterer) else None
        found = fitted.predict([x for x, _ in held], counts)
        learned = measure_sets([(y, z) for (_, y), z in zip(held, found, strict=True)])["delta_p"].mean
        assert learned < unlearned / 2, estimator


@pytest.mark.parametrize("estimator", EVERY[:1] + EVERY[6:9:2], ids=name_of)
def test_bad_input_gives_a_clear_error(estimator: Any, tmp_path: Path) -> None:
    fresh = clone(estimator)
    for use in (lambda: fresh.predict(NEW), lambda: fresh.score(NEW, LABELS[:2]), lambda: fresh.save(tmp_path / "m")):
        with pytest.raises(NotFittedError):
            use()
    for sets, labels, told in (
        ([], [], "no item sets"),
        (X, LABELS[:3], "4 item sets, but clusterings of 3"),
        (X[0], Y, "give a list of item sets"),
        ([X[0][:0]], [[]], "set 0 is empty"),
        ([X[0][:1]], [["a"]], "no set has two items"),
        ([np.where(X[0] > 90, np.nan, X[0])], [Y], "is nan"),
        ([X[0], X[1][:, :1]], LABELS[:2], "different numbers of features"),
        ([X[0]], [[None, *Y[1:]]], "item 0 has no label"),
    ):
        with pytest.raises(InputError, match=told):
            fresh.fit(sets, labels)
    assert not (tmp_path / "m").exists()
    fresh.fit(X, LABELS)
    with pytest.raises(InputError, match="1 features an item, trained were 2"):
        fresh.predict([x[:, :1] for x in NEW])
    with pytest.raises(InputError, match="but clusterings of 1"):
        fresh.score(NEW, LABELS[:1])


def test_estimators_without_a_task_or_with_a_wrong_name_are_refused() -> None:
    for bad in (
        CorrelationClusterer(oracle="guess"),
        CorrelationClusterer(C=-1.0),
        PairwiseClusterer(predictor="guess"),
        KMeansClusterer(method="guess"),  # type: ignore[arg-type]
        LinkClusterer("E", "one-slack"),  # type: ignore[arg-type]
        CorrelationClusterer(relation="guess"),  # type: ignore[arg-type]
        CorrelationClusterer(C="guess"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError):
            bad.fit(X, LABELS)
