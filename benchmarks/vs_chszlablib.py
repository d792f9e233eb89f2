"""Correlation clustering of 2,000 items against chszlablib's SCC (multilevel, signed graphs), same run, one core each.

Its fastest mode is `correlation_clustering`; its `evolutionary_correlation_clustering` runs as long as it is told and
is shown beside a longer annealing of ours. Scores are whole numbers, as chszlablib needs them; its graph is built
before the clock starts, ours within the time. Then greedy alone: time against items, and 20,000 items with stored
pairs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable

import numpy as np
from chszlablib import Decomposition, Graph
from common import best_of, save, timed

from netclust.models.clustering.partitions.greedy import greedy_clusters
from netclust.models.clustering.partitions.local_search import local_search
from netclust.structures.pairs import PairIndex, all_pairs, pair_count, pair_index
from netclust.structures.partition import PairScores

ITEMS = 2000
SEEDS = 3
EVOLUTION_SECONDS = 3.0
LONG_SWEEPS = 1000
SIZES = (250, 500, 1000, 2000, 4000)


def some_pairs(random: np.random.Generator, items: int, degree: int, y: np.ndarray | None = None) -> PairIndex:
    """Pairs of chance, about `degree` an item; with y, half of them within clusters, which are few otherwise."""
    count = items * degree // 2
    left, right = random.integers(items, size=(2, count))
    if y is not None:
        order = np.argsort(y, kind="stable")
        begin, size = np.searchsorted(y[order], y[left]), np.bincount(y)[y[left]]
        mate = order[begin + (random.random(count) * size).astype(np.int64)]
        right = np.where(np.arange(count) % 2, mate, right)
    low, high = np.minimum(left, right), np.maximum(left, right)
    key = np.unique((low * items + high)[low != high])
    return pair_index(items, key // items, key % items)


def planted(seed: int, clusters: int, degree: int | None, noise: float, weights: int, items: int = ITEMS) -> PairScores:
    """Signs of a partition of which a share is wrong; `weights` are whole numbers up to that. No degree: all pairs."""
    random = np.random.default_rng(seed)
    y = random.integers(clusters, size=items)
    index = all_pairs(items) if degree is None else some_pairs(random, items, degree, y)
    sign = np.where(y[index.left] == y[index.right], 1, -1) * np.where(random.random(len(index.left)) < noise, -1, 1)
    return PairScores(items, (sign * random.integers(1, weights + 1, len(sign))).astype(float), degree and index)


def chance(seed: int, degree: int | None, weights: int, items: int = ITEMS) -> PairScores:
    """Signs of chance."""
    random = np.random.default_rng(seed)
    index = all_pairs(items) if degree is None else some_pairs(random, items, degree)
    sign = np.where(random.random(len(index.left)) < 0.5, 1, -1)
    return PairScores(items, (sign * random.integers(1, weights + 1, len(sign))).astype(float), degree and index)


FAMILIES: dict[str, Callable[[int], PairScores]] = {
    "planted, 20 clusters, 20 pairs an item, 10 % wrong": lambda s: planted(s, 20, 20, 0.1, 1),
    "planted, 50 clusters, 40 pairs an item, 20 % wrong, weighted": lambda s: planted(s, 50, 40, 0.2, 100),
    "planted, 100 clusters, 20 pairs an item, 30 % wrong, weighted": lambda s: planted(s, 100, 20, 0.3, 100),
    "signs of chance, 10 pairs an item": lambda s: chance(s, 10, 1),
    "signs of chance, 40 pairs an item, weighted": lambda s: chance(s, 40, 100),
    "all pairs, 20 clusters, 20 % wrong, weighted": lambda s: planted(s, 20, None, 0.2, 100),
    "all pairs, 20 clusters, 40 % wrong, weighted": lambda s: planted(s, 20, None, 0.4, 100),
}


def peer_graph(scores: PairScores) -> Graph:
    """The scores as chszlablib's graph."""
    from scipy.sparse import coo_array

    left, right = all_pairs(scores.items) if scores.index is None else scores.index
    ends = (np.concatenate([left, right]), np.concatenate([right, left]))
    rows = coo_array((np.tile(scores.values, 2).astype(np.int64), ends), shape=(scores.items,) * 2).tocsr()
    rows.sort_indices()
    return Graph.from_csr(rows.indptr, rows.indices, edge_weights=rows.data)


def disagreement(scores: PairScores, labels: np.ndarray) -> float:
    """Positive scores between clusters and negative ones within."""
    return float(np.maximum(scores.values, 0).sum()) - scores.within(labels)


def compare(scores: PairScores, seed: int) -> dict[str, float]:
    """One instance: objectives and times of both."""
    graph, found = peer_graph(scores), {}

    def keep(name: str, run: Callable[[], np.ndarray]) -> Callable[[], None]:
        return lambda: found.__setitem__(name, run())

    dense = scores.index is None
    # In turns: the machine's bad moments then hit both. The peer needs up to a minute for all pairs: once there.
    peer = greedy = np.inf
    for _ in range(1 if dense else 5):
        peer = min(peer, timed(keep("peer", lambda: Decomposition.correlation_clustering(graph, seed=seed).assignment)))
        greedy = min(greedy, best_of(keep("greedy", lambda: greedy_clusters(scores)), 3))
    local = timed(keep("local", lambda: local_search(scores, seed=seed)))
    row = {
        "pairs": len(scores.values),
        "peer_seconds": peer,
        "greedy_seconds": greedy,
        "local_seconds": local,
        "greedy_time_ratio": greedy / peer,
        **{f"{name}_within": scores.within(z) for name, z in found.items()},
        **{f"{name}_disagreement": disagreement(scores, z) for name, z in found.items()},
    }
    row["local_within_ratio"] = row["local_within"] / row["peer_within"]
    row["local_disagreement_ratio"] = row["local_disagreement"] / row["peer_disagreement"]
    if not dense and seed == 0:
        z = Decomposition.evolutionary_correlation_clustering(graph, seed=0, time_limit=EVOLUTION_SECONDS).assignment
        row["evolutionary_within"] = scores.within(z)
        row["local_within_ratio_to_evolutionary"] = row["local_within"] / row["evolutionary_within"]
        row["long_seconds"] = timed(keep("long", lambda: local_search(scores, seed=0, sweeps=LONG_SWEEPS)))
        row["long_within"] = scores.within(found["long"])
        row["long_within_ratio_to_evolutionary"] = row["long_within"] / row["evolutionary_within"]
    return {name: round(value, 6) for name, value in row.items()}


def growth(make: Callable[[int], PairScores]) -> dict[str, object]:
    """Greedy on all pairs: seconds by items, and the slope of both logarithms."""
    seconds = {}
    for items in SIZES:
        scores = make(items)
        seconds[items] = best_of(lambda: greedy_clusters(scores), 5)  # noqa: B023 (called at once)
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    return {"seconds": {str(m): round(t, 5) for m, t in seconds.items()}, "exponent": round(float(slope), 2)}


LARGE = """
import sys, time
from pathlib import Path
import numpy as np
from netclust.structures.pairs import PairIndex
from netclust.models.clustering.partitions.greedy import greedy_clusters
from netclust.structures.partition import PairScores
def peak():  # of this program; getrusage's would be at least that of the process that started it
    return Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
greedy_clusters(PairScores(3, np.ones(2), PairIndex(np.array([0, 1]), np.array([1, 2]))))  # compiled
left, right, values = (np.load(f"{sys.argv[1]}/{name}.npy") for name in ("left", "right", "values"))
scores = PairScores(20_000, values, PairIndex(left, right))
before = peak()
start = time.perf_counter()
greedy_clusters(scores)
seconds = time.perf_counter() - start
print(seconds, before, peak())
"""


def large() -> dict[str, float]:
    """20,000 items with stored pairs, in a process that has made nothing large before: its peak is then greedy's."""
    scores = planted(0, 500, 42, 0.2, 100, items=20_000)
    pairs = len(scores.values)
    with tempfile.TemporaryDirectory() as folder:
        for name, array in {"left": scores.index.left, "right": scores.index.right, "values": scores.values}.items():
            np.save(f"{folder}/{name}.npy", array)
        ran = subprocess.run([sys.executable, "-c", LARGE, folder], capture_output=True, text=True, check=True)
    seconds, before, after = (float(x) for x in ran.stdout.split())
    greedy_clusters(scores)  # compiled
    tracemalloc.start()  # sees the arrays exactly; the kernels make none of their own here
    labels = greedy_clusters(scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "items": 20_000,
        "stored_pairs": pairs,
        "clusters": int(labels.max()) + 1,
        "seconds": round(seconds, 3),
        "array_bytes_per_stored_pair": round(peak / pairs, 1),
        "peak_resident_growth_bytes_per_stored_pair": round((after - before) * 1024 / pairs, 1),
        "a_square_matrix_would_need_bytes_per_stored_pair": round(8 * 20_000**2 / pairs),
    }


def main() -> None:
    for warm in (planted(9, 5, 10, 0.1, 9, items=60), planted(9, 5, None, 0.1, 9, items=60)):
        greedy_clusters(warm)
        local_search(warm)
    families = {name: [compare(make(seed), seed) for seed in range(SEEDS)] for name, make in FAMILIES.items()}
    rows = [row for found in families.values() for row in found]
    save(
        "vs_chszlablib",
        {
            "target": "local search within 1 % of its objective; greedy at most 3 times its fastest mode's time",
            "worst_local_within_ratio": min(row["local_within_ratio"] for row in rows),
            "worst_local_disagreement_ratio": max(row["local_disagreement_ratio"] for row in rows),
            "worst_greedy_time_ratio": max(row["greedy_time_ratio"] for row in rows),
            "families": families,
            "greedy_growth_normal_scores": growth(
                lambda m: PairScores(m, np.random.default_rng(0).normal(size=pair_count(m)))
            ),
            "greedy_growth_planted": growth(lambda m: planted(0, m // 20, None, 0.2, 100, items=m)),
            "greedy_large": large(),
        },
    )


if __name__ == "__main__":
    main()
