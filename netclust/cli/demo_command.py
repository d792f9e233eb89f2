"""The command `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.groups import app


@app.command()
def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Keep the simulated captures and their labels in this new folder.")
    ] = None,
) -> None:
    """Show netclust at work in a minute: simulated traffic, one alert, why it is one, and how to answer it."""
    from netclust.cli.demo import run_demo

    run_demo(keep)
