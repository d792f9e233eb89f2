"""Answer sentence selection on WikiQA: an SVM, SR and JSRC, beside the published table.

C and epochs are chosen on the development questions, as published; the test questions are ranked by the
chosen models. Questions with a right answer are measured (873/126/243); those that have a wrong one too (857/122/237)
are given beside them: the published P@1 are possible with these counts only.

Reference: I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018;
Table 6.1. Data: Y. Yang, W. Yih and C. Meek, "WikiQA: a challenge dataset for open-domain question answering", EMNLP
2015.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.queries import Queries, read_queries
from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.experiments.paired_tests import PairedComparison, paired_comparison
from netclust.models.ranking.rank_model import CandidateFeatures, rank_examples
from netclust.models.ranking.ranking_metrics import RankingScores, average_precision, measure_rankings
from netclust.models.ranking.ranking_problem import RankQuery
from netclust.models.ranking.train_ranker import RankExample, RankSettings, choose_ranking, learn_ranking, rank_items

__all__ = [
    "MODELS",
    "PUBLISHED",
    "WikiqaData",
    "WikiqaRow",
    "WikiqaRun",
    "run_wikiqa_model",
    "wikiqa_comparisons",
    "wikiqa_rows",
]

Model = Literal["feature", "svm", "sr-greedy", "sr", "jsrc"]
MODELS: dict[Model, str] = {
    "feature": "best single feature",
    "svm": "SVM, polynomial of degree 3",
    "sr-greedy": "SR, greedy search",
    "sr": "SR",
    "jsrc": "JSRC",
}
PUBLISHED: dict[tuple[str, str], tuple[float, float, float]] = {
    ("svm", "dev"): (63.37, 64.37, 50.00),
    ("sr", "dev"): (68.67, 69.65, 53.28),
    ("jsrc", "dev"): (69.21, 69.72, 54.10),
    ("svm", "test"): (54.67, 55.90, 39.66),
    ("sr", "test"): (62.14, 63.46, 45.15),
    ("jsrc", "test"): (64.03, 65.57, 48.52),
}
"""MAP, MRR, P@1 in percent."""
MOST_CANDIDATES = 10  # of a training question, for the SVM alone (spec 8.5)
SVM_GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
Ranker = Callable[[RankQuery], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class WikiqaData:
    """The three parts as examples, with a right answer each, and the checksums of their files."""

    train: list[RankExample]
    dev: list[RankExample]
    test: list[RankExample]
    names: tuple[str, ...]
    sha256: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> WikiqaData:
        """Read the corpus (`WikiQA-train.txt`, `-dev`, `-test`, packed or not); words are counted in training alone."""
        files = {part: _file(folder, part) for part in ("train", "dev", "test")}
        parts = {part: _pairs(read_queries(path, format="pairs"), path).answered() for part, path in files.items()}
        features = CandidateFeatures.fit(parts["train"])
        train, dev, test = (rank_examples(features, part, pairs=True) for part in parts.values())
        checksums = {files[part].name: parts[part].sha256 for part in parts}
        return cls(train, dev, test, features.fields, checksums)


class WikiqaRun(msgspec.Struct, frozen=True):
    """One model with one seed: what was chosen, and the rankings' labels of every question of dev and test."""

    model: Model
    seed: int
    chosen: str
    dev: list[list[int]]
    test: list[list[int]]


class WikiqaRow(msgspec.Struct, frozen=True):
    """A line of the table: means over seeds, in percent, with standard deviations."""

    model: Model
    name: str
    part: Literal["dev", "test"]
    questions: int
    seeds: int
    mean: tuple[float, float, float]
    sd: tuple[float, float, float] | None
    mixed_questions: int
    mixed: tuple[float, float, float]
    published: tuple[float, float, float] | None
    chosen: list[str]


def run_wikiqa_model(data: WikiqaData, model: Model, seed: int, epochs: int = 30) -> WikiqaRun:
    """Choose on dev, train, and rank dev and test."""
    ranker, chosen = _trained(data, model, seed, epochs)
    dev, test = ([y[ranker(x)].tolist() for x, y in part] for part in (data.dev, data.test))
    return WikiqaRun(model, seed, chosen, dev, test)


def wikiqa_rows(runs: Sequence[WikiqaRun]) -> list[WikiqaRow]:
    """Return the table, part by part, in the order of the models."""
    found = []
    parts: tuple[Literal["dev", "test"], ...] = ("dev", "test")
    for part in parts:
        for model, name in MODELS.items():
            own = [run for run in runs if run.model == model]
            if own:
                found.append(_row(model, name, part, own))
    return found


def wikiqa_comparisons(runs: Sequence[WikiqaRun]) -> dict[str, PairedComparison]:
    """Compare the average precision of test questions (percent, mean over seeds) of two models at a time."""

    def precision(model: Model) -> NDArray[np.float64]:
        own = [[average_precision(ranked) for ranked in run.test] for run in runs if run.model == model]
        return np.asarray(100 * np.mean(own, axis=0), np.float64)

    pairs: tuple[tuple[Model, Model], ...] = (("sr", "svm"), ("jsrc", "sr"), ("sr", "feature"))
    there = {run.model for run in runs}
    return {
        f"{MODELS[a]} less {MODELS[b]}": paired_comparison(precision(a), precision(b))
        for a, b in pairs
        if a in there and b in there
    }


def _row(model: Model, name: str, part: Literal["dev", "test"], runs: Sequence[WikiqaRun]) -> WikiqaRow:
    ranked = [run.dev if part == "dev" else run.test for run in runs]
    scores = np.array([_percent(measure_rankings(one)) for one in ranked])
    mixed = [[labels for labels in one if 0 in labels] for one in ranked]
    inner = np.array([_percent(measure_rankings(one)) for one in mixed])
    return WikiqaRow(
        model, name, part, len(ranked[0]), len(runs), _three(scores.mean(axis=0)),
        _three(scores.std(axis=0, ddof=1)) if len(runs) > 1 else None,
        len(mixed[0]), _three(inner.mean(axis=0)), PUBLISHED.get((model, part)), [run.chosen for run in runs],
    )  # fmt: skip


def _three(values: NDArray[np.float64]) -> tuple[float, float, float]:
    a, b, c = map(float, values)
    return a, b, c


def _percent(scores: RankingScores) -> tuple[float, float, float]:
    return 100 * scores.map, 100 * scores.mrr, 100 * scores.p1


def _trained(data: WikiqaData, model: Model, seed: int, epochs: int) -> tuple[Ranker, str]:
    if model == "feature":
        best, value = _best_feature(data.train)
        return (lambda x: np.argsort(-x.items[:, best], kind="stable")), f"{data.names[best]} ({value:.4f} in training)"
    if model == "svm":
        return _svm(data, seed)
    settings = RankSettings(
        model="jsrc" if model == "jsrc" else "sr", search="greedy" if model == "sr-greedy" else "exact", seed=seed
    )
    found = choose_ranking(settings, data.train, data.dev, epochs=epochs)
    w = learn_ranking(found.settings, data.train)
    start = f", start {found.settings.start}" if model == "jsrc" else ""
    said = f"C {found.settings.C:g}, {found.settings.epochs} epochs{start}"
    return (lambda x: rank_items(found.settings, x, w).order), said


def _best_feature(train: Sequence[RankExample]) -> tuple[int, float]:
    """The feature that ranks the training questions best by itself."""
    values = [
        measure_rankings(y[np.argsort(-x.items[:, f], kind="stable")] for x, y in train).map
        for f in range(train[0][0].items.shape[1])
    ]
    best = int(np.argmax(values))
    return best, values[best]


def _svm(data: WikiqaData, seed: int) -> tuple[Ranker, str]:
    """A classifier of single candidates; C is chosen on dev."""
    svc = require_optional("sklearn.svm", "the SVM baseline").SVC
    rng = np.random.default_rng(seed)
    kept = [(x.items[some], y[some]) for x, y in data.train for some in [_some(y, rng)]]
    items, labels = (np.concatenate(part) for part in zip(*kept, strict=True))

    def ranker(classifier: Any) -> Ranker:
        return lambda x: np.argsort(-classifier.decision_function(x.items), kind="stable")

    tried = []
    for C in SVM_GRID:
        own = ranker(svc(kernel="poly", degree=3, C=C, cache_size=500).fit(items, labels))
        tried.append((measure_rankings(y[own(x)] for x, y in data.dev).map, own, C))
    _, best, C = max(tried, key=lambda one: one[0])
    return best, f"C {C:g}"


def _some(y: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The right candidates, and wrong ones drawn at random, 10 in all."""
    wrong = rng.permutation(np.flatnonzero(y == 0))
    return np.sort(np.concatenate([np.flatnonzero(y), wrong])[:MOST_CANDIDATES])


def _file(folder: Path, part: str) -> Path:
    for ending in (".txt.xz", ".txt", ".txt.gz", ".txt.zst", ".txt.zip"):
        if (path := folder / f"WikiQA-{part}{ending}").is_file():
            return path
    raise InputError(f"{folder}: has no WikiQA-{part}.txt (packed or not): give the folder of the WikiQA corpus")


def _pairs(queries: Queries, path: Path) -> Queries:
    if not queries.answered().queries:
        raise InputError(f"{path}: no question has a right answer: is this question TAB sentence TAB 0/1?")
    return queries
