"""Parsing as a structured task: x is a sentence, y and h are derivations, the loss is the share of wrong nodes.

The weights are, one after another: one a rule, one a root, one for the words' log P(word | tag), and for every feature
of spans one a label. The score of a tree is linear in them and adds up over its nodes, so CKY finds the best tree and
the most violating one exactly.

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
chapter 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.parsing.charts import ChartScores, best_derivation, best_pieces, violating_derivation, wrong_nodes
from netclust.models.parsing.grammar import RULE, SPLIT, START, SYMBOL, Derivation, Grammar
from netclust.models.parsing.syntax import Tree, syntax_words
from netclust.problems.base import Vector
from netclust.problems.sparse_features import SparseVector, in_full

__all__ = ["NO_TREE", "GrammarProblem", "Parse", "Sentence", "generative_weights"]

NO_TREE = np.zeros((0, 5), np.int64)
"""The derivation of what the grammar makes no tree of: everything is wrong in it."""
FRAGMENTS = "FRAG"
"""What a sentence is called that is no whole tree, above its pieces."""


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence's words with log P(word | tag) [n, tags of the grammar], and the features of its spans."""

    words: tuple[str, ...]
    likely: NDArray[np.float64]
    features: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Parse:
    """A tree of a sentence: its derivation (`NO_TREE` where the grammar has none), and how it is written."""

    rows: Derivation
    grammar: Grammar
    words: tuple[str, ...]
    given: Tree | None = None
    """The treebank's own tree."""
    pieces: tuple[Derivation, ...] = ()
    """Where no whole tree was found: trees of its parts."""

    @classmethod
    def of_tree(cls, grammar: Grammar, tree: Tree) -> Parse:
        """A tree of a treebank."""
        rows = grammar.derivation(tree)
        return cls(NO_TREE if rows is None else rows, grammar, syntax_words(tree), tree)

    @property
    def tree(self) -> Tree:
        """The tree as a treebank has it; of pieces, they are put under one node."""
        if self.given is not None:
            return self.given
        if len(self.rows):
            return self.grammar.tree(self.rows, self.words)
        return Tree(FRAGMENTS, tuple(self.grammar.tree(h, self.words) for h in self.pieces))


@dataclass(frozen=True, eq=False)
class GrammarProblem:
    """What structured learners need of a grammar with so many features of spans."""

    grammar: Grammar
    span_features: int = 0

    @property
    def dimension(self) -> int:
        """How many weights there are."""
        return self.span_at + self.span_features * len(self.grammar.labels.names)

    @property
    def span_at(self) -> int:
        """Where the weights of spans begin: behind those of rules, roots and words."""
        return len(self.grammar.rules) + len(self.grammar.roots) + 1

    def scores(self, x: Sentence, w: Vector) -> ChartScores:
        """What the nodes of the sentence's trees score."""
        from netclust.models.parsing.cky_kernels import sum_span_features

        grammar, n = self.grammar, len(x.words)
        if w.shape != (self.dimension,):
            raise InputError(f"{len(w)} weights are given, and this grammar has {self.dimension}")
        rules, roots = len(grammar.rules), len(grammar.roots)
        root = np.full(len(grammar.symbols), -np.inf)
        root[grammar.roots] = w[rules : rules + roots]
        tag = grammar.tag_of
        likely = np.where((tag >= 0) & np.isfinite(x.likely[:, tag]), x.likely[:, tag], -np.inf)
        possible = np.isfinite(likely)
        leaf = np.where(possible, w[rules + roots] * np.where(possible, likely, 0.0), -np.inf)
        names = grammar.labels.names
        span = np.zeros((n, n + 1, len(names)))
        if self.span_features:
            sum_span_features(x.features, w[self.span_at :].reshape(-1, len(names)), span)
        return ChartScores(leaf, np.ascontiguousarray(w[:rules]), root, span)

    def joint_features(self, x: Sentence, h: Parse) -> Vector:
        """Return how often every rule, root and feature of a label is there, and the sum of log P(word | tag)."""
        return in_full(self.difference(x, h, Parse(NO_TREE, self.grammar, x.words)), self.dimension)

    def difference(self, x: Sentence, a: Parse, b: Parse) -> SparseVector:
        """Return Phi(x, a) - Phi(x, b)."""
        from netclust.kernels.structured.sparse_rows import sum_signed_slots

        words = len(self.grammar.rules) + len(self.grammar.roots)
        keys = np.sort(np.concatenate([self._keys(x, a.rows, 0), self._keys(x, b.rows, 1), [2 * words]]))
        slots, values = np.empty(len(keys), np.int64), np.empty(len(keys))
        n = int(sum_signed_slots(keys, slots, values))
        slots, values = slots[:n], values[:n]
        values[np.searchsorted(slots, words)] = self._likely(x, a.rows) - self._likely(x, b.rows)
        return SparseVector(slots, values)

    def predict(self, x: Sentence, w: Vector) -> Parse:
        """Return the best tree by CKY; the best pieces where there is none."""
        scores = self.scores(x, w)
        found = best_derivation(self.grammar, scores)
        if found is not None:
            return Parse(found, self.grammar, x.words)
        return Parse(NO_TREE, self.grammar, x.words, pieces=tuple(best_pieces(self.grammar, scores)))

    def max_violating(self, x: Sentence, y: Parse, w: Vector, C: float) -> tuple[Parse, float]:
        """Return the tree of the highest score and loss, and its loss."""
        if not len(y.rows):
            raise InputError(
                f"the grammar makes no tree as given of {' '.join(x.words[:8])!r} ...: read it off this one too"
            )
        found = violating_derivation(self.grammar, self.scores(x, w), y.rows, C)
        h = Parse(y.rows if found is None else found, self.grammar, x.words)  # None: a weight has run out of numbers
        return h, self.loss(y, h)

    def gold(self, x: Sentence, y: Parse, w: Vector) -> Parse:
        """Return y: nothing is latent."""
        return y

    def loss(self, y: Parse, h: Parse) -> float:
        """Return the share of h's nodes, words included, that y has not, in percent."""
        return wrong_nodes(y.rows, h.rows) if len(h.rows) else 100.0

    def _keys(self, x: Sentence, h: Derivation, sign: int) -> NDArray[np.int64]:
        """The weights of what is counted in a derivation, as `sum_signed_slots` takes them."""
        from netclust.models.parsing.cky_kernels import tree_slots

        if not len(h):
            return np.zeros(0, np.int64)
        grammar, names = self.grammar, self.grammar.labels
        root = len(grammar.rules) + int(np.searchsorted(grammar.roots, h[0, SYMBOL]))
        most = int(np.diff(names.at).max(initial=0)) * x.features.shape[2] + 1
        keys = np.empty(1 + len(h) * most, np.int64)
        n = tree_slots(h, x.features, names.at, names.label, len(names.names), root, self.span_at, sign, keys, 0)
        return keys[: int(n)]

    def _likely(self, x: Sentence, h: Derivation) -> float:
        """The sum of log P(word | tag)."""
        leaves = h[h[:, SPLIT] < 0]
        return float(x.likely[leaves[:, START], self.grammar.tag_of[leaves[:, SYMBOL]]].sum())


def generative_weights(problem: GrammarProblem, derivations: Sequence[Derivation]) -> Vector:
    """The grammar's weights as logarithms of relative frequencies, unsmoothed: those of highest likelihood."""
    grammar = problem.grammar
    every = np.concatenate(derivations)
    nodes = np.bincount(every[:, SYMBOL], minlength=len(grammar.symbols))
    counts = np.bincount(every[every[:, RULE] >= 0, RULE], minlength=len(grammar.rules))
    tops = np.bincount([h[0, SYMBOL] for h in derivations], minlength=len(grammar.symbols))[grammar.roots]
    w = np.zeros(problem.dimension)
    rules, roots = len(counts), len(grammar.roots)
    with np.errstate(divide="ignore"):
        w[:rules] = np.log(counts / np.maximum(nodes[grammar.rules[:, 2]], 1))
        w[rules : rules + roots] = np.log(tops / len(derivations))
    w[rules + roots] = 1.0
    return w
