"""Porter's stemmer: words that differ in their English endings alone become one.

>>> [stem(word) for word in ("relational", "clusters", "clustering", "clustered", "happy")]
['relat', 'cluster', 'cluster', 'cluster', 'happi']

Reference: M. F. Porter, "An algorithm for suffix stripping", Program 14 (3), 1980, as published there.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["stem"]

_CONSONANT = "(?:[^aeiouy]|(?<![^aeiou])y)"  # y is a consonant at the start and behind a vowel
_VOWEL = "(?:[aeiou]|(?<=[^aeiou])y)"
_MEASURE = re.compile(f"{_VOWEL}+{_CONSONANT}+")
_HAS_VOWEL = re.compile(_VOWEL)
_DOUBLE = re.compile(r"([^aeiouy])\1$")
_SHORT = re.compile(f"{_CONSONANT}{_VOWEL}(?:[^aeiouwxy])$")  # ends consonant, vowel, consonant: *o

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = dict.fromkeys(
    ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous",
     "ive", "ize"),
    "",
)  # fmt: skip
_STEP_4 |= {"sion": "s", "tion": "t"}  # "ion" goes behind s and t alone


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a lower-case word; what is not made of a to z, or is shorter than three letters, stays as it is."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _HAS_VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, _STEP_2, above=0)
    word = _replace(word, _STEP_3, above=0)
    word = _replace(word, _STEP_4, above=1)
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _SHORT.search(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _measure(part: str) -> int:
    """How often a vowel sequence is followed by a consonant sequence."""
    return len(_MEASURE.findall(part))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word:
            return _mended(rest) if _HAS_VOWEL.search(rest) else word
    return word


def _mended(rest: str) -> str:
    """What is left of "-ed" and "-ing", with the end that the verb had before."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _DOUBLE.search(rest) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _SHORT.search(rest) else rest


def _replace(word: str, endings: dict[str, str], above: int) -> str:
    """The longest ending that fits is replaced, if what is before it is long enough."""
    for size in range(min(7, len(word)), 1, -1):
        ending = word[-size:]
        if ending in endings:
            kept = endings[ending]
            rest = word[:-size]
            # Of "sion" and "tion" the first letter belongs to the stem.
            measured = rest + kept if endings is _STEP_4 and kept else rest
            return rest + kept if _measure(measured) > above else word
    return word
