"""A parse as a grid: a label or nothing for every span, a rule or nothing for every split of a span.

A grid is a tree exactly if it keeps four kinds of constraints, which are linear in indicators (so that inference is a
linear program, and learning a quadratic one):

    9.1  the whole sentence has a symbol that is a root
    9.2  a span of several words has its symbol by exactly one rule below it; one without a symbol has none
    9.3  a span that is not the whole sentence is a part of exactly one rule above it, with its symbol; else of none
    9.4  a word has a symbol that words have

>>> from netclust.models.parsing.syntax import Tree
>>> tree = Tree("S", (Tree("N", word="rain"), Tree("V", word="falls")))
>>> grammar = Grammar.of_trees([tree])
>>> program = tree_program(grammar, 2)
>>> program.nodes.tolist(), program.rules.tolist(), program.rows.shape
([[0, 1, 0], [0, 1, 2], [0, 2, 1], [1, 2, 0], [1, 2, 2]], [[0, 1, 2, 0]], (6, 6))
>>> program.indicators(grammar.derivation(tree)).tolist()
[1.0, 0.0, 1.0, 0.0, 1.0, 1.0]

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
section 9.1, theorem 9.1.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.models.parsing.grammar import SPLIT, Derivation, Grammar
from netclust.structures.pairs import Vector

__all__ = ["TreeProgram", "tree_program"]


@dataclass(frozen=True, eq=False)
class TreeProgram:
    """The trees of n words as the 0/1 points of `rows mu = sides`, mu >= 0: all its corners are trees.

    For programs over short sentences (learning by a compiled program, proofs); what parses is CKY.
    """

    nodes: NDArray[np.int64]
    """(start, end, symbol) of the first variables."""
    rules: NDArray[np.int64]
    """(start, split, end, rule) of the others."""
    rows: NDArray[np.float64]
    sides: Vector

    def indicators(self, h: Derivation) -> Vector:
        """The point of a derivation."""
        nodes = set(map(tuple, h[:, :SPLIT].tolist()))
        rules = {(s, m, e, r) for s, e, _, m, r in h.tolist() if r >= 0}
        own = [tuple(node) in nodes for node in self.nodes.tolist()]
        return np.array([*own, *(tuple(rule) in rules for rule in self.rules.tolist())], np.float64)


def tree_program(grammar: Grammar, n: int) -> TreeProgram:
    """The constraints as linear equations between indicators."""
    spans = [(s, e) for s in range(n) for e in range(s + 1, n + 1)]
    inner = np.unique(grammar.rules[:, 2]).tolist()

    def symbols(s: int, e: int) -> list[int]:
        some = grammar.preterminals.tolist() if e == s + 1 else inner
        return [a for a in some if e - s < n or a in grammar.roots]

    nodes = [(s, e, a) for s, e in spans for a in symbols(s, e)]
    rules = [(s, m, e, r) for s, e in spans for m in range(s + 1, e) for r in range(len(grammar.rules))]
    equal: dict[tuple[object, ...], dict[int, float]] = {("root",): {}}
    for at, (s, e, a) in enumerate(nodes):
        if e - s == n:
            equal["root",][at] = 1.0  # 9.1
        if e > s + 1:
            equal.setdefault(("below", s, e, a), {})[at] = 1.0  # 9.2
        if e - s < n:
            equal.setdefault(("above", s, e, a), {})[at] = 1.0  # 9.3
    for at, (s, m, e, r) in enumerate(rules, len(nodes)):
        b, c, a = grammar.rules[r].tolist()
        for key in (("below", s, e, a), ("above", s, m, b), ("above", m, e, c)):
            equal.setdefault(key, {})[at] = -1.0
    rows = np.zeros((len(equal), len(nodes) + len(rules)))
    for row, terms in zip(rows, equal.values(), strict=True):
        row[list(terms)] = list(terms.values())
    sides = np.zeros(len(rows))
    sides[0] = 1.0
    return TreeProgram(np.array(nodes, np.int64), np.array(rules, np.int64).reshape(-1, 4), rows, sides)
