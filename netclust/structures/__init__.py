"""Structures: the latent graphs that encode a clustering, and exact inference over them.

E, a rooted tree of best earlier links, is in `netclust.structures.tree`, on pair scores in `links`; K, a forest of the
best pairs, is in `netclust.structures.forest`.
"""
