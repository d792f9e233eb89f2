"""What a parser learns of a treebank besides weights: grammar, lexicon, features of spans, auxiliary parsers.

>>> from netclust.models.parsing.syntax import Tree
>>> tree = Tree("S", (Tree("NN", word="rain"), Tree("VBZ", word="falls")))
>>> from netclust.models.parsing.parsing_problem import generative_weights
>>> encoder = GrammarEncoder.fit([tree, tree], Binarisation(), spans=True)
>>> again = msgspec.json.decode(msgspec.json.encode(encoder), type=GrammarEncoder)
>>> again.grammar.rule_names(), len(again.vocabulary.names)
(('S -> NN VBZ',), 30)
>>> x, y = again.example(TreeExample(("rain", "falls"), tree))
>>> problem = GrammarProblem(again.grammar, len(again.vocabulary.names))
>>> problem.predict(x, generative_weights(problem, [y.rows])).tree
Tree<(S (NN rain) (VBZ falls))>
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.foundation.model_file import MAX_WEIGHT
from netclust.models.parsing.auxiliary import Auxiliary, SpanClassifier, cross_fitted_notes, span_vocabulary
from netclust.models.parsing.binarisation import Binarisation
from netclust.models.parsing.grammar import Grammar
from netclust.models.parsing.lexicon import Lexicon
from netclust.models.parsing.parsing_problem import GrammarProblem, Parse, Sentence
from netclust.models.parsing.span_features import Notes, SpanVocabulary
from netclust.models.parsing.syntax import Tree, syntax_words

__all__ = ["AuxiliaryWeights", "GrammarEncoder", "TreeExample", "training_examples"]


Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
MAX_WEIGHTS = 1 << 28
"""Of the span classifier: 2 GiB."""


class TreeExample(NamedTuple):
    """A sentence; its tree, where it is known; what auxiliary parsers that have not seen it say, if it is known."""

    words: tuple[str, ...]
    tree: Tree | None = None
    notes: Notes | None = None


def training_examples(
    trees: Sequence[Tree], binarisation: Binarisation | None = None, seed: int = 0
) -> list[TreeExample]:
    """A treebank as examples; with the binarisation of auxiliary parsers, notes are of those of the other half."""
    if binarisation is None:
        return [TreeExample(syntax_words(tree), tree) for tree in trees]
    notes = cross_fitted_notes(trees, binarisation, seed)[1]
    return [TreeExample(syntax_words(tree), tree, said) for tree, said in zip(trees, notes, strict=True)]


class AuxiliaryWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the auxiliary parsers of a whole treebank have besides its grammar and lexicon."""

    grammar: tuple[float, ...]
    kinds: tuple[str, ...]
    vocabulary: SpanVocabulary
    slots: tuple[Number, ...]
    values: tuple[float, ...]
    """The span classifier's weights that are not 0."""


class GrammarEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """Everything as JSON can have it; checked when it is made."""

    symbols: tuple[str, ...]
    rules: tuple[tuple[Number, Number, Number], ...]
    roots: tuple[Number, ...]
    preterminals: tuple[Number, ...]
    binarisation: Binarisation
    lexicon: Lexicon
    vocabulary: SpanVocabulary = SpanVocabulary(())
    auxiliary: AuxiliaryWeights | None = None

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if self.grammar.tags != self.lexicon.tags:
            raise InputError("the tags of the grammar are not those of the lexicon")
        if self.auxiliary is not None:
            _ = self.parsers

    @classmethod
    def fit(
        cls,
        trees: Sequence[Tree],
        binarisation: Binarisation,
        *,
        spans: bool = False,
        auxiliary: bool = False,
        notes: Sequence[Notes] | None = None,
        seed: int = 0,
    ) -> GrammarEncoder:
        """Of a treebank; `notes` are what auxiliary parsers say of its sentences, whose features count too."""
        grammar, lexicon = Grammar.of_trees(trees, binarisation), Lexicon.of_trees(trees)
        return cls(
            symbols=grammar.symbols,
            rules=tuple((b, c, a) for b, c, a in grammar.rules.tolist()),
            roots=tuple(grammar.roots.tolist()),
            preterminals=tuple(grammar.preterminals.tolist()),
            binarisation=binarisation,
            lexicon=lexicon,
            vocabulary=span_vocabulary(lexicon, trees, grammar, notes) if spans else SpanVocabulary(()),
            auxiliary=_weights(Auxiliary.fit(trees, binarisation, seed)) if auxiliary else None,
        )

    @cached_property
    def grammar(self) -> Grammar:
        """The grammar."""
        return Grammar(
            self.symbols,
            np.array(self.rules, np.int64).reshape(-1, 3),
            np.array(self.roots, np.int64),
            np.array(self.preterminals, np.int64),
            self.binarisation,
        )

    @cached_property
    def parsers(self) -> Auxiliary | None:
        """The auxiliary parsers."""
        given = self.auxiliary
        if given is None:
            return None
        size = len(given.vocabulary.names) * len(given.kinds)
        if size > MAX_WEIGHTS:
            raise InputError(f"the span classifier has {size:,} weights: {MAX_WEIGHTS:,} are the most")
        spans = np.zeros(size)
        slots, values = np.array(given.slots, np.int64), np.array(given.values)
        w = np.array(given.grammar)
        fits = len(slots) == len(values) and (not len(slots) or (slots.min() >= 0 and slots.max() < len(spans)))
        if not fits or len(w) != GrammarProblem(self.grammar).dimension:
            raise InputError("the weights of the auxiliary parsers do not fit their features")
        if max(np.abs(w).max(initial=0), np.abs(values).max(initial=0)) > MAX_WEIGHT:
            raise InputError("a weight of the auxiliary parsers is too large to be scored")
        spans[slots] = values
        return Auxiliary(self.grammar, self.lexicon, w, SpanClassifier(given.kinds, given.vocabulary, spans))

    def example(self, given: TreeExample) -> tuple[Sentence, Parse | None]:
        """A sentence as the problem has it, and its right parse if that is known."""
        notes = given.notes
        if notes is None and self.parsers is not None:
            notes = self.parsers.notes(given.words)
        tokens = [self.lexicon.token(word) for word in given.words]
        x = Sentence(
            given.words, self.lexicon.log_likelihoods(given.words), self.vocabulary.features(tokens, notes)
        )  # fmt: skip
        return x, None if given.tree is None else Parse.of_tree(self.grammar, given.tree)


def _weights(fitted: Auxiliary) -> AuxiliaryWeights:
    spans = fitted.spans
    slots = np.flatnonzero(spans.w)
    return AuxiliaryWeights(
        tuple(fitted.w.tolist()), spans.kinds, spans.vocabulary, tuple(slots.tolist()), tuple(spans.w[slots].tolist())
    )
