"""Kernels of scoring, linking, searching and training on records."""
