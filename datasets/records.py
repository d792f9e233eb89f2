"""Read connection records: NSL-KDD, KDD Cup 99, ARFF, and any CSV that a schema describes.

Rows come in batches, checked for column count, type and range as they are parsed; a bad one names file, line,
column and value, or is skipped and counted (`on_error="skip"`).

>>> import io, tempfile
>>> from netclust.datasets.simulate import simulate
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

from netclust.datasets.layout import Layout, arff_header, csv_header, schema_layout
from netclust.datasets.opening import UNREADABLE, open_bytes, unreadable
from netclust.errors import InputError
from netclust.kernels import parse
from netclust.schema import Schema, load_schema
from netclust.table import MISSING, Table, concat_tables

__all__ = ["RecordReader", "load_kernels", "load_schema", "read_table"]

OnError = Literal["stop", "skip"]

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 20
MAX_VALUES = 65_534  # codes are uint16 and 0 is taken

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


def load_kernels(schema: Schema) -> None:
    """Compile the parser, or load it from the cache, so that the first record does not wait for it."""
    _Sink(schema, schema_layout(schema), 1).run(np.empty(0, np.uint8))


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
    _line: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Table]:
        """The tables."""
        opened: AbstractContextManager[BinaryIO] = open_bytes(self.path)
        with opened as stream:
            yield from self._tables(stream)
        if self.records == 0:
            raise InputError(f"{self.path}: no records")

    def _tables(self, stream: BinaryIO) -> Iterator[Table]:
        digest = hashlib.sha256()
        buffer = np.empty(CHUNK_BYTES + MAX_LINE_BYTES, np.uint8)
        held = 0
        layout: Layout | None = None
        sink: _Sink | None = None
        while True:
            try:
                block = stream.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
            except UNREADABLE as error:
                raise unreadable(self.path, error) from None
            digest.update(block)
            buffer[held : held + len(block)] = np.frombuffer(block, np.uint8)
            held += len(block)
            final = not block
            end = held if final else _after_last_newline(buffer, held)
            if end == 0 and held >= MAX_LINE_BYTES:
                raise InputError(f"{self.path} line {self._line + 1}: longer than {MAX_LINE_BYTES} bytes, not records")
            used = 0
            if layout is None and end > 0:
                used, layout = self._read_header(buffer[:end], final)
            if layout is not None:
                sink = sink or _Sink(self.schema, layout, self.batch_rows)
                for table in self._parse(buffer, used, end, sink):
                    table.seq += np.uint64(self.records)
                    self.records += len(table)
                    yield table
                used = end
            buffer[: held - used] = buffer[used:held].copy()
            held -= used
            if final:
                break
        self.sha256 = digest.hexdigest()

    def _read_header(self, buffer: NDArray[np.uint8], final: bool) -> tuple[int, Layout | None]:
        """How many bytes the header takes, and which column is which; no layout while an ARFF header goes on."""
        text = buffer.tobytes()
        if text.lstrip()[:1] in (b"@", b"%"):
            used, lines, layout = arff_header(text, self.schema, str(self.path), final)
        else:
            used, lines, layout = csv_header(text, self.schema, str(self.path))
        self._line += lines
        return used, layout

    def _parse(self, buffer: NDArray[np.uint8], start: int, end: int, sink: _Sink) -> Iterator[Table]:
        """Run the kernel over whole lines until they are used up."""
        while start < end:
            view = buffer[start:end]
            result = sink.run(view)
            status = int(result[parse.STATUS])
            self._line += int(result[parse.LINES])
            if status == parse.BAD_LINE:
                self._bad_line(view, result, sink.layout)
            if (table := sink.take(view, int(result[parse.ROWS]))) is not None:
                yield table
            if status == parse.GROW:
                sink.grow()
            start += int(result[parse.CONSUMED])

    def _bad_line(self, view: NDArray[np.uint8], result: NDArray[np.int64], layout: Layout) -> None:
        """Raise, or count and go on."""
        reason = int(result[parse.REASON])
        column = int(result[parse.COLUMN])
        span = slice(int(result[parse.START]), int(result[parse.START] + result[parse.LENGTH]))
        value = view[span][:80].tobytes().decode("utf-8", "replace")
        where = f"{self.path} line {self._line}"
        message = layout.complaint(reason, column, value, int(result[parse.FOUND]))
        if self.on_error == "stop":
            raise InputError(f"{where}{message}")
        self.skipped[_REASONS[reason]] += 1
        self.first_skipped = self.first_skipped or f"{where}{message}"


def _after_last_newline(buffer: NDArray[np.uint8], held: int) -> int:
    """Length of the whole lines at the front."""
    found = buffer[:held].tobytes().rfind(b"\n")
    return found + 1


class _Sink:
    """The arrays that the kernel writes to, and the tables cut from them."""

    def __init__(self, schema: Schema, layout: Layout, rows: int) -> None:
        self.schema = schema
        self.layout = layout
        self.plan = layout.plan(MAX_VALUES)
        numbers = len(schema.numeric) + len(layout.binary)
        self.out = parse.Columns(
            num=np.zeros((rows, numbers)),
            sym=np.zeros((rows, layout.symbol_columns), np.int32),
            text=np.zeros((rows, len(layout.texts), 2), np.int64),
            time=np.full(rows, -1, np.int64),
            key=np.zeros(rows, np.uint64),
        )
        self.names: list[list[str]] = [[MISSING] for _ in range(layout.symbol_columns)]
        self.entries = 0
        self.table = _empty_interner(layout.symbol_columns, 1024)
        self.result = np.zeros(10, np.int64)

    def run(self, view: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Parse what fits."""
        parse.parse_lines(view, len(view), 0, self.plan, self.table, self.out, self.result)
        return self.result

    def grow(self) -> None:
        """Twice the room for symbols."""
        old = self.table
        self.table = _empty_interner(len(old.counts) - 2, 2 * len(old.slots))
        arena = old.arena
        for entry in range(int(old.counts[-2])):
            args = (arena, old.offset[entry], int(old.length[entry]), int(old.column[entry]))
            parse.intern(*args, self.table, MAX_VALUES)

    def take(self, view: NDArray[np.uint8], rows: int) -> Table | None:
        """Copy the parsed rows out as a table."""
        self._learn_names()
        if rows == 0:
            return None
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
        texts = {name: _texts(view, out.text[:rows, i]) for i, name in enumerate(layout.texts)}
        time = out.time[:rows].copy()
        if layout.iso_time:
            time = _iso_times(texts.pop(layout.iso_time), layout.iso_time)
        return Table(
            schema=schema,
            num=out.num[:rows, : len(schema.numeric)].copy(),
            sym=sym,
            symbols=symbols,
            label=label,
            labels=self.names[-1] if layout.label else [MISSING],
            time=time,
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


def _texts(view: NDArray[np.uint8], spans: NDArray[np.int64]) -> NDArray[np.object_]:
    """The text of each span."""
    data = view.tobytes()
    texts = [data[start : start + length].decode("utf-8", "replace") for start, length in spans.tolist()]
    return np.array(texts, object)


def _iso_times(texts: NDArray[np.object_], name: str) -> NDArray[np.int64]:
    """Nanoseconds since the epoch of ISO 8601 times; without a zone they are UTC."""
    try:
        plain = [text.removesuffix("Z").removesuffix("+00:00") for text in texts.tolist()]
        times: NDArray[np.int64] = np.array(plain, "datetime64[ns]").astype(np.int64)
    except ValueError as error:
        raise InputError(f"column {name}: not a UTC time in ISO 8601 ({error})") from None
    return times
