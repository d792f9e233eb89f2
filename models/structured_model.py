"""The file of a model of a structured task: its name, settings, encoder and weights. Safetensors like every model file.

A task can be loaded from a file once it is known: `know_task` names it. Modules of tasks do so for their own,
`netclust.structured_models` for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.foundation.model_file import (
    ModelFile,
    Provenance,
    check_known,
    errors_of_model,
    read_header,
    read_weights,
)
from netclust.models.structured_task import StructuredTask, SvmSettings

__all__ = ["KIND", "NAMES", "StructuredModel", "know_task", "task_named"]

KIND = "netclust.structured"
NAMES = ("attractive", "chains", "grammar", "matching", "multilabel")

_KNOWN: dict[str, Callable[[], StructuredTask]] = {}


def know_task(name: str, task: Callable[[], StructuredTask]) -> None:
    """Make a task known by its name; `task` is called when a model of it is loaded."""
    _KNOWN[name] = task


def task_named(name: str) -> StructuredTask:
    """Return a task by its name."""
    if name not in NAMES:
        raise InputError(f"there is no task {name!r}: one of {', '.join(NAMES)}")
    if name not in _KNOWN:
        raise InputError(f"the task {name} is not loaded: import netclust.structured_models")
    return _KNOWN[name]()


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of the file."""

    task: str
    settings: dict[str, Any]
    encoder: dict[str, Any]
    provenance: Provenance


@dataclass(frozen=True, eq=False)
class StructuredModel(ModelFile):
    """What predicts outputs of new examples."""

    kind = KIND

    task: StructuredTask
    settings: Any
    encoder: Any
    w: NDArray[np.float64]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def names(self) -> tuple[str, ...]:
        """What the weights are of."""
        return tuple(self.task.weight_names(self.encoder, self.settings))

    def predict(self, raw: Any) -> list[Any]:
        """The output of every raw example."""
        problem = self.task.problem(self.encoder, self.settings)
        return [problem.predict(x, self.w) for x, _ in self.task.encode(self.encoder, raw)]

    def evaluate(self, raw: Any) -> dict[str, float]:
        """Measures on raw examples whose gold outputs are known."""
        problem = self.task.problem(self.encoder, self.settings)
        pairs = [(y, problem.predict(x, self.w)) for x, y in self.task.encode(self.encoder, raw)]
        if not pairs or any(y is None for y, _ in pairs):
            raise InputError("to measure, every example needs its gold output")
        return dict(self.task.measure(pairs))

    def _content(self) -> tuple[Arrays, msgspec.Struct]:
        header = _Header(
            task=self.task.name,
            settings=msgspec.to_builtins(self.settings),
            encoder=msgspec.to_builtins(self.encoder),
            provenance=self.provenance,
        )
        return {"weights": self.w}, header

    @classmethod
    def load(cls, path: str | Path, task: str | None = None) -> Self:
        """Read a model file, of a certain task if one is named; anything that does not fit is refused."""
        return cls.from_bytes(container.read_container_bytes(path), str(path), task)

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "model", task: str | None = None) -> Self:
        """Make a model of a file's content, of a certain task if one is named."""
        arrays, raw = container.unpack_container(data, KIND, where)
        found = read_header(raw, _Header, where).task
        if task not in (None, found) and found in NAMES:
            raise ModelError(f"{where}: is a model of {found}, not of {task}")
        return cls._from_content(arrays, raw, where)

    @classmethod
    def _from_content(cls, arrays: Arrays, raw: dict[str, Any], where: str) -> Self:
        header = read_header(raw, _Header, where)
        if header.task not in NAMES:
            raise ModelError(f"{where}: is a model of {header.task!r}, a task that this netclust does not have")
        with errors_of_model(where):
            known = task_named(header.task)
            settings: SvmSettings = msgspec.convert(header.settings, known.settings)
            encoder = msgspec.convert(header.encoder, known.encoder)
        w = read_weights(arrays, (known.problem(encoder, settings).dimension,), where)
        check_known(arrays, ("weights",), where)
        return cls(task=known, settings=settings, encoder=encoder, w=w, provenance=header.provenance)
