"""The file of a model of a structured task: its name, settings, encoder and weights. Safetensors like every model file.

Which tasks there are: `TASKS`, by name, each the `TASK` of a module that is loaded when it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust import container
from netclust.errors import InputError, ModelError
from netclust.model import MAX_WEIGHT, Provenance
from netclust.models.structured_task import StructuredTask, SvmSettings

__all__ = ["KIND", "TASKS", "StructuredModel", "task_named"]

KIND = "netclust.structured"
TASKS: Mapping[str, str] = {
    "attractive": "netclust.models.attractive_task",
    "chains": "netclust.models.chains_task",
    "grammar": "netclust.models.grammar_task",
    "matching": "netclust.models.matching_task",
    "multilabel": "netclust.models.multilabel_task",
}


def task_named(name: str) -> StructuredTask:
    """A task by its name."""
    if name not in TASKS:
        raise InputError(f"there is no task {name!r}: one of {', '.join(TASKS)}")
    task: StructuredTask = importlib.import_module(TASKS[name]).TASK
    return task


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of the file."""

    task: str
    settings: dict[str, Any]
    encoder: dict[str, Any]
    provenance: Provenance


@dataclass(frozen=True, eq=False)
class StructuredModel:
    """What predicts outputs of new examples."""

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

    def to_bytes(self) -> bytes:
        """The file's content."""
        header = _Header(
            task=self.task.name,
            settings=msgspec.to_builtins(self.settings),
            encoder=msgspec.to_builtins(self.encoder),
            provenance=self.provenance,
        )
        return container.pack(KIND, {"weights": self.w}, header)

    def save(self, path: str | Path) -> None:
        """Write the model file in one step."""
        container.write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, task: str | None = None) -> StructuredModel:
        """Read a model file, of a certain task if one is named; anything that does not fit is refused."""
        return cls.from_bytes(container.read_bytes(path), str(path), task)

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "model", task: str | None = None) -> StructuredModel:
        """A model from a file's content. Never trusts a length, never runs anything."""
        arrays, raw = container.unpack(data, KIND, where)
        try:
            header = msgspec.convert(raw, _Header)
            if header.task not in TASKS:
                raise ModelError(f"{where}: is a model of {header.task!r}, a task that this netclust does not have")
            if task not in (None, header.task):
                raise ModelError(f"{where}: is a model of {header.task}, not of {task}")
            known = task_named(header.task)
            settings: SvmSettings = msgspec.convert(header.settings, known.settings)
            encoder = msgspec.convert(header.encoder, known.encoder)
        except (msgspec.ValidationError, InputError) as error:
            raise ModelError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None
        w = container.require_array(arrays, "weights", np.float64, (known.problem(encoder, settings).dimension,), where)
        if np.abs(w).max(initial=0) > MAX_WEIGHT:
            raise ModelError(f"{where}: a weight is too large to be scored")
        if unknown := sorted(set(arrays) - {"weights"}):
            raise ModelError(f"{where}: holds arrays that a model does not have: {', '.join(unknown[:3])}")
        return cls(task=known, settings=settings, encoder=encoder, w=w, provenance=header.provenance)
