"""The connections of an alert as filters that other tools take: a BPF expression, a display filter of Wireshark, awk.

A filter is the narrowest that surely covers them: the entity; the other ends and the ports, if all are known and few;
the protocol, if it is one. Answers belong to a connection, so packets are taken in both directions. What an alert says
of its records came from outside: only addresses and numbers get in, written anew; if one cannot be understood, all
of its kind are left out.

>>> from netclust.stream.alerts.alert_events import Count
>>> alert = Alert(
...     id="a-1", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source", protocol="tcp",
...     destinations=[Count("192.0.2.1", 3)], destination_count=1, ports=[Count("80", 2), Count("443", 1)],
...     port_count=2,
... )
>>> found = filters_of(alert)
>>> found.bpf
'host 10.0.0.7 and host 192.0.2.1 and tcp and (port 80 or port 443)'
>>> found.wireshark
'ip.addr == 10.0.0.7 && ip.addr == 192.0.2.1 && (tcp.port == 80 || tcp.port == 443)'
>>> print(found.zeek)
awk -F'\\t' '$3 == "10.0.0.7" && $5 == "192.0.2.1" && ($6 == "80" || $6 == "443") && $7 == "tcp"' conn.log
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from netclust.stream.alerts.alert_events import Alert, Count
from netclust.stream.alerts.alert_summary import RATE_LIMIT
from netclust.stream.console.packets import SLACK_NS, Address, packet_connections, plain_address, plain_port
from netclust.stream.packets.flow_table import FlowTimeouts

__all__ = ["FEW", "Filters", "filters_of"]

FEW = 8
"""Different addresses or ports that a filter names."""

_RECORD_NS = round((FlowTimeouts().active + FlowTimeouts().idle) * 1e9)  # from a record's first packet to its time
_PROTOCOLS = ("tcp", "udp", "icmp", "arp")
_BPF_ICMP = {4: ("icmp",), 6: ("icmp6", "ip6 proto 0")}
_TAGGED = ("{0}", "({0}) or (vlan and ({0}))", "({0}) or (vlan and (({0}) or (vlan and ({0}))))")

Value = TypeVar("Value")


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Texts, empty if there is nothing to filter by. `zeek` is for a conn.log whose columns are Zeek's own."""

    bpf: str = ""
    wireshark: str = ""
    zeek: str = ""


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is sure of every connection. An empty list: nothing."""

    sources: list[Address] = []
    destinations: list[Address] = []
    ports: list[int] = []  # of the destination; TCP's, UDP's or SCTP's
    protocol: str = ""  # of _PROTOCOLS
    arp: bool = False  # it may be ARP
    tags: int = 0  # of VLANs in front of IP
    begin: int = -1
    end: int = -1

    @property
    def groups(self) -> list[list[Address]]:
        """One address of each group is at an end of every connection."""
        return [group for group in (self.sources, self.destinations) if group]

    @property
    def versions(self) -> list[int]:
        """Of IP, that may be met."""
        return sorted({address.version for group in self.groups[:1] for address in group} or {4, 6})


def filters_of(alert: Alert) -> Filters:
    """The filters for an alert as it is now."""
    known = _known(alert)
    if not (known.groups or known.ports or known.protocol):
        return Filters()
    return Filters(bpf=_bpf(known), wireshark=_wireshark(known), zeek=_zeek(known))


def _known(alert: Alert) -> _Known:
    if alert.entity == RATE_LIMIT:  # it stands for other alerts, and counts one end of each
        return _Known()
    entity = [Count(alert.entity, alert.records)]
    by = alert.entity_kind
    sources = entity if by == "source" else _all(alert.sources, alert.source_count, alert.records)
    destinations = entity if by == "destination" else _all(alert.destinations, alert.destination_count, alert.records)
    ports = _each(plain_port, _all(alert.ports, alert.port_count, alert.records))
    said = alert.protocol.lower()
    protocol = said if said in _PROTOCOLS else ""
    # Without ports there is a 0 in a record.
    if protocol in ("icmp", "arp") or (not protocol and (0 in ports or said not in ("", "sctp"))):
        ports = []
    begin, end = _span(alert)
    return _Known(
        sources=_each(plain_address, sources),
        destinations=_each(plain_address, destinations),
        ports=ports,
        protocol=protocol,
        arp=said == "arp" or (not said and not ports),
        tags=max((_tags(example) for example in (*getattr(alert, "examples", []), alert.example)), default=0),
        begin=begin,
        end=end,
    )


def _all(counts: list[Count], different: int, records: int) -> list[Count]:
    """Those values, if they are few, and no record has another one or none."""
    listed = different == len(counts) <= FEW and sum(count.records for count in counts) >= records
    return counts if listed else []


def _each(read: Callable[[str], Value | None], counts: list[Count]) -> list[Value]:
    """What the values mean; nothing if one of them means nothing."""
    found = [read(count.value) for count in counts]
    understood = [value for value in found if value is not None]
    return list(dict.fromkeys(understood)) if len(understood) == len(found) else []


def _tags(example: Mapping[str, object]) -> int:
    """How many VLANs a record names: the outer one is in the low 12 bits."""
    value = example.get("vlan")
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else 0
    return 2 if number >> 12 else int(number > 0)


def _span(alert: Alert) -> tuple[int, int]:
    """From the first packet to the last, as far as is known: a record's time is when it was over."""
    if not 0 <= alert.first_seen <= alert.last_seen:
        return -1, -1
    starts = [connection.start for connection in packet_connections(alert)]
    return max(min([alert.first_seen - _RECORD_NS, *starts]) - SLACK_NS, 0), alert.last_seen + SLACK_NS


def _bpf(known: _Known) -> str:
    """For tcpdump and the like."""
    terms = [_either([f"host {address}" for address in group], " or ") for group in known.groups]
    ports = [f"port {port}" for port in known.ports]
    if known.protocol == "icmp":
        # BPF looks for a protocol directly behind IP's header; some ICMPv6 is behind options for every hop (0).
        terms.append(_either([text for v in known.versions for text in _BPF_ICMP[v]], " or "))
    elif known.protocol and len(ports) == 1:
        terms.append(f"{known.protocol} {ports[0]}")
    else:
        terms += [known.protocol] if known.protocol else []
        terms += [_either(ports, " or ")] if ports else []
    return _TAGGED[known.tags].format(" and ".join(terms))


def _wireshark(known: _Known) -> str:
    """A display filter, also for tshark -Y."""
    terms = [
        _either([f"{field} == {address}" for address in group for field in _fields(address, known)], " || ")
        for group in known.groups
    ]
    if known.ports:
        names = [known.protocol] if known.protocol else ["tcp", "udp", "sctp"]
        terms.append(_either([f"{name}.port == {port}" for port in known.ports for name in names], " || "))
    elif known.protocol == "icmp":
        terms.append(_either([{4: "icmp", 6: "icmpv6"}[version] for version in known.versions], " || "))
    elif known.protocol:
        terms.append(known.protocol)
    if known.end >= 0:
        terms += [f"frame.time_epoch >= {_seconds(known.begin)}", f"frame.time_epoch <= {_seconds(known.end)}"]
    return " && ".join(terms)


def _fields(address: Address, known: _Known) -> list[str]:
    """Where Wireshark has an address."""
    if address.version == 6:
        return ["ipv6.addr"]
    arp = ["arp.src.proto_ipv4", "arp.dst.proto_ipv4"] if known.arp else []
    return arp if known.protocol == "arp" else ["ip.addr", *arp]


def _zeek(known: _Known) -> str:
    """A line for the shell, which prints those lines of a conn.log; it has who began, so an end is in its column."""
    if known.protocol == "arp":  # not in there
        return ""
    protocols = [known.protocol] if known.protocol else []
    columns: dict[int, Sequence[object]] = {3: known.sources, 5: known.destinations, 6: known.ports, 7: protocols}
    terms = [
        _either([f'${column} == "{value}"' for value in values], " || ") for column, values in columns.items() if values
    ]
    if known.end >= 0:  # it begins before the end, and lasts ($9) beyond the beginning
        terms += [f"$1 <= {_seconds(known.end)}", f"$1 + $9 >= {_seconds(known.begin)}"]
    return f"awk -F'\\t' '{' && '.join(terms)}' conn.log"


def _either(terms: list[str], word: str) -> str:
    return terms[0] if len(terms) == 1 else f"({word.join(terms)})"


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 10**9}.{nanoseconds % 10**9 // 1000:06d}"
