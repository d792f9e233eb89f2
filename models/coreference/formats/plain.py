"""A text of one's own, cut into words and sentences the way that the corpora of coreference are.

Words are cut as in the Penn Treebank (Marcus and others, Computational Linguistics 1993): punctuation apart, `'s` and
`n't` apart, the full stop of an abbreviation kept. Characters stay as they are, quotes too. Sentences end after a full
stop and never run past an empty line. Scripts without spaces: Han and kana are cut character by character, others not.

>>> words_of("Mr. Lee can't find Ann's dog, \\"Rex\\".")
['Mr.', 'Lee', 'ca', "n't", 'find', 'Ann', "'s", 'dog', ',', '"', 'Rex', '"', '.']
>>> plain_document("Ann left. Dr. Poe stayed.\\n\\nThe end", "letter").sentences
(0, 3, 7, 9)
"""

from __future__ import annotations

import re

from netclust.errors import InputError
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.formats.sentences import sentence_starts

__all__ = ["ABBREVIATIONS", "plain_document", "words_of"]

ABBREVIATIONS = (
    *("mr", "mrs", "ms", "messrs", "mme", "mlle", "dr", "prof", "st", "rev", "hon", "esq", "jr", "sr", "capt", "col"),
    *("gen", "lt", "maj", "sgt", "adm", "gov", "sen", "rep", "pres", "mt", "ave", "blvd", "rd", "inc", "ltd", "corp"),
    *("co", "bros", "vs", "etc", "cf", "al", "fig", "no", "vol", "pp", "jan", "feb", "mar", "apr", "jun", "jul", "aug"),
    *("sep", "sept", "oct", "nov", "dec"),
)
"""Words that keep their full stop, in small letters. Those that are words themselves (no, mar) do so before a digit."""

_ONLY_BEFORE_DIGITS = frozenset(("no", "fig", "mar", "pp", "al", "co", "rep", "vol"))
_ALWAYS = "|".join(a for a in ABBREVIATIONS if a not in _ONLY_BEFORE_DIGITS)
_BEFORE_DIGITS = "|".join(sorted(_ONLY_BEFORE_DIGITS))
# Python does not count signs that combine with a letter among the characters of words, so the scripts that need them
# are named: marks, Hebrew and Arabic points, the scripts of India and South-East Asia (but not their full stops).
_SIGNS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0900-\u0963\u0966-\u109f\u1780-\u17d3\u200c\u200d"
)
_LETTER = rf"(?:[^\W_]|[{_SIGNS}])"
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_APOSTROPHE = "['\u2019]"
_TOKEN = re.compile(
    rf"""
      (?:https?://|www\.)[^\s<>"]*[^\s<>".,;:!?'\u2019)\]]          # addresses
    | [\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+
    | (?<![^\W_])(?:{_ALWAYS})\.(?![^\W_])                            # Mr.
    | (?<![^\W_])(?:{_BEFORE_DIGITS})\.(?=\s*[0-9])                   # No. 7
    | (?<![^\W_])(?:[^\W\d_]\.){{2,}}                                 # U.S., p.m.
    | (?<![^\W_])(?!I\.)[^\W\d_]\.(?=\s+[^\W\d_])(?-i:(?<=[A-Z]\.))  # the J. of J. Smith
    | [0-9]+(?:[.,:/][0-9]+)+                                         # 3,000.50 and 10:30
    | [{_HAN}]
    | (?:(?![{_HAN}]){_LETTER}|_)+(?:(?:{_APOSTROPHE}|[-\u2010\u2011&])(?:(?![{_HAN}]){_LETTER})+)*
    | \.{{2,}} | -{{2,}} | `` | ''
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CLITIC = re.compile(rf"(?:n{_APOSTROPHE}t|{_APOSTROPHE}(?:s|m|d|re|ve|ll))\Z", re.IGNORECASE)
_CLITIC_LENGTH = 3
_CANNOT = re.compile(r"(can)(not)", re.IGNORECASE)
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n\s*")


def words_of(text: str) -> list[str]:
    """The words and punctuation marks of a text."""
    words: list[str] = []
    for token in _TOKEN.findall(text):
        cannot = _CANNOT.fullmatch(token)
        words += cannot.groups() if cannot is not None else _uncontracted(token)
    return words


def plain_document(text: str, name: str = "text") -> Document:
    """A text as a document without mentions. An empty line ends a paragraph, and with it a sentence."""
    words: list[str] = []
    starts = [0]
    for paragraph in _PARAGRAPHS.split(text.replace("\r\n", "\n").strip()):
        found = words_of(paragraph)
        starts += [len(words) + start for start in sentence_starts(found)[1:]]
        words += found
    if not words:
        raise InputError(f"{name}: no words; a text is needed")
    return Document(name, tuple(words), tuple(starts))


def _uncontracted(token: str) -> list[str]:
    """A word and what is contracted with it, which may be several: I'd've."""
    end = len(token)
    clitics: list[str] = []
    while (clitic := _CLITIC.search(token, max(1, end - _CLITIC_LENGTH), end)) is not None:
        clitics.append(clitic[0])
        end = clitic.start()
    return [token[:end], *reversed(clitics)]
