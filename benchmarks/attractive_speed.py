"""What the best labelling of a large network costs: a grid, nodes tied to those just before, ties anywhere.

    python benchmarks/attractive_speed.py [--nodes 100000]

Seconds of processor time, of two labels the best of three; kernels are compiled before.
"""

from __future__ import annotations

import argparse
import time

import common
import numpy as np

from netclust.models.attractive.attractive_networks import AttractiveNetwork, Cliques, best_labels


def edges_of(kind: str, nodes: int, rng: np.random.Generator) -> np.ndarray:
    at = np.arange(nodes)
    if kind == "grid":
        side = int(np.sqrt(nodes))
        right = at[(at % side < side - 1) & (at < side * side)]
        below = at[: side * (side - 1)]
        return np.concatenate([np.column_stack([right, right + 1]), np.column_stack([below, below + side])])
    if kind == "last three":
        return np.concatenate([np.column_stack([at[:-k], at[k:]]) for k in (1, 2, 3)])
    pairs = rng.integers(0, nodes, (3 * nodes, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


def seconds(network: AttractiveNetwork, times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        best_labels(network)
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    args = parser.parse_args()
    rows = []
    for kind in ("grid", "last three", "anywhere"):
        rng = np.random.default_rng(0)
        edges = edges_of(kind, args.nodes, rng)
        for labels in (2, 4):
            node = rng.normal(0, 2, (args.nodes, labels))
            node[np.arange(args.nodes), (np.arange(args.nodes) // 5000) % labels] += 1
            ties = Cliques.of_edges(edges)
            network = AttractiveNetwork(node, ties, np.full((len(edges), labels), 0.8))
            best_labels(AttractiveNetwork(node[:9], Cliques.of_edges([[0, 1]]), np.ones((1, labels))))
            print(kind, labels, flush=True)
            rows.append(
                {
                    "ties": kind,
                    "labels": labels,
                    "edges": len(edges),
                    "seconds": round(seconds(network, 3 if labels == 2 else 1), 3),
                }
            )
    common.save("attractive_speed", {"nodes": args.nodes, "rows": rows})


if __name__ == "__main__":
    main()
