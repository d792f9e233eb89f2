"""From documents to a model: mentions, features, the number of epochs, weights.

>>> from netclust.models.coreference.story_simulator import simulate_documents
>>> stories = simulate_documents(8, seed=1)
>>> model, report = train_coreference(stories[:6], CoreferenceSettings(epochs=5), dev=stories[6:])
>>> report.documents, report.epochs <= 5, len(report.curve)
(6, True, 5)
>>> resolved = model.predict(stories[6:])
>>> len(resolved[0].entities()) > 1
True

Perceptrons have no stopping rule: the number of epochs is chosen on documents that are not learned from. Where none are
given, every tenth is held out for that, and then all are learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.foundation.model_file import Provenance
from netclust.models.coreference.examples import Example, prepare_examples
from netclust.models.coreference.features import void_templates
from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.learning import BestEpoch, LearnedCoreference, learn_coreference, with_slots
from netclust.models.coreference.mentions.detection import columns_used
from netclust.models.coreference.mentions.mention_filter import MentionFilter
from netclust.models.coreference.model import CoreferenceModel
from netclust.models.coreference.pair_classifier import SparsePairClassifier, strongest_slots
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.structures.pairs import Indices, Vector

__all__ = ["TrainingReport", "choose_slots", "train_coreference"]

HELD_OUT = 10
"""Every tenth document is held out where none are given to choose the epochs on."""

LEAST_TO_HOLD_OUT = 5


class TrainingReport(msgspec.Struct, frozen=True, kw_only=True):
    """How training went. `curve` is MELA in percent on the documents that the epochs were chosen on, after each."""

    documents: int
    mentions: int
    pairs: int
    found_by: str
    void: tuple[str, ...]
    epochs: int
    curve: tuple[float, ...]
    held_out: bool
    updates: int
    converged: bool
    gap: float | None


def train_coreference(
    documents: Sequence[Document],
    settings: CoreferenceSettings | None = None,
    *,
    dev: Sequence[Document] = (),
    jobs: int = 1,
    cache: Path | None = None,
    provenance: Provenance | None = None,
    on_epoch: Callable[[int, float | None], None] | None = None,
) -> tuple[CoreferenceModel, TrainingReport]:
    """Train on documents whose mentions have entities; `on_epoch` hears the number of the epoch and MELA on `dev`."""
    settings = settings or CoreferenceSettings()
    if not any(document.entities() for document in documents):
        raise InputError("there are no entities to learn from: training documents need mentions with their entities")
    if dev and not any(document.entities() for document in dev):
        raise InputError("there are no entities to choose the epochs by: development documents need them too")
    mention_filter = _learned_filter(documents, settings)
    find = find_dev = None
    if settings.mentions == "auto" and mention_filter is not None:
        find, find_dev = _crossed(documents, settings), mention_filter.find
    examples = prepare_examples(documents, settings.features, find, jobs=jobs, cache=cache)
    chosen_on = prepare_examples(dev, settings.features, find_dev, jobs=jobs, cache=cache)
    held = [] if dev or settings.learner == "lssvm" else _held_out(examples)  # the SVM has a stopping rule
    curve: tuple[float, ...] = ()
    epochs = settings.epochs
    if held:
        _, curve = _fit(settings, [example for example in examples if example not in held], held, on_epoch)
        epochs = curve.index(max(curve)) + 1
    final = msgspec.structs.replace(settings, epochs=epochs)
    learned, own = _fit(final, examples, chosen_on, None if held else on_epoch)
    if own:
        curve, epochs = own, own.index(max(own)) + 1
    model = CoreferenceModel(settings, learned.w, mention_filter, provenance or Provenance())
    return model, TrainingReport(
        documents=len(documents),
        mentions=sum(example.pairs.items for example in examples),
        pairs=sum(len(example.pairs.at) - 1 for example in examples),
        found_by="given" if settings.mentions == "gold" else columns_used(documents[0]),
        void=void_templates(documents),
        epochs=epochs if settings.learner != "lssvm" else 0,
        curve=curve,
        held_out=bool(held),
        updates=learned.updates,
        converged=learned.converged,
        gap=learned.gap,
    )


def choose_slots(examples: Sequence[Example], count: int) -> Indices:
    """The features that a classifier of pairs gives the largest weights."""
    fit = SparsePairClassifier(C=0.01, epochs=5).fit([(e.pairs, e.truth.labels) for e in examples])
    return strongest_slots(fit.w, count)


def _fit(
    settings: CoreferenceSettings,
    train: Sequence[Example],
    dev: Sequence[Example],
    on_epoch: Callable[[int, float | None], None] | None,
) -> tuple[LearnedCoreference, tuple[float, ...]]:
    """Weights for all slots, those of the best epoch where there are documents to choose it on, and the curve."""
    slots = choose_slots(train, settings.strongest) if settings.strongest is not None else None
    if slots is not None:
        train, dev = with_slots(train, slots), with_slots(dev, slots)
    best = BestEpoch(settings, dev)

    def look(epoch: int, w: Vector) -> None:
        if dev:
            best(epoch, w)
        if on_epoch is not None:
            on_epoch(epoch, best.curve[-1] if dev else None)

    learned = learn_coreference(settings, train, look)
    chosen = learned.w if best.w is None else best.w
    w = np.zeros(settings.features.dimension)
    w[slots if slots is not None else slice(None)] = chosen
    return replace(learned, w=w), tuple(best.curve)


def _learned_filter(documents: Sequence[Document], settings: CoreferenceSettings) -> MentionFilter | None:
    """None: what is annotated is nothing that a filter could choose, but given mentions can still be clustered."""
    try:
        return MentionFilter(seed=settings.seed).fit(documents)
    except InputError:
        if settings.mentions == "auto":
            raise
        return None


def _crossed(documents: Sequence[Document], settings: CoreferenceSettings) -> Callable[[Document], Sequence[Span]]:
    """What finds the mentions of training documents: a filter that has not seen them, or it would be too good."""
    if len(documents) < 2:
        raise InputError("mentions that are to be found need at least two documents: give --mentions gold, or more")
    halves = [documents[0::2], documents[1::2]]
    filters = [MentionFilter(seed=settings.seed).fit(half) for half in reversed(halves)]
    of = {id(document): filters[k] for k, half in enumerate(halves) for document in half}
    return lambda document: of[id(document)].find(document)


def _held_out(examples: Sequence[Example]) -> list[Example]:
    """Of the documents that have mentions and entities, every tenth: others tell no epoch from another."""
    telling = [example for example in examples if example.pairs.items and example.key]
    return telling[::HELD_OUT] if len(telling) >= LEAST_TO_HOLD_OUT else []
