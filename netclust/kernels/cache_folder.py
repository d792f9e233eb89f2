"""The folder of compiled kernels: NUMBA_CACHE_DIR, else systemd's cache directory, else the user's cache, else none.

Compiled code is unpickled, which can run anything, so the folder must be one that nobody else can write to.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from pathlib import Path

from netclust.kernels import prebuilt

NAME = "compiled-kernels"


def _candidates() -> list[Path]:
    """Folders that may hold the compiled kernels, best first."""
    env = os.environ
    if (built := prebuilt.folder_to_write()) is not None:
        return [built]
    if env.get("NUMBA_CACHE_DIR"):
        return [Path(env["NUMBA_CACHE_DIR"]) / NAME]
    found = [Path(folder) / NAME for folder in env.get("CACHE_DIRECTORY", "").split(":") if folder]
    home = env.get("HOME", "")
    user = env.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "")
    if user:
        found.append(Path(user) / "netclust" / NAME)
    return found


def objection(folder: Path) -> str | None:
    """Return why a folder cannot hold compiled kernels, or None if it can; make it if it is not there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Permission bits lie on read-only mounts and for root, so a file is really made.
        with tempfile.TemporaryFile(dir=folder):
            found = folder.stat()
    except OSError as error:
        return f"{folder} is not writable ({error.strerror})"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return f"{folder} belongs to another user, who could put code into it"
    if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write to {folder}, and so put code into it (chmod go-w)"
    return None


def choose() -> tuple[Path | None, list[str]]:
    """Return the folder for compiled kernels, or None to run uncached, and why better ones were passed over."""
    objections: list[str] = []
    for folder in _candidates():
        problem = objection(folder)
        if problem is None:
            return folder, objections
        objections.append(problem)
    return None, objections


def warn(objections: list[str]) -> None:
    """Warn that nothing is kept."""
    reasons = "; ".join(objections) or "neither NUMBA_CACHE_DIR nor HOME is set"
    warnings.warn(
        "netclust: no writable folder for compiled kernels, every start compiles them again (some seconds): "
        f"{reasons}. Set NUMBA_CACHE_DIR to a folder that is yours alone.",
        RuntimeWarning,
        stacklevel=4,
    )


def is_warm(folder: Path | None) -> bool:
    """Return whether anything compiled is kept, or came with netclust."""
    if prebuilt.folder_to_read() is not None:
        return True
    return folder is not None and any(folder.glob("*.kernel"))
