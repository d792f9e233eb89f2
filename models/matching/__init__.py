"""Matchings: nodes with at most one partner."""
