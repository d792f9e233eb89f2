"""Checkpoints of training: one safetensors file, written in one step, so that a run can be stopped and gone on with.

A checkpoint names the settings it belongs to. With other settings, other examples or another number of features it is
refused: going on from it would give neither the one result nor the other.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> file = Checkpoint(Path(folder.name) / "run.safetensors", every=10, settings={"learner": "OneSlack", "C": 1.0})
>>> file.save({"w": np.arange(2.0)}, {"iteration": 3})
>>> arrays, header = file.load()
>>> arrays["w"].tolist(), header
([0.0, 1.0], {'iteration': 3})
>>> Checkpoint(file.path, 10, {"learner": "OneSlack", "C": 2.0}).load()
Traceback (most recent call last):
    ...
netclust.errors.InputError: ... (C is 1.0 there and 2.0 here): name another file, or remove it
>>> folder.cleanup()
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netclust.errors import InputError, ModelError
from netclust.foundation.container import (
    Arrays,
    pack_container,
    read_container_bytes,
    require_array,
    unpack_container,
    write_container_bytes,
)

__all__ = ["Checkpoint"]

KIND = "netclust.training"


@dataclass(frozen=True)
class Checkpoint:
    """Where the state of a run is kept, after how many iterations it is written, and the settings it belongs to."""

    path: Path
    every: int
    settings: dict[str, Any]

    def save(self, arrays: Arrays, header: dict[str, Any]) -> None:
        """Replace the file by this state."""
        write_container_bytes(self.path, pack_container(KIND, arrays, {"settings": self.settings, "state": header}))

    def load(self) -> tuple[Arrays, dict[str, Any]] | None:
        """The state to go on from; none if there is no file."""
        if not self.path.exists():
            return None
        arrays, header = unpack_container(read_container_bytes(self.path), KIND, str(self.path))
        theirs, state = header.get("settings"), header.get("state")
        if not isinstance(theirs, dict) or not isinstance(state, dict):
            raise ModelError(f"{self.path}: corrupt (no settings)")
        names = [*self.settings, *(name for name in theirs if name not in self.settings)]
        other = [
            f"{name} is {theirs.get(name)} there and {self.settings.get(name)} here"
            for name in names
            if theirs.get(name) != self.settings.get(name)
        ]
        if other:
            raise InputError(
                f"{self.path}: checkpoint of another training ({', '.join(other)}): name another file, or remove it"
            )
        return arrays, state

    def check_gold(self, arrays: Arrays, gold: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        """Refuse a checkpoint whose examples have other gold features than ours."""
        theirs = require_array(arrays, "gold", np.float64, gold.shape, str(self.path))
        if not np.allclose(theirs, gold, rtol=1e-9, atol=1e-12):
            raise InputError(
                f"{self.path}: checkpoint of a training on other examples: name another file, or remove it"
            )
