r"""Connections of a site, from a capture, a Zeek log or an EVE log, with their labels.

`load_connections` is the only function that reads files of logs. Everything else works on what it returns, so that
another reader can take its place.

>>> import tempfile
>>> line = '{"ts":1.5,"id.orig_h":"10.0.0.1","id.orig_p":4000,"id.resp_h":"192.0.2.1","id.resp_p":53,' \
...     '"proto":"udp","orig_pkts":1,"orig_ip_bytes":58,"truth":"Malicious"}\n'
>>> with tempfile.TemporaryDirectory() as folder:
...     log = Path(folder, "conn.log")
...     _ = log.write_text(line)
...     table, labels, times, hosts = load_site_records(log, "conn", "truth")
>>> len(table), labels.tolist(), times.tolist(), hosts.tolist()
(1, ['Malicious'], [1500000000], ['10.0.0.1'])
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets.tcp import FLAG_NAMES
from netclust.records.capture_format import is_capture
from netclust.records.opening import open_bytes
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.capture_labels import LabelRules
from netclust.stream.packets.capture_reader import CaptureReader, flow_records
from netclust.stream.packets.connections import conn_states, context_columns
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.sources.conn_records import Conn, LogConnections
from netclust.stream.sources.dialects import Notes
from netclust.stream.sources.eve import EveDialect
from netclust.stream.sources.log_format import LogDialect
from netclust.stream.sources.zeek import ZeekDialect

__all__ = [
    "Site", "SiteRecords", "capture_table", "join_tables", "load_connections", "load_site_records", "move_connections",
    "site_of",
]  # fmt: skip

NORMAL_LABELS = frozenset({"normal", "benign"})
"""Labels of ordinary connections, in lower case."""
LEFT_OUT_LABELS = frozenset({"background", "unknown"})
"""Labels of connections that nobody vouches for: they are in the traffic and are not judged."""
LABEL_COLUMN = "label"
_PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10")
)


class SiteRecords(NamedTuple):
    """Records of a file: a table, the label, start and site host of each."""

    table: Table
    labels: NDArray[np.object_]
    times: NDArray[np.int64]
    hosts: NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Site:
    """A site's records in the order of its log, and what is known about each of them."""

    name: str
    host: str
    """The address that most connections of the log begin or end at."""
    conns: Sequence[Conn]
    table: Table
    kind: NDArray[np.object_]
    """The label of an attack, "" for an ordinary connection."""
    judged: NDArray[np.bool_]
    begun_inside: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.table)

    @property
    def attack(self) -> NDArray[np.bool_]:
        """Attacks that are judged."""
        return np.asarray((self.kind != "") & self.judged)

    @property
    def benign(self) -> NDArray[np.bool_]:
        """Ordinary connections that are judged."""
        return np.asarray((self.kind == "") & self.judged)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Connections in which the other side sent something back."""
        return answered(self.table)

    @property
    def start(self) -> NDArray[np.int64]:
        """The first packet of each connection, in nanoseconds."""
        return np.array([conn.start for conn in self.conns], np.int64)

    @property
    def days(self) -> float:
        """How long the log is, in days."""
        return max(float(np.ptp(self.start)) / 86_400e9, 1e-9) if len(self) else 0.0


def load_site_records(path: str | Path, schema: str = "conn", label_column: str = LABEL_COLUMN) -> SiteRecords:
    """Return the records of a capture or a log of connections, with labels from a column of the log."""
    conns = load_connections(path, label_column)
    host = busiest_host(conns)
    own = [conn.source if _is_inside(conn.source, host) else conn.destination for conn in conns]
    labels, times = [conn.label for conn in conns], [conn.start for conn in conns]
    table = LogConnections(schema).table(conns)
    return SiteRecords(table, np.array(labels, object), np.array(times, np.int64), np.array(own, object))


def load_connections(path: str | Path, label_column: str = LABEL_COLUMN, rules: LabelRules | None = None) -> list[Conn]:
    """Return the connections of a capture, a Zeek log (TSV or JSON) or an EVE log, in the order of the file.

    Lines that cannot be read are passed over, like `netclust watch` does. InputError: there is no connection at all.
    """
    if is_capture(path):
        conns = _capture_connections(path, rules)
    else:
        with open_bytes(path) as stream:
            lines = stream.read()
        conns, why = _log_connections(lines, str(path), label_column)
        if not conns:
            raise InputError(f"{path}: no connections in it{why}; expected a capture, a Zeek conn.log or an EVE log")
    return conns


def _log_connections(lines: bytes, where: str, label_column: str) -> tuple[list[Conn], str]:
    notes = Notes(Counter())
    head = lines[:4096].lstrip()
    if not head.startswith(b"{"):
        zeek: LogDialect = ZeekDialect(where, notes)
        conns = list(zeek.parse(_with_label(lines, label_column)))
    else:
        dialect = EveDialect(where, notes) if b'"event_type"' in head else ZeekDialect(where, notes)
        conns = []
        for line in lines.splitlines(keepends=True):
            if found := dialect.parse(line):
                label = _json_label(line, label_column)
                conns += [conn._replace(label=label) for conn in found]
    return conns, f" ({notes.first_skipped[0]})" if notes.first_skipped else ""


def _with_label(lines: bytes, label_column: str) -> bytes:
    """The log with the chosen column under the name that the dialect takes for the label."""
    if label_column == LABEL_COLUMN:
        return lines
    at = lines.find(b"#fields")
    end = lines.find(b"\n", at)
    if at < 0 or end < 0:
        return lines
    names = lines[at:end].split(b"\t")
    renamed = [b"label" if n == label_column.encode() else b"label_" if n == b"label" else n for n in names]
    return lines[:at] + b"\t".join(renamed) + lines[end:]


def _json_label(line: bytes, label_column: str) -> str:
    found: Any = msgspec.json.decode(line)
    value = found.get(label_column)
    return value if isinstance(value, str) else ""


def _capture_connections(path: str | Path, rules: LabelRules | None) -> list[Conn]:
    """Connections of a capture as a log would have them; each is known when it ends."""
    parts = list(flow_records([*CaptureFile(path)], FlowTable()))
    if not parts:
        raise InputError(f"{path}: no connections in it")
    records = np.concatenate(parts)
    own = None if rules is None else rules.for_file(path)
    labels = [""] * len(records) if own is None else [own.names[n] for n in own.labels_of(records).tolist()]
    context, flow = context_columns(records), records["flow"]
    states = np.array(FLAG_NAMES, object)[conn_states(records)]
    sides = [
        list(zip(*(records[side][name].tolist() for name in ("packets", "payload_bytes", "ip_bytes")), strict=True))
        for side in ("orig", "resp")
    ]
    return [
        Conn(
            uid="", start=first, end=last, source=source, source_port=int(source_port), destination=destination,
            destination_port=int(port), proto=proto, app="", state=state, orig=orig, resp=resp, missed=missed,
            icmp=icmp, label=label,
        )
        for first, last, source, source_port, destination, port, proto, state, orig, resp, missed, icmp, label in zip(
            flow["first"].tolist(), flow["last"].tolist(), context["source"], context["source_port"],
            context["destination"], context["destination_port"], flow["proto"].tolist(), states, *sides,
            (records["orig"]["missed_bytes"] + records["resp"]["missed_bytes"]).tolist(),
            zip(flow["icmp_type"].tolist(), flow["icmp_code"].tolist(), strict=True), labels, strict=True,
        )
    ]  # fmt: skip


def capture_table(path: str | Path, schema: str, rules: LabelRules | None = None) -> Table:
    """Return the records of a capture or log in a model's schema; only captures have schema `flow`."""
    if is_capture(path):
        own = None if rules is None else rules.for_file(path)
        reader = CaptureReader([path], load_schema(schema), labels=own, checksum=False)
        return concat_tables(list(reader))
    return LogConnections(schema).table(load_connections(path))


def site_of(name: str, conns: Sequence[Conn], schema: str = "conn", host: str = "", default: str = "") -> Site:
    """Return a site: records counted in their order, attacks by their labels; `default` is the kind of the others."""
    host = host or busiest_host(conns)
    labels = [conn.label.strip() for conn in conns]
    kind = [default if not label else "" if label.lower() in NORMAL_LABELS else label for label in labels]
    return Site(
        name=name,
        host=host,
        conns=conns,
        table=LogConnections(schema).table(conns),
        kind=np.array(kind, object),
        judged=np.array([label.lower() not in LEFT_OUT_LABELS for label in labels], np.bool_),
        begun_inside=np.array([_is_inside(conn.source, host) for conn in conns], np.bool_),
    )


def busiest_host(conns: Iterable[Conn]) -> str:
    """Return the address at which most connections begin or end: the host that a log is about."""
    counts: Counter[str] = Counter()
    for conn in conns:
        counts.update({conn.source, conn.destination})
    return counts.most_common(1)[0][0] if counts else ""


def answered(table: Table) -> NDArray[np.bool_]:
    """Return which connections the other side answered."""
    names = [a.name for a in table.schema.numeric]
    if "resp_packets" not in names:
        return np.ones(len(table), np.bool_)
    return np.asarray(table.num[:, names.index("resp_packets")] > 0)


def move_connections(
    conns: Sequence[Conn], inside: str, host: str, begin: int, length: int, kind: str = ""
) -> list[Conn]:
    """Return connections that a host inside began, moved to another host and into a span of time.

    A capture that is longer than the span begins again at its start, so that all of its connections happen in it.
    """
    own = [conn for conn in conns if conn.source == inside]
    if not own:
        return []
    first = min(conn.start for conn in own)
    moved = []
    for conn in own:
        start = begin + (conn.start - first) % max(length, 1)
        moved.append(
            conn._replace(source=host, start=start, end=start + conn.end - conn.start, label=kind or conn.label)
        )
    return sorted(moved, key=lambda conn: conn.start)


def merge_connections(day: Sequence[Conn], more: Sequence[Conn]) -> list[Conn]:
    """Return a log with more connections in it; those of the log keep their order."""
    latest = np.maximum.accumulate(np.array([conn.start for conn in day], np.int64))
    added = sorted(more, key=lambda conn: conn.start)
    at = np.searchsorted(latest, [conn.start for conn in added], side="right").tolist()
    merged: list[Conn] = []
    done = 0
    for place, conn in zip(at, added, strict=True):
        merged += day[done:place]
        merged.append(conn)
        done = place
    return [*merged, *day[done:]]


def join_tables(tables: Sequence[Table]) -> Table:
    """Return one table of several whose symbols have other numbers."""
    first = tables[0]
    symbols = [sorted({name for t in tables for name in t.symbols[s]}) for s in range(first.sym.shape[1])]
    labels = sorted({name for t in tables for name in t.labels})
    parts = []
    for t in tables:
        sym = np.empty_like(t.sym)
        for s, names in enumerate(symbols):
            places = {name: i for i, name in enumerate(names)}
            sym[:, s] = np.array([places[name] for name in t.symbols[s]], np.int32)[t.sym[:, s]]
        places = {name: i for i, name in enumerate(labels)}
        label = np.array([places[name] for name in t.labels], np.int32)[t.label]
        parts.append((t.num, sym, label, t.time, t.seq, t.key))
    num, sym, label, time, seq, key = (np.concatenate(column) for column in zip(*parts, strict=True))
    shared = set.intersection(*(set(t.context) for t in tables))
    context = {name: np.concatenate([t.context[name] for t in tables]) for name in first.context if name in shared}
    return Table(
        schema=first.schema, num=num, sym=sym, symbols=symbols, label=label, labels=labels, time=time, seq=seq, key=key,
        context=context,
    )  # fmt: skip


@lru_cache(1 << 16)
def _is_inside(address: str, host: str) -> bool:
    """Whether an address is the site's: its busiest host, or a private one."""
    if address == host:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in _PRIVATE if network.version == found.version)
