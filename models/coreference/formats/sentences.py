"""Where sentences begin in a row of words that nobody cut.

>>> sentence_starts(["He", "left", ".", '"', "Why", "?", '"', "she", "said", ".", "Nobody", "knew", "."])
[0, 3, 10, 13]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netclust.models.coreference.formats.documents import Mention, Span

__all__ = ["CLOSING", "FINAL", "sentence_starts"]

FINAL = frozenset((".", "!", "?", "...", "…", "。", "！", "？", "؟", "।"))
"""Words that end a sentence."""

CLOSING = frozenset(('"', "''", "'", "”", "’", "»", ")", "]", "-RRB-", "-RSB-", "」", "』"))
"""Words that still belong to the sentence that has just ended."""


def sentence_starts(words: Sequence[str], mentions: Iterable[Mention | Span] = ()) -> list[int]:
    """The first word of every sentence, and the number of words; no mention is cut.

    A sentence ends after a full stop and what closes there, unless it goes on in small letters.
    """
    inside = {word for mention in mentions for word in range(mention.start + 1, mention.end)}
    starts = [0]
    ended = quoted = False
    for at, word in enumerate(words):
        closes = word in CLOSING and (word != '"' or quoted)
        if word == '"':
            quoted = not quoted
        if ended and not closes and word not in FINAL and not word[:1].islower() and at not in inside:
            starts.append(at)
        ended = word in FINAL or (ended and closes)
    return [*starts, len(words)] if words else [0]
