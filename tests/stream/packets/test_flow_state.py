"""A flow table and its traffic windows, cut anywhere, saved and restored: nothing of it shows in what follows."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanges import CLIENT, SERVER, Packet, handshake, ipv4, tcp, udp
from exchanges import block as made_block
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays, pack_container, unpack_container
from netclust.kernels.packets import flow_layout as layout
from netclust.records.traffic_counts import SlidingCounts, TrafficCounts
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.packet_blocks import PacketBlock

KIND = "netclust.test"


def stored(arrays: Arrays) -> Arrays:
    """As they come back from a file."""
    return unpack_container(pack_container(KIND, arrays, {}), KIND, "test")[0]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> list[PacketBlock]:
    path = tmp_path_factory.mktemp("capture") / "c.pcap"
    simulate_capture(path, hours=0.1, seed=3, attacks="all", hosts=10)
    found = []
    for block in CaptureFile(path):
        data, index = block.data.copy(), block.index.copy()
        found += [PacketBlock(data, index[begin : begin + 500]) for begin in range(0, len(index), 500)]
    return found


def in_parts(
    blocks: list[PacketBlock], cuts: set[int], begin: Arrays, **options: Any
) -> tuple[NDArray[Any], dict[str, int]]:
    """The records where a new table takes over at every cut; `begin` gives all the same seed, which hashes show."""
    table = FlowTable(**options)
    table.restore(begin)
    records = []
    for number, block in enumerate(blocks):
        if number in cuts:
            arrays = stored(table.state())
            table = FlowTable(**options)
            table.restore(arrays)
        records.append(table.feed(block))
    records.append(table.finish())
    return np.concatenate(records), dict(table.counters)


TABLES: list[dict[str, Any]] = [
    {"max_flows": 4096},
    {"max_flows": 64},  # connections are evicted
    {"max_flows": 4096, "timeouts": FlowTimeouts(idle=0, active=5.0, attempt=0.5)},
]


@pytest.mark.parametrize("options", TABLES)
def test_a_restored_table_gives_the_same_records(blocks: list[PacketBlock], options: dict[str, Any]) -> None:
    begin = FlowTable(**options).state()
    whole, counters = in_parts(blocks, set(), begin, **options)
    assert len(whole) > 1000

    @settings(max_examples=8)
    @given(st.sets(st.integers(0, len(blocks) - 1), min_size=1, max_size=4))
    def cut(cuts: set[int]) -> None:
        parts, counted = in_parts(blocks, cuts, begin, **options)
        assert np.array_equal(parts, whole)
        assert counted == counters

    cut()


def hard_packets() -> list[Packet]:
    """Half lines of a dialogue, holes in sequences, a name, fragments."""
    telnet: dict[str, Any] = {"dport": 23, "sport": 41000}
    text = struct.pack("!HHHHHH", 1, 0x0100, 1, 0, 0, 0) + b"\x07example\x03com\0" + struct.pack("!HH", 1, 1)
    first = struct.pack("!HHHH", 40000, 9999, 8 + 24, 0) + bytes(16)
    return [
        *handshake(),
        *handshake(0.1, **telnet),
        tcp(0.2, "PA", back=True, seq=901, data=b"login: ", **telnet),
        tcp(0.3, "PA", seq=101, data=b"ro", **telnet),
        tcp(0.4, "PA", seq=201, data=b"x" * 50),
        tcp(0.5, "PA", seq=301, data=b"x" * 50),
        (0.6, ipv4(CLIENT, SERVER, 17, first, ident=5, more=True)),
        tcp(0.7, "PA", seq=103, data=b"ot\r\nsu", **telnet),
        udp(0.8, data=text, dport=53),
        (0.9, ipv4(CLIENT, SERVER, 17, b"y" * 8, ident=5, fragment=24)),
        tcp(1.0, "PA", seq=101, data=b"x" * 100),
        tcp(1.1, "PA", seq=109, data=b" root\r\ncat /etc/passwd\r\n", **telnet),
        tcp(1.2, "FA", back=True, seq=908, **telnet),
        tcp(1.3, "R", seq=400),
    ]


def test_half_lines_holes_and_fragments_are_kept() -> None:
    blocks = [made_block([packet]) for packet in hard_packets()]
    begin = FlowTable(64).state()
    whole, counters = in_parts(blocks, set(), begin, max_flows=64)
    assert counters["orphan_fragments"] == 0
    assert whole["flow"]["fragments"].max() == 2
    assert whole["flow"]["su_attempted"].max() > 0
    table, seen = FlowTable(64), set()
    for number, one in enumerate(blocks):
        parts, counted = in_parts(blocks, {number}, begin, max_flows=64)
        assert np.array_equal(parts, whole)
        assert counted == counters
        table.feed(one)
        seen |= {name for name, array in table.state().items() if array.size}
    assert {"gaps", "names", "lines", "fragments"} <= seen


def test_a_clock_that_is_set_back_after_a_restart_ends_connections(blocks: list[PacketBlock]) -> None:
    table = FlowTable(4096)
    for block in blocks[:10]:
        table.feed(block)
    again = FlowTable(4096)
    again.restore(table.state())
    earlier = blocks[0].index.copy()
    earlier["time"] -= 10**12
    was_open = again.open_flows
    records = again.feed(PacketBlock(blocks[0].data, earlier))
    assert again.counters["clock_set_back"] == 1
    assert np.count_nonzero(records["flow"]["end"] == layout.END_CLOCK) == was_open
    assert np.array_equal(records, table.feed(PacketBlock(blocks[0].data, earlier)))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_flows": 128}, "max_flows"),
        ({"max_flows": 64, "tunnels": True}, "tunnels"),
        ({"max_flows": 64, "timeouts": FlowTimeouts(idle=59)}, "idle was 60, it is 59"),
        ({"max_flows": 64, "content": False}, "content"),
    ],
)
def test_a_state_of_other_settings_is_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ModelError, match=name):
        FlowTable(**options).restore(FlowTable(64).state())


def test_a_table_in_use_is_not_overwritten(blocks: list[PacketBlock]) -> None:
    table = FlowTable(64)
    state = table.state()
    table.feed(blocks[0])
    with pytest.raises(ValueError, match="before it has seen packets"):
        table.restore(state)


def spoiled(state: Arrays, name: str, change: Any) -> Arrays:
    state = stored(state)
    array = change(state[name])
    if array is None:
        del state[name]
    else:
        state[name] = array
    return state


def with_field(dtype: Any, field: str, value: Any) -> Any:
    def change(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        words.view(dtype)[field][-1] = value
        return words

    return change


def with_number(at: int, value: int) -> Any:
    def change(numbers: NDArray[Any]) -> NDArray[Any]:
        numbers[at] = value
        return numbers

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("flows", lambda a: None),
        ("flows", lambda a: a[:-1]),
        ("flows", lambda a: a.astype(np.int64)),
        ("flows", lambda a: a[::-1]),
        ("flows", lambda a: np.repeat(a, 100, axis=0)),
        ("flows", with_field(layout.FLOW, "list", 3)),
        ("flows", with_field(layout.FLOW, "app", 200)),
        ("flows", with_field(layout.FLOW, "orig_state", 7)),
        ("flows", with_field(layout.FLOW, "name_bytes", 65)),
        ("flows", with_field(layout.FLOW, "id", -1)),
        ("flows", with_field(layout.FLOW, "id", 1 << 60)),
        ("flows", with_field(layout.FLOW, "due_from", 1 << 62)),
        ("flows", with_field(layout.FLOW, "gap_max", np.nan)),
        ("sides", lambda a: a[:, :-1]),
        ("sides", with_field(layout.SIDE, "line", 129)),
        ("sides", with_field(layout.SIDE, "gaps", 5)),
        ("sides", with_field(layout.SIDE, "size_squares", np.inf)),
        ("state", with_number(layout.FREE, 3)),
        ("state", with_number(layout.FREE, -1)),
        ("state", with_number(layout.STEPPING, 1)),
        ("state", lambda a: a[1:]),
        ("counts", with_number(0, -5)),
        ("gap_rows", lambda a: np.append(a, 0)),
        ("name_rows", lambda a: a + 10**6),
        ("fragment_rows", lambda a: a - 10**6),
        ("line_rows", lambda a: a - 10**6),
        ("fragment_rows", lambda a: np.zeros(3, np.int64)),
        ("layout", lambda a: a + 1),
        ("settings", lambda a: a[:2]),
        ("seed", lambda a: a.astype(np.uint64)),
    ],
)  # fmt: skip
def test_nonsense_does_not_reach_the_kernels(name: str, change: Any) -> None:
    table = FlowTable(4096)
    table.feed(made_block(hard_packets()[:-2]))
    fresh = FlowTable(4096)
    before = {name: array.tobytes() for name, array in fresh.state().items() if name != "seed"}
    with pytest.raises(ModelError):
        fresh.restore(spoiled(table.state(), name, change))
    assert {name: array.tobytes() for name, array in fresh.state().items() if name != "seed"} == before


def test_hashes_that_are_all_alike_are_refused() -> None:
    memory = FlowTable(16_384)
    state = memory.state()
    n = 10_000
    flows = np.zeros(n, layout.FLOW)
    flows["list"] = layout.IDLE_LIST
    state["flows"] = flows.view(np.uint64).reshape(n, -1)
    state["sides"] = np.zeros((n, 2 * layout.SIDE.itemsize // 8), np.uint64)
    state["state"][[layout.FREE, layout.NEXT_ID, layout.NOW]] = 16_384 - n, n, 5
    with pytest.raises(ModelError, match="alike"):
        memory.restore(state)


rows = st.lists(st.tuples(st.integers(-1, 30), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2)), max_size=60)


@settings(max_examples=50)
@given(rows, st.integers(0, 60), st.sampled_from([0, 10]), st.integers(1, 12), st.booleans())
def test_a_restored_window_counts_the_same(
    stream: list[tuple[int, int, int, int]], cut: int, span: int, longest: int, with_parents: bool
) -> None:
    time = np.cumsum([max(row[0], -3) for row in stream] or [0], dtype=np.int64)[: len(stream)]
    host = np.array([row[1] for row in stream], np.uint64)
    keys = np.stack([host, np.array([row[2] for row in stream], np.uint64) + 10 * host], axis=1)
    klass = np.array([row[3] for row in stream], np.uint8)
    make = lambda: SlidingCounts(2, span, longest, {1: (0, 0)} if with_parents else None)  # noqa: E731
    whole, first, second = make(), make(), make()
    expected = whole.add(time, keys, klass)
    begin = first.add(time[:cut], keys[:cut], klass[:cut])
    second.restore(stored(first.state()))
    found = np.concatenate([begin, second.add(time[cut:], keys[cut:], klass[cut:])])
    assert found.tolist() == expected.tolist()
    assert second.dropped == whole.dropped


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("recent.time", lambda a: a[::-1]),
        ("recent.time", lambda a: a[1:]),
        ("recent.time", lambda a: a * 10**9),
        ("recent.keys", lambda a: a * 0),
        ("recent.keys", lambda a: a[:, :1]),
        ("recent.class", lambda a: a + 3),
        ("recent.class", lambda a: a.astype(np.int64)),
        ("recent.dropped", lambda a: a - 1),
        ("last.time", lambda a: None),
        ("last.dropped", lambda a: np.zeros(2, np.int64)),
    ],
)  # fmt: skip
def test_nonsense_does_not_reach_a_window(name: str, change: Any) -> None:
    counts = TrafficCounts()
    number = np.arange(10, dtype=np.int64)
    counts.add(number, host=[number], service=number, port=number, error=np.zeros(10, np.uint8))
    with pytest.raises(ModelError):
        TrafficCounts().restore(spoiled(counts.state(), name, change))


def test_more_records_than_there_is_room_for_are_refused() -> None:
    counts = SlidingCounts(1, 0, 20)
    counts.add(np.arange(20), np.ones((20, 1), np.uint64), np.zeros(20, np.uint8))
    with pytest.raises(ModelError, match="room for 10"):
        SlidingCounts(1, 0, 10).restore(counts.state())
    with pytest.raises(ValueError, match="before anything is counted"):
        counts.restore(counts.state())
    assert issubclass(ModelError, InputError)


def test_an_empty_capture_can_be_saved(tmp_path: Path) -> None:
    table = FlowTable(16)
    table.restore(stored(FlowTable(16).state()))
    assert table.now == -1
    assert table.finish().size == 0
