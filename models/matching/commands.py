"""The commands of matchings and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import evaluate, predict, train
from netclust.options.shared_options import (
    CostOption,
    EpsilonOption,
    ModelOption,
    OutputModelOption,
    SvmLearner,
    SvmLearnerOption,
)

PairsArgument = Annotated[
    str, typer.Argument(help="A CSV of candidate pairs: left, right, features; example and match where there are.")
]


@train.command("matching")
def train_matching(
    pairs: PairsArgument,
    output: OutputModelOption,
    general: Annotated[
        bool, typer.Option("--general", help="Left and right are one set: anything may be paired with anything.")
    ] = False,
    perfect: Annotated[bool, typer.Option("--perfect", help="Nothing is left without a partner.")] = False,
    C: CostOption = "cv",
    epsilon: EpsilonOption = 0.1,
    learner: SvmLearnerOption = SvmLearner.one_slack,
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A column to match by; may be given again. Default: all others.")
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn from known matches how to pair things, and write a model file."""
    from netclust.models.matching.run_matching import train_matching as run

    settings = {"general": general, "perfect": perfect, "epsilon": epsilon, "learner": learner.value, "seed": seed}
    run(pairs, output, fields, settings, C, json)


@predict.command("matching")
def predict_matching(
    pairs: PairsArgument,
    model: ModelOption,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="CSV: example, left, right, match, score (- for standard output)."),
    ],
    json: JsonOption = None,
) -> None:
    """Match new candidate pairs: every name has at most one partner."""
    from netclust.models.matching.run_matching import predict_matching as run

    run(pairs, model, output, json)


@evaluate.command("matching")
def evaluate_matching(
    model: ModelOption,
    test: Annotated[str, typer.Option(help="Candidate pairs whose matches are known.")],
    json: JsonOption = None,
) -> None:
    """Match candidate pairs and measure against their true matches."""
    from netclust.models.matching.run_matching import evaluate_matching as run

    run(model, test, json)
