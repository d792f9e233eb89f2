"""The estimator: scikit-learn's own checks, and what they do not ask. The task: what is done to features."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from netclust.errors import InputError, ModelError
from netclust.models.multilabel.multilabel_problem import LabelRows
from netclust.models.multilabel.task import TASK, LabelEncoder, LabelSettings
from netclust.models.structured_model import StructuredModel
from netclust.multilabel import MultilabelClassifier


@parametrize_with_checks([MultilabelClassifier(epsilon=1.0)])
def test_scikit_learn_has_nothing_to_complain_about(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(n: int = 120, seed: int = 0) -> tuple[Any, Any]:
    return make_multilabel_classification(n, n_features=12, n_classes=4, random_state=seed)


def test_a_model_is_better_than_chance() -> None:
    X, Y = rows(200)
    chance = max(f1_score(Y, np.full_like(Y, value), average="micro") for value in (0, 1))  # all on
    for model in (MultilabelClassifier(C=10.0), MultilabelClassifier(C=10.0, oracle="exact", predictor="cut")):
        assert cross_val_score(model, X, Y, cv=3, scoring="f1_micro").mean() > chance + 0.05
    model = MultilabelClassifier(C=10.0).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 (our own bytes)
    assert (again.predict(X) == model.predict(X)).all()
    assert model.feature_weights_.shape == (4, 13)
    assert (model.pair_weights_ == model.pair_weights_.T).all()
    assert model.score(X, Y) == (model.predict(X) == Y).all(axis=1).mean()
    alone = MultilabelClassifier(C=10.0, edges=False).fit(X, Y)
    assert not alone.pair_weights_.any()


def test_labels_that_exclude_each_other_are_learned() -> None:
    """One of three labels is on, and the only feature rises with its number: none of them is a half-line alone."""
    rng = np.random.default_rng(0)
    number = rng.integers(0, 3, 150)
    X, Y = number[:, None] + rng.normal(0, 0.1, (150, 1)), np.eye(3, dtype=int)[number]
    together = MultilabelClassifier(C=1000.0).fit(X, Y)
    alone = MultilabelClassifier(C=1000.0, edges=False).fit(X, Y)
    assert together.score(X, Y) > 0.95
    assert alone.score(X, Y) < 0.75
    assert (together.pair_weights_[np.triu_indices(3, 1)] < 0).all()


def test_sparse_rows_are_learned_the_same() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((80, 40)) < 0.1) * rng.integers(1, 5, (80, 40)).astype(float)
    Y = np.column_stack([X[:, :3].any(axis=1), X[:, 3:6].any(axis=1), X[:, 5:9].any(axis=1)]).astype(int)
    dense, packed = (MultilabelClassifier(C=30.0).fit(Z, Y) for Z in (X, sparse.csr_matrix(X)))
    assert (dense.feature_weights_ == packed.feature_weights_).all()
    assert (dense.predict(sparse.csr_array(X)) == packed.predict(X)).all()
    assert not dense.model_.encoder.centre
    assert (packed.fit(sparse.csr_matrix(X), sparse.csr_matrix(Y)).predict(X) == dense.predict(X)).all()
    full, filled = (MultilabelClassifier(C=30.0).fit(Z, Y) for Z in (X + 1, sparse.csr_matrix(X + 1)))
    assert full.model_.encoder.centre
    assert (full.feature_weights_ == filled.feature_weights_).all()


def test_the_cost_is_chosen_on_folds() -> None:
    X, Y = rows(60)
    model = MultilabelClassifier(C="cv", folds=2, epsilon=2.0, max_iterations=30).fit(X, Y)
    assert model.C_ == model.chosen_.C
    assert model.chosen_.losses[model.chosen_.grid.index(model.C_)] == min(model.chosen_.losses)


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    X, Y = rows(60)
    model = MultilabelClassifier(C=3.0).fit(X, Y)
    model.save(tmp_path / "some.safetensors")
    loaded = StructuredModel.load(tmp_path / "some.safetensors", "multilabel")
    (found,) = loaded.predict(model._table(X, Y.astype(np.uint8)))
    assert (found.labels == model.predict(X)).all()
    assert loaded.names[:2] == ("0: feature 1", "0: feature 2")
    assert loaded.names[-1] == "2 + 3"
    assert len(loaded.names) == len(loaded.w)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"C": "many"}, "'many'"),
        ({"C": -1.0}, "C is -1"),
        ({"epsilon": 0}, "epsilon"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"oracle": "luck"}, "'luck'"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        MultilabelClassifier(**parameters).fit(*rows(20))


def test_labels_that_are_none_are_refused() -> None:
    X, Y = rows(20)
    with pytest.raises(ValueError, match="Unknown label type"):
        MultilabelClassifier().fit(X, Y * 2)
    with pytest.raises(ValueError, match="one class"):
        MultilabelClassifier().fit(X, np.zeros(20))


def test_features_are_scaled() -> None:
    X = np.array([[1.0, 5.0, 0.1], [3.0, 5.0, 0.1], [5.0, 5.0, 0.1]])
    encoder = LabelEncoder.of(("a", "b", "c"), ("l",), X)
    Z = encoder.rows(X)
    assert Z[:, 0] == pytest.approx([-np.sqrt(1.5), 0, np.sqrt(1.5)])
    assert Z[:, 1:3] == pytest.approx(np.zeros((3, 2)))  # a constant column is worth nothing
    assert (Z[:, 3] == 1).all()
    few = np.zeros((4, 5))
    few[0, 1], few[1, 1] = -4.0, 2.0
    thin = LabelEncoder.of(tuple("abcde"), ("l",), few)
    assert sparse.issparse(thin.rows(few))
    assert thin.rows(few).toarray()[:, 1].tolist() == [-1, 0.5, 0, 0]
    kept = LabelEncoder.of(("a", "b", "c"), ("l",), X, scaled=False)
    assert kept.rows(X)[:, :3].tolist() == X.tolist()
    with pytest.raises(InputError, match="2 features, the model 3"):
        encoder.rows(X[:, :2])


def test_the_searcher_follows_the_number_of_labels() -> None:
    def problem(labels: int, **settings: Any) -> Any:
        encoder = LabelEncoder(("x",), tuple(map(str, range(labels))), (), (1.0,))
        return TASK.problem(encoder, LabelSettings(**settings))

    assert (problem(12).oracle, problem(12).predictor) == ("cut", "exact")
    assert (problem(13).oracle, problem(13).predictor) == ("cut", "combine")
    assert problem(13, oracle="lbp", predictor="cut").predictor == "cut"
    assert problem(3, edges=False).dimension == 6


@pytest.mark.parametrize("learner", ["n-slack", "frank-wolfe"])
def test_another_learner_finds_the_same_model(learner: Any) -> None:
    X, Y = rows(40)
    model = MultilabelClassifier(C=1.0, epsilon=0.05).fit(X, Y)
    encoder, problem = model.model_.encoder, TASK.problem(model.model_.encoder, model.model_.settings)
    examples = TASK.encode(encoder, model._table(X, Y.astype(np.uint8)))
    settings = LabelSettings(C=1.0, epsilon=0.05, learner=learner)
    learned = TASK.learn(settings, problem, examples)
    best = 0.5 * model.model_.w @ model.model_.w
    assert learned.converged
    assert 0.5 * learned.w @ learned.w == pytest.approx(best, rel=0.1)
    wide = [(LabelRows(sparse.csr_matrix((10_000_000, 13))), np.zeros((10_000_000, 4), np.uint8))]
    with pytest.raises(InputError, match="use one-slack"):
        TASK.learn(settings, problem, wide)


def test_a_broken_encoder_is_refused() -> None:
    for broken in (
        {"features": [], "labels": ["l"], "centre": [], "scale": []},
        {"features": ["a"], "labels": ["l"], "centre": [], "scale": [0.0]},
        {"features": ["a"], "labels": ["l"], "centre": [1.0, 2.0], "scale": [1.0]},
    ):
        with pytest.raises(InputError):
            LabelEncoder(**{name: tuple(value) for name, value in broken.items()})
    X, Y = rows(20)
    data = MultilabelClassifier(C=1.0).fit(X, Y).model_.to_bytes()
    with pytest.raises(ModelError, match="cemtre"):
        StructuredModel.from_bytes(data.replace(b"centre", b"cemtre"), "model")
