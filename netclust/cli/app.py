"""The commands and their options. Each loads its own module when it runs."""

from __future__ import annotations

import importlib
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


class Use(StrEnum):
    """What a model is tuned for."""

    reference = "reference"
    late = "late"


class TunedLearner(StrEnum):
    """What is tuned."""

    margin = "margin"
    unlearned = "unlearned"
    lsp = "lsp"


class Peers(StrEnum):
    """Which of other people's detectors to run."""

    all = "all"
    fast = "fast"
    none = "none"


class CaptureSchema(StrEnum):
    """What connections of a capture are described by."""

    kdd = "kdd"
    flow = "flow"


SchemaOption = Annotated[str, typer.Option(help="A built-in schema (kdd, flow) or a schema file (.toml).")]
SkipOption = Annotated[OnError, typer.Option(help="Stop at a line that cannot be read, or skip and count it.")]
LabelsOption = Annotated[
    Path | None, typer.Option(help="For a capture: a label file, addresses, ports and times to classes.")
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
    file: Annotated[
        str, typer.Argument(help="Labelled records, in arrival order, or a capture (- for standard input).")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file to write.")],
    params: Annotated[
        str | None,
        typer.Option(help="Training parameters: a TOML file or a preset (reference, late, thesis, ...)."),
    ] = None,
    seed: SeedOption = 0,
    schema: Annotated[
        str | None,
        typer.Option(help="A built-in schema (kdd, flow) or a schema file. Default: kdd, or flow for a capture."),
    ] = None,
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(help="Calibrate the root on held-out normal records for this false-alarm rate."),
    ] = None,
    assume_normal: Annotated[
        bool, typer.Option("--assume-normal", help="Take every record for normal, whatever its label: a warm-up.")
    ] = False,
    labels: LabelsOption = None,
    on_error: SkipOption = OnError.stop,
    json: JsonOption = None,
) -> None:
    """Learn a similarity from labelled connection records and write a model file."""
    from netclust.cli.network import train as run

    run(file, output, params, seed, schema, false_alarm_rate, assume_normal, labels, on_error.value, json)


def _without_window(context: typer.Context, feedback: Feedback) -> None:
    """Say which options do nothing when nothing but the reference set is linked to."""
    if feedback is not Feedback.none:
        return
    for name in ("window", "delay", "mature"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            typer.echo(f"--{name} is about window members: it does nothing with --feedback none", err=True)


@evaluate.command("network")
def evaluate_network(
    context: typer.Context,
    model: Annotated[Path, typer.Option(help="The model file.")],
    test: Annotated[str, typer.Option(help="Labelled test records (- for standard input).")],
    protocol: ProtocolOption = Protocol.stream,
    feedback: FeedbackOption = Feedback.none,
    delay: DelayOption = 100,
    window: WindowOption = 100,
    partial: PartialOption = False,
    mature: MatureOption = None,
    json: JsonOption = None,
    alerts: Annotated[int, typer.Option(min=0, help="How many alerts to show.")] = 0,
    labels: LabelsOption = None,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Run a model over a labelled stream by a protocol, and print what it found and missed."""
    from netclust.cli.network import evaluate as run

    _without_window(context, feedback)
    run(
        model, test, protocol.value, feedback.value, delay, window, partial, mature, json, alerts, labels,
        on_error.value,
    )  # fmt: skip


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
    from netclust.cli.captures import evaluate as run

    chosen = [s.value for s in schema or [CaptureSchema.flow]]
    run(
        captures, labels, chosen, params, false_alarm_rate, hours, draws, seeds, every, peers.value, seed, picture, json
    )


@app.command("detect")
def detect_records(
    model: Annotated[Path, typer.Option(help="The model file.")],
    input: Annotated[str, typer.Option(help="Records, labelled or not (- for standard input).")],  # noqa: A002
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Verdicts, a line of JSON each (- for standard output)."),
    ],
    every: Annotated[bool, typer.Option("--every", help="Write all records, not the anomalous ones alone.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Add to every anomalous record why it is one, in words.")] = False,
    window: Annotated[
        int, typer.Option(min=0, max=1 << 24, help="Referent window of earlier records; 0: the reference set only.")
    ] = 0,
    mature: MatureOption = None,
    alerts: Annotated[int, typer.Option(min=0, help="How many alerts to show.")] = 10,
    json: JsonOption = None,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Judge records that nobody has labelled, and write what is anomalous."""
    from netclust.cli.detect import run

    run(model, input, output, every, why, window, mature, alerts, json, on_error.value)


@app.command("flows")
def flows(
    captures: Annotated[
        list[str] | None, typer.Argument(help="Captures (pcap, pcapng, packed or not), folders of them, or -.")
    ] = None,
    live: Annotated[list[str] | None, typer.Option(help="Capture from this interface; may be given again.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Records: .csv, .jsonl, .parquet, or - (CSV). Default: a summary only."),
    ] = None,
    schema: Annotated[CaptureSchema, typer.Option(help="Which attributes.")] = CaptureSchema.flow,
    labels: LabelsOption = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the capture grows.")] = False,
    bpf: Annotated[
        str, typer.Option(help="Live: capture only what this filter lets through (tcpdump's language).")
    ] = "",
    promiscuous: Annotated[bool, typer.Option("--promiscuous", help="Live: also what is not addressed to us.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Live: threads that share the packets.")] = 1,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so many seconds.")] = None,
    packets: Annotated[int | None, typer.Option(min=1, help="Stop after so many packets.")] = None,
    dump: Annotated[Path | None, typer.Option(help="Live: also write the packets to this capture.")] = None,
    attempt_timeout: Annotated[float, typer.Option(min=0, help="Seconds until an unanswered SYN is given up.")] = 5.0,
    idle_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds of silence that end a connection; 0: none do.")
    ] = 60.0,
    active_timeout: Annotated[
        float,
        typer.Option(min=0, help="Seconds after which a connection that goes on gets an interim record; 0: none."),
    ] = 300.0,
    close_timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for stragglers of a closed one.")] = 1.0,
    max_flows: Annotated[
        int, typer.Option(help="How many connections are followed at once: fixes the memory.")
    ] = 131_072,
    tunnels: Annotated[bool, typer.Option("--tunnels", help="Look into GRE, VXLAN and IP in IP.")] = False,
    json: JsonOption = None,
) -> None:
    """Turn captures or live traffic into connection records."""
    from netclust.cli.flows import Live
    from netclust.cli.flows import run as run_flows
    from netclust.stream.flow_table import FlowTimeouts

    run_flows(
        captures or [],
        Live(
            interfaces=live or [], promiscuous=promiscuous, bpf=bpf, workers=workers, seconds=seconds,
            packets=packets, dump=dump,
        ),
        output,
        schema.value,
        labels,
        follow,
        FlowTimeouts(attempt=attempt_timeout, idle=idle_timeout, active=active_timeout, close=close_timeout),
        max_flows,
        tunnels,
        json,
    )  # fmt: skip


@app.command("explain")
def explain_records(
    context: typer.Context,
    model: Annotated[Path, typer.Option(help="The model file.")],
    test: Annotated[str, typer.Option(help="Records (- for standard input).")],
    record: Annotated[
        list[int], typer.Option(min=0, help="Arrival number of a record, the first is 0; may be given again.")
    ],
    protocol: ProtocolOption = Protocol.stream,
    feedback: FeedbackOption = Feedback.none,
    delay: DelayOption = 100,
    window: WindowOption = 100,
    partial: PartialOption = False,
    mature: MatureOption = None,
    top: Annotated[int, typer.Option(min=1, help="How many attributes the text names.")] = 3,
    labels: LabelsOption = None,
    json: JsonOption = None,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Say why a record got its verdict: what it is like, what it is unlike, and which attributes say so."""
    from netclust.cli.explain import run

    _without_window(context, feedback)
    run(
        model, test, record, protocol.value, feedback.value, delay, window, partial, mature, top, labels, json,
        on_error.value,
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
        TunedLearner | None, typer.Option(help="What is tuned. Default: the learner of --start, else margin.")
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
    from netclust.cli.tune import network as run

    chosen = None if learner is None else learner.value
    run(file, output, budget, use.value, chosen, start, json, schema, jobs, draws, fix or [], on_error.value)


@reproduce.command("table-4.1")
def reproduce_table41(
    train: Annotated[str, typer.Option(help="Labelled training records (KDDTrain+).")],
    test: Annotated[
        list[str],
        typer.Option(
            help="Labelled test records (KDDTest+); given again (KDDTest-21), a short list of settings for each more."
        ),
    ],
    draws: Annotated[int, typer.Option(min=1, max=1000, help="Reference sets a row.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Training seeds a row.")] = 3,
    json: JsonOption = None,
    plots: Annotated[Path | None, typer.Option(help="Write pictures (SVG) to this folder.")] = None,
    peers: Annotated[
        Peers, typer.Option(help="Other people's detectors: all, fast (without river's forest, the slowest), or none.")
    ] = Peers.fast,
    pretrain: Annotated[
        int | None, typer.Option(min=1, help="river's detectors learn from the last so many training records only.")
    ] = None,
    schema: SchemaOption = "kdd",
    jobs: Annotated[int, typer.Option(min=1, help="Processes: with 2 or more, peers run beside the rest.")] = 2,
) -> None:
    """The published Table 4.1 beside ours: accuracy, detection and false positives over draws and seeds."""
    from netclust.cli.reproduce import table41 as run

    run(train, test, draws, seeds, json, plots, peers.value, pretrain, schema, jobs)


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


@simulate.command("capture")
def simulate_capture(
    output: Annotated[str, typer.Option("-o", "--output", help="The pcap file to write (.gz or .xz packs it).")],
    labels: Annotated[str | None, typer.Option(help="A CSV file for one line a connection.")] = None,
    hours: Annotated[float, typer.Option(help="How long the capture is; a day of 40 hosts is about 1.3 GB.")] = 0.25,
    seed: SeedOption = 0,
    attacks: Annotated[
        str,
        typer.Option(help="known, all (with the types held back from training), none, or names with commas."),
    ] = "known",
    scale: Annotated[float, typer.Option(help="Multiplies the rate of benign sessions.")] = 1.0,
    hosts: Annotated[int, typer.Option(help="How many inside hosts.")] = 40,
    clients: Annotated[str, typer.Option(help="The inside network.")] = "10.20.0.0/24",
    servers: Annotated[str, typer.Option(help="The outside network.")] = "198.18.0.0/15",
    start: Annotated[str | None, typer.Option(help="Time of the first packet; else midnight of the day.")] = None,
    day: Annotated[int, typer.Option(help="Which day: day 0 is Monday 2024-01-01; habits drift.")] = 0,
    snaplen: Annotated[int, typer.Option(help="Cut bulk data at so many bytes; 0 keeps all.")] = 200,
    campaigns_per_hour: Annotated[float, typer.Option(help="How many attack campaigns start in an hour.")] = 1.5,
) -> None:
    """Write a labelled packet capture of a simulated office. Synthetic: not a measure of anything real."""
    from netclust.cli.simulate import capture as run

    run(
        output, labels, hours=hours, seed=seed, attacks=attacks, scale=scale, hosts=hosts, clients=clients,
        servers=servers, start=start, day=day, snaplen=snaplen, campaigns_per_hour=campaigns_per_hour,
    )  # fmt: skip


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


# The other commands stand in files of their own, and hang on to this one.
for _name in (
    "demo", "daemon", "cluster", "growth", "clustering", "coreference", "ranking", "multilabel", "approximate",
    "chains", "attractive", "matching", "tracking", "grammar",
):  # fmt: skip
    importlib.import_module(f"netclust.cli.{_name}_app")
