"""The commands of the experiments on detection and their options: Table 4.1, growing windows, few labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, Peers, SchemaOption
from netclust.options.groups import reproduce
from netclust.options.shared_options import with_groups


@dataclass(frozen=True)
class GrowthOptions:
    """What every experiment of this kind is given."""

    train: Annotated[str, typer.Option(help="Labelled training records (KDDTrain+).")]
    test: Annotated[str, typer.Option(help="Labelled test records (KDDTest+), in the order of the stream.")]
    draws: Annotated[int, typer.Option(min=1, max=1000, help="Reference sets a row.")] = 5
    json: JsonOption = None
    plot: Annotated[Path | None, typer.Option(help="Write a picture (.svg or .png) to this file.")] = None
    schema: SchemaOption = "kdd"


@reproduce.command("table-4.1")
def reproduce_table41(
    train: Annotated[str, typer.Option(help="Labelled training records (KDDTrain+).")],
    test: Annotated[
        list[str],
        typer.Option(
            help="Labelled test records (KDDTest+); given again (KDDTest-21), a short list of settings for each more."
        ),
    ],
    draws: Annotated[int, typer.Option(min=1, max=1000, help="Reference sets a row.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Training seeds a row.")] = 3,
    json: JsonOption = None,
    plots: Annotated[Path | None, typer.Option(help="Write pictures (SVG) to this folder.")] = None,
    peers: Annotated[
        Peers, typer.Option(help="Other people's detectors: all, fast (without river's forest, the slowest), or none.")
    ] = Peers.fast,
    pretrain: Annotated[
        int | None, typer.Option(min=1, help="river's detectors learn from the last so many training records only.")
    ] = None,
    schema: SchemaOption = "kdd",
    jobs: Annotated[int, typer.Option(min=1, help="Processes: with 2 or more, peers run beside the rest.")] = 2,
) -> None:
    """The published Table 4.1 beside ours: accuracy, detection and false positives over draws and seeds."""
    from netclust.models.experiments.detection.reproduce_table41 import run_table41_reproduction as run

    run(train, test, draws, seeds, json, plots, peers.value, pretrain, schema, jobs)


@reproduce.command("windows")
@with_groups
def reproduce_windows(options: GrowthOptions) -> None:
    """Accuracy with true labels that come late, by the length of the referent window, up to everything seen."""
    from netclust.models.experiments.detection.reproduce_growth import run_windows as run

    run(options.train, options.test, options.draws, options.json, options.plot, options.schema)


@reproduce.command("label-economy")
@with_groups
def reproduce_label_economy(
    options: GrowthOptions, jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2
) -> None:
    """Accuracy by the share of records that a person labels, and by how the records to label are chosen."""
    from netclust.models.experiments.detection.reproduce_growth import run_label_economy as run

    run(options.train, options.test, options.draws, options.json, options.plot, options.schema, jobs)
