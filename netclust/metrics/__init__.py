"""Measures of detections and of clusterings."""
