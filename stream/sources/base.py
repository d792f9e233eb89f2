"""What a source of records is, and one that lives in memory.

A source gives arrivals: some records, and where it stands after them. The daemon runs each in a thread of its own.

>>> from netclust.datasets.simulators.simulate import simulate
>>> table = simulate(10, seed=1).table()
>>> source = MemorySource("test", table.schema, [table])
>>> [(len(a.table), a.state is not None) for a in source]
[(10, True), (0, True)]
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from netclust.records.schema import Schema
from netclust.records.table import Table

MAX_SEQ = 1 << 62
"""No record has this number or a higher one."""

TICK_SECONDS = 0.2
"""A source gives an arrival at least this often, empty if nothing came: a quiet link still gets its verdicts."""

Context = Callable[[NDArray[np.int64]], dict[str, NDArray[np.object_]]]
"""What is carried with some rows and shown, never scored: made only for the rows that are shown."""


@dataclass(frozen=True, eq=False)
class SourceState:
    """Where a source stands, to continue from after a restart: `facts` are JSON, `arrays` what is too large for that.

    `gap`: what came after the state was saved is lost, so whatever was half done then (open connections) is dropped.
    A source that cannot be read again also continues from `{"seq": n}` alone: empty, its next record has number n.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    gap: bool = False


@dataclass(frozen=True, eq=False)
class Arrival:
    """Records of one source, in order, with gap-free `seq`; `now` is how far traffic time has come (-1: unknown).

    `state` is where the source stands after these records; a source whose state is costly gives it only after
    `want_state`. `received` is when the records were read (time.monotonic()).
    """

    table: Table
    state: SourceState | None
    received: float
    now: int = -1
    context: Context | None = None

    def context_of(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.object_]]:
        """The context columns of some rows."""
        if self.context is not None:
            return self.context(rows)
        return {name: column[rows] for name, column in self.table.context.items()}


class Source(Protocol):
    """Gives records until it ends or is stopped. Bad input is passed over and counted, never raised after `open`."""

    name: str  # of the configuration; what metrics and alerts call it
    schema: Schema
    replayable: bool  # after a crash the same records can be read again from a state
    sheds: bool  # when records come faster than they are linked: drop some (True), or let the writer wait (False)
    counters: Counter[str]  # what was read (packets, bytes, records), and what was passed over, by reason

    def open(self, state: SourceState | None) -> None:
        """Take hold of files, sockets and interfaces (rights may be given up afterwards); go on at `state`.

        Raises InputError, with what to do, where that cannot be.
        """
        ...

    def __iter__(self) -> Iterator[Arrival]:
        """Arrivals, one every TICK_SECONDS at least; the last one of a source that ends has its final state."""
        ...

    def want_state(self) -> None:
        """Give the state with the next arrival. From any thread."""
        ...

    def stop(self) -> None:
        """End soon: give what has been read, then stop the iteration. From any thread."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class MemorySource:
    """Tables from memory, for tests and embedding: `put` more while it runs, `end` when there are no more."""

    def __init__(
        self, name: str, schema: Schema, tables: Sequence[Table] = (), *, ended: bool = True, sheds: bool = False
    ) -> None:
        self.name = name
        self.schema = schema
        self.replayable = True
        self.sheds = sheds
        self.counters: Counter[str] = Counter()
        self._tables = list(tables)
        self._ended = ended
        self._at = 0  # tables given
        self._seq = 0
        self._more = threading.Condition()

    def open(self, state: SourceState | None) -> None:
        """Go on behind the tables that were given."""
        if state is not None:
            self._at, self._seq = int(state.facts["tables"]), int(state.facts["seq"])

    def put(self, table: Table) -> None:
        """More records."""
        with self._more:
            self._tables.append(table)
            self._more.notify()

    def end(self) -> None:
        """No more will come."""
        with self._more:
            self._ended = True
            self._more.notify()

    stop = end

    def want_state(self) -> None:
        """It always gives its state."""

    def close(self) -> None:
        """Nothing to let go of."""

    def __iter__(self) -> Iterator[Arrival]:
        """The tables."""
        while True:
            with self._more:
                if self._at == len(self._tables) and not self._ended:
                    self._more.wait(TICK_SECONDS)
                if self._at == len(self._tables) and self._ended:
                    break
                table = self._tables[self._at] if self._at < len(self._tables) else empty_table(self.schema)
                self._at += len(table) > 0
            table = numbered(table, self._seq)
            self._seq += len(table)
            self.counters["records"] += len(table)
            yield self._arrival(table)
        yield self._arrival(empty_table(self.schema))

    def _arrival(self, table: Table) -> Arrival:
        now = int(table.time.max(initial=-1))
        return Arrival(table, SourceState({"tables": self._at, "seq": self._seq}), time.monotonic(), now)


def next_epoch(seq: int) -> int:
    """The first number of the epoch behind a record that is not the last that was given: none of them comes twice.

    The upper half of a number counts epochs. Up to 2^31 records may have been given since.

    >>> next_epoch(0) == next_epoch(7) == 1 << 32, next_epoch((1 << 32) - 1) == 2 << 32
    (True, True)
    """
    return ((seq + (1 << 31) >> 32) + 1) << 32


def part_of(arrival: Arrival, begin: int, end: int) -> Arrival:
    """Some records of an arrival; the state belongs to the last."""
    last = end == len(arrival.table)
    context = None if arrival.context is None else partial(_context_from, arrival.context, begin)
    now = arrival.now if last else int(arrival.table.time[begin:end].max(initial=-1))
    return Arrival(arrival.table[begin:end], arrival.state if last else None, arrival.received, now, context)


def _context_from(whole: Context, begin: int, rows: NDArray[np.int64]) -> dict[str, NDArray[np.object_]]:
    return whole(rows + begin)


def numbered(table: Table, first: int) -> Table:
    """The same records, numbered from `first` on."""
    table.seq = np.arange(first, first + len(table), dtype=np.uint64)
    return table


def empty_table(schema: Schema) -> Table:
    """No records, of a schema."""
    columns: dict[str, list[Any]] = {a.name: [] for a in schema.features}
    return Table.from_columns(schema, columns)


def is_socket(path: str) -> bool:
    """Whether a source's path is one to listen at."""
    return path.startswith(("tcp://", "unix://"))
