"""How alike a question and a candidate answer are, and two candidates: the built-in features of text ranking.

>>> texts = AnswerFeatures.fit([("how are caves formed ?", ("Caves are formed by water .", "Ice is cold ."))])
>>> found = texts.items("how are caves formed ?", ("Caves are formed by water .", "Ice is cold ."))
>>> names = AnswerFeatures.NAMES
>>> found[:, names.index("subsequence")].round(2).tolist(), found[:, names.index("jaccard")].round(2).tolist()
([1.0, 0.0], [0.67, 0.0])

Cosines are of TF-IDF vectors (`TextPairs`: words, stems, letters), whose frequencies are those of the training texts.
The others are of stems without the commonest words: longest common substring and subsequence, greedy string tiles,
Jaccard, containment, and the same weighted by how rare a word is (an IR score). They need no parser and no model of a
language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.item_sets import ItemTable
from netclust.foundation import container
from netclust.models.clustering.stemming import stem
from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
from netclust.structures.pairs import PairFeatures

__all__ = ["AnswerFeatures"]

Matrix = NDArray[np.float64]
SPEC = TextFeatures(
    fields=("text",), words=(1, 2), characters=(3,), stem=True, sublinear=True, missing=False, constant=False
)
"""Without a constant: a forest without pairs is never wrong, so its weight would fall until nothing is joined."""
_COSINES = tuple(f"{name} cosine" for name in ("words", "word pairs", "stems", "stem pairs", "letters"))
_WORD = re.compile(r"\w+")
_COMMON = """
a about an and are as at be been by can could did do does for from get had has have he her his how i if in into is it
its many me much my of on or our s she should so t than that the their them then there these they this to was we
were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_COMMON.split())
_STEMMED, _STEMS = "text stemmed 1-grams", 2  # which of the vectors
TILE = 2
"""The shortest string tile, in words."""


@dataclass(frozen=True, eq=False)
class AnswerFeatures:
    """What was learned about texts, and makes features of a question's candidates and of pairs of them."""

    NAMES: ClassVar[tuple[str, ...]] = (
        *_COSINES, "substring", "subsequence", "tiles", "jaccard", "containment", "answer containment",
        "all words containment", "digits", "length", "rare containment", "rare overlap",
    )  # fmt: skip
    text: TextPairs

    @classmethod
    def fit(cls, queries: Sequence[tuple[str, Sequence[str]]]) -> AnswerFeatures:
        """Count words in the training questions and answers."""
        return cls(TextPairs.fit(SPEC, [_table([question, *answers]) for question, answers in queries]))

    @property
    def names(self) -> tuple[str, ...]:
        """What the features of a candidate are, in order."""
        return self.NAMES

    @property
    def pair_names(self) -> tuple[str, ...]:
        """What the features of two candidates are."""
        return self.text.names

    def items(self, question: str, answers: Sequence[str]) -> Matrix:
        """The features of every candidate with its question, [answers, features]."""
        vectors = self.text.vectors(_table([question, *answers]))
        cosines = [np.asarray((v[1:] @ v[:1].T).toarray(), np.float64).ravel() for v in vectors]
        asked, stems = _Words(question), vectors[_STEMS]
        rest = [
            [*_overlap(asked, _Words(answer)), *self._rare(stems[0].indices, stems[n + 1].indices)]
            for n, answer in enumerate(answers)
        ]
        return np.column_stack(
            [*cosines, np.array(rest, np.float64).reshape(len(answers), len(self.NAMES) - len(cosines))]
        )

    def pairs(self, answers: Sequence[str]) -> PairFeatures:
        """The features of pairs of candidates."""
        return self.text.build(_table(answers))

    def arrays(self) -> container.Arrays:
        """What a model file keeps."""
        return self.text.arrays()

    @classmethod
    def from_arrays(cls, arrays: container.Arrays, where: str) -> AnswerFeatures:
        """The opposite of `arrays`."""
        return cls(TextPairs.from_arrays(SPEC, arrays, where))

    def _rare(self, asked: NDArray[np.int32], given: NDArray[np.int32]) -> tuple[float, float]:
        """What share of the question's stems, weighted by rarity, an answer has; the same where answers are short."""
        idf = self.text.idf[_STEMMED]
        shared = float(idf[np.intersect1d(asked, given)].sum())
        whole = float(idf[asked].sum())
        return shared / max(whole, 1e-9), shared / (whole + float(np.sqrt(idf[given].sum())) + 1e-9)


class _Words:
    """A text's words, and the stems of those that are not too common."""

    def __init__(self, text: str) -> None:
        self.words = _WORD.findall(text.lower())
        self.stems = [stem(word) for word in self.words if word not in STOP_WORDS]


def _overlap(asked: _Words, given: _Words) -> list[float]:
    from netclust.models.ranking.token_overlap_kernels import common_sequences, tiled_words

    a, b = _numbered(asked.stems, given.stems)
    substring, subsequence = common_sequences(a, b)
    size = max(len(a), 1)
    A, B, words = set(asked.stems), set(given.stems), set(asked.words)
    return [
        substring / size,
        subsequence / size,
        tiled_words(a, b, TILE) / size,
        len(A & B) / max(len(A | B), 1),
        len(A & B) / max(len(A), 1),
        len(A & B) / max(len(B), 1),
        len(words & set(given.words)) / max(len(words), 1),
        float(any(word.isdigit() for word in given.words)),
        float(np.log1p(len(given.words))),
    ]


def _numbered(a: Sequence[str], b: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    numbers: dict[str, int] = {}
    first = np.array([numbers.setdefault(word, len(numbers)) for word in a], np.int64)
    return first, np.array([numbers.setdefault(word, len(numbers)) for word in b], np.int64)


def _table(texts: Sequence[str]) -> ItemTable:
    return ItemTable(("text",), (tuple(texts),), tuple(map(str, range(len(texts)))))
