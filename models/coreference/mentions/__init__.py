"""Mentions: their detection and description."""
