"""Noun groups from the classes of words: where there is no parse, what mentions are made of.

A group is determiners, adjectives and nouns up to its last noun, or a pronoun. It knows the possessors inside it, where
"of" takes it, and other starts and ends that are possible.

>>> from netclust.models.coreference.formats.documents import Document
>>> words = tuple("all my friends of London , who laughed".split())
>>> [group] = noun_groups(Document("d", words, (0, len(words))), list("DONIP.WV"))[:1]
>>> [" ".join(words[span.start:span.end]) for span in group.usual()]
['my', 'all my friends of London']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.mentions.lexicon.closed import ADVERBS
from netclust.models.coreference.mentions.lexicon.pronouns import INDEFINITE, PERSONAL, TWO_WORD_PRONOUNS

__all__ = ["NounGroup", "noun_groups"]

_BEFORE_NOUN = frozenset("DOMAB")
_NOUN = frozenset("NP")
_LONGEST = 40  # words of a span that is guessed to run to the end of its clause
_CLAUSE_MARKS = frozenset({",", ";", ":", ".", "!", "?", "--", "—", '"', "”", "''", ")"})
_ENDEARMENTS = frozenset({"dear", "dearest", "own", "love", "darling"})


class NounGroup:
    """Words start..end, end left out, and the spans that it offers."""

    def __init__(self, start: int, end: int, inner: list[Span]) -> None:
        self.start = start
        self.end = end
        self.inner = inner  # possessors
        self.of_end = end  # with what "of" adds
        self.ends: list[int] = []  # other ends that are possible
        self.starts: list[int] = []  # other starts
        self.modifiers: list[Span] = []  # names and nouns before the noun

    def usual(self) -> Iterator[Span]:
        """The group with what "of" adds, and its possessors."""
        yield from self.inner
        yield Span(self.start, self.of_end)

    def longer(self) -> Iterator[Span]:
        """Yield every other span that the group may stand for."""
        for start in (self.start, *self.starts):
            for end in (self.end, self.of_end, *self.ends):
                if start < end:  # a possessor may end before the second determiner
                    yield Span(start, end)
        yield from self.modifiers


class _Sentence:
    """Words first..last of a document, in lower case, and their classes."""

    def __init__(self, low: Sequence[str], classes: Sequence[str], first: int, last: int) -> None:
        self.low, self.classes, self.first, self.last = low, classes, first, last

    def word(self, place: int) -> str:
        return self.low[place] if self.first <= place < self.last else ""

    def kind(self, place: int) -> str:
        return self.classes[place] if self.first <= place < self.last else "."


def noun_groups(document: Document, classes: Sequence[str]) -> list[NounGroup]:
    """All noun groups of a document, and pronouns as groups of one word, in the order of the text."""
    low = [word.lower() for word in document.words]
    found: list[NounGroup] = []
    for first, last in zip(document.sentences, document.sentences[1:], strict=False):
        sentence = _Sentence(low, classes, first, last)
        here = list(_in_sentence(sentence))
        starts = {group.start: group for group in here}
        for group in reversed(here):
            _extend(group, starts, sentence)
            _within(group, sentence)
            if sentence.word(group.start - 1) in ("you", "we", "us", "ye"):
                group.starts.append(group.start - 1)  # you young vagabond
        found += here
    return found


def _in_sentence(sentence: _Sentence) -> Iterator[NounGroup]:
    place = sentence.first
    while place < sentence.last:
        group = _group_at(sentence, place)
        place = place + 1 if group is None else group.end
        if group is not None:
            yield group


def _group_at(sentence: _Sentence, start: int) -> NounGroup | None:
    """The noun group or pronoun that begins at a word, if one does."""
    word, kind = sentence.word(start), sentence.kind(start)
    if f"{word} {sentence.word(start + 1)}" in TWO_WORD_PRONOUNS and sentence.kind(start + 2) not in "NPA":
        return NounGroup(start, start + 2, [])
    if kind == "R":
        return NounGroup(start, start + 1, []) if word in PERSONAL or word in INDEFINITE else None
    if word == "what" or (kind not in _BEFORE_NOUN and kind not in _NOUN):
        return None
    if kind == "B" and not (word in ("so", "very", "too") and sentence.kind(start + 1) in "DA"):
        return None
    inner: list[Span] = []
    place, noun = start, -1
    while place < sentence.last:
        kind = sentence.kind(place)
        if kind == "S" and noun == place - 1 and _is_possessor(sentence, place):
            inner.append(Span(start, place))
            noun = -1
        elif kind in _NOUN:
            noun = place
        elif noun >= 0 or not _continues(sentence, start, place):
            break
        elif kind == "O":
            inner.append(Span(place, place + 1))
        place += 1
    if noun < 0:
        return _without_noun(sentence, start, place, inner)
    return None if start == noun and sentence.word(noun) in ADVERBS else NounGroup(start, noun + 1, inner)


def _is_possessor(sentence: _Sentence, mark: int) -> bool:
    """Whether something possessed follows the mark."""
    return sentence.kind(mark + 1) in "NPAMD" and sentence.word(mark + 1) not in ("a", "an", "the")


def _continues(sentence: _Sentence, start: int, place: int) -> bool:
    """Return whether a word that is no noun belongs to a group that has had no noun yet."""
    kind, before, after = sentence.kind(place), sentence.word(place - 1), sentence.kind(place + 1)
    if kind == "O":
        return place == start or before in ("all", "both", "half", "of")
    if kind == "D":
        return place == start or sentence.kind(place - 1) in "DS"
    if kind == "B":
        return place == start or after in "AB"
    if kind in ".C":
        joins = sentence.word(place) in (",", "and", "but", "or")
        return joins and sentence.kind(place - 1) == "A" and after in "AB"
    return kind in "MA"


def _without_noun(sentence: _Sentence, start: int, end: int, inner: list[Span]) -> NounGroup | None:
    """The poor, the two, my dear; "his" before what is not known to be a noun; a possessor whose noun is not seen."""
    kind, last = sentence.kind(start), sentence.word(end - 1)
    if kind == "O" and end - start == 2 and last in _ENDEARMENTS:
        return NounGroup(start, end, inner)
    if inner:
        return NounGroup(inner[-1].start, inner[-1].end, inner[:-1])
    if kind == "D" and end - start >= 2:
        adjective = sentence.kind(end - 1) in "AM" or last in ("other", "others")
        return NounGroup(start, end, []) if adjective and sentence.word(start) in ("the", "these", "those") else None
    alone = kind == "D" and sentence.word(start) in INDEFINITE and sentence.word(start) not in ("all", "some")
    return NounGroup(start, end, []) if alone else None


def _within(group: NounGroup, sentence: _Sentence) -> None:
    """Inner starts ("the neighbours" in "all the neighbours") and modifiers ("London" in "a London morning")."""
    place = group.start
    while place < group.end:
        kind = sentence.kind(place)
        if kind in "DOM" and place > group.start:
            group.starts.append(place)
        end = place + 1
        if kind in _NOUN:
            group.ends += [place + 1] if end < group.end else []  # a brook | glides
            while end < group.end and sentence.kind(end) == kind:
                end += 1
            if kind == "N" and end < group.end and sentence.kind(end) == "P":
                group.modifiers.append(Span(group.start, end))  # her son | Stevie
            if kind == "P":
                group.modifiers.append(Span(place, end))
            else:
                group.modifiers += [Span(k, k + 1) for k in range(place, end)]
        place = end


def _extend(group: NounGroup, starts: dict[int, NounGroup], sentence: _Sentence) -> None:
    """Where else a group may end: behind "of" and a further group, other prepositions, the clause, "and"."""
    end = group.end
    if sentence.kind(end - 1) in "RO" and sentence.word(end - 1) not in INDEFINITE:
        return
    while sentence.word(end) == "of" and end + 1 in starts:
        group.of_end = end = starts[end + 1].of_end
    following = starts.get(end + 1)
    if following is not None and sentence.kind(end) == "I":
        group.ends += [following.end, following.of_end, *following.ends[:2]]
    if following is not None and sentence.word(end) in ("and", "or", "&"):
        group.ends.append(following.of_end)
    comma = end + 1 if sentence.word(end) == "," else end
    if sentence.kind(comma) in "WIV" or (comma > end and comma in starts):
        group.ends += _clause_ends(sentence, comma)
    if sentence.word(end) in ("himself", "herself", "itself", "themselves", "else"):
        group.ends.append(end + 1)


def _clause_ends(sentence: _Sentence, start: int) -> list[int]:
    """The next comma or stronger mark, and the next stronger mark."""
    ends: list[int] = []
    for place in range(start + 1, min(sentence.last, start + _LONGEST)):
        if sentence.word(place) in _CLAUSE_MARKS:
            ends.append(place)
            if sentence.word(place) != "," or len(ends) == 3:
                break
    return ends
