"""Rows of numbers as they stand in a text file, made into a matrix: quickly where all is well, exactly where it is not.

>>> rows = NumberRows("some.csv", ("size", "age"))
>>> rows.add(["1", "2.5"], 2)
>>> rows.add(["3", "-1e2"], 3)
>>> rows.matrix().tolist()
[[1.0, 2.5], [3.0, -100.0]]
>>> rows.add(["3", "?"], 4)
>>> rows.matrix()
Traceback (most recent call last):
    ...
netclust.errors.InputError: some.csv line 4: age is '?', expected a number: fill missing values in first
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = ["MAX_CELLS", "NumberRows", "finite_number"]

MAX_CELLS = 200_000_000
"""Of a dense matrix: 1.6 GB."""
_CHUNK_CELLS = 1 << 19  # texts of so many cells are in memory at once


class NumberRows:
    """Takes rows of texts, all with one cell a name, and gives their matrix."""

    def __init__(self, path: str | Path, names: Sequence[str]) -> None:
        self._path = path
        self._names = names
        self._rows: list[Sequence[str]] = []
        self._lines: list[int] = []
        self._parts: list[NDArray[np.float64]] = []
        self._count = 0

    def add(self, cells: Sequence[str], line: int) -> None:
        """One row, which stands in that line."""
        self._count += len(cells)
        if self._count > MAX_CELLS:
            raise InputError(f"{self._path} line {line}: more than {MAX_CELLS:,} numbers: use a sparse format")
        self._rows.append(cells)
        self._lines.append(line)
        if len(self._rows) * len(self._names) >= _CHUNK_CELLS:
            self._convert()

    def matrix(self) -> NDArray[np.float64]:
        """All rows so far."""
        self._convert()
        return np.concatenate([np.empty((0, len(self._names))), *self._parts])

    def _convert(self) -> None:
        rows, lines, self._rows, self._lines = self._rows, self._lines, [], []
        if not rows:
            return
        try:
            flat = np.fromiter(map(float, chain.from_iterable(rows)), np.float64, len(rows) * len(self._names))
        except ValueError:
            flat = np.full(1, math.nan)
        odd = any("_" in "".join(cells) for cells in rows)  # float("1_000") is 1000
        if odd or not np.isfinite(flat).all():
            for cells, line in zip(rows, lines, strict=True):
                for name, cell in zip(self._names, cells, strict=True):
                    finite_number(cell, sanitize(name), f"{self._path} line {line}")
        self._parts.append(flat.reshape(len(rows), len(self._names)))


def finite_number(text: str, what: str, where: str) -> float:
    """The number that a text is.

    >>> finite_number(" 1e3", "size", "here")
    1000.0
    """
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        missing = text.strip().lower() in ("?", "", "nan", "na")
        why = ": fill missing values in first" if missing else ""
        raise InputError(f"{where}: {what} is {sanitize(text.strip()[:40])!r}, expected a number{why}")
    return value
