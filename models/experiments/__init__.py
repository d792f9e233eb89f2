"""Reproductions of published experiments, and what they share."""
