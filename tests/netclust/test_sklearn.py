"""scikit-learn's own checks, and what they do not ask: the link behind a prediction, and novelty as promised."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from netclust.sklearn import LinkClassifier, LinkNovelty


@pytest.mark.peers
@parametrize_with_checks([LinkClassifier(), LinkClassifier(learner="lsp", epochs=2), LinkNovelty()])
def test_scikit_learn_has_nothing_to_complain_about(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_prediction_is_that_of_its_referent() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.choice(["a", "b", "c"], 300)
    for model in (LinkClassifier().fit(X, y), LinkClassifier(learner="lsp", epochs=1).fit(X, y)):
        Z = rng.normal(size=(100, 4))
        assert (y[model.referents(Z)] == model.predict(Z)).all()
        again = pickle.loads(pickle.dumps(model))  # noqa: S301 (our own bytes)
        assert (again.predict(Z) == model.predict(Z)).all()
    nearest = (np.abs((Z[:, None] - X) / X.std(axis=0))).sum(axis=2).argmin(axis=1)
    assert (LinkClassifier().fit(X, y).referents(Z) == nearest).mean() > 0.99


def test_a_noise_attribute_is_learned_away() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    X = np.column_stack([y + rng.normal(0, 0.15, 600), rng.normal(size=(600, 8))])
    plain, learned = (
        cross_val_score(make_pipeline(StandardScaler(), LinkClassifier(learner=learner)), X, y, cv=3).mean()
        for learner in ("unlearned", "lsp")
    )
    assert learned > plain + 0.02


def test_the_false_alarm_rate_is_kept() -> None:
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(2000, 3)), rng.normal(size=(4000, 3))
    for rate in (0.01, 0.1):
        assert (LinkNovelty(rate).fit(X).predict(Z) == -1).mean() == pytest.approx(rate, rel=0.5)


@pytest.mark.parametrize(
    "model", [LinkClassifier(learner="svm"), LinkClassifier("lsp", C=-1), LinkNovelty(0.0), LinkNovelty("a")]
)
def test_impossible_parameters_are_refused(model: Any) -> None:
    with pytest.raises(ValueError, match=r"learner is|lies between"):
        model.fit(np.eye(4), [0, 0, 1, 1])


def test_doubled_rows_do_not_make_everything_novel() -> None:
    X = np.repeat(np.random.default_rng(3).normal(size=(300, 2)), 2, axis=0)
    assert (LinkNovelty(0.05).fit(X).predict(np.random.default_rng(4).normal(size=(500, 2))) == -1).mean() < 0.15
