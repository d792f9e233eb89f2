"""Traffic time: the newest time seen, unless many records in succession say otherwise; the same in any cut."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netclust.stream.alerts.traffic_clock import FAR_BEHIND, IN_SUCCESSION, TrafficClock

NOON = 10**18


def run(clock: TrafficClock, times: list[int]) -> list[int]:
    return clock.run(np.array(times, np.int64)).tolist()


def plain(times: list[int]) -> list[int]:
    """The rule, record by record."""
    now, behind, found = -1, [], []
    for time in times:
        if time >= 0 and now - time <= FAR_BEHIND:
            now, behind = max(now, time), []
        elif time >= 0:
            behind.append(time)
            if len(behind) == IN_SUCCESSION:
                now, behind = max(behind), []
        found.append(now)
    return found


FEW = st.sampled_from([-1, NOON, NOON + 5, NOON - FAR_BEHIND, NOON - FAR_BEHIND - 1, NOON - 2 * FAR_BEHIND, 7])


@given(st.lists(st.tuples(FEW, st.integers(1, IN_SUCCESSION)), max_size=8), st.lists(st.integers(0, 300), max_size=5))
def test_any_cut_gives_the_time_of_the_plain_rule(blocks: list[tuple[int, int]], cuts: list[int]) -> None:
    times = [time for time, count in blocks for _ in range(count)]
    clock, found = TrafficClock(), []
    ends = [0, *sorted(min(cut, len(times)) for cut in cuts), len(times)]
    for begin, end in itertools.pairwise(ends):
        found += run(clock, times[begin:end])
    assert found == plain(times)
    assert clock.now == (found[-1] if found else -1)


def test_before_any_time_the_clock_shows_none_and_records_without_one_change_nothing() -> None:
    clock = TrafficClock()
    assert run(clock, []) == []
    assert run(clock, [-1, -1]) == [-1, -1]
    assert run(clock, [0, -1, 5, 3]) == [0, 0, 5, 5]
    assert clock == TrafficClock(now=5)


def test_a_record_exactly_an_hour_behind_agrees_with_the_clock() -> None:
    clock = TrafficClock()
    run(clock, [NOON, NOON - FAR_BEHIND])
    assert clock == TrafficClock(now=NOON)
    run(clock, [NOON - FAR_BEHIND - 1])
    assert clock == TrafficClock(now=NOON, behind=1, newest_behind=NOON - FAR_BEHIND - 1)


def test_many_in_succession_set_the_clock_back_to_the_newest_of_them() -> None:
    clock = TrafficClock()
    run(clock, [NOON])
    assert set(run(clock, [9] + [7] * (IN_SUCCESSION - 2))) == {NOON}
    assert run(clock, [7]) == [9]
    assert clock == TrafficClock(now=9, steps=1)


def test_one_that_agrees_with_the_clock_between_them_begins_the_count_again() -> None:
    clock = TrafficClock()
    run(clock, [NOON])
    for between in ([NOON], [NOON - 1, -1], [NOON + 1]):
        run(clock, [7] * (IN_SUCCESSION - 1))
        run(clock, between)
        assert (clock.behind, clock.newest_behind) == (0, -1)
    run(clock, [7] * (IN_SUCCESSION - 1))
    run(clock, [-1, -1])  # says nothing either way
    assert clock.behind == IN_SUCCESSION - 1
    assert run(clock, [7]) == [7]
    assert clock.steps == 1
