"""A filter that learns from annotated documents what a corpus counts as a mention.

Corpora differ: some annotate every noun phrase, some only persons and places. The filter is a logistic regression over
hashed features of a span, trained by AdaGrad in small batches, with one threshold, chosen for the best F1 on every
fifth document, which that choice does not train on. Of several spans with one head the best is kept, and none that
crosses a better one. Two names that are joined ("Tom and Anna") have no head but their own.

>>> from netclust.models.coreference.formats.documents import Document, Mention
>>> words = tuple("Ann saw the house . She left .".split())
>>> text = Document("d", words, (0, 5, 8), mentions=(Mention(0, 1, 0), Mention(5, 6, 0)))
>>> [text.text(span) for span in MentionFilter().fit([text] * 5).find(text)]
['Ann', 'She']

Reference: J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic
optimization", JMLR 12, 2011.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.mentions.describing import describe_mentions
from netclust.models.coreference.mentions.detection import detect_candidates
from netclust.models.coreference.mentions.lexicon.facts import MentionFacts
from netclust.models.coreference.mentions.span_features import span_slots

__all__ = ["MentionFilter"]

_BATCH = 32


@dataclass
class MentionFilter:
    """Learns from the mentions of documents; `rate` and `epochs` are those of the regression."""

    bits: int = 18
    epochs: int = 6
    rate: float = 0.05
    seed: int = 0
    threshold: float = 0.0
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    def fit(self, documents: Iterable[Document]) -> MentionFilter:
        """Learn from the mentions of these documents, and return itself."""
        examples = [_Example.of(document, self.bits) for document in documents]
        if not any(example.wanted.any() for example in examples):
            raise InputError("no mention to learn from: a filter of mentions needs documents with annotated mentions")
        held = examples[::5] if len(examples) >= 5 else examples
        rest = [example for number, example in enumerate(examples) if number % 5] if len(examples) >= 5 else examples
        if not any(example.wanted.any() for example in rest):
            held = rest = examples
        self.weights = self._learn(rest)
        self.threshold = self._best_threshold(held)
        if len(rest) < len(examples):
            self.weights = self._learn(examples)
        return self

    def find(self, document: Document) -> list[Span]:
        """The mentions of a document: its candidates, filtered."""
        spans = detect_candidates(document)
        return self.keep(document, spans, describe_mentions(document, spans))

    def keep(self, document: Document, spans: Sequence[Span], facts: Sequence[MentionFacts]) -> list[Span]:
        """Those of the spans that are taken for mentions, in the order of the text."""
        scores = self.scores(document, spans, facts)
        kept = _choose_spans(spans, _heads(document, facts), scores, self.threshold)
        return sorted((spans[k] for k in kept), key=lambda span: (span.start, -span.end))

    def scores(self, document: Document, spans: Sequence[Span], facts: Sequence[MentionFacts]) -> NDArray[np.float64]:
        """How much each span looks like a mention: log odds."""
        if not self.weights.size:
            raise InputError("the filter of mentions has learned nothing yet: fit it first")
        return self._score(span_slots(document, spans, facts, self.bits))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has been learned, for a container."""
        return {"weights": self.weights, "threshold": np.array([self.threshold])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> MentionFilter:
        """The filter that `arrays` came from."""
        weights, threshold = arrays.get("weights"), arrays.get("threshold")
        size = 0 if weights is None else weights.size
        if len(arrays) != 2 or weights is None or threshold is None or size < 2 or size & (size - 1):
            raise InputError("not a filter of mentions: its arrays are 'weights', 2^bits of them, and one 'threshold'")
        if weights.dtype != np.float32 or threshold.dtype != np.float64 or (weights.ndim, threshold.shape) != (1, (1,)):
            raise InputError("not a filter of mentions: its arrays have other types or shapes")
        if not (np.isfinite(weights).all() and np.isfinite(threshold).all()):
            raise InputError("not a filter of mentions: its weights are not finite")
        return cls(bits=int(size).bit_length() - 1, threshold=float(threshold[0]), weights=weights)

    def _score(self, slots: NDArray[np.int32]) -> NDArray[np.float64]:
        total: NDArray[np.float64] = self.weights[slots].sum(axis=1, dtype=np.float64)
        return total

    def _learn(self, examples: Sequence[_Example]) -> NDArray[np.float32]:
        slots = np.concatenate([example.slots for example in examples])
        wanted = np.concatenate([example.wanted for example in examples]).astype(np.float64)
        weights = np.zeros(1 << self.bits, np.float64)
        squares = np.full(1 << self.bits, 1e-6)
        rng = np.random.default_rng(self.seed)
        for _ in range(self.epochs):
            order = rng.permutation(len(slots))
            for first in range(0, len(order), _BATCH):
                rows = order[first : first + _BATCH]
                here = slots[rows]
                error = _sigmoid(weights[here].sum(axis=1)) - wanted[rows]
                touched, inverse = np.unique(here, return_inverse=True)
                slope = np.bincount(inverse.ravel(), np.repeat(error, here.shape[1]), len(touched))
                squares[touched] += slope * slope
                weights[touched] -= self.rate * slope / np.sqrt(squares[touched])
        return weights.astype(np.float32)

    def _best_threshold(self, examples: Sequence[_Example]) -> float:
        """The threshold with the best F1 over the examples. Spans are settled once: a lower threshold only adds."""
        scored: list[tuple[float, bool]] = []
        gold = sum(example.gold for example in examples)
        for example in examples:
            scores = self._score(example.slots)
            kept = _choose_spans(example.spans, example.heads, scores, -np.inf)
            scored += [(float(scores[k]), bool(example.wanted[k])) for k in kept]
        scored.sort(key=lambda pair: -pair[0])
        best, right, threshold = -1.0, 0, 0.0
        for count, (score, hit) in enumerate(scored, start=1):
            right += hit
            if count < len(scored) and scored[count][0] == score:
                continue
            f1 = 2 * right / (count + gold)
            if f1 > best:
                following = scored[count][0] if count < len(scored) else score - 1.0
                best, threshold = f1, (score + following) / 2
        return threshold


@dataclass
class _Example:
    """A document as rows of features, and which of them are mentions."""

    spans: list[Span]
    heads: list[int]
    slots: NDArray[np.int32]
    wanted: NDArray[np.bool_]
    gold: int

    @classmethod
    def of(cls, document: Document, bits: int) -> _Example:
        spans = detect_candidates(document)
        facts = describe_mentions(document, spans)
        gold = {mention.span for mention in document.mentions}
        wanted = np.array([span in gold for span in spans], np.bool_)
        return cls(spans, _heads(document, facts), span_slots(document, spans, facts, bits), wanted, len(gold))


def _sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = 0.5 * (1.0 + np.tanh(0.5 * scores))
    return total


def _heads(document: Document, facts: Sequence[MentionFacts]) -> list[int]:
    """The head of every span; of two joined names, a number that is no other span's head."""
    words = document.words
    heads = []
    for known in facts:
        mark, last = known.head + 1, known.end - 1
        joined = known.kind == "name" and mark < last and words[mark] in ("and", "&") and words[last][:1].isupper()
        heads.append(-1 - known.head if joined else known.head)
    return heads


def _choose_spans(
    spans: Sequence[Span], heads: Sequence[int], scores: NDArray[np.float64], threshold: float
) -> list[int]:
    """Choose spans, best first: one is taken if its head is free and it crosses none that is taken."""
    taken_heads: set[int] = set()
    covers: dict[int, list[Span]] = {}  # the taken spans that are over a word
    kept: list[int] = []
    for k in np.argsort(-scores, kind="stable").tolist():
        span = spans[k]
        if scores[k] <= threshold:
            break
        if heads[k] in taken_heads or _crosses(span, covers):
            continue
        taken_heads.add(heads[k])
        kept.append(k)
        for place in range(span.start, span.end):
            covers.setdefault(place, []).append(span)
    return kept


def _crosses(span: Span, covers: Mapping[int, Sequence[Span]]) -> bool:
    """Whether a span overlaps a taken one without either being inside the other."""
    over_first = any(other.start < span.start and other.end < span.end for other in covers.get(span.start, ()))
    return over_first or any(
        other.start > span.start and other.end > span.end for other in covers.get(span.end - 1, ())
    )
