"""Experiments on attacks in captures."""
