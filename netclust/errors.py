"""Errors that are written for the person who will read them, and their exit code."""

from __future__ import annotations

import sys


class NetclustError(Exception):
    """Base of every error that netclust raises on purpose."""

    exit_code = 1


class InputError(NetclustError):
    """Something from the outside (a file, a record, an option) cannot be used; the message says what to do.

    >>> InputError("flows.csv line 3: 'x' is not a number").exit_code
    2
    """

    exit_code = 2


_NEWEST_PYTHON = {"bytewax": (3, 12)}
"""The newest Python for which a library has wheels, where netclust supports newer ones."""


class MissingExtraError(InputError, ImportError):
    """A library is missing that one of netclust's extras brings; the message says how to get it.

    The command adds libraries to the netclust that is installed, wherever that came from.

    >>> MissingExtraError("the LP relaxation", "highspy", "offline")
    MissingExtraError("the LP relaxation needs highspy: pip install 'netclust[offline]'")
    """

    def __init__(self, what: str, library: str, extra: str) -> None:
        newest = _NEWEST_PYTHON.get(library)
        if newest is not None and sys.version_info[:2] > newest:
            major, minor = newest
            how = f"which has no wheel for Python {major}.{minor + 1} and newer: use Python 3.11 or {major}.{minor}"
            super().__init__(f"{what} needs {library}, {how}")
        else:
            super().__init__(f"{what} needs {library}: pip install 'netclust[{extra}]'")
        self.what = what
        self.name = library  # as of every ImportError
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """Survive the way from a worker process to its parent."""
        return type(self), (self.what, self.name or "", self.extra)


class ModelError(InputError):
    """A model or snapshot file is corrupt, too new, too large or not ours."""
