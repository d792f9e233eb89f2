"""Compiled kernels on disk: a file for each kernel, digest and signature, in a folder of netclust's own.

numba's settings stay as they are, for other libraries. A file is written beside its place and renamed, so processes may
read, write and prune at the same time: what has gone is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from netclust.kernels import announcing, prebuilt
from netclust.kernels.digests import digest, portable_digest, reached_parts

VERSIONS = 6
"""How many versions of a kernel are kept, those that were used last."""

ENDING = ".kernel"


class KernelCache(_Cache):
    """The files of one kernel. Without a folder nothing is kept; a prebuilt one is taken where there is no other."""

    def __init__(self, dispatcher: Any, folder: Path | None) -> None:
        self._dispatcher, self._folder = dispatcher, folder

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        return None if self._folder is None else str(self._folder)

    @property
    def name(self) -> str:
        """The kernel's name in file names."""
        function = self._dispatcher.py_func
        return f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel, or None if it must be compiled, which is then announced."""
        target_context.refresh()
        found = None
        if self._folder is not None:
            found = self._load(self._path(sig, self._folder, self._digest), sig, target_context)
        shipped = prebuilt.folder_to_read()
        if found is None and shipped is not None:
            found = self._load(self._path(sig, shipped, portable_digest(self._dispatcher)), sig, target_context)
        if found is None:
            announcing.begin(reached_parts(self._dispatcher) if announcing.watched() else set())
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, and drop versions of it that nobody used for longest."""
        # Parts have no place of their own in memory: what they raise with is found through the kernel.
        for environment in data._find_referenced_environments():
            data.codegen.set_env(environment.env_name, environment)
        # Without optimisation (NUMBA_OPT=0) code may hold addresses of this process, so each compiles its own.
        if self._folder is None or data.lifted or data.library.has_dynamic_globals:
            return
        path = self._path(sig, self._folder, self._digest)
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
        try:
            temporary.write_bytes(dumps((sig, data._reduce())))
            temporary.replace(path)
        except OSError:  # a full disk: this process has its kernel all the same
            with contextlib.suppress(OSError):
                temporary.unlink()
        self._prune()

    def enable(self) -> None:
        """Raise: there is nothing to turn on again."""
        raise NotImplementedError("a kernel's cache is chosen when it is decorated")

    def disable(self) -> None:
        """Keep and read nothing from now on."""
        self._folder = None

    def flush(self) -> None:
        """Drop all versions of this kernel."""
        for path in self._versions():
            path.unlink(missing_ok=True)

    @functools.cached_property
    def _digest(self) -> str:
        return (portable_digest if prebuilt.folder_to_write() else digest)(self._dispatcher)

    def _load(self, path: Path, sig: Any, target_context: Any) -> Any:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            written_for, reduced = pickle.loads(content)  # noqa: S301 (the folder is ours alone)
            found = CompileResult._rebuild(target_context, *reduced) if str(written_for) == str(sig) else None
        except Exception:  # cut short by a power failure, or damaged: it is compiled and written again
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # what is used stays
        return found

    def _path(self, sig: Any, folder: Path, version: str) -> Path:
        signature = hashlib.sha256(str(sig).encode()).hexdigest()[:12]
        return folder / f"{self.name}-{version[:20]}-{signature}{ENDING}"

    def _versions(self) -> Iterator[Path]:
        if self._folder is not None:
            yield from self._folder.glob(f"{self.name}-*{ENDING}")

    def _prune(self) -> None:
        last_use: dict[str, float] = {}
        files: dict[str, list[Path]] = {}
        for path in self._versions():
            version = path.name[len(self.name) + 1 :].partition("-")[0]
            files.setdefault(version, []).append(path)
            with contextlib.suppress(OSError):
                last_use[version] = max(last_use.get(version, 0.0), path.stat().st_mtime)
        last_use.pop(self._digest[:20], None)
        others = 0 if prebuilt.folder_to_write() else VERSIONS - 1
        for version in sorted(last_use, key=lambda v: -last_use[v])[others:]:
            for path in files[version]:
                with contextlib.suppress(OSError):
                    path.unlink()
