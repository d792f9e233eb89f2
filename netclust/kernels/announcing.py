"""Saying that kernels are compiled: a line on a terminal, for who asked for it. Imports nothing of numba.

Libraries are silent: a program calls `on_terminal` for a line "compiling kernels, once: 12 of 31". Kernels consist of
parts, each compiled by itself; the total is that of all kernels begun so far.
"""

from __future__ import annotations

import sys
from typing import TextIO


class _Line:
    """The line, rewritten while kernels are compiled and erased afterwards."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.known: set[str] = set()
        self.done: set[str] = set()
        self.shown = 0

    def begin(self, parts: set[str]) -> None:
        self.known |= parts
        self._show()

    def finish(self, part: str) -> None:
        if self.shown and part in self.known - self.done:  # not one that was there already, for other types
            self.done.add(part)
            self._show()

    def erase(self) -> None:
        if self.shown:
            self._write("\r" + " " * self.shown + "\r")
            self.shown = 0

    def _show(self) -> None:
        text = f"compiling kernels, once: {len(self.done)} of {len(self.known)}"
        self._write("\r" + text.ljust(self.shown))
        self.shown = len(text)

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # the terminal has gone: nobody reads it
            _stop()


_line: _Line | None = None


def on_terminal() -> None:
    """Announce from now on, if standard error is a terminal."""
    global _line
    if sys.stderr.isatty():
        _line = _Line(sys.stderr)


def _stop() -> None:
    """Announce nothing from now on."""
    global _line
    _line = None


def watched() -> bool:
    """Return whether anybody is told."""
    return _line is not None


def begin(parts: set[str]) -> None:
    """A kernel that consists of these parts is compiled."""
    if _line is not None:
        _line.begin(parts)


def finish(part: str) -> None:
    """A part has been compiled."""
    if _line is not None:
        _line.finish(part)


def erase() -> None:
    """A kernel is there."""
    if _line is not None:
        _line.erase()
