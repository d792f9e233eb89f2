"""Experiments on ranking."""
