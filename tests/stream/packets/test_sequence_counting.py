"""Payload by sequence: every byte of a direction once, whatever order, repetition or wrap-around brought it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exchanges import NO_TIMEOUTS, handshake, records_of, tcp
from hypothesis import given
from hypothesis import strategies as st

Segment = tuple[int, int]


def sent(segments: list[Segment], isn: int) -> Any:
    """The originator's side of a connection that sends these (offset, size), numbered from behind its SYN."""
    packets = handshake(isn=isn)
    for k, (offset, size) in enumerate(segments):
        packets.append(tcp(0.1 + k * 0.01, "A", seq=isn + 1 + offset, ack=901, data=b"x" * size))
    return records_of(packets, NO_TIMEOUTS)["orig"][0]


def counted_byte_by_byte(segments: list[Segment]) -> dict[str, int]:
    """The twin: a set of the bytes that were seen."""
    seen: set[int] = set()
    high = again = late = repeated = 0
    for offset, size in segments:
        own = set(range(offset, offset + size))
        new = own - seen
        late += bool({b for b in new if b < high})
        repeated += bool(own & seen)
        again += len(own & seen)
        seen |= own
        high = max(high, offset + size)
    return {
        "payload_bytes": len(seen),
        "retransmitted_bytes": again,
        "retransmitted": repeated,
        "out_of_order": late,
        "missed_bytes": high - len(seen),
    }


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param([(0, 5), (5, 5), (10, 1)], id="in order"),
        pytest.param([(0, 5), (0, 5), (5, 5)], id="the same again"),
        pytest.param([(0, 5), (3, 6)], id="an overlap"),
        pytest.param([(0, 5), (10, 5), (5, 5)], id="one late"),
        pytest.param([(0, 5), (10, 5), (20, 5), (5, 5), (15, 5)], id="two late"),
        pytest.param([(0, 5), (20, 5), (8, 4)], id="late into the middle of a gap"),
        pytest.param([(0, 5), (20, 5), (3, 19)], id="a late one that fills more than the gap"),
        pytest.param([(10, 5)], id="lost"),
    ],
)
@pytest.mark.parametrize("isn", [100, 2**32 - 8, 2**31 - 3])
def test_every_byte_is_counted_once(segments: list[Segment], isn: int) -> None:
    side = sent(segments, isn)
    expected = counted_byte_by_byte(segments)
    assert {name: int(side[name]) for name in expected} == expected


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=14),
    st.lists(st.integers(1, 40), min_size=8, max_size=8),
    st.integers(0, 2**32 - 1),
)
def test_any_order_of_segments_is_counted(order: list[int], sizes: list[int], isn: int) -> None:
    # At most four gaps can be open: eight segments in a row have no more.
    starts = np.concatenate(([0], np.cumsum(sizes))).tolist()
    segments = [(starts[k], sizes[k]) for k in order]
    side = sent(segments, isn)
    expected = counted_byte_by_byte(segments)
    assert {name: int(side[name]) for name in expected} == expected


def test_more_gaps_than_are_remembered_keep_bytes_that_were_seen() -> None:
    ahead = [(k * 10, 5) for k in range(1, 9)]
    side = sent([(0, 5), *ahead], 100)
    assert side["payload_bytes"] == 5 * 9
    assert side["missed_bytes"] == 5 * 8


def test_another_numbering_is_no_gap_of_gigabytes() -> None:
    side = sent([(0, 5), (2_000_000_000, 5), (2_000_000_005, 5)], 100)
    assert (side["payload_bytes"], side["missed_bytes"]) == (15, 0)


def test_bytes_from_before_the_capture_began_are_no_repetition() -> None:
    packets = [tcp(0, "A", seq=1000, data=b"12345"), tcp(0.1, "A", seq=990, data=b"0123456789")]
    side = records_of(packets, NO_TIMEOUTS)["orig"][0]
    assert (side["payload_bytes"], side["retransmitted"], side["out_of_order"]) == (15, 0, 1)


def test_a_repeated_syn_or_fin_is_no_payload() -> None:
    packets = [tcp(0, "S", seq=100), *handshake(0.5), tcp(1, "FA", seq=101), tcp(1.5, "FA", seq=101)]
    side = records_of(packets, NO_TIMEOUTS)["orig"][0]
    assert (side["payload_bytes"], side["syn"], side["fin"], side["packets"]) == (0, 2, 2, 5)


def test_numbers_in_a_reset_are_not_trusted() -> None:
    packets = [*handshake(), tcp(0.1, "R", seq=500_000, data=b"why"), tcp(0.2, "A", seq=101, data=b"ab")]
    side = records_of(packets, NO_TIMEOUTS)["orig"][0]
    assert (side["payload_bytes"], side["missed_bytes"]) == (2, 0)
