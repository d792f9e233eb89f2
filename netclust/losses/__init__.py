"""Losses: what a wrong structure costs. Those that split over arcs are in `netclust.losses.edge_loss`, over pairs in
`netclust.losses.forest_loss`.
"""
