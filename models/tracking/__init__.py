"""Clusters found again in a later model."""
