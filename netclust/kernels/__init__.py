"""Everything hot, compiled by numba: arrays in, arrays out, no Python objects.

Kernels import nothing else of netclust. Use `kernel` instead of numba's own decorators: it chooses where compiled
code is kept before numba is imported, and compiles without a cache where nothing is writable.
"""
