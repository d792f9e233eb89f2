"""What words may be: tags by how often a treebank has them; rare and unknown words also by how they are written.

>>> from netclust.models.parsing.syntax import Tree
>>> seen = [("the", "DT")] * 9 + [("tower", "NN"), ("slowly", "RB"), ("badly", "RB"), ("Rome", "NNP")]
>>> lexicon = Lexicon.of_trees([Tree("S", tuple(Tree(tag, word=word) for word, tag in seen))])
>>> signature("Oslo"), signature("oddly"), signature("1,200")
('<Aa>', '<a ly>', '<0>')
>>> likely = lexicon.log_likelihoods(["the", "oddly"])
>>> lexicon.tags, [[round(float(np.exp(value)), 3) for value in row] for row in likely]
(('DT', 'NN', 'NNP', 'RB'), [[1.0, 0.0, 0.0, 0.0], [0.0, 0.083, 0.083, 0.417]])

P(word | tag) is P(tag | word) P(word) / P(tag), with P(tag | word) = (count + P(tag | signature)) / (count of the word
+ 1) for words seen at most 5 times; signatures are counted on the words seen once, or on all where there are none.

D. Klein and C. D. Manning, "Accurate unlexicalized parsing", ACL 2003.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.parsing.syntax import Tree, syntax_spans

__all__ = ["Lexicon", "signature"]

Counts = dict[str, Annotated[dict[str, Annotated[int, msgspec.Meta(ge=1, le=1 << 50)]], msgspec.Meta(min_length=1)]]
RARE = 5
"""Words seen so often or less may have tags that they were not seen with."""
_ENDINGS = ("ness", "tion", "ment", "able", "ing", "ous", "est", "ity", "ed", "ly", "er", "al", "es", "s", "y")


def signature(word: str) -> str:
    """How a word is written: capitals, digits, hyphens, its ending."""
    if any(c.isdigit() for c in word):
        return "<0-a>" if any(c.isalpha() for c in word) else "<0>"
    if not any(c.isalpha() for c in word):
        return "<mark>"
    shape = "AA" if word.isupper() and len(word) > 1 else "Aa" if word[0].isupper() else "a"
    if "-" in word:
        shape += "-"
    ending = next((end for end in _ENDINGS if len(word) > len(end) + 2 and word.lower().endswith(end)), "")
    return f"<{shape} {ending}>" if ending else f"<{shape}>"


class Lexicon(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """How often words, and signatures of rare words, were seen with which tags."""

    words: Annotated[Counts, msgspec.Meta(min_length=1)]
    signatures: Annotated[Counts, msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        """Refuse signatures of tags that no word has (a model file may hold anything)."""
        if unknown := {tag for tags in self.signatures.values() for tag in tags} - set(self.tags):
            raise InputError(f"a signature has a tag that no word has: {sanitize(min(unknown))}")

    @classmethod
    def of_trees(cls, trees: Iterable[Tree]) -> Lexicon:
        """Count in a treebank."""
        words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for tree in trees:
            for node, _, _ in syntax_spans(tree):
                if node.word is not None:
                    words[node.word][node.label] += 1
        once = {word for word, tags in words.items() if sum(tags.values()) == 1} or set(words)
        signatures: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word in once:
            signatures[signature(word)].update(words[word].keys())
        return cls(_plain(words), _plain(signatures))

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags, in the order of columns."""
        return tuple(sorted({tag for tags in self.words.values() for tag in tags}))

    @cached_property
    def _column(self) -> dict[str, int]:
        return {tag: at for at, tag in enumerate(self.tags)}

    @cached_property
    def _of_tags(self) -> NDArray[np.float64]:
        """How often every tag was seen."""
        return np.asarray(sum((self._row(tags) for tags in self.words.values()), np.zeros(len(self.tags))))

    @cached_property
    def _of_rare(self) -> NDArray[np.float64]:
        """P(tag | rare word)."""
        total = np.asarray(sum((self._row(tags) for tags in self.signatures.values()), np.zeros(len(self.tags))))
        return np.asarray(total / total.sum())

    def count(self, word: str) -> int:
        """How often a word was seen."""
        return sum(self.words.get(word, {}).values())

    def token(self, word: str) -> str:
        """The word, if it was seen twice; else its signature."""
        return word if self.count(word) >= 2 else signature(word)

    def log_likelihoods(self, words: Sequence[str]) -> NDArray[np.float64]:
        """log P(word | tag), a row a word and a column a tag; -inf: not this tag."""
        found = np.empty((len(words), len(self.tags)))
        for row, word in zip(found, words, strict=True):
            seen = self._row(self.words.get(word, {}))
            count = seen.sum()
            share = seen / count if count > RARE else (seen + self._by_signature(word)) / (count + 1)
            row[:] = share * max(count, 1) / self._of_tags
        with np.errstate(divide="ignore"):
            return np.log(found)

    def _by_signature(self, word: str) -> NDArray[np.float64]:
        """P(tag | signature), between what was seen and what rare words are at all."""
        seen = self._row(self.signatures.get(signature(word), {}))
        return np.asarray((seen + self._of_rare) / (seen.sum() + 1))

    def _row(self, tags: dict[str, int]) -> NDArray[np.float64]:
        row = np.zeros(len(self.tags))
        for tag, count in tags.items():
            row[self._column[tag]] = count
        return row


def _plain(counts: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(counts[name].items())) for name in sorted(counts)}
