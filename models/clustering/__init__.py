"""Supervised clustering of item sets."""
