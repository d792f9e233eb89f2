"""Points of made scenes by class: an attractive network, votes of neighbours, and every point by itself.

    python benchmarks/scenes.py [--runs 5] [--points 4000]

Published on laser scans that are not public (Taskar 2004, section 7.5): SVM 68 %, voted 73 %, network 93 %. C and the
number of voters are chosen on a scene of their own, for every rival alike; features are the same, squared.
"""

from __future__ import annotations

import argparse
import time

import common
import numpy as np

from netclust.datasets.simulators.synthetic_scenes import (
    CLASSES,
    Scene,
    made_scene,
    nearest_scene_points,
    scene_neighbours,
)
from netclust.learners.one_slack import OneSlack
from netclust.models.attractive.attractive_networks import Cliques, network_majority
from netclust.models.attractive.attractive_problem import AttractiveProblem, NetworkFeatures

COSTS = (100.0, 1000.0, 10_000.0)
VOTERS = (5, 10, 20, 50, 100)


def features(scene: Scene) -> np.ndarray:
    """What is seen, its squares and products, a constant: the quadratic kernel written out."""
    x = scene.seen
    i, j = np.triu_indices(x.shape[1])
    return np.column_stack([x, x[:, i] * x[:, j] / 3, np.ones(len(x))])


def example(scene: Scene, seed: int, tied: bool) -> tuple[NetworkFeatures, np.ndarray]:
    edges = scene_neighbours(scene, seed) if tied else np.zeros((0, 2), np.int64)
    return NetworkFeatures(features(scene), Cliques.of_edges(edges)), scene.label


def learned(train: list[Scene], held: Scene, tied: bool) -> tuple[AttractiveProblem, np.ndarray, float]:
    """Weights at the C that is best on the held scene."""
    problem = AttractiveProblem(len(CLASSES), features(held).shape[1])
    own = [example(scene, k, tied) for k, scene in enumerate(train)]
    x, y = example(held, 99, tied)
    best, warm = (101.0, np.zeros(0), 0.0), None
    for C in COSTS:
        warm = OneSlack(C=C, epsilon=0.2, max_iterations=300).fit(problem, own, warm=warm)
        loss = problem.loss(y, problem.predict(x, warm.w))
        best = min(best, (loss, warm.w, C), key=lambda one: one[0])
    return problem, best[1], best[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--points", type=int, default=4000)
    args = parser.parse_args()
    rows, started = [], time.perf_counter()
    for run in range(args.runs):
        train = [made_scene(args.points, 10 * run + k) for k in range(2)]
        held, test = made_scene(args.points, 10 * run + 8), made_scene(args.points, 10 * run + 9)
        problem, w, C = learned(train, held, False)
        alone, alone_held = (problem.predict(example(s, 0, False)[0], w) for s in (test, held))
        votes = [
            (np.mean(network_majority(Cliques.of_edges(nearest_scene_points(held, k)), alone_held, 4) == held.label), k)
            for k in VOTERS
        ]
        voters = max(votes)[1]
        voted = network_majority(Cliques.of_edges(nearest_scene_points(test, voters)), alone, 4)
        network, tied_w, tied_C = learned(train, held, True)
        x, y = example(test, 7, True)
        begun = time.perf_counter()
        found = network.predict(x, tied_w)
        rows.append(
            {
                "run": run, "svm": float(np.mean(alone == y)), "voted": float(np.mean(voted == y)),
                "network": float(np.mean(found == y)), "svm C": C, "voters": voters, "network C": tied_C,
                "edges": len(x.cliques), "inference seconds": time.perf_counter() - begun,
            }
        )  # fmt: skip
        print({k: round(v, 3) for k, v in rows[-1].items()}, flush=True)
    mean = {name: float(np.mean([row[name] for row in rows])) for name in ("svm", "voted", "network")}
    spread = {name: float(np.std([row[name] for row in rows], ddof=1)) for name in mean} if len(rows) > 1 else {}
    print({name: f"{100 * value:.1f} %" for name, value in mean.items()})
    common.save(
        "scenes", {"runs": rows, "mean": mean, "sd": spread, "points": args.points, "published": [0.68, 0.73, 0.93],
                   "seconds": time.perf_counter() - started},
    )  # fmt: skip


if __name__ == "__main__":
    main()
