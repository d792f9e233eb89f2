"""Sources of text: records in NSL-KDD form or any CSV with a schema, Zeek's conn.log, Suricata's flow events.

All are lines, from a file (followed or not, packed or not), standard input, a named pipe, or a socket.

>>> import tempfile
>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.stream.config import SourceConfig
>>> with tempfile.TemporaryDirectory() as folder:
...     simulate(10, seed=1).write(folder + "/today.txt")
...     source = open_text_source(SourceConfig(kind="records", name="today", path=folder + "/today.txt"))
...     source.open(None)
...     arrivals = list(source)
...     source.close()
>>> [len(arrival.table) for arrival in arrivals], arrivals[-1].state.facts["seq"]
([10, 0], 10)
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays
from netclust.records.opening import STDIN, peek_bytes
from netclust.records.reader import MAX_LINE_BYTES, MAX_VALUES, RecordParser
from netclust.records.running_time import RunningTime
from netclust.records.schema import Schema, load_schema
from netclust.records.table import Table, concat_tables
from netclust.stream.bus.addresses import is_bus
from netclust.stream.config import SourceConfig
from netclust.stream.sources.base import (
    MAX_SEQ,
    TICK_SECONDS,
    Arrival,
    SourceState,
    empty_table,
    is_socket,
    next_epoch,
    numbered,
)
from netclust.stream.sources.dialects import Dialect, Format, Notes
from netclust.stream.sources.files import FileFeed
from netclust.stream.sources.lines import Feed, LineCutter, Piece

__all__ = ["RecordFormat", "TextSource", "open_text_source"]

TEXT_KINDS = ("records", "zeek", "eve")
MAX_NUMBER = (1 << 63) - 1


def open_text_source(config: SourceConfig, schema: Schema | None = None) -> TextSource:
    """The source that a configuration describes, not yet open: of the schema it names, else of `schema`."""
    schema = load_schema(config.schema_) if config.schema_ else schema
    if config.kind == "records":
        form: Format = RecordFormat(schema or load_schema("kdd"), 1024 if is_socket(config.path) else 8192)
    elif config.kind == "zeek":
        from netclust.stream.sources.log_format import LogFormat
        from netclust.stream.sources.zeek import ZeekDialect

        form = LogFormat(schema.name if schema else "conn", ZeekDialect)
    elif config.kind == "eve":
        from netclust.stream.sources.eve import EveDialect
        from netclust.stream.sources.log_format import LogFormat

        form = LogFormat(schema.name if schema else "conn", EveDialect)
    else:
        raise InputError(f"source {config.name}: kind {config.kind} is none of {', '.join(TEXT_KINDS)}")
    if not config.path:
        raise InputError(f"source {config.name}: no path: a file, -, tcp://HOST:PORT, unix:///PATH or a bus")
    return TextSource(config.name or config.kind, form, _feed(config))


def _feed(config: SourceConfig) -> Feed:
    if is_bus(config.path):
        from netclust.stream.sources.bus_lines import BusFeed

        return BusFeed(config.path)
    if is_socket(config.path):
        from netclust.stream.sources.sockets import SocketFeed

        return SocketFeed(config.path, max_writers=config.max_writers)
    if config.path == STDIN or _is_named_pipe(config.path):
        from netclust.stream.sources.sockets import PipeFeed

        return PipeFeed() if config.path == STDIN else PipeFeed(config.path)
    return FileFeed(config.path, follow=config.follow)


def _is_named_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


class RecordFormat:
    """Records as the schema describes them: its lines are parsed by the kernel. Nothing is counted between records."""

    costly = False

    def __init__(self, schema: Schema, batch_rows: int = 8192) -> None:
        self.schema = schema
        self.batch_rows = batch_rows
        self.counters: Counter[str] = Counter()

    def dialect(self, where: str, notes: Notes) -> Dialect:
        """For a file or writer that begins."""
        return _RecordDialect(self, where, notes)

    def table(self, parsed: list[Table]) -> Table | None:
        """The records, if there are any."""
        return concat_tables(parsed) if parsed else None

    def state(self) -> Arrays:
        """None."""
        return {}

    def restore(self, arrays: Arrays) -> None:
        """None."""


class _RecordDialect:
    """A parser whose errors are counted; behind a header that cannot be used every line is."""

    def __init__(self, form: RecordFormat, where: str, notes: Notes) -> None:
        self._parser = RecordParser(form.schema, where, form.batch_rows, "skip")
        self.notes = notes
        self._refused = b""
        self._named_first = False
        self.problem = ""

    @property
    def line(self) -> int:
        """Lines read."""
        return self._parser.line

    @line.setter
    def line(self, line: int) -> None:
        self._parser.line = line

    @property
    def notes(self) -> Notes:
        """Where lines passed over are counted."""
        return self._notes

    @notes.setter
    def notes(self, notes: Notes) -> None:
        self._notes, self._parser.skipped = notes, notes.counters

    @property
    def header(self) -> bytes:
        """A CSV or ARFF header, or the one that could not be used."""
        return self._refused or self._parser.header

    def parse(self, lines: bytes, *, final: bool = False) -> list[Table]:
        """The tables of some lines: one, if they are no more than a batch."""
        tables: list[Table] = []
        if self.problem:
            self._notes.counters["bad_header"] += lines.count(b"\n")
            return tables
        try:
            tables.extend(self._parser.feed(lines, final=final))
        except InputError as error:
            self.problem = str(error)
            self._refused = self._parser.header or lines.split(b"\n", 1)[0][:MAX_LINE_BYTES] + b"\n"
            self._notes.counters["bad_header"] += 1
            self._notes.keep(self.problem)
        if self._parser.first_skipped and not self._named_first:
            self._named_first = True
            self._notes.keep(self._parser.first_skipped)
        if self._parser.symbols > MAX_VALUES // 2:
            self._parser.forget_symbols()
        return tables


class TextSource:
    """Records out of lines: of one feed, in one format. Its state is where the feed stands, and what was counted."""

    def __init__(self, name: str, form: Format, feed: Feed) -> None:
        self.name = name
        self.schema = form.schema
        self.replayable = feed.replayable
        self.sheds = feed.sheds
        self.feed = feed
        self.counters: Counter[str] = feed.counters
        self.notes = Notes(self.counters)
        self._form = form
        self._dialects: dict[int, Dialect] = {}
        self._clock = RunningTime()
        self._seq = 0
        self._lost = 0  # positions that were lost, and numbers skipped for
        self._state_wanted = False

    @property
    def trouble(self) -> str:
        """What is wrong with the feed now, if it can tell."""
        return str(getattr(self.feed, "trouble", ""))

    @property
    def first_skipped(self) -> list[str]:
        """What the first lines passed over were, at most 20."""
        return self.notes.first_skipped

    def open(self, state: SourceState | None) -> None:
        """Open the file or socket; raises InputError where that cannot be, or its header cannot be used."""
        facts = state.facts if state is not None else {}
        numbers = [facts.get(name, default) for name, default in (("seq", 0), ("now", -1), ("offset", 0), ("line", 0))]
        header = facts.get("header", "")
        if not all(isinstance(number, int) and -1 <= number <= MAX_NUMBER for number in numbers) or not (
            isinstance(header, str) and 0 <= numbers[0] < MAX_SEQ
        ):
            raise ModelError(f"source {self.name}: the state says what is never written")
        if state is not None and state.arrays:
            self._form.restore(state.arrays)
        self._seq, self._clock.latest, _, line = numbers
        self.feed.open(facts or None)
        if not self.replayable:
            return
        here = self.feed.facts()
        if here["offset"]:
            dialect = self._dialects[0] = self._form.dialect(here["file"], Notes(Counter()))
            dialect.parse(header.encode("utf-8", "surrogateescape"))
            dialect.line = line
            dialect.notes = self.notes
        else:
            self._check_header()

    def _check_header(self) -> None:
        """Look at the header of a file before it is read: an error is told at once."""
        file = self.feed.facts()["file"]
        if not file:
            return
        cutter = LineCutter()
        cutter.push(peek_bytes(file, 1 << 16))
        dialect = self._form.dialect(file, Notes(Counter()))
        lines = cutter.take(1000)
        for line in lines.data.splitlines(keepends=True) if lines is not None else ():
            if dialect.parse(line) or dialect.problem:
                break
        if dialect.problem:
            self.feed.close()
            raise InputError(dialect.problem)

    def __iter__(self) -> Iterator[Arrival]:
        """Arrivals, one every TICK_SECONDS at least."""
        while not self.feed.ended:
            piece = self.feed.take(TICK_SECONDS / 2)
            received = time.monotonic()
            if piece is not None:
                yield self._arrival(self._table(piece), piece.since or received)
            elif not self.feed.ended:
                yield self._arrival(None, received)
        self._state_wanted = True
        yield self._arrival(None, time.monotonic())

    def _table(self, piece: Piece) -> Table | None:
        if piece.fresh or piece.writer not in self._dialects:
            self._dialects[piece.writer] = self._form.dialect(piece.where, self.notes)
        dialect = self._dialects[piece.writer]
        long_lines = piece.lines.count - piece.lines.data.count(b"\n") - bool(piece.closed and piece.lines.data)
        table = self._form.table(dialect.parse(piece.lines.data, final=piece.closed))
        dialect.line += max(long_lines, 0)
        if piece.closed:
            del self._dialects[piece.writer]
        return table

    def _arrival(self, table: Table | None, received: float) -> Arrival:
        if table is None:
            table = empty_table(self.schema)
        if (lost := self.counters["lost_position"]) > self._lost:
            self._lost = lost
            self._seq = next_epoch(self._seq)  # other records may have had the numbers that follow
        table = numbered(table, self._seq)
        self._seq += len(table)
        self.counters["records"] += len(table)
        self._clock.advance(table.time[table.time >= 0])
        for name, count in self._form.counters.items():
            self.counters[name] = count
        return Arrival(table, self._state(), received, self._clock.latest)

    def _state(self) -> SourceState | None:
        if self._form.costly and not self._state_wanted:
            return None
        self._state_wanted = False
        facts: dict[str, Any] = {**self.feed.facts(), "seq": self._seq, "now": self._clock.latest}
        dialect = self._dialects.get(0)
        if self.replayable and dialect is not None:
            facts["line"] = dialect.line
            facts["header"] = dialect.header.decode("utf-8", "surrogateescape")
        return SourceState(facts, self._form.state())

    def want_state(self) -> None:
        """Give the state with the next arrival."""
        self._state_wanted = True

    def stop(self) -> None:
        """End soon."""
        self.feed.stop()

    def close(self) -> None:
        """Let go of everything."""
        self.feed.close()
