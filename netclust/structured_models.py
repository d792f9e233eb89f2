"""The front door to models of structured tasks: `StructuredModel.load` knows every task once this is imported."""

from __future__ import annotations

from netclust.models.structured_model import StructuredModel, know_task
from netclust.models.structured_task import StructuredTask

__all__ = ["StructuredModel"]


def _attractive() -> StructuredTask:
    from netclust.models.attractive.task import TASK

    return TASK


def _chains() -> StructuredTask:
    from netclust.models.chains.task import TASK

    return TASK


def _grammar() -> StructuredTask:
    from netclust.models.parsing.task import TASK

    return TASK


def _matching() -> StructuredTask:
    from netclust.models.matching.task import TASK

    return TASK


def _multilabel() -> StructuredTask:
    from netclust.models.multilabel.task import TASK

    return TASK


know_task("attractive", _attractive)
know_task("chains", _chains)
know_task("grammar", _grammar)
know_task("matching", _matching)
know_task("multilabel", _multilabel)
