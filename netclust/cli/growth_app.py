"""The commands of the engine's experiments on growing windows and few labels, and their options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from netclust.cli.app import JsonOption, SchemaOption, reproduce
from netclust.cli.shared_options import with_groups


@dataclass(frozen=True)
class GrowthOptions:
    """What every experiment of this kind is given."""

    train: Annotated[str, typer.Option(help="Labelled training records (KDDTrain+).")]
    test: Annotated[str, typer.Option(help="Labelled test records (KDDTest+), in the order of the stream.")]
    draws: Annotated[int, typer.Option(min=1, max=1000, help="Reference sets a row.")] = 5
    json: JsonOption = None
    plot: Annotated[Path | None, typer.Option(help="Write a picture (.svg or .png) to this file.")] = None
    schema: SchemaOption = "kdd"


@reproduce.command("windows")
@with_groups
def reproduce_windows(options: GrowthOptions) -> None:
    """Accuracy with true labels that come late, by the length of the referent window, up to everything seen."""
    from netclust.cli.reproduce_growth import run_windows as run

    run(options.train, options.test, options.draws, options.json, options.plot, options.schema)


@reproduce.command("label-economy")
@with_groups
def reproduce_label_economy(
    options: GrowthOptions, jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2
) -> None:
    """Accuracy by the share of records that a person labels, and by how the records to label are chosen."""
    from netclust.cli.reproduce_growth import run_label_economy as run

    run(options.train, options.test, options.draws, options.json, options.plot, options.schema, jobs)
