"""Readers of record formats, and the simulators that make data where none is at hand."""
