"""How the lists are written: words with blanks between them."""

from __future__ import annotations

__all__ = ["word_set"]


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set.

    >>> sorted(word_set("a the an"))
    ['a', 'an', 'the']
    """
    return frozenset(text.split())
