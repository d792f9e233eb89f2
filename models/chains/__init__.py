"""Chains: sequences of labels."""
