"""What is known of a mention before it is compared with others."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Animacy", "Gender", "Kind", "MentionFacts", "Number"]

Kind = Literal["pronoun", "name", "nominal"]
Gender = Literal["male", "female", "neutral", "unknown"]
Number = Literal["singular", "plural", "unknown"]
Animacy = Literal["animate", "inanimate", "unknown"]


class MentionFacts(NamedTuple):
    """A mention described. `head` is the place of its head among the words of the document.

    `form` says more than `kind`: the plain form of a pronoun ("he" for him, his and himself; "i", "you", "who", ...),
    how a nominal begins ("definite", "indefinite", "demonstrative", "possessive", "quantified", "bare"), and whether a
    name has a title ("titled", "name").
    """

    start: int
    end: int
    sentence: int
    head: int
    kind: Kind
    form: str
    gender: Gender
    number: Number
    animacy: Animacy
    person: Literal["first", "second", "third", "none"]
    speaker: str
    quoted: bool
    named: str
