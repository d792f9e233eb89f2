"""Options that several commands have, and the words that they take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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


class Peers(StrEnum):
    """Which of other people's detectors to run."""

    all = "all"
    fast = "fast"
    none = "none"


class CaptureSchema(StrEnum):
    """What connections of a capture are described by."""

    kdd = "kdd"
    flow = "flow"
    conn = "conn"


SchemaOption = Annotated[str, typer.Option(help="A built-in schema (kdd, flow) or a schema file (.toml).")]
SkipOption = Annotated[
    OnError,
    typer.Option(help="Stop at a line that cannot be read, or skip and count it; in logs it is always skipped."),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(help="For a capture or a log: a label file, addresses, ports and times to classes."),
]
LabelColumnOption = Annotated[
    str | None, typer.Option(help="For a Zeek or EVE log: the field or key that holds the label. Default: label.")
]
NormalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--normal", help="A label that means normal; may be given again. In logs, Benign and Normal always do."
    ),
]
LeaveOutOption = Annotated[
    list[str] | None,
    typer.Option("--leave-out", help='Leave out records with this label ("": with none); may be given again.'),
]
JsonOption = Annotated[Path | None, typer.Option(help="Write the result as JSON to this file (- for standard output).")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
# How a stream is run.
ProtocolOption = Annotated[Protocol, typer.Option(help="thesis: as the published tables; stream: as in operation.")]
FeedbackOption = Annotated[
    Feedback,
    typer.Option(help="none: the reference set only; predicted: earlier records, as judged; gold: true labels, late."),
]
DelayOption = Annotated[
    int, typer.Option(min=0, max=1 << 24, help="Records until a true label counts; in thesis also the gap.")
]
WindowOption = Annotated[int, typer.Option(min=0, help="Referent window: how many earlier records can be linked to.")]
PartialOption = Annotated[
    bool, typer.Option("--partial", help="In thesis: use what the referent window holds before it is full.")
]
MatureOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="A record judged normal can be linked to only once its true label came, or after this many seconds of "
        "traffic without an alarm (records without times never mature). Default: at once; misses more.",
    ),
]


def warn_without_window(context: typer.Context, feedback: Feedback) -> None:
    """Warn of options that do nothing when records link to the reference set alone."""
    if feedback is not Feedback.none:
        return
    for name in ("window", "delay", "mature"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            typer.echo(f"--{name} is about window members: it does nothing with --feedback none", err=True)
