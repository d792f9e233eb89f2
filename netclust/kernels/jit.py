"""The one decorator of every kernel, and where compiled code is kept.

Chosen before numba is imported: NUMBA_CACHE_DIR, else systemd's cache directory, else the user's cache, else none:
numba refuses to import a cached function where nothing is writable.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def _candidates() -> list[Path]:
    """Folders that may hold the kernel cache, best first."""
    env = os.environ
    if env.get("NUMBA_CACHE_DIR"):
        return [Path(env["NUMBA_CACHE_DIR"])]
    found = [Path(folder) / "kernels" for folder in env.get("CACHE_DIRECTORY", "").split(":") if folder]
    home = env.get("HOME", "")
    user = env.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "")
    if user:
        found.append(Path(user) / "netclust" / "kernels")
    return found


def _writable(folder: Path) -> bool:
    """Whether files can really be made there: permission bits lie on read-only mounts and for root."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _source_version() -> str:
    """A name for the state of the kernels: numba does not notice when a kernel that another one calls has changed."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def choose_cache() -> Path | None:
    """The folder for compiled kernels, or None to run uncached."""
    version = _source_version()
    # A process that was started by another has its folder from that one.
    folders = [folder if folder.name == version else folder / version for folder in _candidates()]
    return next((folder for folder in folders if _writable(folder)), None)


CACHE_FOLDER = choose_cache()
"""Where compiled kernels are kept; None means that every start compiles again."""

if CACHE_FOLDER is None:
    warnings.warn(
        "netclust: no writable folder for compiled kernels, every start compiles them again (some seconds). "
        "Set NUMBA_CACHE_DIR to a writable folder.",
        RuntimeWarning,
        stacklevel=2,
    )
elif "numba" not in sys.modules:
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE_FOLDER)

import numba  # noqa: E402
from numba.core.registry import CPUDispatcher  # noqa: E402

if CACHE_FOLDER is not None:
    setattr(numba.config, "CACHE_DIR", str(CACHE_FOLDER))  # noqa: B010 (untyped there); also where numba was imported before us


def kernel(function: Function) -> Function:
    """Compile: nopython, GIL released, cached where possible; never fastmath, so that results are exact."""
    return _compiled(function, cache=CACHE_FOLDER is not None)


def inner(function: Function, **options: bool) -> Function:
    """Compile as a part of other kernels: no entry from Python and no cache of its own, which is quicker to compile."""
    compiled: Any = _compiled(function, no_cfunc_wrapper=True, no_cpython_wrapper=True, **options)
    compiled.__class__ = _Part
    part: Function = compiled
    return part


def inlined(function: Function) -> Function:
    """As `inner`, and always copied into its callers: for the small steps of a hot loop, where passing arrays costs."""
    return inner(function, forceinline=True)


class _Part(CPUDispatcher):
    """A kernel that only kernels can call: without an entry, a call from Python would crash the process."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a part of other kernels, call those (or its .py_func)")


def _compiled(function: Function, **options: bool) -> Function:
    loosely_typed: Any = numba
    compiled: Function = loosely_typed.njit(nogil=True, error_model="numpy", **options)(function)
    return compiled
