"""Experiments on coreference."""
