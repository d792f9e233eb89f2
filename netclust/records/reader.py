"""Read connection records: NSL-KDD, KDD Cup 99, ARFF, and any CSV that a schema describes.

Rows come in batches, checked for column count, type and range as they are parsed; a bad one names file, line,
column and value, or is skipped and counted (`on_error="skip"`).

>>> import io, tempfile
>>> from netclust.datasets.simulators.simulate import simulate
>>> with tempfile.TemporaryDirectory() as folder:
...     simulate(1000, seed=1).write(folder + "/today.txt")
...     table = read_table(folder + "/today.txt", load_schema("kdd"))
>>> len(table), table.has_labels
(1000, True)
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets import parse
from netclust.records.layout import Header, Layout, schema_layout
from netclust.records.opening import UNREADABLE, open_bytes, unreadable
from netclust.records.schema import Schema, load_schema
from netclust.records.table import MISSING, Table, concat_tables

__all__ = ["RecordParser", "RecordReader", "load_reader_kernels", "load_schema", "read_table"]

OnError = Literal["stop", "skip"]

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 20
MAX_VALUES = 65_534  # codes are uint16 and 0 is taken

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_REASONS = {
    parse.COLUMNS: "columns",
    parse.NOT_A_NUMBER: "not_a_number",
    parse.OUT_OF_RANGE: "out_of_range",
    parse.NOT_INTEGER: "not_integer",
    parse.TOO_LONG: "too_long",
    parse.NOT_A_TIME: "not_a_time",
}


def read_table(path: str | Path, schema: Schema, *, on_error: OnError = "stop") -> Table:
    """All records of a file as one table."""
    return concat_tables(list(RecordReader(path, schema, on_error=on_error)))


def load_reader_kernels(schema: Schema) -> None:
    """Compile the parser, or load it from the cache, so that the first record does not wait for it."""
    _Sink(schema, schema_layout(schema), 1).run(np.empty(0, np.uint8), 0, 0, 0)


@dataclass
class RecordReader:
    """Iterate over the tables of a file or of standard input (`-`), in order, each of at most `batch_rows` rows.

    After the iteration `skipped` counts the lines passed over by reason, `first_skipped` says what the first one
    was, and `sha256` is the checksum of the unpacked bytes.
    """

    path: str | Path
    schema: Schema
    batch_rows: int = 8192
    on_error: OnError = "stop"
    skipped: Counter[str] = field(default_factory=Counter, init=False)
    first_skipped: str = field(default="", init=False)
    records: int = field(default=0, init=False)
    sha256: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Refuse batches that would never fill."""
        if self.batch_rows < 1:
            raise InputError(f"batch_rows is {self.batch_rows}, a batch has at least 1 row")

    def __iter__(self) -> Iterator[Table]:
        """The tables."""
        self.skipped.clear()
        self.first_skipped, self.sha256, self.records = "", "", 0
        opened: AbstractContextManager[BinaryIO] = open_bytes(self.path)
        with opened as stream:
            yield from self._tables(stream)
        if self.records == 0:
            count = sum(self.skipped.values())
            why = f", {count} bad lines, the first: {self.first_skipped}" if count else ""
            raise InputError(f"{self.path}: no records{why}")

    def _tables(self, stream: BinaryIO) -> Iterator[Table]:
        digest = hashlib.sha256()
        parser = RecordParser(self.schema, str(self.path), self.batch_rows, self.on_error)
        parser.skipped = self.skipped
        block = b"-"
        try:
            while block:
                try:
                    block = stream.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
                except UNREADABLE as error:
                    raise unreadable(self.path, error) from None
                digest.update(block)
                for table in parser.feed(block, final=not block):
                    self.records = parser.records
                    yield table
        finally:
            self.first_skipped = parser.first_skipped
        self.sha256 = digest.hexdigest()


class RecordParser:
    """Bytes in, tables out: feed it chunks, cut anywhere, of one file or of one writer.

    Lines passed over (`on_error="skip"`) are counted by reason in `skipped`, and `first_skipped` says what the first
    was. `header` is what was read in front of the records: fed to another parser, that one can go on behind it.

    >>> parser = RecordParser(load_schema("kdd"), "a socket", on_error="skip")
    >>> list(parser.feed(b"no, re")), list(parser.feed(b"cord\\n"))
    ([], [])
    >>> parser.skipped, parser.first_skipped
    (Counter({'columns': 1}), 'a socket line 1: 2 columns, schema kdd has 41 to 43')
    """

    def __init__(self, schema: Schema, where: str, batch_rows: int = 8192, on_error: OnError = "stop") -> None:
        self.schema = schema
        self.where = where
        self.batch_rows = batch_rows
        self.on_error = on_error
        self.skipped: Counter[str] = Counter()
        self.first_skipped = ""
        self.records = 0
        self.line = 0  # lines read
        self._header: list[bytes] = []
        self._held = b""  # the beginning of a line, no longer than MAX_LINE_BYTES
        self._lines_before = Header(schema, where)
        self._sink: _Sink | None = None

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[Table]:
        """The tables of the lines that are whole now, in order; with `final` the last one needs no line end."""
        buffer = bytearray(self._held)
        buffer += data
        end = len(buffer) if final else len(self._held) + data.rfind(b"\n") + 1 if b"\n" in data else 0
        self._held = bytes(memoryview(buffer)[end:])
        used = 0
        if self._sink is None and end > 0:
            used, layout = self._read_header(bytes(memoryview(buffer)[:end]))
            self._sink = None if layout is None else _Sink(self.schema, layout, self.batch_rows)
        if self._sink is not None:
            for table in self._parse(np.frombuffer(buffer, np.uint8), used, end, self._sink):
                table.seq += np.uint64(self.records)
                self.records += len(table)
                yield table
        if len(self._held) > MAX_LINE_BYTES:
            raise self._long_line(self.line + 1)
        if final and self._sink is None and self._lines_before.arff:
            raise self._lines_before.unfinished()

    def forget_symbols(self) -> None:
        """Number symbols anew from the next table on: what runs for months would meet too many."""
        if self._sink is not None:
            self._sink = _Sink(self.schema, self._sink.layout, self.batch_rows)

    @property
    def header(self) -> bytes:
        """The lines of a CSV or ARFF header, if there was one."""
        return b"".join(self._header)

    @property
    def symbols(self) -> int:
        """Of the attribute that has most: how many values were met."""
        return 0 if self._sink is None else max((len(names) for names in self._sink.names), default=0)

    def _read_header(self, text: bytes) -> tuple[int, Layout | None]:
        """How many bytes of these whole lines the header takes, and which column is which once that is known."""
        header = self._lines_before
        used = len(_BOM) if self.line == 0 and text.startswith(_BOM) else 0
        if not header.arff:
            first = len(text) - len(text[used:].lstrip(_BLANK))
            self.line += text.count(b"\n", used, first)
            used = max(used, text.rfind(b"\n", 0, first) + 1)
        layout: Layout | None = None
        while layout is None and used < len(text):
            newline = text.find(b"\n", used)
            stop = len(text) if newline < 0 else newline
            if stop - used > MAX_LINE_BYTES:
                raise self._long_line(self.line + 1)
            belongs, layout = header.read(text[used:stop])
            if belongs:
                self.line += 1
                self._header.append(text[used:stop] + b"\n")
                used = min(stop + 1, len(text))
        return used, layout

    def _parse(self, buffer: NDArray[np.uint8], start: int, end: int, sink: _Sink) -> Iterator[Table]:
        """Run the kernel over whole lines until they are used up; what stands before an error still comes."""
        rows = 0
        error: InputError | None = None
        while start < end:
            result = sink.run(buffer, start, end, rows)
            status, rows, start = (int(result[i]) for i in (parse.STATUS, parse.ROWS, parse.CONSUMED))
            self.line += int(result[parse.LINES])
            if status == parse.BAD_LINE:
                error = self._bad_line(buffer, result, sink.layout)
            elif status == parse.GROW:
                sink.grow()
            if rows and (error is not None or status == parse.FULL or start == end):
                yield sink.take(buffer, rows)
                rows = 0
            if error is not None:
                raise error

    def _bad_line(self, buffer: NDArray[np.uint8], result: NDArray[np.int64], layout: Layout) -> InputError | None:
        """What to raise; nothing if the line is counted and passed over."""
        reason = int(result[parse.REASON])
        if reason == parse.LONG_LINE:
            return self._long_line(self.line)
        skip = self.on_error == "skip" and reason != parse.SPARSE
        if skip:
            self.skipped[_REASONS[reason]] += 1
        if skip and self.first_skipped:
            return None
        span = slice(int(result[parse.START]), int(result[parse.START] + result[parse.LENGTH]))
        value = buffer[span][:80].tobytes().decode("utf-8", "replace")
        refusal = layout.refusal(reason, int(result[parse.COLUMN]), value, int(result[parse.FOUND]))
        message = f"{self.where} line {self.line}{refusal}"
        if not skip:
            return InputError(message)
        self.first_skipped = message
        return None

    def _long_line(self, line: int) -> InputError:
        return InputError(f"{self.where} line {line}: longer than {MAX_LINE_BYTES} bytes, not records")


class _Sink:
    """The arrays that the kernel writes to, and the tables cut from them."""

    def __init__(self, schema: Schema, layout: Layout, rows: int) -> None:
        self.schema = schema
        self.layout = layout
        self.plan = layout.plan(MAX_VALUES, MAX_LINE_BYTES)
        self.iso = layout.iso_times
        numbers = len(schema.numeric) + len(layout.binary)
        self.out = parse.ParsedColumns(
            num=np.zeros((rows, numbers)),
            sym=np.zeros((rows, layout.symbol_columns), np.int32),
            text=np.zeros((rows, len(layout.texts), 2), np.int64),
            time=np.full(rows, -1, np.int64),
            key=np.zeros(rows, np.uint64),
            scratch=np.zeros(parse.MAX_SYMBOL_BYTES + 1, np.uint8),
        )
        self.names: list[list[str]] = [[MISSING] for _ in range(layout.symbol_columns)]
        self.entries = 0
        self.table = _empty_interner(layout.symbol_columns, 1024)
        self.result = np.zeros(10, np.int64)

    def run(self, buffer: NDArray[np.uint8], start: int, end: int, row: int) -> NDArray[np.int64]:
        """Parse what fits, behind the rows that are there."""
        parse.parse_lines(buffer, start, end, row, self.plan, self.iso, self.table, self.out, self.result)
        return self.result

    def grow(self) -> None:
        """Twice the room for symbols."""
        old = self.table
        self.table = _empty_interner(len(old.counts) - 2, 2 * len(old.slots))
        parse.copy_symbols(old, self.table, MAX_VALUES)

    def take(self, buffer: NDArray[np.uint8], rows: int) -> Table:
        """Copy the parsed rows out as a table."""
        self._learn_names()
        schema, layout, out = self.schema, self.layout, self.out
        sym = np.zeros((rows, len(schema.coded)), np.int32)
        symbols: list[list[str]] = []
        for s, attribute in enumerate(schema.coded):
            if attribute.kind == "binary":
                column = len(schema.numeric) + layout.binary.index(attribute.name)
                sym[:, s] = out.num[:rows, column].astype(np.int32) + 1
                symbols.append([MISSING, "0", "1"])
            else:
                column = layout.symbols.index(attribute.name)
                sym[:, s] = out.sym[:rows, column]
                symbols.append(self.names[column])
        label = out.sym[:rows, -1].copy() if layout.label else np.zeros(rows, np.int32)
        texts = {name: _texts(buffer, out.text[:rows, i]) for i, name in enumerate(layout.texts)}
        return Table(
            schema=schema,
            num=out.num[:rows, : len(schema.numeric)].copy(),
            sym=sym,
            symbols=symbols,
            label=label,
            labels=self.names[-1] if layout.label else [MISSING],
            time=out.time[:rows].copy(),
            seq=np.arange(rows, dtype=np.uint64),
            key=out.key[:rows].copy(),
            context=texts,
        )

    def _learn_names(self) -> None:
        """Decode the symbols that the kernel met for the first time."""
        table = self.table
        for entry in range(self.entries, int(table.counts[-2])):
            span = slice(int(table.offset[entry]), int(table.offset[entry] + table.length[entry]))
            name = table.arena[span].tobytes().decode("utf-8", "replace")
            self.names[int(table.column[entry])].append(name)
        self.entries = int(table.counts[-2])


def _empty_interner(columns: int, slots: int) -> parse.Interner:
    entries = slots // 2 + 1
    return parse.Interner(
        slots=np.zeros(slots, np.int32),
        hashes=np.zeros(entries, np.uint64),
        column=np.zeros(entries, np.int32),
        offset=np.zeros(entries, np.int64),
        length=np.zeros(entries, np.int32),
        ident=np.zeros(entries, np.int32),
        arena=np.zeros(max(16 * slots, parse.MAX_SYMBOL_BYTES + 1), np.uint8),
        counts=np.zeros(columns + 2, np.int64),
    )


def _texts(buffer: NDArray[np.uint8], spans: NDArray[np.int64]) -> NDArray[np.object_]:
    """The text of each span; behind an opening quote, doubled quotes mean one."""
    low, high = max(int(spans[:, 0].min()) - 1, 0), int(spans.sum(axis=1).max())
    data = buffer[low:high].tobytes()
    texts = np.empty(len(spans), object)
    for row, (start, length) in enumerate((spans - [low, 0]).tolist()):
        value, before = data[start : start + length], data[max(start - 1, 0) : start]
        if before in (b'"', b"'"):
            value = value.replace(before + before, before)
        texts[row] = value.decode("utf-8", "replace")
    return texts
