"""What is known of mentions before they are compared: head, kind, gender, number, animacy, speaker, direct speech.

Every fact comes from the best column that the document has; where there is none, from the words and our lists.

>>> from netclust.models.coreference.formats.documents import Document, Span
>>> words = tuple("Mrs. Bennet told her old servants that she slept .".split())
>>> document = Document("d", words, (0, len(words)))
>>> for facts in describe_mentions(document, [Span(0, 2), Span(3, 4), Span(3, 6), Span(7, 8)]):
...     print(words[facts.head], facts.kind, facts.form, facts.gender, facts.number, facts.animacy)
Bennet name titled female singular animate
her pronoun she female singular animate
servants nominal possessive unknown plural animate
she pronoun she female singular animate
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.models.coreference.mentions.classes import word_classes
from netclust.models.coreference.mentions.heads import Heads
from netclust.models.coreference.mentions.lexicon.closed import (
    DEMONSTRATIVES,
    NUMBERS_PLURAL,
    QUANTIFIERS,
    QUANTIFIERS_PLURAL,
    is_number,
)
from netclust.models.coreference.mentions.lexicon.facts import Animacy, Gender, Kind, MentionFacts, Number
from netclust.models.coreference.mentions.lexicon.names import (
    FEMALE_NAMES,
    MALE_NAMES,
    PLACE_NAMES,
    SURNAMES_LIKE_PLACES,
    TITLES,
    name_gender,
)
from netclust.models.coreference.mentions.lexicon.nouns import (  # fmt: skip
    ANIMALS,
    GROUPS,
    NOUN_GENDER,
    PEOPLE,
    PLACES,
    PLURAL_GROUPS,
    THINGS,
    VEHICLES,
    singular,
)
from netclust.models.coreference.mentions.lexicon.pronouns import (
    INDEFINITE,
    POSSESSIVE,
    PRONOUNS,
    TWO_WORD_PRONOUNS,
    Pronoun,
)
from netclust.models.coreference.mentions.named import named_words
from netclust.models.coreference.mentions.quotes import quoted_words

__all__ = ["Describer", "describe_mentions"]

_PERSON_LABELS = frozenset({"PERSON", "PER"})
_OTHER_LABELS = frozenset({
    "GPE", "LOC", "FAC", "ORG", "NORP", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE", "DATE", "TIME", "PERCENT",
    "MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "PLACE", "ORGANIZATION", "LOCATION", "FACILITY", "VEH",
})  # fmt: skip
_THING_ENDINGS = ("ness", "tion", "sion", "ment", "ity", "ism", "ance", "ence", "hood", "dom")
_PERSON_ENDINGS = ("ist", "ian", "eer", "man", "woman", "person")
_ALONE_IS_ONE = frozenset({"latter", "former", "first", "last", "other", "eldest", "youngest"})
_ONE = frozenset({"a", "an", "this", "that", "each", "every", "one", "another", "either", "neither"})


def describe_mentions(document: Document, spans: Sequence[Span | Mention]) -> list[MentionFacts]:
    """Return the facts of each span, in the order given."""
    describer = Describer(document)
    return [describer.facts(span) for span in spans]


class Describer:
    """Describes spans of one document: what concerns all its words is worked out once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.low = [word.lower() for word in document.words]
        self.classes = word_classes(document)
        self.heads = Heads(document, self.classes)
        self.quoted = quoted_words(document)
        self.named = named_words(document)

    def facts(self, span: Span | Mention) -> MentionFacts:
        """What is known of one span."""
        document = self.document
        head = self.heads.of(span)
        pronoun = self._pronoun(span)
        if pronoun is not None:
            kind: Kind = "pronoun"
            form, gender, number, animacy = pronoun.form, pronoun.gender, pronoun.number, pronoun.animacy
        elif self._is_name(span, head):
            kind = "name"
            form = "titled" if self._is_titled(span, head) else "name"
            gender, animacy = self._who_is_named(span, head)
            number = self._number(span, head, name=True)
        else:
            kind = "nominal"
            form = self._begins(span, head)
            gender, animacy = self._what_noun(head)
            number = self._number(span, head, name=False)
        speaker = document.speakers[span.start] if document.speakers is not None else ""
        return MentionFacts(
            start=span.start,
            end=span.end,
            sentence=bisect_right(document.sentences, span.start) - 1,
            head=head,
            kind=kind,
            form=form,
            gender=gender,
            number=number,
            animacy=animacy,
            person=pronoun.person if pronoun is not None else "none",
            speaker="" if speaker in ("-", "_", "*") else speaker,
            quoted=self.quoted[span.start],
            named=self.named[head],
        )

    def _pronoun(self, span: Span | Mention) -> Pronoun | None:
        low = self.low[span.start]
        if span.end - span.start == 1:
            known = PRONOUNS.get(low)
            if known is None or (self.classes[span.start] in "NP" and self.document.pos is not None):
                return None
            return None if self.document.words[span.start] == "US" else known
        if span.end - span.start == 2:
            both = f"{low} {self.low[span.start + 1]}"
            if both in TWO_WORD_PRONOUNS:
                animacy: Animacy = "unknown" if both in ("each other", "one another") else "animate"
                number: Number = "plural" if both in ("each other", "one another") else "singular"
                return Pronoun(both.replace(" ", "_"), "third", "unknown", number, animacy, "indefinite")
        return None

    def _is_name(self, span: Span | Mention, head: int) -> bool:
        if self.classes[head] != "P":
            return False
        if self._is_titled(span, head):
            return True
        first, low = self.low[span.start], self.low[head]
        common = singular(low) in PEOPLE or singular(low) in GROUPS or low in TITLES
        if first in ("a", "an") or (first in POSSESSIVE and common):
            return False
        alone = head == span.start or self.classes[head - 1] != "P"
        return not (alone and common and span.end - span.start > 1 and self.classes[span.start] in "DOM")

    def _is_titled(self, span: Span | Mention, head: int) -> bool:
        group = range(span.start, head)
        return any(self.low[k] in TITLES and self.document.words[k][:1].isupper() for k in group)

    def _who_is_named(self, span: Span | Mention, head: int) -> tuple[Gender, Animacy]:
        label = self.named[head]
        if label in _OTHER_LABELS:
            return "neutral", "inanimate"
        words = [self.document.words[k] for k in range(span.start, head + 1) if self.classes[k] in "PN"]
        low = words[-1].lower() if words else ""
        gender = name_gender(words)
        given = low in FEMALE_NAMES or low in MALE_NAMES
        place = singular(low) in PLACES or low in VEHICLES
        person = self._is_titled(span, head) or (gender != "unknown" and low in SURNAMES_LIKE_PLACES)
        if not person and ((len(words) > 1 and place) or (low in PLACE_NAMES and not given)):
            return "neutral", "inanimate"
        if gender == "unknown" and low in NOUN_GENDER:
            gender = NOUN_GENDER[low]
        if gender != "unknown" or label in _PERSON_LABELS or any(word.lower() in TITLES for word in words):
            return gender, "animate"
        bare = all(self.classes[k] == "P" for k in range(span.start + 1, head))
        if self.low[span.start] == "the" and bare and low not in PEOPLE and singular(low) == low:
            return "neutral", "inanimate"  # the Hudson, the Crown
        return "unknown", "unknown"

    def _what_noun(self, head: int) -> tuple[Gender, Animacy]:
        low = self.low[head]
        if self.document.lemmas is not None and self.document.lemmas[head] not in ("", "_", "-"):
            low = self.document.lemmas[head].lower()
        one = singular(low)
        if one not in PEOPLE and "-" in one:
            one = singular(one.rpartition("-")[2])
        if one in NOUN_GENDER and one not in ANIMALS:
            return NOUN_GENDER[one], "animate"
        if one in PEOPLE or one in ANIMALS:
            return NOUN_GENDER.get(one, "unknown"), "animate"
        if one in PLURAL_GROUPS or one in TITLES:
            return TITLES.get(one, "unknown"), "animate"
        if one in GROUPS:
            return "unknown", "unknown"
        if one in INDEFINITE:
            return PRONOUNS[one].gender, PRONOUNS[one].animacy
        if one in PLACES or one in VEHICLES or one in THINGS:
            return "neutral", "inanimate"
        if one.endswith("woman"):
            return "female", "animate"
        if one.endswith("man") and len(one) > 4:
            return "male", "animate"
        if one.endswith(_PERSON_ENDINGS) and len(one) > 5:
            return "unknown", "animate"
        if one.endswith(_THING_ENDINGS) and len(one) > 5:
            return "neutral", "inanimate"
        return ("unknown", "animate") if self.named[head] in _PERSON_LABELS else ("unknown", "unknown")

    def _begins(self, span: Span | Mention, head: int) -> str:
        low = self.low[span.start]
        if low in POSSESSIVE or "S" in self.classes[span.start : head]:
            return "possessive"
        if low in ("the", "th'"):
            return "definite"
        if low in ("a", "an"):
            return "indefinite"
        if low in DEMONSTRATIVES:
            return "demonstrative"
        return "quantified" if low in QUANTIFIERS or is_number(low) else "bare"

    def _number(self, span: Span | Mention, head: int, name: bool) -> Number:
        if self._joined(span, head):
            return "plural"
        tag = self.document.pos[head] if self.document.pos is not None else ""
        if tag in ("NNS", "NNPS"):
            return "plural"
        if tag in ("NN", "NNP"):
            return "plural" if self.low[head] in PLURAL_GROUPS else "singular"
        first, low = self.low[span.start], self.low[head]
        if name:
            plural = low not in PLACE_NAMES and singular(low) != low and (first == "the" or first in NUMBERS_PLURAL)
            return "plural" if plural else "singular"
        if first in _ONE and head > span.start + 1 and self.low[span.start + 1] == "of":
            return "singular"  # one of the men
        if first in QUANTIFIERS_PLURAL or low in PLURAL_GROUPS or singular(low) != low:
            return "plural"
        if first in _ONE:
            return "singular"
        if self.classes[head] in "AM" and first == "the" and low not in _ALONE_IS_ONE:
            return "plural"  # the poor, the two
        return "plural" if first in NUMBERS_PLURAL else "singular"

    def _joined(self, span: Span | Mention, head: int) -> bool:
        """Whether a second noun group is joined to the first by "and"."""
        for place in range(head + 1, span.end - 1):
            kind = self.classes[place]
            if kind in "IWV.":
                return False
            if self.low[place] in ("and", "&"):
                return self.classes[place + 1] in "NPDOARM"
        return False
