"""The command line and the groups of its commands, which the files of commands add to."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from netclust._version import __version__

__all__ = ["app", "evaluate", "predict", "reproduce", "score", "simulate", "train", "tune"]

app = typer.Typer(
    name="netclust",
    help="Link network records to what came before; what links to nothing normal is an anomaly.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands take it over from here
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,  # piped help is plain text
)
train = typer.Typer(help="Train a model.", no_args_is_help=True)
evaluate = typer.Typer(help="Measure a model on labelled data.", no_args_is_help=True)
score = typer.Typer(help="Measure what any system answered against the truth.", no_args_is_help=True)
predict = typer.Typer(help="Apply a model to new data.", no_args_is_help=True)
tune = typer.Typer(help="Choose training parameters.", no_args_is_help=True)
simulate = typer.Typer(help="Make synthetic data.", no_args_is_help=True)
reproduce = typer.Typer(help="Run a published experiment again, beside ours.", no_args_is_help=True)
app.add_typer(train, name="train")
app.add_typer(evaluate, name="evaluate")
app.add_typer(score, name="score")
app.add_typer(predict, name="predict")
app.add_typer(tune, name="tune")
app.add_typer(reproduce, name="reproduce")
app.add_typer(simulate, name="simulate")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"netclust {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of every command."""
