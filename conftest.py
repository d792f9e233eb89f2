"""Modules whose examples cannot be collected here, because a library that not everyone needs is missing."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDS = {"netclust/stream/cluster/flow.py": "bytewax", "netclust/stream/cluster/lanes.py": "bytewax"}

collect_ignore = [path for path, library in _NEEDS.items() if find_spec(library) is None]
