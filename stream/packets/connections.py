"""Finished connections as records of a schema: KDD's 41 attributes, those of `flow`, or those of `conn`.

Traffic attributes are counted in the order in which connections end, so one object follows one stream.

>>> from netclust.kernels.packets.flow_layout import RECORD
>>> table = connection_maker("kdd").table(np.zeros(0, RECORD))
>>> len(table), table.schema.name
(0, 'kdd')
"""

from __future__ import annotations

import ipaddress
from abc import ABC, abstractmethod
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays, require_array
from netclust.kernels.packets import decode, tcp
from netclust.kernels.packets.flow_layout import CONTENT_NAMES, END_NAMES, ESTABLISHED
from netclust.records.running_time import RunningTime
from netclust.records.schema import load_schema
from netclust.records.table import MISSING, Table
from netclust.records.traffic_counts import TrafficCounts, error_class, traffic_key
from netclust.stream.packets.conn_attributes import ConnectionSide, conn_numbers, failed_states, rounded
from netclust.stream.packets.host_relations import Relations
from netclust.stream.packets.services import flow_services, icmp_services, kdd_services

__all__ = ["SCHEMAS", "Connections", "connection_addresses", "connection_maker", "context_columns"]

SCHEMAS = ("kdd", "flow", "conn")
PROTOCOLS = ("", "tcp", "udp", "icmp", "arp", "sctp", "igmp", "gre", "esp", "ip")
PROTOCOL_NUMBERS = {
    decode.TCP: "tcp", decode.UDP: "udp", decode.ICMP: "icmp", decode.ICMPV6: "icmp", decode.ARP: "arp",
    decode.SCTP: "sctp", decode.IGMP: "igmp", decode.GRE: "gre", 50: "esp",
}  # fmt: skip
# KDDTrain+ goes no further, and these have no meaning beyond "some".
_KDD_CAPS = {
    "wrong_fragment": 3,
    "urgent": 3,
    "su_attempted": 2,
    "root_shell": 1,
    "logged_in": 1,
    "num_failed_logins": 5,
}

Columns = dict[str, NDArray[Any]]


def connection_maker(schema: str, *, context: bool = True) -> Connections:
    """What makes records of one of SCHEMAS; without context, addresses are not written out."""
    makers: dict[str, type[Connections]] = {"kdd": _KddConnections, "flow": _FlowConnections, "conn": _ConnConnections}
    if schema not in makers:
        raise InputError(f"captures become records of schema {', '.join(SCHEMAS)}, not {schema}")
    return makers[schema](context)


class Connections(ABC):
    """Follows a stream of finished connections; `counters` says what it could not count in full."""

    name: str

    def __init__(self, context: bool) -> None:
        self.schema = load_schema(self.name)
        self.context = context
        self._seen = 0

    @abstractmethod
    def columns(self, records: NDArray[Any]) -> tuple[Columns, list[tuple[NDArray[Any], list[str]]]]:
        """Numbers by attribute; and for every symbolic attribute, in schema order, ids and their names (0: none)."""

    @property
    @abstractmethod
    def counters(self) -> Counter[str]:
        """Connections that left a traffic window early, for want of room."""

    @property
    def seen(self) -> int:
        """How many were given; the number of the next one."""
        return self._seen

    def skip_to(self, seq: int) -> None:
        """Number the next one `seq`; numbers never go back."""
        self._seen = max(self._seen, seq)

    @property
    @abstractmethod
    def windows(self) -> TrafficCounts | Relations:
        """What connections are counted in."""

    def state(self) -> Arrays:
        """All that is counted so far, for `restore`."""
        return {"seen": np.array([self._seen], np.int64)} | self.windows.state()

    def restore(self, arrays: Arrays) -> None:
        """Go on where `state` was taken; raises ModelError for nonsense."""
        seen = int(require_array(arrays, "seen", np.int64, (1,), "connections")[0])
        if seen < 0:
            raise ModelError(f"connections: seen is {seen}")
        self.windows.restore(arrays)
        self._seen = seen

    def table(self, records: NDArray[Any]) -> Table:
        """The connections as a table, in order."""
        n = len(records)
        numbers, coded = self.columns(records)
        num = np.empty((n, len(self.schema.numeric)))
        for f, a in enumerate(self.schema.numeric):
            num[:, f] = numbers[a.name]
        sym = np.zeros((n, len(self.schema.coded)), np.int32)
        symbols: list[list[str]] = []
        symbolic = iter(coded)
        for s, a in enumerate(self.schema.coded):
            ids, names = (numbers[a.name] + 1, [MISSING, "0", "1"]) if a.kind == "binary" else next(symbolic)
            sym[:, s] = ids
            symbols.append(names)
        context = context_columns(records) if self.context else {}
        seq = np.arange(self._seen, self._seen + n, dtype=np.uint64)
        self._seen += n
        return Table(
            schema=self.schema,
            num=num,
            sym=sym,
            symbols=symbols,
            label=np.zeros(n, np.int32),
            labels=[MISSING],
            time=records["time"].copy(),
            seq=seq,
            key=traffic_key(*connection_endpoints(records)[0], salt=0),
            context=context,
        )


class _KddConnections(Connections):
    name = "kdd"

    def __init__(self, context: bool) -> None:
        super().__init__(context)
        self._traffic = TrafficCounts()

    @property
    def windows(self) -> TrafficCounts:
        return self._traffic

    @property
    def counters(self) -> Counter[str]:
        return Counter(traffic_window_full=self._traffic.recent.dropped)

    def columns(self, records: NDArray[Any]) -> tuple[Columns, list[tuple[NDArray[Any], list[str]]]]:
        flow, orig, resp = records["flow"], records["orig"], records["resp"]
        source, source_port, destination, destination_port = connection_endpoints(records)
        is_tcp, is_icmp = flow["proto"] == decode.TCP, np.isin(flow["proto"], (decode.ICMP, decode.ICMPV6))
        flags = np.where(is_tcp, conn_states(records), tcp.SF)  # in the data, all but TCP is SF
        names = np.array(tcp.FLAG_NAMES)
        service = kdd_connection_services(flow, destination_port)
        numbers: Columns = {
            "duration": np.maximum(flow["last"] - flow["first"], 0) // 10**9,
            "src_bytes": orig["payload_bytes"],
            "dst_bytes": resp["payload_bytes"],
            "land": (
                (source[0] == destination[0])
                & (source[1] == destination[1])
                & (source_port == destination_port)
                & ~is_icmp
                & (flow["proto"] != decode.ARP)
            ).astype(np.int64),
            "wrong_fragment": flow["wrong_fragments"],
            "urgent": flow["urgent"],
            "num_outbound_cmds": np.zeros(len(records), np.int64),
            **{name: flow[name] for name in CONTENT_NAMES},
        }
        for name, cap in _KDD_CAPS.items():
            numbers[name] = np.minimum(numbers[name], cap)
        for name in ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login"):
            numbers[name] = (numbers[name] > 0).astype(np.int64)
        numbers |= self._traffic.add(
            records["time"].copy(),
            host=destination,
            service=service,
            port=source_port,
            error=error_class(names[flags]),
        )
        kdd = kdd_services()
        return numbers, [
            (connection_protocol_ids(flow["proto"]), list(PROTOCOLS)),
            (service, list(kdd.names)),
            (flags + 1, [MISSING, *tcp.FLAG_NAMES]),
        ]


class _FlowConnections(Connections):
    name = "flow"

    def __init__(self, context: bool) -> None:
        super().__init__(context)
        self._relations = Relations()

    @property
    def windows(self) -> Relations:
        return self._relations

    @property
    def counters(self) -> Counter[str]:
        return Counter(traffic_window_full=self._relations.dropped)

    def columns(self, records: NDArray[Any]) -> tuple[Columns, list[tuple[NDArray[Any], list[str]]]]:
        flow, orig, resp = records["flow"], records["orig"], records["resp"]
        gaps = np.maximum(orig["packets"] + resp["packets"] - 1, 1)
        states = conn_states(records)
        numbers: Columns = {
            **conn_numbers(flow["first"], flow["last"], _side(orig), _side(resp)),
            "orig_size_std": _size_spread(orig),
            "resp_size_std": _size_spread(resp),
            "gap_mean_ms": np.maximum(flow["gap_sum"] / gaps, 0) * 1e3,
            "gap_std_ms": _spread(flow["gap_sum"], flow["gap_squares"], gaps) * 1e3,
            "gap_max_ms": flow["gap_max"] * 1e3,
            **{name: orig[name].astype(np.int64) + resp[name] for name in ("syn", "fin", "rst", "psh", "urg")},
            "retransmitted": orig["retransmitted"].astype(np.int64) + resp["retransmitted"],
            "out_of_order": orig["out_of_order"].astype(np.int64) + resp["out_of_order"],
            "missed_bytes": orig["missed_bytes"] + resp["missed_bytes"],
            "orig_window": orig["window"],
            "resp_window": resp["window"],
            "fragments": flow["fragments"],
            "wrong_fragments": flow["wrong_fragments"],
            "dns_entropy": flow["dns_entropy"].astype(np.float64),
            **{name: flow[name] for name in ("dns_queries", "dns_length", "dns_failures", "hot")},
            "tls_ciphers": flow["tls_ciphers"],
            "tls_extensions": flow["tls_extensions"],
            "failed_logins": flow["num_failed_logins"],
            "logged_in": (flow["logged_in"] > 0).astype(np.int64),
            **_relation_numbers(
                self._relations, records, records["time"].copy(), connection_endpoints(records)[3], states
            ),
        }
        return rounded(numbers), [
            (connection_protocol_ids(flow["proto"]), list(PROTOCOLS)),
            (flow_connection_services(flow, connection_endpoints(records)[3]), list(flow_services().names)),
            (states + 1, [MISSING, *tcp.FLAG_NAMES]),
        ]


class _ConnConnections(Connections):
    """What logs know too, and counted as they can: at the time of the last packet, which does not go back."""

    name = "conn"

    def __init__(self, context: bool) -> None:
        super().__init__(context)
        self._relations = Relations()
        self._clock = RunningTime()

    @property
    def windows(self) -> Relations:
        return self._relations

    def state(self) -> Arrays:
        return super().state() | {"clock": np.array([self._clock.latest], np.int64)}

    def restore(self, arrays: Arrays) -> None:
        clock = require_array(arrays, "clock", np.int64, (1,), "connections")
        super().restore(arrays)
        self._clock.latest = int(clock[0])

    @property
    def counters(self) -> Counter[str]:
        return Counter(traffic_window_full=self._relations.dropped)

    def columns(self, records: NDArray[Any]) -> tuple[Columns, list[tuple[NDArray[Any], list[str]]]]:
        flow, orig, resp = records["flow"], records["orig"], records["resp"]
        states, port = conn_states(records), np.where(_has_ports(flow), connection_endpoints(records)[3], 0)
        time = self._clock.advance(flow["last"].copy())
        numbers: Columns = {
            **conn_numbers(flow["first"], flow["last"], _side(orig), _side(resp)),
            "missed_bytes": orig["missed_bytes"] + resp["missed_bytes"],
            **_relation_numbers(self._relations, records, time, port, states),
        }
        return rounded(numbers), [
            (connection_protocol_ids(flow["proto"]), list(PROTOCOLS)),
            (flow_connection_services(flow, connection_endpoints(records)[3]), list(flow_services().names)),
            (states + 1, [MISSING, *tcp.FLAG_NAMES]),
        ]


def _relation_numbers(
    relations: Relations, records: NDArray[Any], time: NDArray[np.int64], port: NDArray[Any], states: NDArray[Any]
) -> Columns:
    source, _, destination, _ = connection_endpoints(records)
    first, failed = records["flow"]["first"].copy(), failed_states(states)
    return relations.add(time, first, source=source, destination=destination, port=port, failed=failed)


def conn_states(records: NDArray[Any]) -> NDArray[np.uint8]:
    """Zeek's conn_state as a number of FLAG_NAMES; without TCP: answered SF, unanswered S0, answer alone SHR."""
    flow = records["flow"]
    states = np.empty(len(records), np.uint8)
    payload = records["orig"]["payload_bytes"] + records["resp"]["payload_bytes"]
    tcp.tcp_flags(flow["orig_state"].copy(), flow["resp_state"].copy(), payload, states)
    asked, answered = flow["orig_state"] == ESTABLISHED, flow["resp_state"] == ESTABLISHED
    other = np.where(asked, np.where(answered, tcp.SF, tcp.S0), np.where(answered, tcp.SHR, tcp.OTH))
    return np.where(flow["proto"] == decode.TCP, states, other).astype(np.uint8)


def connection_endpoints(
    records: NDArray[Any],
) -> tuple[list[NDArray[np.uint64]], NDArray[np.uint16], list[NDArray[np.uint64]], NDArray[np.uint16]]:
    """Return address words and port of the originator, and of the responder."""
    flow = records["flow"]
    swapped = flow["swapped"].astype(bool)
    a, b = (flow["a_hi"], flow["a_lo"], flow["a_port"]), (flow["b_hi"], flow["b_lo"], flow["b_port"])
    orig = [np.where(swapped, y, x) for x, y in zip(a, b, strict=True)]
    resp = [np.where(swapped, x, y) for x, y in zip(a, b, strict=True)]
    return orig[:2], orig[2], resp[:2], resp[2]


def _side(side: NDArray[Any]) -> ConnectionSide:
    return ConnectionSide(side["packets"], side["payload_bytes"], side["ip_bytes"])


def _size_spread(side: NDArray[Any]) -> NDArray[np.float64]:
    return _spread(side["ip_bytes"].astype(np.float64), side["size_squares"], np.maximum(side["packets"], 1))


def _has_ports(flow: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(flow["proto"], (decode.TCP, decode.UDP, decode.SCTP))


def _spread(total: NDArray[Any], squares: NDArray[Any], n: NDArray[Any]) -> NDArray[np.float64]:
    """Standard deviation of n values from their sum and that of their squares."""
    mean = total / n
    return np.asarray(np.sqrt(np.maximum(squares / n - mean * mean, 0.0)))


@cache
def _protocol_table() -> NDArray[np.int32]:
    table = np.full(256, PROTOCOLS.index("ip"), np.int32)
    for number, name in PROTOCOL_NUMBERS.items():
        table[number] = PROTOCOLS.index(name)
    return table


def connection_protocol_ids(proto: NDArray[np.uint8]) -> NDArray[np.int32]:
    return _protocol_table()[proto]


def kdd_connection_services(flow: NDArray[Any], port: NDArray[np.uint16]) -> NDArray[np.int64]:
    kdd = kdd_services()
    service = np.full(len(flow), kdd.number("ip_other"), np.int64)
    proto = flow["proto"]
    service = np.where(proto == decode.TCP, kdd.tcp[port], np.where(proto == decode.UDP, kdd.udp[port], service))
    by_type = np.full(256, kdd.number("urp_i"), np.int64)
    for kind, name in icmp_services().items():
        by_type[kind] = kdd.number(name)
    is_icmp = np.isin(proto, (decode.ICMP, decode.ICMPV6))
    service = np.where(is_icmp, by_type[flow["icmp_type"]], service)
    unreachable_host = (proto == decode.ICMP) & (flow["icmp_type"] == 3) & (flow["icmp_code"] == 1)
    service = np.where(unreachable_host, kdd.number("urh_i"), service)
    by_operation = np.full(256, kdd.number("arp_other"), np.int64)
    by_operation[[1, 2]] = kdd.number("arp_request"), kdd.number("arp_reply")
    return np.where(proto == decode.ARP, by_operation[flow["icmp_type"]], service)


def flow_connection_services(flow: NDArray[Any], port: NDArray[np.uint16]) -> NDArray[np.int64]:
    services, proto = flow_services(), flow["proto"]
    service = np.full(len(flow), services.number("ip"), np.int64)
    service = np.where(np.isin(proto, (decode.ICMP, decode.ICMPV6)), services.number("icmp"), service)
    service = np.where(proto == decode.ARP, services.number("arp"), service)
    return np.where(proto == decode.TCP, services.tcp[port], np.where(proto == decode.UDP, services.udp[port], service))


def connection_addresses(words: list[NDArray[np.uint64]], family: NDArray[np.uint8]) -> NDArray[np.object_]:
    """Return addresses as people write them.

    >>> connection_addresses([np.zeros(1, np.uint64), np.array([0x0A000001], np.uint64)], np.array([4], np.uint8))
    array(['10.0.0.1'], dtype=object)
    """
    out = np.empty(len(family), object)
    is_v6 = family == decode.FAMILY_IPV6
    keys = np.stack([words[0], words[1]], axis=1)
    for i, (hi, lo) in enumerate(keys.tolist()):
        out[i] = _v6(hi, lo) if is_v6[i] else f"{lo >> 24}.{lo >> 16 & 255}.{lo >> 8 & 255}.{lo & 255}"
    return out


def _v6(hi: int, lo: int) -> str:
    return str(ipaddress.IPv6Address(hi << 64 | lo))


def context_columns(records: NDArray[Any]) -> dict[str, NDArray[np.object_]]:
    """What is carried with a connection and shown, never scored."""
    flow = records["flow"]
    source, source_port, destination, destination_port = connection_endpoints(records)
    has_ports = _has_ports(flow)
    columns: dict[str, NDArray[Any]] = {
        "uid": np.array([f"{i}.{p}" if p else str(i) for i, p in zip(flow["id"], flow["part"], strict=True)], object),
        "start": iso_times(flow["first"]),
        "source": connection_addresses(source, flow["family"]),
        "source_port": np.where(has_ports, source_port, 0),
        "destination": connection_addresses(destination, flow["family"]),
        "destination_port": np.where(has_ports, destination_port, 0),
        "vlan": flow["vlan"] & 0x0FFFFFFF,
        "end": np.array(END_NAMES)[flow["end"]],
        "part": flow["part"],
        "name": np.array([name.decode("ascii", "replace") for name in records["name"].tolist()], object),
        "tls": _tls_codes(flow, records["name"]),
    }
    return {name: column.astype(str).astype(object) for name, column in columns.items()}


def iso_times(nanoseconds: NDArray[np.int64]) -> NDArray[Any]:
    """UTC, to the nanosecond.

    >>> iso_times(np.array([1_500_000_000])).tolist()
    ['1970-01-01T00:00:01.500000000Z']
    """
    return np.char.add(np.datetime_as_string(nanoseconds.astype("datetime64[ns]"), unit="ns"), "Z")


def _tls_codes(flow: NDArray[Any], name: NDArray[np.bytes_]) -> NDArray[np.object_]:
    """A code of what a client offers, in the shape of JA4: version, name, ciphers, extensions, ALPN, and a digest."""
    codes = np.full(len(flow), "", object)
    for i in np.flatnonzero(flow["tls_version"]):
        f = flow[i]
        version = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3"}.get(
            int(f["tls_version"]), "00"
        )
        alpn = bytes([int(f["tls_alpn"]) >> 8, int(f["tls_alpn"]) & 255]).decode("ascii", "replace")
        alpn = alpn if alpn.isalnum() else "00"
        counts = f"{min(int(f['tls_ciphers']), 99):02d}{min(int(f['tls_extensions']), 99):02d}"
        digest = f"{int(f['tls_hash']) & (1 << 48) - 1:012x}"
        codes[i] = f"t{version}{'d' if name[i] else 'i'}{counts}{alpn}_{digest}"
    return codes
