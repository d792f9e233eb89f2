"""The commands of the distributed engine and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption
from netclust.options.groups import app

shards = typer.Typer(help="Run the detector on many workers, from a bus to a bus.", no_args_is_help=True)
app.add_typer(shards, name="shards")

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration (TOML), with [sharding].")]


@shards.command("run")
def run_shards(
    config: ConfigOption,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, max=256, help="Processes on this machine.")] = 1,
    process_id: Annotated[
        int | None, typer.Option(min=0, help="Be this one of several processes, with --addresses; 0 is the first.")
    ] = None,
    addresses: Annotated[
        str, typer.Option(help="HOST:PORT of every process, the first one first, with ; between them.")
    ] = "",
    until_idle: Annotated[
        float | None,
        typer.Option(min=0.1, help="End when no partition had a message for so many seconds, and none waits."),
    ] = None,
    parent: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run the workers until they are stopped; one that dies is started again from the last snapshot."""
    from netclust.stream.sharding import run_shards as commands

    raise typer.Exit(commands.run_shards(config, workers, process_id, addresses, until_idle=until_idle, parent=parent))


@shards.command("check")
def check_shards(config: ConfigOption) -> None:
    """Check whether the engine would start with a configuration. Nothing is opened or changed."""
    from netclust.stream.sharding import run_shards as commands

    commands.run_shards_check(config)


@shards.command("status")
def show_shards(config: ConfigOption, json: JsonOption = None) -> None:
    """Show what waits on the bus for every partition, and how far its shard is. Changes nothing."""
    from netclust.stream.sharding import run_shards as commands

    commands.run_shards_status(config, json)


@shards.command("label")
def label_shards(
    config: ConfigOption,
    target: Annotated[
        str | None, typer.Argument(help="A cluster (cluster:N), or a record (SENSOR/SOURCE:SEQ).")
    ] = None,
    label: Annotated[str | None, typer.Argument(help="normal, or the name of an attack.")] = None,
    undo: Annotated[str, typer.Option(help="Take the label of this id back.")] = "",
    stream: Annotated[
        str, typer.Option(help="Of a record: which stream, if its number was given more than once.")
    ] = "",
    by: Annotated[str | None, typer.Option(help="Who says so. Default: the login name.")] = None,
    json: JsonOption = None,
) -> None:
    """Send all shards the label of a cluster or a record. Prints the id of the label, to undo it by."""
    from netclust.stream.sharding import run_shards as commands

    commands.run_shards_label(config, target, label, undo, stream, by, json)
