"""The commands of the engine's experiments on growing windows and few labels, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.cli.app import JsonOption, SchemaOption, reproduce

TrainOption = Annotated[str, typer.Option(help="Labelled training records (KDDTrain+).")]
TestOption = Annotated[str, typer.Option(help="Labelled test records (KDDTest+), in the order of the stream.")]
DrawsOption = Annotated[int, typer.Option(min=1, max=1000, help="Reference sets a row.")]
PlotOption = Annotated[Path | None, typer.Option(help="Write a picture (.svg or .png) to this file.")]


@reproduce.command("windows")
def reproduce_windows(
    train: TrainOption,
    test: TestOption,
    draws: DrawsOption = 5,
    json: JsonOption = None,
    plot: PlotOption = None,
    schema: SchemaOption = "kdd",
) -> None:
    """Accuracy with true labels that come late, by the length of the referent window, up to everything seen."""
    from netclust.cli.reproduce_growth import run_windows as run

    run(train, test, draws, json, plot, schema)


@reproduce.command("label-economy")
def reproduce_label_economy(
    train: TrainOption,
    test: TestOption,
    draws: DrawsOption = 5,
    json: JsonOption = None,
    plot: PlotOption = None,
    schema: SchemaOption = "kdd",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """Accuracy by the share of records that a person labels, and by how the records to label are chosen."""
    from netclust.cli.reproduce_growth import run_label_economy as run

    run(train, test, draws, json, plot, schema, jobs)
