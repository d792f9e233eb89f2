"""Every binary tree of a sentence, plain CKY, and random grammars to try them on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from netclust.models.parsing.charts import ChartScores
from netclust.models.parsing.grammar import Grammar

Row = tuple[int, int, int, int, int]


def made_grammar(rng: np.random.Generator, symbols: int = 4, rules: int = 10) -> Grammar:
    """Some rules; the first two symbols are those of words, and the last one may be the whole sentence's."""
    every = [(b, c, a) for b in range(symbols) for c in range(symbols) for a in range(1, symbols)]
    chosen = sorted(rng.choice(len(every), size=rules, replace=False).tolist())
    names = ("A", "B+C", "@D|x", "E^F", "G")[:symbols]
    return Grammar(
        names,
        np.array([every[k] for k in chosen], np.int64),
        np.array([symbols - 2, symbols - 1]),
        np.array([0, 1]),
    )


def made_scores(rng: np.random.Generator, grammar: Grammar, n: int) -> ChartScores:
    leaf = rng.normal(size=(n, len(grammar.symbols)))
    leaf[:, 2:] = -np.inf
    if n > 2:
        leaf[0, 1] = -np.inf
    root = np.full(len(grammar.symbols), -np.inf)
    root[grammar.roots] = rng.normal(size=len(grammar.roots))
    span = rng.normal(size=(n, n + 1, len(grammar.labels.names)))
    return ChartScores(leaf, rng.normal(size=len(grammar.rules)), root, span)


def every_tree(grammar: Grammar, n: int) -> list[list[Row]]:
    """All derivations of n words of any of the words' symbols."""

    def below(s: int, e: int) -> Iterator[list[Row]]:
        if e == s + 1:
            for symbol in grammar.preterminals.tolist():
                yield [(s, e, symbol, -1, -1)]
            return
        for m in range(s + 1, e):
            lefts, rights = list(below(s, m)), list(below(m, e))
            for left in lefts:
                for right in rights:
                    for rule, (b, c, a) in enumerate(grammar.rules.tolist()):
                        if (left[0][2], right[0][2]) == (b, c):
                            yield [(s, e, a, m, rule), *left, *right]

    return [tree for tree in below(0, n) if tree[0][2] in grammar.roots]


def plain_viterbi(grammar: Grammar, scores: ChartScores, gold: Any, penalty: float) -> tuple[Any, float, int]:
    """The chart of the kernel with dicts: operations in the same order, so that numbers agree bit for bit."""
    n = len(scores.leaf)
    names, spans, roots = grammar.labels, scores.spans(grammar), scores.roots(grammar)
    chart: dict[tuple[int, int], dict[int, float]] = {}
    for length in range(1, n + 1):
        for s in range(n - length + 1):
            e = s + length
            here: dict[int, float] = {}
            if length == 1:
                here = {a: float(v) for a, v in enumerate(scores.leaf[s]) if v > -np.inf}
            for m in range(s + 1, e):
                for rule, (b, c, a) in enumerate(grammar.rules.tolist()):
                    if b in chart[s, m] and c in chart[m, e]:
                        value = (chart[s, m][b] + chart[m, e][c]) + float(scores.rule[rule])
                        here[a] = max(here.get(a, -np.inf), value)
            for a in here:
                extra = 0.0
                for label in names.label[names.at[a] : names.at[a + 1]]:
                    extra += float(spans[s, e, label])
                if gold[s, e] != a:
                    extra += penalty
                here[a] += extra
            chart[s, e] = here
    top = {a: v + float(roots[a]) for a, v in chart[0, n].items() if roots[a] > -np.inf}
    return chart, max(top.values(), default=-np.inf), max(top, key=lambda a: top[a], default=-1)


def node_scores(grammar: Grammar, scores: ChartScores, nodes: Any) -> Any:
    """What a node scores by itself: its word, its labels, and being the root."""
    n, names, spans, roots = len(scores.leaf), grammar.labels, scores.spans(grammar), scores.roots(grammar)
    found = []
    for s, e, a in nodes.tolist():
        own = float(spans[s, e, names.label[names.at[a] : names.at[a + 1]]].sum())
        own += float(scores.leaf[s, a]) if e == s + 1 else 0.0
        found.append(own + (float(roots[a]) if e - s == n else 0.0))
    return np.array(found)
