"""The head word of a span: what a mention is chiefly about.

With a parse, by the head rules for noun phrases of Collins; without, the last noun of the first noun group.

>>> from netclust.models.coreference.formats.documents import Document, Span
>>> words = tuple("the old man with the hat met Ann 's sister".split())
>>> heads = Heads(Document("d", words, (0, len(words))))
>>> words[heads.of(Span(0, 6))], words[heads.of(Span(7, 10))], words[heads.of(Span(7, 8))]
('man', 'sister', 'Ann')

Reference: M. Collins, "Head-driven statistical models for natural language parsing", PhD thesis, 1999, appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence

from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.models.coreference.mentions.classes import word_classes
from netclust.models.coreference.mentions.parses import Constituent, constituents

__all__ = ["Heads"]

_ENDS_GROUP = frozenset("IWVCR.XDOB")  # behind a noun, these are no longer its group


class Heads:
    """Heads of spans of one document; `classes` is one letter a word (see classes.word_classes)."""

    def __init__(self, document: Document, classes: Sequence[str] | None = None) -> None:
        self.classes = word_classes(document) if classes is None else classes
        self._phrases: dict[tuple[int, int], Constituent] = {}
        if document.parse is not None:
            for first, last in zip(document.sentences, document.sentences[1:], strict=False):
                for phrase in constituents(document.parse[first:last], first):
                    self._phrases.setdefault((phrase.start, phrase.end), phrase)

    def of(self, span: Span | Mention) -> int:
        """The place of the head among the words of the document."""
        phrase = self._phrases.get((span.start, span.end))
        if phrase is not None and phrase.children:
            return self._of_phrase(phrase)
        return self._of_words(span.start, span.end)

    def _of_phrase(self, phrase: Constituent) -> int:
        """Down the tree by Collins's rules for noun phrases; of other phrases, the group of words decides."""
        while phrase.label in ("NP", "NX", "NML", "S", "TOP", "PRN") and phrase.children:
            own = self._noun_outside(phrase)
            if own >= 0:
                return own
            inner = next((child for child in phrase.children if child.label in ("NP", "NX", "NML")), None)
            if inner is None:
                break
            phrase = inner
        return self._of_words(phrase.start, phrase.end)

    def _noun_outside(self, phrase: Constituent) -> int:
        """The last noun of a phrase that is in none of its children: "sister" in "Ann 's sister", or -1."""
        place = phrase.end - 1
        for child in reversed([*phrase.children]):
            while place >= child.end:
                if self.classes[place] in "NP":
                    return place
                place -= 1
            place = min(place, child.start - 1)
        while place >= phrase.start:
            if self.classes[place] in "NP":
                return place
            place -= 1
        return -1

    def _of_words(self, start: int, end: int) -> int:
        """The last noun before a preposition, comma, verb or relative; behind a possessive mark, a new group begins."""
        noun = other = -1
        classes = self.classes
        for place in range(start, end):
            kind = classes[place]
            if kind in ("N", "P"):
                noun = place
            elif kind == "S" and noun >= 0:
                if place + 1 < end:
                    noun = -1
            elif kind in _ENDS_GROUP and noun >= 0:
                break
            elif kind in ("A", "M", "R") or (kind in ("D", "O", "V", "B", "X") and other < 0):
                other = place if kind != "R" or other < 0 or classes[other] in "DOVBX" else other
            elif kind in ("I", "W") and other >= 0 and classes[other] in "RA" and place > start + 1:
                break
        if noun >= 0:
            return noun
        if other >= 0:
            return other
        words = (place for place in range(end - 1, start - 1, -1) if classes[place] not in (".", "S"))
        return next(words, end - 1)
