"""`netclust flows`: packets to connection records."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets.flow_layout import RECORD
from netclust.kernels.packets.tcp import FLAG_NAMES
from netclust.options.output import (
    check_folders,
    check_not_input,
    check_outputs,
    echo,
    output_note,
    output_result,
    output_table,
    write_json,
)
from netclust.stream.packets.capture_files import CaptureFile, list_captures, merge_captures
from netclust.stream.packets.capture_labels import load_labels
from netclust.stream.packets.capture_reader import capture_tables
from netclust.stream.packets.capture_writer import CaptureWriter
from netclust.stream.packets.connections import PROTOCOL_NUMBERS, conn_states, connection_maker
from netclust.stream.packets.fanout import FanoutFlows
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts, load_flow_kernels
from netclust.stream.packets.live import LivePacketSource, open_live
from netclust.stream.packets.packet_blocks import PacketBlock, PacketSource
from netclust.stream.packets.record_writer import RecordWriter, open_writer

_FLUSH_SECONDS = 1.0
NO_LABEL = "(none)"


@dataclass(frozen=True, kw_only=True)
class Live:
    """What live traffic is taken from, and how much."""

    interfaces: list[str]
    promiscuous: bool
    bpf: str
    workers: int
    seconds: float | None
    packets: int | None
    dump: Path | None


def run_flows(
    captures: list[str],
    live: Live,
    output: Path | None,
    schema: str,
    labels: Path | None,
    follow: bool,
    timeouts: FlowTimeouts,
    max_flows: int,
    tunnels: bool,
    json: Path | None,
) -> None:
    """Follow the packets, write the records as connections end."""
    if bool(captures) == bool(live.interfaces):
        raise InputError("give captures, or interfaces with --live: one of the two")
    if "-" == str(output) == str(json):
        raise InputError("records and the result cannot both go to standard output: give one of them a file")
    check_folders(output, json, live.dump)
    for path in captures:
        check_not_input(path, output, json)
    _check_options(captures, live, follow)
    check_outputs(output, json, live.dump)
    if labels is not None:
        check_not_input(str(labels), output, json, live.dump)
    rules = None if labels is None else load_labels(labels)
    if live.interfaces:  # before packets come, who would not wait
        load_flow_kernels()
        connection_maker(schema).table(np.zeros(1, RECORD))
    started = time.perf_counter()
    with ExitStack() as stack:
        flows = _open(captures, live, follow, max_flows, timeouts, tunnels, json is not None, stack)
        if rules is not None:
            rules = rules.for_files(list_captures(captures) if captures else [])
        writer = None if output is None else stack.enter_context(open_writer(output))
        summary = _Summary()
        stack.enter_context(_stopped_by_signals(flows.stop, bool(live.interfaces) or follow))
        if live.seconds is not None:
            timer = threading.Timer(live.seconds, flows.stop)
            timer.daemon = True
            timer.start()
            stack.callback(timer.cancel)
        flushed = time.monotonic()
        for rows, ended in capture_tables(flows, schema, rules, context=writer is not None):
            summary.add(ended, None if rules is None else rows.label_names())
            if writer is not None:
                writer.write(rows)
                flushed = _flush(writer, flushed)
        if writer is not None and not writer.records:  # what the columns would have been
            writer.write(connection_maker(schema).table(np.zeros(0, RECORD)))
        counters = flows.counters
    if rules is not None and set(summary.labels) <= {NO_LABEL}:
        output_note(
            f"{labels}: no row matches any of the {summary.records:,} records: are addresses and times (UTC) right?"
        )
    seconds = time.perf_counter() - started
    if "-" not in (str(output), str(json)):
        summary.show(counters, seconds, output)
    elif str(output) == "-":
        output_note(summary.line(counters, seconds))
    body: dict[str, Any] = {
        "schema": schema,
        "output": None if output is None else str(output),
        "records": summary.records,
        "by_protocol_and_state": {" ".join(key): n for key, n in sorted(summary.kinds.items())},
        "labels": dict(summary.labels),
        "counters": {name: n for name, n in sorted(counters.items()) if n},
        "seconds": seconds,
    }
    write_json(json, output_result(["flows"], body, seed=None, data=flows.checksums()))


def _check_options(captures: list[str], live: Live, follow: bool) -> None:
    """Refuse what would do nothing."""
    only_live = {
        "--bpf": live.bpf,
        "--promiscuous": live.promiscuous,
        "--dump": live.dump,
        "--workers": live.workers > 1,
    }
    for option, given in only_live.items():
        if captures and given:
            raise InputError(f"{option} is for live traffic, with a capture it would do nothing")
    if live.interfaces and follow:
        raise InputError("--follow is for a capture that grows, with live traffic it would do nothing")


def _flush(writer: RecordWriter, last: float) -> float:
    """Once a second is soon enough for whoever reads along."""
    if time.monotonic() - last < _FLUSH_SECONDS:
        return last
    writer.flush()
    return time.monotonic()


class _Flows:
    """Finished connections of whatever was asked for; iterated once."""

    def __init__(self, source: PacketSource, table: FlowTable, files: list[CaptureFile]) -> None:
        self._source, self._table, self._files = source, table, files
        self.dump: CaptureWriter | None = None
        self.most: int | None = None

    def __iter__(self) -> Iterator[NDArray[Any]]:
        packets = 0
        for block in self._source:
            given = block
            if self.most is not None and packets + len(block) > self.most:
                given = PacketBlock(block.data, block.index[: self.most - packets], block.now)
            if self.dump is not None:
                self.dump.write(given)
            packets += len(given)
            if len(ended := self._table.feed(given)):
                yield ended
            if packets == self.most:
                break
        if len(ended := self._table.finish()):
            yield ended

    def stop(self) -> None:
        """End with what has come so far."""
        for source in (*self._files, self._source):
            if hasattr(source, "stop"):
                source.stop()

    @property
    def counters(self) -> Counter[str]:
        """Of the source and of the table."""
        return Counter(self._source.counters) + self._table.counters

    def checksums(self) -> dict[str, str]:
        """By file."""
        return {Path(file.path).name: file.sha256 for file in self._files}


class _Fanned:
    """The same of several workers."""

    def __init__(self, fanout: FanoutFlows, tables: list[FlowTable]) -> None:
        self._fanout, self._tables = fanout, tables

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (timed.records for timed in self._fanout if len(timed.records))

    def stop(self) -> None:
        self._fanout.stop()

    @property
    def counters(self) -> Counter[str]:
        return sum((table.counters for table in self._tables), Counter(self._fanout.counters))

    def checksums(self) -> dict[str, str]:
        return {}


def _open(
    captures: list[str],
    live: Live,
    follow: bool,
    max_flows: int,
    timeouts: FlowTimeouts,
    tunnels: bool,
    checksum: bool,
    stack: ExitStack,
) -> _Flows | _Fanned:
    tables: list[FlowTable] = []

    def new_table() -> FlowTable:
        tables.append(FlowTable(max_flows, timeouts, tunnels=tunnels))
        return tables[-1]

    if captures:
        paths = list_captures(captures)
        if follow and len(paths) > 1:
            raise InputError(f"only one capture can be followed, {len(paths)} are named")
        files = [CaptureFile(path, follow=follow, checksum=checksum) for path in paths]
        flows = _Flows(merge_captures(files), new_table(), files)
        flows.most = live.packets
        return flows
    if live.workers > 1:
        if live.dump is not None or live.packets is not None:
            raise InputError("--dump and --packets are for one worker")
        options = {"promiscuous": live.promiscuous, "bpf": live.bpf}
        fanout = FanoutFlows.on(live.interfaces, new_table, workers=live.workers, **options)
        return _Fanned(stack.enter_context(fanout), tables)
    source: LivePacketSource = stack.enter_context(
        open_live(live.interfaces, promiscuous=live.promiscuous, bpf=live.bpf)
    )
    if source.note:
        output_note(source.note)
    flows = _Flows(source, new_table(), [])
    flows.most = live.packets
    if live.dump is not None:
        flows.dump = stack.enter_context(
            CaptureWriter(live.dump, format="pcapng" if live.dump.suffix == ".pcapng" else "pcap")
        )
    return flows


class _stopped_by_signals:  # noqa: N801 (used as a function)
    """While it lasts, an interrupt ends the reading, and what is open is still written."""

    def __init__(self, stop: Callable[[], None], wanted: bool) -> None:
        self._stop = stop
        self._signals = (signal.SIGINT, signal.SIGTERM) if wanted else ()
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._before = [(which, signal.signal(which, lambda *_: self._stop())) for which in self._signals]

    def __exit__(self, *_: object) -> None:
        for which, handler in self._before:
            signal.signal(which, handler)


class _Summary:
    """What was found, for people."""

    def __init__(self) -> None:
        self.records = 0
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[tuple[str, str]] = Counter()
        self.labels: Counter[str] = Counter()

    def add(self, ended: NDArray[Any], labels: Iterable[str] | None) -> None:
        """Count connections."""
        self.records += len(ended)
        if labels is not None:
            self.labels.update(label or NO_LABEL for label in labels)
        flow, states = ended["flow"], conn_states(ended)
        size = ended["orig"]["ip_bytes"] + ended["resp"]["ip_bytes"]
        kind = flow["proto"].astype(np.int64) * len(FLAG_NAMES) + states
        for k in np.unique(kind).tolist():
            name = (_protocol_name(k // len(FLAG_NAMES)), FLAG_NAMES[k % len(FLAG_NAMES)])
            self.kinds[name] += int((kind == k).sum())
            self.bytes[name] += int(size[kind == k].sum())

    def line(self, counters: Counter[str], seconds: float) -> str:
        """In one line."""
        packets = counters["decoded"] + counters["length_beyond_frame"]
        rate = f"{packets / max(seconds, 1e-9):,.0f} packets a second"
        return f"{self.records:,} records from {packets:,} packets in {seconds:.1f} s ({rate})"

    def show(self, counters: Counter[str], seconds: float, output: Path | None) -> None:
        """A table of what there is, and what was passed over."""
        rows = [[*key, n, self.bytes[key]] for key, n in self.kinds.most_common()]
        output_table(self.line(counters, seconds), ["protocol", "state", "records", "IP bytes"], rows)
        if self.labels:
            output_table("Labels", ["label", "records"], [[name, n] for name, n in self.labels.most_common()])
        other = {name: n for name, n in sorted(counters.items()) if n and name not in ("decoded", "flows")}
        if other:
            echo("also counted: " + ", ".join(f"{name} {n:,}" for name, n in other.items()))
        if output is not None:
            echo(f"wrote {output}")


def _protocol_name(number: int) -> str:
    """Return a protocol as records call it, its number where they have no name for it."""
    return PROTOCOL_NUMBERS.get(number, str(number))
