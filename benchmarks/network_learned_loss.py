"""What a loss learned from the measure buys the network trainer, on folds of KDDTrain+ that hide attack types.

LSP with Delta_F against LSP with prices learned from F-0.5, F-2 and detection within 1 % of false alarms, everything
else equal. C is chosen for each on folds of the training part alone, by the measure that it is judged by. The rival
that needs no learning of a loss is beside them: Delta_F with the threshold of the verdict moved, which is chosen in the
same way. Test files are not read.

    python benchmarks/network_learned_loss.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from common import nsl_kdd, save
from numpy.typing import NDArray

from netclust.linking.linker import LinkerConfig
from netclust.metrics.detection_metrics import auc, detection_at
from netclust.models.experiments.paired_tests import paired_comparison
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.folds import StreamFold, make_folds
from netclust.models.network.network_loss import Measure, collect_blocks, fit_prices
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import fit_network
from netclust.problems import loss_learning
from netclust.records.reader import read_table
from netclust.records.schema import load_schema
from netclust.records.table import Table

MEASURES = {
    "F-0.5": Measure(beta=0.5),
    "F-2": Measure(beta=2.0),
    "budget of 1 %": Measure(name="budget", budget=0.01),
}
C = (0.2, 1.0, 5.0, 25.0, 125.0)
THRESHOLDS = (None, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""False-alarm rates on normal training records at which the verdict's threshold is put; None: it stays at 0."""
PARTS = 3
"""Every fold's training stream is dealt to so many streams: pairs of runs whose training records are not the same."""
INNER = 2
EPOCHS = 3
NORMALS = 3000
DRAWS = 3

Numbers = dict[str, float]


@dataclass(frozen=True)
class Setting:
    """What was trained and how it decides."""

    loss: str  # edge, or the measure that it was learned from
    C: float
    threshold: float | None


def params_of(loss: str, C: float) -> TrainParams:
    plain = TrainParams(epochs=EPOCHS, C=C)
    if loss == "edge":
        return plain
    m = MEASURES[loss]
    return msgspec.structs.replace(plain, loss="learned", measure=m.name, beta=m.beta, alarm_budget=m.budget)


def measured(train: Table, validation: Table, hidden: NDArray[np.bool_]) -> Iterator[tuple[Setting, Numbers]]:
    """Every setting, trained on one table and measured on the other."""
    config = LinkerConfig.thesis(feedback="none")
    normal = np.flatnonzero(train.label_names() == "normal")
    normals = train[np.sort(np.random.default_rng(0).choice(normal, min(NORMALS, len(normal)), replace=False))]
    for loss in ("edge", *MEASURES):
        for c in C:
            fit = fit_network(train, params_of(loss, c))
            found: dict[float | None, list[Numbers]] = {q: [] for q in THRESHOLDS}
            for seed in range(1, DRAWS + 1):
                model = fit.draw(seed)
                seen = evaluate_network(model, [normals], config).verdicts.score
                run = evaluate_network(model, [validation], config)
                ranks = {
                    "auc": float(auc(run.verdicts.score, run.truth) or 0),
                    "detection_at_1": float(detection_at(run.verdicts.score, run.truth, 0.01) or 0),
                }
                for q in THRESHOLDS:
                    above = run.verdicts.score > np.quantile(seen, 1 - q) if q else run.verdicts.anomalous
                    found[q].append(numbers(above, run.truth, hidden) | ranks)
            for q, rows in found.items():
                yield Setting(loss, c, q), {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def numbers(above: NDArray[np.bool_], truth: NDArray[np.bool_], hidden: NDArray[np.bool_]) -> Numbers:
    false, missed = int((above & ~truth).sum()), int((~above & truth).sum())
    attacks, normals = int(truth.sum()), int((~truth).sum())
    values = {name: float(m.value(false, missed, attacks, normals)) for name, m in MEASURES.items()}
    return values | {
        "detection_rate": 1 - missed / attacks,
        "hidden_detection_rate": float(above[hidden].mean()),
        "false_alarm_rate": false / normals,
    }


def choose(table: dict[Setting, Numbers], measure: str, loss: str, *, moved: bool) -> Setting:
    """The best setting of a method by the measure; of equals the first."""
    mine = [s for s in table if s.loss == loss and (moved or s.threshold is None)]
    return max(mine, key=lambda s: table[s][measure])


def averaged(tables: list[dict[Setting, Numbers]]) -> dict[Setting, Numbers]:
    return {s: {k: float(np.mean([t[s][k] for t in tables])) for k in tables[0][s]} for s in tables[0]}


def run_pair(table: Table, fold: StreamFold, part: int) -> dict[str, Any]:
    """One training stream: settings chosen inside it, then measured on the fold's validation stream."""
    rows = fold.train[part::PARTS]
    train = table[rows]
    inner = averaged([dict(measured(train[f.train], train[f.validation], f.hidden)) for f in make_folds(train)[:INNER]])
    outer = dict(measured(train, table[fold.validation], fold.hidden))
    methods: dict[str, Any] = {}
    for measure in MEASURES:
        methods[measure] = {}
        for name, loss, moved in (
            ("delta_f", "edge", False),
            ("learned", measure, False),
            ("delta_f, threshold moved", "edge", True),
            ("learned, threshold moved", measure, True),
        ):
            chosen = choose(inner, measure, loss, moved=moved)
            methods[measure][name] = {"C": chosen.C, "threshold": chosen.threshold} | outer[chosen]
    at_equal_C = {f"{s.loss}, C {s.C:g}": outer[s] for s in outer if s.threshold is None}
    return {"methods": methods, "at_equal_C": at_equal_C}


def regressions(table: Table, fold: StreamFold) -> list[dict[str, Any]]:
    """How well prices tell the measure: on the blocks they are fitted to, and on those of other records."""
    found = []
    for c in C:
        blocks = []
        for part in (0, 1):
            fit = fit_network(table[fold.train[part::PARTS]], TrainParams(epochs=1))
            is_normal = fit.encoding.label_table().is_normal
            blocks.append(collect_blocks(fit.seen, fit.encoding.widths, params_of("edge", c).rule, is_normal))
        for name, measure in MEASURES.items():
            learned = fit_prices(blocks[0], measure)
            mse, scc = loss_learning.measure_loss(learned.loss, blocks[1].rates, blocks[1].value(measure))
            found.append({"measure": name, "C": c, **learned.to_json(), "other_mse": mse, "other_scc": scc})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one fold and one part: does it run?")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    table = read_table(nsl_kdd("KDDTrain+"), load_schema("kdd"))
    folds = make_folds(table)[: 1 if quick else None]
    pairs = []
    for k, fold in enumerate(folds):
        for part in range(1 if quick else PARTS):
            pairs.append({"fold": k, "part": part, **run_pair(table, fold, part)})
            print(f"fold {k}, part {part}: {time.perf_counter() - began:.0f} s", flush=True)
    body = {
        "folds": len(folds),
        "pairs": len(pairs),
        "settings": {"C": C, "thresholds": THRESHOLDS, "epochs": EPOCHS, "draws": DRAWS, "inner_folds": INNER},
        "summary": summary(pairs),
        "comparisons": {} if quick else comparisons(pairs),
        "at_equal_C": {name: mean([p["at_equal_C"][name] for p in pairs]) for name in pairs[0]["at_equal_C"]},
        "regression": regressions(table, folds[0]),
        "runs": [{"fold": p["fold"], "part": p["part"], "methods": p["methods"]} for p in pairs],
        "seconds": time.perf_counter() - began,
    }
    if quick:
        print(body["summary"], body["regression"][:2])
        return
    save("network-learned-loss", body)


def mean(rows: list[dict[str, Any]]) -> Numbers:
    return {k: float(np.mean([row[k] for row in rows])) for k in rows[0] if k not in ("C", "threshold")}


def summary(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over all pairs, by measure and method; which C were chosen."""
    return {
        measure: {
            method: mean([p["methods"][measure][method] for p in pairs])
            | {"C": [p["methods"][measure][method]["C"] for p in pairs]}
            for method in methods
        }
        for measure, methods in pairs[0]["methods"].items()
    }


def comparisons(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Learned against Delta_F, as trained and with thresholds moved: over all pairs, and over means of folds."""
    found: dict[str, Any] = {}
    for measure in MEASURES:
        for a, b in (
            ("learned", "delta_f"),
            ("learned", "delta_f, threshold moved"),
            ("learned, threshold moved", "delta_f, threshold moved"),
        ):
            values = np.array([[p["methods"][measure][m][measure] for m in (a, b)] for p in pairs])
            fold = np.array([p["fold"] for p in pairs])
            by_fold = np.array([values[fold == k].mean(axis=0) for k in np.unique(fold)])
            found[f"{measure}: {a} - {b}"] = {
                "pairs": msgspec.to_builtins(paired_comparison(values[:, 0], values[:, 1])),
                "folds": msgspec.to_builtins(paired_comparison(by_fold[:, 0], by_fold[:, 1])),
            }
    return found


if __name__ == "__main__":
    main()
