"""Partitions by pair scores: correlation clustering, exact, relaxed, greedy and by local search."""
