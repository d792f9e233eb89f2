"""Multi-label models: rows with any number of labels."""
