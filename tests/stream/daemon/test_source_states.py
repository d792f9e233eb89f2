"""Continuing after a restart: which numbers records get, what is left of a source's state, and what is counted."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needed import need_packet_sockets

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.train_network import train_network
from netclust.records.schema import load_schema
from netclust.shipped.loading import load_shipped
from netclust.stream.config import SourceConfig, parse_config
from netclust.stream.daemon.checkpoint import Loaded
from netclust.stream.daemon.resuming import bridge_gap
from netclust.stream.daemon.source_states import SourceStates
from netclust.stream.detection.detector import Detector
from netclust.stream.logs import Log
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.packet_blocks import PacketBlock
from netclust.stream.sources.base import MAX_SEQ, Arrival, Source, SourceState, next_epoch
from netclust.stream.sources.captures import CaptureSource
from netclust.stream.sources.live import LiveSource
from netclust.stream.sources.packet_flows import PacketFlows
from netclust.stream.sources.records import open_text_source
from netclust.stream.store.store import Store

EPOCH = 1 << 32
NOW = 1_800_000_000.0


class Wire:
    """A source that cannot be read again, and takes only states that it might have written."""

    sheds = True

    def __init__(self, name: str = "wire", *, replayable: bool = False) -> None:
        self.name, self.replayable = name, replayable
        self.schema = load_schema("kdd")
        self.counters: Counter[str] = Counter()
        self.opened: list[SourceState | None] = []

    def open(self, state: SourceState | None) -> None:
        self.opened.append(state)
        if state is not None and state.arrays.get("spoiled") is not None:
            raise ModelError("spoiled")
        if state is not None and not 0 <= state.facts.get("seq", -1) < MAX_SEQ:
            raise ModelError("no number")

    @property
    def seq(self) -> int:
        """The number of its next record."""
        state = self.opened[-1]
        return 0 if state is None else int(state.facts["seq"])

    def __iter__(self) -> Any:
        return iter(())

    def want_state(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class Life:
    """A state folder over restarts, by hand."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "netclust.db")
        self.checkpoint: Loaded | None = None
        self.out = io.StringIO()
        self.states: SourceStates | None = None
        self.now = NOW

    def start(self, *sources: Source) -> list[SourceState | None]:
        """Open the sources where the newest checkpoint has them."""
        self.states = SourceStates(self.checkpoint, self.store, Log(stream=self.out), clock=lambda: self.now)
        return [self.states.open(source) for source in sources]

    def cut(self, *, clean: bool = False, arrays: Arrays | None = None, **sources: dict[str, Any]) -> None:
        """Write a checkpoint in which these sources say where they stand."""
        assert self.states is not None
        numbers = {name: k for k, name in enumerate(sources)}
        facts = {"clean": clean, "continuing": self.states.facts(), "sources": sources, "numbers": numbers}
        self.checkpoint = Loaded(Path("checkpoint"), facts, arrays or {}, None, None)

    def counts(self, name: str = "wire") -> tuple[float, ...]:
        """Gaps, their seconds, and states that were refused."""
        assert self.states is not None
        return tuple(value for _, _, value in self.states.samples([name]))


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path)
    yield found
    found.store.close()


def test_a_first_start_and_one_after_an_end_in_order_have_no_gap(life: Life) -> None:
    wire = Wire()
    assert life.start(wire) == [None]
    life.cut(clean=True, wire={"seq": 70})
    life.start(wire)
    assert (wire.seq, wire.opened[-1].gap) == (70, False)
    assert life.counts() == (0, 0, 0)
    assert life.out.getvalue() == ""


def test_after_any_other_end_numbers_begin_an_epoch_and_the_gap_is_counted(life: Life) -> None:
    wire = Wire()
    life.start(wire)
    life.cut(arrays={"source.wire.counts": np.arange(3)}, wire={"seq": 70, "more": 1})
    life.now += 90
    (state,) = life.start(wire)
    opened = wire.opened[-1]
    assert (opened.facts, list(opened.arrays), opened.gap) == ({"seq": EPOCH, "more": 1}, ["counts"], True)
    assert (state.facts, state.arrays) == ({"seq": EPOCH}, {})  # until the source says more
    assert life.counts() == (1, 90, 0)
    assert "source=wire since=2027-01-15T08:00:00+00:00 seconds=90.0" in life.out.getvalue()


def test_killed_before_it_ever_delivered_a_source_begins_an_epoch(life: Life) -> None:
    wire = Wire()
    life.start(wire)
    life.cut()  # the first checkpoint of all: no source has said anything
    life.checkpoint.facts["numbers"] = {"wire": 0}
    life.start(wire)
    assert wire.seq == EPOCH


@pytest.mark.parametrize("cut", [True, False])
def test_killed_again_and_again_no_epoch_comes_twice(life: Life, cut: bool) -> None:
    """Whether or not a run comes to its first checkpoint: what it had given by then nobody knows."""
    wire = Wire()
    life.start(wire)
    life.cut(wire={"seq": 5})
    seen = [0]
    for _ in range(5):
        life.start(wire)
        seen.append(wire.seq)
        if cut:
            life.cut(wire={"seq": wire.seq})
    assert seen == [k * EPOCH for k in range(6)]


def test_with_all_checkpoints_lost_the_store_knows_the_epoch(life: Life) -> None:
    wire = Wire()
    life.start(wire)
    life.cut(wire={"seq": 5})
    life.start(wire)
    life.checkpoint = None
    life.store.clock = lambda: int((NOW - 30) * 1e9)
    life.store.heartbeat()
    life.start(wire)
    assert wire.seq == 2 * EPOCH
    assert life.counts() == (1, 30, 0)


def test_on_a_full_disk_the_epoch_is_that_of_the_second(life: Life) -> None:
    """Nothing remembers it, so it must not be one that a later start takes."""
    wire = Wire()
    life.start(wire)
    life.cut(wire={"seq": 5})
    life.store.close()
    seen = []
    for _ in range(2):
        life.now += 1
        life.start(wire)
        seen.append(wire.seq)
    assert seen[0] % EPOCH == seen[1] % EPOCH == 0
    assert EPOCH < seen[0] < seen[1] < MAX_SEQ
    assert "could not be noted in the store" in life.out.getvalue()


def test_all_sources_of_a_run_share_an_epoch(life: Life) -> None:
    wires = Wire("a"), Wire("b")
    life.start(*wires)
    life.cut(a={"seq": 5}, b={"seq": 7 * EPOCH})
    life.start(*wires)
    assert [wire.seq for wire in wires] == [8 * EPOCH, 8 * EPOCH]


def test_a_source_that_comes_back_into_the_configuration_begins_an_epoch_without_a_gap(life: Life) -> None:
    first, second = Wire("first"), Wire("second")
    life.start(first)
    life.cut(clean=True, first={"seq": 9})
    life.start(first, second)
    assert second.opened == [None]  # it is new, and so is its number
    life.cut(clean=True, first={"seq": 9}, second={"seq": 4})
    life.checkpoint.facts["sources"].pop("first")  # it was left out of the configuration for a while
    life.start(first, second)
    assert (first.seq, second.seq) == (EPOCH, 4)
    assert life.counts("first") == life.counts("second") == (0, 0, 0)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "spoil", [{"seq": -1}, {"seq": MAX_SEQ}, {"seq": "7"}, {}, {"seq": 1 << 70}, {"seq": None}, {"seq": 3}]
)
def test_a_state_that_cannot_be_used_is_counted_and_the_source_begins_empty(
    life: Life, clean: bool, spoil: dict[str, Any]
) -> None:
    wire = Wire()
    life.start(wire)
    life.cut(clean=clean, arrays={"source.wire.spoiled": np.zeros(1)}, wire=spoil)
    life.start(wire)
    assert (wire.opened[-1].facts, wire.opened[-1].arrays) == ({"seq": EPOCH}, {})
    assert life.counts() == (not clean, 0, 1)
    assert "the saved state of a source cannot be used: the source begins empty" in life.out.getvalue()


def test_what_can_be_read_again_is_read_again_and_a_foreign_state_refused(life: Life) -> None:
    file = Wire("file", replayable=True)
    life.start(file)
    life.cut(file={"seq": 70})
    life.start(file)
    assert (file.seq, file.opened[-1].gap) == (70, False)
    assert life.counts("file") == (0, 0, 0)
    life.cut(arrays={"source.file.spoiled": np.zeros(1)}, file={"seq": 70})
    with pytest.raises(ModelError):
        life.start(file)


def test_nonsense_about_gaps_is_passed_over(life: Life) -> None:
    wire = Wire()
    life.start(wire)
    for nonsense in ({"epoch": -1}, [], {"time": 1e300}, {"sources": {"wire": {"gaps": "many"}}}):
        life.cut(wire={"seq": 5})
        life.checkpoint.facts["continuing"] = nonsense
        life.start(wire)
        assert wire.seq >= EPOCH


@given(st.integers(0, MAX_SEQ - (1 << 34)), st.integers(0, 1 << 31))
def test_the_next_epoch_is_above_all_that_was_given_since(seq: int, since: int) -> None:
    found = next_epoch(seq)
    assert found > seq + since - 1
    assert found % EPOCH == 0
    assert found - seq <= 2 * EPOCH


def test_what_was_told_of_lost_records_is_kept_apart(life: Life) -> None:
    """Clusters of theirs keep their numbers, and alerts that nobody knows any more are closed."""
    model = train_network(simulate(1000, seed=1).table(), seed=0)
    config = parse_config('[[source]]\nkind = "records"\npath = "-"\n[warmup]\nrecords = 0')
    before, after = Detector(model, config), Detector(model, config)
    table = simulate(300, seed=2, day=1, attacks=HELD_BACK).table()
    events = [e for o in before.take(0, Arrival(table, None, 0.0)) for e in o.events]
    life.store.save_events(events)
    classes = len(model.encoding.labels)
    life.store.save_clusters([msgspec.structs.replace(before.linker.clusters()[0], id=classes + 6)])
    open_before = {alert.id for alert in before.book.open_alerts}
    assert len(open_before) > 1
    assert life.store.newest_cluster() == classes + 6
    log = Log(stream=life.out)
    bridge_gap(after, life.store, log, all_lost=False)
    assert {alert.id for alert in life.store.alerts(state="open")} == open_before
    assert after.linker.counters()["clusters_opened_total"] == 7  # the next one is classes + 7
    bridge_gap(after, life.store, log, all_lost=True)
    assert life.store.alerts(state="open") == []
    life.store.close()
    bridge_gap(after, life.store, log, all_lost=True)
    assert "the store could not be asked" in life.out.getvalue()


def test_an_empty_store_changes_no_number(life: Life) -> None:
    model = load_shipped("flow")
    for partitions in (1, 4):
        linker = Linker(model, LinkerConfig(partitions=partitions))
        linker.number_clusters_after(life.store.newest_cluster())
        assert linker.counters()["clusters_opened_total"] == 0
        linker.number_clusters_after(len(model.encoding.labels))
        assert linker.counters()["clusters_opened_total"] == partitions


# The sources themselves


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("states") / "c.pcap"
    simulate_capture(path, hours=0.03, attacks="syn_flood", hosts=10)
    return path


@pytest.fixture(scope="module")
def flows(capture: Path) -> SourceState:
    """A state in the middle of a capture."""
    made = PacketFlows("flow", Counter())
    for block in CaptureFile(capture):
        made.feed(PacketBlock(block.data, block.index[: len(block) // 2], -1))
        break
    records = [arrival.table for arrival in made.arrivals()]
    assert sum(map(len, records)) == made.connections.seen > 10
    return SourceState({"seq": made.connections.seen}, made.state())


def test_after_a_gap_no_connection_is_open_and_what_was_counted_stays(flows: SourceState) -> None:
    seq = int(flows.facts["seq"])
    whole, rest = (PacketFlows("flow", Counter()) for _ in range(2))
    whole.restore(flows, seq)
    assert whole.open_flows > 0
    rest.restore(SourceState(flows.facts, flows.arrays, gap=True), EPOCH)
    assert (rest.open_flows, rest.connections.seen, rest.counters["records"]) == (0, EPOCH, EPOCH)
    kept = rest.connections.state()
    for name, array in whole.connections.state().items():
        assert name == "seen" or np.array_equal(kept[name], array)


def test_a_state_that_is_refused_changes_nothing(flows: SourceState) -> None:
    made = PacketFlows("flow", Counter())
    for spoiled in (
        SourceState(flows.facts, {n: a for n, a in flows.arrays.items() if n.startswith("connections.")}),
        SourceState(flows.facts, {n: a for n, a in flows.arrays.items() if n.startswith("table.")}),
    ):
        with pytest.raises(ModelError):
            made.restore(spoiled, int(flows.facts["seq"]))
        assert (made.open_flows, made.connections.seen) == (0, 0)
    made.restore(flows, int(flows.facts["seq"]))


def piped(path: str) -> Source:
    return CaptureSource("test", [path], "flow")


def listening(kind: str) -> Callable[[str], Source]:
    return lambda path: open_text_source(SourceConfig(kind=kind, name="test", path=path))  # type: ignore[arg-type]


def live(_: str) -> Source:
    return LiveSource("test", ["nowhere-netclust"], "flow")


EVERY = [piped, live, listening("records"), listening("zeek"), listening("eve")]


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("saved", [None, {"seq": 5}, {"seq": "5"}, {"seq": MAX_SEQ}, {}, {"seq": 5, "now": 1 << 99}])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("spoiled", [True, False])
def test_every_source_that_cannot_be_read_again_opens_whatever_was_saved(
    life: Life, make: Callable[[str], Source], saved: dict[str, Any] | None, clean: bool, spoiled: bool, tmp_path: Path
) -> None:
    if make is live:
        need_packet_sockets()
    path = "-" if make is piped else f"unix://{tmp_path}/socket"
    life.start(Wire("test"))
    life.cut(clean=clean, arrays={"source.test.clock": np.zeros(2)} if spoiled else {}, test=saved or {})
    if saved is None:
        life.checkpoint.facts["sources"].clear()
    source = make(path)
    assert not source.replayable
    try:
        (state,) = life.start(source)
    finally:
        source.close()
    assert state is not None
    assert state.facts["seq"] in ((5, EPOCH) if clean else (EPOCH,))


def test_a_live_source_without_its_interface_is_an_error_at_its_first_start_only() -> None:
    source = live("")
    with pytest.raises(InputError, match=r"there is no interface 'nowhere-netclust'|CAP_NET_RAW"):
        source.open(None)
