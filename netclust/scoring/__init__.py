"""The learned score: similarity, calibration, reference set and model file."""
