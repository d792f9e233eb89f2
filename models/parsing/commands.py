"""The commands of parsing and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import evaluate, predict, simulate, train
from netclust.options.shared_options import ModelOption, OutputModelOption


class GrammarModel(StrEnum):
    """What is learned."""

    generative = "generative"
    basic = "basic"
    lexical = "lexical"
    lexical_aux = "lexical-aux"


class GrammarObjective(StrEnum):
    """What weights are learned by."""

    margin = "margin"
    likelihood = "likelihood"


class Direction(StrEnum):
    """Which end of a node's parts is gathered into one."""

    left = "left"
    right = "right"


TreesArgument = Annotated[str, typer.Argument(help="A treebank: trees in brackets, on one or many lines each.")]
FunctionalTags = Annotated[
    bool, typer.Option("--functional-tags", help="Keep functional tags: NP-SBJ is not NP. Default: dropped.")
]


@train.command("grammar")
def train_grammar(
    trees: TreesArgument,
    output: OutputModelOption,
    model: Annotated[
        GrammarModel,
        typer.Option(
            "--learn",
            help="generative: counts; basic: weights of rules; lexical: also of words at edges of "
            "spans; lexical-aux: also of what two auxiliary parsers say.",
        ),
    ] = GrammarModel.lexical,
    objective: Annotated[
        GrammarObjective, typer.Option(help="Weights by a margin over wrong trees, or by the likelihood of right ones.")
    ] = GrammarObjective.margin,
    C: Annotated[str, typer.Option("--C", help="Weight of the loss: a number, or cv to choose it by folds.")] = "cv",
    folds: Annotated[int, typer.Option(min=2, max=20, help="By how many folds C is chosen.")] = 3,
    longest: Annotated[int, typer.Option(min=1, max=200, help="Longer sentences are left out.")] = 40,
    direction: Annotated[
        Direction, typer.Option(help="Which end of a node's parts is gathered into one.")
    ] = Direction.right,
    horizontal: Annotated[int, typer.Option(min=-1, max=20, help="How many siblings a part remembers; -1: all.")] = 1,
    vertical: Annotated[int, typer.Option(min=1, max=20, help="1: no ancestor is remembered; 2: the parent.")] = 1,
    epsilon: Annotated[float, typer.Option(help="How far, in percent of loss, a constraint may be missed.")] = 0.2,
    max_iterations: Annotated[int, typer.Option(min=1, help="The most passes over the treebank.")] = 500,
    functional_tags: FunctionalTags = False,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Read a grammar off a treebank, learn its weights, and write a model file."""
    from netclust.models.parsing.run_grammar import train_trees

    settings = {
        "model": model.value,
        "objective": objective.value,
        "direction": direction.value,
        "horizontal": None if horizontal < 0 else horizontal,
        "vertical": vertical,
        "epsilon": epsilon,
        "max_iterations": max_iterations,
        "seed": seed,
    }
    train_trees(trees, output, settings, C, folds, longest, functional_tags, json)


@predict.command("grammar")
def predict_grammar(
    sentences: Annotated[str, typer.Argument(help="Sentences: one a line, words between blanks.")],
    model: ModelOption,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Trees in brackets, one a line (- for standard output).")
    ],
    json: JsonOption = None,
) -> None:
    """Parse sentences with a trained model."""
    from netclust.models.parsing.run_grammar import parse_sentences

    parse_sentences(sentences, model, output, json)


@evaluate.command("grammar")
def evaluate_grammar(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="A treebank that the model was not trained on.")],
    longest: Annotated[int, typer.Option(min=1, max=200, help="Longer sentences are left out.")] = 40,
    functional_tags: FunctionalTags = False,
    json: JsonOption = None,
) -> None:
    """Parse the sentences of a treebank and measure brackets: precision, recall, F1, exact match."""
    from netclust.models.parsing.run_grammar import evaluate_trees

    evaluate_trees(model, test, longest, functional_tags, json)


@simulate.command("trees")
def simulate_trees(
    output: Annotated[Path, typer.Option("-o", "--output", help="The treebank to write (- for standard output).")],
    count: Annotated[int, typer.Option("--trees", min=1, max=1_000_000, help="How many trees.")] = 500,
    seed: SeedOption = 0,
    noise: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of attachments that go against the words.")
    ] = 0.08,
) -> None:
    """Write trees of an invented grammar with its ambiguities. Synthetic: not a measure of anything real."""
    from netclust.models.parsing.run_grammar import write_toy_trees

    write_toy_trees(output, count, seed, noise)
