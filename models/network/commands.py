"""The commands of the network task and their options: training, evaluating, tuning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import (
    DelayOption,
    Feedback,
    FeedbackOption,
    JsonOption,
    LabelColumnOption,
    LabelsOption,
    LeaveOutOption,
    MatureOption,
    NormalOption,
    OnError,
    PartialOption,
    Peers,
    Protocol,
    ProtocolOption,
    SchemaOption,
    SeedOption,
    SkipOption,
    WindowOption,
    warn_without_window,
)
from netclust.options.groups import evaluate, train, tune


class Use(StrEnum):
    """What a model is tuned for."""

    reference = "reference"
    late = "late"


class Learner(StrEnum):
    """What is tuned."""

    margin = "margin"
    unlearned = "unlearned"
    lsp = "lsp"


class Split(StrEnum):
    """How the records of sites are divided."""

    host = "host"
    time = "time"
    capture = "capture"


@train.command("network")
def train_network(
    file: Annotated[
        str,
        typer.Argument(help="Labelled records in arrival order, a Zeek or EVE log, or a capture (-: standard input)."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    params: Annotated[
        str | None,
        typer.Option(help="Training parameters: a TOML file or a preset (reference, late, thesis, ...)."),
    ] = None,
    seed: SeedOption = 0,
    schema: Annotated[
        str | None,
        typer.Option(
            help="A built-in schema or a schema file. Default: kdd for records, conn for logs, flow for captures."
        ),
    ] = None,
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(help="Calibrate the root on held-out normal records for this false-alarm rate."),
    ] = None,
    assume_normal: Annotated[
        bool, typer.Option("--assume-normal", help="Take every record for normal, whatever its label: a warm-up.")
    ] = False,
    labels: LabelsOption = None,
    label_column: LabelColumnOption = None,
    normal: NormalOption = None,
    leave_out: LeaveOutOption = None,
    on_error: SkipOption = OnError.stop,
    json: JsonOption = None,
) -> None:
    """Learn a similarity from labelled connection records and write a model file."""
    from netclust.models.network.run_network import run_network_training as run
    from netclust.records.relabelling import LabelOptions

    choice = LabelOptions(labels, label_column, tuple(normal or ()), tuple(leave_out or ()))
    run(file, output, params, seed, schema, false_alarm_rate, assume_normal, choice, on_error.value, json)


@evaluate.command("network")
def evaluate_network(
    context: typer.Context,
    model: Annotated[Path, typer.Option(help="The model file.")],
    test: Annotated[str, typer.Option(help="Labelled test records, a log or a capture (- for standard input).")],
    protocol: ProtocolOption = Protocol.stream,
    feedback: FeedbackOption = Feedback.none,
    delay: DelayOption = 100,
    window: WindowOption = 100,
    partial: PartialOption = False,
    mature: MatureOption = None,
    json: JsonOption = None,
    alerts: Annotated[int, typer.Option(min=0, help="How many alerts to show.")] = 0,
    labels: LabelsOption = None,
    label_column: LabelColumnOption = None,
    normal: NormalOption = None,
    leave_out: LeaveOutOption = None,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Run a model over a labelled stream by a protocol, and print what it found and missed."""
    from netclust.models.network.run_network import run_network_evaluation as run
    from netclust.records.relabelling import LabelOptions

    warn_without_window(context, feedback)
    choice = LabelOptions(labels, label_column, tuple(normal or ()), tuple(leave_out or ()))
    run(
        model, test, protocol.value, feedback.value, delay, window, partial, mature, json, alerts, choice,
        on_error.value,
    )  # fmt: skip


@evaluate.command("site")
def evaluate_site(
    benign: Annotated[
        list[str],
        typer.Option(help="A site's log (Zeek, EVE) or capture, or a folder of captures; again for another site."),
    ],
    attacks: Annotated[
        list[str] | None,
        typer.Option(help="A capture or log of attacks, or a folder of captures; again for another."),
    ] = None,
    split: Annotated[
        list[Split] | None,
        typer.Option(
            help="host: learn one site, judge another; time: learn the first half; capture: benign captures against "
            "attack captures. Again for another. Default: host (where there are two sites) and time."
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="A shipped model or a model file. Default: conn; flow for --split capture.")
    ] = "",
    labels: Annotated[
        Path | None,
        typer.Option(help="For captures: a label file. Its rows' sources are infected hosts, whose attacks are moved."),
    ] = None,
    label_column: Annotated[str, typer.Option(help="The column of a log that has the labels.")] = "label",
    peers: Annotated[Peers, typer.Option(help="Rivals: all, fast (those of numpy and scikit-learn), or none.")] = (
        Peers.all
    ),
    folds: Annotated[
        int, typer.Option(min=2, max=1000, help="For --split capture: in how many parts benign captures are left out.")
    ] = 5,
    poison: Annotated[bool, typer.Option(help="Measure attacks in the warm-up as well.")] = True,
    alerts: Annotated[bool, typer.Option(help="Count the alerts of watch as well.")] = True,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Seeds of each rival that draws random numbers.")] = 3,
    seed: SeedOption = 0,
    json: JsonOption = None,
) -> None:
    """Judge a model at real sites: what it finds, false alarms that were not asked for, and rivals beside it."""
    from netclust.models.network.site.run_site import evaluate as run

    splits = [s.value for s in split or ([Split.host] if len(benign) > 1 else []) + [Split.time]]
    run(
        benign, attacks or [], splits, model, labels, label_column, peers.value, folds, poison, alerts, draws, seed,
        json,
    )  # fmt: skip


@tune.command("network")
def tune_network(
    file: Annotated[str, typer.Argument(help="Labelled training records, in arrival order (- for standard input).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The parameter file (.toml) to write.")],
    budget: Annotated[
        str,
        typer.Option(
            help="How long to search: 90s, 30m or 2h; the start and the false-alarm rates are always measured."
        ),
    ] = "30m",
    use: Annotated[
        Use, typer.Option(help="reference: no label comes back; late: true labels come back, 100 records later.")
    ] = Use.reference,
    learner: Annotated[
        Learner | None, typer.Option(help="What is tuned. Default: the learner of --start, else margin.")
    ] = None,
    start: Annotated[str | None, typer.Option(help="Where the search starts: a TOML file or a preset.")] = None,
    json: JsonOption = None,
    schema: SchemaOption = "kdd",
    jobs: Annotated[int, typer.Option(min=1, max=64, help="How many folds are measured at a time.")] = 2,
    draws: Annotated[
        int, typer.Option(min=1, max=100, help="Reference sets a candidate and fold: more are slower and less noisy.")
    ] = 4,
    fix: Annotated[
        list[str] | None, typer.Option(help="A parameter that stays as it is at the start; may be given again.")
    ] = None,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Choose training parameters on the training file alone: hide whole attack types, ask how well they are found."""
    from netclust.models.network.run_tune import run_network_tuning as run

    chosen = None if learner is None else learner.value
    run(file, output, budget, use.value, chosen, start, json, schema, jobs, draws, fix or [], on_error.value)
