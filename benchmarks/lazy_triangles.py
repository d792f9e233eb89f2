"""The linear relaxation of correlation clustering with lazily added triangles, beside the program with all of them.

Planted partitions with noise, and scores as a learned model gives them: a threshold on a noisy distance between items,
so that errors go together. `python benchmarks/lazy_triangles.py` writes benchmarks/results/lazy_triangles.json.
"""

from __future__ import annotations

import resource
import time

import numpy as np
from common import save

from netclust.models.clustering.clustering_minmax import triangle_rows
from netclust.models.clustering.partitions.exact import exact_clusters
from netclust.models.clustering.partitions.relaxed import relaxed_partition
from netclust.structures.pairs import all_pairs
from netclust.structures.partition import PairScores
from netclust.structures.sizes import estimate_size

SIZES = (30, 40, 50, 100, 150, 200)
FULL_UP_TO = 40
EXACT_UP_TO = 100
EXACT_SECONDS = 20


def planted(items: int, noise: float, seed: int) -> PairScores:
    rng = np.random.default_rng(seed)
    y = rng.integers(max(items // 15, 2), size=items)
    left, right = all_pairs(items)
    return PairScores(items, np.where(y[left] == y[right], 1.0, -1.0) + noise * rng.normal(size=len(left)))


def learned_like(items: int, seed: int) -> PairScores:
    rng = np.random.default_rng(seed)
    y = rng.integers(max(items // 15, 2), size=items)
    centres = rng.normal(scale=2.0, size=(y.max() + 1, 4))
    X = centres[y] + rng.normal(size=(items, 4))
    left, right = all_pairs(items)
    return PairScores(items, 3.5 - np.linalg.norm(X[left] - X[right], axis=1) + 0.3 * rng.normal(size=len(left)))


def full_seconds(scores: PairScores) -> tuple[float, float]:
    """The same program with every triangle from the start, by HiGHS as well."""
    from scipy.optimize import linprog

    rows = triangle_rows(scores.items)
    begin = time.perf_counter()
    solved = linprog(-scores.values, A_ub=rows, b_ub=np.ones(rows.shape[0]), bounds=(0, 1), method="highs")
    return time.perf_counter() - begin, float(-solved.fun)


def measured(kind: str, scores: PairScores) -> dict[str, float | int | str | bool]:
    begin = time.perf_counter()
    relaxed = relaxed_partition(scores)
    seconds = time.perf_counter() - begin
    row: dict[str, float | int | str | bool] = {
        "scores": kind,
        "items": scores.items,
        "pairs": len(scores.values),
        "seconds": round(seconds, 3),
        "rounds": relaxed.rounds,
        "rows_added": relaxed.rows,
        "rows_in_full": estimate_size(scores.items, "lp-full").rows,
        "value": relaxed.value,
        "bound": relaxed.bound,
        "fractional_pairs": int((np.minimum(relaxed.together, 1 - relaxed.together) > 1e-6).sum()),
    }
    if scores.items <= FULL_UP_TO:
        full, value = full_seconds(scores)
        row |= {"full_seconds": round(full, 3), "full_over_lazy": round(full / seconds, 1), "full_value": value}
    if scores.items <= EXACT_UP_TO:
        begin = time.perf_counter()
        found = exact_clusters(scores, limit_seconds=EXACT_SECONDS)
        row |= {
            "exact_seconds": round(time.perf_counter() - begin, 3),
            "exact_value": found.value,
            "exact_bound": found.bound,
            "exact_optimal": found.optimal,
            "exact_programs": found.programs,
        }
    return row


def main() -> None:
    relaxed_partition(planted(5, 1.0, 0))  # load the solver and compile
    exact_clusters(planted(12, 3.0, 0))
    rows = []
    for items in SIZES:
        for kind, scores in (
            ("planted, noise 0.7", planted(items, 0.7, items)),
            ("planted, noise 1.2", planted(items, 1.2, items)),
            ("learned-like", learned_like(items, items)),
        ):
            rows.append(measured(kind, scores))
            print(rows[-1], flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    save("lazy_triangles", {"rows": rows, "peak_bytes": peak, "estimated_bytes_200": estimate_size(200, "lp").bytes})


if __name__ == "__main__":
    main()
