"""Features of the mention pairs of a document: templates, hashed.

Every pair of a mention with one of the mentions before it (at most `distance` back) gets:

- relations of the two: same text, same head, words in common, agreement of gender, number, animacy and person, how far
  apart, nested, in apposition, same speaker, in direct speech, how many fitting mentions are nearer; each alone, with
  the form of the later mention (a pronoun's plain form, how a nominal begins, ...), and with the forms of both;
- attributes of either: head, first and last word, neighbours, length, how often its text occurs, ...; each alone and
  with the forms of both;
- pairs of words: both heads, both neighbours, ...

A template needs what it is made of: without a column of speakers there is none about speakers (`void_templates`).

>>> from netclust.models.coreference.formats.documents import Document, Span
>>> from netclust.models.coreference.mentions.describing import describe_mentions
>>> words = tuple("Ann saw the old dog . She liked the dog .".split())
>>> document = Document("story", words, (0, 6, 11))
>>> spans = [Span(0, 1), Span(2, 5), Span(6, 7), Span(8, 10)]
>>> pairs = extract_features(document, describe_mentions(document, spans), FeatureSettings(bits=18, distance=2))
>>> pairs.items, pairs.index.left.tolist(), pairs.index.right.tolist()
(4, [0, 0, 1, 1, 2], [1, 2, 2, 3, 3])
>>> void_templates([document])
('genre', 'named', 'pos', 'same speaker')

S. Martschat and M. Strube, "Latent structures for coreference resolution", TACL 3, 2015. E. Fernandes, C. dos Santos
and R. Milidiu, "Latent trees for coreference resolution", Computational Linguistics 40, 2014. K. Weinberger et al.,
"Feature hashing for large scale multitask learning", ICML 2009.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.mentions.lexicon.closed import ARTICLES, CONJUNCTIONS, DEMONSTRATIVES, PREPOSITIONS
from netclust.models.coreference.mentions.lexicon.facts import MentionFacts
from netclust.models.coreference.mentions.lexicon.names import TITLES
from netclust.models.coreference.mentions.lexicon.pronouns import POSSESSIVE
from netclust.structures.hashed_pairs import HashedPairs

if TYPE_CHECKING:
    from netclust.models.coreference.mention_pair_kernels import FeatureTemplates, Mentions

__all__ = ["ATTRIBUTES", "RELATIONS", "FeatureSettings", "extract_features", "void_templates"]

RELATIONS = (
    "constant",
    "same text",
    "same head",
    "words in common",
    "modifiers",
    "alias",
    "gender",
    "number",
    "animacy",
    "person",
    "sentences apart",
    "mentions apart",
    "nested",
    "apposition",
    "same speaker",
    "direct speech",
    "fitting mentions between",
    "nearest of its head",
)
"""In the order of the kernel's constants."""

ATTRIBUTES = (
    "kind",
    "form",
    "head",
    "first word",
    "last word",
    "word before",
    "word after",
    "gender",
    "number",
    "animacy",
    "length",
    "direct speech",
    "seen before",
    "frequency",
    "place in sentence",
    "named",
    "pos",
    "genre",
)
_LEXICAL = (
    ("head", "head"),
    ("head", "form"),
    ("form", "head"),
    ("word before", "word before"),
    ("word after", "word after"),
    ("head", "word after"),
    ("head", "word before"),
    ("first word", "first word"),
    ("last word", "head"),
    ("pos", "pos"),
    ("named", "named"),
)
_NEEDS = {"same speaker": "speakers", "named": "named", "pos": "pos", "genre": "genre"}

_CODES: dict[str, int] = {
    "unknown": 0,
    "male": 1,
    "female": 2,
    "neutral": 3,
    "singular": 1,
    "plural": 2,
    "animate": 1,
    "inanimate": 2,
    "none": 0,
    "first": 1,
    "second": 2,
    "third": 3,
    "pronoun": 0,
    "name": 1,
    "nominal": 2,
}
LEAST_BITS, MOST_BITS = 18, 24
MOST_DISTANCE = 1_000_000

_FUNCTION_WORDS = ARTICLES | CONJUNCTIONS | DEMONSTRATIVES | PREPOSITIONS | POSSESSIVE | {"'s", "’s"}


class FeatureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How pairs are described: 2^bits slots, candidates at most `distance` mentions back, `without` some templates."""

    bits: int = 20
    distance: int = 300
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        if not LEAST_BITS <= self.bits <= MOST_BITS:
            raise InputError(f"bits are {LEAST_BITS} to {MOST_BITS}, not {self.bits}")
        if not 1 <= self.distance <= MOST_DISTANCE:
            raise InputError(
                f"a mention needs candidates: distance must be at least 1 (and at most {MOST_DISTANCE:,}), not"
                f" {self.distance}"
            )
        if unknown := sorted(set(self.without) - {*RELATIONS, *ATTRIBUTES}):
            raise InputError(f"there is no template {unknown[0]!r}: {', '.join(sorted({*RELATIONS, *ATTRIBUTES}))}")

    @property
    def dimension(self) -> int:
        """How many slots there are."""
        return 1 << self.bits


def void_templates(documents: Iterable[Document]) -> tuple[str, ...]:
    """The templates that say nothing about documents without the columns that they need."""
    kept: set[str] = set()
    for document in documents:
        kept |= {name for name, column in _NEEDS.items() if getattr(document, column)}
    return tuple(sorted(set(_NEEDS) - kept))


def extract_features(document: Document, facts: Sequence[MentionFacts], settings: FeatureSettings) -> HashedPairs:
    """Extract the features of every mention with the mentions before it, in the order of `facts`."""
    from netclust.models.coreference.mention_pair_kernels import RELATION_COUNT, pair_slots

    templates = _templates(document, settings)
    n = len(facts)
    candidates = np.minimum(np.arange(n), settings.distance)
    starts = np.concatenate([[0], np.cumsum(candidates)]).astype(np.int64)
    at = np.zeros(starts[-1] + 1, np.int64)
    most = 3 * RELATION_COUNT + 4 * len(templates.unary) + len(templates.lexical)
    slots = np.empty(starts[-1] * most, np.uint32)
    filled = pair_slots(_mentions(document, facts), templates, settings.distance, at, slots) if n else 0
    return HashedPairs(n, settings.dimension, starts, at, slots[:filled].copy())


def _templates(document: Document, settings: FeatureSettings) -> FeatureTemplates:
    from netclust.models.coreference.mention_pair_kernels import FeatureTemplates

    void = {*void_templates([document]), *settings.without}
    number = {name: k for k, name in enumerate(ATTRIBUTES)}
    lexical = [(k, number[a], number[b]) for k, (a, b) in enumerate(_LEXICAL) if not {a, b} & void]
    return FeatureTemplates(
        np.array([name not in void for name in RELATIONS], np.uint8),
        np.array([k for name, k in number.items() if name not in void], np.int64),
        np.array(lexical, np.int64).reshape(-1, 3),
        64 - settings.bits,
    )


def _mentions(document: Document, facts: Sequence[MentionFacts]) -> Mentions:
    from netclust.models.coreference.mention_pair_kernels import Mentions

    lower = [word.lower() for word in document.words]
    meaningful = [[word for word in lower[m.start : m.end] if _carries_meaning(word)] for m in facts]
    texts = [" ".join(words) or lower[m.head] for words, m in zip(meaningful, facts, strict=True)]
    texts = [m.form if m.kind == "pronoun" else text for text, m in zip(texts, facts, strict=True)]
    # a title alone does not tell two people's names apart, nor make them one
    words = [sorted({_hash(word) for word in own if word not in TITLES or len(own) == 1}) for own in meaningful]
    words_at = np.concatenate([[0], np.cumsum([len(own) for own in words])]).astype(np.int64)

    def numbers(values: Iterable[int]) -> Any:
        return np.fromiter(values, np.int64, len(facts))

    def hashes(values: Iterable[str]) -> Any:
        return np.fromiter((_hash(value) if value else 0 for value in values), np.uint64, len(facts))

    return Mentions(
        attribute=_attributes(document, facts, texts, lower),
        form=hashes(_form(m) for m in facts),
        text=hashes(texts),
        head=hashes(lower[m.head] for m in facts),
        speaker=hashes(m.speaker for m in facts),
        words_at=words_at,
        words=np.array([word for own in words for word in own], np.uint64),
        start=numbers(m.start for m in facts),
        end=numbers(m.end for m in facts),
        sentence=numbers(m.sentence for m in facts),
        kind=numbers(_CODES[m.kind] for m in facts),
        gender=numbers(_CODES[m.gender] for m in facts),
        number=numbers(_CODES[m.number] for m in facts),
        animacy=numbers(_CODES[m.animacy] for m in facts),
        person=numbers(_CODES[m.person] for m in facts),
        quoted=numbers(int(m.quoted) for m in facts),
        comma=numbers(int(m.end < len(lower) and lower[m.end] == ",") for m in facts),
    )


def _attributes(document: Document, facts: Sequence[MentionFacts], texts: Sequence[str], lower: list[str]) -> Any:
    """[mentions, ATTRIBUTES] hashes; 0 where there is nothing."""
    often, seen, heads = Counter(texts), set[str](), set[str]()
    found = np.zeros((len(facts), len(ATTRIBUTES)), np.uint64)
    in_sentence: Counter[int] = Counter()
    for k, (m, text) in enumerate(zip(facts, texts, strict=True)):
        head = lower[m.head]
        in_sentence[m.sentence] += 1
        values = {
            "kind": m.kind,
            "form": _form(m),
            "head": head,
            "first word": lower[m.start],
            "last word": lower[m.end - 1],
            "word before": lower[m.start - 1] if m.start else "^",
            "word after": lower[m.end] if m.end < len(lower) else "$",
            "gender": m.gender,
            "number": m.number,
            "animacy": m.animacy,
            "length": str(min(m.end - m.start, 8)),
            "direct speech": "in" if m.quoted else "out",
            "seen before": f"{text in seen} {head in heads}",
            "frequency": str(often[text].bit_length()),
            "place in sentence": str(min(in_sentence[m.sentence], 5)),
            "named": m.named,
            "pos": document.pos[m.head] if document.pos else "",
            "genre": document.genre,
        }
        seen.add(text)
        heads.add(head)
        found[k] = [_hash(values[name]) if values[name] else 0 for name in ATTRIBUTES]
    return found


def _form(m: MentionFacts) -> str:
    return f"{m.kind} {m.form}"


def _carries_meaning(word: str) -> bool:
    return word not in _FUNCTION_WORDS and any(map(str.isalnum, word))


@lru_cache(maxsize=1 << 17)
def _hash(text: str) -> int:
    """64 bits of a text, never 0."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
