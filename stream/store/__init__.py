"""The store of alerts, answers and rules."""
