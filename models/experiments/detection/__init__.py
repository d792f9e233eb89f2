"""Experiments on the detector."""
