"""The searches by themselves, on random networks: how long they take, and how many labellings beat what they find.

>>> counts = measure_inference_quality(networks=50, labels=6, draw="normal", seed=0)
>>> list(counts), bool((counts["combine"] <= np.minimum(counts["greedy"], counts["lbp"])).all())
(['greedy', 'lbp', 'combine', 'cut'], True)

Labels that a cut leaves open are 0 or 1 at random for the count.

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, section 5.4.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.models.multilabel.binary_network import METHODS, Inference, binary_network_value, infer

__all__ = [
    "DRAWS",
    "Draw",
    "Quality",
    "Timing",
    "measure_inference_quality",
    "random_network",
    "summarise",
    "time_searches",
]

Draw = Literal["normal", "uniform"]
DRAWS: tuple[Draw, ...] = ("normal", "uniform")
Counts = dict[Inference, NDArray[np.int64]]
COUNTED: tuple[Inference, ...] = ("greedy", "lbp", "combine", "cut")

MOST_TIMED: dict[Inference, int] = {"exact": 20, "lp": 40}
"""Labels from which on a search is not timed."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds of processor that a search takes for one network: the mean over networks, the best of some runs."""

    name: Inference
    labels: int
    seconds: float
    networks: int


class Quality(msgspec.Struct, frozen=True):
    """Of the networks of one kind: how many percent are solved, and how many labellings are better on average."""

    name: Inference
    setting: str
    mean: float
    """Percent of the networks that are solved to the best."""
    sd: float | None
    draws: int
    better: float
    worst: int


def random_network(
    rng: np.random.Generator, labels: int, draw: Draw
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One row of potentials, and those of all pairs."""
    size = labels * (labels + 1) // 2
    drawn = rng.normal(size=size) if draw == "normal" else rng.uniform(-1, 1, size)
    pair = np.zeros((labels, labels))
    pair[np.triu_indices(labels, 1)] = drawn[labels:]
    return drawn[None, :labels], pair + pair.T


def measure_inference_quality(networks: int, labels: int, draw: Draw, seed: int) -> Counts:
    """Count, per network, how many labellings are better than the one that each search finds."""
    from netclust.models.multilabel.binary_network_kernels import count_better

    rng = np.random.default_rng([seed, DRAWS.index(draw)])
    counts: Counts = {name: np.zeros(networks, np.int64) for name in COUNTED}
    better = np.zeros(1, np.int64)
    for k in range(networks):
        theta, pair = random_network(rng, labels, draw)
        coins = rng.integers(0, 2, theta.shape).astype(np.float64)
        for name in COUNTED:
            found = infer(theta, pair, name)
            whole = np.where(found.open, coins, found.labels)
            count_better(theta, pair, binary_network_value(theta, pair, whole), better)
            counts[name][k] = better[0]
    return counts


def summarise(counts: Counts, draw: Draw) -> list[Quality]:
    """A row a search."""
    return [
        Quality(
            name=name,
            setting=f"{draw} potentials",
            mean=float(100 * (found == 0).mean()),
            sd=None,
            draws=len(found),
            better=float(found.mean()),
            worst=int(found.max()),
        )
        for name, found in counts.items()
    ]


def time_searches(sizes: Sequence[int], networks: int = 5, runs: int = 3, seed: int = 0) -> list[Timing]:
    """Every search on the same networks (normal potentials), where it is not hopeless."""
    rng = np.random.default_rng(seed)
    made = []
    for labels in sizes:
        drawn = [random_network(rng, labels, "normal") for _ in range(networks)]
        for name in METHODS:
            if labels > MOST_TIMED.get(name, labels):
                continue
            infer(*drawn[0], name)  # compiled
            best = np.inf
            for _ in range(runs):
                started = time.process_time()
                for theta, pair in drawn:
                    infer(theta, pair, name)
                best = min(best, time.process_time() - started)
            made.append(Timing(name, labels, float(best / networks), networks))
    return made
