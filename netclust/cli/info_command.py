"""The commands that look at models and kernels, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption
from netclust.options.groups import app


@app.command()
def warmup(json: JsonOption = None) -> None:
    """Compile every kernel into the cache, so that the next start is quick."""
    from netclust.cli.warmup import run_warmup

    run_warmup(json)


@app.command()
def info(
    model: Annotated[Path, typer.Argument(help="The model file.")],
    json: JsonOption = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the strongest weights to show.")] = 12,
) -> None:
    """Tell what is in a model file."""
    from netclust.cli.info import run_info

    run_info(model, json, top)
