"""The detector: records in, verdicts and events out."""
