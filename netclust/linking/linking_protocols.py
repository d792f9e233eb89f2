"""The protocols by which a stream is linked: `thesis`, as in the published tables, and `stream`, as in operation."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from netclust.linking.linker_config import Feedback, LinkerConfig
from netclust.records.table import TableReader
from netclust.scoring.model import Model

__all__ = ["Protocol", "linker_config", "stream_facts"]

Protocol = Literal["thesis", "stream"]


def linker_config(
    protocol: Protocol,
    feedback: Feedback,
    delay: int,
    referent_window: int,
    mature_after: float | None = None,
    *,
    whole: bool = True,
) -> LinkerConfig:
    """Return the linker's configuration for a protocol; `whole` counts for `thesis` alone.

    >>> linker_config("thesis", "gold", 100, 100).gap
    100
    """
    if protocol == "thesis":
        config = LinkerConfig.thesis(referent_window=referent_window, delay=delay, feedback=feedback, whole=whole)
    else:
        config = LinkerConfig.stream(referent_window=referent_window, delay=delay, feedback=feedback)
    return msgspec.structs.replace(config, mature_after=mature_after)


def stream_facts(
    model: Model,
    protocol: Protocol,
    feedback: Feedback,
    delay: int,
    window: int,
    partial: bool,
    mature: float | None,
    reader: TableReader,
) -> dict[str, Any]:
    """Return how a stream was run, for its result."""
    return {
        "model": model.fingerprint,
        "protocol": protocol,
        "feedback": feedback,
        "delay": delay,
        "window": window,
        "partial": partial,
        "mature": mature,
        "skipped": dict(reader.skipped),
    }
