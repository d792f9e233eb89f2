"""Does a chain over a host's connections help the detector? python benchmarks/host_sequences.py [--seeds 4]

Every seed is an office of its own: the detector is trained on its first day, the chain on the verdicts of the second,
and both are measured on the third and the fourth; judged days have attack types that the detector was not trained on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from common import save

from netclust.models.experiments.detection.host_sequences import METHODS, HostSettings, compare_day
from netclust.models.experiments.detection.judged_days import DayPlan, JudgedDay, judged_days

SHOWN = ("detected", "detected, mean of types", "false alarms", "false alarm rate", "wrong")
EQUAL = "at the detector's false alarms"


def measure(seed: int, days: Sequence[JudgedDay]) -> list[dict[str, Any]]:
    """Learned on the first day, measured on each of the others."""
    runs = []
    for number, day in enumerate(days[1:], 2):
        run = compare_day(days[0], day, HostSettings())
        runs.append({"seed": seed, "judged day": number, **run})
        for name in METHODS:
            print(seed, number, name, {key: round(run[name][key], 4) for key in SHOWN}, flush=True)
    return runs


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds and days, by method; also at as many false alarms as the detector has."""
    return {
        name: {
            **{key: float(np.mean([run[name][key] for run in runs])) for key in SHOWN},
            EQUAL: {key: float(np.mean([run[name][EQUAL][key] for run in runs])) for key in SHOWN},
        }
        for name in METHODS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--hours", type=float, default=8.0)
    given = parser.parse_args()
    began = time.perf_counter()
    runs: list[dict[str, Any]] = []
    for seed in range(1, given.seeds + 1):
        runs += measure(seed, judged_days(DayPlan(seed=seed, hours=given.hours, days=3)))
    save(
        "host-sequences",
        {
            "seeds": given.seeds, "hours": given.hours, "mean": summary(runs), "runs": runs,
            "seconds": time.perf_counter() - began,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
