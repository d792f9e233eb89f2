"""`netclust watch`: any source, no configuration, alerts on the terminal."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import msgspec

from netclust.errors import InputError
from netclust.options.output import counted, echo, output_note
from netclust.records.capture_format import is_capture, text_kind
from netclust.records.opening import STDIN
from netclust.stream.bus.addresses import is_bus
from netclust.stream.commands.run_daemon import obey_signals
from netclust.stream.config import Config, HttpConfig, SourceConfig, SourceKind, named
from netclust.stream.daemon.build import read_token
from netclust.stream.daemon.service import Daemon
from netclust.stream.logs import Log

WARMUP_RECORDS = 4000
"""Fewer than the daemon takes: whoever watches a file wants to see something."""


def kind_of(given: str) -> SourceKind:
    """What a source is, by its name and its first bytes."""
    if given.startswith(("tcp://", "unix://")):
        return "records"
    if is_bus(given):
        raise InputError(f"{given}: say what is in it: --kind eve, zeek, records or bus")
    if given != STDIN and not os.path.exists(given):
        if os.path.exists(f"/sys/class/net/{given}"):
            return "live"
        interfaces = ", ".join(sorted(os.listdir("/sys/class/net")))
        raise InputError(f"{given}: no such file, and no such interface; there are: {interfaces}")
    if (given != STDIN and Path(given).is_dir()) or is_capture(given):
        return "capture"
    return text_kind(given)


def configured(
    given: str,
    *,
    kind: str,
    follow: bool,
    model: str,
    schema: str,
    warmup: int | None,
    bpf: str,
    json: str,
    http: str,
    state: str,
    pace: float = 0.0,
    console: bool = False,
) -> Config:
    """The configuration that a command line stands for."""
    found: SourceKind = kind_of(given) if not kind else msgspec.convert(kind, SourceKind)
    source = SourceConfig(
        kind=found,
        path="" if found == "live" else given,
        interfaces=(given,) if found == "live" else (),
        follow=follow,
        bpf=bpf,
        schema_=schema,
        pace=pace,
    )
    state = state or _temporary_state()  # made once it is known that there is something to watch
    raw: dict[str, Any] = {
        "source": [msgspec.to_builtins(source)],
        "sink": [{"kind": "terminal"}, *([{"kind": "jsonl", "path": json}] if json else [])],
        "model": {"path": model},
        "http": {"listen": http or (free_listen() if console else "")},
        "daemon": {"state_dir": state},
        "log": {"level": "warning"},
    }
    if console:
        raw["http"]["token_file"] = make_token(state)
    records = WARMUP_RECORDS if warmup is None else warmup
    raw["warmup"] = {"records": records, "references": max(records // 2, 2)}
    return named(msgspec.convert(raw, Config), "command line")


def free_listen() -> str:
    """Where the console is served: the usual place, or any other port if it is taken."""
    from netclust.stream.http.guard import parse_listen

    usual = HttpConfig().listen
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(parse_listen(usual))
        except OSError:
            return f"{parse_listen(usual)[0]}:0"
    return usual


def make_token(state: str) -> str:
    """The file of the token that answers need; one of an earlier watch stays."""
    path = Path(state, "token")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24) + "\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}: choose another --state-dir") from None
    return str(path)


def run_watch(config: Config, seconds: float | None, keep: bool, console: bool = False) -> int:
    """Watch until the source ends, the time is over, or somebody presses Ctrl-C; then sum up.

    With a console it goes on when the source has ended: people look at what there was, and answer.
    """
    daemon = Daemon(config, log=Log(config.log.format, config.log.level))
    daemon.closes_alerts = not keep
    daemon.keeps_state = keep
    daemon.lingers = console
    timer = None if seconds is None else threading.Timer(seconds, daemon.stop)
    try:
        obey_signals(daemon)
        daemon.open()
        if console:
            echo(f"console: {daemon.address}/#token={read_token(config)}  (Ctrl-C ends it)")
            sys.stdout.flush()
        if timer is not None:
            timer.daemon = True
            timer.start()
        code = daemon.run()
    finally:
        if timer is not None:
            timer.cancel()
        if not keep:
            shutil.rmtree(config.daemon.state_dir, ignore_errors=True)
    _sum_up(daemon)
    if console and not keep:
        output_note("answers are gone with it: --state-dir DIR keeps them, and what was learned")
    _refuse_garbage(daemon)
    return code


def _refuse_garbage(daemon: Daemon) -> None:
    """Refuse a file that contains no record at all."""
    (queue,) = daemon.inbox.queues
    source = queue.source
    if source.counters["records"] or source.sheds or not queue.ended or daemon.config.sources[0].follow:
        return
    config = daemon.config.sources[0]
    lines: list[str] = getattr(source, "first_skipped", [])
    if is_bus(config.path) and not lines:  # a topic has no end: nothing came yet, or the log says why
        output_note(f"{config.path.partition('?')[0]}: nothing came")
        return
    first = f" (the first: {lines[0]})" if lines else ""
    raise InputError(
        f"{config.path}: no records in it, read as {config.kind}{first}; --kind says what it is, --model what it has"
    )


def _sum_up(daemon: Daemon) -> None:
    """Print a summary of the run in two lines."""
    detector = daemon.detector
    counters = detector.book.counters
    opened = sum(n for by_severity in counters.opened.values() for n in by_severity.values())
    alerts = counted(opened, "alert")
    echo(f"{counted(detector.linker.tick, 'record')}, {counters.records:,} anomalous, {alerts}")
    for queue in daemon.inbox.queues:
        passed = {name: n for name, n in queue.source.counters.items() if n and name in _REPORTED_COUNTERS}
        if passed:
            output_note("passed over: " + ", ".join(f"{n:,} ({name})" for name, n in sorted(passed.items())))
    held = detector.counters["not_told_in_warmup"]
    if held and not detector.warming:
        output_note(f"{held:,} anomalous records were not told while the site was learned; --warmup 0 tells them")
    elif held:
        output_note("there were too few records to learn the site from: expect false alarms among these alerts")


_REPORTED_COUNTERS = (
    "kernel_drops",
    "long_line",
    "half_line",
    "columns",
    "not_a_number",
    "lost_position",
    "truncated_file",
)


def _temporary_state() -> str:
    """Make a state folder for one watch."""
    return tempfile.mkdtemp(prefix="netclust-watch-")
