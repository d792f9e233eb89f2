"""Algorithm 6 with increments beside the same algorithm that computes the nine features anew for each candidate arc.

Both are compiled and find the same trees. Documents of 500 mentions with spurious and missed ones, scores as of a half
trained model. `python benchmarks/global_loss.py` writes benchmarks/results/global-loss.json.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import best_of, save

from netclust.kernels.jit import kernel
from netclust.losses.learned_loss import LearnedLoss, Truth, nine_features
from netclust.models.coreference.antecedent_links import best_antecedents
from netclust.models.coreference.global_loss import TIE, violating_tree

MENTIONS = 500
ENTITIES = 150
REACHES = (MENTIONS, 50)
SEEDS = range(3)
COSTS = (0.1, 1.0)


def made_truth(rng: np.random.Generator, mentions: int) -> Truth:
    """Some large entities, many small ones; one mention in ten is spurious, one entity in five has a missed one."""
    weights = 1.0 / np.arange(1, ENTITIES + 1)
    labels = rng.choice(ENTITIES, size=mentions, p=weights / weights.sum())
    labels[rng.random(mentions) < 0.1] = -1
    found = Truth.of_labels(labels)
    return Truth(found.keys, found.sizes + (rng.random(len(found.sizes)) < 0.2))


def made_arcs(rng: np.random.Generator, truth: Truth, reach: int) -> tuple[Any, Any]:
    """Links within entities score higher, with noise; links of mentions that are further apart score less."""
    n = len(truth.keys)
    starts = np.concatenate([[0], np.cumsum(np.minimum(np.arange(n), reach))]).astype(np.int64)
    right = np.repeat(np.arange(n), np.diff(starts))
    left = right - (starts[right + 1] - np.arange(len(right)))
    same = truth.labels[left] == truth.labels[right]
    return starts, np.where(same, 1.0, -3.0) + rng.normal(size=len(right)) - 0.5 * np.log(right - left)


@kernel
def recompute_features(keys: Any, sizes: Any, mentions: Any, label: Any, table: Any, size: Any, psi: Any) -> None:
    """Compute Psi of mentions whose label is not below 0, from labels alone; table and size are 0 before and after."""
    n = len(keys)
    placed = true = clusters = cells = 0
    precision = recall = similarity = 0.0
    for j in range(n):
        r = label[j]
        if r >= 0:
            placed += 1
            clusters += size[r] == 0
            size[r] += 1
            if keys[j] >= 0:
                true += 1
                cells += table[r, keys[j]] == 0
                table[r, keys[j]] += 1
    for j in range(n):
        r = label[j]
        if r >= 0 and keys[j] >= 0:
            c = table[r, keys[j]]
            k = sizes[keys[j]]
            precision += c / size[r]
            recall += c / k
            similarity += 2.0 / (k + size[r])
    for j in range(n):
        if label[j] >= 0:
            size[label[j]] = 0
            if keys[j] >= 0:
                table[label[j], keys[j]] = 0
    right = (float(true - cells), precision, similarity)
    found = (float(true - cells), recall, similarity)
    claimed = (placed - clusters, placed, clusters)
    wanted = (mentions - len(sizes), mentions, len(sizes))
    for m in range(3):
        p = 100.0 * right[m] / claimed[m] if claimed[m] else 0.0
        q = 100.0 * found[m] / wanted[m] if wanted[m] else 0.0
        psi[3 * m] = p
        psi[3 * m + 1] = q
        psi[3 * m + 2] = 2 * p * q / (p + q) if p + q > 0 else 0.0


@kernel
def recompute_tree(starts: Any, scores: Any, keys: Any, sizes: Any, v: Any, weight: Any, tie: Any, work: Any) -> Any:
    """Run Algorithm 6; find the mentions that move with a node once, and the features once for each candidate arc."""
    parents, label, below, table, size, psi = work
    n = len(keys)
    mentions = sizes.sum()
    parents[:] = -1
    label[:] = -1
    arcs = 0
    changed = True
    while changed:
        changed = False
        for j in range(n):
            below[:] = False
            below[j] = True
            if parents[j] >= 0:
                for i in range(j + 1, n):
                    below[i] = parents[i] > 0 and below[parents[i] - 1]
            first = j - (starts[j + 1] - starts[j])
            best = -np.inf
            parent = -1
            for turn in range(-1 if parents[j] >= 0 else 0, j - first + 1):
                p = parents[j] if turn < 0 else (0 if turn == 0 else first + turn)
                target = j if p == 0 else label[p - 1]
                for i in range(j, n):
                    if below[i]:
                        label[i] = target
                recompute_features(keys, sizes, mentions, label, table, size, psi)
                value = -weight * (j + 1) / n * (v @ psi)
                if p > 0:
                    value += scores[starts[j] + p - 1 - first]
                arcs += 1
                if parent < 0 or value > best + tie:
                    best = value
                    parent = p
            target = j if parent == 0 else label[parent - 1]
            for i in range(j, n):
                if below[i]:
                    label[i] = target
            changed = changed or parent != parents[j]
            parents[j] = parent
    return arcs


def measured(reach: int, C: float, seed: int) -> dict[str, float | int]:
    rng = np.random.default_rng(seed)
    truth = made_truth(rng, MENTIONS)
    starts, scores = made_arcs(rng, truth, reach)
    loss = LearnedLoss.mean_f1()
    found = violating_tree(starts, scores, truth, loss, C=C)
    weight = C * truth.detected / 100.0
    tie = TIE * (np.abs(scores).max() + 100.0 * weight * (1.0 + np.abs(loss.v).sum()))
    n, entities = len(truth.keys), len(truth.sizes)
    integers = np.empty((2, n), np.int64)
    work = (*integers, np.empty(n, np.bool_), np.zeros((n, entities), np.int32), np.zeros(n, np.int64), np.empty(9))

    def recomputed() -> Any:
        return recompute_tree(starts, scores, truth.keys, truth.sizes, loss.v, weight, tie, work)

    arcs = recomputed()
    if work[0].tolist() != found.tree.parents.tolist():
        raise SystemExit(f"the trees differ: reach {reach}, C {C}, seed {seed}")
    fast = best_of(lambda: violating_tree(starts, scores, truth, loss, C=C), 20)
    slow = best_of(recomputed, 2)
    plain = best_of(lambda: best_antecedents(starts, scores), 20)
    error = float(np.abs(found.features - nine_features(truth, found.tree.clusters())).max())
    return {
        "reach": reach,
        "C": C,
        "seed": seed,
        "passes": found.passes,
        "clusters": int(found.tree.clusters().max()) + 1,
        "entities": entities,
        "candidate_arcs": int(arcs),
        "incremental_ms": round(1e3 * fast, 3),
        "anew_ms": round(1e3 * slow, 1),
        "ratio": round(slow / fast, 1),
        "without_loss_ms": round(1e3 * plain, 3),
        "arcs_per_second": round(arcs / fast),
        "largest_feature_error": error,
    }


def main() -> None:
    rows = [measured(reach, C, seed) for reach in REACHES for C in COSTS for seed in SEEDS]
    least = {f"reach_{reach}": min(row["ratio"] for row in rows if row["reach"] == reach) for reach in REACHES}
    save("global-loss", {"mentions": MENTIONS, "least_ratio": least, "rows": rows})


if __name__ == "__main__":
    main()
