"""Attractive networks: nodes whose labels agree with those that they are tied to."""
