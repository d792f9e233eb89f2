"""Rankers: features of texts, choosing, the model file, the estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from netclust.datasets.queries import Queries, Query
from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.models.experiments.ranking.wikiqa import WikiqaRun, wikiqa_comparisons, wikiqa_rows
from netclust.models.ranking.answer_features import AnswerFeatures
from netclust.models.ranking.rank_model import KIND, RankModel, train_ranking
from netclust.models.ranking.token_overlap_kernels import common_sequences, tiled_words
from netclust.models.ranking.train_ranker import RankSettings, choose_ranking
from netclust.ranking import JointRanker, StructuralRanker

PLACES = ("Rome", "Oslo", "Lima", "Cairo", "Delhi", "Quito")


def numbers(queries: int = 25, seed: int = 0) -> Queries:
    """The first feature tells, the second does not."""
    rng = np.random.default_rng(seed)
    found = []
    for n in range(queries):
        y = rng.permutation([1, 1, 0, 0, 0])
        X = np.column_stack([y + rng.normal(0, 0.3, 5), rng.normal(0, 1, 5)])
        found.append(Query(str(n), tuple("abcde"), y, X))
    return Queries(tuple(found), ("tells", "noise"))


def texts() -> tuple[list[tuple[str, list[str]]], list[list[int]]]:
    X, y = [], []
    for n, place in enumerate(PLACES):
        other = PLACES[(n + 1) % len(PLACES)]
        X.append((f"where is the tower of {place} ?", [f"The tower of {place} is old .", f"{other} has a river ."]))
        y.append([1, 0])
    return X, y


def slow_sequences(a: list[int], b: list[int]) -> tuple[int, int]:
    run = max((k for i in range(len(a)) for j in range(len(b)) for k in range(len(a) + 1)
               if a[i : i + k] == b[j : j + k] and i + k <= len(a) and j + k <= len(b)), default=0)  # fmt: skip
    row = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            row[i + 1][j + 1] = row[i][j] + 1 if one == other else max(row[i][j + 1], row[i + 1][j])
    return run, row[-1][-1]


def test_word_overlaps_equal_their_twins() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = (rng.integers(0, 4, n).tolist() for n in rng.integers(0, 8, 2))
        arrays = np.array(a, np.int64), np.array(b, np.int64)
        assert common_sequences(*arrays) == slow_sequences(a, b)
        assert max(slow_sequences(a, b)[0], 0) <= tiled_words(*arrays, 1) <= min(len(a), len(b))
    assert tiled_words(np.array([1, 2, 3, 9, 4, 5]), np.array([4, 5, 1, 2, 3, 8]), 2) == 5
    assert tiled_words(np.array([1, 2, 3]), np.array([3, 2, 1]), 2) == 0


def test_features_of_texts_are_finite() -> None:
    X, _ = texts()
    features = AnswerFeatures.fit(X)
    found = features.items("?", ["", "...", "the"])
    assert found.shape == (3, len(features.names))
    assert np.isfinite(found).all()
    assert features.items("what ?", []).shape == (0, len(features.names))
    assert features.pairs(["a b", "a b", ""]).scores(np.ones(len(features.pair_names))).shape == (3,)


@pytest.mark.parametrize("model", ["sr", "jsrc"])
def test_a_file_ranks_the_same(tmp_path: Path, model: Any) -> None:
    trained = train_ranking(numbers(), RankSettings(model=model, C=1.0, epochs=3))
    trained.save(tmp_path / "m")
    again = RankModel.load(tmp_path / "m")
    new = numbers(seed=1)
    for a, b in zip(trained.rank(new), again.rank(new), strict=True):
        assert (a.order == b.order).all()
        assert (a.clusters == b.clusters).all()
    assert again.names[:2] == ("tells", "noise")
    assert again.w[0] > abs(again.w[1])


def test_corrupt_files_are_refused(tmp_path: Path) -> None:
    model = train_ranking(numbers(), RankSettings(C=1.0, epochs=1))
    data = model.to_bytes()
    arrays, header = container.unpack_container(data, KIND, "m")
    for change, part in (
        ({"weights": np.zeros(3)}, "weights"),
        ({"scale": np.array([1.0, 0.0])}, "scales above 0"),
        ({"weights": np.array([1e300, 0.0])}, "too large"),
        ({"more": np.zeros(1)}, "more"),
    ):
        with pytest.raises(ModelError, match=part):
            RankModel.from_bytes(container.pack_container(KIND, {**arrays, **change}, header), "m")
    with pytest.raises(ModelError):
        RankModel.from_bytes(container.pack_container(KIND, arrays, {**header, "more": 1}), "m")
    with pytest.raises(ModelError):
        RankModel.from_bytes(data[:-9], "m")


def test_text_and_numbers_are_kept_apart() -> None:
    X, y = texts()
    ranker = StructuralRanker(C=1.0).fit(X, y)
    assert ranker.score(X, y) == 1.0
    with pytest.raises(InputError, match="ranks by texts"):
        ranker.predict([np.zeros((2, 2))])
    with pytest.raises(InputError, match="ranks by numbers"):
        train_ranking(numbers(5)).rank(Queries((Query("q", ("1",), None, None, "who ?", ("she",)),)))


def test_choosing_does_not_see_what_is_held_out() -> None:
    examples = [(x, y) for x, y in _examples(numbers(12))]
    chosen = choose_ranking(RankSettings(), examples, grid=(0.1, 10.0), epochs=3, folds=3)
    assert chosen.on == "folds"
    assert [trial.C for trial in chosen.trials] == [0.1, 10.0]
    best = max(chosen.trials, key=lambda trial: trial.best[0])
    assert (chosen.settings.C, (chosen.map, chosen.settings.epochs)) == (best.C, best.best)
    joint = choose_ranking(RankSettings(model="jsrc"), examples, examples[:4], grid=(1.0,), epochs=2)
    assert [trial.start for trial in joint.trials] == ["zero", "pairs"]
    with pytest.raises(InputError, match="no development query"):
        choose_ranking(RankSettings(), examples, [(x, y * 0) for x, y in examples])


def _examples(queries: Queries) -> list[Any]:
    from netclust.models.ranking.rank_model import CandidateFeatures, rank_examples

    return rank_examples(CandidateFeatures.fit(queries), queries, pairs=True)


def test_estimators_behave_like_others() -> None:
    given = numbers()
    X, y = [q.numbers for q in given.queries], [q.labels for q in given.queries]
    for estimator in (StructuralRanker(search="greedy"), JointRanker(C=1.0), StructuralRanker(C="cv", epochs=3)):
        ranker = clone(estimator).fit(X, y)
        assert ranker.score(X, y) > 0.9
        assert sorted(ranker.predict(X)[0]) == [0, 1, 2, 3, 4]
    clusters = JointRanker(C=1.0, start="pairs").fit(X, y).predict_clusters(X)
    assert all(len(names) == 5 for names in clusters)


@pytest.mark.parametrize(
    ("X", "y", "part"),
    [
        ([], [], "list of queries"),
        ([np.zeros((2, 1))], [[1, 0], [1]], "labels of 2"),
        ([np.zeros((2, 1))], [[1]], "2 candidates, but 1 labels"),
        ([np.zeros((2, 1)), np.zeros((2, 2))], [[1, 0], [1, 0]], "query 1 has shape"),
        ([np.full((2, 1), np.nan)], [[1, 0]], "not finite"),
        ([[["a"], ["b"]]], [[1, 0]], "numbers"),
        ([np.zeros((2, 1))], [[1, 1]], "both a right and a wrong"),
        ([("who ?", ["she"])], [[1, 0]], "1 answers, but 2 labels"),
    ],
)
def test_bad_arrays_are_refused(X: Any, y: Any, part: str) -> None:
    with pytest.raises(InputError, match=part):
        StructuralRanker().fit(X, y)


def test_bad_settings_are_refused() -> None:
    for changes in ({"C": -1.0}, {"C": float("nan")}, {"epochs": 0}):
        with pytest.raises(InputError):
            RankSettings(**changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give a number"):
        StructuralRanker(C="x").fit([np.zeros((2, 1))], [[1, 0]])  # type: ignore[arg-type]


def test_the_table_of_wikiqa_is_of_its_runs() -> None:
    runs = [
        WikiqaRun("svm", 0, "C 1", [[0, 1], [1]], [[0, 1], [0, 1]]),
        WikiqaRun("sr", 0, "C 1", [[1, 0], [1]], [[1, 0], [0, 1]]),
        WikiqaRun("sr", 1, "C 2", [[0, 1], [1]], [[1, 0], [1, 0]]),
    ]
    rows = {(row.model, row.part): row for row in wikiqa_rows(runs)}
    sr = rows["sr", "dev"]
    assert (sr.questions, sr.mixed_questions, sr.seeds, sr.chosen) == (2, 1, 2, ["C 1", "C 2"])
    assert (sr.mean[0], sr.mixed[0]) == pytest.approx((87.5, 75.0))
    assert rows["svm", "test"].sd is None
    assert rows["svm", "test"].published == (54.67, 55.90, 39.66)
    (found,) = wikiqa_comparisons(runs).values()
    assert found.difference == pytest.approx(37.5)
