"""Labels for the connections of a capture: a CSV file that says which addresses, ports and times mean which class.

Columns, by name: source, source_port, destination, destination_port, protocol, start, end, label, and file for those
who keep the labels of several captures in one place. An empty field or a column that is not there means any; addresses
may be networks (10.0.0.0/8), ports ranges (6000-6063); times are ISO 8601 or seconds since the epoch. A connection
matches in either direction and if it overlaps the time. Rows that name one connection come first, then the others in
their order; the first match counts, and a last row of nothing but a label is for the rest.

>>> rules = parse_labels("source,destination_port,label\\n10.0.0.5,22,brute_force\\n,,normal\\n")
>>> len(rules.rules)
2
"""

from __future__ import annotations

import csv
import fnmatch
import io
import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets import decode
from netclust.records.opening import open_bytes
from netclust.records.table import MISSING, Table
from netclust.stream.packets.connections import connection_endpoints

__all__ = ["LabelRules", "label_table", "load_labels", "parse_labels"]

COLUMNS = (
    "source", "source_port", "destination", "destination_port", "protocol", "start", "end", "label", "file",
)  # fmt: skip
IGNORED = ("kind", "note")
MAX_BYTES = 4 << 30
MAX_RULES = 10_000  # rows with wildcards: each is compared with every connection
_PROTOCOLS = {
    "tcp": (6,),
    "udp": (17,),
    "icmp": (1, 58),
    "icmp6": (58,),
    "arp": (decode.ARP,),
    "sctp": (132,),
    "igmp": (2,),
}
_ANY = ("", "*", "any")
_SLACK_NS = 1000  # times in files are often rounded to microseconds
_BEGINNING, _END = np.iinfo(np.int64).min // 2, np.iinfo(np.int64).max // 2

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Exact = tuple[int, int, int, int, int]
Span = tuple[int, int, int]


@dataclass(frozen=True)
class LabelRule:
    """A row with something left open."""

    label: int
    source: Network | None
    destination: Network | None
    source_port: tuple[int, int] | None
    destination_port: tuple[int, int] | None
    protocol: tuple[int, ...]
    start: int
    end: int
    file: str


@dataclass(eq=False)
class LabelRules:
    """What a label file says; `names` are the labels, 0 is none."""

    names: list[str] = field(default_factory=lambda: [MISSING])
    exact: dict[Exact, list[Span]] = field(default_factory=lambda: defaultdict(list))
    rules: list[LabelRule] = field(default_factory=list)

    def number(self, label: str) -> int:
        """The number of a label, a new one if need be."""
        if label not in self.names:
            self.names.append(label)
        return self.names.index(label)

    def for_file(self, path: str | Path) -> LabelRules:
        """The rules that hold for a capture."""
        name = str(path)
        kept = [r for r in self.rules if not r.file or fnmatch.fnmatch(name, f"*{r.file}")]
        return LabelRules(self.names, self.exact, kept)

    def for_files(self, paths: Sequence[str | Path]) -> LabelRules:
        """The rules for captures that are read as one stream: whose packet is whose cannot be told there any more."""
        if len(paths) == 1:
            return self.for_file(paths[0])
        if any(rule.file for rule in self.rules):
            raise InputError("the label file has rules for single captures (column file): give one capture at a time")
        return self

    def labels_of(self, records: NDArray[Any]) -> NDArray[np.int32]:
        """The label of every connection, 0 where no row matches."""
        labels = np.zeros(len(records), np.int32)
        if self.exact:
            self._exact(records, labels)
        for rule in self.rules:
            if not (left := labels == 0).any():
                break
            labels[left & _matches(rule, records)] = rule.label
        return labels

    def add_connections(self, records: NDArray[Any], labels: Sequence[str], shift: int = 0) -> None:
        """Rows for connections that are known already, `shift` nanoseconds later; none for an empty label."""
        for (key, first, last), label in zip(_connections(records), labels, strict=True):
            if label:
                self.exact[key].append((first + shift, last + shift, self.number(label)))

    def _exact(self, records: NDArray[Any], labels: NDArray[np.int32]) -> None:
        for i, (key, first, last) in enumerate(_connections(records)):
            for start, end, label in self.exact.get(key, ()):
                if first <= end and last >= start:
                    labels[i] = label
                    break


def _connections(records: NDArray[Any]) -> Iterator[tuple[Exact, int, int]]:
    """What identifies each connection, and its time."""
    source, source_port, destination, destination_port = connection_endpoints(records)
    flow = records["flow"]
    has_ports = np.isin(flow["proto"], (6, 17, 132))
    proto = np.where(flow["proto"] == decode.ICMPV6, decode.ICMP, flow["proto"])
    columns = (
        _whole(source), np.where(has_ports, source_port, 0).tolist(), _whole(destination),
        np.where(has_ports, destination_port, 0).tolist(), proto.tolist(),
        flow["first"].tolist(), flow["last"].tolist(),
    )  # fmt: skip
    for src, sport, dst, dport, number, first, last in zip(*columns, strict=True):
        yield _key(src, sport, dst, dport, number), first, last


def label_table(table: Table, rules: LabelRules, records: NDArray[Any]) -> Table:
    """The table of these connections, with their labels."""
    table.label, table.labels = rules.labels_of(records), rules.names
    return table


def load_labels(path: str | Path) -> LabelRules:
    """Read a label file; packed is fine."""
    with open_bytes(path) as stream:
        text = stream.read(MAX_BYTES)
    try:
        return parse_labels(text.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} byte {error.start}: not UTF-8 text, and so no label file") from None


def parse_labels(text: str, where: str = "labels") -> LabelRules:
    """Read labels from CSV text."""
    rows = csv.DictReader(io.StringIO(text), strict=True)
    try:
        names = [name.strip().lower() for name in rows.fieldnames or ()]
        unknown = sorted(set(names) - {*COLUMNS, *IGNORED})
        if "label" not in names or unknown:
            problem = f"unknown columns {', '.join(unknown)}" if unknown else "no column label"
            raise InputError(f"{where} line 1: {problem}; a label file has some of: {', '.join((*COLUMNS, *IGNORED))}")
        rows.fieldnames = names
        found = LabelRules()
        for row in rows:
            _add(found, row, f"{where} line {rows.line_num}")
    except csv.Error as error:
        raise InputError(f"{where} line {rows.line_num}: {error}") from None
    for spans in found.exact.values():
        spans.sort()
    if len(found.rules) > MAX_RULES:
        raise InputError(f"{where}: {len(found.rules)} rows leave something open, at most {MAX_RULES} can")
    if not found.rules and not found.exact:
        raise InputError(f"{where}: no labels")
    return found


def _add(found: LabelRules, row: Mapping[str | None, Any], where: str) -> None:
    if None in row or any(value is None for value in row.values()):
        raise InputError(f"{where}: as many fields as the header has are needed")
    fields = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    label = fields["label"]
    if not label:
        raise InputError(f"{where}: a row without a label")
    number = found.number(label)
    start = _time(fields["start"], _BEGINNING, where) - _SLACK_NS
    end = _time(fields["end"], _END, where) + _SLACK_NS
    if end < start:
        raise InputError(f"{where}: it ends before it starts")
    protocol = _protocol(fields["protocol"], where)
    if exact := _one_connection(fields, protocol):
        found.exact[exact].append((start, end, number))
        return
    found.rules.append(
        LabelRule(
            label=number,
            source=_network(fields["source"], where),
            destination=_network(fields["destination"], where),
            source_port=_ports(fields["source_port"], where),
            destination_port=_ports(fields["destination_port"], where),
            protocol=protocol,
            start=start,
            end=end,
            file=fields["file"],
        )
    )


def _one_connection(fields: dict[str, str], protocol: tuple[int, ...]) -> Exact | None:
    """The endpoints of a row that leaves none open."""
    if fields["file"] or not protocol:
        return None
    has_ports = protocol[0] in (6, 17, 132)
    ports = (fields["source_port"], fields["destination_port"])
    if has_ports and not all(port.isdigit() for port in ports):
        return None
    try:
        source = int(ipaddress.ip_address(fields["source"]))
        destination = int(ipaddress.ip_address(fields["destination"]))
    except ValueError:
        return None
    sport, dport = (int(port) if has_ports else 0 for port in ports)
    if max(sport, dport) > 65535:
        return None
    return _key(source, sport, destination, dport, decode.ICMP if protocol[0] == decode.ICMPV6 else protocol[0])


def _key(source: int, sport: int, destination: int, dport: int, protocol: int) -> Exact:
    """The same for both directions."""
    if (source, sport) > (destination, dport):
        return destination, dport, source, sport, protocol
    return source, sport, destination, dport, protocol


def _whole(words: list[NDArray[np.uint64]]) -> list[int]:
    return [hi << 64 | lo for hi, lo in zip(words[0].tolist(), words[1].tolist(), strict=True)]


def _network(text: str, where: str) -> Network | None:
    if text.lower() in _ANY:
        return None
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InputError(f"{where}: {text!r} is no address and no network") from None


def _ports(text: str, where: str) -> tuple[int, int] | None:
    if text.lower() in _ANY:
        return None
    low, _, high = text.partition("-")
    bounds = [part.strip() for part in (low, high or low)]
    if not all(part.isdigit() and int(part) <= 65535 for part in bounds):
        raise InputError(f"{where}: {text!r} is no port and no range of ports")
    if int(bounds[0]) > int(bounds[1]):
        raise InputError(f"{where}: {text!r} is no range of ports, its ends are the wrong way round")
    return int(bounds[0]), int(bounds[1])


def _protocol(text: str, where: str) -> tuple[int, ...]:
    if text.lower() in _ANY:
        return ()
    if text.isdigit() and int(text) <= 255:
        return (int(text),)
    if text.lower() not in _PROTOCOLS:
        raise InputError(f"{where}: {text!r} is no protocol: {', '.join(_PROTOCOLS)} or a number")
    return _PROTOCOLS[text.lower()]


def _time(text: str, default: int, where: str) -> int:
    if text.lower() in _ANY:
        return default
    try:
        if text.replace(".", "", 1).isdigit():
            whole, _, part = text.partition(".")
            return int(whole) * 10**9 + int((part + "0" * 9)[:9])
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {text!r} is no time: ISO 8601, or seconds since the epoch") from None
    moment = moment.replace(tzinfo=moment.tzinfo or UTC)
    return round(moment.timestamp() * 1_000_000) * 1000


def _matches(rule: LabelRule, records: NDArray[Any]) -> NDArray[np.bool_]:
    flow = records["flow"]
    fits = (flow["first"] <= rule.end) & (flow["last"] >= rule.start)
    if rule.protocol:
        fits &= np.isin(flow["proto"], rule.protocol)
    source, source_port, destination, destination_port = connection_endpoints(records)
    one = (source, source_port, destination, destination_port)
    other = (destination, destination_port, source, source_port)
    return fits & (_matches_way(rule, flow["family"], *one) | _matches_way(rule, flow["family"], *other))


def _matches_way(
    rule: LabelRule,
    family: NDArray[np.uint8],
    source: list[NDArray[np.uint64]],
    source_port: NDArray[np.uint16],
    destination: list[NDArray[np.uint64]],
    destination_port: NDArray[np.uint16],
) -> NDArray[np.bool_]:
    fits = np.ones(len(family), np.bool_)
    for network, words in ((rule.source, source), (rule.destination, destination)):
        if network is not None:
            fits &= _inside(network, family, words)
    for ports, values in ((rule.source_port, source_port), (rule.destination_port, destination_port)):
        if ports is not None:
            fits &= (values >= ports[0]) & (values <= ports[1])
    return fits


def _inside(network: Network, family: NDArray[np.uint8], words: Iterable[NDArray[np.uint64]]) -> NDArray[np.bool_]:
    hi, lo = words
    first, mask = int(network.network_address), int(network.netmask)
    right = (family == decode.FAMILY_IPV6) == (network.version == 6)
    top = (hi & np.uint64(mask >> 64)) == np.uint64(first >> 64)
    return np.asarray(right & top & ((lo & np.uint64(mask & (1 << 64) - 1)) == np.uint64(first & (1 << 64) - 1)))
