r"""Zeek and EVE logs read once, from beginning to end: tables as `watch` gets them from the same lines.

>>> import tempfile
>>> from netclust.records.schema import load_schema
>>> line = '{"ts":1.5,"uid":"C1","id.orig_h":"10.0.0.1","id.orig_p":4000,"id.resp_h":"10.0.0.2","id.resp_p":53,' \
...     '"proto":"udp","duration":0.25,"orig_pkts":1,"resp_pkts":1,"attack":"dns_tunnel"}\n'
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "conn.log")
...     _ = path.write_text(line + "not a line of a log\n")
...     reader = LogReader(path, load_schema("conn"), "zeek", label_column="attack")
...     tables = list(reader)
>>> tables[0].label_names().tolist(), dict(reader.skipped)
(['dns_tunnel'], {'no_header': 1})
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets import decode
from netclust.records.opening import STDIN, UNREADABLE, open_bytes, unreadable
from netclust.records.reader import MAX_LINE_BYTES, MAX_VALUES
from netclust.records.schema import Schema
from netclust.records.table import SharedNames, Table
from netclust.stream.sources.conn_records import Conn, address_words
from netclust.stream.sources.dialects import Notes
from netclust.stream.sources.eve import EveDialect
from netclust.stream.sources.lines import READ_BYTES, LineCutter, Lines
from netclust.stream.sources.log_format import LogDialect, LogFormat
from netclust.stream.sources.zeek import ZeekDialect

if TYPE_CHECKING:
    from netclust.stream.packets.capture_labels import LabelRules

__all__ = ["LogReader"]

LogKind = Literal["zeek", "eve"]

BATCH_LINES = 8192
_DIALECTS: dict[LogKind, type[LogDialect]] = {"zeek": ZeekDialect, "eve": EveDialect}
_NAMES = {"zeek": "a Zeek conn.log", "eve": "a Suricata EVE log"}
_OTHER_EVENTS = "other_events"
_PORTED = (decode.TCP, decode.UDP, decode.SCTP)
_FLOW = np.dtype(
    [
        *((name, np.uint64) for name in ("a_hi", "a_lo", "b_hi", "b_lo")),
        *((name, np.int64) for name in ("first", "last")),
        *((name, np.uint16) for name in ("a_port", "b_port")),
        *((name, np.uint8) for name in ("family", "proto", "swapped")),
    ]
)
"""The fields of a connection that a label file looks at."""


@dataclass
class LogReader:
    """Iterate over the tables of a Zeek or EVE log or of standard input (`-`), in the order of its lines.

    Lines that cannot be read are passed over. After the iteration `skipped` counts them by reason, `first_skipped`
    says what the first one was, `counters` has these and other events, and `sha256` is the checksum of the unpacked
    bytes. Labels come from `labels`, or else from the field or key `label_column` (by default `label`).
    """

    path: str | Path
    schema: Schema
    kind: LogKind
    labels: LabelRules | None = None
    label_column: str | None = None
    context: bool = True
    batch_lines: int = BATCH_LINES
    skipped: Counter[str] = field(default_factory=Counter, init=False)
    counters: Counter[str] = field(default_factory=Counter, init=False)
    first_skipped: str = field(default="", init=False)
    records: int = field(default=0, init=False)
    sha256: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Refuse a schema that logs do not have."""
        try:
            LogFormat(self.schema.name, _DIALECTS[self.kind])
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None

    def __iter__(self) -> Iterator[Table]:
        """The tables."""
        self.counters, self.skipped = Counter(), Counter()
        self.first_skipped, self.sha256, self.records = "", "", 0
        notes = Notes(self.counters)
        dialect = _DIALECTS[self.kind](str(self.path), notes, self.label_column or "label")
        form = LogFormat(self.schema.name, type(dialect))
        shared = [SharedNames() for _ in self.schema.coded]
        labels, labelled = SharedNames(), False
        for lines in self._lines(dialect):
            parsed: list[Conn] = dialect.parse(lines.data)
            if dialect.problem and not self.records:
                raise InputError(dialect.problem)
            table = form.table(parsed)
            if table is None:
                continue
            self._finish(table, parsed, shared, labels)
            labelled = labelled or table.has_labels
            yield table
        self.counters += form.counters
        self.first_skipped = next(iter(notes.first_skipped), "")
        self.skipped = Counter(
            {name: n for name, n in self.counters.items() if n and name not in (_OTHER_EVENTS, *form.counters)}
        )
        self._check(labelled)

    def _lines(self, dialect: LogDialect) -> Iterator[Lines]:
        """Whole lines in blocks. Lines that are too long are counted and never in memory as a whole."""
        digest, cutter = hashlib.sha256(), LineCutter()
        waits = str(self.path) != STDIN  # whoever writes to a pipe may be slow
        with open_bytes(self.path) as stream:
            data, last = b"-", b"\n"
            while data:
                try:
                    data = stream.read1(READ_BYTES)  # type: ignore[attr-defined]
                except UNREADABLE as error:
                    raise unreadable(self.path, error) from None
                digest.update(data)
                cutter.push(data or (b"" if last == b"\n" else b"\n"))
                last = data[-1:] or last
                while cutter.waiting and (cutter.has_lines(self.batch_lines) or not (data and waits)):
                    if (taken := cutter.take(self.batch_lines)) is not None:
                        yield from self._taken(taken, dialect)
        self.sha256 = digest.hexdigest()

    @staticmethod
    def _taken(taken: Lines, dialect: LogDialect) -> Iterator[Lines]:
        """Give lines to be parsed, then count a long line behind them."""
        if taken.data:
            yield taken
        if taken.count > taken.data.count(b"\n"):
            dialect.line += 1
            dialect.skip("long_line", f"longer than {MAX_LINE_BYTES} bytes")

    def _finish(self, table: Table, parsed: list[Conn], shared: list[SharedNames], labels: SharedNames) -> None:
        """Number what is named as in the tables before, and label and count the records."""
        for s, names in enumerate(shared):
            table.sym[:, s] = names.renumber(table.sym[:, s], table.symbols[s])
        table.symbols = [names.names for names in shared]
        if self.labels is None:
            table.label, table.labels = labels.renumber(table.label, table.labels), labels.names
            if len(labels.names) > MAX_VALUES:
                column = self.label_column or "label"
                raise InputError(f"{self.path}: {column!r} has more than {MAX_VALUES:,} values, so it is no label")
        else:
            table.label, table.labels = self.labels.labels_of(_connections(parsed)), self.labels.names
        table.seq = np.arange(self.records, self.records + len(table), dtype=np.uint64)
        self.records += len(table)
        if not self.context:
            table.context = {}

    def _check(self, labelled: bool) -> None:
        if self.records and (labelled or self.label_column is None):
            return
        if self.records:
            raise InputError(f"{self.path}: no record has a label in {self.label_column!r}: name another label column")
        unread, other = sum(self.skipped.values()), self.counters[_OTHER_EVENTS]
        what = f"{self.path}: no records in it, read as {_NAMES[self.kind]}"
        if unread:
            raise InputError(f"{what}, lines that cannot be read: {unread:,}, the first: {self.first_skipped}")
        raise InputError(f"{what}, events that are not of a flow: {other:,}" if other else what)


def _connections(parsed: Sequence[Conn]) -> NDArray[Any]:
    """Return the connections in the form that a label file is compared with."""
    records = np.zeros(len(parsed), np.dtype([("flow", _FLOW)]))
    flow = records["flow"]
    for end, address, port in (("a", "source", "source_port"), ("b", "destination", "destination_port")):
        words = np.array([address_words(getattr(conn, address)) for conn in parsed], np.uint64).reshape(-1, 2)
        flow[f"{end}_hi"], flow[f"{end}_lo"] = words.T
        flow[f"{end}_port"] = [getattr(conn, port) if conn.proto in _PORTED else 0 for conn in parsed]
    flow["first"], flow["last"] = [conn.start for conn in parsed], [conn.end for conn in parsed]
    flow["proto"] = [conn.proto for conn in parsed]
    flow["family"] = [decode.FAMILY_IPV6 if ":" in conn.source else decode.FAMILY_IPV4 for conn in parsed]
    return records
