"""Multi-label models beside one LinearSVC a label (scikit-learn) on scene, yeast, emotions, enron and medical.

Every system gets the same features (`LabelEncoder`: centred and in standard deviations where dense, else divided by the
largest value), chooses its C by the same five folds of the training file by Hamming loss, is trained on all of it and
measured on the test file, once: that is a look, and noted. `--rehearse` takes a fifth of the training file for the test
file instead. Names of data sets limit the run to these; results of the others stay.
With `--keep-choices` our C is the one of the last results.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import msgspec
import numpy as np
from common import RESULTS, data_folder, save
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from netclust.datasets.label_sets import LabelSetTable, read_labels
from netclust.models.multilabel.label_metrics import default_labels, measure_labels
from netclust.models.multilabel.task import TASK, LabelSettings, decided_labels
from netclust.models.selection import k_folds
from netclust.models.structured_task import choose_cost, learn
from netclust.models.test_set_ledger import record_test_use

NAMES = ("emotions", "scene", "medical", "yeast", "enron")
RIVAL_GRID = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FOLDS = 5


def one_vs_rest(X: Any, Y: Any, C: float, test: Any) -> Any:
    found = np.zeros((test.shape[0], Y.shape[1]), np.uint8)
    for label, y in enumerate(Y.T):
        if y.min() == y.max():
            found[:, label] = y[0]
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found[:, label] = LinearSVC(C=C, random_state=0).fit(X, y).predict(test)
    return found


def rival(train: LabelSetTable, test: LabelSetTable) -> tuple[Any, dict[str, Any]]:
    encoder = TASK.fit(train, LabelSettings())
    X, Y = encoder.rows(train.X), train.Y
    start = time.perf_counter()
    losses = np.zeros((FOLDS, len(RIVAL_GRID)))
    for f, cut in enumerate(k_folds(len(train), FOLDS, seed=0)):
        some, held = np.array(cut.train), np.array(cut.held)
        for c, C in enumerate(RIVAL_GRID):
            losses[f, c] = np.abs(Y[held].astype(int) - one_vs_rest(X[some], Y[some], C, X[held])).mean()
    C = RIVAL_GRID[int(np.argmin(losses.mean(axis=0)))]
    chosen = time.perf_counter()
    found = one_vs_rest(X, Y, C, encoder.rows(test.X))
    seconds = {"choosing_seconds": chosen - start, "training_seconds": time.perf_counter() - chosen}
    return found, {"C": C, "held_out": (100 * losses.mean(axis=0)).tolist(), **seconds}


def ours(
    train: LabelSetTable, test: LabelSetTable, edges: bool, before: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """`before`: what was found last time, whose choice of C is kept."""
    settings = LabelSettings(edges=edges)
    encoder = TASK.fit(train, settings)
    if before is None:
        start = time.perf_counter()
        picked = choose_cost(TASK, settings, train, encoder, folds=FOLDS)
        choice = {"C": picked.C, "held_out": picked.losses, "choosing_seconds": time.perf_counter() - start}
    else:
        choice = {key: before[key] for key in ("C", "held_out", "choosing_seconds")}
    settings = msgspec.structs.replace(settings, C=choice["C"])
    start = time.perf_counter()
    learned = learn(TASK, settings, encoder, TASK.encode(encoder, train))
    choice["training_seconds"] = time.perf_counter() - start
    problem = TASK.problem(encoder, settings)
    x = TASK.encode(encoder, test)[0][0]
    start = time.perf_counter()
    found = problem.predict(x, learned.w)
    facts = {
        **choice, "iterations": learned.iterations, "converged": learned.converged,
        "prediction_seconds": time.perf_counter() - start,
    }  # fmt: skip
    if edges:
        relaxed = problem.predict_by(x, learned.w, "cut")
        facts["open_labels"] = float(relaxed.open.mean())
    return decided_labels(found), facts


def compare(name: str, rehearse: bool, before: dict[str, Any]) -> dict[str, Any]:
    folder = data_folder()
    if folder is None or not (folder / "multilabel").is_dir():
        raise SystemExit("skipped: the sets are not found, set NETCLUST_DATA to the folder of the data sets")
    train = read_labels(folder / "multilabel" / name / f"{name}-train.arff.xz")
    if rehearse:
        order = np.random.default_rng(0).permutation(len(train))
        train, test = train.rows(order[len(order) // 5 :]), train.rows(order[: len(order) // 5])
    else:
        test = read_labels(folder / "multilabel" / name / f"{name}-test.arff.xz")
    answers = {
        "netclust": ours(train, test, True, before.get("netclust")),
        "netclust, no edges": ours(train, test, False, before.get("netclust, no edges")),
        "LinearSVC a label": rival(train, test),
        "default": (np.broadcast_to(default_labels(train.Y), test.Y.shape), {}),
    }
    if not rehearse:
        record_test_use(f"benchmarks/multilabel.py {name}", test.sha256, rows=len(answers), draws=1)
    other = answers["LinearSVC a label"][0]
    wrong = {key: (found != test.Y).mean(axis=1) for key, (found, _) in answers.items()}
    rows = {}
    for key, (found, facts) in answers.items():
        apart = wrong[key] - (other != test.Y).mean(axis=1)
        error = apart.std(ddof=1) / np.sqrt(len(apart))
        against = {"less_than_rival": -float(apart.mean()), "error_of_that": float(error)}
        rows[key] = {**msgspec.to_builtins(measure_labels(test.Y, found)), **against, **facts}
        print(name, key, {k: round(v, 4) for k, v in rows[key].items() if isinstance(v, float)}, file=sys.stderr)
    sizes = {"train": len(train), "test": len(test), "features": len(train.features), "labels": len(train.labels)}
    return {**sizes, "systems": rows}


def main() -> None:
    rehearse = "--rehearse" in sys.argv
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")] or NAMES
    path = RESULTS / "multilabel.json"
    kept = json.loads(path.read_text())["sets"] if path.is_file() else {}
    for name in wanted:
        known = kept.get(name, {}).get("systems", {}) if "--keep-choices" in sys.argv else {}
        kept[name] = compare(name, rehearse, known)
        if not rehearse:
            save("multilabel", {"folds": FOLDS, "grid": list(TASK.grid), "rival_grid": list(RIVAL_GRID), "sets": kept})


if __name__ == "__main__":
    main()
