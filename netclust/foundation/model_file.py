"""Model files: what the files of all models have in common. Each is one safetensors file with a JSON header.

>>> class Note(msgspec.Struct):
...     text: str
>>> class Example(ModelFile):
...     kind = "netclust.example"
...
...     def __init__(self, w):
...         self.w = w
...
...     def _content(self):
...         return {"weights": self.w}, Note("hello")
...
...     @classmethod
...     def _from_content(cls, arrays, raw, where):
...         read_header(raw, Note, where)
...         return cls(read_weights(arrays, (None,), where))
>>> Example.from_bytes(Example(np.arange(3.0)).to_bytes()).w.tolist()
[0.0, 1.0, 2.0]
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust._version import __version__
from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays

__all__ = [
    "MAX_WEIGHT",
    "ModelFile",
    "Provenance",
    "check_known",
    "check_weights",
    "errors_of_model",
    "read_header",
    "read_weights",
]

MAX_WEIGHT = 1e20
"""Larger weights are refused: sums of them would leave the range of float32."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model comes from."""

    netclust: str = ""
    created: str = ""
    seed: int = 0
    data: str = ""
    sha256: str = ""
    records: int = 0
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    epochs: list[dict[str, Any]] = msgspec.field(default_factory=list)

    @classmethod
    def now(cls, **facts: Any) -> Self:
        """Return the provenance of a model that is trained now; `facts` are the other fields."""
        return cls(netclust=__version__, created=_now(), **facts)


class ModelFile(ABC):
    """A model that is kept in one file. A subclass says what the file holds, and makes a model of that again."""

    kind: ClassVar[str]

    @abstractmethod
    def _content(self) -> tuple[Arrays, msgspec.Struct]:
        """Return the arrays and the header."""

    @classmethod
    @abstractmethod
    def _from_content(cls, arrays: Arrays, raw: dict[str, Any], where: str) -> Self:
        """Make a model of arrays and a header; raise a `ModelError` for anything that does not fit."""

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        return container.pack_container(self.kind, *self._content())

    def save(self, path: str | Path) -> None:
        """Write the model file in one step."""
        container.write_container_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file; anything that does not fit is refused."""
        return cls.from_bytes(container.read_container_bytes(path), str(path))

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "model") -> Self:
        """Make a model of a file's content. Lengths are never trusted, and nothing is run."""
        return cls._from_content(*container.unpack_container(data, cls.kind, where), where)


@contextmanager
def errors_of_model(where: str) -> Iterator[None]:
    """Raise what is wrong with a part of a file as a `ModelError` that names the file once."""
    try:
        yield
    except (msgspec.ValidationError, InputError) as error:
        raise ModelError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None


Header = TypeVar("Header", bound=msgspec.Struct)


def read_header(raw: dict[str, Any], header: type[Header], where: str) -> Header:
    """Return the JSON part of a file, checked."""
    with errors_of_model(where):
        return msgspec.convert(raw, header)


def read_weights(arrays: Arrays, shape: tuple[int | None, ...], where: str) -> NDArray[np.float64]:
    """Return the array `weights`, checked."""
    w = container.require_array(arrays, "weights", np.float64, shape, where)
    check_weights(w, where)
    return w


def check_weights(w: NDArray[np.float64], where: str) -> None:
    """Refuse weights that are too large."""
    if np.abs(w).max(initial=0) > MAX_WEIGHT:
        raise ModelError(f"{where}: a weight is too large to be scored")


def check_known(arrays: Arrays, known: Iterable[str], where: str) -> None:
    """Refuse arrays that a model of this kind does not have."""
    if unknown := sorted(set(arrays) - set(known)):
        raise ModelError(f"{where}: holds arrays that a model does not have: {', '.join(unknown[:3])}")


def _now() -> str:
    """The time of creation, or the one that reproducible builds are told to use."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or str(int(time.time()))
    try:
        return datetime.fromtimestamp(int(epoch), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise InputError(f"SOURCE_DATE_EPOCH is a number of seconds, not {epoch!r}") from None
