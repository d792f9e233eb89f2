"""Parsing as a structured task: a grammar read off a treebank, with counted or learned weights.

>>> from netclust.models.parsing.toy_treebank import toy_trees
>>> settings = GrammarSettings(C=100.0, epsilon=1.0)
>>> raw = TASK.examples(toy_trees(30), settings)
>>> encoder = TASK.fit(raw, settings)
>>> problem, examples = TASK.problem(encoder, settings), TASK.encode(encoder, raw)
>>> learned = TASK.learn(settings, problem, examples)
>>> TASK.measure([(y, problem.predict(x, learned.w)) for x, y in examples])["f1"] > 95
True

    generative    relative frequencies of rules, no training; the words' log P(word | tag)
    basic         the same rules with learned weights
    lexical       also features of spans: the words at their edges, inside and outside
    lexical-aux   also what a generative parser and a classifier of spans say of a span

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
chapter 9. There the weight of log P(word | tag) is fixed to 1; here it is learned like the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from netclust.errors import InputError
from netclust.learners.cutting_plane import OnIteration, SvmFit
from netclust.models.parsing.binarisation import Binarisation, Direction
from netclust.models.parsing.bracket_metrics import measure_trees
from netclust.models.parsing.encoder import GrammarEncoder, TreeExample, training_examples
from netclust.models.parsing.likelihood import train_likelihood
from netclust.models.parsing.parsing_problem import GrammarProblem, Parse, Sentence, generative_weights
from netclust.models.parsing.syntax import Tree
from netclust.models.structured_model import know_task
from netclust.models.structured_task import LearnedTask, StructuredTask, SvmSettings, learn_svm
from netclust.problems.base import Problem

__all__ = ["TASK", "GrammarSettings", "GrammarTask", "ModelKind"]

ModelKind = Literal["generative", "basic", "lexical", "lexical-aux"]


class GrammarSettings(SvmSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a parser is learned."""

    epsilon: float = 0.2
    model: ModelKind = "lexical"
    objective: Literal["margin", "likelihood"] = "margin"
    """What weights are learned by: a margin over all wrong trees, or the conditional likelihood of the right ones."""
    direction: Direction = "right"
    horizontal: int | None = 1
    vertical: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        super().__post_init__()
        _ = self.binarisation

    @property
    def binarisation(self) -> Binarisation:
        """How symbols are made from labels."""
        return Binarisation(direction=self.direction, horizontal=self.horizontal, vertical=self.vertical)


class GrammarTask(StructuredTask):
    """Trees over words."""

    name = "grammar"
    settings = GrammarSettings
    encoder = GrammarEncoder

    def examples(self, trees: Sequence[Tree], settings: GrammarSettings) -> list[TreeExample]:
        """Trees to train on, as raw examples."""
        return training_examples(
            trees, settings.binarisation if settings.model == "lexical-aux" else None, settings.seed
        )

    def fit(self, raw: Sequence[TreeExample], settings: GrammarSettings) -> GrammarEncoder:
        """Read grammar, lexicon and features off training examples."""
        trees = [example.tree for example in raw if example.tree is not None]
        if len(trees) < len(raw) or not trees:
            raise InputError("every training sentence needs its tree, and one at least is needed")
        auxiliary = settings.model == "lexical-aux"
        notes = [example.notes for example in raw if example.notes is not None]
        if auxiliary and len(notes) < len(raw):
            raise InputError("sentences to train on need notes of parsers that have not seen them: use TASK.examples")
        return GrammarEncoder.fit(
            trees,
            settings.binarisation,
            spans=settings.model in ("lexical", "lexical-aux"),
            auxiliary=auxiliary,
            notes=notes if auxiliary else None,
            seed=settings.seed,
        )

    def encode(self, encoder: GrammarEncoder, raw: Sequence[TreeExample]) -> list[tuple[Sentence, Parse | None]]:
        """Examples of the problem."""
        return [encoder.example(example) for example in raw]

    def problem(self, encoder: GrammarEncoder, settings: GrammarSettings) -> GrammarProblem:
        """The task as learners see it."""
        return GrammarProblem(encoder.grammar, len(encoder.vocabulary.names))

    def weight_names(self, encoder: GrammarEncoder, settings: GrammarSettings) -> list[str]:
        """What every weight is of."""
        grammar = encoder.grammar
        roots = [f"root {grammar.symbols[symbol]}" for symbol in grammar.roots.tolist()]
        spans = [f"{label}: {name}" for name in encoder.vocabulary.names for label in grammar.labels.names]
        return [*grammar.rule_names(), *roots, "log P(word | tag)", *spans]

    def measure(self, pairs: Sequence[tuple[Parse, Parse]]) -> Mapping[str, float]:
        """What is missing to an F1 of 100, by which C is chosen, and the measures of brackets, all in percent."""
        found = measure_trees((y.tree, h.tree) for y, h in pairs)
        return {
            "loss": 100 * (1 - found.f1),
            "precision": 100 * found.precision,
            "recall": 100 * found.recall,
            "f1": 100 * found.f1,
            "exact": 100 * found.exact,
            "tags": 100 * found.tags,
            "no whole tree": 100 * float(np.mean([not len(h.rows) for _, h in pairs])),
        }

    def learn(
        self,
        settings: GrammarSettings,
        problem: Problem[Any, Any, Any],
        examples: Sequence[tuple[Sentence, Parse]],
        *,
        warm: SvmFit | None = None,
        on_iteration: OnIteration | None = None,
    ) -> LearnedTask:
        """Relative frequencies, or weights by a structural SVM or by likelihood."""
        if not isinstance(problem, GrammarProblem):
            raise InputError(f"this learns grammars, not {type(problem).__name__}")
        if settings.model != "generative" and settings.objective == "likelihood":
            return train_likelihood(problem, examples, C=settings.C, max_iterations=settings.max_iterations)
        if settings.model != "generative":
            return learn_svm(settings, problem, examples, warm=warm, on_iteration=on_iteration)
        w = generative_weights(problem, [y.rows for _, y in examples])
        # a rule that only held-out trees have: as rare as anything can be
        return LearnedTask(np.maximum(w, -1e4), 0, True, 0.0, 0.0, "relative frequencies")


TASK = GrammarTask()
know_task("grammar", lambda: TASK)
