"""The flow table: what belongs together, when it ends, and that its memory does not grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exchanges import (
    CLIENT,
    SECOND,
    SERVER,
    T0,
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
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.kernels.packets.flow_layout import END_NAMES
from netclust.stream.packets.connections import conn_states, connection_maker, context_columns
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts


def ends(records: Any) -> list[str]:
    return [END_NAMES[e] for e in records["flow"]["end"]]


def after(records: Any) -> list[float]:
    """When the records were over, in seconds from the beginning."""
    return [round((t - T0) / SECOND, 6) for t in records["time"].tolist()]


def packets_of(records: Any) -> list[tuple[int, int]]:
    return list(zip(records["orig"]["packets"].tolist(), records["resp"]["packets"].tolist(), strict=True))


# What belongs together.


def test_both_directions_are_one_connection() -> None:
    for conversation in (
        [udp(0), udp(1, back=True), udp(2)],
        [icmp(0, 8), icmp(1, 0, back=True), icmp(2, 8)],
        [tcp(0, "S"), tcp(1, "SA", back=True), tcp(2, "A")],
    ):
        assert packets_of(records_of(conversation)) == [(2, 1)]


def test_an_arp_request_and_its_answer_are_one_record() -> None:
    records = records_of([arp(0, 1, "10.0.0.1", "10.0.0.2"), arp(0.1, 2, "10.0.0.2", "10.0.0.1")])
    table = connection_maker("kdd").table(records)
    assert packets_of(records) == [(1, 1)]
    assert [table.symbols[s][table.sym[0, s]] for s in (0, 1)] == ["arp", "arp_request"]


def test_connections_of_different_vlans_are_kept_apart() -> None:
    table = FlowTable(64)
    parts = [table.feed(block([udp(0)], vlan=vlan)) for vlan in (-1, 5, 6, 5)]
    records = np.concatenate([*parts, table.finish()])
    assert sorted(context_columns(records)["vlan"].tolist()) == ["0", "5", "6"]


def test_pings_of_two_programs_are_two_connections() -> None:
    assert len(records_of([icmp(0, 8, ident=1), icmp(0, 8, ident=2)])) == 2


def test_an_error_message_does_not_join_a_series_of_pings() -> None:
    records = records_of([icmp(0, 8, ident=0x0301), icmp(1, 3, 1, back=True)])
    table = connection_maker("kdd").table(records)
    assert sorted(table.symbols[1][s] for s in table.sym[:, 1]) == ["eco_i", "urh_i"]


def test_an_answer_without_a_question_is_no_call() -> None:
    record = records_of([udp(0, back=True, dport=53, data=b"answer")])
    assert packets_of(record) == [(0, 1)]
    assert context_columns(record)["destination_port"].tolist() == ["53"]


def test_fragments_without_ports_belong_to_their_connection() -> None:
    body = udp(0, data=b"y" * 92)[1][34:]
    first = ipv4(CLIENT, SERVER, 17, body[:64], ident=5, more=True)
    second = ipv4(CLIENT, SERVER, 17, body[64:], ident=5, fragment=64)
    records = records_of([(0, first), (0.1, second)])
    assert packets_of(records) == [(2, 0)]
    assert records["orig"]["payload_bytes"].tolist() == [92]
    assert (records["flow"]["fragments"][0], records["flow"]["wrong_fragments"][0]) == (2, 0)


@pytest.mark.parametrize(
    ("fragment", "size"),
    [pytest.param(24, 40, id="overlap (teardrop)"), pytest.param(65_528, 40, id="beyond the end (ping of death)")],
)
def test_a_wrong_fragment_is_counted(fragment: int, size: int) -> None:
    first = ipv4(CLIENT, SERVER, 17, udp(0, data=b"y" * 40)[1][34:], ident=5, more=True)
    second = ipv4(CLIENT, SERVER, 17, b"z" * size, ident=5, fragment=fragment)
    records = records_of([(0, first), (0.1, second)])
    assert records["flow"]["wrong_fragments"].tolist() == [1]
    assert connection_maker("kdd").table(records).num[0, 3] == 1


def test_a_fragment_whose_first_part_is_missing_is_counted() -> None:
    table = FlowTable(64)
    table.feed(block([(0, ipv4(CLIENT, SERVER, 17, b"z" * 40, ident=5, fragment=64))]))
    assert table.counters["orphan_fragments"] == 1


# When it ends.


def test_an_unanswered_syn_ends_by_its_own_timeout() -> None:
    records = records_of([tcp(0, "S"), tcp(1, "S"), udp(20)])
    assert (ends(records)[0], after(records)[0], packets_of(records)[0]) == ("attempt", 5.0, (2, 0))


def test_silence_ends_a_connection() -> None:
    records = records_of([udp(0), udp(50), udp(120), udp(181)])
    assert packets_of(records) == [(2, 0), (1, 0), (1, 0)]
    assert (ends(records), after(records)) == (["idle"] * 3, [110.0, 180.0, 241.0])


def test_a_closed_connection_ends_before_the_idle_timeout() -> None:
    packets = [*handshake(), tcp(1, "FA", seq=101), tcp(1.1, "FA", back=True, seq=901), tcp(1.2, "A", seq=102)]
    records = records_of([*packets, udp(9)])
    assert (ends(records)[0], after(records)[0], packets_of(records)[0]) == ("closed", 2.1, (4, 2))


def test_a_connection_that_continues_gets_interim_records() -> None:
    packets = [udp(t, data=b"1234") for t in range(0, 700, 20)]
    records = records_of(packets)
    assert ends(records) == ["interim", "interim", "idle"]
    assert records["flow"]["part"].tolist() == [0, 1, 2]
    assert records["orig"]["packets"].sum() == len(packets)
    assert records["orig"]["payload_bytes"].sum() == 4 * len(packets)
    assert context_columns(records)["uid"].tolist() == ["0", "0.1", "0.2"]
    assert len(records_of(packets, FlowTimeouts(active=0))) == 1


def test_an_interim_record_keeps_the_sequence_numbers() -> None:
    packets = handshake()
    packets += [tcp(t, "A", seq=101 + 10 * k, data=b"0123456789") for k, t in enumerate(range(40, 640, 40))]
    records = records_of(packets)
    assert records["orig"]["payload_bytes"].sum() == 150
    assert records["orig"]["out_of_order"].sum() == records["orig"]["retransmitted"].sum() == 0


def test_ports_that_are_used_again_start_a_new_connection() -> None:
    first = [*handshake(), tcp(0.1, "R", seq=101)]
    records = records_of([*first, *handshake(0.5, isn=7000, peer=8000)])
    assert packets_of(records) == [(3, 1), (2, 1)]


def test_records_come_in_the_order_in_which_they_end() -> None:
    packets = [udp(0), tcp(1, "S"), *handshake(2, sport=41000), tcp(3, "R", seq=101, sport=41000), udp(100, sport=1)]
    records = records_of(packets)
    assert after(records) == sorted(after(records))
    assert ends(records) == ["closed", "attempt", "idle", "idle"]


def test_a_silent_link_finishes_its_flows() -> None:
    table = FlowTable(64)
    assert len(table.feed(block([udp(0)]))) == 0
    assert len(table.feed(block([], now=59))) == 0
    assert after(table.feed(block([], now=61))) == [60.0]


def test_an_old_capture_that_is_followed_is_not_cut_by_the_wall_clock() -> None:
    table = FlowTable(64)
    table.feed(block([udp(0)]))
    assert len(table.feed(block([], now=10**6))) == 0


def test_packets_a_little_out_of_order_end_nothing() -> None:
    table = FlowTable(64)
    assert len(table.feed(block([udp(10), udp(9, sport=1), udp(11)]))) == 0
    assert table.counters["packets_out_of_order"] == 1
    assert table.now == T0 + 11 * SECOND


def test_a_clock_that_is_set_back_does_not_stop_timeouts() -> None:
    table = FlowTable(64)
    ended = table.feed(block([udp(10**6), udp(0, sport=1), udp(100, sport=2)]))
    assert ends(ended) == ["clock", "idle"]
    assert table.counters["clock_set_back"] == 1


def test_a_clock_that_leaps_years_is_counted() -> None:
    table = FlowTable(64)
    ended = table.feed(block([udp(0), udp(10**8, sport=1)]))
    assert (len(ended), table.counters["clock_leaps"]) == (1, 1)


# Its memory.


def test_a_spoofed_flood_does_not_grow_the_table() -> None:
    table = FlowTable(256)
    sent = [tcp(k * 1e-4, "S", src=f"10.{k >> 16}.{k >> 8 & 255}.{k & 255}") for k in range(20_000)]
    bytes_before = sum(array.nbytes for array in table._table)
    ended = table.feed(block(sent))
    assert table.open_flows <= 256
    assert sum(array.nbytes for array in table._table) == bytes_before
    assert table.counters["flows_evicted"] == 20_000 - 256
    assert len(np.concatenate([ended, table.finish()])) == 20_000  # nothing is lost


def test_an_established_connection_survives_a_flood() -> None:
    table = FlowTable(32)
    flood = [tcp(1 + k * 1e-3, "S", src=f"10.1.{k >> 8}.{k & 255}") for k in range(500)]
    ended = table.feed(block([*handshake(), *flood]))
    assert len(conn_states(ended)) == 500 - 31
    assert ended["flow"]["resp_state"].max() == 0


def test_more_records_than_the_output_holds_are_kept() -> None:
    sent = [udp(k * 1e-6, sport=k % 60_000 + 1, dst=f"10.0.{k // 60_000}.1") for k in range(30_000)]
    assert len(records_of([*sent, udp(1000)], max_flows=1 << 15)) == 30_001


@pytest.mark.parametrize("flows", [0, 15, 1 << 25])
def test_a_table_of_an_impossible_size_is_refused(flows: int) -> None:
    with pytest.raises(InputError, match="max_flows"):
        FlowTable(flows)


def test_a_timeout_below_zero_is_refused() -> None:
    with pytest.raises(InputError, match="the idle timeout is -1"):
        FlowTable(64, FlowTimeouts(idle=-1))


conversations = st.lists(
    st.tuples(
        st.integers(0, 400).map(lambda tenth: tenth / 10),
        st.sampled_from(["S", "SA", "A", "PA", "FA", "R", "RA", "SF", "udp", "icmp"]),
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=40,
)


def _as_packets(script: list[tuple[float, str, bool, int, int]]) -> list[Packet]:
    packets = []
    for at, what, back, who, size in sorted(script, key=lambda step: step[0]):
        data = b"d" * size
        if what == "udp":
            packets.append(udp(at, back=back, sport=5000 + who, data=data))
        elif what == "icmp":
            packets.append(icmp(at, 0 if back else 8, back=back, ident=who, data=data))
        else:
            packets.append(tcp(at, what, back=back, sport=6000 + who, seq=size * 7, data=data))
    return packets


@given(conversations, st.integers(1, 7), st.sampled_from([16, 64]))
def test_records_do_not_depend_on_how_the_stream_is_cut(script: list[Any], size: int, room: int) -> None:
    packets = _as_packets(script)
    timeouts = FlowTimeouts(attempt=2, idle=5, active=15, close=1)
    whole = records_of(packets, timeouts, max_flows=room)
    table = FlowTable(room, timeouts)
    parts = [table.feed(block(packets[at : at + size])) for at in range(0, len(packets), size)]
    cut = np.concatenate([*parts, table.finish()])
    for records in (whole, cut):
        records["flow"]["hash"] = 0
    assert cut.tolist() == whole.tolist()  # their bytes may differ: between the fields lies nothing
    assert cut["orig"]["packets"].sum() + cut["resp"]["packets"].sum() == len(packets)
    assert table.open_flows == 0
    assert (np.diff(cut["time"]) >= 0).all()


def test_without_an_idle_timeout_connections_end_with_the_stream() -> None:
    records = records_of([udp(0), tcp(1, "S"), udp(2)], FlowTimeouts(idle=0))
    assert (ends(records), after(records)) == (["attempt", "stopped"], [6.0, 6.0])


def test_a_syn_is_counted_in_one_part_only() -> None:
    packets = [*handshake(), *(tcp(t, "A", seq=101) for t in range(40, 700, 40))]
    records = records_of(packets)
    assert len(records) == 3
    assert (records["orig"]["syn"].tolist(), records["resp"]["syn"].tolist()) == ([1, 0, 0], [1, 0, 0])
