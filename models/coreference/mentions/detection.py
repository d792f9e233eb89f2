"""Where mentions may be: noun phrases, names and pronouns, from whatever columns a document has.

With a parse: its noun phrases. With parts of speech, or words alone: noun groups, extended by what "of" adds. Inner
possessors are mentions of their own. An "it" that stands for nothing is left out.

>>> from netclust.models.coreference.formats.documents import Document
>>> words = tuple("It rained when Ann 's sister left the king of Spain and his dog .".split())
>>> document = Document("d", words, (0, len(words)))
>>> spans, used = find_mentions(document)
>>> [document.text(span) for span in spans], used
(["Ann 's sister", 'Ann', 'the king of Spain', 'Spain', 'his dog', 'his'], 'words alone')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.mentions.classes import group_classes
from netclust.models.coreference.mentions.heads import Heads
from netclust.models.coreference.mentions.lexicon.closed import DAYS_AND_MONTHS
from netclust.models.coreference.mentions.lexicon.pronouns import PRONOUNS
from netclust.models.coreference.mentions.lexicon.verbs import WEATHER
from netclust.models.coreference.mentions.named import named_spans
from netclust.models.coreference.mentions.noun_groups import noun_groups
from netclust.models.coreference.mentions.parses import Constituent, constituents

__all__ = ["columns_used", "detect_candidates", "find_mentions"]

_BE = frozenset({"is", "was", "'s", "’s", "be", "been", "were", "seems", "seemed", "appears", "appeared", "becomes"})
_BEFORE_BE = frozenset({"will", "would", "may", "might", "must", "has", "had", "could", "can", "should", "not", "n't"})
_SEEMING = frozenset({"seems", "seemed", "appears", "appeared", "happened", "happens", "turned", "follows", "followed"})
_PLACES_IN_ONE_WORD = frozenset({"there", "here", "upstairs", "downstairs", "abroad", "ashore"})


def columns_used(document: Document) -> str:
    """The best of the columns that mentions are found by."""
    if document.parse is not None and any("(" in bit for bit in document.parse):
        return "parse"
    if document.pos is not None and any(tag not in ("", "_", "-") for tag in document.pos):
        return "part of speech"
    return "words alone"


def find_mentions(document: Document) -> tuple[list[Span], str]:
    """Spans in the order of the text, of equal starts the longer first, and the columns that they were found by."""
    used = columns_used(document)
    classes = group_classes(document)
    if used == "parse":
        found = set(_from_parse(document, classes))
    else:
        found = {span for group in noun_groups(document, classes) for span in group.usual()}
    found |= set(_named(document, found))
    return _in_order(_not_pleonastic(document, found)), used


def detect_candidates(document: Document) -> list[Span]:
    """Find more than `find_mentions`: other ends of the same noun groups too, for a filter that chooses among them."""
    spans = set(find_mentions(document)[0])
    classes = group_classes(document)
    for group in noun_groups(document, classes):
        spans.update(group.usual())
        spans.update(group.longer())
    for place, word in enumerate(document.words):
        if word.lower() in _PLACES_IN_ONE_WORD or word.lower() == "it":
            spans.add(Span(place, place + 1))
    return _in_order(spans)


def _in_order(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.start, -span.end))


def _named(document: Document, found: set[Span]) -> Iterator[Span]:
    """Named entities, but for amounts, that end where no span does: the others are the ends of one."""
    ends = {span.end for span in found}
    for span in named_spans(document):
        label = (document.named or ())[span.start].upper()
        amount = any(part in label for part in ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY"))
        if span.end not in ends and not amount:
            yield span


def _from_parse(document: Document, classes: Sequence[str]) -> Iterator[Span]:
    """Noun phrases, of those with one head the largest; parts of a coordination; possessive pronouns."""
    heads = Heads(document, classes)
    for first, last in zip(document.sentences, document.sentences[1:], strict=False):
        taken: set[int] = set()
        for phrase in constituents((document.parse or ())[first:last], first):
            if phrase.label not in ("NP", "NML"):
                continue
            span = Span(phrase.start, phrase.end)
            head = heads.of(span)
            if phrase.label == "NP" and head not in taken:
                yield span
            joins = any(classes[place] == "C" for place in _outside(phrase))
            if not joins:
                taken.add(head)
        for place in range(first, last):
            if classes[place] == "O":
                yield Span(place, place + 1)


def _outside(phrase: Constituent) -> Iterator[int]:
    """The words of a phrase that are in none of its children."""
    place = phrase.start
    for child in phrase.children:
        yield from range(place, child.start)
        place = child.end
    yield from range(place, phrase.end)


def _not_pleonastic(document: Document, spans: set[Span]) -> Iterator[Span]:
    """Spans without the "it" of rain and of "it is true that", and without bare days."""
    sentence_end: dict[int, int] = {}
    for first, last in zip(document.sentences, document.sentences[1:], strict=False):
        sentence_end.update(dict.fromkeys(range(first, last), last))
    for span in spans:
        low = document.words[span.start].lower()
        one = span.end - span.start == 1
        if one and low == "it" and _stands_for_nothing(document.words, span.start, sentence_end[span.start]):
            continue
        if one and low in DAYS_AND_MONTHS and low not in PRONOUNS and document.words[span.start].islower():
            continue
        yield span


def _stands_for_nothing(words: Sequence[str], place: int, last: int) -> bool:
    """It rains; it was late; it is clear that; it seems to; it was Ann who."""
    following = [word.lower() for word in words[place + 1 : min(last, place + 12)]]
    while following and following[0] in _BEFORE_BE:
        following.pop(0)
    if not following:
        return False
    if following[0] in WEATHER or following[0] in _SEEMING:
        return following[0] in WEATHER or any(word in ("that", "to", "as", "out") for word in following[1:5])
    if following[0] not in _BE:
        return False
    rest = [word for word in following[1:] if word not in ("not", "n't", "n’t", "been", "very", "so", "too", "quite")]
    if any(word in WEATHER for word in rest[:2]):
        return True
    for count, word in enumerate(rest):
        if word in (",", ";", ".", "!", "?", "--"):
            return False
        if count and word in ("that", "to", "who", "whether", "how", "why"):
            return True
    return False
