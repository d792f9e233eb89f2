"""The commands and their options. Each loads its own module when it runs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust._version import __version__

app = typer.Typer(
    name="netclust",
    help="Link network records to what came before; what links to nothing normal is an anomaly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,  # piped help is plain text
)
train = typer.Typer(help="Train a model.", no_args_is_help=True)
evaluate = typer.Typer(help="Measure a model on labelled data.", no_args_is_help=True)
simulate = typer.Typer(help="Make synthetic data.", no_args_is_help=True)
app.add_typer(train, name="train")
app.add_typer(evaluate, name="evaluate")
app.add_typer(simulate, name="simulate")


class OnError(StrEnum):
    """What to do with a line that cannot be read."""

    stop = "stop"
    skip = "skip"


class Protocol(StrEnum):
    """How a test stream is run."""

    thesis = "thesis"
    stream = "stream"


class Feedback(StrEnum):
    """Which labels window members carry."""

    none = "none"
    predicted = "predicted"
    gold = "gold"


SchemaOption = Annotated[str, typer.Option(help="A built-in schema (kdd) or a schema file (.toml).")]
SkipOption = Annotated[OnError, typer.Option(help="Stop at a line that cannot be read, or skip and count it.")]
JsonOption = Annotated[Path | None, typer.Option(help="Write the result as JSON to this file (- for standard output).")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]


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


@train.command("network")
def train_network(
    file: Annotated[str, typer.Argument(help="Labelled records, in arrival order (- for standard input).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    params: Annotated[str | None, typer.Option(help="Training parameters: a TOML file, or the preset thesis.")] = None,
    seed: SeedOption = 0,
    schema: SchemaOption = "kdd",
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(help="Calibrate the root on held-out normal records for this false-alarm rate."),
    ] = None,
    on_error: SkipOption = OnError.stop,
    json: JsonOption = None,
) -> None:
    """Learn a similarity from labelled connection records and write a model file."""
    from netclust.cli.network import train as run

    run(file, output, params, seed, schema, false_alarm_rate, on_error.value, json)


@evaluate.command("network")
def evaluate_network(
    model: Annotated[Path, typer.Option(help="The model file.")],
    test: Annotated[str, typer.Option(help="Labelled test records (- for standard input).")],
    protocol: Annotated[Protocol, typer.Option(help="thesis: as the published tables; stream: as in operation.")] = (
        Protocol.stream
    ),
    feedback: Annotated[
        Feedback,
        typer.Option(
            help="none: the reference set only; predicted: earlier records, as judged; gold: true labels, late."
        ),
    ] = Feedback.predicted,
    delay: Annotated[
        int, typer.Option(min=0, max=1 << 24, help="Records until a true label counts; in thesis also the gap.")
    ] = 100,
    window: Annotated[
        int, typer.Option(min=0, help="Referent window: how many earlier records can be linked to.")
    ] = 100,
    mature: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="A record judged normal can be linked to only once its true label came, or after this many seconds of "
            "traffic without an alarm (records without times never mature). Default: at once.",
        ),
    ] = None,
    json: JsonOption = None,
    alerts: Annotated[int, typer.Option(min=0, help="How many alerts to show.")] = 0,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Run a model over a labelled stream by a protocol, and print what it found and missed."""
    from netclust.cli.network import evaluate as run

    run(model, test, protocol.value, feedback.value, delay, window, mature, json, alerts, on_error.value)


@simulate.command("records")
def simulate_records(
    output: Annotated[
        str, typer.Option("-o", "--output", help="The file to write (.gz or .xz packs it; - for output).")
    ],
    records: Annotated[int, typer.Option(min=1, help="How many records.")] = 20_000,
    seed: SeedOption = 0,
    day: Annotated[int, typer.Option(min=0, help="Which day: the benign mix drifts from day to day.")] = 0,
    attacks: Annotated[
        str,
        typer.Option(help="known, all (with the types held back from training), none, or names with commas."),
    ] = "known",
    attack_share: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of attack records.")] = 0.2,
) -> None:
    """Write a labelled stream in the NSL-KDD format, from class profiles. Synthetic: not a measure of anything real."""
    from netclust.cli.simulate import records as run

    run(output, records, seed, day, attacks, attack_share)


@app.command()
def warmup(json: JsonOption = None) -> None:
    """Compile every kernel into the cache, so that the next start is quick."""
    from netclust.cli.warmup import run

    run(json)


@app.command()
def info(
    model: Annotated[Path, typer.Argument(help="The model file.")],
    json: JsonOption = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the strongest weights to show.")] = 12,
) -> None:
    """Tell what is in a model file."""
    from netclust.cli.info import run

    run(model, json, top)
