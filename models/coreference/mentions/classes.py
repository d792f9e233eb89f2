"""The class of every word, in one letter: from the part-of-speech column, or from lists of words where there is none.

N noun, P name, R pronoun, O possessive pronoun before its noun, D determiner, M number, A adjective, V verb or
auxiliary, I preposition, C conjunction, W relative or clause word, S possessive mark, B adverb, "." punctuation, X the
rest.

>>> from netclust.models.coreference.formats.documents import Document
>>> words = tuple("The old man saw Ann 's dog near his house .".split())
>>> "".join(word_classes(Document("d", words, (0, len(words)))))
'DANVPSNION.'
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.mentions.lexicon.closed import (  # fmt: skip
    ADVERBS,
    ARTICLES,
    AUXILIARIES,
    CLAUSE_STARTS,
    CONJUNCTIONS,
    DAYS_AND_MONTHS,
    DEMONSTRATIVES,
    INTERJECTIONS,
    PREPOSITIONS,
    QUANTIFIERS,
    is_number,
    is_punctuation,
)
from netclust.models.coreference.mentions.lexicon.names import FEMALE_NAMES, MALE_NAMES, PLACE_NAMES, TITLES
from netclust.models.coreference.mentions.lexicon.nouns import (
    ANIMALS,
    GROUPS,
    PEOPLE,
    PLACES,
    THINGS,
    VEHICLES,
    singular,
)
from netclust.models.coreference.mentions.lexicon.pronouns import INDEFINITE, PERSONAL, POSSESSIVE, PRONOUNS
from netclust.models.coreference.mentions.lexicon.verbs import ADJECTIVES, REPORTING, VERBS, looks_like_verb

__all__ = ["KNOWN_NOUNS", "class_of_tag", "group_classes", "word_classes"]

KNOWN_NOUNS = PEOPLE | ANIMALS | GROUPS | PLACES | VEHICLES | THINGS

# Penn tags and universal tags; a longer beginning is tried first.
_TAGS = {
    "NNP": "P", "NN": "N", "PRP$": "O", "PRP": "R", "WP$": "W", "WP": "W", "WDT": "W", "WRB": "W", "DT": "D",
    "PDT": "D", "CD": "M", "JJ": "A", "VB": "V", "MD": "V", "IN": "I", "TO": "I", "CC": "C", "POS": "S", "RB": "B",
    "RP": "B", "EX": "X", "UH": "X", "FW": "N", "ADD": "N", "AFX": "A", "HYPH": ".", "NFP": ".", "LS": "X", "SYM": "X",
    "NOUN": "N", "PROPN": "P", "PRON": "R", "DET": "D", "NUM": "M", "ADJ": "A", "VERB": "V", "AUX": "V", "ADP": "I",
    "CCONJ": "C", "SCONJ": "I", "CONJ": "C", "ADV": "B", "PART": "X", "INTJ": "X", "PUNCT": ".", "X": "X",
}  # fmt: skip
_SUBJECTS = frozenset({"i", "he", "she", "we", "they", "who", "thou"})
_GROUP = frozenset("NAPM")  # what may follow in a noun group
_OPENS = frozenset("DOS")  # what a noun group begins with
_BEFORE_VERB = AUXILIARIES - {"to", "be"}
_AFTER_VERB = frozenset("IDOBR")
_MARKS = frozenset({"'s", "’s", "'", "’"})
_ADJECTIVE_ENDINGS = ("ous", "ful", "less", "able", "ible", "ish", "ive", "ic", "ical")
_AUXILIARIES = AUXILIARIES - {"to", "art"}
_NEVER_NAMES = (
    PERSONAL | ARTICLES | (AUXILIARIES - {"will", "may", "art", "dare"}) | CONJUNCTIONS | PREPOSITIONS | INTERJECTIONS
    | QUANTIFIERS | DEMONSTRATIVES | CLAUSE_STARTS
)  # fmt: skip
_BEFORE_IS = frozenset({"that", "there", "here", "what", "where", "how", "who", "it", "he", "she", "let", "one"})


def class_of_tag(tag: str, word: str) -> str:
    """The class that a tag says, or "" if it says nothing.

    >>> [class_of_tag(tag, "x") for tag in ("NNPS", "VBD", "PRP$", "PROPN", "_", "")]
    ['P', 'V', 'O', 'P', '', '']
    """
    if is_punctuation(tag):
        return "." if is_punctuation(word) and tag not in ("", "_", "-") else ""
    plain = tag.upper()
    while plain:
        found = _TAGS.get(plain)
        if found:
            low = word.lower()
            if found in "RD" and low in POSSESSIVE and tag.upper() in ("DET", "PRON"):
                return "W" if low == "whose" else "O"
            return "S" if plain == "PART" and low in _MARKS else found
        plain = plain[:-1]
    return ""


def word_classes(document: Document) -> list[str]:
    """One letter a word: by its tag where it has one, else by the lists."""
    by_words = _by_words(document)
    if document.pos is None:
        return by_words
    tagged = (class_of_tag(tag, word) for tag, word in zip(document.pos, document.words, strict=True))
    return [tag or guess for tag, guess in zip(tagged, by_words, strict=True)]


def group_classes(document: Document) -> list[str]:
    """As `word_classes`, but bolder about names, for what looks for mentions and may be wrong now and then.

    At the start of a sentence a word before a name is part of it, and so is one that speaks, or that is known as an
    adjective but has a verb behind it. "left" behind a noun is a verb.

    >>> sentences = ("Siemens AG cut jobs .", "Apple said no .", "Green left .")
    >>> texts = [Document("d", tuple(text.split()), (0, len(text.split()))) for text in sentences]
    >>> ["".join(group_classes(text)) for text in texts]
    ['PPVN.', 'PVD.', 'PV.']
    """
    kinds = word_classes(document)
    words, fresh, starts = document.words, _fresh(document), set(document.sentences)
    tags = document.pos or ("",) * len(words)
    for i in range(len(words) - 1, -1, -1):  # backwards: whether a verb follows is known then
        if class_of_tag(tags[i], words[i]):
            continue
        inside = i + 1 < len(words) and i + 1 not in starts
        if words[i] == "left" and kinds[i] == "A" and i not in starts and kinds[i - 1] in ("N", "P", "A"):
            if not (inside and kinds[i + 1] == "N"):  # her hand left, but: the man 's left hand
                kinds[i] = "V"
        elif fresh[i] and inside and words[i][:1].isupper() and _begins_name(words[i].lower(), kinds, words, i):
            kinds[i] = "P"
    return kinds


def _begins_name(low: str, kinds: Sequence[str], words: Sequence[str], place: int) -> bool:
    """Whether a word at the start of a sentence is a name by what follows it."""
    kind, after, following = kinds[place], kinds[place + 1], words[place + 1]
    if low in DAYS_AND_MONTHS or not following[:1].isalpha():
        return False
    if kind == "N":
        return following in REPORTING if after == "V" else after == "P" and singular(low) not in PEOPLE
    return kind == "A" and after == "V" and (following in REPORTING or following in VERBS or following == "left")


def _by_words(document: Document) -> list[str]:
    words = document.words
    low = [word.lower() for word in words]
    names = _names(document, low)
    kinds = [_alone(word, name) for word, name in zip(low, names, strict=True)]
    starts = set(document.sentences)
    for i, word in enumerate(low):
        before = kinds[i - 1] if i and i not in starts else ""
        after = kinds[i + 1] if i + 1 < len(low) and i + 1 not in starts else ""
        kinds[i] = _beside(word, kinds[i], before, after, low[i - 1] if before else "")
    return kinds


def _listed(*lists: tuple[frozenset[str], str]) -> dict[str, str]:
    """The class of every word that is in a list: of several lists, the first."""
    return {word: kind for known, kind in reversed(lists) for word in sorted(known)}


_CLOSED = _listed(
    (_MARKS, "S"), (frozenset({"whose"}), "W"), (POSSESSIVE, "O"), (PERSONAL, "R"), (ARTICLES, "D"),
    (_AUXILIARIES, "V"), (DEMONSTRATIVES, "D"), (QUANTIFIERS, "D"),
    (CLAUSE_STARTS, "W"), (PREPOSITIONS, "I"), (CONJUNCTIONS, "C"),
    (INDEFINITE, "R"), (DAYS_AND_MONTHS, "N"), (ADJECTIVES, "A"), (KNOWN_NOUNS, "N"), (ADVERBS, "B"),
    (INTERJECTIONS, "X"),
)  # fmt: skip


@lru_cache(maxsize=65536)
def _alone(low: str, name: bool) -> str:
    """The class of a word without its neighbours."""
    if name:
        return "P"
    if low in _CLOSED:
        return _CLOSED[low]
    if is_punctuation(low):
        return "."
    if is_number(low):
        return "M"
    if singular(low) in KNOWN_NOUNS:
        return "N"
    if low.endswith("ly") and len(low) > 4:
        return "B"
    first, hyphen, second = low.rpartition("-")
    if hyphen and first and (second.endswith(("ed", "ing")) or second in ADJECTIVES):
        return "A"  # weather-beaten, nut-brown
    if looks_like_verb(low):
        return "V"
    if low.endswith(_ADJECTIVE_ENDINGS) and len(low) > 5:
        return "A"
    return "N"


def _beside(low: str, kind: str, before: str, after: str, word_before: str) -> str:
    """The class corrected by the neighbours: `before` and `after` are their classes, "" at the ends of a sentence."""
    if kind == "S":
        return _mark(low, before, after, word_before)
    if kind == "N":
        return _noun(low, before, after, word_before)
    if kind == "A":
        return _adjective(low, before, after)
    if low in ("her", "his", "'er", "'is"):
        return "O" if after in _GROUP or (after in ("V", "D", "B") and low == "his") else "R"
    if low == "that":
        return "D" if after in ("N", "A") and before in ("I", "V", "", ".", "C") else "W"
    if low in ("these", "those", "this"):
        return "D" if after in _GROUP or after in ("D", "V") else "R"
    if kind == "R" and low == "others" and before in _OPENS:
        return "N"
    if kind == "D" and low in PRONOUNS and after not in _GROUP and after not in ("D", "O", "B", "V"):
        return "R"
    if kind == "V" and (before in _OPENS or before == "A") and word_before not in INDEFINITE:
        if after in ("N", "A", "P") and low.endswith(("ed", "ing", "en")):
            return "A"  # the wounded man
        participle = low.endswith(("ed", "ing", "en")) and after not in ("D", "O", "R")
        return "N" if participle or after in ("", ".", "I") else kind
    return kind


def _mark(low: str, before: str, after: str, word_before: str) -> str:
    """A possessive mark, a short "is", or a quote mark."""
    if low in ("'", "’"):
        return "S" if before in ("N", "P") and word_before.endswith("s") and after in _GROUP else "."
    if word_before in _BEFORE_IS or before not in ("N", "P", "A", "R") or word_before in PERSONAL:
        return "V"
    return "V" if after in ("D", "O", "B", "R", "V", "I") else "S"


def _adjective(low: str, before: str, after: str) -> str:
    """The poor, the commanding general: an adjective with no noun behind it is one."""
    if low in KNOWN_NOUNS and (before in _OPENS or before == "A") and after not in ("N", "A", "P"):
        return "N"
    alone = after not in _GROUP and after not in ("V", "C", ".", "D")
    return "N" if alone and before in _OPENS and low not in ("other", "own") else "A"


def _noun(low: str, before: str, after: str, word_before: str) -> str:
    """A noun, or a verb or participle that no list knows."""
    if before in ("N", "P", "R", "W") and (low in VERBS and word_before not in POSSESSIVE):
        return "V"
    if low in KNOWN_NOUNS:
        return "N"
    if low.endswith("ing"):
        if after in ("A", "N", "P") and (before in _OPENS or before in ("A", "B")):
            return "A"  # an interesting old place
        if before in ("N", "P") and after in _AFTER_VERB:
            return "V"  # an angel pointing upward
    elif low.endswith("s") and before in ("N", "P") and after in _AFTER_VERB and singular(low) not in KNOWN_NOUNS:
        return "V"  # a brook glides through it
    if word_before in _SUBJECTS or (word_before in _BEFORE_VERB and after not in (".", "C")):
        return "V" if before in ("R", "V", "W") else "N"
    return "V" if word_before == "to" and singular(low) == low else "N"


def _names(document: Document, low: Sequence[str]) -> list[bool]:
    """Which words are names by their capital letter, which at the start of a sentence says nothing by itself."""
    words = document.words
    fresh = _fresh(document)
    inside: set[str] = set()
    small: set[str] = set()
    for i, word in enumerate(words):
        if word[:1].islower():
            small.add(word)
        elif word[:1].isupper() and not fresh[i]:
            inside.add(low[i])
    names = []
    for i, word in enumerate(words):
        if not word[:1].isupper() or word == "I" or (low[i] in _NEVER_NAMES and word != "US"):
            names.append(False)
        elif not fresh[i]:
            names.append(True)
        elif low[i] in MALE_NAMES or low[i] in FEMALE_NAMES or low[i] in PLACE_NAMES:
            names.append(low[i] not in small or low[i] in inside)
        elif low[i] in TITLES:
            names.append(i + 1 < len(words) and words[i + 1][:1].isupper())
        elif low[i] in inside:
            names.append(low[i] not in small)
        else:
            open_class = _alone(low[i], False) == "N" and singular(low[i]) == low[i] and low[i] not in KNOWN_NOUNS
            names.append(open_class and low[i] not in small and not low[i].endswith("ing"))
    return names


def _fresh(document: Document) -> list[bool]:
    """Words at which a capital letter is expected: behind the end of a sentence, a quote mark or a colon."""
    fresh = [False] * len(document.words)
    starts = set(document.sentences)
    begins = True
    for i, word in enumerate(document.words):
        begins = begins or i in starts
        fresh[i] = begins
        if is_punctuation(word):
            begins = begins or word not in (",", "-", "'", "’", ")", "”", "''", "_", "*", "&")
        else:
            begins = False
    return fresh
