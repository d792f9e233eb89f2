"""Training time of supervised k-means against numbers of sets, clusters, features, points (Finley 2009, section 4.5.7).

One of them varies, the others stay at 5 sets of 100 points in 5 clusters with 750 features; one-slack, noise 0.46. The
slope is of log time over log size: 1 is linear. Means over a few draws of the data; C is 10 instead of the published
10,000, at which the relaxed oracle needs thousands of iterations, so iterations are capped, and counted. Time is the
process's own on one core: what else runs must not bend a slope. The base setting is in three of the studies: `base`
has its three times, which should agree.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from common import save
from scipy import linalg  # noqa: F401 (loaded before the limit on threads, which binds what is loaded)
from threadpoolctl import threadpool_limits

from netclust.datasets.simulators.synth_pairs import region_count, synth_pairs
from netclust.learners.one_slack import OneSlack
from netclust.models.clustering.kmeans import KmeansProblem, KmeansSet, Method

DRAWS = 3
C, EPSILON, MOST = 10.0, 0.5, 150
METHODS: tuple[Method, ...] = ("iterative", "spectral")
VARIED: dict[str, list[dict[str, int]]] = {
    "sets": [{"sets": n} for n in (2, 4, 8, 16)],
    "clusters": [{"k": k, "features": 750 // region_count(k)} for k in (2, 3, 4, 5, 8)],
    "features": [{"features": n // 15} for n in (375, 750, 1500, 3000)],
    "points": [{"points": m} for m in (50, 100, 200, 400)],
}


def measure(method: Method, sizes: dict[str, int]) -> dict[str, float]:
    seconds, iterations = [], []
    for seed in range(DRAWS):
        data = synth_pairs(noise=0.46, seed=seed, **sizes)
        examples = [(KmeansSet(s.pairs, sizes.get("k", 5)), s.labels) for s in data]
        problem = KmeansProblem(data[0].pairs.dimension, method)
        learner = OneSlack(C=C, epsilon=EPSILON, max_iterations=MOST)
        start = process_time()
        iterations.append(learner.fit(problem, examples).iterations)
        seconds.append(process_time() - start)
    return {
        "seconds": round(float(np.mean(seconds)), 3),
        "milliseconds_an_iteration": round(1000 * float(np.sum(seconds) / np.sum(iterations)), 2),
        "iterations": round(float(np.mean(iterations)), 1),
    }


def size_of(name: str, sizes: dict[str, int]) -> int:
    return 15 * sizes["features"] if name == "features" else next(iter(sizes.values()))


def slope(sizes: list[int], values: list[float]) -> float:
    return round(float(np.polyfit(np.log(sizes), np.log(values), 1)[0]), 2)


def main() -> None:
    body: dict[str, Any] = {"C": C, "epsilon": EPSILON, "iterations_at_most": MOST, "draws": DRAWS}
    with threadpool_limits(1):
        for method in METHODS:
            measure(method, {"points": 20})  # compile
        for name, steps in VARIED.items():
            sizes = [size_of(name, step) for step in steps]
            body[name] = {"sizes": sizes}
            for method in METHODS:
                found = [measure(method, step) for step in steps]
                body[name][method] = {
                    "measured": found,
                    "slope_of_time": slope(sizes, [f["seconds"] for f in found]),
                    "slope_of_time_an_iteration": slope(sizes, [f["milliseconds_an_iteration"] for f in found]),
                }
    base = {"clusters": 5, "features": 750, "points": 100}
    body["base"] = {
        method: [body[name][method]["measured"][body[name]["sizes"].index(at)]["seconds"] for name, at in base.items()]
        for method in METHODS
    }
    save("kmeans_time", body)


if __name__ == "__main__":
    main()
