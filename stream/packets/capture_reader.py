"""Records of captures, table by table: files or live traffic through the flow table, in the order in which they end."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.schema import Schema, load_schema
from netclust.records.table import Table
from netclust.stream.packets.capture_files import CaptureFile, list_captures, merge_captures
from netclust.stream.packets.connections import SCHEMAS, connection_maker
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.packet_blocks import PacketBlock, PacketSource

if TYPE_CHECKING:
    from netclust.stream.packets.capture_labels import LabelRules

__all__ = ["CaptureReader", "capture_tables", "flow_records", "open_captures_as_tables"]

BATCH_ROWS = 8192
# What is counted but is no loss: the rest of the counters tell of packets that became no part of a record.
_NO_LOSS = ("decoded", "flows", "ports_reused", "packets_out_of_order", "flows_evicted", "orphan_fragments",
            "wrong_fragments", "clock_set_back", "clock_leaps", "length_beyond_frame", "not_ip")  # fmt: skip


def flow_records(blocks: Iterable[PacketBlock], table: FlowTable) -> Iterator[NDArray[Any]]:
    """Finished connections of blocks of packets, and at the end all that were open."""
    for block in blocks:
        if len(ended := table.feed(block)):
            yield ended
    if len(ended := table.finish()):
        yield ended


def capture_tables(
    records: Iterable[NDArray[Any]], schema: str, rules: LabelRules | None = None, *, context: bool = True
) -> Iterator[tuple[Table, NDArray[Any]]]:
    """Yield records of a schema, with the connections that they were made of."""
    maker = connection_maker(schema, context=context)
    for ended in records:
        table = maker.table(ended)
        if rules is not None:
            from netclust.stream.packets.capture_labels import label_table

            table = label_table(table, rules, ended)
        yield table, ended


@dataclass
class CaptureReader:
    """Iterate over the tables of captures, merged by time. `counters` says what became of the packets.

    `skipped` counts what could not be read, packets by reason; after the iteration `sha256` is the checksum of the
    unpacked bytes (of the checksums, where there are several captures).
    """

    paths: Sequence[str | Path]
    schema: Schema = field(default_factory=lambda: load_schema("kdd"))
    labels: LabelRules | None = None
    timeouts: FlowTimeouts = field(default_factory=FlowTimeouts)
    max_flows: int = 131_072
    tunnels: bool = False
    context: bool = True
    checksum: bool = True  # costs a third of the time
    skipped: Counter[str] = field(default_factory=Counter, init=False)
    counters: Counter[str] = field(default_factory=Counter, init=False)
    first_skipped: str = field(default="", init=False)
    records: int = field(default=0, init=False)
    sha256: str = field(default="", init=False)

    def __iter__(self) -> Iterator[Table]:
        """The tables."""
        sources = [CaptureFile(path, checksum=self.checksum) for path in self.paths]
        table = FlowTable(self.max_flows, self.timeouts, tunnels=self.tunnels)
        source: PacketSource = merge_captures(sources)
        self.records = 0
        ended = _in_batches(flow_records(source, table))
        for rows, _ in capture_tables(ended, self.schema.name, self.labels, context=self.context):
            self.records += len(rows)
            yield rows
        self.counters = source.counters + table.counters
        self.skipped = Counter({name: n for name, n in self.counters.items() if n and name not in _NO_LOSS})
        digests = [each.sha256 for each in sources]
        self.sha256 = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        if self.records == 0:
            raise InputError(f"{self.paths[0]}: no connections in it{_why(self.counters)}")


def _why(counters: Counter[str]) -> str:
    found = ", ".join(f"{n} {name}" for name, n in sorted(counters.items()) if n)
    return f" ({found})" if found else ", it has no packets"


def _in_batches(ended: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Arrays of some size: a table costs the same for ten records as for a thousand."""
    held: list[NDArray[Any]] = []
    rows = 0
    for part in ended:
        held.append(part)
        rows += len(part)
        if rows >= BATCH_ROWS:
            yield np.concatenate(held)
            held, rows = [], 0
    if held:
        yield np.concatenate(held)


def open_captures_as_tables(
    path: str | Path, schema: Schema | None = None, *, labels: str | Path | None = None, context: bool = True
) -> CaptureReader:
    """Return a reader for a capture, or for the captures of a folder. The default schema is `flow`."""
    schema = schema or load_schema("flow")
    if schema.name not in SCHEMAS:
        raise InputError(f"{path}: a capture gives records of schema {' or '.join(SCHEMAS)}, not {schema.name}")
    paths = list_captures([path])
    rules = None
    if labels is not None:
        from netclust.stream.packets.capture_labels import load_labels

        rules = load_labels(labels).for_files(paths)
    return CaptureReader(paths, schema, labels=rules, context=context)
