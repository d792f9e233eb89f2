"""The commands that read a stream once, and their options: detecting, following connections, explaining."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netclust.options.common_options import (
    CaptureSchema,
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
    Protocol,
    ProtocolOption,
    SkipOption,
    WindowOption,
    warn_without_window,
)
from netclust.options.groups import app


@app.command("detect")
def detect_records(
    model: Annotated[Path, typer.Option(help="The model file.")],
    input: Annotated[str, typer.Option(help="Records, a Zeek or EVE log, or a capture (-: standard input).")],  # noqa: A002
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
    from netclust.stream.commands.run_detect import run_detect

    run_detect(model, input, output, every, why, window, mature, alerts, json, on_error.value)


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
    from netclust.stream.commands.run_flows import Live, run_flows
    from netclust.stream.packets.flow_table import FlowTimeouts

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
    test: Annotated[str, typer.Option(help="Records, a log or a capture (- for standard input).")],
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
    label_column: LabelColumnOption = None,
    normal: NormalOption = None,
    leave_out: LeaveOutOption = None,
    json: JsonOption = None,
    on_error: SkipOption = OnError.stop,
) -> None:
    """Say why a record got its verdict: what it is like, what it is unlike, and which attributes say so."""
    from netclust.records.relabelling import LabelOptions
    from netclust.stream.commands.run_explain import run_explain

    warn_without_window(context, feedback)
    choice = LabelOptions(labels, label_column, tuple(normal or ()), tuple(leave_out or ()))
    run_explain(
        model, test, record, protocol.value, feedback.value, delay, window, partial, mature, top, choice, json,
        on_error.value,
    )  # fmt: skip
