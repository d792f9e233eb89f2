"""Which words of a text are inside direct speech, by its quote marks.

Straight, curly and double-backquote marks are known, and single ones where more quotes open with them. A new opening
mark inside an open quote starts a further paragraph of the same speech; a quote that is never closed ends with its
sentence.

>>> from netclust.models.coreference.formats.documents import Document
>>> words = tuple('" Come , " said Ann . " I will'.split())
>>> "".join("q" if inside else "-" for inside in quoted_words(Document("d", words, (0, 7, 10))))
'-qq-----qq'
"""

from __future__ import annotations

from collections.abc import Iterator

from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.mentions.lexicon.closed import is_punctuation

__all__ = ["quoted_words"]

LONGEST = 400  # words between one mark and the next: what is longer is taken for a mark that is missing

_OPENING = frozenset({"``", "“", "«", "„"})
_CLOSING = frozenset({"''", "”", "»"})
_STRAIGHT = frozenset({'"', "&quot;"})
_SINGLE = frozenset({"'", "‘", "’", "`"})


def quoted_words(document: Document) -> list[bool]:
    """One truth a word."""
    inside = [False] * len(document.words)
    end_of = _sentence_ends(document)
    roles = _single_roles(document, end_of) if _speaks_in_singles(document, end_of) else _roles(document, end_of)
    opened = -1
    for place, role in enumerate(roles):
        if opened >= 0 and (place - opened > LONGEST or role == "first"):
            _fill(inside, opened, min(place, end_of[opened]))
            opened = -1
        if role == "close" and opened >= 0:
            _fill(inside, opened, place)
            opened = -1
        elif role in ("open", "first"):
            if opened >= 0:
                _fill(inside, opened, place)
            opened = place
    if opened >= 0:
        _fill(inside, opened, end_of[opened])
    return inside


def _fill(inside: list[bool], opened: int, end: int) -> None:
    inside[opened + 1 : end] = [True] * max(0, end - opened - 1)


def _sentence_ends(document: Document) -> list[int]:
    ends: list[int] = []
    for first, last in zip(document.sentences, document.sentences[1:], strict=False):
        ends += [last] * (last - first)
    return ends


def _speaks_in_singles(document: Document, ends: list[int]) -> bool:
    """Whether more quotes open with a single mark than with a double one."""
    doubles = sum(word in _OPENING for word in document.words) + sum(word in _STRAIGHT for word in document.words) // 2
    return sum(role == "first" for role in _single_roles(document, ends)) > doubles


def _roles(document: Document, ends: list[int]) -> Iterator[str]:
    """Whether each word opens or closes a quote, or neither, by double marks."""
    words = document.words
    is_open = False
    for place, word in enumerate(words):
        first, last = place == 0 or ends[place - 1] <= place, place + 1 >= ends[place]
        role = "open" if word in _OPENING else "close" if word in _CLOSING else ""
        if word in _STRAIGHT and is_open:
            # A mark at the start of a sentence, before a capital letter, opens the next paragraph of the same speech.
            role = "open" if first and not last and words[place + 1][:1].isupper() else "close"
        elif word in _STRAIGHT:
            role = "" if last and not first else "open"
        is_open = role == "open" or (is_open and role != "close")
        yield role


def _single_roles(document: Document, ends: list[int]) -> Iterator[str]:
    """The same by single marks, which are apostrophes too. An opening one is always a "first": nothing goes on."""
    words = document.words
    is_open = False
    for place, word in enumerate(words):
        role = ""
        if word in _SINGLE:
            first, last = place == 0 or ends[place - 1] <= place, place + 1 >= ends[place]
            behind_sign = first or is_punctuation(words[place - 1])
            before_sign = last or is_punctuation(words[place + 1])
            if is_open and word != "‘" and not first and (behind_sign or before_sign):
                role = "close"
            elif word == "‘" or (behind_sign and not last and word != "’"):
                role = "first"
        is_open = role == "first" or (is_open and role != "close")
        yield role
