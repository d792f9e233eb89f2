"""The file of a coreference model: settings, the weights of the slots that have one, and what finds mentions.

>>> from netclust.models.coreference.features import FeatureSettings
>>> settings = CoreferenceSettings(features=FeatureSettings(bits=18))
>>> w = np.zeros(1 << 18)
>>> w[5] = -1.5
>>> model = CoreferenceModel(settings=settings, w=w)
>>> again = CoreferenceModel.from_bytes(model.to_bytes())
>>> again.settings == settings, float(again.w[5]), len(model.to_bytes()) < 5000
(True, -1.5, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
import numpy as np

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.foundation.model_file import (
    ModelFile,
    Provenance,
    check_known,
    check_weights,
    errors_of_model,
    read_header,
)
from netclust.models.coreference.examples import MentionSource, prepare_examples, with_entities
from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.models.coreference.learning import resolve_mentions
from netclust.models.coreference.mentions.detection import find_mentions
from netclust.models.coreference.mentions.mention_filter import MentionFilter
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.structures.pairs import Vector

__all__ = ["KIND", "CoreferenceModel"]

KIND = "netclust.coreference"


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of the file."""

    settings: CoreferenceSettings
    provenance: Provenance


@dataclass(frozen=True, eq=False)
class CoreferenceModel(ModelFile):
    """What finds the entities of new documents. `mention_filter` says which of the phrases found are mentions."""

    kind = KIND

    settings: CoreferenceSettings
    w: Vector
    mention_filter: MentionFilter | None = None
    provenance: Provenance = field(default_factory=Provenance)

    def predict(
        self, documents: Sequence[Document], *, mentions: MentionSource | None = None, jobs: int = 1
    ) -> list[Document]:
        """The documents with their entities: of their own mentions (`gold`), or of those found in the text (`auto`).

        None is what the model was trained on, but documents without mentions have theirs found.
        """
        if isinstance(documents, str | Document) or not all(isinstance(one, Document) for one in documents):
            raise InputError("give a list of documents: read_documents reads files, plain_document takes a text")
        if mentions == "gold" and (bare := next((one for one in documents if not one.mentions), None)):
            raise InputError(f"{bare.name}: has no mentions of its own: let them be found ('auto')")
        given = [document if self.uses_mentions(document, mentions) else self.found(document) for document in documents]
        examples = prepare_examples(given, self.settings.features, jobs=jobs)
        return [
            with_entities(example.document, resolve_mentions(self.settings, example.pairs, self.w))
            for example in examples
        ]

    def uses_mentions(self, document: Document, mentions: MentionSource | None = None) -> bool:
        """Whether `predict` takes a document's own mentions."""
        return bool(document.mentions) and (mentions or self.settings.mentions) == "gold"

    def find(self, document: Document) -> list[Span]:
        """The mentions of a text, those that the model's training documents would count as such."""
        return self.mention_filter.find(document) if self.mention_filter is not None else find_mentions(document)[0]

    def found(self, document: Document) -> Document:
        """The document with the mentions that are found in it."""
        return document.with_mentions(Mention(*span) for span in self.find(document))

    def _content(self) -> tuple[Arrays, msgspec.Struct]:
        slots = np.flatnonzero(self.w)
        arrays: Arrays = {"slots": slots.astype(np.uint32), "weights": self.w[slots]}
        if self.mention_filter is not None:
            arrays |= {f"filter.{name}": array for name, array in self.mention_filter.arrays().items()}
        return arrays, _Header(settings=self.settings, provenance=self.provenance)

    @classmethod
    def _from_content(cls, arrays: Arrays, raw: dict[str, Any], where: str) -> Self:
        header = read_header(raw, _Header, where)
        slots = container.require_array(arrays, "slots", np.uint32, (None,), where).astype(np.int64)
        weights = container.require_array(arrays, "weights", np.float64, (len(slots),), where)
        dimension = header.settings.features.dimension
        if len(slots) and (slots[-1] >= dimension or (np.diff(slots) <= 0).any()):
            raise ModelError(f"{where}: slots must rise and be below {dimension}")
        check_weights(weights, where)
        own = {name.removeprefix("filter."): array for name, array in arrays.items() if name.startswith("filter.")}
        check_known(arrays, ("slots", "weights", *(f"filter.{name}" for name in own)), where)
        with errors_of_model(where):
            mention_filter = MentionFilter.from_arrays(own) if own else None
        w = np.zeros(dimension)
        w[slots] = weights
        return cls(
            settings=header.settings,
            w=w,
            mention_filter=mention_filter,
            provenance=header.provenance,
        )
