"""Verdicts smoothed over related connections, on simulated days: false alarms and detection, with and without.

    python benchmarks/verdict_smoothing.py [--seeds 4] [--hours 4] [--hosts 40] [--rate 0.001]
    python benchmarks/verdict_smoothing.py --nsl-kdd [--folds 3]

A seed is an office: the detector is trained on its first day, smoothing learned from the verdicts on the second (which
has attack types that were held back from the detector's training), both measured on the third and fourth.

NSL-KDD has no hosts and no order: records of one service (and flag) are all that can be tied. Folds of its training
file hide attack types and services; smoothing learned on one fold is measured on the next.
"""

from __future__ import annotations

import argparse
import time

import common
import msgspec
import numpy as np

from netclust.linking.linker import LinkerConfig
from netclust.models.attractive.task import TASK, Template
from netclust.models.experiments.detection.judged_days import DayPlan, judge_day, judged_days
from netclust.models.experiments.detection.verdict_smoothing import VerdictSmoother, compare_smoothing, learn_smoothing
from netclust.models.network.folds import make_folds
from netclust.models.network.params import load_params
from netclust.models.network.train_network import fit_network
from netclust.records.schema import load_schema
from netclust.records.table import concat_tables
from netclust.stream.sources.record_files import open_records

ALIKE = (
    Template(name="service", where=("a.service = b.service",), nearest=3),
    Template(name="service and flag", where=("a.service = b.service", "a.flag = b.flag"), nearest=3),
    Template(name="runs of protocol, service, flag", group=("protocol_type", "service", "flag"), size=3),
)
"""All that can be said of NSL-KDD's records."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--nsl-kdd", action="store_true")
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    if args.nsl_kdd:
        nsl_kdd(args.folds)
        return
    rows, learned = [], []
    for seed in range(1, args.seeds + 1):
        started = time.perf_counter()
        plan = DayPlan(seed=seed, days=3, hours=args.hours, hosts=args.hosts, rate=args.rate)
        first, *others = judged_days(plan)
        judged = time.perf_counter()
        smoother = learn_smoothing([first])
        trained = time.perf_counter()
        names = weight_names(smoother)
        learned.append(
            {
                "seed": seed, "records": len(first), "C": smoother.costs, "own votes": smoother.own,
                "ties": {name: float(v) for name, v in zip(names, smoother.w, strict=True) if name.startswith("tie")},
                "days seconds": judged - started, "training seconds": trained - judged,
            }
        )  # fmt: skip
        for number, day in enumerate(others, 2):
            for row in compare_smoothing(smoother, day):
                rows.append({"seed": seed, "day": number, "records": len(day), **msgspec.to_builtins(row)})
                print(rows[-1], flush=True)
        names = list(dict.fromkeys(row["name"] for row in rows))
        total = {name: summed([row for row in rows if row["name"] == name]) for name in names}
        common.save("verdict_smoothing", {"plan": vars(args), "total": total, "days": rows, "learned": learned})


def nsl_kdd(count: int) -> None:
    schema = load_schema("kdd")
    table = concat_tables(list(open_records(str(common.nsl_kdd("KDDTrain+")), schema)))
    params, days = load_params("reference", schema), []
    for k, fold in enumerate(make_folds(table)[:count]):
        model = fit_network(table[fold.train], params, seed=k).draw(k)
        days.append(judge_day(model, table[fold.validation], LinkerConfig(referent_window=0)))
    rows, learned = [], []
    for k, day in enumerate(days):
        smoother = learn_smoothing([day], templates=ALIKE, cut=1500)
        names = weight_names(smoother)
        ties = {name: float(v) for name, v in zip(names, smoother.w, strict=True) if name.startswith("tie")}
        learned.append({"fold": k, "C": smoother.costs, "own votes": smoother.own, "ties": ties})
        measured = compare_smoothing(smoother, days[(k + 1) % len(days)])
        rows += [{"fold": (k + 1) % len(days), **msgspec.to_builtins(row)} for row in measured]
    names = list(dict.fromkeys(row["name"] for row in rows))
    total = {name: summed([row for row in rows if row["name"] == name]) for name in names}
    common.save("verdict_smoothing_nsl_kdd", {"total": total, "folds": rows, "learned": learned})


def weight_names(smoother: VerdictSmoother) -> list[str]:
    return TASK.weight_names(smoother.encoder, smoother.settings)


def summed(rows: list[dict]) -> dict[str, float]:
    """Over all days: counts added up, rates as means."""
    return {
        "false_alarms": sum(row["false_alarms"] for row in rows),
        "missed": sum(row["missed"] for row in rows),
        **{
            name: float(np.mean([row[name] for row in rows]))
            for name in ("false_alarm_rate", "detection", "mean_detection")
        },
    }


if __name__ == "__main__":
    main()
