"""Seconds of a best matching: complete bipartite graphs by assignment and by blossoms, general ones by blossoms."""

from __future__ import annotations

import numpy as np
from common import best_of, save

from netclust.models.matching.matchings import MatchGraph, best_matching, bipartite, complete_graph

NODES = (20, 50, 100, 200, 400)


def seconds(graph: MatchGraph) -> float:
    scores = np.random.default_rng(0).normal(size=len(graph.left))
    best_matching(graph, scores)
    return round(best_of(lambda: best_matching(graph, scores), 5), 6)


def main() -> None:
    rows = []
    for nodes in NODES:
        sides = bipartite(nodes // 2, nodes // 2)
        same = MatchGraph(sides.nodes, sides.left, sides.right)
        rows.append(
            {
                "nodes": nodes,
                "bipartite by assignment": seconds(sides),
                "bipartite by blossoms": seconds(same),
                "general": seconds(complete_graph(nodes)),
            }
        )
    save("matching", {"rows": rows})


if __name__ == "__main__":
    main()
