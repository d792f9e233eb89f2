"""Kernels of packets, connections and lines of records."""
