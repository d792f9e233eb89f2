"""The thirteen states of a connection, by hand-made exchanges: each means what Zeek's conn_state means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from exchanges import NO_TIMEOUTS, Packet, handshake, records_of, tcp

from netclust.kernels.packets import flow_layout as layout
from netclust.kernels.packets.tcp import FLAG_NAMES, next_states, tcp_flag
from netclust.stream.packets.connections import conn_states, connection_maker

DATA = [tcp(0.1, "PA", seq=101, ack=901, data=b"hello"), tcp(0.2, "PA", back=True, seq=901, ack=106, data=b"world!")]
FIN = [tcp(0.3, "FA", seq=106, ack=907), tcp(0.4, "FA", back=True, seq=907, ack=107), tcp(0.5, "A", seq=107, ack=908)]

EXCHANGES: dict[str, list[tuple[str, list[Packet]]]] = {
    "SF": [
        ("closed by both", [*handshake(), *DATA, *FIN]),
        ("a reset behind both FINs", [*handshake(), *DATA, *FIN, tcp(0.6, "R", seq=107)]),
        ("the last acknowledgement is missing", [*handshake(), *DATA, *FIN[:2]]),
        ("a FIN, a RST, then the other FIN", [*handshake(), tcp(0.1, "FA", seq=101), tcp(0.2, "R", seq=102),
                                             tcp(0.3, "FA", back=True, seq=901)]),
    ],
    "S0": [("nobody answers", [tcp(0, "S", seq=100)]), ("nor later", [tcp(0, "S", seq=100), tcp(1, "S", seq=100)])],
    "S1": [
        ("goes on", [*handshake(), *DATA]),
        ("the SYN alone is answered", [tcp(0, "S", seq=100), tcp(0.1, "SA", back=True, seq=900, ack=101)]),
    ],
    "S2": [("the originator closes", [*handshake(), *DATA, FIN[0]])],
    "S3": [("the responder closes", [*handshake(), *DATA, tcp(0.3, "FA", back=True, seq=907, ack=106)])],
    "REJ": [
        ("refused", [tcp(0, "S", seq=100), tcp(0.1, "RA", back=True, ack=101)]),
        ("refused, asked again", [tcp(0, "S", seq=100), tcp(0.1, "RA", back=True, ack=101), tcp(0.6, "S", seq=100),
                                  tcp(0.7, "RA", back=True, ack=101)]),
    ],
    "RSTO": [
        ("the originator aborts", [*handshake(), *DATA, tcp(0.3, "R", seq=106)]),
        ("a half-open scan of an open port", [tcp(0, "S", seq=100), tcp(0.1, "SA", back=True, seq=900, ack=101),
                                              tcp(0.2, "R", seq=101)]),
        ("a FIN, then a RST", [*handshake(), *DATA, FIN[0], tcp(0.4, "R", seq=107)]),
    ],
    "RSTR": [("the responder aborts", [*handshake(), *DATA, tcp(0.3, "RA", back=True, seq=907)])],
    "RSTOS0": [("a SYN, then a RST", [tcp(0, "S", seq=100), tcp(0.1, "R", seq=101)])],
    "RSTRH": [("a SYN ACK, then a RST", [tcp(0, "SA", back=True, seq=900), tcp(0.1, "R", back=True, seq=901)])],
    "SH": [("a SYN, then a FIN", [tcp(0, "S", seq=100), tcp(0.1, "F", seq=101)])],
    "SHR": [("a SYN ACK, then a FIN", [tcp(0, "SA", back=True, seq=900), tcp(0.1, "FA", back=True, seq=901)])],
    "OTH": [("in the middle", DATA), ("one way only", DATA[:1])],
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "packets"),
    [
        pytest.param(state, packets, id=f"{state}: {what}")
        for state, all_ in EXCHANGES.items()
        for what, packets in all_
    ],
)
def test_connections_end_in_the_states_that_zeek_gives(state: str, packets: list[Packet]) -> None:
    records = records_of(packets, NO_TIMEOUTS)
    assert [FLAG_NAMES[s] for s in conn_states(records)] == [state]
    table = connection_maker("kdd").table(records)
    flag = [a.name for a in table.schema.coded].index("flag")
    assert [table.symbols[flag][i] for i in table.sym[:, flag]] == [state]


def test_all_thirteen_states_are_covered() -> None:
    assert set(EXCHANGES) == set(FLAG_NAMES)


def test_an_answer_that_comes_first_does_not_make_the_server_the_originator() -> None:
    record = records_of([tcp(0, "SA", back=True, seq=900), tcp(0.1, "A", seq=1, ack=901)], NO_TIMEOUTS)
    assert (record["orig"]["packets"][0], record["resp"]["packets"][0]) == (1, 1)
    assert FLAG_NAMES[conn_states(record)[0]] == "S1"


def test_a_middle_of_a_connection_is_no_call_by_the_web_server() -> None:
    record = records_of([tcp(0, "PA", back=True, seq=5, data=b"page", dport=443)], NO_TIMEOUTS)
    assert record["resp"]["payload_bytes"][0] == 4


def _zeek_flag(orig: int, resp: int, payload: int) -> str:
    """Zeek's script conn_state(), restated (BSD licence, scripts/base/protocols/conn/main.zeek)."""
    quiet = (layout.INACTIVE, layout.PARTIAL)
    if resp == layout.RESET:
        refused = orig in (layout.SYN_SENT, layout.SYN_ACK_SENT) or (orig == layout.RESET and payload == 0)
        return "REJ" if refused else "RSTRH" if orig in quiet else "RSTR"
    if orig == layout.RESET:
        return "RSTOS0" if resp in quiet else "RSTO"
    if (orig, resp) == (layout.CLOSED, layout.CLOSED):
        return "SF"
    if orig == layout.CLOSED:
        return "SH" if resp in quiet else "S2"
    if resp == layout.CLOSED:
        return "SHR" if orig in quiet else "S3"
    if (orig, resp) == (layout.SYN_SENT, layout.INACTIVE):
        return "S0"
    return "S1" if (orig, resp) == (layout.ESTABLISHED, layout.ESTABLISHED) else "OTH"


def test_pairs_of_states_get_the_flags_of_zeeks_script() -> None:
    for orig, resp, payload in itertools.product(range(7), range(7), (0, 5)):
        assert FLAG_NAMES[tcp_flag.py_func(orig, resp, payload)] == _zeek_flag(orig, resp, payload)


def test_states_that_zeek_never_leaves_are_not_left() -> None:
    for flags in range(64):
        for is_orig in (True, False):
            assert next_states.py_func(layout.RESET, 0, layout.ESTABLISHED, 0, is_orig, flags, 3)[0] == layout.RESET
            after = next_states.py_func(layout.CLOSED, 0, layout.CLOSED, 0, is_orig, flags, 3)
            assert after[0] == layout.CLOSED


def test_states_do_not_depend_on_how_the_packets_are_cut() -> None:
    from exchanges import block

    from netclust.stream.packets.flow_table import FlowTable

    packets = [*handshake(), *DATA, *FIN]
    whole = records_of(packets, NO_TIMEOUTS)
    table = FlowTable(64, NO_TIMEOUTS)
    parts = [table.feed(block([packet])) for packet in packets]
    cut = np.concatenate([*parts, table.finish()])
    for name in ("orig", "resp"):
        assert cut[name].tolist() == whole[name].tolist()
