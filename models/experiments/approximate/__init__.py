"""Experiments on training with approximate inference."""
