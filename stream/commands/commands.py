"""The daemon's commands and their options: running it, and talking to it through its store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import JsonOption
from netclust.options.groups import app


class AlertOrder(StrEnum):
    """How alerts are listed."""

    newest = "newest"
    triage = "triage"


class AlertState(StrEnum):
    """Which alerts."""

    open = "open"
    closed = "closed"
    all = "all"


class AlertSeverity(StrEnum):
    """How bad an alert is, at least."""

    low = "low"
    medium = "medium"
    high = "high"
    critical = "critical"


StateDirOption = Annotated[
    Path | None,
    typer.Option(
        help="The daemon's state folder. Default: STATE_DIRECTORY, /var/lib/netclust for root, else "
        "~/.local/state/netclust."
    ),
]
ByOption = Annotated[str | None, typer.Option(help="Who says so. Default: the login name.")]
WhyOption = Annotated[str, typer.Option(help="Why; kept for those who come later.")]


class Kind(StrEnum):
    """What a source is."""

    capture = "capture"
    live = "live"
    records = "records"
    zeek = "zeek"
    eve = "eve"
    bus = "bus"


@app.command()
def run(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration (TOML).")],
) -> None:
    """Run the daemon: watch the configured sources, tell the configured sinks, until it is stopped."""
    from netclust.stream.commands.run_daemon import run_daemon as start

    raise typer.Exit(start(config))


@app.command("check-config")
def check_config(
    config: Annotated[Path, typer.Argument(help="The configuration (TOML).")],
) -> None:
    """Say whether the daemon would start with a configuration. Nothing is opened or changed."""
    from netclust.stream.commands.run_daemon import run_daemon_check

    run_daemon_check(config)


@app.command()
def watch(
    source: Annotated[
        str,
        typer.Argument(help="A capture, a folder, an interface, records, a Zeek or EVE log, a socket, a bus, or -."),
    ],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more at the end, as tail -F does.")] = False,
    kind: Annotated[Kind | None, typer.Option(help="What the source is, where its content does not say.")] = None,
    model: Annotated[str, typer.Option(help="A model file, or flow, conn or kdd. Default: what fits the source.")] = "",
    schema: Annotated[str, typer.Option(help="For captures: flow, conn or kdd.")] = "",
    warmup: Annotated[
        int | None, typer.Option(min=0, help="Records to learn the site from before new things are told; 0: none.")
    ] = None,
    bpf: Annotated[str, typer.Option("--filter", help="For an interface: a capture filter, as tcpdump has them.")] = "",
    json: Annotated[str, typer.Option(help="Also append alerts to this file, a line of JSON each.")] = "",
    http: Annotated[str, typer.Option(help="Also serve metrics and the console at HOST:PORT.")] = "",
    console: Annotated[
        bool,
        typer.Option("--console", help="Serve the console, print its address, and go on until Ctrl-C."),
    ] = False,
    pace: Annotated[
        float,
        typer.Option(min=0, help="Of a file: as fast as it happened, times this; 0: as fast as it can be read."),
    ] = 0.0,
    seconds: Annotated[float | None, typer.Option("--for", min=0, help="Stop after so many seconds.")] = None,
    state_dir: Annotated[str, typer.Option(help="Keep what was learned here, and go on from it the next time.")] = "",
) -> None:
    """Watch a source without any configuration: learn what is usual, then show alerts here."""
    from netclust.stream.commands import run_watch as watching

    configured = watching.configured(
        source, kind=kind.value if kind else "", follow=follow, model=model, schema=schema, warmup=warmup, bpf=bpf,
        json=json, http=http, state=state_dir, pace=pace, console=console,
    )  # fmt: skip
    raise typer.Exit(watching.run_watch(configured, seconds, keep=bool(state_dir), console=console))


@app.command()
def snapshots(state_dir: StateDirOption = None) -> None:
    """List the models that the daemon has used: what `rollback` can go back to."""
    from netclust.stream.commands.run_snapshots import run_snapshots

    run_snapshots(state_dir)


@app.command()
def rollback(
    model: Annotated[str, typer.Argument(help="The beginning of its fingerprint, as `netclust snapshots` shows it.")],
    by: ByOption = None,
    why: WhyOption = "",
    state_dir: StateDirOption = None,
) -> None:
    """Have the daemon go on with a model that it used before, from its next batch on."""
    from netclust.stream.commands.run_snapshots import run_snapshots_rollback as run_it

    run_it(model, by, why, state_dir)


@app.command("alerts")
def show_alerts(
    alert: Annotated[
        str | None, typer.Argument(help="Show all about one: its id (a-...), or the beginning of it.")
    ] = None,
    state: Annotated[AlertState, typer.Option(help="Open, closed or all alerts.")] = AlertState.open,
    since: Annotated[str | None, typer.Option(help="Seen since: 2h or 7d ago, or an ISO time (UTC).")] = None,
    severity: Annotated[AlertSeverity | None, typer.Option(help="At least this severity.")] = None,
    text: Annotated[str | None, typer.Option(help="Contained in entity, label or summary.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the last seen first.")] = 50,
    order: Annotated[
        AlertOrder, typer.Option(help="newest: the last seen first; triage: the worst first, similar ones together.")
    ] = AlertOrder.newest,
    json: JsonOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Show what the daemon found: a table, or everything about one alert and why it is one."""
    from netclust.stream.commands.run_alerts import alerts as run

    triage = order is AlertOrder.triage
    run(alert, state.value, since, None if severity is None else severity.value, text, limit, json, state_dir, triage)


@app.command("clusters")
def show_clusters(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, most anomalous records first.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Those without anomalous records, too.")] = False,
    json: JsonOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Show the clusters that the daemon keeps, as of its last checkpoint."""
    from netclust.stream.commands.run_alerts import clusters as run

    run(limit, everything, json, state_dir)


@app.command("label")
def label_something(
    target: Annotated[
        str | None, typer.Argument(help="An alert (a-...), a cluster (cluster:N) or a record (SOURCE:SEQ).")
    ] = None,
    label: Annotated[str | None, typer.Argument(help="normal, or attack:NAME.")] = None,
    by: ByOption = None,
    why: WhyOption = "",
    undo: Annotated[int | None, typer.Option(min=1, help="Take the label of this number back.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show what was said, newest first.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to list.")] = 50,
    json: JsonOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Tell the daemon what an alert, a cluster or a record really is. It counts from its next batch on."""
    from netclust.stream.commands.run_label import label as run

    run(target, label, undo, show, by, why, limit, json, state_dir)


suppress = typer.Typer(help="Hide alerts that are known, for a while and for a reason.", no_args_is_help=True)
app.add_typer(suppress, name="suppress")


@suppress.command("add")
def suppress_add(
    reason: Annotated[str, typer.Option(help="Why; must be given.")],
    address: Annotated[str, typer.Option(help="An address or network, at either end.")] = "",
    source: Annotated[str, typer.Option(help="An address or network that calls.")] = "",
    destination: Annotated[str, typer.Option(help="An address or network that is called.")] = "",
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="A destination port.")] = None,
    cluster: Annotated[int | None, typer.Option(min=0, help="A cluster's number.")] = None,
    label: Annotated[str, typer.Option(help="What alerts are taken for: novel, or a class.")] = "",
    attribute: Annotated[str, typer.Option(help="NAME=VALUE of a symbolic attribute or a context column.")] = "",
    until: Annotated[str, typer.Option(help="When it ends: 8h or 7d from now, or an ISO time. Default: never.")] = "",
    by: ByOption = None,
    json: JsonOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Hide alerts that match all that is given. What is hidden is counted."""
    from netclust.stream.commands.run_label import run_label_suppress as run
    from netclust.stream.store.requests import SuppressionRule

    rule = SuppressionRule(
        address=address, source=source, destination=destination, port=port, cluster=cluster, label=label,
        attribute=attribute,
    )  # fmt: skip
    run(rule, until, reason, by, json, state_dir)


@suppress.command("list")
def suppress_list(
    everything: Annotated[bool, typer.Option("--all", help="Those that are over or removed, too.")] = False,
    json: JsonOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Show what is hidden now, by whom, why, until when, and how often it was."""
    from netclust.stream.commands.run_label import show_suppressions as run

    run(everything, json, state_dir)


@suppress.command("remove")
def suppress_remove(
    suppression: Annotated[str, typer.Argument(help="Its id (s-N).")],
    by: ByOption = None,
    why: WhyOption = "",
    json: JsonOption = None,
    state_dir: StateDirOption = None,
) -> None:
    """Let alerts be told again."""
    from netclust.stream.commands.run_label import remove as run

    run(suppression, by, why, json, state_dir)
