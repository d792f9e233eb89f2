"""What ranking costs: SR beside a RankSVM of scikit-learn on WikiQA, search beside plain Python, joint search by size.

Measured on development questions alone. RankSVM: scikit-learn's LinearSVC on differences of right and wrong
candidates of one question, C of a grid by dev MAP, as SR's.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from common import best_of, data_folder, save, timed
from sklearn.svm import LinearSVC

from netclust.models.experiments.ranking.wikiqa import WikiqaData
from netclust.models.ranking.ranking_metrics import measure_rankings
from netclust.models.ranking.train_ranker import GRID, RankSettings, choose_ranking, learn_ranking, measure_ranker
from netclust.structures.partition import PairScores
from netclust.structures.rankings import best_joint, violating_ranking


def differences(examples: Any) -> tuple[Any, Any]:
    rows = [a - b for x, y in examples for a, b in product(x.items[y == 1], x.items[y == 0])]
    X = np.array(rows)
    return np.concatenate([X, -X]), np.repeat([1, 0], len(X))


def rank_svm(train: Any, dev: Any) -> dict[str, float]:
    X, y = differences(train)
    found = []
    for C in (0.001, 0.01, 0.1):
        model = LinearSVC(C=C, fit_intercept=False, dual=False)
        seconds = timed(lambda model=model: model.fit(X, y))
        w = model.coef_[0]
        score = measure_rankings(labels[np.argsort(-(x.items @ w), kind="stable")] for x, labels in dev).map
        found.append({"dev_map": score, "seconds": seconds, "C": C})
    return max(found, key=lambda one: one["dev_map"])


def plain_violating(scores: Any, y: Any, C: float) -> float:
    """The dynamic program without a kernel."""
    right, wrong = -np.sort(-scores[y == 1]), -np.sort(-scores[y == 0])
    P, Q = len(right), len(wrong)
    V = {(0, 0): C}
    for a, b in product(range(P + 1), range(Q + 1)):
        k, options = a + b, []
        if a:
            options.append(V[a - 1, b] + right[a - 1] / k - C * a / (P * k))
        if b:
            options.append(V[a, b - 1] + wrong[b - 1] / k)
        if options:
            V[a, b] = max(options)
    return float(V[P, Q])


def search(items: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=items), (np.arange(items) % 4 == 0).astype(np.int64)
    pairs = PairScores(items, rng.normal(-0.2, 0.3, items * (items - 1) // 2))
    violating_ranking(scores, y, 1.0), best_joint(scores, pairs)  # compiled
    return {
        "items": items,
        "exact_seconds": best_of(lambda: violating_ranking(scores, y, 1.0)),
        "plain_python_seconds": best_of(lambda: plain_violating(scores, y, 1.0)),
        "joint_seconds": best_of(lambda: best_joint(scores, pairs), 3),
    }


def main() -> None:
    folder = data_folder()
    if folder is None or not (folder / "wikiqa").is_dir():
        raise SystemExit("skipped: WikiQA not found, set NETCLUST_DATA to the folder of the data sets")
    data = WikiqaData.read(folder / "wikiqa")
    settings = choose_ranking(RankSettings(), data.train, data.dev, grid=GRID, epochs=20).settings
    w = learn_ranking(settings, data.train)
    sr = {
        "dev_map": measure_ranker(settings, data.dev, w).map,
        "seconds": best_of(lambda: learn_ranking(settings, data.train), 3),
        "C": settings.C,
        "epochs": settings.epochs,
    }
    save(
        "ranking",
        {"sr": sr, "rank_svm": rank_svm(data.train, data.dev), "search": [search(n) for n in (10, 30, 100, 300)]},
    )


if __name__ == "__main__":
    main()
