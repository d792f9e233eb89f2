"""Checkpoints: one file each, written in one step, checksummed; the newest that is whole is the one to go on from.

A checkpoint holds where every source and sink stands, the open alerts, and the linker's state; of a large referent
window only what changed since a base file, which is written anew once that is more than half of it.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     store = CheckpointStore(Path(folder))
...     _ = store.write(Cut({"note": "first"}, {"a": np.arange(3)}))
...     _ = store.write(Cut({"note": "second"}, {"a": np.arange(4)}))
...     _ = next(Path(folder).glob("checkpoint-*2.netclust")).write_bytes(b"torn")
...     found = store.load()
...     found.facts["note"], len(store.refused)
('first', 1)
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.linking.snapshot import Frozen

KIND = "netclust.checkpoint"
KEPT = 2
SMALL_WINDOW = 65_536
"""A referent window of at most so many members is written whole each time."""
_DIGEST_BYTES = 32
_LINKER = "linker"
_NAME = re.compile(r"(checkpoint|base)-([0-9]{12})\.netclust")


@dataclass(eq=False)
class Cut:
    """Everything that a checkpoint keeps, as it was between two batches. `facts` are JSON.

    `before` is done first, by whoever writes it: other files that it needs are made durable.
    """

    facts: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)
    linker: Frozen | None = None
    before: Callable[[], None] | None = None


@dataclass(frozen=True, eq=False)
class Written:
    """What was written, for metrics."""

    path: Path
    bytes: int
    base_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Loaded:
    """A checkpoint that was read; `linker` and `base` are snapshots for `Linker.restore`."""

    path: Path
    facts: dict[str, Any]
    arrays: Arrays
    linker: bytes | None
    base: bytes | None


class CheckpointStore:
    """The checkpoints of one daemon, in its state folder."""

    def __init__(self, folder: Path, *, small_window: int = SMALL_WINDOW) -> None:
        self.folder = folder
        self.refused: list[str] = []  # why newer ones could not be used, after `load`
        self._small = small_window
        self._base_tick: int | None = None
        self._base_name = ""
        self._base_model = ""
        self._next = 1 + max((number for _, number, _ in self._files()), default=0)

    def since(self, tick: int, window: int, model: str) -> int | None:
        """From which arrival number on the next cut needs to say what is new; None: it shall be whole."""
        if window <= self._small or self._base_tick is None or self._base_model != model:
            return None
        return self._base_tick if tick - self._base_tick <= window // 2 else None

    def write(self, cut: Cut) -> Written:
        """Write a checkpoint and remove what it makes superfluous. InputError where the disk refuses."""
        facts, arrays, base_bytes = dict(cut.facts), dict(cut.arrays), 0
        if cut.before is not None:
            cut.before()
        if cut.linker is not None:
            window = sum(len(a) for name, a in cut.linker.arrays.items() if name.endswith(".window.label"))
            if cut.linker.since is None and window > self._small:
                base_bytes = self._write_base(cut.linker)
                # What changed since the base was made: nothing yet, but all that may change is there.
                facts["base"] = self._base_name
            else:
                arrays[_LINKER] = np.frombuffer(cut.linker.pack(), np.uint8)
                if cut.linker.since is not None:
                    facts["base"] = self._base_name
        path = self.folder / f"checkpoint-{self._next:012d}.netclust"
        size = self._write_file(path, container.parts(KIND, arrays, facts))
        self._next += 1
        self._remove_old()
        return Written(path, size, base_bytes)

    def _write_base(self, frozen: Frozen) -> int:
        name = f"base-{self._next:012d}.netclust"
        size = self._write_file(self.folder / name, frozen.parts())
        self._base_name, self._base_tick, self._base_model = name, frozen.tick, frozen.header["model"]
        return size

    def _write_file(self, path: Path, content: Iterable[bytes | memoryview]) -> int:
        digest = hashlib.sha256()

        def with_digest() -> Iterator[bytes | memoryview]:
            for part in content:
                digest.update(part)
                yield part
            yield digest.digest()

        container.write_container_parts(path, with_digest())
        os.chmod(path, 0o600)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # the name, too, is on the disk
        finally:
            os.close(descriptor)
        return path.stat().st_size

    def load(self, *, set_aside: bool = True) -> Loaded | None:
        """The newest checkpoint that is whole, or None; what was passed over is in `refused`, and set aside.

        Who only looks at a daemon's folder sets nothing aside.
        """
        self.refused = []
        for kind, _, path in sorted(self._files(), key=lambda f: -f[1]):
            if kind != "checkpoint":
                continue
            try:
                return self._read(path)
            except InputError as error:
                self.refused.append(str(error))
                if set_aside:
                    path.rename(path.with_suffix(".corrupt"))
        return None

    def _read(self, path: Path) -> Loaded:
        arrays, facts = container.unpack_container(_verified(path), KIND, str(path))
        base: bytes | None = None
        if name := facts.get("base"):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ModelError(f"{path}: names a base that cannot be")
            base = _verified(self.folder / name)
        linker = arrays.pop(_LINKER).tobytes() if _LINKER in arrays else None
        if linker is None and base is not None:
            linker, base = base, None
        return Loaded(path, facts, arrays, linker, base)

    def _files(self) -> list[tuple[str, int, Path]]:
        try:
            entries = list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        found = ((_NAME.fullmatch(entry.name), entry) for entry in entries)
        return [(match[1], int(match[2]), entry) for match, entry in found if match]

    def _remove_old(self) -> None:
        files = sorted(self._files(), key=lambda f: -f[1])
        kept = [path for kind, _, path in files if kind == "checkpoint"][:KEPT]
        oldest = min((number for kind, number, path in files if path in kept), default=0)
        bases = [(number, path) for kind, number, path in files if kind == "base"]
        # A base has the number of the checkpoint that was written with it, so that of an older one is not above it.
        newest_of_oldest = max((number for number, _ in bases if number <= oldest), default=-1)
        needed = {path for number, path in bases if number > oldest or number == newest_of_oldest}
        for kind, _, path in files:
            if (kind == "checkpoint" and path not in kept) or (kind == "base" and path not in needed):
                path.unlink(missing_ok=True)
        for stale in sorted(self.folder.glob("*.corrupt"))[:-KEPT]:
            stale.unlink(missing_ok=True)


def _verified(path: Path) -> bytes:
    """The content of a file, if its checksum says that it is whole."""
    data = container.read_container_bytes(path)
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if len(data) <= _DIGEST_BYTES or hashlib.sha256(content).digest() != digest:
        raise ModelError(f"{path}: torn or corrupt, its checksum does not fit")
    return content
