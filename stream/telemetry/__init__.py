"""Metrics of the running daemon."""
