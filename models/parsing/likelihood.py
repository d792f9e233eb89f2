"""The baseline of max-margin parsing: the same weights, by the conditional likelihood of the right trees.

    min |w|^2/2 + C mean_i [log Z_i - w.Phi(x_i, y_i)]

log Z and its gradient, the features that are expected of a tree, are sums over all trees (inside-outside); L-BFGS does
the rest. Sums cost more than the best tree alone, and nothing can be left out of them.

>>> from netclust.models.parsing.toy_treebank import toy_trees
>>> from netclust.models.parsing.encoder import GrammarEncoder, TreeExample
>>> from netclust.models.parsing.binarisation import Binarisation
>>> from netclust.models.parsing.syntax import syntax_words
>>> trees = toy_trees(20)
>>> encoder = GrammarEncoder.fit(trees, Binarisation())
>>> problem = GrammarProblem(encoder.grammar)
>>> examples = [encoder.example(TreeExample(syntax_words(tree), tree)) for tree in trees]
>>> fit = train_likelihood(problem, examples, C=100.0)
>>> fit.converged, problem.predict(examples[0][0], fit.w).tree == trees[0]
(True, True)

J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields", ICML 2001; B. Taskar, "Learning Structured
Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004; section 9.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.parsing.charts import inside_outside
from netclust.models.parsing.parsing_problem import GrammarProblem, Parse, Sentence
from netclust.models.structured_task import LearnedTask
from netclust.problems.base import Vector

__all__ = ["expected_features", "train_likelihood"]


def expected_features(problem: GrammarProblem, x: Sentence, w: Vector) -> tuple[float, Vector]:
    """log Z, and the mean of Phi over all trees, each as likely as exp of its score."""
    from netclust.models.parsing.cky_kernels import spread_span_features

    grammar, n = problem.grammar, len(x.words)
    sums = inside_outside(grammar, problem.scores(x, w))
    rules, roots, names = len(grammar.rules), len(grammar.roots), grammar.labels
    found = np.zeros(problem.dimension)
    found[:rules] = sums.rules
    found[rules : rules + roots] = sums.nodes[0, n, grammar.roots]
    words = np.arange(n)[:, None]
    leaves = sums.nodes[words, words + 1, grammar.preterminals]
    likely = x.likely[:, grammar.tag_of[grammar.preterminals]]
    found[rules + roots] = float((leaves * np.where(leaves > 0, likely, 0.0)).sum())
    if problem.span_features:
        standing = np.zeros((len(grammar.symbols), len(names.names)))
        np.add.at(standing, (np.repeat(np.arange(len(grammar.symbols)), np.diff(names.at)), names.label), 1.0)
        spread_span_features(x.features, sums.nodes @ standing, found[problem.span_at :].reshape(-1, len(names.names)))
    return sums.log_z, found


def train_likelihood(
    problem: GrammarProblem,
    examples: Sequence[tuple[Sentence, Parse]],
    *,
    C: float = 1.0,
    max_iterations: int = 500,
    tolerance: float = 1e-6,
    on_iteration: Callable[[Any], None] | None = None,
) -> LearnedTask:
    """Maximise the likelihood; stops when the objective falls by less than this share of it."""
    optimize = require_optional("scipy.optimize", "training by likelihood")
    if not examples or not all(len(y.rows) for _, y in examples):
        raise InputError("training by likelihood needs sentences with trees that the grammar makes")
    gold = np.sum([problem.joint_features(x, y) for x, y in examples], axis=0)

    def objective(w: Vector) -> tuple[float, Vector]:
        total, expected = 0.0, np.zeros(len(w))
        for x, _ in examples:
            log_z, mean = expected_features(problem, x, w)
            total += log_z
            expected += mean
        share = C / len(examples)
        return float(w @ w) / 2 + share * (total - float(w @ gold)), w + share * (expected - gold)

    found = optimize.minimize(
        objective, np.zeros(problem.dimension), jac=True, method="L-BFGS-B", callback=on_iteration,
        options={"maxiter": max_iterations, "ftol": tolerance, "gtol": 1e-9, "maxcor": 20},
    )  # fmt: skip
    w, slope = np.asarray(found.x, np.float64), np.asarray(found.jac, np.float64)
    # |w|^2/2 bends by 1 in every direction, so the optimum is no further below than this
    return LearnedTask(w, int(found.nit), bool(found.success), float(found.fun), float(slope @ slope) / 2, "likelihood")
