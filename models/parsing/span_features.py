"""Features of spans of a sentence: the words at their edges, inside and outside, and what other models say of them.

>>> names_of_span(("she", "saw", "the", "baker", "today"), 2, 4)[:6]
['first=the', 'last=baker', 'before=saw', 'after=today', 'before,first=saw,the', 'last,after=baker,today']
>>> names_of_span(("she", "slept"), 1, 2)[-2:]
['before,first&1=she,slept', 'last,after&1=slept,</s>']

Up to three words long, a span has every feature once more together with its length, and one of three words its middle
word. Words that a treebank has once are replaced by how they are written.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
section 9.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["Notes", "SpanVocabulary", "names_of_span"]

Notes = Mapping[str, Mapping[tuple[int, int], str]]
"""By the name of another model: what it calls a span (start, end); a span that is not there is none to it."""
LONG = 3
"""Spans up to so many words have features of their own."""
_EDGES = ("first", "last", "before", "after", "before,first", "last,after")


def names_of_span(words: Sequence[str], start: int, end: int, notes: Notes | None = None) -> list[str]:
    """The names of a span's features."""
    first, last = words[start], words[end - 1]
    before = words[start - 1] if start else "<s>"
    after = words[end] if end < len(words) else "</s>"
    values = (first, last, before, after, f"{before},{first}", f"{last},{after}")
    found = [f"{edge}={value}" for edge, value in zip(_EDGES, values, strict=True)]
    length = end - start
    if length == LONG:
        found.append(f"middle={words[start + 1]}")
    if length <= LONG:
        found += [f"{edge}&{length}={value}" for edge, value in zip(_EDGES, values, strict=True)]
    return found + [f"{name}: {said.get((start, end), 'none')}" for name, said in (notes or {}).items()]


class SpanVocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The features that count: those that constituents of a treebank have."""

    names: tuple[str, ...]

    @classmethod
    def of_spans(cls, spans: Iterable[Iterable[str]], at_least: int = 2) -> SpanVocabulary:
        """Of the feature names of constituents, those that are there so often."""
        counts = Counter(name for names in spans for name in names)
        return cls(tuple(sorted(name for name, count in counts.items() if count >= at_least)))

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of every feature."""
        return {name: at for at, name in enumerate(self.names)}

    def features(self, words: Sequence[str], notes: Notes | None = None) -> NDArray[np.int32]:
        """[n, n + 1, most features of a span]: the numbers of every span's features, -1 where there are no more."""
        n = len(words)
        found = np.full((n, n + 1, 2 * len(_EDGES) + 1 + len(notes or {})), -1, np.int32)
        if not self.names:
            return found[:, :, :0]
        for start in range(n):
            for end in range(start + 1, n + 1):
                known = [self.number.get(name, -1) for name in names_of_span(words, start, end, notes)]
                found[start, end, : len(known)] = known
        return found
