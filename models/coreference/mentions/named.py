"""The named-entity column as one label a word.

Two ways of writing it are read: brackets over the words, as CoNLL-2012 has them, and one label a word, with or
without B- and I-.

>>> from netclust.models.coreference.formats.documents import Document
>>> document = Document("d", ("Ann", "Lee", "left", "Rome"), (0, 4), named=("(PERSON*", "*)", "*", "(GPE)"))
>>> named_words(document), named_spans(document)
(['PERSON', 'PERSON', '', 'GPE'], [Span(start=0, end=2), Span(start=3, end=4)])
"""

from __future__ import annotations

from netclust.models.coreference.formats.documents import Document, Span

__all__ = ["named_spans", "named_words"]

_NOTHING = frozenset({"", "*", "-", "_", "O"})


def named_words(document: Document) -> list[str]:
    """The label of every word in upper case, "" where there is none."""
    labels = [""] * len(document.words)
    for span, label in _labelled(document):
        labels[span.start : span.end] = [label] * (span.end - span.start)
    return labels


def named_spans(document: Document) -> list[Span]:
    """Where the named entities are."""
    return [span for span, _ in _labelled(document)]


def _labelled(document: Document) -> list[tuple[Span, str]]:
    found: list[tuple[Span, str]] = []
    start, label = -1, ""
    ends = set(document.sentences)
    for place, value in enumerate(document.named or ()):
        bracket = value.startswith("(")
        plain = "" if value in _NOTHING or value in ("*)", ")") else value.strip("(*)")
        new = plain.removeprefix("B-").removeprefix("I-").upper()
        inside = start >= 0 and (value in ("*", "*)", ")") if _open_bracket(document, start) else new == label)
        if start >= 0 and (not inside or place in ends or value.startswith("B-")):
            found.append((Span(start, place), label))
            start = -1
        if start < 0 and new:
            start, label = place, new
        if start >= 0 and (value.endswith(")") or (bracket and not value.endswith("*"))):
            found.append((Span(start, place + 1), label))
            start = -1
    if start >= 0:
        found.append((Span(start, len(document.words)), label))
    return found


def _open_bracket(document: Document, start: int) -> bool:
    return document.named is not None and document.named[start].startswith("(")
