"""Simulators of records, packets, texts and item sets."""
