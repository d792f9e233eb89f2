"""The options of the laboratory of approximate inference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import reproduce


@reproduce.command("approximate-inference")
def reproduce_approximate_inference(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Multi-label data: a folder with scene/, yeast/, emotions/, enron/, medical/. None: made data alone."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="A data set, also synth1, synth2, synth2+1 (repeat it for more).")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, max=10, help="Folds of training rows by which C is chosen.")] = 2,
    max_iterations: Annotated[int, typer.Option(min=1, help="Of one training.")] = 100,
    networks: Annotated[
        int, typer.Option(min=0, max=100_000, help="Random networks on which searches are counted.")
    ] = 1000,
    seed: SeedOption = 0,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 1,
    json: JsonOption = None,
    plots: Annotated[Path | None, typer.Option(help="A folder for pictures (needs matplotlib).")] = None,
) -> None:
    """Train multi-label models with exact and inexact searches, predict with each, and compare with the print."""
    from netclust.models.experiments.approximate.reproduce_approximate import run_approximate_reproduction

    run_approximate_reproduction(folder, only or [], folds, max_iterations, networks, seed, jobs, json, plots)
