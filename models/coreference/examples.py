"""Documents as examples to learn from or to measure on: mentions, their pair features, and the truth about them.

Mentions are the document's own (`gold`), or found in its text (`auto`): then a found mention that is no true one is
spurious, and true ones that were not found still count in every measure.

>>> from netclust.models.coreference.formats.documents import Mention
>>> words = tuple("Ann saw the dog . She liked it .".split())
>>> mentions = (Mention(0, 1, 7), Mention(2, 4, 8), Mention(5, 6, 7), Mention(7, 8, 8))
>>> (example,) = prepare_examples([Document("story", words, (0, 5, 9), mentions=mentions)], FeatureSettings())
>>> example.truth.labels.tolist(), example.pairs.items
([0, 1, 0, 1], 4)
>>> measure_examples([example], [np.array([0, 1, 0, 2])], ["muc"])["muc"]
PrecisionRecall(precision=1.0, recall=0.5, f1=0.6666666666666666)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.losses.learned_loss import Truth
from netclust.metrics.clustering_metrics import PrecisionRecall
from netclust.models.coreference.coreference_metrics import METRICS, score_documents
from netclust.models.coreference.extraction import extract_all
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.structures.hashed_pairs import HashedPairs

__all__ = ["Example", "MentionSource", "measure_examples", "prepare_examples", "with_entities"]

MentionSource = Literal["gold", "auto"]


@dataclass(frozen=True, eq=False)
class Example:
    """A document with the mentions that are clustered, their pair features, and the entities that there really are."""

    document: Document
    pairs: HashedPairs
    truth: Truth
    key: Sequence[frozenset[Span]]


def prepare_examples(
    documents: Sequence[Document],
    settings: FeatureSettings,
    find: Callable[[Document], Sequence[Span]] | None = None,
    *,
    jobs: int = 1,
    cache: Path | None = None,
) -> list[Example]:
    """Make examples of documents; `find` gives the mentions to use instead of the documents' own."""
    given = documents
    if find is not None:
        given = [document.with_mentions(Mention(*span) for span in find(document)) for document in documents]
    pairs = extract_all(given, settings, jobs=jobs, cache=cache)
    return [
        Example(used, own, _truth(used, document), document.clusters())
        for document, used, own in zip(documents, given, pairs, strict=True)
    ]


def measure_examples(
    examples: Sequence[Example], found: Iterable[NDArray[Any]], metrics: Iterable[str] = METRICS
) -> dict[str, PrecisionRecall]:
    """Compute every measure of the examples' clusters, summed over documents as the official scorer does."""
    responses = [
        with_entities(example.document, labels).clusters() for example, labels in zip(examples, found, strict=True)
    ]
    return score_documents([example.key for example in examples], responses, metrics)


def with_entities(document: Document, labels: NDArray[Any]) -> Document:
    """The document with its mentions in these clusters."""
    return document.with_mentions(
        Mention(mention.start, mention.end, int(label))
        for mention, label in zip(document.mentions, labels, strict=True)
    )


def _truth(used: Document, key: Document) -> Truth:
    """Which true entity every used mention is of."""
    number = {entity: k for k, entity in enumerate(key.entities())}
    of_span = {mention.span: number[mention.entity] for mention in key.mentions if mention.entity >= 0}
    keys = np.array([of_span.get(mention.span, -1) for mention in used.mentions], np.int64)
    sizes = np.zeros(len(number), np.int64)
    for mention in key.mentions:
        if mention.entity >= 0:
            sizes[number[mention.entity]] += 1
    return Truth(keys, sizes)
