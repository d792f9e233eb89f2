"""Structures: the latent graphs that encode a clustering, and exact inference over them.

E, a rooted tree of best earlier links, is in `netclust.structures.tree`, on pair scores in `links`; K, a forest of the
best pairs, is in `netclust.structures.forest`.
"""

from netclust.structures.tree import arc_sum, best_tree, candidate_arcs, clusters, gold_arcs, gold_tree

__all__ = ["arc_sum", "best_tree", "candidate_arcs", "clusters", "gold_arcs", "gold_tree"]
