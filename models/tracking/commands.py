"""The commands that find clusters again, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption, SeedOption
from netclust.options.groups import app, train
from netclust.options.shared_options import CostOption, EpsilonOption, OutputModelOption

LeastOption = Annotated[int, typer.Option(min=1, help="Leave out clusters of fewer records.")]


@app.command("profile")
def profile_clusters(
    source: Annotated[str, typer.Argument(help="A daemon's state folder; with --model, a file of records.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file of profiles to write (- for output).")],
    model: Annotated[Path | None, typer.Option(help="Records: the model that links them.")] = None,
    window: Annotated[int, typer.Option(min=1, max=1 << 24, help="Records: the referent window.")] = 5000,
    least: LeastOption = 3,
    json: JsonOption = None,
) -> None:
    """Describe novel clusters so that they can be found again by another linker, model or sensor."""
    from netclust.models.tracking.run_tracking import run_profile_clusters as run

    run(source, output, model, window, least, json)


@app.command("track")
def track_clusters(
    old: Annotated[str, typer.Argument(help="Clusters as they were: a file of profiles, or a state folder.")],
    new: Annotated[str, typer.Argument(help="Clusters as they are: a file of profiles, or a state folder.")],
    model: Annotated[Path | None, typer.Option(help="A model of train tracking. Default: unlearned.")] = None,
    limit: Annotated[float, typer.Option(min=0.0, help="Unlearned: clusters further apart are not the same.")] = 0.3,
    least: LeastOption = 3,
    carry: Annotated[
        bool, typer.Option("--carry-labels", help="NEW is a state folder: label clusters as attacks that were before.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="CSV: new, old, score and old label (- for output).")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Tell which clusters were there before: after a restart without state, a new model, at another sensor."""
    from netclust.models.tracking.run_tracking import track_clusters as run

    run(old, new, model, limit, least, carry, output, json)


@train.command("tracking")
def train_tracking(
    records: Annotated[list[str], typer.Argument(help="Labelled records, each file a stream of its own.")],
    model: Annotated[Path, typer.Option(help="The network model that links them.")],
    output: OutputModelOption,
    window: Annotated[int, typer.Option(min=1, max=1 << 24, help="Records of a window; each is linked anew.")] = 3000,
    least: LeastOption = 3,
    C: CostOption = "cv",
    epsilon: EpsilonOption = 1.0,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Learn which clusters of two windows are the same, from labelled records."""
    from netclust.models.tracking.run_tracking import train_tracking as run

    run(records, model, output, window, least, {"epsilon": epsilon, "seed": seed}, C, json)
