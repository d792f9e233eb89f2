"""Parsing by a weighted grammar: the best derivation of a sentence, the most violating one, and sums over all.

>>> from netclust.models.parsing.syntax import Tree
>>> grammar = Grammar.of_trees([
...     Tree("S", (Tree("S", (Tree("N", word="a"), Tree("N", word="b"))), Tree("N", word="c"))),
...     Tree("S", (Tree("N", word="a"), Tree("S", (Tree("N", word="b"), Tree("N", word="c"))))),
... ])
>>> grammar.rule_names()
('S -> N N', 'S -> N S', 'S -> S N')
>>> scores = ChartScores(np.where(grammar.tag_of >= 0, 0.0, -np.inf) * np.ones((3, 1)), np.log([0.5, 0.2, 0.3]))
>>> found = best_derivation(grammar, scores)
>>> grammar.tree(found, ("a", "b", "c"))
Tree<(S (S (N a) (N b)) (N c))>
>>> round(float(np.exp(derivation_score(grammar, scores, found))), 3)
0.15
>>> sums = inside_outside(grammar, scores)
>>> round(float(np.exp(sums.log_z)), 3), sums.rules.round(3).tolist()
(0.25, [1.0, 0.4, 0.6])

Time grows with the number of rules and the cube of the number of words. B. Taskar, "Learning Structured Prediction
Models: A Large Margin Approach", PhD thesis, Stanford University, 2004; chapter 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.parsing.grammar import END, RULE, SPLIT, START, SYMBOL, Derivation, Grammar
from netclust.structures.pairs import Vector

__all__ = [
    "ChartScores", "Sums", "best_derivation", "best_pieces", "derivation_score", "inside_outside",
    "violating_derivation", "wrong_nodes",
]  # fmt: skip

MAX_CELLS = 20_000_000
"""Of a chart: words squared times symbols; 40 words with 12,000 symbols, or 700 with 40, are within it."""


@dataclass(frozen=True, eq=False)
class ChartScores:
    """What the nodes of a sentence's trees score: words [n, symbols] (-inf: impossible), rules, roots, spans."""

    leaf: NDArray[np.float64]
    rule: Vector
    root: Vector | None = None
    """By symbol, -inf where it is no root; None: every root of the grammar scores 0."""
    span: NDArray[np.float64] | None = None
    """[n, n + 1, labels]: of a node (start, end) for every label that its symbol stands for."""

    def roots(self, grammar: Grammar) -> Vector:
        """The scores of roots."""
        if self.root is not None:
            return self.root
        found = np.full(len(grammar.symbols), -np.inf)
        found[grammar.roots] = 0.0
        return found

    def spans(self, grammar: Grammar) -> NDArray[np.float64]:
        """The scores of spans."""
        n = len(self.leaf)
        return np.zeros((n, n + 1, len(grammar.labels.names))) if self.span is None else self.span


class Sums(NamedTuple):
    """Over all trees of a sentence: log of the sum of exp(score), and how often nodes and rules are expected."""

    log_z: float
    nodes: NDArray[np.float64]
    """[n, n + 1, symbols]"""
    rules: Vector


class _Chart(NamedTuple):
    best: NDArray[np.float64]
    split: NDArray[np.int16]
    rule: NDArray[np.int32]
    top: int


def best_derivation(grammar: Grammar, scores: ChartScores) -> Derivation | None:
    """The derivation of the highest score, None where there is none."""
    n, _ = _size(grammar, scores)
    chart = _fill(grammar, scores, np.full((n, n + 1), -1, np.int32), 0.0)
    return None if chart.top < 0 else _read(grammar, chart, 0, n, chart.top)


def violating_derivation(grammar: Grammar, scores: ChartScores, y: Derivation, C: float) -> Derivation | None:
    """The derivation of the highest score + C * its wrong nodes in percent."""
    n, _ = _size(grammar, scores)
    gold = np.full((n, n + 1), -1, np.int32)
    gold[y[:, START], y[:, END]] = y[:, SYMBOL]
    chart = _fill(grammar, scores, gold, 100.0 * C / (2 * n - 1))
    return None if chart.top < 0 else _read(grammar, chart, 0, n, chart.top)


def wrong_nodes(y: Derivation, h: Derivation) -> float:
    """The share of h's nodes that y has not, in percent: 0 only if both are one tree (all trees have 2n - 1 nodes)."""
    right = set(map(tuple, y[:, :SPLIT].tolist()))
    return 100.0 * sum(tuple(row) not in right for row in h[:, :SPLIT].tolist()) / max(len(h), 1)


def derivation_score(grammar: Grammar, scores: ChartScores, h: Derivation) -> float:
    """The score of a derivation."""
    names = grammar.labels
    leaves = h[h[:, SPLIT] < 0]
    total = float(scores.roots(grammar)[h[0, SYMBOL]]) + float(scores.rule[h[h[:, RULE] >= 0, RULE]].sum())
    total += float(scores.leaf[leaves[:, START], leaves[:, SYMBOL]].sum())
    for start, end, symbol in h[:, :SPLIT].tolist():
        total += float(scores.spans(grammar)[start, end, names.label[names.at[symbol] : names.at[symbol + 1]]].sum())
    return total


def best_pieces(grammar: Grammar, scores: ChartScores) -> list[Derivation]:
    """Where no tree is found: the fewest trees, of any symbols that are whole constituents, that make the sentence.

    Of equally few the best sum of scores is taken. There is no such list where a word can be nothing at all.
    """
    n, _ = _size(grammar, scores)
    chart = _fill(grammar, scores, np.full((n, n + 1), -1, np.int32), 0.0)
    whole = np.diff(grammar.labels.at) > 0
    value = np.where(whole, chart.best, -np.inf)
    symbol, most = value.argmax(axis=2), value.max(axis=2)
    best: list[tuple[int, float, int]] = [(0, 0.0, 0)]  # (pieces, -score, start of the last) up to each place
    for end in range(1, n + 1):
        options = [
            (best[start][0] + 1, best[start][1] - float(most[start, end]), start)
            for start in range(end)
            if most[start, end] > -np.inf and best[start][0] >= 0
        ]
        best.append(min(options, default=(-1, 0.0, 0)))
    found, end = list[Derivation](), n
    while end > 0 and best[n][0] > 0:
        start = best[end][2]
        found.append(_read(grammar, chart, start, end, int(symbol[start, end])))
        end = start
    return found[::-1]


def inside_outside(grammar: Grammar, scores: ChartScores) -> Sums:
    """Sums over all trees of the sentence; log Z is -inf where there is none."""
    from netclust.models.parsing.cky_kernels import fill_inside, fill_outside

    n, N = _size(grammar, scores)
    inside, outside = np.empty((n, n + 1, N)), np.empty((n, n + 1, N))
    names, span, root = grammar.labels, scores.spans(grammar), scores.roots(grammar)
    given = (names.at, names.label, grammar.rule_at, grammar.rules, scores.rule, root)
    log_z = float(fill_inside(np.ascontiguousarray(scores.leaf), span, *given, inside))
    expected = np.zeros(len(grammar.rules))
    if log_z == -np.inf:
        return Sums(log_z, np.zeros((n, n + 1, N)), expected)
    fill_outside(inside, span, *given, log_z, outside, expected)
    return Sums(log_z, np.exp(inside + outside - log_z), expected)


def _size(grammar: Grammar, scores: ChartScores) -> tuple[int, int]:
    n, N = scores.leaf.shape
    if len(grammar.symbols) != N or len(scores.rule) != len(grammar.rules):
        raise InputError(f"scores of {N} symbols and {len(scores.rule)} rules are not of this grammar")
    if n < 1:
        raise InputError("a sentence without words cannot be parsed")
    if n * (n + 1) * N > MAX_CELLS:
        raise InputError(f"a sentence of {n} words is too long to be parsed by {N} symbols: cut it, or leave it out")
    return n, N


def _fill(grammar: Grammar, scores: ChartScores, gold: NDArray[np.int32], penalty: float) -> _Chart:
    from netclust.models.parsing.cky_kernels import fill_viterbi

    n, N = scores.leaf.shape
    best = np.empty((n, n + 1, N))
    split, rule = np.empty((n, n + 1, N), np.int16), np.empty((n, n + 1, N), np.int32)
    names = grammar.labels
    leaf = np.ascontiguousarray(scores.leaf)
    top = fill_viterbi(
        leaf, scores.spans(grammar), names.at, names.label, grammar.rule_at, grammar.rules, scores.rule,
        scores.roots(grammar), gold, float(penalty), best, split, rule,
    )  # fmt: skip
    return _Chart(best, split, rule, int(top))


def _read(grammar: Grammar, chart: _Chart, start: int, end: int, symbol: int) -> Derivation:
    from netclust.models.parsing.cky_kernels import read_back

    rows = np.empty((2 * (end - start) - 1, 5), np.int64)
    read_back(start, end, symbol, chart.split, chart.rule, grammar.rules, rows)
    return rows
