"""Captures as a source: killed anywhere and resumed from its state, it gives what it would have given."""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError, ModelError
from netclust.foundation.container import pack_container, unpack_container
from netclust.records.schema import load_schema
from netclust.stream.config import SourceConfig
from netclust.stream.packets import capture_walk
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.connections import SCHEMAS
from netclust.stream.packets.flow_table import FlowTimeouts
from netclust.stream.sources import packet_flows
from netclust.stream.sources.base import Arrival, SourceState
from netclust.stream.sources.captures import CaptureSource, open_packet_source

KIND = "netclust.test"
GIVE_UP_SECONDS = 15

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture") / "c.pcap"
    simulate_capture(path, hours=0.1, seed=3, attacks="all", hosts=10)
    return path


@pytest.fixture(scope="module")
def folder(capture: Path) -> Path:
    """The capture in three files, one of them packed, which overlap in time."""
    blob, at, parts = capture.read_bytes(), 24, [b"", b"", b""]
    number = 0
    while at < len(blob):
        (size,) = struct.unpack_from("<I", blob, at + 8)
        which = 2 if number > 15_000 else number // 100 % 2
        parts[which] += blob[at : at + 16 + size]
        at, number = at + 16 + size, number + 1
    into = capture.parent / "parts"
    into.mkdir()
    for name, part in zip(("a.pcap", "b.pcap", "c.pcap.gz"), parts, strict=True):
        content = blob[:24] + part
        (into / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    (into / "notes.txt").write_text("no capture")
    return into


@pytest.fixture(autouse=True)
def many_arrivals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_flows, "MAX_RECORDS", 100)
    monkeypatch.setattr(capture_walk, "BLOCK_PACKETS", 400)


def offset_of(content: bytes, packet: int) -> int:
    at = 24
    for _ in range(packet):
        at += 16 + struct.unpack_from("<I", content, at + 8)[0]
    return at


def stored(state: SourceState | None) -> SourceState:
    """As it comes back from a file."""
    assert state is not None
    arrays, facts = unpack_container(pack_container(KIND, state.arrays, state.facts), KIND, "test")
    return SourceState(facts, arrays)


def rows_of(arrival: Arrival) -> Rows:
    table = arrival.table
    names = [[table.symbols[s][i] for i in column] for s, column in enumerate(table.sym.T)]
    return list(
        zip(table.seq.tolist(), table.time.tolist(), map(tuple, table.num.tolist()), *names, table.key, strict=True)
    )


def read(
    source: CaptureSource, state: SourceState | None = None, stop_after: int = 1 << 30
) -> tuple[Rows, SourceState]:
    """Rows up to the first state behind so many arrivals, and that state: what came after it is lost, as by a kill."""
    source.open(state)
    rows: Rows = []
    for number, arrival in enumerate(source):
        rows += rows_of(arrival)
        if arrival.state is not None and number >= stop_after:
            break
        if number >= stop_after - 1:
            source.want_state()
    source.close()
    return rows, stored(arrival.state)


def in_parts(make: Callable[[], CaptureSource], stops: list[int]) -> Rows:
    rows: Rows = []
    state = None
    for stop in [*stops, 1 << 30]:
        part, state = read(make(), state, stop)
        rows += part
    return rows


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_killed_capture_gives_the_same_records_when_it_continues(capture: Path, schema: str) -> None:
    def make() -> CaptureSource:
        return CaptureSource("test", [capture], schema)

    whole, _ = read(make())
    assert len(whole) > 5000
    assert [row[0] for row in whole] == list(range(len(whole)))

    @settings(max_examples=4)
    @given(st.lists(st.integers(0, 30), min_size=1, max_size=3))
    def killed(stops: list[int]) -> None:
        assert in_parts(make, stops) == whole

    killed()


def test_a_killed_folder_gives_the_same_records_when_it_continues(capture: Path, folder: Path) -> None:
    def make() -> CaptureSource:
        return CaptureSource("test", [folder], "flow", max_flows=256, timeouts=FlowTimeouts(active=20))

    whole, state = read(make())
    alone, _ = read(CaptureSource("test", [capture], "flow", max_flows=256, timeouts=FlowTimeouts(active=20)))
    assert whole == alone
    assert [Path(name).name for name, _, _ in state.facts["files"]] == ["a.pcap", "b.pcap", "c.pcap.gz"]
    assert in_parts(make, [3, 20, 1]) == whole


def test_a_finished_capture_is_not_read_again(capture: Path) -> None:
    _, state = read(CaptureSource("test", [capture], "kdd"))
    assert state.facts["finished"]
    again = CaptureSource("test", [capture], "kdd")
    rows, after = read(again, state)
    assert rows == []
    assert after.facts == state.facts
    assert again.counters["records"] == state.facts["seq"]


def test_stopping_leaves_connections_open(capture: Path) -> None:
    source = CaptureSource("test", [capture], "flow")
    source.open(None)
    source.stop()
    rows = [row for arrival in source for row in rows_of(arrival)]
    assert source.open_flows > 0
    whole, _ = read(CaptureSource("test", [capture], "flow"))
    assert rows == whole[: len(rows)] != whole


def test_a_source_that_is_stopped_on_its_way_back_remembers_where_it_was(capture: Path) -> None:
    whole, _ = read(CaptureSource("test", [capture], "flow"))
    first, state = read(CaptureSource("test", [capture], "flow"), stop_after=20)
    assert state.facts["packets"] > 1000
    again = CaptureSource("test", [capture], "flow")
    again.open(state)
    again.want_state()
    again.stop()
    arrivals = list(again)
    assert sum(len(arrival.table) for arrival in arrivals) == 0
    assert all(arrival.state is None or arrival.state.facts == state.facts for arrival in arrivals)
    rest, _ = read(CaptureSource("test", [capture], "flow"), stored(arrivals[-1].state))
    assert first + rest == whole


def test_counters_are_there_from_the_start_with_their_own_names(capture: Path) -> None:
    source = CaptureSource("test", [capture], "flow")
    names = set(source.counters)
    source.open(None)
    arrivals = iter(source)
    next(arrivals)
    assert 0 < source.counters["packets"] <= packets_in(capture)
    assert source.counters["flows"] > 0
    list(arrivals)
    assert source.counters["packets"] == source.counters["decoded"] == packets_in(capture)
    assert set(source.counters) == names
    assert {"packets", "bytes", "records", "snapped", "flows_evicted", "traffic_window_full"} <= names
    assert not any("open" in name for name in names)


def packets_in(path: Path) -> int:
    return sum(len(block) for block in CaptureFile(path))


def test_context_is_that_of_the_rows(capture: Path) -> None:
    source = CaptureSource("test", [capture], "flow")
    source.open(None)
    arrival = next(a for a in source if len(a.table) > 10)
    assert arrival.table.context == {}
    some = arrival.context_of(np.array([7, 2]))
    every = arrival.context_of(np.arange(len(arrival.table)))
    assert {name: column.tolist() for name, column in some.items()} == {n: every[n][[7, 2]].tolist() for n in every}
    assert {"uid", "source", "destination"} <= set(some)


def test_a_capture_in_which_nothing_ends_still_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_flows, "TICK_SECONDS", 0.0)
    path = tmp_path / "one.pcap"
    frame = bytes(12) + b"\x08\0\x45" + bytes(59)
    records = [struct.pack("<IIII", 1000, number, len(frame), len(frame)) + frame for number in range(50_000)]
    path.write_bytes(HEADER + b"".join(records))
    source = CaptureSource("test", [path], "flow")
    source.open(None)
    arrivals = [(len(a.table), a.now >= 0) for a in source]
    assert len(arrivals) > 3


HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


@pytest.mark.parametrize("change", ["replaced", "shortened", "gone"])
def test_another_file_is_not_taken_for_the_one_that_was_read(capture: Path, tmp_path: Path, change: str) -> None:
    path = tmp_path / "c.pcap"
    shutil.copy(capture, path)
    _, state = read(CaptureSource("test", [path], "flow"), stop_after=5)
    content = path.read_bytes()
    if change == "replaced":
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    elif change == "shortened":
        path.write_bytes(content[:-100])
    else:
        path.rename(tmp_path / "b.pcap")
    with pytest.raises(InputError, match=r"start without the saved state|No such file"):
        CaptureSource("test", [path], "flow").open(state)


def test_a_capture_that_grew_is_read_once(capture: Path, tmp_path: Path) -> None:
    content = capture.read_bytes()
    half = offset_of(content, 10_000)
    path = tmp_path / "c.pcap"
    path.write_bytes(content[:half])
    before = CaptureSource("test", [path], "flow")
    first, state = read(before)
    path.write_bytes(content)
    after = CaptureSource("test", [path], "flow")
    rest, state = read(after, state)
    assert (before.counters["packets"], after.counters["packets"]) == (10_000, packets_in(capture))
    assert [row[0] for row in first + rest] == list(range(len(first) + len(rest)))


def test_a_new_file_of_a_folder_is_read_and_an_old_one_is_not(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "b.pcap", tmp_path)
    _, state = read(CaptureSource("test", [tmp_path], "flow"))
    shutil.copy(folder / "a.pcap", tmp_path)  # begins earlier
    shutil.copy(folder / "c.pcap.gz", tmp_path)
    source = CaptureSource("test", [tmp_path], "flow")
    rows, _ = read(source, state)
    assert source.counters["late_files"] == 1
    assert rows[0][0] == state.facts["seq"]
    assert source.counters["packets"] > state.facts["packets"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: SourceState({}, s.arrays),
        lambda s: SourceState(s.facts | {"packets": -1}, s.arrays),
        lambda s: SourceState(s.facts | {"seq": s.facts["seq"] + 1}, s.arrays),
        lambda s: SourceState(s.facts | {"files": [["x"]]}, s.arrays),
        lambda s: SourceState(s.facts, {}),
        lambda s: SourceState(s.facts, {n: a for n, a in s.arrays.items() if n.startswith("table.")}),
    ],
)  # fmt: skip
def test_a_state_of_something_else_is_refused(capture: Path, spoil: Callable[[SourceState], SourceState]) -> None:
    _, state = read(CaptureSource("test", [capture], "flow"), stop_after=5)
    with pytest.raises(ModelError):
        CaptureSource("test", [capture], "flow").open(spoil(state))


def test_what_is_no_capture_is_found_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_text("time,source,destination,and,so,on\n")
    for path in (tmp_path / "x.pcap", tmp_path, tmp_path / "none.pcap"):
        with pytest.raises(InputError):
            CaptureSource("test", [path], "flow").open(None)
    with pytest.raises(InputError):
        CaptureSource("test", [tmp_path / "none.pcap"], "flow", follow=True).open(None)
    (tmp_path / "x.pcap.gz").write_bytes(gzip.compress(HEADER))
    with pytest.raises(InputError, match="only plain captures can be followed"):
        CaptureSource("test", [tmp_path / "x.pcap.gz"], "flow", follow=True).open(None)
    with pytest.raises(InputError, match="no capture"):
        CaptureSource("test", [tmp_path / "x.pcap"], "flow", follow=True).open(None)


class Following:
    """A followed capture in a thread, and what came from it."""

    def __init__(self, path: Path, state: SourceState | None = None) -> None:
        self.source = CaptureSource("test", [path], "flow", follow=True)
        self.source.open(state)
        self.rows: Rows = []
        self.arrivals: list[Arrival] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        for arrival in self.source:
            self.rows += rows_of(arrival)
            self.arrivals.append(arrival)

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not reached() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert reached()

    def until_packets(self, count: int) -> None:
        self.until(lambda: self.source.counters["packets"] >= count)

    def stopped(self) -> SourceState:
        self.source.stop()
        self.thread.join(GIVE_UP_SECONDS)
        assert not self.thread.is_alive()
        return stored(self.arrivals[-1].state)


@pytest.fixture
def halves(capture: Path) -> tuple[bytes, bytes, int]:
    """The capture's bytes, cut within a packet; and how many are whole before that."""
    content = capture.read_bytes()
    half = offset_of(content, 9000) + 36
    return content[:half], content[half:], 9000


def followed_whole(capture: Path) -> Rows:
    """What a followed capture gives while its file stays: without the connections that the end would close."""
    following = Following(capture)
    following.until_packets(packets_in(capture))
    following.stopped()
    return following.rows


def test_a_followed_capture_neither_loses_nor_doubles_packets_over_a_restart(
    capture: Path, tmp_path: Path, halves: tuple[bytes, bytes, int]
) -> None:
    path = tmp_path / "c.pcap"
    path.write_bytes(halves[0])
    first = Following(path)
    first.until_packets(halves[2])
    first.until(lambda: len(first.arrivals) > 3)  # it waits, and says so
    state = first.stopped()
    with path.open("ab") as file:
        file.write(halves[1])
    second = Following(path, state)
    second.until_packets(packets_in(capture))
    second.stopped()
    assert first.rows + second.rows == followed_whole(capture)


@pytest.mark.parametrize("found", [True, False])
def test_a_capture_that_was_rotated_away_is_read_to_its_end(
    capture: Path, tmp_path: Path, halves: tuple[bytes, bytes, int], found: bool
) -> None:
    path, old = tmp_path / "c.pcap", tmp_path / "c.pcap.1"
    path.write_bytes(halves[0])
    first = Following(path)
    first.until_packets(halves[2])
    state = first.stopped()
    with path.open("ab") as file:
        file.write(halves[1])
    os.replace(path, old)
    if not found:
        old.unlink()
    packet = bytes(60)
    path.write_bytes(HEADER + struct.pack("<IIII", 4_000_000_000, 0, 60, 60) + packet)
    total = (packets_in(capture) if found else halves[2]) + 1
    second = Following(path, state)
    second.until_packets(total)
    again = second.stopped()
    assert second.source.counters["packets"] == total
    assert second.source.counters["lost_position"] == (not found)
    assert again.facts["place"][2] == 1
    if found:
        assert first.rows + second.rows == followed_whole(capture)


def test_a_pipe_without_packets_does_not_hold_the_source_up(capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = capture.read_bytes()

    def write() -> Iterator[None]:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(content[:200])
            yield
            pipe.write(content[200:])

    source = CaptureSource("test", [path], "flow")
    assert not source.replayable
    source.open(None)
    arrivals: list[Arrival] = []
    thread = threading.Thread(target=lambda: arrivals.extend(source), daemon=True)
    thread.start()
    writing = write()
    next(writing)
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while len(arrivals) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(arrivals) >= 3
    assert next(writing, None) is None
    thread.join(GIVE_UP_SECONDS)
    whole, _ = read(CaptureSource("test", [capture], "flow"))
    assert [row for arrival in arrivals for row in rows_of(arrival)] == whole


def test_a_configuration_gives_its_source(capture: Path) -> None:
    schema = load_schema("flow")
    source = open_packet_source(SourceConfig(kind="capture", name="c", path=str(capture)), schema)
    assert isinstance(source, CaptureSource)
    assert source.schema == schema
    live = open_packet_source(SourceConfig(kind="live", name="l", interfaces=("lo",)), schema)
    assert (live.sheds, live.replayable, source.sheds, source.replayable) == (True, False, False, True)
    with pytest.raises(InputError, match="needs a path"):
        open_packet_source(SourceConfig(kind="capture", name="c"), schema)
    with pytest.raises(InputError, match="does not give packets"):
        open_packet_source(SourceConfig(kind="zeek", name="c", path="x"), schema)
