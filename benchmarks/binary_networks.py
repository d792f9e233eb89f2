"""Searches of fully connected binary networks by the number of labels; the cut beside the linear program it solves.

Every network is drawn anew (normal potentials, pairs included) and searched alone, so times are per network with what
it costs to lay a graph or to make a program. Times are those of the processor: on a machine that does other things too,
a long search waits for its turn and a short one does not, which flatters the cut. LP is highspy as the package uses it
(simplex, no presolve, which is quicker here; rows that an optimum satisfies by itself are left out). `settled` networks
have ten times the potentials of single labels, so that (at 40) half of the labels are whole: the cut is slower then.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import save

from netclust.models.experiments.approximate.inference_quality import random_network, time_searches
from netclust.models.multilabel.binary_network import binary_network_value, infer

SIZES = (5, 10, 14, 20, 30, 40, 60, 80, 160)
NETWORKS = 20


def cut_against_program(labels: int, scale: float) -> dict[str, Any]:
    """Seconds a network of both, taken in turn on the same networks in one run; medians, and the ratio of each one."""
    rng = np.random.default_rng(1)
    seconds: dict[str, list[float]] = {"cut": [], "lp": []}
    open_, apart = [], 0.0
    for k in range(NETWORKS + 1):
        theta, pair = random_network(rng, labels, "normal")
        theta = theta * scale
        found = {}
        for method in ("cut", "lp"):
            best = np.inf
            for _ in range(9 if method == "cut" else 3):
                started = time.process_time()
                found[method] = infer(theta, pair, method)  # type: ignore[arg-type]
                best = min(best, time.process_time() - started)
            if k:  # the first compiles
                seconds[method].append(best)
        open_.append(found["cut"].open.mean())
        values = [binary_network_value(theta, pair, found[method].labels)[0] for method in ("cut", "lp")]
        apart = max(apart, abs(values[0] - values[1]) / (1 + abs(values[1])))
    ratios = np.array(seconds["lp"]) / np.array(seconds["cut"])
    return {
        "labels": labels,
        "networks": NETWORKS,
        "cut_seconds": float(np.median(seconds["cut"])),
        "lp_seconds": float(np.median(seconds["lp"])),
        "times": float(np.median(ratios)),
        "times_least": float(ratios.min()),
        "open_share": float(np.mean(open_)),
        "values_apart": apart,
    }


def main() -> None:
    save(
        "binary_networks",
        {
            "cut_against_lp": [cut_against_program(labels, 1.0) for labels in (10, 20, 40, 60)],
            "cut_against_lp_settled": [cut_against_program(labels, 10.0) for labels in (20, 40, 60)],
            "by_labels": [
                {"search": one.name, "labels": one.labels, "seconds": one.seconds}
                for one in time_searches(SIZES, networks=5, runs=5)
            ],
        },
    )


if __name__ == "__main__":
    main()
