"""CKY against every tree and against a plain twin, sums against sums, and the constraints of a parse as a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from needed import need_module
from parse_twins import every_tree, made_grammar, made_scores, node_scores, plain_viterbi

from netclust.errors import InputError
from netclust.models.parsing.charts import (
    ChartScores,
    best_derivation,
    best_pieces,
    derivation_score,
    inside_outside,
    violating_derivation,
    wrong_nodes,
)
from netclust.models.parsing.cky_kernels import fill_viterbi, sum_span_features
from netclust.models.parsing.grammar import Grammar
from netclust.models.parsing.parse_grid import tree_program

SIZES = [(seed, n) for seed in range(6) for n in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(("seed", "n"), SIZES)
def test_the_best_tree_is_the_best_of_all(seed: int, n: int) -> None:
    rng = np.random.default_rng([seed, n])
    grammar = made_grammar(rng)
    scores = made_scores(rng, grammar, n)
    values = [derivation_score(grammar, scores, np.array(rows)) for rows in every_tree(grammar, n)]
    found = best_derivation(grammar, scores)
    if max(values, default=-np.inf) == -np.inf:
        assert found is None
        return
    assert found is not None
    assert derivation_score(grammar, scores, found) == pytest.approx(max(values), abs=1e-12)
    assert found.tolist() in [[list(row) for row in rows] for rows in every_tree(grammar, n)]


@pytest.mark.parametrize(("seed", "n"), [(seed, n) for seed in range(8) for n in (2, 3, 4)])
def test_the_most_violating_tree_is_that_of_all(seed: int, n: int) -> None:
    rng = np.random.default_rng([seed, n, 1])
    grammar = made_grammar(rng, rules=30)
    scores = made_scores(rng, grammar, n)
    trees = [np.array(rows) for rows in every_tree(grammar, n)]
    possible = [h for h in trees if derivation_score(grammar, scores, h) > -np.inf]
    y, C = possible[int(rng.integers(len(possible)))], float(rng.choice([0.0, 0.02, 1.0]))
    found = violating_derivation(grammar, scores, y, C)
    assert found is not None

    def value(h: Any) -> float:
        return derivation_score(grammar, scores, h) + C * wrong_nodes(y, h)

    assert value(found) == pytest.approx(max(map(value, possible)), abs=1e-9)
    assert wrong_nodes(y, y) == 0
    assert all(0 < wrong_nodes(y, h) <= 100 for h in possible if h[:, :3].tolist() != y[:, :3].tolist())


@pytest.mark.parametrize("seed", range(10))
def test_the_chart_is_its_twins_bit_for_bit(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    grammar, n = made_grammar(rng, 5, 14), int(rng.integers(1, 8))
    scores = made_scores(rng, grammar, n)
    gold = rng.integers(-1, 5, (n, n + 1)).astype(np.int32)
    N, names = len(grammar.symbols), grammar.labels
    best, split, rule = np.empty((n, n + 1, N)), np.empty((n, n + 1, N), np.int16), np.empty((n, n + 1, N), np.int32)
    top = fill_viterbi(
        scores.leaf, scores.span, names.at, names.label, grammar.rule_at, grammar.rules, scores.rule, scores.root, gold,
        0.7, best, split, rule,
    )  # fmt: skip
    chart, most, plain_top = plain_viterbi(grammar, scores, gold, 0.7)
    assert top == plain_top
    for (s, e), row in chart.items():
        expected = np.full(N, -np.inf)
        expected[list(row)] = list(row.values())
        assert best[s, e].tolist() == expected.tolist()
    if top >= 0:
        found = best[0, n, top] + scores.roots(grammar)[top]
        assert found == most


@pytest.mark.parametrize(("seed", "n"), [(seed, n) for seed in range(5) for n in (1, 2, 4)])
def test_sums_are_those_over_all_trees(seed: int, n: int) -> None:
    rng = np.random.default_rng([seed, n, 3])
    grammar = made_grammar(rng)
    scores = made_scores(rng, grammar, n)
    trees = [np.array(rows) for rows in every_tree(grammar, n)]
    weights = np.exp([derivation_score(grammar, scores, h) for h in trees])
    sums = inside_outside(grammar, scores)
    if not weights.sum():
        assert sums.log_z == -np.inf
        assert not sums.rules.any()
        return
    assert sums.log_z == pytest.approx(np.log(weights.sum()), abs=1e-10)
    nodes, rules = np.zeros_like(sums.nodes), np.zeros_like(sums.rules)
    for h, weight in zip(trees, weights / weights.sum(), strict=True):
        np.add.at(nodes, (h[:, 0], h[:, 1], h[:, 2]), weight)
        np.add.at(rules, h[h[:, 4] >= 0, 4], weight)
    np.testing.assert_allclose(sums.nodes, nodes, atol=1e-10)
    np.testing.assert_allclose(sums.rules, rules, atol=1e-10)


def test_the_gradient_of_log_z_is_what_rules_are_expected() -> None:
    rng = np.random.default_rng(4)
    grammar = made_grammar(rng, 4, 20)
    scores = made_scores(rng, grammar, 5)
    sums, step = inside_outside(grammar, scores), 1e-6
    for rule in range(len(grammar.rules)):
        moved = scores.rule.copy()
        moved[rule] += step
        higher = inside_outside(grammar, ChartScores(scores.leaf, moved, scores.root, scores.span)).log_z
        assert (higher - sums.log_z) / step == pytest.approx(sums.rules[rule], abs=1e-4)


def test_features_of_spans_are_summed_as_numpy_does() -> None:
    rng = np.random.default_rng(5)
    features = rng.integers(-1, 6, (4, 5, 3)).astype(np.int32)
    W, span = rng.normal(size=(6, 2)), np.zeros((4, 5, 2))
    sum_span_features(features, W, span)
    for s in range(4):
        for e in range(5):
            expected = np.zeros(2)
            for f in features[s, e]:
                expected += W[f] if f >= 0 and e > s else 0
            assert span[s, e].tolist() == expected.tolist()


TINY = Grammar(("N", "S"), np.array([(0, 0, 1), (0, 1, 1), (1, 0, 1)]), np.array([1]), np.array([0]))


def test_cky_is_the_optimum_of_the_linear_program() -> None:
    """Indicators of symbols and rules under 9.1 to 9.4: every corner is a tree, so the program's optimum is CKY's."""
    linprog = need_module("scipy.optimize").linprog
    for seed in range(8):
        rng = np.random.default_rng([seed, 7])
        grammar, n = made_grammar(rng, 4, 16), 4
        scores, program = made_scores(rng, grammar, n), tree_program(grammar, n)
        value = np.concatenate([node_scores(grammar, scores, program.nodes), scores.rule[program.rules[:, 3]]])
        highest = np.where(value > -np.inf, np.inf, 0.0)
        bounds = list(zip(np.zeros(len(value)), highest, strict=True))
        c = -np.where(value > -np.inf, value, 0.0)
        answer = linprog(c, A_eq=program.rows, b_eq=program.sides, bounds=bounds, method="highs")
        found = best_derivation(grammar, scores)
        assert (answer.status == 0) == (found is not None)
        if found is not None:
            assert -answer.fun == pytest.approx(derivation_score(grammar, scores, found), abs=1e-7)
            assert (program.rows @ program.indicators(found) == program.sides).all()
            np.testing.assert_allclose(answer.x, program.indicators(found), atol=1e-7)


def test_where_there_is_no_tree_there_are_pieces() -> None:
    scores = ChartScores(np.array([[0.0, -np.inf]] * 3), np.zeros(3))
    only_pairs = Grammar(("N", "S"), np.array([(0, 0, 1)]), np.array([1]), np.array([0]))
    assert best_derivation(only_pairs, ChartScores(scores.leaf, np.zeros(1))) is None
    pieces = best_pieces(only_pairs, ChartScores(scores.leaf, np.zeros(1)))
    assert [piece[0, :3].tolist() for piece in pieces] == [[0, 1, 0], [1, 3, 1]]
    nothing = np.full((3, 2), -np.inf)
    assert best_pieces(only_pairs, ChartScores(nothing, np.zeros(1))) == []


def test_what_is_no_sentence_of_the_grammar_is_refused() -> None:
    with pytest.raises(InputError, match="without words"):
        best_derivation(TINY, ChartScores(np.zeros((0, 2)), np.zeros(3)))
    with pytest.raises(InputError, match="not of this grammar"):
        best_derivation(TINY, ChartScores(np.zeros((2, 5)), np.zeros(3)))
    with pytest.raises(InputError, match="too long"):
        best_derivation(TINY, ChartScores(np.zeros((6000, 2)), np.zeros(3)))


@pytest.mark.parametrize(
    ("rules", "roots", "says"),
    [
        ([(0, 0, 5)], [1], "names another"),
        ([(1, 0, 1), (0, 0, 1)], [1], "rising order"),
        ([(0, 0, 1), (0, 0, 1)], [1], "rising order"),
        ([(0, 0)], [1], "rows of three"),
        ([(0, 0, 1)], [-1], "names another"),
    ],
)
def test_what_is_no_grammar_is_refused(rules: Any, roots: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Grammar(("N", "S"), np.array(rules), np.array(roots), np.array([0]))


def test_sentences_of_40_words_have_all_their_trees() -> None:
    """The number of binary trees is Catalan's; a sum over them is as exact as logarithms are."""
    n = 40
    catalan = 1.0
    for k in range(n - 1):
        catalan *= 2 * (2 * k + 1) / (k + 2)
    one = Grammar(("N",), np.array([(0, 0, 0)]), np.array([0]), np.array([0]))
    scores = ChartScores(np.zeros((n, 1)), np.zeros(1))
    assert inside_outside(one, scores).log_z == pytest.approx(np.log(catalan), rel=1e-12)
    found = best_derivation(one, scores)
    assert found is not None
    assert len(found) == 2 * n - 1
