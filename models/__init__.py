"""Offline tasks on the engine."""
