"""Messages of netclust on a bus: records, many to a message, and labels that people gave.

Records of one sensor's source keep their numbers (`seq`); `stream` is an id that stays the same for as long as numbers
mean the same records. So who receives drops what is not above the last number of (sensor, stream, source): it may have
been sent twice. Rows of a message are in rising order of seq.

>>> from netclust.datasets.simulators.simulate import simulate
>>> table = simulate(5, seed=1).table()
>>> body = pack_records(table, sensor="probe-1", stream="a1", source="eth0")
>>> message = unpack_message(body, table.schema, "example")
>>> message.sensor, message.source, message.table.seq.tolist()
('probe-1', 'eth0', [0, 1, 2, 3, 4])
>>> body = pack_label(LabelMessage(id="l-1", label="scan", by="ann", cluster=7))
>>> unpack_message(body, table.schema, "example").cluster
7
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError
from netclust.foundation.container import pack_container, require_array, unpack_container
from netclust.records.labels import MAX_LABEL_CHARACTERS
from netclust.records.schema import Schema
from netclust.records.table import MISSING, Table

__all__ = [
    "LabelMessage", "RecordMessage", "RecordPlace", "merged", "pack_label", "pack_records", "schema_fingerprint",
    "unpack_message", "unpack_records",
]  # fmt: skip

KIND = "netclust.records"
MAX_MESSAGE_BYTES = 64 << 20
"""A message that is longer is refused unread."""
MAX_ROWS = 65_536
MAX_NAME = 200
"""Characters of a name: of a sensor, a stream, a source, a person."""
MAX_CONTEXT_COLUMNS = 64
MAX_CONTEXT_CHARACTERS = 512
"""Of a value that is carried and shown: the rest is cut off."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


@dataclass(frozen=True, eq=False)
class RecordMessage:
    """Records of one source of a sensor."""

    table: Table
    sensor: str
    stream: str
    source: str


class RecordPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Which record is meant, wherever it went. Without a stream: the newest one of that number."""

    sensor: Name
    source: Name
    seq: Number
    stream: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""


class LabelMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="label"):
    """What a person says of a cluster, or of a record; or (`undo`) that an earlier label, by its id, was wrong."""

    id: Name
    label: Annotated[str, msgspec.Meta(max_length=MAX_LABEL_CHARACTERS)]
    by: Name
    cluster: Number | None = None
    record: RecordPlace | None = None
    undo: Name | None = None


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    schema: Name
    fingerprint: Annotated[str, msgspec.Meta(max_length=64)]
    sensor: Name
    stream: Name
    source: Name
    symbols: list[list[str]]
    labels: list[str]
    context: dict[str, list[str]] = {}


_label = msgspec.json.Decoder(LabelMessage)


def schema_fingerprint(schema: Schema) -> str:
    """Of what the columns of a message mean: names, kinds and roles, in order."""
    columns = [(a.name, a.kind, a.role) for a in schema.attributes]
    return hashlib.sha256(msgspec.json.encode([schema.name, columns])).hexdigest()[:32]


def pack_records(table: Table, *, sensor: str, stream: str, source: str) -> bytes:
    """One message for all records of a table; InputError where they are too many for one."""
    if len(table) > MAX_ROWS:
        raise InputError(f"{len(table)} records for one message: at most {MAX_ROWS}")
    if (table.seq[1:] <= table.seq[:-1]).any():
        raise InputError("the numbers of records in a message must rise")
    symbols, sym = [], np.zeros(table.sym.shape, np.int32)
    for s, names in enumerate(table.symbols):
        used, sym[:, s] = _compact(table.sym[:, s], names)
        symbols.append(used)
    labels, label = _compact(table.label, table.labels)
    header = _Header(
        schema=table.schema.name,
        fingerprint=schema_fingerprint(table.schema),
        sensor=sensor,
        stream=stream,
        source=source,
        symbols=symbols,
        labels=labels,
        context={name: _texts(column) for name, column in list(table.context.items())[:MAX_CONTEXT_COLUMNS]},
    )
    arrays: dict[str, NDArray[Any]] = {
        "num": table.num, "sym": sym, "label": label, "time": table.time, "seq": table.seq, "key": table.key,
    }  # fmt: skip
    if not table.num.size:  # safetensors cannot say how many rows of no columns there are
        arrays["num"] = np.zeros(0)
    if not sym.size:
        arrays["sym"] = np.zeros(0, np.int32)
    body = pack_container(KIND, arrays, header)
    if len(body) > MAX_MESSAGE_BYTES:
        raise InputError(f"{len(table)} records take {len(body)} bytes, a message has at most {MAX_MESSAGE_BYTES}")
    return body


def unpack_records(body: bytes, schema: Schema, where: str) -> RecordMessage:
    """The records of a message, everything checked; InputError (ModelError) names `where`."""
    if len(body) > MAX_MESSAGE_BYTES:
        raise ModelError(f"{where}: a message of {len(body)} bytes, over {MAX_MESSAGE_BYTES}: refused")
    arrays, raw = unpack_container(body, KIND, where)
    try:
        header = msgspec.convert(raw, _Header)
    except msgspec.ValidationError as error:
        raise ModelError(f"{where}: header: {error}") from None
    if header.fingerprint != schema_fingerprint(schema):
        raise InputError(
            f"{where}: records of schema {header.schema[:40]!r} from {header.sensor[:40]!r} do not have the columns of "
            f"{schema.name!r}: give sensor and receiver the same model"
        )
    rows = len(require_array(arrays, "seq", np.uint64, (None,), where))
    if rows > MAX_ROWS:
        raise ModelError(f"{where}: {rows} records in one message, over {MAX_ROWS}: refused")
    table = Table(
        schema=schema,
        num=_matrix(arrays, "num", np.float64, (rows, len(schema.numeric)), where),
        sym=_matrix(arrays, "sym", np.int32, (rows, len(schema.coded)), where),
        symbols=header.symbols,
        label=require_array(arrays, "label", np.int32, (rows,), where),
        labels=header.labels,
        time=require_array(arrays, "time", np.int64, (rows,), where),
        seq=arrays["seq"],
        key=require_array(arrays, "key", np.uint64, (rows,), where),
        context={},
    )
    _check(table, where)
    table.context = _context(header.context, rows, where)
    return RecordMessage(table, header.sensor, header.stream, header.source)


def pack_label(message: LabelMessage) -> bytes:
    """A label as a message. InputError where it says nothing, or too much."""
    try:
        body = msgspec.json.encode(message)
    except UnicodeEncodeError:
        raise InputError(f"label {message.id[:40]!a}: is not text") from None
    _unpack_label(body, "label")
    return body


def _unpack_label(body: bytes, where: str) -> LabelMessage:
    """Read a label from a message; InputError names `where`."""
    if len(body) > 1 << 16:
        raise InputError(f"{where}: a label of {len(body)} bytes: refused")
    try:
        message = _label.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: neither records nor a label: {error}") from None
    if (message.cluster is not None) + (message.record is not None) + (message.undo is not None) != 1:
        raise InputError(f"{where}: a label is of one cluster, of one record, or takes one back")
    if not message.label and message.undo is None:
        raise InputError(f"{where}: an empty label")
    return message


def unpack_message(body: bytes, schema: Schema, where: str) -> RecordMessage | LabelMessage:
    """Whatever a message holds. Records never begin with a brace: their first byte is a multiple of 8."""
    return _unpack_label(body, where) if body[:1] == b"{" else unpack_records(body, schema, where)


def merged(tables: Sequence[Table]) -> Table:
    """One table of several, which need not share their symbols; those of one schema with the same context columns."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0]
    columns = [
        _joined([t.sym[:, s] for t in tables], [t.symbols[s] for t in tables]) for s in range(first.sym.shape[1])
    ]
    label, labels = _joined([t.label for t in tables], [t.labels for t in tables])
    numbers: dict[str, Any] = {
        name: np.concatenate([getattr(t, name) for t in tables]) for name in ("num", "time", "seq", "key")
    }
    rows = len(numbers["seq"])
    sym = np.stack([ids for ids, _ in columns], axis=1) if columns else np.zeros((rows, 0), np.int32)
    names = dict.fromkeys(name for t in tables for name in t.context)
    blank = {len(t): np.full(len(t), MISSING, object) for t in tables}
    context = {name: np.concatenate([t.context.get(name, blank[len(t)]) for t in tables]) for name in names}
    return Table(
        schema=first.schema, sym=sym, symbols=[names for _, names in columns], label=label, labels=labels,
        context=context, **numbers,
    )  # fmt: skip


def _joined(ids: list[NDArray[np.int32]], names: list[list[str]]) -> tuple[NDArray[np.int32], list[str]]:
    known: dict[str, int] = {MISSING: 0}
    parts = []
    for column, own in zip(ids, names, strict=True):
        parts.append(np.array([known.setdefault(name, len(known)) for name in own], np.int32)[column])
    return np.concatenate(parts), list(known)


def _compact(ids: NDArray[np.int32], names: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """The names that are used, the missing one first, and ids into them."""
    used = np.union1d(ids, [0])
    return [_text(names[k]) for k in used], np.searchsorted(used, ids).astype(np.int32)


def _text(value: Any) -> str:
    """Text that can be written as JSON."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _texts(column: NDArray[np.object_]) -> list[str]:
    return ["" if value is None else _text(value)[:MAX_CONTEXT_CHARACTERS] for value in column.tolist()]


def _matrix(arrays: dict[str, NDArray[Any]], name: str, kind: Any, shape: tuple[int, int], where: str) -> NDArray[Any]:
    if shape[0] * shape[1]:
        return require_array(arrays, name, kind, shape, where)
    return require_array(arrays, name, kind, (0,), where).reshape(shape)


def _check(table: Table, where: str) -> None:
    if len(table.symbols) != table.sym.shape[1]:
        raise ModelError(f"{where}: symbols of {len(table.symbols)} attributes, expected {table.sym.shape[1]}")
    columns = [(table.sym[:, s], names) for s, names in enumerate(table.symbols)]
    for ids, names in [*columns, (table.label, table.labels)]:
        if not names or names[0] != MISSING:
            raise ModelError(f"{where}: the first symbol is not the missing one")
        if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= len(names)):
            raise ModelError(f"{where}: an id of a symbol that there is not")
    if (table.seq[1:] <= table.seq[:-1]).any():
        raise ModelError(f"{where}: the numbers of its records do not rise")


def _context(given: dict[str, list[str]], rows: int, where: str) -> dict[str, NDArray[np.object_]]:
    if len(given) > MAX_CONTEXT_COLUMNS:
        raise ModelError(f"{where}: {len(given)} context columns, over {MAX_CONTEXT_COLUMNS}")
    for name, values in given.items():
        if len(values) != rows or len(name) > MAX_NAME:
            raise ModelError(f"{where}: context {name[:40]!r} has {len(values)} values for {rows} records")
        if rows and max(map(len, values)) > MAX_CONTEXT_CHARACTERS:
            raise ModelError(f"{where}: context {name[:40]!r} has a value over {MAX_CONTEXT_CHARACTERS} characters")
    return {name: np.array(values, object) for name, values in given.items()}
