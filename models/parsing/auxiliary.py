"""Auxiliary parsers whose brackets are features of another one: a generative grammar, and a classifier of single spans.

The span classifier calls every span by a chain of labels or none, each by itself, from the words at its edges. What
both say of a training sentence comes from models of the other fold (`netclust.models.parsing.cross_fitting`).

>>> from netclust.models.parsing.syntax import Tree
>>> trees = [Tree("S", (Tree("NP", (Tree("NN", word=word),)), Tree("VP", (Tree("VB", word="falls"),))))
...          for word in ("rain", "snow", "rain")]
>>> Auxiliary.fit(trees, Binarisation()).notes(("rain", "falls"))["parser"]
{(0, 2): 'S', (0, 1): 'NP+NN', (1, 2): 'VP+VB'}

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
section 9.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.learners.perceptron import Lsp
from netclust.models.parsing.binarisation import CHAIN, Binarisation, base_labels
from netclust.models.parsing.charts import best_derivation, best_pieces
from netclust.models.parsing.cross_fitting import cross_fit
from netclust.models.parsing.grammar import SPLIT, SYMBOL, Derivation, Grammar
from netclust.models.parsing.lexicon import Lexicon
from netclust.models.parsing.parsing_problem import GrammarProblem, Sentence, generative_weights
from netclust.models.parsing.span_features import Notes, SpanVocabulary, names_of_span
from netclust.models.parsing.syntax import Tree, syntax_words
from netclust.problems.base import Vector
from netclust.problems.sparse_features import SparseVector, in_full

__all__ = ["Auxiliary", "SpanClassifier", "SpanProblem", "cross_fitted_notes", "span_vocabulary"]

Grid = NDArray[np.int64]
EPOCHS = 5


def span_vocabulary(
    lexicon: Lexicon, trees: Sequence[Tree], grammar: Grammar, notes: Sequence[Notes] | None = None
) -> SpanVocabulary:
    """The features that at least two constituents (or words) of a treebank have."""

    def names() -> list[list[str]]:
        found = []
        for number, tree in enumerate(trees):
            words = [lexicon.token(word) for word in syntax_words(tree)]
            h = grammar.derivation(tree)
            for start, end, symbol in [] if h is None else h[:, :SPLIT].tolist():
                if base_labels(grammar.symbols[symbol]):
                    found.append(names_of_span(words, start, end, notes[number] if notes else None))
        return found

    return SpanVocabulary.of_spans(names())


@dataclass(frozen=True)
class SpanProblem:
    """Spans called one by one: h is [n, n + 1] of a kind or -1, the loss the share of wrong ones in percent."""

    features: int
    kinds: int

    @property
    def dimension(self) -> int:
        """Return one weight a feature and kind."""
        return self.features * self.kinds

    def joint_features(self, x: Sentence, h: Grid) -> Vector:
        """Return how often every feature is there with every kind."""
        return in_full(self.difference(x, h, np.full_like(h, -1)), self.dimension)

    def difference(self, x: Sentence, a: Grid, b: Grid) -> SparseVector:
        """Return Phi(x, a) - Phi(x, b)."""
        changed = np.argwhere(a != b)
        slots: list[NDArray[np.int64]] = []
        signs: list[Vector] = []
        for grid, sign in ((a, 1.0), (b, -1.0)):
            at = changed[grid[changed[:, 0], changed[:, 1]] >= 0]
            features = x.features[at[:, 0], at[:, 1]].astype(np.int64)
            some = (features * self.kinds + grid[at[:, 0], at[:, 1]][:, None])[features >= 0]
            slots.append(some)
            signs.append(np.full(len(some), sign))
        found, place = np.unique(np.concatenate(slots), return_inverse=True)
        values = np.bincount(place, np.concatenate(signs), len(found)).astype(np.float64)
        return SparseVector(found, values)

    def predict(self, x: Sentence, w: Vector) -> Grid:
        """Return every span's best kind, or -1 where none scores above 0."""
        return self._best(self._scores(x, w), 0.0)

    def max_violating(self, x: Sentence, y: Grid, w: Vector, C: float) -> tuple[Grid, float]:
        """Return the same with the loss in the scores."""
        n = len(x.words)
        price = 100.0 * C / (n * (n + 1) / 2)
        scores = self._scores(x, w) + price
        named = np.argwhere(y >= 0)
        scores[named[:, 0], named[:, 1], y[named[:, 0], named[:, 1]]] -= price
        h = self._best(scores, np.where(y >= 0, price, 0.0))
        return h, self.loss(y, h)

    def gold(self, x: Sentence, y: Grid, w: Vector) -> Grid:
        """Return y."""
        return y

    def loss(self, y: Grid, h: Grid) -> float:
        """Return the share of spans that are wrongly called."""
        n = len(y)
        return 100.0 * float((y != h).sum()) / (n * (n + 1) / 2)

    def _scores(self, x: Sentence, w: Vector) -> NDArray[np.float64]:
        from netclust.models.parsing.cky_kernels import sum_span_features

        n = len(x.words)
        scores = np.zeros((n, n + 1, self.kinds))
        sum_span_features(x.features, w.reshape(-1, self.kinds), scores)
        return scores

    @staticmethod
    def _best(scores: NDArray[np.float64], none: float | NDArray[np.float64]) -> Grid:
        n = len(scores)
        spans = np.arange(n)[:, None] < np.arange(n + 1)[None]
        return np.where(spans & (scores.max(axis=2) > none), scores.argmax(axis=2), -1)


@dataclass(frozen=True, eq=False)
class SpanClassifier:
    """What calls spans one by one."""

    kinds: tuple[str, ...]
    vocabulary: SpanVocabulary
    w: Vector

    def chains(self, tokens: Sequence[str]) -> dict[tuple[int, int], str]:
        """The spans that are called something."""
        x = Sentence(tuple(tokens), np.zeros((len(tokens), 0)), self.vocabulary.features(tokens))
        h = SpanProblem(len(self.vocabulary.names), len(self.kinds)).predict(x, self.w)
        return {(int(s), int(e)): self.kinds[h[s, e]] for s, e in np.argwhere(h >= 0)}


@dataclass(frozen=True, eq=False)
class Auxiliary:
    """A generative parser and a span classifier of one treebank."""

    grammar: Grammar
    lexicon: Lexicon
    w: Vector
    spans: SpanClassifier

    @classmethod
    def fit(cls, trees: Sequence[Tree], binarisation: Binarisation, seed: int = 0) -> Auxiliary:
        """Count, and train the span classifier."""
        grammar, lexicon = Grammar.of_trees(trees, binarisation), Lexicon.of_trees(trees)
        derivations = [h for h in map(grammar.derivation, trees) if h is not None]
        w = generative_weights(GrammarProblem(grammar), derivations)
        vocabulary = span_vocabulary(lexicon, trees, grammar)
        named = [_chains(grammar, h) for h in derivations]
        kinds = tuple(sorted({chain for some in named for chain in some.values()}))
        number = {kind: at for at, kind in enumerate(kinds)}
        examples = []
        for tree, some in zip(trees, named, strict=True):
            tokens = [lexicon.token(word) for word in syntax_words(tree)]
            y = np.full((len(tokens), len(tokens) + 1), -1, np.int64)
            for span, chain in some.items():
                y[span] = number[chain]
            examples.append((Sentence(tuple(tokens), np.zeros((len(tokens), 0)), vocabulary.features(tokens)), y))
        problem = SpanProblem(len(vocabulary.names), len(kinds))
        weights = Lsp().fit(problem, examples, epochs=EPOCHS, C=0.1, seed=seed).averaged
        return cls(grammar, lexicon, w, SpanClassifier(kinds, vocabulary, weights))

    def notes(self, words: Sequence[str]) -> Notes:
        """What both say of a sentence."""
        tokens = [self.lexicon.token(word) for word in words]
        return {"parser": self._parsed(words), "spans": self.spans.chains(tokens)}

    def _parsed(self, words: Sequence[str]) -> dict[tuple[int, int], str]:
        n = len(words)
        x = Sentence(tuple(words), self.lexicon.log_likelihoods(words), np.zeros((n, n + 1, 0), np.int32))
        scores = GrammarProblem(self.grammar).scores(x, self.w)
        found = best_derivation(self.grammar, scores)
        pieces = best_pieces(self.grammar, scores) if found is None else [found]
        return {span: chain for h in pieces for span, chain in _chains(self.grammar, h).items()}


def _chains(grammar: Grammar, h: Derivation) -> dict[tuple[int, int], str]:
    """The labels of a derivation's constituents and words, from the top down, by their spans."""
    found = {}
    for row in h[:, : SYMBOL + 1].tolist():
        labels = base_labels(grammar.symbols[row[SYMBOL]])
        if labels:
            found[row[0], row[1]] = CHAIN.join(labels)
    return found


def cross_fitted_notes(
    trees: Sequence[Tree], binarisation: Binarisation, seed: int = 0
) -> tuple[Auxiliary, list[Notes]]:
    """The auxiliary models of a treebank, and what models of the other half of it say of every sentence."""
    found = cross_fit(
        trees,
        lambda some: Auxiliary.fit(some, binarisation, seed),
        lambda model, tree: model.notes(syntax_words(tree)),
        seed=seed,
    )
    return found.model, found.predictions
