"""The command of the experiment on coreference, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption
from netclust.options.groups import reproduce


@reproduce.command("coreference")
def reproduce_coreference(
    litbank: Annotated[Path, typer.Argument(help="LitBank: a folder with conll/ and tenfold_splits/.")],
    state: Annotated[Path, typer.Option(help="Where trainings are kept: a stopped run goes on from there.")],
    splits: Annotated[int, typer.Option(min=1, max=10, help="How many of the ten splits.")] = 10,
    sized: Annotated[int, typer.Option(min=0, max=10, help="On how many splits few features are tried.")] = 3,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 2,
    plots: Annotated[Path | None, typer.Option(help="Draw the pictures into this folder.")] = None,
    json: JsonOption = None,
) -> None:
    """Six models and three learned losses on LitBank's ten splits, beside the published order."""
    from netclust.models.experiments.coreference.reproduce_coreference import run_coreference_reproduction

    run_coreference_reproduction(litbank, state, splits, sized, jobs, plots, json)
