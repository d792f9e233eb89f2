"""The command that measures detection in real captures, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import CaptureSchema, JsonOption, Peers, SeedOption
from netclust.options.groups import evaluate


@evaluate.command("capture")
def evaluate_capture(
    captures: Annotated[list[str], typer.Argument(help="Labelled captures, or folders of them.")],
    labels: Annotated[Path, typer.Option(help="A label file: which connections of which capture are what.")],
    schema: Annotated[list[CaptureSchema] | None, typer.Option(help="Which attributes; again for the other.")] = None,
    params: Annotated[str | None, typer.Option(help="Training parameters: a TOML file or a preset.")] = None,
    false_alarm_rate: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="At which every detector's threshold is set, on a simulated day.")
    ] = 0.01,
    hours: Annotated[float, typer.Option(min=0.5, max=240, help="How long a simulated day is.")] = 24.0,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Reference sets.")] = 5,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Seeds of every rival.")] = 2,
    every: Annotated[int, typer.Option(min=1, max=1000, help="Rivals get every so many-th simulated connection.")] = 10,
    peers: Annotated[Peers, typer.Option(help="Rivals: all, fast (the isolation forest alone), or none.")] = Peers.all,
    seed: SeedOption = 0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the table (SVG or PNG; with two schemas, a file each).")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Train on simulated traffic, then find the attacks of real captures among ordinary connections."""
    from netclust.models.experiments.captures.evaluate_captures import run_capture_evaluation as run

    chosen = [s.value for s in schema or [CaptureSchema.flow]]
    run(
        captures, labels, chosen, params, false_alarm_rate, hours, draws, seeds, every, peers.value, seed, picture, json
    )
