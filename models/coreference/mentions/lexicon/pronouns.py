"""Pronouns: plain form, person, gender, number, and how they are used.

>>> PRONOUNS["himself"]
Pronoun(form='he', person='third', gender='male', number='singular', animacy='animate', use='reflexive')
>>> PRONOUNS["their"].form, PRONOUNS["their"].use
('they', 'possessive')
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from netclust.models.coreference.mentions.lexicon.facts import Animacy, Gender, Number

__all__ = ["INDEFINITE", "PERSONAL", "POSSESSIVE", "PRONOUNS", "TWO_WORD_PRONOUNS", "Person", "Pronoun", "Use"]

Person = Literal["first", "second", "third", "none"]
Use = Literal["subject", "object", "possessive", "reflexive", "relative", "demonstrative", "indefinite", "other"]


class Pronoun(NamedTuple):
    """What a pronoun says of what it stands for."""

    form: str
    person: Person
    gender: Gender
    number: Number
    animacy: Animacy
    use: Use


_Known = tuple[str, Person, Gender, Number, Animacy]

_I: _Known = ("i", "first", "unknown", "singular", "animate")
_WE: _Known = ("we", "first", "unknown", "plural", "animate")
_YOU: _Known = ("you", "second", "unknown", "unknown", "animate")
_THOU: _Known = ("you", "second", "unknown", "singular", "animate")
_HE: _Known = ("he", "third", "male", "singular", "animate")
_SHE: _Known = ("she", "third", "female", "singular", "animate")
_IT: _Known = ("it", "third", "neutral", "singular", "inanimate")
_THEY: _Known = ("they", "third", "unknown", "plural", "unknown")
_WHO: _Known = ("who", "third", "unknown", "unknown", "animate")

_ROWS: tuple[tuple[str, _Known, Use], ...] = (
    ("i", _I, "subject"),
    ("me", _I, "object"),
    ("my mine", _I, "possessive"),
    ("myself meself", _I, "reflexive"),
    ("we", _WE, "subject"),
    ("us", _WE, "object"),
    ("our ours", _WE, "possessive"),
    ("ourselves ourself", _WE, "reflexive"),
    ("you ye yer yeh ya yuh y'all youse", _YOU, "subject"),
    ("your yours yourn", _YOU, "possessive"),
    ("yourself yerself", _YOU, "reflexive"),
    ("yourselves", ("you", "second", "unknown", "plural", "animate"), "reflexive"),
    ("thou", _THOU, "subject"),
    ("thee", _THOU, "object"),
    ("thy thine", _THOU, "possessive"),
    ("thyself", _THOU, "reflexive"),
    ("he 'e ’e", _HE, "subject"),
    ("him 'im ’im", _HE, "object"),
    ("his 'is hisn", _HE, "possessive"),
    ("himself hisself hissel", _HE, "reflexive"),
    ("she", _SHE, "subject"),
    ("her", _SHE, "object"),
    ("hers 'er hern", _SHE, "possessive"),
    ("herself", _SHE, "reflexive"),
    ("it 't ’t", _IT, "subject"),
    ("its", _IT, "possessive"),
    ("itself", _IT, "reflexive"),
    ("they", _THEY, "subject"),
    ("them 'em ’em", _THEY, "object"),
    ("their theirs", _THEY, "possessive"),
    ("themselves themself theirselves", _THEY, "reflexive"),
    ("who whom whoever whosoever whomsoever", _WHO, "relative"),
    ("whose", ("who", "third", "unknown", "unknown", "unknown"), "relative"),
    ("which whichever", ("which", "third", "unknown", "unknown", "inanimate"), "relative"),
    ("what whatever whatsoever", ("what", "third", "neutral", "singular", "inanimate"), "relative"),
    ("there here", ("there", "third", "neutral", "singular", "inanimate"), "other"),
    ("oneself", ("one", "third", "unknown", "singular", "unknown"), "indefinite"),
)
# Words whose plain form is their own: person is the third.
_OWN_FORMS: tuple[tuple[str, Gender, Number, Animacy, Use], ...] = (
    ("this that", "unknown", "singular", "unknown", "demonstrative"),
    ("these those", "unknown", "plural", "unknown", "demonstrative"),
    ("everybody everyone somebody someone anybody anyone nobody", "unknown", "singular", "animate", "indefinite"),
    ("everything something anything nothing", "neutral", "singular", "inanimate", "indefinite"),
    ("one another none each either neither", "unknown", "singular", "unknown", "indefinite"),
    ("others both many several few all some", "unknown", "plural", "unknown", "indefinite"),
)

PRONOUNS = {word: Pronoun(*known, use) for words, known, use in _ROWS for word in words.split()} | {
    word: Pronoun(word, "third", gender, number, animacy, use)
    for words, gender, number, animacy, use in _OWN_FORMS
    for word in words.split()
}
PERSONAL = frozenset(
    word for word, known in PRONOUNS.items() if known.use in ("subject", "object", "possessive", "reflexive")
)
POSSESSIVE = frozenset({"my", "our", "your", "thy", "his", "her", "its", "their", "'is", "'er", "whose"})
INDEFINITE = frozenset(word for word, known in PRONOUNS.items() if known.use == "indefinite")
TWO_WORD_PRONOUNS = frozenset({"each other", "one another"}) | {
    f"{first} {second}" for first in ("no", "every", "some", "any") for second in ("one", "body")
}
