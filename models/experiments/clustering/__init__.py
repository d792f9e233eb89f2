"""Experiments on supervised clustering."""
