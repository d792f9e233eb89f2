"""Neither batches nor restarts make a difference to what is told; traffic time, and state that is not ours."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from alert_rows import SECOND, START, Record, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_alert_book import address, book_of

from netclust.errors import InputError
from netclust.stream.alerts import alert_groups, alert_limits, alert_tallies, traffic_clock
from netclust.stream.alerts.alert_book import AlertBook
from netclust.stream.alerts.alert_events import AlertEvent
from netclust.stream.alerts.suppression import SuppressionSet, suppression_of
from netclust.stream.alerts.traffic_clock import FAR_BEHIND, IN_SUCCESSION, TrafficClock
from netclust.stream.config import AlertConfig, SuppressConfig

HOUR = 3600.0


@contextmanager
def small_bounds() -> Iterator[None]:
    """Every bound is met in a short stream."""
    with ExitStack() as stack:
        for module, name, value in (
            (alert_tallies, "KEPT", 2), (alert_tallies, "EXACT", 6), (alert_groups, "FEW", 2),
            (alert_groups, "LOUD", 3), (alert_groups, "MOST", 3), (alert_limits, "REMEMBERED", 3),
            (traffic_clock, "IN_SUCCESSION", 3),
        ):  # fmt: skip
            stack.enter_context(patch.object(module, name, value))
        yield


bursts = st.tuples(
    st.sampled_from(["flood", "spoofed", "scan", "noise", "bare", "late"]),
    st.integers(1, 20),  # records
    st.sampled_from([0.001, 1.0, 20.0, 70.0]),  # seconds between them
    st.sampled_from([0.0, 70.0, 310.0, 700.0, 2 * HOUR, -3 * HOUR]),  # and after them
    st.sampled_from(["", "", "scan", "flood"]),
    st.integers(0, 3),
)
Burst = tuple[str, int, float, float, str, int]
configs = st.builds(
    AlertConfig,
    quiet_seconds=st.sampled_from([0.0, 60.0, 300.0]),
    cooldown_seconds=st.sampled_from([0.0, 600.0]),
    max_per_hour=st.sampled_from([0, 3, 60]),
    max_open=st.sampled_from([1, 4, 4096]),
    reminder_interval=st.sampled_from([0.0, 60.0]),
    min_severity=st.sampled_from(["low", "medium"]),
    min_records=st.sampled_from([1, 3]),
)


def stream_of(drawn: list[Burst]) -> list[Record]:
    """Bursts of records; the kind of a burst says which of its ends and times vary."""
    now, records = 5 * HOUR, []
    random = np.random.default_rng(len(drawn))
    for kind, count, step, after, label, host in drawn:
        for _ in range(count):
            spread = int(random.integers(20, 40))
            source = address(spread if kind in ("spoofed", "noise") else host)
            destination = address(100 + (spread if kind in ("scan", "noise") else host))
            bare = kind == "bare"
            late = 0.0 if kind != "late" else 2 * HOUR if host == 3 else 5.0
            at = max(now - late, 0.0)
            records.append(
                Record(
                    None if bare and host == 0 else at,
                    None if bare and host < 3 else source,
                    None if bare and host < 2 else destination,
                    int(random.integers(0, 13)),
                    label,
                    int(random.integers(5, 8)),
                    float(2 ** random.geometric(0.4)),
                    "udp" if random.random() < 0.1 else "tcp",
                )
            )
            now += step
        now = max(now + after, 0.0)
    return records


def new_book(config: AlertConfig) -> AlertBook:
    book = AlertBook(config, source_names=["wire"], categories={"flood": "dos"})
    book.suppressions = SuppressionSet(
        [
            suppression_of(SuppressConfig(reason="a", source=address(8), until="2023-11-15T06:00:00Z")),
            suppression_of(SuppressConfig(reason="b", attribute="protocol=udp", port=12)),
        ]
    )
    return book


def told(events: list[AlertEvent]) -> list[bytes]:
    return [msgspec.json.encode(event) for event in events]


@settings(max_examples=200, deadline=None)
@given(drawn=st.lists(bursts, max_size=14), cuts=st.sets(st.integers(0, 120), max_size=12), config=configs)
def test_neither_batches_nor_a_restart_anywhere_change_what_is_told(
    drawn: list[Burst],
    cuts: set[int],
    config: AlertConfig,
) -> None:
    records = stream_of(drawn)
    with small_bounds():
        whole = new_book(config)
        expected = told(whole.take(rows_of(records)))
        book, events = new_book(config), []
        bounds = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
        for start, stop in itertools.pairwise(bounds):
            saved = msgspec.json.encode(book.state())
            book = new_book(config)
            book.restore(msgspec.json.decode(saved))
            events += told(book.take(rows_of(records[start:stop], first=start)))
        assert events == expected
        assert book.counters == whole.counters
        assert told(book.open_alerts) == told(whole.open_alerts)  # type: ignore[arg-type]
        assert told(book.close_all()) == told(whole.close_all())


@settings(max_examples=60, deadline=None)
@given(drawn=st.lists(bursts, max_size=14), config=configs)
def test_letting_time_pass_between_records_does_not_change_what_is_told(
    drawn: list[Burst], config: AlertConfig
) -> None:
    records = stream_of(drawn)
    clock = TrafficClock().run(rows_of(records).time) if records else np.zeros(0, np.int64)
    seconds = [(int(now) - START) / SECOND if now >= 0 else -START / SECOND for now in clock]
    with small_bounds():
        whole, book = new_book(config), new_book(config)
        expected = told(whole.take(rows_of(records, clock=seconds)))
        events: list[bytes] = []
        for i, record in enumerate(records):
            events += told(book.take(rows_of([record], first=i, clock=seconds[i : i + 1])))
            then = int(clock[min(i + 1, len(clock) - 1)])
            for now in (clock[i], clock[i] + (then - clock[i]) // 2) if then >= clock[i] else (clock[i],):
                events += told(book.advance(int(now)))
        assert events == expected


@settings(max_examples=100, deadline=None)
@given(drawn=st.lists(bursts, max_size=14), config=configs)
def test_every_alert_is_opened_once_updated_in_order_and_closed_once(drawn: list[Burst], config: AlertConfig) -> None:
    with small_bounds():
        book = new_book(config)
        events = book.take(rows_of(stream_of(drawn))) + book.close_all()
    seen: dict[str, int] = {}
    ended: set[str] = set()
    for event in events:
        number = seen.get(event.alert.id, -1) + 1
        assert (event.action == "open") == (number == 0)
        assert event.alert.update == number
        assert event.alert.id not in ended
        seen[event.alert.id] = number
        if event.action == "close":
            ended.add(event.alert.id)
    assert ended == set(seen)
    counters = book.counters
    assert sum(counters.closed.values()) == sum(sum(c.values()) for c in counters.opened.values()) == len(seen)
    in_alerts = sum(e.alert.records for e in events if e.action == "close" and e.alert.label != "rate limit")
    held = counters.suppressed_records
    assert in_alerts + sum(held.values()) >= counters.records  # what was held back and then told is in both
    assert in_alerts + held.get("rule", 0) <= counters.records


def test_a_checkpoint_of_many_addresses_is_bounded() -> None:
    book = book_of()
    n = 5000
    labels = [f"attack {i}" for i in range(20)]
    for k, label in enumerate(labels):
        book.take(rows_of([Record(0, "10.0.0.1", address(i), i % 65_536, label) for i in range(n)], first=k * n))
    saved = msgspec.json.encode(book.state())
    assert len(saved) < len(labels) * 16_384
    again = book_of()
    again.restore(msgspec.json.decode(saved))
    assert msgspec.json.decode(msgspec.json.encode(again.state())) == msgspec.json.decode(saved)


@pytest.mark.parametrize("state", [{}, {"version": 1}, {"now": "x"}])
def test_a_state_that_is_not_ours_is_refused_with_a_reason(state: dict[str, object]) -> None:
    with pytest.raises(InputError, match="alerts of a checkpoint"):
        book_of().restore(state)


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(InputError, match="version 2: this release reads 1"):
        book_of().restore({**book_of().state(), "version": 2})


def test_registers_of_another_size_are_refused() -> None:
    book = book_of()
    book.take(rows_of([Record(0, "10.0.0.1", address(i)) for i in range(5000)]))
    state = book.state()
    state["episodes"][0]["destinations"]["registers"] = "AAAA"
    with pytest.raises(InputError, match="registers"):
        book_of().restore(state)


def test_one_record_from_the_far_future_does_not_stop_the_clock_for_good() -> None:
    book = book_of(quiet_seconds=60)
    book.take(rows_of([Record(1e9, "10.0.0.1", "192.0.2.1")]))
    later = [Record(i, "10.0.0.2", "192.0.2.2") for i in range(IN_SUCCESSION + 1)]
    book.take(rows_of(later, first=1))
    assert book.counters.clock_set_back == 1
    closed = book.advance(START + (IN_SUCCESSION + 100) * SECOND)
    assert [event.alert.closed_by for event in closed] == ["quiet", "quiet"]


def test_an_alert_without_times_does_not_close_when_the_clock_starts() -> None:
    book = book_of(quiet_seconds=60)
    book.take(rows_of([Record(None, "10.0.0.1", "192.0.2.1")]))
    assert book.advance(-1) == []
    assert book.advance(START) == []
    assert len(book.advance(START + 61 * SECOND)) == 1


@settings(max_examples=200, deadline=None)
@given(
    times=st.lists(st.sampled_from([-1, 0, 5, FAR_BEHIND, FAR_BEHIND + 6, 3 * FAR_BEHIND]), max_size=200),
    cut=st.integers(0, 200),
)
def test_the_clock_does_not_depend_on_batches(times: list[int], cut: int) -> None:
    with patch.object(traffic_clock, "IN_SUCCESSION", 4):
        array = np.array(times, np.int64)
        one, two, each = TrafficClock(), TrafficClock(), TrafficClock()
        whole = one.run(array).tolist()
        assert two.run(array[:cut]).tolist() + two.run(array[cut:]).tolist() == whole
        assert [int(each.run(array[i : i + 1])[0]) for i in range(len(array))] == whole
        assert one == two == each
