"""Kernels that several structured tasks share."""
