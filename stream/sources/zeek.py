r"""Zeek's conn.log: tab-separated with its header, or JSON lines.

Fields may stand in any order, others are passed over. Zeek does not count the 8 bytes of an ICMP header as payload; the
flow table does, as KDD did, so they are added. Of IPv6 Zeek says `icmp` too.

>>> from collections import Counter
>>> from netclust.stream.sources.dialects import Notes
>>> dialect = ZeekDialect("conn.log", Notes(Counter()))
>>> line = b'{"ts":1.5,"uid":"C1","id.orig_h":"10.0.0.1","id.orig_p":4000,"id.resp_h":"10.0.0.2","id.resp_p":53,' \
...     b'"proto":"udp","duration":0.25,"orig_bytes":30,"resp_bytes":90,"conn_state":"SF","orig_pkts":1,' \
...     b'"orig_ip_bytes":58,"resp_pkts":1,"resp_ip_bytes":118}\n'
>>> (conn,) = dialect.parse(line)
>>> conn.uid, conn.end, conn.resp
('C1', 1750000000, (1, 90, 118))
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Annotated

import msgspec

from netclust.kernels.packets import decode
from netclust.stream.sources.conn_records import MAX_COUNT, Conn, address_words, epoch_ns, iso_ns, protocol_number
from netclust.stream.sources.dialects import Notes
from netclust.stream.sources.log_format import MAX_TEXT, LogDialect

__all__ = ["ZeekDialect"]

NEEDED = (
    "ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "duration", "orig_bytes", "resp_bytes",
    "conn_state", "orig_pkts", "orig_ip_bytes", "resp_pkts", "resp_ip_bytes",
)  # fmt: skip
_TEXTS = ("uid", "service", "conn_state", "label")
_COUNTS = ("orig_pkts", "orig_bytes", "orig_ip_bytes", "resp_pkts", "resp_bytes", "resp_ip_bytes", "missed_bytes")
# In the order in which `_from_fields` takes them.
_TAKEN = (
    *("ts", "id.orig_h", "id.resp_h", "proto", "duration", "id.orig_p", "id.resp_p", "ip_proto"), *_TEXTS, *_COUNTS,
)  # fmt: skip
_MAX_HEADER_BYTES = 1 << 16
_ICMP_HEADER = 8

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class _JsonLine(
    msgspec.Struct,
    rename={"orig_h": "id.orig_h", "orig_p": "id.orig_p", "resp_h": "id.resp_h", "resp_p": "id.resp_p"},
):
    ts: float | str
    orig_h: Text
    orig_p: Port
    resp_h: Text
    resp_p: Port
    proto: Text
    conn_state: Text = ""
    orig_pkts: Count | None = None
    resp_pkts: Count | None = None
    orig_ip_bytes: Count | None = None
    resp_ip_bytes: Count | None = None
    uid: Text = ""
    service: Text | None = None
    duration: float | None = None
    orig_bytes: Count | None = None
    resp_bytes: Count | None = None
    missed_bytes: Count | None = None
    ip_proto: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    label: Text | None = None


_json = msgspec.json.Decoder(_JsonLine)


class ZeekDialect(LogDialect):
    """One log file; its header is known from where it says #separator or #fields."""

    def __init__(self, where: str, notes: Notes, label_field: str | None = None) -> None:
        super().__init__(where, notes, label_field)
        self._taken = (*_TAKEN[: _TAKEN.index("label")], label_field or "label", *_TAKEN[_TAKEN.index("label") + 1 :])
        self._header: list[bytes] = []
        self._begin_header()

    def _begin_header(self) -> None:
        self._header.clear()
        self._separator, self._unset, self._empty = "\t", "-", "(empty)"
        self._columns = 0
        self._pick: Callable[[list[str]], tuple[str, ...]] | None = None
        self.problem = ""

    @property
    def header(self) -> bytes:
        """The lines of the header in force."""
        return b"".join(line + b"\n" for line in self._header)

    def read_line(self, line: bytes) -> Conn | None:
        """What a line says."""
        if line.startswith(b"#"):
            self._header_line(line)
            return None
        if line.startswith(b"{"):
            return self.labelled(self._from_json(_json.decode(line)), line)
        return self._from_fields(line)

    def _header_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if text.startswith("#separator"):
            self._begin_header()
            self._separator = _unescaped(text.removeprefix("#separator").strip(" ")) or "\t"
        name, _, value = text.partition(self._separator)
        if name == "#fields":
            self._fields(value.split(self._separator))
        elif name == "#path" and not value.startswith("conn"):
            self._refuse(f"is a log of {value[:40]}, not of connections (conn)")
        elif name == "#unset_field":
            self._unset = value
        elif name == "#empty_field":
            self._empty = value
        if sum(map(len, self._header)) + len(line) <= _MAX_HEADER_BYTES and name != "#close":
            self._header.append(line)

    def _fields(self, names: list[str]) -> None:
        self._columns = len(names)
        self._pick = itemgetter(*(names.index(name) if name in names else len(names) for name in self._taken))
        if lacking := [name for name in NEEDED if name not in names]:
            self._refuse(f"has no field {', '.join(lacking)}: log it, or write conn.log in Zeek's own form")

    def _refuse(self, why: str) -> None:
        self.problem = f"{self.where}: {why}"
        self.notes.keep(self.problem)

    def _from_fields(self, line: bytes) -> Conn | None:
        if self.problem:
            self.skip("bad_header", "behind a header that cannot be used")
            return None
        if self._pick is None:
            self.skip("no_header", "a line in front of #fields")
            return None
        unset = self._unset
        fields = line.decode("utf-8", "replace").split(self._separator)
        if len(fields) != self._columns:
            self.skip("columns", f"{len(fields)} columns, the header has {self._columns}")
            return None
        fields.append(unset)  # of which those are that the header lacks
        found = self._pick(fields)
        start, source, destination, proto, duration, source_port, port, ip_proto = found[:8]
        texts = ["" if value in (unset, self._empty) else value for value in found[8:12]]
        if max(map(len, texts)) > MAX_TEXT:
            raise ValueError(f"a text is longer than {MAX_TEXT} characters")
        return _conn(
            start=epoch_ns(float(start)),
            duration=0.0 if duration == unset else float(duration),
            ends=(source, destination),
            ports=(int(source_port), int(port)),
            proto=proto,
            ip_proto=None if ip_proto == unset else int(ip_proto),
            counts=[0 if value == unset else int(value) for value in found[12:]],
            texts=texts,
        )

    @staticmethod
    def _from_json(line: _JsonLine) -> Conn:
        return _conn(
            start=epoch_ns(line.ts) if isinstance(line.ts, float) else iso_ns(line.ts),
            duration=line.duration or 0.0,
            ends=(line.orig_h, line.resp_h),
            ports=(line.orig_p, line.resp_p),
            proto=line.proto,
            ip_proto=line.ip_proto,
            counts=[getattr(line, name) or 0 for name in _COUNTS],
            texts=[getattr(line, name) or "" for name in _TEXTS],
        )


def _conn(
    start: int, duration: float, ends: tuple[str, str], ports: tuple[int, int], proto: str, ip_proto: int | None,
    counts: list[int], texts: list[str],
) -> Conn:  # fmt: skip
    """A connection from Zeek's fields, checked."""
    if min(counts) < 0 or max(counts) > MAX_COUNT:
        raise ValueError("a count is negative or too large")
    if min(ports) < 0 or max(ports) > 65535:
        raise ValueError("a port is not from 0 to 65535")
    for address in ends:
        address_words(address)  # raises ValueError
    number = protocol_number(proto)
    if number == protocol_number("") and ip_proto is not None:
        number = min(max(ip_proto, 0), 255)
    icmp = (0, 0)
    if number == decode.ICMP:
        number = decode.ICMPV6 if ":" in ends[0] else number
        icmp = min(ports[0], 255), min(ports[1], 255)
        counts[1] += _ICMP_HEADER * counts[0]
        counts[4] += _ICMP_HEADER * counts[3]
    uid, service, state, label = texts
    return Conn(
        uid=uid,
        start=start,
        end=start + epoch_ns(duration),
        source=ends[0],
        source_port=ports[0],
        destination=ends[1],
        destination_port=ports[1],
        proto=number,
        app=service,
        state=state,
        orig=(counts[0], counts[1], counts[2]),
        resp=(counts[3], counts[4], counts[5]),
        missed=counts[6],
        icmp=icmp,
        label=label,
    )


def _unescaped(value: str) -> str:
    r"""What \x09 means.

    >>> _unescaped(r"\x09"), _unescaped(",")
    ('\t', ',')
    """
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), value)
