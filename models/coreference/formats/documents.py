"""A document: words in sentences, what is known about them, and the mentions of its entities.

>>> document = Document("letter", words=("Ann", "said", "she", "left", "."), sentences=(0, 5))
>>> marked = document.with_mentions([Mention(0, 1, 0), Mention(2, 3, 0)])
>>> [marked.text(mention) for mention in marked.mentions], marked.entities()
(['Ann', 'she'], {0: [0, 1]})
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from netclust.errors import InputError

__all__ = ["Document", "Mention", "Span"]


class Span(NamedTuple):
    """Words start..end of a document, end left out."""

    start: int
    end: int


class Mention(NamedTuple):
    """A span that names an entity; -1: it is not known which."""

    start: int
    end: int
    entity: int = -1

    @property
    def span(self) -> Span:
        """Where it is."""
        return Span(self.start, self.end)


@dataclass(frozen=True)
class Document:
    """One part of a document. Columns that its file does not have are None; those that it has are one text a word.

    `sentences` are the places at which sentences start, and the number of words at the end: sentence s is
    `words[sentences[s]:sentences[s + 1]]`. Mentions are in the order of their start, of equal starts the longer first.
    """

    name: str
    words: tuple[str, ...]
    sentences: tuple[int, ...]
    part: int = 0
    pos: tuple[str, ...] | None = None
    lemmas: tuple[str, ...] | None = None
    parse: tuple[str, ...] | None = None
    speakers: tuple[str, ...] | None = None
    named: tuple[str, ...] | None = None
    genre: str = ""
    mentions: tuple[Mention, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what does not fit together; lists will do."""
        for column in ("words", "sentences", "pos", "lemmas", "parse", "speakers", "named", "mentions"):
            if isinstance(values := getattr(self, column), list):
                object.__setattr__(self, column, tuple(values))
        n = len(self.words)
        if self.sentences[:1] != (0,) or self.sentences[-1] != n or list(self.sentences) != sorted(set(self.sentences)):
            raise InputError(f"{self.name}: sentences must start at 0, rise, and end at {n}, the number of words")
        for column in ("pos", "lemmas", "parse", "speakers", "named"):
            values = getattr(self, column)
            if values is not None and len(values) != n:
                raise InputError(f"{self.name}: {len(values)} {column} for {n} words: one a word is needed")
        for mention in self.mentions:
            if not 0 <= mention.start < mention.end <= n:
                raise InputError(f"{self.name}: mention {mention.start}..{mention.end} is not within its {n} words")
        if list(self.mentions) != sorted(self.mentions, key=_order):
            raise InputError(f"{self.name}: mentions must be in the order of the text")

    def with_mentions(self, mentions: Iterable[Mention]) -> Document:
        """The same text with other mentions, put into order."""
        return replace(self, mentions=tuple(sorted(mentions, key=_order)))

    def text(self, span: Span | Mention) -> str:
        """The words of a span."""
        return " ".join(self.words[span.start : span.end])

    def entities(self) -> dict[int, list[int]]:
        """The mentions of every known entity, as numbers of mentions, by first appearance."""
        found: dict[int, list[int]] = {}
        for number, mention in enumerate(self.mentions):
            if mention.entity >= 0:
                found.setdefault(mention.entity, []).append(number)
        return found

    def clusters(self) -> Sequence[frozenset[Span]]:
        """The entities as sets of spans, which is what measures compare; mentions without an entity are left out."""
        return [frozenset(self.mentions[k].span for k in numbers) for numbers in self.entities().values()]


def _order(mention: Mention) -> tuple[int, int, int]:
    return mention.start, -mention.end, mention.entity
