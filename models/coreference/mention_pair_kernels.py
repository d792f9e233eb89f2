"""Features of mention pairs, hashed: relations of two mentions, attributes of each, and their conjunctions.

A feature is a chain of numbers (which template, which values); its slot is the chain's hash. The templates that are
emitted are tables of numbers made by the caller, so that those of absent columns cost nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inlined, kernel

(
    CONSTANT,
    STRING,
    HEAD,
    WORDS,
    MODIFIERS,
    ALIAS,
    GENDER,
    NUMBER,
    ANIMACY,
    PERSON,
    SENTENCES,
    MENTIONS,
    NESTED,
    APPOSITION,
    SPEAKER,
    QUOTES,
    COMPATIBLE,
    NEAREST,
) = range(18)
RELATION_COUNT = 18

UNARY_LEFT, UNARY_RIGHT, LEXICAL = 100, 200, 300  # where the numbers of other templates start
ALONE, WITH_RIGHT, WITH_BOTH = 1, 2, 3

KIND_PRONOUN, KIND_NAME, KIND_NOMINAL = 0, 1, 2


class Mentions(NamedTuple):
    """The mentions of a document, in order. Codes: 0 is unknown; hashes: 0 is absent."""

    attribute: NDArray[np.uint64]  # [n, A] hashes
    form: NDArray[np.uint64]  # what conjunctions are made with
    text: NDArray[np.uint64]
    head: NDArray[np.uint64]
    speaker: NDArray[np.uint64]
    words_at: NDArray[np.int64]
    words: NDArray[np.uint64]  # of every mention, sorted: those that carry meaning
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    sentence: NDArray[np.int64]
    kind: NDArray[np.int64]
    gender: NDArray[np.int64]
    number: NDArray[np.int64]
    animacy: NDArray[np.int64]
    person: NDArray[np.int64]
    quoted: NDArray[np.int64]
    comma: NDArray[np.int64]  # whether the word after the mention is a comma


class FeatureTemplates(NamedTuple):
    """Which features there are."""

    relation: NDArray[np.uint8]  # [RELATION_COUNT] whether a relation is emitted
    unary: NDArray[np.int64]  # attributes, of the earlier and of the later mention
    lexical: NDArray[np.int64]  # [L, 3] the template's number, an attribute of the earlier, one of the later
    shift: int  # 64 - bits of a slot


@inlined
def _mix(a: Any, b: Any) -> Any:
    """Return one hash of two: the finaliser of splitmix64 over their sum, b turned so that the order matters."""
    x = a + (b ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD1342543DE82EF95)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def _bucket(n: Any) -> Any:
    """Return the bucket of n among 1, 2, 3, 4, then 5 to 8, 9 to 16, ...; 0 for 0."""
    if n <= 4:
        return n
    b = 5
    top = 8
    while n > top:
        top *= 2
        b += 1
    return b


@inlined
def _agreement(a: Any, b: Any) -> Any:
    """Return 0 if both are unknown, 1 if they agree, 2 if they do not, 3 if one is unknown."""
    if a == 0 and b == 0:
        return 0
    if a == 0 or b == 0:
        return 3
    return 1 if a == b else 2


@inlined
def _shared_words(m: Any, i: Any, j: Any) -> Any:
    """Return how many of the meaningful words two mentions share."""
    a, b = m.words_at[i], m.words_at[j]
    shared = 0
    while a < m.words_at[i + 1] and b < m.words_at[j + 1]:
        if m.words[a] == m.words[b]:
            shared += 1
            a += 1
            b += 1
        elif m.words[a] < m.words[b]:
            a += 1
        else:
            b += 1
    return shared


@inlined
def _fits(m: Any, i: Any, j: Any) -> Any:
    """Return whether nothing that is known speaks against one entity; I, you and the rest are told apart."""
    if _agreement(m.gender[i], m.gender[j]) == 2 or _agreement(m.number[i], m.number[j]) == 2:
        return False
    if _agreement(m.animacy[i], m.animacy[j]) == 2:
        return False
    if m.kind[i] == KIND_PRONOUN and m.kind[j] == KIND_PRONOUN and m.person[i] != m.person[j]:
        return m.quoted[i] != m.quoted[j]
    return not (m.start[i] <= m.start[j] and m.end[i] >= m.end[j])


@inlined
def _relate(m: Any, i: Any, j: Any, between: Any, nearest: Any, value: Any) -> None:
    """Fill value[t] with the value of relation t for the pair; 0 says nothing."""
    both_named = m.kind[i] != KIND_PRONOUN and m.kind[j] != KIND_PRONOUN
    value[CONSTANT] = 1
    value[STRING] = (1 if both_named else 2) if m.text[i] == m.text[j] else 0
    value[HEAD] = 1 if both_named and m.head[i] == m.head[j] else 0
    value[WORDS] = 0
    value[MODIFIERS] = 0
    value[ALIAS] = 0
    if both_named:
        left, right = m.words_at[i + 1] - m.words_at[i], m.words_at[j + 1] - m.words_at[j]
        shared = _shared_words(m, i, j)
        if shared > 0:
            if shared == left and shared == right:
                value[WORDS] = 1
            elif shared == right:
                value[WORDS] = 2
            elif shared == left:
                value[WORDS] = 3
            else:
                value[WORDS] = 4
            if m.kind[i] == KIND_NAME and m.kind[j] == KIND_NAME:
                value[ALIAS] = 1 + min(shared, 3)
        if m.head[i] == m.head[j]:
            value[MODIFIERS] = 1 if shared == right else 2  # the later one says nothing new, or does
    value[GENDER] = _agreement(m.gender[i], m.gender[j])
    value[NUMBER] = _agreement(m.number[i], m.number[j])
    value[ANIMACY] = _agreement(m.animacy[i], m.animacy[j])
    value[PERSON] = 1 + m.person[i] * 4 + m.person[j]
    value[SENTENCES] = 1 + _bucket(m.sentence[j] - m.sentence[i])
    value[MENTIONS] = _bucket(j - i)
    value[NESTED] = 0
    if m.start[i] <= m.start[j] and m.end[i] >= m.end[j]:
        value[NESTED] = 1
    elif m.start[j] < m.end[i]:
        value[NESTED] = 2
    value[APPOSITION] = 1 if m.comma[i] and m.end[i] + 1 == m.start[j] else 0
    value[SPEAKER] = 0
    if m.speaker[i] != 0 and m.speaker[j] != 0:
        value[SPEAKER] = 1 if m.speaker[i] == m.speaker[j] else 2
    value[QUOTES] = 1 + m.quoted[i] * 2 + m.quoted[j]
    value[COMPATIBLE] = 1 + _bucket(between) if between >= 0 else 1
    value[NEAREST] = nearest


@kernel
def pair_slots(m: Mentions, templates: FeatureTemplates, distance: Any, at: Any, slots: Any) -> Any:
    """Fill the slots of every pair, later mention by later mention, oldest candidate first; returns how many there are.

    `between` is how many fitting mentions are nearer than a fitting candidate (-1: it does not fit); `nearest` is 1 for
    the nearest candidate of the same head, 2 for the others of it.
    """
    n = len(m.start)
    value = np.zeros(RELATION_COUNT, np.int64)
    between = np.empty(min(distance, n) + 1, np.int64)
    nearest = np.empty(min(distance, n) + 1, np.int64)
    shift = np.uint64(templates.shift)
    row = 0
    filled = 0
    at[0] = 0
    for j in range(n):
        first = max(0, j - distance)
        seen = 0
        heads = 0
        for i in range(j - 1, first - 1, -1):
            between[i - first] = -1
            if _fits(m, i, j):
                between[i - first] = seen
                seen += 1
            nearest[i - first] = 0
            if m.kind[i] != KIND_PRONOUN and m.head[i] == m.head[j]:
                heads += 1
                nearest[i - first] = 1 if heads == 1 else 2
        right_form = m.form[j]
        for i in range(first, j):
            both_forms = _mix(m.form[i], right_form)
            _relate(m, i, j, between[i - first], nearest[i - first], value)
            for t in range(RELATION_COUNT):
                if value[t] == 0 or templates.relation[t] == 0:
                    continue
                feature = _mix(np.uint64(t + 1), np.uint64(value[t]))
                slots[filled] = _mix(feature, np.uint64(ALONE)) >> shift
                slots[filled + 1] = _mix(_mix(feature, np.uint64(WITH_RIGHT)), right_form) >> shift
                slots[filled + 2] = _mix(_mix(feature, np.uint64(WITH_BOTH)), both_forms) >> shift
                filled += 3
            for a in templates.unary:
                for side in range(2):
                    own = m.attribute[i if side == 0 else j, a]
                    if own == 0:
                        continue
                    feature = _mix(np.uint64((UNARY_LEFT if side == 0 else UNARY_RIGHT) + a), own)
                    slots[filled] = _mix(feature, np.uint64(ALONE)) >> shift
                    slots[filled + 1] = _mix(_mix(feature, np.uint64(WITH_BOTH)), both_forms) >> shift
                    filled += 2
            for t in range(len(templates.lexical)):
                left, right = m.attribute[i, templates.lexical[t, 1]], m.attribute[j, templates.lexical[t, 2]]
                if left != 0 and right != 0:
                    slots[filled] = _mix(_mix(np.uint64(LEXICAL + templates.lexical[t, 0]), left), right) >> shift
                    filled += 1
            row += 1
            at[row] = filled
    return filled
