"""Alerts: episodes, limits, severity, suppression and notification."""
