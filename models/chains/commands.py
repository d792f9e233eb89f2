"""The commands of chains and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import evaluate, predict, simulate, train
from netclust.options.shared_options import (
    CostOption,
    EpsilonOption,
    ModelOption,
    NormalOption,
    OutputModelOption,
    SvmLearner,
    SvmLearnerOption,
)


class ChainModelName(StrEnum):
    """What is learned."""

    m3n = "m3n"
    svm = "svm"
    crf = "crf"


class ChainMean(StrEnum):
    """What counts the same in the loss."""

    labels = "labels"
    sequences = "sequences"


RowsArgument = Annotated[
    str,
    typer.Argument(help="Rows in order: a CSV with a header, or JSON lines as `netclust detect --every` writes them."),
]
TruthOption = Annotated[
    str | None, typer.Option(help="A file whose label column is the truth of the rows, row by row.")
]
CutOption = Annotated[int | None, typer.Option(min=1, help="Sequences of more rows than this are cut into even parts.")]


@train.command("chains")
def train_chains(
    rows: RowsArgument,
    output: OutputModelOption,
    model: Annotated[
        ChainModelName,
        typer.Option("--learn", help="m3n: max-margin; svm: every row by itself; crf: by the likelihood of labels."),
    ] = ChainModelName.m3n,
    sequence: Annotated[str, typer.Option(help="The column that tells sequences apart.")] = "sequence",
    label: Annotated[str, typer.Option(help="The column with the label.")] = "label",
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A column to judge by; may be given again. Default: all others.")
    ] = None,
    truth: TruthOption = None,
    normal: NormalOption = None,
    cut: CutOption = None,
    mean: Annotated[
        ChainMean, typer.Option(help="What counts the same in the loss: every label, or every sequence.")
    ] = ChainMean.labels,
    C: CostOption = "cv",
    epsilon: EpsilonOption = 0.5,
    learner: SvmLearnerOption = SvmLearner.one_slack,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from labelled sequences what labels look like, and which follow which."""
    from netclust.models.attractive.run_attractive import RelationOptions
    from netclust.models.chains.run_chains import train_chains as run
    from netclust.models.chains.task import ChainColumns

    columns = ChainColumns(sequence=sequence, label=label, fields=tuple(fields or ()))
    settings = {
        "model": model.value, "mean": mean.value, "epsilon": epsilon, "learner": learner.value, "seed": seed,
    }  # fmt: skip
    run(RelationOptions(rows, truth=truth, normal=tuple(normal or ()), cut=cut), columns, output, settings, C, json)


@predict.command("chains")
def predict_chains(
    rows: RowsArgument,
    model: ModelOption,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="CSV: sequence, label, how sure, a line a row (- for standard output)."),
    ],
    cut: CutOption = None,
    json: JsonOption = None,
) -> None:
    """Label the rows of sequences, each by itself and by its neighbours."""
    from netclust.models.attractive.run_attractive import RelationOptions
    from netclust.models.chains.run_chains import predict_chains as run

    run(RelationOptions(rows, cut=cut), model, output, json)


@evaluate.command("chains")
def evaluate_chains(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="Rows whose labels are known.")],
    truth: TruthOption = None,
    normal: NormalOption = None,
    cut: CutOption = None,
    json: JsonOption = None,
) -> None:
    """Label sequences and measure against their true labels."""
    from netclust.models.attractive.run_attractive import RelationOptions
    from netclust.models.chains.run_chains import evaluate_chains as run

    run(RelationOptions(test, truth=truth, normal=tuple(normal or ()), cut=cut), model, json)


@simulate.command("letters")
def simulate_letters(
    output: Annotated[str, typer.Option("-o", "--output", help="The CSV file to write.")],
    words: Annotated[int, typer.Option(min=1, help="How many words.")] = 6000,
    vocabulary: Annotated[int, typer.Option(min=1, help="How many different ones there are.")] = 1000,
    writers: Annotated[int, typer.Option(min=1, help="How many hands they are written by.")] = 150,
    noise: Annotated[float, typer.Option(help="How unlike letters are, and how many pixels are wrong.")] = 1.0,
    seed: SeedOption = 0,
    part: Annotated[int, typer.Option(min=0, help="Another number: other words by the same writers, to test on.")] = 0,
) -> None:
    """Write words in many hands as bitmaps of letters, a line a letter, for `netclust train chains`."""
    from netclust.models.chains.run_chains import run_chain_letters as run

    run(output, words=words, vocabulary=vocabulary, writers=writers, noise=noise, folds=1, seed=seed, part=part)
