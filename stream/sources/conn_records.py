"""Connections out of a log as records of schema `conn` or `kdd`, counted as those of a capture are.

A log tells less than a capture, and in another order; what is lacking, and what is meant by the rest:

- `time` is that of the last packet; windows are counted at the latest such time so far, as logs are not in order.
- Without TCP, `state` follows from who sent packets (Zeek says OTH of every ping): SF, S0 or SHR, else OTH.
- `service` is that of the port, unless the log has recognised a protocol that does not fit it.
- `kdd`: content attributes, wrong fragments and urgent packets are 0, as no log has them.

>>> row = Conn(uid="C1", start=0, end=2 * 10**9, source="10.0.0.1", source_port=4000, destination="10.0.0.2",
...     destination_port=443, proto=6, app="ssl", state="SF", orig=(5, 300, 560), resp=(6, 9000, 9312))
>>> table = LogConnections("conn").table([row])
>>> [table.symbols[s][table.sym[0, s]] for s in range(3)], table.context["source"][0]
(['tcp', 'https', 'SF'], '10.0.0.1')
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.container import Arrays, require_array
from netclust.kernels.packets import decode, tcp
from netclust.records.running_time import RunningTime
from netclust.records.schema import load_schema
from netclust.records.table import Table
from netclust.records.traffic_counts import TrafficCounts, error_class, traffic_key
from netclust.stream.packets.conn_attributes import ConnectionSide, conn_numbers, failed_states, rounded
from netclust.stream.packets.connections import (
    PROTOCOLS,
    connection_protocol_ids,
    flow_connection_services,
    iso_times,
    kdd_connection_services,
)
from netclust.stream.packets.host_relations import Relations
from netclust.stream.packets.services import flow_services, kdd_services
from netclust.stream.sources.app_names import service_name

__all__ = ["Conn", "LogConnections", "address_words", "iso_ns", "protocol_number"]

LOG_SCHEMAS = ("conn", "kdd")
MAX_COUNT = 1 << 53
"""A count beyond it is no count: numbers are exact up to here."""
_MAX_NS = 1 << 62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHAPE = np.dtype([("proto", np.uint8), ("icmp_type", np.uint8), ("icmp_code", np.uint8)])
_UNKNOWN_PROTOCOL = 255
_PROTOCOL_NUMBERS = {
    "tcp": decode.TCP, "udp": decode.UDP, "icmp": decode.ICMP, "icmp6": decode.ICMPV6, "ipv6-icmp": decode.ICMPV6,
    "icmpv6": decode.ICMPV6, "sctp": decode.SCTP, "igmp": decode.IGMP, "gre": decode.GRE, "esp": 50,
}  # fmt: skip
_PORTED = (decode.TCP, decode.UDP, decode.SCTP)


class Conn(NamedTuple):
    """One line of a log, understood. Times are nanoseconds; a side is packets, payload bytes, IP bytes."""

    uid: str
    start: int
    end: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    proto: int
    app: str
    state: str
    orig: tuple[int, int, int]
    resp: tuple[int, int, int]
    missed: int = 0
    icmp: tuple[int, int] = (0, 0)  # type and code
    label: str = ""


class LogConnections:
    """Makes tables of what a log tells, in its order. Like a capture's, its counts are state."""

    def __init__(self, schema: str) -> None:
        if schema not in LOG_SCHEMAS:
            raise InputError(f"a log of connections gives records of schema {' or '.join(LOG_SCHEMAS)}, not {schema}")
        self.schema = load_schema(schema)
        self.clock = RunningTime()
        self._counts: Relations | TrafficCounts = Relations() if schema == "conn" else TrafficCounts()

    @property
    def dropped(self) -> int:
        """Connections that left a window early, for want of room."""
        return self._counts.dropped if isinstance(self._counts, Relations) else self._counts.recent.dropped

    def state(self) -> Arrays:
        """What it has counted."""
        return self._counts.state("counts.") | {"clock": np.array([self.clock.latest], np.int64)}

    def restore(self, arrays: Arrays) -> None:
        """Go on where `state` was taken; raises ModelError for nonsense."""
        clock = require_array(arrays, "clock", np.int64, (1,), "windows of a log")
        self._counts.restore(arrays, "counts.")
        self.clock.latest = int(clock[0])

    def table(self, rows: Sequence[Conn]) -> Table:
        """The records, in order."""
        lists: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [()] * len(Conn._fields)
        raw = dict(zip(Conn._fields, lists, strict=True))
        first, last = np.array(raw["start"], np.int64), np.array(raw["end"], np.int64)
        source, destination = _words(raw["source"]), _words(raw["destination"])
        shape = np.zeros(len(rows), _SHAPE)
        shape["proto"] = raw["proto"]
        shape["icmp_type"], shape["icmp_code"] = np.array(raw["icmp"], np.uint8).reshape(-1, 2).T
        ported = np.isin(shape["proto"], _PORTED)
        source_port = np.where(ported, np.array(raw["source_port"], np.uint16), np.uint16(0))
        port = np.where(ported, np.array(raw["destination_port"], np.uint16), np.uint16(0))
        orig, resp = (ConnectionSide(*np.array(raw[name], np.int64).reshape(-1, 3).T) for name in ("orig", "resp"))
        states = _states(shape["proto"], raw["state"], orig, resp)
        common = _Common(first, last, source, destination, source_port, port, shape, orig, resp, states)
        if isinstance(self._counts, Relations):
            columns = self._conn(common, raw, self._counts)
        else:
            columns = self._kdd(common, self._counts)
        table = Table.from_columns(self.schema, columns | {"label": np.array(raw["label"], object)})
        table.time = last
        table.key = traffic_key(*source, salt=0)
        table.context = _context(raw, first, source_port, port)
        return table

    def _conn(self, c: _Common, raw: dict[str, tuple[Any, ...]], counts: Relations) -> dict[str, NDArray[Any]]:
        time = self.clock.advance(c.last.copy())
        relations = counts.add(
            time, c.first, source=c.source, destination=c.destination, port=c.port, failed=failed_states(c.states)
        )
        missed = np.array(raw["missed"], np.int64)
        numbers = rounded({**conn_numbers(c.first, c.last, c.orig, c.resp), "missed_bytes": missed, **relations})
        by_port = np.array(flow_services().names, object)[flow_connection_services(c.shape, c.port)]
        return numbers | {
            "protocol": np.array(PROTOCOLS, object)[connection_protocol_ids(c.shape["proto"])],
            "service": np.array([service_name(a, b) for a, b in zip(raw["app"], by_port, strict=True)], object),
            "state": np.array(tcp.FLAG_NAMES, object)[c.states],
        }

    def _kdd(self, c: _Common, counts: TrafficCounts) -> dict[str, NDArray[Any]]:
        flags = np.where(c.shape["proto"] == decode.TCP, c.states, tcp.SF)
        names = np.array(tcp.FLAG_NAMES, object)[flags]
        service = kdd_connection_services(c.shape, c.port)
        same = (c.source[0] == c.destination[0]) & (c.source[1] == c.destination[1])
        ported = np.isin(c.shape["proto"], _PORTED)
        known: dict[str, NDArray[Any]] = {
            "duration": np.maximum(c.last - c.first, 0) // 10**9,
            "protocol_type": np.array(PROTOCOLS, object)[connection_protocol_ids(c.shape["proto"])],
            "service": np.array(kdd_services().names, object)[service],
            "flag": names,
            "src_bytes": c.orig.payload_bytes,
            "dst_bytes": c.resp.payload_bytes,
            "land": (same & (c.source_port == c.port) & ported).astype(np.int64),
        }
        time = self.clock.advance(c.last.copy())
        error = error_class(names.astype(str))
        known |= counts.add(time, host=c.destination, service=service, port=c.source_port, error=error)
        absent = np.zeros(len(c.first), np.int64)
        return {a.name: known.get(a.name, absent) for a in self.schema.features}


class _Common(NamedTuple):
    """What both schemas are made of."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    source: list[NDArray[np.uint64]]
    destination: list[NDArray[np.uint64]]
    source_port: NDArray[np.uint16]
    port: NDArray[np.uint16]
    shape: NDArray[Any]
    orig: ConnectionSide
    resp: ConnectionSide
    states: NDArray[np.uint8]


def _words(addresses: Sequence[str]) -> list[NDArray[np.uint64]]:
    words = np.array([address_words(address) for address in addresses], np.uint64).reshape(-1, 2)
    return [np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])]


@lru_cache(1 << 16)
def address_words(address: str) -> tuple[int, int]:
    """The upper and the lower 64 bits of an address; raises ValueError.

    >>> address_words("10.0.0.1"), address_words("::1")
    ((0, 167772161), (0, 1))
    """
    number = int(ipaddress.ip_address(address))
    return number >> 64, number & (1 << 64) - 1


@cache
def _state_numbers() -> dict[str, int]:
    return {name: i for i, name in enumerate(tcp.FLAG_NAMES)}


def _states(
    proto: NDArray[np.uint8], given: Sequence[str], orig: ConnectionSide, resp: ConnectionSide
) -> NDArray[np.uint8]:
    """Numbers of FLAG_NAMES."""
    numbers = _state_numbers()
    told = np.array([numbers.get(name, tcp.OTH) for name in given], np.uint8)
    asked, answered = orig.packets > 0, resp.packets > 0
    other = np.where(asked, np.where(answered, tcp.SF, tcp.S0), np.where(answered, tcp.SHR, tcp.OTH))
    return np.where(proto == decode.TCP, told, other).astype(np.uint8)


def _context(
    raw: dict[str, tuple[Any, ...]], first: NDArray[np.int64], source_port: NDArray[Any], port: NDArray[Any]
) -> dict[str, NDArray[np.object_]]:
    columns = {
        "uid": raw["uid"],
        "start": iso_times(first),
        "source": raw["source"],
        "source_port": source_port.astype(str),
        "destination": raw["destination"],
        "destination_port": port.astype(str),
    }
    return {name: np.array(column, object) for name, column in columns.items()}


@lru_cache(1 << 10)
def protocol_number(name: str) -> int:
    """IP's number of a transport protocol, by name or already a number; 255 for one that is not known.

    >>> protocol_number("TCP"), protocol_number("089"), protocol_number("unknown_transport")
    (6, 89, 255)
    """
    if name.isascii() and name.isdigit() and len(name) <= 3:
        return min(int(name), _UNKNOWN_PROTOCOL)
    return _PROTOCOL_NUMBERS.get(name.lower(), _UNKNOWN_PROTOCOL)


def epoch_ns(seconds: float) -> int:
    """Nanoseconds of a time in seconds since 1970, to the microsecond; raises ValueError."""
    if not 0 <= seconds < _MAX_NS / 1e9:
        raise ValueError(f"{seconds} is not a time")
    return round(seconds * 1e6) * 1000


def iso_ns(text: str) -> int:
    """Nanoseconds of an ISO 8601 time, UTC unless it names a zone; raises ValueError.

    >>> iso_ns("1970-01-01T01:00:02.000005+0100"), iso_ns("1970-01-01T00:00:02Z")
    (2000005000, 2000000000)
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    microseconds = (found - _EPOCH) // timedelta(microseconds=1)
    if not 0 <= microseconds < _MAX_NS // 1000:
        raise ValueError(f"{text} is not a time")
    return microseconds * 1000
