"""Losses: what a wrong structure costs. Those that split over arcs are in `netclust.losses.edge`, over pairs in
`netclust.losses.forest`.
"""

from netclust.losses.edge import ArcLoss, EdgeLoss, delta_f, delta_yj

__all__ = ["ArcLoss", "EdgeLoss", "delta_f", "delta_yj"]
