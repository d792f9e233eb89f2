"""A grammar of rules A -> B C over the words of a sentence, read off a treebank.

>>> trees = (Tree("S", (Tree("NN", word="rain"), Tree("VBZ", word="falls"))),)
>>> grammar = Grammar.of_trees(trees)
>>> grammar.symbols, grammar.tags, grammar.rule_names()
(('NN', 'S', 'VBZ'), ('NN', 'VBZ'), ('S -> NN VBZ',))
>>> h = grammar.derivation(trees[0])
>>> h.tolist(), grammar.tree(h, ("rain", "falls")) == trees[0]
([[0, 2, 1, 1, 0], [0, 1, 0, -1, -1], [1, 2, 2, -1, -1]], True)

A derivation is the nodes of a binary tree, parents first: [start, end, symbol, split, rule], where split and rule of a
single word are -1. Weights are not the grammar's: rules, roots and words get them where a sentence is parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.parsing.binarisation import CHAIN, Binarisation, base_labels
from netclust.models.parsing.syntax import Tree, syntax_spans
from netclust.structures.pairs import Indices

__all__ = ["END", "RULE", "SPLIT", "START", "SYMBOL", "Derivation", "Grammar", "SymbolLabels"]

Derivation = Indices
START, END, SYMBOL, SPLIT, RULE = range(5)
PLAIN = Binarisation()


class SymbolLabels(NamedTuple):
    """The labels that symbols stand for: those of symbol A are `label[at[A] : at[A + 1]]`."""

    names: tuple[str, ...]
    at: Indices
    label: Indices


@dataclass(frozen=True, eq=False)
class Grammar:
    """Symbols, and rules (left part, right part, node) in rising order."""

    symbols: tuple[str, ...]
    rules: NDArray[np.int64]
    roots: Indices
    """Symbols that a whole sentence may have."""
    preterminals: Indices
    """Symbols that a word may have."""
    binarisation: Binarisation = PLAIN

    def __post_init__(self) -> None:
        """Refuse what is no grammar (a model file may hold anything)."""
        n, rules = len(self.symbols), self.rules
        if rules.ndim != 2 or rules.shape[1] != 3 or len(set(self.symbols)) < n:
            raise InputError("a grammar's rules are rows of three of its symbols, each of which is there once")
        for given in (rules, self.roots, self.preterminals):
            if len(given) and not (given.min() >= 0 and given.max() < n):
                raise InputError(f"a grammar of {n} symbols names another one")
        order = np.lexsort(rules.T[::-1])
        if not (order == np.arange(len(rules))).all() or (np.diff(rules, axis=0) == 0).all(axis=1).any():
            raise InputError("a grammar's rules are in rising order, each once")

    @classmethod
    def of_trees(cls, trees: Iterable[Tree], binarisation: Binarisation = PLAIN) -> Grammar:
        """The symbols and rules that occur in trees."""
        rules: set[tuple[str, str, str]] = set()
        roots: set[str] = set()
        preterminals: set[str] = set()
        for tree in trees:
            binary = binarisation.binary(tree)
            roots.add(binary.label)
            for node, _, _ in syntax_spans(binary):
                if node.word is not None:
                    preterminals.add(node.label)
                else:
                    rules.add((node.children[0].label, node.children[1].label, node.label))
        symbols = tuple(sorted(preterminals.union(roots, *rules)))
        if not symbols:
            raise InputError("there are no trees to read a grammar from")
        number = {symbol: at for at, symbol in enumerate(symbols)}
        rows = sorted(tuple(number[symbol] for symbol in rule) for rule in rules)
        return cls(
            symbols,
            np.array(rows, np.int64).reshape(-1, 3),
            np.array(sorted(number[symbol] for symbol in roots), np.int64),
            np.array(sorted(number[symbol] for symbol in preterminals), np.int64),
            binarisation,
        )

    @cached_property
    def number(self) -> dict[str, int]:
        """The numbers of the symbols."""
        return {symbol: at for at, symbol in enumerate(self.symbols)}

    @cached_property
    def rule_number(self) -> dict[tuple[int, ...], int]:
        """The numbers of the rules."""
        return {tuple(rule): at for at, rule in enumerate(self.rules.tolist())}

    @cached_property
    def rule_at(self) -> Indices:
        """The rules with the left part B are `rule_at[B]` to `rule_at[B + 1]`."""
        return np.searchsorted(self.rules[:, 0], np.arange(len(self.symbols) + 1)).astype(np.int64)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """What words are: the last label of a pre-terminal's chain."""
        return tuple(sorted({self.tag_name(int(symbol)) for symbol in self.preterminals}))

    @cached_property
    def tag_of(self) -> Indices:
        """The tag of every symbol, -1 where no word has it."""
        number = {tag: at for at, tag in enumerate(self.tags)}
        found = np.full(len(self.symbols), -1, np.int64)
        for symbol in self.preterminals.tolist():
            found[symbol] = number[self.tag_name(symbol)]
        return found

    def tag_name(self, symbol: int) -> str:
        """The tag of a pre-terminal."""
        return self.symbols[symbol].rpartition(CHAIN)[2]

    @cached_property
    def labels(self) -> SymbolLabels:
        """The labels of the treebank that every symbol stands for; parts of constituents have none."""
        of = [base_labels(symbol) for symbol in self.symbols]
        names = tuple(sorted({label for some in of for label in some}))
        number = {label: at for at, label in enumerate(names)}
        at = np.concatenate([[0], np.cumsum([len(some) for some in of])]).astype(np.int64)
        return SymbolLabels(names, at, np.array([number[label] for some in of for label in some], np.int64))

    def rule_names(self) -> tuple[str, ...]:
        """The rules as text."""
        return tuple(f"{self.symbols[a]} -> {self.symbols[b]} {self.symbols[c]}" for b, c, a in self.rules.tolist())

    def derivation(self, tree: Tree) -> Derivation | None:
        """The nodes of a tree, None where the grammar does not make it."""
        rows = []
        for node, start, end in syntax_spans(self.binarisation.binary(tree)):
            symbol = self.number.get(node.label, -1)
            if node.word is not None:
                if symbol < 0 or self.tag_of[symbol] < 0:
                    return None
                rows.append((start, end, symbol, -1, -1))
                continue
            left, right = (self.number.get(child.label, -1) for child in node.children)
            rule = self.rule_number.get((left, right, symbol), -1)
            if rule < 0:
                return None
            rows.append((start, end, symbol, 0, rule))
        found = np.array(rows, np.int64)
        for at, row in enumerate(found):
            if row[SPLIT] == 0:
                row[SPLIT] = found[at + 1, END]  # the left part comes next
        return found if found[0, SYMBOL] in self.roots else None

    def tree(self, h: Derivation, words: Sequence[str]) -> Tree:
        """The treebank's kind of tree that a derivation stands for."""
        return self.binarisation.undo(self.binary_tree(h, words))

    def binary_tree(self, h: Derivation, words: Sequence[str]) -> Tree:
        """The binary tree of a derivation."""
        made: list[Tree] = []
        for start, _, symbol, split, _ in h[::-1].tolist():
            if split < 0:
                made.append(Tree(self.symbols[symbol], word=words[start]))
            else:
                left = made.pop()
                made.append(Tree(self.symbols[symbol], (left, made.pop())))
        return made[0]
