"""Hashed features of single spans, by which a filter learns what a corpus counts as a mention."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.mentions.classes import group_classes
from netclust.models.coreference.mentions.lexicon.facts import MentionFacts
from netclust.models.coreference.mentions.lexicon.nouns import singular

__all__ = ["TEMPLATES", "span_slots"]

TEMPLATES = 36


def span_slots(
    document: Document, spans: Sequence[Span], facts: Sequence[MentionFacts], bits: int
) -> NDArray[np.int32]:
    """One row a span, one column a template: the slot of its feature among 2^bits.

    >>> from netclust.models.coreference.mentions.describing import describe_mentions
    >>> document = Document("d", ("Ann", "left"), (0, 2))
    >>> span_slots(document, [Span(0, 1)], describe_mentions(document, [Span(0, 1)]), 10).shape == (1, TEMPLATES)
    True
    """
    mask = (1 << bits) - 1
    words = _Words(document)
    slots = np.empty((len(spans), TEMPLATES), np.int32)
    for row, (span, known) in enumerate(zip(spans, facts, strict=True)):
        values = _values(words, span, known)
        slots[row] = [crc32(f"{number}|{value}".encode("utf-8", "surrogatepass")) & mask for number, value in values]
    return slots


class _Words:
    """The words of a document in lower case and their classes; outside of it is "#"."""

    def __init__(self, document: Document) -> None:
        self.words = document.words
        self.low = [word.lower() for word in document.words]
        self.classes = "".join(group_classes(document))

    def word(self, place: int) -> str:
        return self.low[place] if 0 <= place < len(self.low) else "#"

    def kind(self, place: int) -> str:
        return self.classes[place] if 0 <= place < len(self.low) else "#"


def _values(words: _Words, span: Span, known: MentionFacts) -> enumerate[str]:
    start, end = span
    head = words.word(known.head)
    one = singular(head)
    named = known.kind == "nominal" and known.form == "bare" and words.kind(known.head) == "P"  # Apple said
    kind = "name" if named else known.kind
    form = f"{kind} {'name' if named else known.form}"
    tail = words.word(known.head + 1) if known.head + 1 < end else ""
    tail_kinds = words.classes[known.head + 1 : end]
    length = str(min(end - start, 12))
    kinds = words.classes[start:end]
    pattern = kinds if len(kinds) <= 8 else f"{kinds[:4]}~{kinds[-3:]}"
    before, after = words.word(start - 1), words.word(end)
    kind_before, kind_after = words.kind(start - 1), words.kind(end)
    front = words.classes[start : known.head]
    capital = "C" if words.words[known.head][:1].isupper() else "c"
    shape = f"{'W' in tail_kinds:d}{'V' in tail_kinds:d}{tail_kinds.count('.')}{tail_kinds.count('I')}"
    return enumerate((
        "", form, head, one, f"{head} {form}", f"{one} {len(tail_kinds) > 0} {tail}", head[-3:], head[-2:],
        f"{kind} {known.gender} {known.animacy} {known.number}", f"{capital} {words.kind(known.head)} {form}",
        pattern, f"{pattern} {kind_after}", words.word(start), f"{words.word(start)} {one}", before,
        f"{kind_before} {form}", f"{before} {form}", after, f"{kind_after} {kind} {tail}",
        f"{after} {words.kind(end - 1)} {shape}", f"{after} {words.word(end + 1)}", f"{words.word(start - 2)} {before}",
        f"{length} {kind}", f"{tail} {after}", f"{tail} {words.kind(end - 1)} {kind_after}", words.word(end - 1),
        f"{head} {words.word(end) if kind == 'pronoun' else ''} {words.word(end + 1)}",
        f"{before} {head}", f"{head} {after}", words.word(known.head - 1) if known.head > start else "",
        f"{front} {kind_before}", f"{known.named} {kind}", f"{shape} {kind_after}",
        f"{words.classes[end : end + 3]} {tail_kinds[:2]}", f"{words.classes[max(0, start - 2) : start]} {pattern}",
        f"{known.animacy} {known.form} {tail} {kind_before} {kind_after}",
    ))  # fmt: skip
