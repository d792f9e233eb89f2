"""Parsers with counted and with learned weights on simulated treebanks, and CKY beside the same in plain Python.

For every seed a treebank to train on and one to test on are drawn. C is chosen by three folds of the training trees.
`lexical-aux, seen` has notes of auxiliary parsers that were fitted on the very sentences: what cross-fitting is for.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import msgspec
import numpy as np
from common import best_of, save

from netclust.models.parsing.auxiliary import Auxiliary
from netclust.models.parsing.binarisation import CHAIN, Binarisation
from netclust.models.parsing.bracket_metrics import bracket_counts
from netclust.models.parsing.charts import ChartScores, best_derivation, derivation_score, inside_outside
from netclust.models.parsing.encoder import TreeExample
from netclust.models.parsing.grammar import Grammar
from netclust.models.parsing.lexicon import Lexicon
from netclust.models.parsing.parsing_problem import GrammarProblem, Sentence, generative_weights
from netclust.models.parsing.syntax import syntax_words
from netclust.models.parsing.task import TASK, GrammarSettings
from netclust.models.parsing.toy_treebank import toy_trees
from netclust.models.structured_task import choose_cost, learn

TRAIN, TEST, SEEDS = 300, 500, 5
GRID = (10.0, 100.0, 1000.0, 10_000.0)
MODELS = ("generative", "basic", "lexical", "lexical-aux", "lexical-aux, seen")


def quality(seed: int, models: tuple[str, ...] = MODELS, grid: tuple[float, ...] = GRID) -> dict[str, Any]:
    train, test = toy_trees(TRAIN, seed=seed), toy_trees(TEST, seed=1000 + seed)
    found: dict[str, Any] = {}
    for name in models:
        model, _, way = name.partition(", ")
        objective = "likelihood" if way == "likelihood" else "margin"
        settings = GrammarSettings(model=model, objective=objective, seed=seed, max_iterations=150)
        raw = TASK.examples(train, settings)
        if way == "seen":
            notes = Auxiliary.fit(train, settings.binarisation, seed)
            raw = [TreeExample(words, tree, notes.notes(words)) for words, tree, _ in raw]
        encoder = TASK.fit(raw, settings)
        if model != "generative":
            chosen = choose_cost(TASK, settings, raw, encoder, grid=grid, folds=3)
            settings = msgspec.structs.replace(settings, C=chosen.C)
        learned = learn(TASK, settings, encoder, TASK.encode(encoder, raw))
        problem = TASK.problem(encoder, settings)
        new = TASK.encode(encoder, [TreeExample(syntax_words(tree), tree) for tree in test])
        measures = dict(TASK.measure([(y, problem.predict(x, learned.w)) for x, y in new]))
        found[name] = {**measures, "C": settings.C, "iterations": learned.iterations}
        print(seed, name, found[name], file=sys.stderr, flush=True)
    return found


def spans_alone(seed: int) -> dict[str, float]:
    """The classifier of single spans, as if its brackets were a parse."""
    train, test = toy_trees(TRAIN, seed=seed), toy_trees(TEST, seed=1000 + seed)
    auxiliary = Auxiliary.fit(train, Binarisation(), seed)
    right = given = wanted = 0
    for tree in test:
        gold, found = bracket_counts(tree), Counter[Any]()
        for (start, end), chain in auxiliary.notes(syntax_words(tree))["spans"].items():
            labels = chain.split(CHAIN)
            for label in labels[:-1] if end == start + 1 else labels:
                found[label, start, end] += 1
        right, given, wanted = (
            right + sum((gold & found).values()),
            given + sum(found.values()),
            wanted + sum(gold.values()),
        )
    return {"precision": 100 * right / given, "recall": 100 * right / wanted, "f1": 200 * right / (given + wanted)}


def summary(runs: list[dict[str, Any]], pairs: list[tuple[str, str]]) -> dict[str, Any]:
    table = {}
    for name in runs[0]:
        table[name] = {
            measure: {
                "mean": float(np.mean([run[name][measure] for run in runs])),
                "sd": float(np.std([run[name][measure] for run in runs], ddof=1)),
            }
            for measure in ("precision", "recall", "f1", "exact", "tags")
            if measure in runs[0][name]
        }
    gains = {f"{one} - {other}": [run[one]["f1"] - run[other]["f1"] for run in runs] for one, other in pairs}
    return {"models": table, "f1_gains_by_seed": gains}


def plain_cky(grammar: Grammar, scores: ChartScores) -> float:
    """CKY with dicts, as one writes it: rules by their two parts."""
    rules: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (b, c, a), weight in zip(grammar.rules.tolist(), scores.rule.tolist(), strict=True):
        rules.setdefault((b, c), []).append((a, weight))
    n = len(scores.leaf)
    chart: dict[tuple[int, int], dict[int, float]] = {}
    for s in range(n):
        chart[s, s + 1] = {a: float(v) for a, v in enumerate(scores.leaf[s]) if v > -np.inf}
    for length in range(2, n + 1):
        for s in range(n - length + 1):
            here: dict[int, float] = {}
            for m in range(s + 1, s + length):
                for b, left in chart[s, m].items():
                    for c, right in chart[m, s + length].items():
                        for a, weight in rules.get((b, c), ()):
                            value = left + right + weight
                            if value > here.get(a, -np.inf):
                                here[a] = value
            chart[s, s + length] = here
    roots = scores.roots(grammar)
    return max((v + roots[a] for a, v in chart[0, n].items()), default=-np.inf)


def speed(name: str, grammar: Grammar, scores: ChartScores) -> dict[str, Any]:
    found = best_derivation(grammar, scores)
    if found is None or abs(derivation_score(grammar, scores, found) - plain_cky(grammar, scores)) > 1e-9:
        raise SystemExit("the kernel and plain Python disagree")
    return {
        "grammar": name,
        "words": len(scores.leaf),
        "symbols": len(grammar.symbols),
        "rules": len(grammar.rules),
        "cky_seconds": best_of(lambda: best_derivation(grammar, scores), 20),
        "plain_python_seconds": best_of(lambda: plain_cky(grammar, scores), 2),
        "inside_outside_seconds": best_of(lambda: inside_outside(grammar, scores), 3),
    }


def toy_speed(words: int) -> dict[str, Any]:
    trees = toy_trees(1000)
    grammar, lexicon = Grammar.of_trees(trees), Lexicon.of_trees(trees)
    w = generative_weights(GrammarProblem(grammar), [h for h in map(grammar.derivation, trees) if h is not None])
    return speed("read off 1000 simulated trees", grammar, scores_of(grammar, lexicon, w, long_sentence(0, words)))


def dense_speed(words: int) -> dict[str, Any]:
    """A grammar by which every span may be anything."""
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(40**3, size=2000, replace=False))
    rules = np.stack(np.unravel_index(chosen, (40, 40, 40)), axis=1).astype(np.int64)
    every = np.arange(40)
    grammar = Grammar(tuple(f"X{k:02}" for k in range(40)), rules, every, every)
    return speed("drawn, dense", grammar, ChartScores(rng.normal(size=(words, 40)), rng.normal(size=2000)))


def scores_of(grammar: Grammar, lexicon: Lexicon, w: Any, words: tuple[str, ...]) -> ChartScores:
    n = len(words)
    x = Sentence(words, lexicon.log_likelihoods(words), np.zeros((n, n + 1, 0), np.int32))
    return GrammarProblem(grammar).scores(x, w)


def long_sentence(seed: int, words: int) -> tuple[str, ...]:
    """The baker saw the hat of the pilot and the park ... .: 6 words, and 3 more as often as they fit."""
    rng = np.random.default_rng(seed)
    found = ["the", "baker", "saw", "the", "hat"]
    while len(found) + 4 <= words:
        found += [
            str(rng.choice(["with", "of", "and", "in"])),
            "the",
            str(rng.choice(["baker", "pilot", "park", "scarf"])),
        ]
    return (*found, ".")


def main() -> None:
    runs = [{**quality(seed), "spans alone": spans_alone(seed)} for seed in range(SEEDS)]
    pairs = [("basic", "generative"), ("lexical", "basic"), ("lexical-aux", "lexical")]
    save(
        "parsing",
        {
            "train_trees": TRAIN,
            "test_trees": TEST,
            "seeds": SEEDS,
            **summary(runs, [*pairs, ("lexical-aux", "lexical-aux, seen")]),
            "runs": runs,
            "speed": [run(n) for run in (toy_speed, dense_speed) for n in (9, 21, 39)],
        },
    )


if __name__ == "__main__":
    main()
