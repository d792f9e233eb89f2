"""The flow table at its limits: what one connection leaves behind, and times at the end of the clock."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from capture_fuzzer import crowd
from numpy.typing import NDArray
from packet_paths import NEVER, block_of, followed

from netclust.stream.packets.flow_table import FlowTimeouts

SECOND = 10**9
END_OF_TIME = 2**63 - 1


def frame(proto: int, ports: tuple[int, int], payload: bytes, head: bytes = b"") -> bytes:
    """An IPv4 packet between two fixed hosts; `head` is TCP's, behind its ports."""
    transport = struct.pack("!HH", *ports) + (head or struct.pack("!HH", 8 + len(payload), 0)) + payload
    size = 20 + len(transport)
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return bytes(12) + b"\x08\0" + struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0, 64, proto, 0) + ends + transport


def segment(port: int, seq: int, payload: bytes, flags: int = 0x18) -> bytes:
    return frame(6, (40_000, port), payload, struct.pack("!IIBBHI", seq, 0, 0x50, flags, 512, 0))


def run(frames: list[bytes], times: list[int], timeouts: FlowTimeouts = NEVER, **options: Any) -> NDArray[Any]:
    block = block_of(frames, [1] * len(frames), times, options.pop("cut", None))
    return followed([block], timeouts, **options)[0]


def hello(*names: bytes) -> bytes:
    extensions = b"".join(struct.pack("!HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name for name in names)
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + struct.pack("!H", len(extensions)) + extensions
    return b"\x16\3\1" + struct.pack("!H", len(body) + 4) + b"\1\0" + struct.pack("!H", len(body)) + body


def names_after(first: bytes, cut: int = 0) -> list[bytes]:
    """Names of a connection and of one after it in the same place that has none."""
    silent = frame(17, (40_000, 9999), b"....")
    timeouts = FlowTimeouts(idle=1)
    # The table is as small as it can be, and the last place that was given back is the first to be used.
    records = run([first, silent], [0, 10 * SECOND], timeouts, max_flows=16, cut=[cut, 0])
    assert len(records) == 2
    return records["name"].tolist()


def test_a_name_does_not_stay_in_the_table_for_the_next_connection() -> None:
    query = bytes.fromhex("000101000001000000000000") + b"\3www\7example\3com\0\0\1\0\1"
    assert names_after(frame(17, (40_000, 53), query)) == [b"www.example.com", b""]
    for kept in range(12, len(query)):
        whole = frame(17, (40_000, 53), query)
        missing = len(query) - kept
        name, other = names_after(whole[: len(whole) - missing], missing)
        assert b"www.example.com".startswith(name)
        assert other == b""
    assert names_after(segment(443, 1, hello(b"example.com"))) == [b"example.com", b""]
    assert names_after(segment(443, 1, hello(b"example.com", b""))) == [b"example.com", b""]
    assert names_after(segment(443, 1, hello(b"example.com", b"a.b"))) == [b"example.com", b""]


def test_a_segment_after_an_interim_record_keeps_missed_bytes_positive() -> None:
    frames = [segment(9, 100, b"a" * 100), segment(9, 300, b"b" * 100), segment(9, 200, b"c" * 100)]
    records = run(frames, [0, SECOND, 100 * SECOND], FlowTimeouts(idle=0, active=50, step=1e9))
    assert records["orig"]["missed_bytes"].tolist() == [100, 0]
    assert records["orig"]["payload_bytes"].tolist() == [200, 100]


@pytest.mark.parametrize("timeouts", [NEVER, FlowTimeouts(), FlowTimeouts(attempt=1e9, idle=1e9, close=1e9)])
def test_a_time_at_the_end_of_the_clock_ends_connections_in_time(timeouts: FlowTimeouts) -> None:
    sent = [segment(9, 100, b"a"), segment(9, 101, b"b"), segment(10, 1, b"", 0x02), frame(17, (1, 2), b"data")]
    for time in (2**62, END_OF_TIME - 10**10, END_OF_TIME - 5, END_OF_TIME - 3):
        block = block_of(sent, [1] * 4, [time + i for i in range(4)])
        records, table = followed([block], timeouts)
        assert table.open_flows == 0
        assert sorted(records["orig"]["packets"] + records["resp"]["packets"]) == [1, 1, 2]
        assert (records["time"] >= time).all(), "the sum of time and timeout overflowed"
        assert (np.diff(records["time"]) >= 0).all()
        assert table.counters["clock_leaps"] == 0


def test_more_connections_end_with_a_block_than_the_output_holds() -> None:
    assert crowd() == 12_000
