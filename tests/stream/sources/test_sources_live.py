"""Interfaces as a source, between two namespaces of the test's own: it outlives its interface, flows outlive it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from namespaces import Link, inside, ip, joined_or_skip, make_again
from needed import need_filters

from netclust.errors import InputError, ModelError
from netclust.foundation.container import pack_container, unpack_container
from netclust.stream.packets import live as capturing
from netclust.stream.packets.flow_table import FlowTimeouts
from netclust.stream.sources.base import Arrival, SourceState
from netclust.stream.sources.live import LiveSource

pytestmark = pytest.mark.system

link = pytest.fixture(joined_or_skip)

KIND = "netclust.test"
GIVE_UP_SECONDS = 15


class Watching:
    """A source in a thread of namespace b, and what came from it."""

    def __init__(self, link: Link, state: SourceState | None = None, **options: Any) -> None:
        need_filters()
        options = {"bpf": "udp", "ring_bytes": 1 << 20} | options
        self.source = LiveSource("test", ["vb"], "flow", **options)
        self.arrivals: list[Arrival] = []
        self.errors: list[BaseException] = []
        inside(link.b, lambda: self.source.open(state))
        self.thread = threading.Thread(target=inside, args=(link.b, self._run), daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.arrivals.extend(self.source)
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.source.close()

    def records(self) -> list[dict[str, float]]:
        names = [a.name for a in self.source.schema.numeric]
        return [dict(zip(names, row, strict=True)) for a in list(self.arrivals) for row in a.table.num.tolist()]

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not reached() and not self.errors and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.errors == []
        assert reached()

    def stopped(self) -> SourceState:
        """Its last state, as it comes back from a file."""
        self.source.stop()
        self.thread.join(GIVE_UP_SECONDS)
        assert not self.thread.is_alive()
        state = self.arrivals[-1].state
        assert state is not None
        arrays, facts = unpack_container(pack_container(KIND, state.arrays, state.facts), KIND, "test")
        return SourceState(facts, arrays)


def refuse() -> Any:
    raise InputError("no rights")


@pytest.mark.parametrize("promiscuous", [False, True])
def test_a_vanished_interface_is_found_again(link: Link, monkeypatch: pytest.MonkeyPatch, promiscuous: bool) -> None:
    watching = Watching(link, promiscuous=promiscuous)
    monkeypatch.setattr(capturing, "_packet_socket", refuse)  # rights were given up
    link.send(3)
    watching.until(lambda: watching.source.counters["packets"] == 4)
    ip("-n", link.b, "link", "del", "vb")
    watching.until(lambda: "there is no interface 'vb'" in watching.source.trouble)
    before = len(watching.arrivals)
    watching.until(lambda: len(watching.arrivals) > before + 3)
    make_again(link)
    watching.until(lambda: watching.source.trouble == "")
    link.send(5)
    watching.until(lambda: watching.source.counters["packets"] == 10)
    if promiscuous:
        assert "promiscuity 1" in ip("-n", link.b, "-d", "link", "show", "vb")
    watching.stopped()
    counters = watching.source.counters
    assert (counters["interface_lost"], counters["interface_removed"]) == (1, 1)
    assert (counters["kernel_packets"], counters["kernel_drops"]) == (10, 0)


def test_an_interface_that_is_down_is_counted(link: Link) -> None:
    watching = Watching(link)
    ip("-n", link.b, "link", "set", "vb", "down")
    watching.until(lambda: "vb is down" in watching.source.trouble)
    ip("-n", link.b, "link", "set", "vb", "up")
    watching.until(lambda: watching.source.trouble == "")
    ip("-n", link.b, "route", "replace", "10.77.0.0/24", "dev", "vb")
    link.send(2)
    watching.until(lambda: watching.source.counters["packets"] == 3)
    watching.stopped()
    assert watching.source.counters["interface_lost"] == 1


@pytest.mark.story
def test_open_connections_survive_a_restart(link: Link) -> None:
    timeouts = FlowTimeouts(idle=4)
    with link.udp(link.a) as sock:
        sock.bind(("10.77.0.1", 5555))
        first = Watching(link, timeouts=timeouts)
        for _ in range(3):
            sock.sendto(b"x" * 100, ("10.77.0.2", 9999))
        first.until(lambda: first.source.counters["packets"] == 3)
        first.until(lambda: first.source.open_flows == 1)  # counted before they are followed
        state = first.stopped()
        assert first.records() == []
        second = Watching(link, state, timeouts=timeouts)
        assert second.source.open_flows == 1
        for _ in range(4):
            sock.sendto(b"x" * 100, ("10.77.0.2", 9999))
        # Nothing comes any more: it falls due by the clock.
        second.until(lambda: len(second.records()) == 1)
        after = second.stopped()
    (record,) = second.records()
    assert (record["orig_packets"], record["orig_bytes"]) == (7, 700)
    assert after.facts == {"seq": 1}
    assert second.source.counters["flows"] == 1


def test_a_quiet_link_gets_ticks(link: Link) -> None:
    watching = Watching(link)
    watching.until(lambda: len(watching.arrivals) >= 4)
    watching.source.want_state()
    before = len(watching.arrivals)
    watching.until(lambda: any(a.state is not None for a in watching.arrivals[before:]))
    state = watching.stopped()
    assert all(a.now > 0 for a in watching.arrivals)
    assert state.facts == {"seq": 0}


def test_names_of_counters_are_there_from_the_start(link: Link) -> None:
    watching = Watching(link)
    names = set(LiveSource("test", ["vb"], "flow").counters)
    link.send(3)
    watching.until(lambda: watching.source.counters["packets"] == 4)
    watching.stopped()
    assert set(watching.source.counters) == names
    assert watching.source.counters["bytes"] == 3 * 142 + 45


def test_an_interface_that_is_not_there_and_a_foreign_state_are_refused(link: Link) -> None:
    missing = LiveSource("test", ["nowhere"], "flow")
    with pytest.raises(InputError, match="there is no interface 'nowhere'"):
        inside(link.b, lambda: missing.open(None))
    missing.close()
    state = Watching(link).stopped()
    one = {name: array for name, array in state.arrays.items() if name.startswith("table.")}
    for spoiled in (
        SourceState({}, state.arrays),
        SourceState({"seq": 5}, state.arrays),
        SourceState(state.facts, one),
    ):
        with pytest.raises(ModelError):
            LiveSource("test", ["vb"], "flow").open(spoiled)
    with pytest.raises(ModelError, match="max_flows was 131072, it is 64"):
        LiveSource("test", ["vb"], "flow", max_flows=64).open(state)
