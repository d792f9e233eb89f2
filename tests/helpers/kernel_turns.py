"""A kernel is compiled by one process of the suite; another that needs it waits, and finds it in the cache."""

from __future__ import annotations

import fcntl
import threading
from typing import Any

from numba.core.dispatcher import Dispatcher

from netclust.kernels.jit import CACHE_FOLDER

_busy = threading.local()


def take_turns() -> None:
    """Let kernels that are kept be compiled, or read from the cache, by one process at a time: the largest takes a
    minute, and files of tests that begin together need the same ones."""
    folder = CACHE_FOLDER
    if folder is None:
        return
    compiled = Dispatcher.compile

    def compile_in_turn(self: Any, signature: Any) -> Any:
        # Only the outermost one waits: what it calls is compiled while numba's own lock is held, and waiting for a
        # file then could be waiting for a thread that waits for that lock.
        if getattr(_busy, "now", False):
            return compiled(self, signature)
        _busy.now = True
        try:
            with (folder / f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock").open("wb") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                return compiled(self, signature)
        finally:
            _busy.now = False

    Dispatcher.compile = compile_in_turn
