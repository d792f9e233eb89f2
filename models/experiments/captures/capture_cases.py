"""Labelled captures as cases for a detector: an attack mixed into ordinary traffic, or ordinary traffic alone.

The packets of an attack are shifted in time and merged with those of a simulated office, so that every attribute that
counts neighbours counts ordinary ones too. Which connections are the attack's is known from its capture alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.table import Table, concat_tables
from netclust.stream.packets.capture_files import CaptureFile, merge_captures
from netclust.stream.packets.capture_labels import LabelRules
from netclust.stream.packets.capture_reader import capture_tables, flow_records
from netclust.stream.packets.flow_table import FlowTable

__all__ = ["UNKNOWN", "Case", "attack_case", "benign_table", "capture_span"]

UNKNOWN = "unknown"
"""The label of connections that nobody vouches for: they count for nothing."""
NORMAL = "normal"
LEAD_NS = 600 * 10**9  # of ordinary traffic before an attack begins


@dataclass(frozen=True, eq=False)
class Case:
    """The connections of an attack, as they look among ordinary traffic; `began` is its first packet's time."""

    name: str
    kind: str
    records: Table
    began: int

    @property
    def flows(self) -> int:
        """How many connections."""
        return len(self.records)


def capture_span(path: str | Path) -> tuple[int, int]:
    """When the first and the last packet came."""
    first, last = None, 0
    for block in CaptureFile(path):
        if len(block):
            first = int(block.index["time"][0]) if first is None else first
            last = max(last, int(block.index["time"].max()))
    if first is None:
        raise InputError(f"{path}: no packets in it")
    return first, last


def attack_case(
    path: Path, rules: LabelRules, schema: str, ordinary: Callable[[float], Path], most: int
) -> Case | None:
    """An attack among ordinary traffic, at most so many connections of it, evenly taken; None if it holds no attack.

    `ordinary` gives a capture of ordinary traffic of at least so many seconds.
    """
    alone = _records_of([CaptureFile(path)])
    own = rules.for_file(path)
    labels = np.array(own.names, object)[own.labels_of(alone)]
    kinds = sorted(set(labels.tolist()) - {"", NORMAL, UNKNOWN})
    if not kinds:
        return None
    first, last = capture_span(path)
    around = ordinary((last - first + 2 * LEAD_NS) / 1e9)
    shift = capture_span(around)[0] + LEAD_NS - first
    mine = _exactly(alone, labels, shift)
    mixed = _records_of([CaptureFile(around), CaptureFile(path, offset_ns=shift)])
    parts = []
    for table, ended in capture_tables([mixed], schema, mine, context=False):
        found = np.flatnonzero(np.isin(table.label_names(), kinds))
        parts.append(table[found])
        began = int(ended["flow"]["first"][found].min())
    records = concat_tables(parts)
    if len(records) > most:
        records = records[np.linspace(0, len(records) - 1, most).astype(np.int64)]
    return Case(path.name, "+".join(kinds), records, began)


def benign_table(paths: Sequence[Path], schema: str) -> Table:
    """The connections of ordinary captures, each followed on its own."""
    parts = [
        table
        for path in paths
        for table, _ in capture_tables([_records_of([CaptureFile(path)])], schema, context=False)
    ]
    return concat_tables(parts)


def _records_of(sources: Iterable[CaptureFile]) -> NDArray[Any]:
    return np.concatenate(list(flow_records(merge_captures(list(sources)), FlowTable())))


def _exactly(records: NDArray[Any], labels: NDArray[np.object_], shift: int) -> LabelRules:
    """Rules that name these very connections, shifted in time."""
    rules = LabelRules()
    rules.add_connections(records, labels.tolist(), shift)
    return rules
