"""Binary trees and back, for any tree; grammars and derivations of them; brackets by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.parsing.binarisation import Binarisation
from netclust.models.parsing.bracket_metrics import measure_trees
from netclust.models.parsing.cross_fitting import cross_fit
from netclust.models.parsing.grammar import Grammar
from netclust.models.parsing.syntax import Tree, bracketed_syntax, syntax_spans, syntax_tags, syntax_words

LABELS = st.sampled_from(["S", "NP", "PRT|ADVP", "-LRB-", "X_Y"])
WORDS = st.builds(lambda label, word: Tree(label, word=word), LABELS, st.sampled_from(["a", "b", "c"]))
PARTS = st.builds(lambda label, parts: Tree(label, tuple(parts)), LABELS, st.lists(WORDS, min_size=1, max_size=4))
TREES = st.recursive(
    WORDS | PARTS,
    lambda below: st.builds(lambda label, a, b: Tree(label, (a, *b)), LABELS, below, st.lists(below, max_size=3)),
    max_leaves=8,
)
WAYS = st.builds(
    lambda direction, h, v: Binarisation(direction=direction, horizontal=h, vertical=v),
    st.sampled_from(["left", "right"]),
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([1, 2, 3]),
)


def leaf(tag: str, word: str = "w") -> Tree:
    return Tree(tag, word=word)


@settings(max_examples=150, deadline=None)
@given(TREES, WAYS)
def test_binary_trees_go_back_to_what_they_were(tree: Tree, way: Binarisation) -> None:
    binary = way.binary(tree)
    assert all(len(node.children) in (0, 2) for node, _, _ in syntax_spans(binary))
    assert syntax_words(binary) == syntax_words(tree)
    assert way.undo(binary) == tree


@settings(max_examples=60, deadline=None)
@given(st.lists(TREES, min_size=1, max_size=3), WAYS)
def test_a_grammar_makes_the_trees_that_it_was_read_off(trees: list[Tree], way: Binarisation) -> None:
    grammar = Grammar.of_trees(trees, way)
    for tree in trees:
        h = grammar.derivation(tree)
        assert h is not None
        assert len(h) == 2 * len(syntax_words(tree)) - 1
        assert grammar.tree(h, syntax_words(tree)) == tree
        for start, end, symbol, split, rule in h.tolist():
            assert (split < 0) == (rule < 0) == (end == start + 1)
            assert start < split < end or grammar.tag_of[symbol] >= 0


def test_markov_orders_are_what_is_remembered() -> None:
    tree = Tree("VP", tuple(leaf(tag) for tag in "ABCD"))
    assert (
        bracketed_syntax(Binarisation(horizontal=None).binary(tree)) == "(VP (A w) (@VP|A (B w) (@VP|A_B (C w) (D w))))"
    )
    assert bracketed_syntax(Binarisation(horizontal=1).binary(tree)) == "(VP (A w) (@VP|A (B w) (@VP|B (C w) (D w))))"
    left = Binarisation(direction="left", horizontal=1).binary(tree)
    assert bracketed_syntax(left) == "(VP (@VP|D (@VP|C (A w) (B w)) (C w)) (D w))"
    inner = Tree("S", (Tree("NP", (leaf("N"), Tree("PP", (leaf("P"), leaf("N"))))), leaf("V")))
    third = bracketed_syntax(Binarisation(vertical=3).binary(inner))
    assert third == "(S (NP^S (N w) (PP^NP^S (P w) (N w))) (V w))"


def test_deep_and_long_trees_are_no_trouble() -> None:
    deep: Tree = leaf("N")
    for _ in range(2000):
        deep = Tree("X", (deep, leaf("N")))
    for way in (Binarisation(), Binarisation(vertical=3)):
        assert len(syntax_words(way.undo(way.binary(deep)))) == 2001
    wide = Tree("X", tuple(leaf("N") for _ in range(2000)))
    assert sum(node.word is None for node, _, _ in syntax_spans(Binarisation().undo(Binarisation().binary(wide)))) == 1
    assert deep == deep
    assert len(syntax_tags(deep)) == 2001


def test_what_a_grammar_does_not_make_has_no_derivation() -> None:
    grammar = Grammar.of_trees([Tree("S", (leaf("N"), leaf("V")))])
    for other in (
        Tree("S", (leaf("V"), leaf("N"))), Tree("S", (leaf("N"),)), leaf("N"), Tree("S", (leaf("N"), leaf("X"))),
    ):  # fmt: skip
        assert grammar.derivation(other) is None


@pytest.mark.parametrize("label", ["A+B", "A^B", "@A", ""])
def test_labels_that_grammars_need_for_themselves_are_refused(label: str) -> None:
    with pytest.raises(InputError, match="rename it"):
        Binarisation().binary(Tree("S", (leaf(label), leaf("N"))))
    with pytest.raises(InputError, match="order is"):
        Binarisation(vertical=0)
    with pytest.raises(InputError, match="order is"):
        Binarisation(horizontal=-1)


def test_brackets_by_hand() -> None:
    """Gold: S VP NP(2-5) NP(2-3) PP NP(4-5); found without the attachment: S VP NP PP NP. 5 of 5 and of 6."""
    the = (leaf("V"), leaf("N"))
    phrase = Tree("PP", (leaf("P"), Tree("NP", (leaf("N"),))))
    noun = Tree("NP", (leaf("N"),))
    gold = Tree("S", (leaf("N"), Tree("VP", (leaf("V"), Tree("NP", (noun, phrase))))))
    found = Tree("S", (leaf("N"), Tree("VP", (leaf("V"), noun, phrase))))
    scores = measure_trees([(gold, found)])
    assert (scores.precision, scores.recall) == (1.0, pytest.approx(5 / 6))
    assert scores.f1 == pytest.approx(10 / 11)
    assert (scores.exact, scores.tags, scores.crossing) == (0, 1, 0)
    # two found brackets cross a right one, labels besides
    crossed = Tree("S", (Tree("X", (Tree("X", (leaf("N"), leaf("V"))), leaf("N"))), leaf("P"), leaf("Z")))
    scores = measure_trees([(gold, crossed)])
    assert (scores.precision, scores.recall, scores.crossing) == (pytest.approx(1 / 3), pytest.approx(1 / 6), 2)
    assert scores.tags == pytest.approx(4 / 5)
    # chains count twice, TOP and tags not at all
    twice = Tree("TOP", (Tree("NP", (Tree("NP", the),)),))
    once = Tree("NP", the)
    assert measure_trees([(twice, once)]).recall == 0.5
    assert measure_trees([(twice, once), (once, once)]).recall == pytest.approx(2 / 3)


def test_punctuation_is_left_out_where_that_is_asked_for() -> None:
    gold = Tree("S", (Tree("NP", (leaf("N"), leaf(","))), leaf("V"), leaf(".")))
    found = Tree("S", (Tree("NP", (leaf("N"),)), leaf(","), leaf("V"), leaf(".")))
    assert measure_trees([(gold, found)]).f1 == 0.5
    assert measure_trees([(gold, found)], punctuation=False).f1 == 1


def test_trees_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InputError, match="no trees"):
        measure_trees([])
    with pytest.raises(InputError, match="sentence 1: the trees have 1 and 2 words"):
        measure_trees([(leaf("N"), Tree("S", (leaf("N"), leaf("N"))))])
    assert measure_trees([(leaf("N"), leaf("N"))]).f1 == 1


def test_nobody_predicts_what_it_has_seen() -> None:
    seen: list[Any] = []

    def fit(some: list[int]) -> frozenset[int]:
        seen.append(some)
        return frozenset(some)

    found = cross_fit(list(range(11)), fit, lambda model, one: one in model, folds=3, seed=5)
    assert found.predictions == [False] * 11
    assert found.model == frozenset(range(11))
    assert sorted(np.concatenate([sorted(set(range(11)) - set(some)) for some in seen[:3]]).tolist()) == list(range(11))
    again = cross_fit(list(range(11)), fit, lambda model, one: sorted(model), folds=3, seed=5)
    assert again.predictions == cross_fit(list(range(11)), fit, lambda m, one: sorted(m), folds=3, seed=5).predictions
    with pytest.raises(InputError, match="folds of 1 examples"):
        cross_fit([1], fit, lambda model, one: one)
