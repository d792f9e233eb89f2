"""Libraries that not everyone needs: loaded where they are used, with a clear word where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from netclust.errors import MissingExtraError


def require_optional(module: str, what: str, extra: str = "offline") -> Any:
    """Return the module, or raise an error that says how to get it.

    >>> require_optional("math", "counting").floor(2.5)
    2
    >>> require_optional("no_such_module", "guessing")
    Traceback (most recent call last):
        ...
    netclust.errors.MissingExtraError: guessing needs no_such_module: pip install 'netclust[offline]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError(what, module.split(".")[0], extra) from None
