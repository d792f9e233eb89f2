"""The loader of the models that come with netclust.

>>> shipped_models()
('conn', 'flow', 'kdd')
>>> model = load_shipped("flow")
>>> model.encoding.schema.name, model.calibration.false_alarm_rate
('flow', 0.001)
"""

from __future__ import annotations

from importlib import resources

from netclust.errors import InputError
from netclust.scoring.model import Model

__all__ = ["load_shipped", "shipped_models"]

_NAMES = ("conn", "flow", "kdd")


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with netclust."""
    return _NAMES


def load_shipped(name: str) -> Model:
    """Load a model that comes with netclust by its name."""
    if name not in _NAMES:
        raise InputError(f"no model called {name!r} comes with netclust, there are {', '.join(_NAMES)}")
    file = resources.files("netclust").joinpath(f"shipped/{name}.safetensors")
    try:
        return Model.from_bytes(file.read_bytes(), f"{name} (shipped)")
    except OSError as error:
        raise InputError(
            f"the shipped model {name} cannot be read ({error.strerror}): install netclust again"
        ) from None
