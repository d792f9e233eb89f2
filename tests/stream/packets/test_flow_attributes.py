"""Attributes of connections against what the packets say, counted in plain Python; names of services and states."""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

import numpy as np
import pytest
from exchanges import (
    CLIENT,
    NO_TIMEOUTS,
    SECOND,
    SERVER,
    Packet,
    arp,
    block,
    handshake,
    icmp,
    ipv4,
    records_of,
    tcp,
    udp,
)

from netclust.errors import InputError, ModelError
from netclust.kernels.packets import decode
from netclust.kernels.packets import tcp as tcp_states
from netclust.records.table import Table
from netclust.stream.packets.conn_attributes import failed_states
from netclust.stream.packets.connections import (
    conn_states,
    connection_addresses,
    connection_endpoints,
    connection_maker,
    context_columns,
    flow_connection_services,
)
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.services import app_ports, flow_services, icmp_services, kdd_services


def rows(table: Table) -> list[dict[str, Any]]:
    names = [a.name for a in table.schema.numeric]
    found = []
    for i in range(len(table)):
        symbols = {a.name: table.symbols[s][table.sym[i, s]] for s, a in enumerate(table.schema.coded)}
        found.append(dict(zip(names, table.num[i].tolist(), strict=True)) | symbols)
    return found


def row(records: Any, schema: str = "flow") -> dict[str, Any]:
    return rows(connection_maker(schema).table(records))[0]


def dialogue() -> list[Packet]:
    """A request in two parts and an answer, at uneven times."""
    return [
        *handshake(),
        tcp(0.5, "PA", seq=101, ack=901, data=b"a" * 400),
        tcp(0.75, "PA", seq=501, ack=901, data=b"b" * 100),
        tcp(1.5, "A", back=True, seq=901, ack=601),
        tcp(2.0, "PA", back=True, seq=901, ack=601, data=b"c" * 1000),
        tcp(2.25, "FA", seq=601, ack=1901),
        tcp(2.5, "FA", back=True, seq=1901, ack=602),
        tcp(2.75, "A", seq=602, ack=1902),
    ]


@pytest.mark.parametrize("schema", ["flow", "conn"])
def test_sizes_rates_and_shares_are_those_of_the_packets(schema: str) -> None:
    packets = dialogue()
    found = row(records_of(packets, NO_TIMEOUTS), schema)
    sizes = [len(frame) - 14 for _, frame in packets]  # from the header of IP on
    back = [frame[26:30] == ipaddress.IPv4Address(SERVER).packed for _, frame in packets]
    orig = np.array([size for size, answers in zip(sizes, back, strict=True) if not answers])
    resp = np.array([size for size, answers in zip(sizes, back, strict=True) if answers])
    assert (found["orig_packets"], found["resp_packets"]) == (len(orig), len(resp)) == (6, 4)
    assert (found["orig_bytes"], found["resp_bytes"]) == (500, 1000)
    assert found["orig_share"] == pytest.approx(1 / 3, abs=1e-4)
    assert found["duration_ms"] == pytest.approx(2750)
    assert found["orig_size_mean"] == pytest.approx(orig.mean(), abs=1e-4)
    assert found["resp_size_mean"] == pytest.approx(resp.mean(), abs=1e-4)
    assert found["packet_rate"] == pytest.approx(10 / 2.75, abs=1e-4)
    assert found["byte_rate"] == pytest.approx(sum(sizes) / 2.75, abs=1e-4)
    if schema == "flow":
        assert found["orig_size_std"] == pytest.approx(orig.std(), abs=1e-4)
        assert found["resp_size_std"] == pytest.approx(resp.std(), abs=1e-4)


def test_gaps_and_flags_are_those_of_the_packets() -> None:
    packets = dialogue()
    found = row(records_of(packets, NO_TIMEOUTS))
    gaps = np.diff([at for at, _ in packets]) * 1000
    assert found["gap_mean_ms"] == pytest.approx(gaps.mean(), abs=1e-3)
    assert found["gap_std_ms"] == pytest.approx(gaps.std(), abs=1e-3)
    assert found["gap_max_ms"] == pytest.approx(gaps.max(), abs=1e-3)
    assert {name: found[name] for name in ("syn", "fin", "rst", "psh", "urg")} == {
        "syn": 2, "fin": 2, "rst": 0, "psh": 3, "urg": 0
    }  # fmt: skip
    assert (found["orig_window"], found["resp_window"]) == (1000, 1000)
    assert (found["retransmitted"], found["out_of_order"], found["missed_bytes"]) == (0, 0, 0)
    assert found["state"] == "SF"


def test_what_was_sent_again_late_or_never_is_counted_on_either_side() -> None:
    packets = [
        *handshake(),
        tcp(0.5, "A", seq=101, data=b"a" * 10),
        tcp(0.6, "A", seq=101, data=b"a" * 10),
        tcp(0.7, "A", back=True, seq=901, data=b"b" * 10),
        tcp(0.8, "A", back=True, seq=901, data=b"b" * 10),
        tcp(0.9, "A", back=True, seq=961, ack=111, data=b"c" * 10),  # 50 bytes were not seen
        tcp(1.0, "A", seq=111, ack=971, data=b"d"),
    ]
    found = row(records_of(packets, NO_TIMEOUTS))
    assert found["retransmitted"] == 2
    assert found["missed_bytes"] == 50
    assert found["duration_ms"] == pytest.approx(1000)


def test_one_packet_has_no_spread_no_gap_and_is_a_rate_over_a_second() -> None:
    found = row(records_of([udp(0, data=b"")]))
    assert (found["gap_mean_ms"], found["gap_std_ms"], found["gap_max_ms"], found["orig_size_std"]) == (0, 0, 0, 0)
    assert (found["packet_rate"], found["byte_rate"], found["duration_ms"]) == (1, 28, 0)
    assert (found["orig_share"], found["resp_size_mean"]) == (0.5, 0)
    assert found["orig_size_mean"] == 28
    answered = row(records_of([udp(0, data=b"12"), udp(1, back=True, data=b"3456")]))
    assert (answered["orig_size_mean"], answered["resp_size_mean"]) == (30, 32)


def test_a_packet_to_its_own_sender_is_land_where_there_are_ports_alone() -> None:
    itself = {"src": CLIENT, "dst": CLIENT, "sport": 139, "dport": 139}
    assert row(records_of([tcp(0, "S", **itself)]), "kdd")["land"] == "1"
    assert row(records_of([udp(0, **itself)]), "kdd")["land"] == "1"
    assert row(records_of([udp(0, src=CLIENT, dst=CLIENT, sport=139, dport=140)]), "kdd")["land"] == "0"
    ping = ipv4(CLIENT, CLIENT, 1, struct.pack("!BBHHH", 8, 0, 0, 7, 1))
    assert row(records_of([(0.0, ping)]), "kdd")["land"] == "0"
    assert row(records_of([arp(0, 1, CLIENT, CLIENT)]), "kdd")["land"] == "0"


def test_a_side_without_packets_has_no_size() -> None:
    records = records_of([udp(0, data=b"x" * 72)])
    for side in ("orig", "resp"):
        records[side]["packets"], records[side]["ip_bytes"] = 0, 0
    found = row(records)
    assert (found["orig_size_mean"], found["resp_size_mean"], found["packet_rate"]) == (0, 0, 0)


def test_a_rate_is_over_the_time_that_passed_and_at_least_a_second() -> None:
    for seconds, rate in ((0.5, 2.0), (1.0, 2.0), (1.6, 1.25), (4.0, 0.5)):
        assert row(records_of([udp(0), udp(seconds)]))["packet_rate"] == rate


# Names


@pytest.mark.parametrize(
    ("packet", "kdd", "flow"),
    [
        (tcp(0, "S", dport=80), ("tcp", "http"), ("tcp", "http")),
        (tcp(0, "S", dport=1023), ("tcp", "private"), ("tcp", None)),
        (udp(0, dport=53), ("udp", "domain_u"), ("udp", "dns")),
        (udp(0, dport=5555), ("udp", None), ("udp", None)),
        (icmp(0, 8), ("icmp", "eco_i"), ("icmp", "icmp")),
        (icmp(0, 0), ("icmp", "ecr_i"), ("icmp", "icmp")),
        (icmp(0, 3, 1), ("icmp", "urh_i"), ("icmp", "icmp")),
        (icmp(0, 3, 3), ("icmp", "urp_i"), ("icmp", "icmp")),
        (icmp(0, 200), ("icmp", "urp_i"), ("icmp", "icmp")),
        (arp(0, 1, CLIENT, SERVER), ("arp", "arp_request"), ("arp", "arp")),
        (arp(0, 2, CLIENT, SERVER), ("arp", "arp_reply"), ("arp", "arp")),
        (arp(0, 8, CLIENT, SERVER), ("arp", "arp_other"), ("arp", "arp")),
        ((0.0, ipv4(CLIENT, SERVER, 2, b"12345678")), ("igmp", "ip_other"), ("igmp", "ip")),
        ((0.0, ipv4(CLIENT, SERVER, 50, b"12345678")), ("esp", "ip_other"), ("esp", "ip")),
        ((0.0, ipv4(CLIENT, SERVER, 99, b"12345678")), ("ip", "ip_other"), ("ip", "ip")),
    ],
)  # fmt: skip
def test_protocols_and_services_are_named(packet: Packet, kdd: tuple[str, Any], flow: tuple[str, Any]) -> None:
    records = records_of([packet])
    for schema, (protocol, service) in (("kdd", kdd), ("flow", flow), ("conn", flow)):
        found = row(records, schema)
        name = "protocol_type" if schema == "kdd" else "protocol"
        assert found[name] == protocol
        assert service in (None, found["service"])
    assert (
        flow_services().names[int(flow_connection_services(records["flow"], connection_endpoints(records)[3])[0])] != ""
    )


def test_ports_that_dialogues_are_read_on_are_ports_of_services() -> None:
    ports = app_ports()
    assert ports.shape == (2, 65536)
    assert np.count_nonzero(ports[:, 0]) == 0
    assert np.all(ports[:, 1:1024] > 0)
    assert ports[0, 80] == ports[0, 8080] != ports[0, 443]
    assert len({int(ports[0, port]) for port in (21, 23, 25, 80, 110, 143)}) == 6
    assert ports[1, 53] != ports[1, 54]
    assert ports[0, 3306] > 0  # a service above 1023
    assert ports[0, 55555] == ports[1, 1024] == 0
    assert icmp_services()[8] == "eco_i"
    for services in (kdd_services(), flow_services()):
        assert services.names[0] == ""
        assert list(services.names[1:]) == sorted(services.names[1:])
        assert services.tcp[80] == services.number("http")
        assert services.tcp[1022] == services.udp[1022] != services.tcp[50_000] == services.udp[50_000]
        assert services.udp[1023] == services.udp[1022]
        assert services.udp[1024] == services.udp[50_000]


@pytest.mark.parametrize(
    ("packets", "state"),
    [
        ([udp(0), udp(1, back=True)], "SF"),
        ([udp(0)], "S0"),
        ([icmp(0, 8), icmp(1, 0, back=True)], "SF"),
        ([tcp(0, "S")], "S0"),
        ([tcp(0, "S"), tcp(1, "RA", back=True, ack=1)], "REJ"),
        (handshake(), "S1"),
    ],
)
def test_states_are_those_of_zeek(packets: list[Packet], state: str) -> None:
    assert row(records_of(packets, NO_TIMEOUTS))["state"] == state


def test_states_without_tcp_follow_from_who_has_sent() -> None:
    records = np.concatenate([records_of([udp(0)])] * 4)
    records["flow"]["orig_state"] = [0, 0, 4, 4]
    records["flow"]["resp_state"] = [0, 4, 0, 4]
    established = records_of([udp(0)])["flow"]["orig_state"][0]
    records["flow"]["orig_state"][2:] = established
    records["flow"]["resp_state"][[1, 3]] = established
    names = [tcp_states.FLAG_NAMES[state] for state in conn_states(records)]
    assert names == ["OTH", "SHR", "S0", "SF"]


def test_connections_that_came_to_nothing_are_those_without_an_answer_or_refused() -> None:
    failed = failed_states(np.arange(len(tcp_states.FLAG_NAMES)))
    named = {name for name, one in zip(tcp_states.FLAG_NAMES, failed.tolist(), strict=True) if one}
    assert named == {"S0", "REJ", "RSTOS0", "RSTRH", "SH", "SHR"}


# Addresses and context


def test_addresses_of_both_families_are_written_as_people_do() -> None:
    texts = ["0.0.0.0", "255.1.2.3", "::1", "2001:db8::ff00:42:8329", "fe80::1"]  # noqa: S104 (not bound to)
    numbers = [int(ipaddress.ip_address(text)) for text in texts]
    hi = np.array([number >> 64 for number in numbers], np.uint64)
    lo = np.array([number & (1 << 64) - 1 for number in numbers], np.uint64)
    family = np.array([decode.FAMILY_IPV4 if "." in text else decode.FAMILY_IPV6 for text in texts], np.uint8)
    assert connection_addresses([hi, lo], family).tolist() == texts


def udp6(at: float, src: str, dst: str, sport: int, dport: int) -> Packet:
    body = struct.pack("!HHHH", sport, dport, 12, 0) + b"data"
    header = struct.pack("!IHBB", 6 << 28, len(body), 17, 64)
    packed = ipaddress.IPv6Address(src).packed + ipaddress.IPv6Address(dst).packed
    return at, bytes(12) + b"\x86\xdd" + header + packed + body


def test_a_connection_of_ipv6_has_its_addresses_and_direction() -> None:
    one, other = "2001:db8::1", "2001:db8:ffff::2"
    for src, dst in ((one, other), (other, one)):
        context = context_columns(records_of([udp6(0, src, dst, 40000, 53), udp6(1, dst, src, 53, 40000)]))
        assert (context["source"][0], context["destination"][0]) == (src, dst)
        assert (context["source_port"][0], context["destination_port"][0]) == ("40000", "53")


def test_ports_are_shown_where_there_are_any_and_the_vlan_is_the_inner_one() -> None:
    context = context_columns(records_of([icmp(0, 8)]))
    assert (context["source_port"][0], context["destination_port"][0]) == ("0", "0")
    table = FlowTable(64)
    records = np.concatenate([table.feed(block([udp(0)], vlan=7)), table.finish()])
    assert context_columns(records)["vlan"][0] == "7"
    assert connection_maker("flow", context=False).table(records).context == {}


def test_what_a_client_offers_is_one_code() -> None:
    records = np.concatenate([records_of([tcp(0, "S")])] * 4)
    flow = records["flow"]
    flow["tls_version"] = [0x0304, 0x0303, 0x0999, 0]
    flow["tls_ciphers"] = [5, 120, 0, 7]
    flow["tls_extensions"] = [11, 100, 0, 7]
    flow["tls_alpn"] = [ord("h") << 8 | ord("2"), 0, ord("-") << 8 | ord("1"), 0]
    flow["tls_hash"] = [0xABC, 2**48 - 1, 2**48 + 1, 0]
    records["name"] = [b"example.org", b"", b"", b"x"]
    context = context_columns(records)
    assert context["tls"].tolist() == [
        "t13d0511h2_000000000abc", "t12i999900_ffffffffffff", "t00i000000_000000000001", ""
    ]  # fmt: skip
    assert context["name"].tolist() == ["example.org", "", "", "x"]


@pytest.mark.parametrize(
    ("version", "code"), [(0x0304, "13"), (0x0303, "12"), (0x0302, "11"), (0x0301, "10"), (0x0300, "s3"), (1, "00")]
)
def test_versions_of_tls_have_codes(version: int, code: str) -> None:
    records = records_of([tcp(0, "S")])
    records["flow"]["tls_version"] = version
    assert context_columns(records)["tls"][0].startswith(f"t{code}i0000")


def test_a_connection_that_was_reported_in_parts_has_them_in_its_id() -> None:
    records = np.concatenate([records_of([udp(0)])] * 2)
    records["flow"]["id"], records["flow"]["part"] = [5, 5], [0, 3]
    context = context_columns(records)
    assert (context["uid"].tolist(), context["part"].tolist()) == (["5", "5.3"], ["0", "3"])


# State


@pytest.mark.parametrize("schema", ["kdd", "flow", "conn"])
def test_counting_continues_from_a_state(schema: str) -> None:
    records = records_of([udp(k * 0.3, sport=1 + k % 7, dport=50 + k % 3) for k in range(60)] + [udp(500)])
    whole = rows(connection_maker(schema).table(records))
    first, second = connection_maker(schema), connection_maker(schema)
    first.table(records[:20])
    state = {name: array.copy() for name, array in first.state().items()}
    first.table(records[20:])
    second.restore(state)
    assert second.seen == 20
    continued = second.table(records[20:])
    assert rows(continued) == whole[20:]
    assert continued.seq.tolist() == list(range(20, len(records)))
    assert set(second.counters) == {"traffic_window_full"}
    with pytest.raises(ModelError, match="seen is -1"):
        connection_maker(schema).restore(state | {"seen": np.array([-1], np.int64)})
    third = connection_maker(schema)
    third.restore(connection_maker(schema).state())
    assert third.seen == 0


@pytest.mark.parametrize("name", ["attempt", "idle", "active", "close", "step"])
@pytest.mark.parametrize("seconds", [-0.1, 1e9 + 0.5])
def test_a_timeout_that_cannot_be_is_refused_by_its_name(name: str, seconds: float) -> None:
    with pytest.raises(InputError, match=f"the {name} timeout is {seconds} seconds"):
        FlowTable(16, FlowTimeouts(**{name: seconds}))
    FlowTable(16, FlowTimeouts(**{name: 1e9}))


@pytest.mark.parametrize("size", [15, 1 << 40])
def test_a_table_has_a_smallest_and_a_largest_size(size: int) -> None:
    with pytest.raises(InputError, match=f"max_flows is {size}: it lies between 16 and"):
        FlowTable(size)


def test_time_passes_with_packets_and_with_a_wall_clock_near_them_alone() -> None:
    table = FlowTable(16)
    assert (table.now, table.open_flows) == (-1, 0)
    table.feed(block([udp(5.0)]))
    began = table.now
    assert table.open_flows == 1
    table.advance(began - SECOND)
    assert table.now == began
    assert len(table.advance(began + 30 * SECOND)) == 0
    assert table.now == began + 30 * SECOND
    far = began + 1000 * 86_400 * SECOND  # an old capture is being followed
    assert len(table.advance(far)) == 0
    assert table.now == began + 30 * SECOND
    assert len(table.finish()) == 1
    assert (table.open_flows, table.counters["flows"]) == (0, 1)


def test_numbers_of_kdd_go_no_further_than_its_data() -> None:
    records = records_of([udp(0)])
    most = {
        "wrong_fragment": ("wrong_fragments", 3), "urgent": ("urgent", 3), "su_attempted": ("su_attempted", 2),
        "root_shell": ("root_shell", 1), "logged_in": ("logged_in", 1),
        "num_failed_logins": ("num_failed_logins", 5),
    }  # fmt: skip
    for column, _ in most.values():
        records["flow"][column] = 9
    found = row(records, "kdd")
    for name, (_, cap) in most.items():
        assert found[name] in (cap, str(cap)), name
    for column, cap in most.values():
        records["flow"][column] = cap - 1
    found = row(records, "kdd")
    for name, (_, cap) in most.items():
        assert found[name] in (cap - 1, str(cap - 1)), name
