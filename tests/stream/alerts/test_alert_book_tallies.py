"""Counts in bounded room."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from netclust.stream.alerts.alert_tallies import BUDGET, EXACT, KEPT, Budget, Tally


def tally_of(values: list[str], budget: Budget | None = None) -> Tally:
    tally, budget = Tally(), budget or Budget()
    for value in values:
        tally.add(value, 1, budget)
    return tally


@pytest.mark.parametrize("different", [0, 1, KEPT, 2 * KEPT, 2 * KEPT + 1, 1000, EXACT])
def test_different_values_are_not_miscounted_up_to_the_bound(different: int) -> None:
    assert tally_of([str(i) for i in range(different)] * 2).distinct == different


@pytest.mark.parametrize("different", [EXACT + 1, 10_000, 65_536, 300_000])
def test_beyond_the_bound_the_estimate_is_not_far_off(different: int) -> None:
    addresses = [f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(different)]
    assert abs(tally_of(addresses).distinct / different - 1) < 0.07


def test_a_frequent_value_is_not_lost_among_many_rare_ones() -> None:
    random = np.random.default_rng(3)
    values = [f"rare {i}" for i in range(20_000)]
    for at in random.integers(0, 20_000, 2000):
        values.insert(int(at), "frequent")
    tally = tally_of(values)
    (first,) = tally.top(1)
    assert first.value == "frequent"
    assert first.records > 1800
    assert len(tally.counts) <= 2 * KEPT


def test_exact_counting_does_not_use_more_than_its_budget_and_gives_it_back() -> None:
    budget = Budget(3000)
    tallies = [tally_of([str(i) for i in range(1000)], budget) for _ in range(6)]
    assert budget.left >= 0
    assert sum(len(tally.seen or ()) for tally in tallies) + budget.left == 3000
    assert all(abs(tally.distinct - 1000) < 100 for tally in tallies)
    for tally in tallies:
        tally.release(budget)
    assert budget.left == 3000
    assert Budget().left == BUDGET


@pytest.mark.parametrize("cut", [10, 200, 4000, 6000])
def test_a_tally_goes_on_after_json_as_if_nothing_had_been(cut: int) -> None:
    values = [str(i * i % 7919) for i in range(9000)]
    whole = tally_of(values)
    part = msgspec.convert(msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(tally_of(values[:cut])))), Tally)
    for value in values[cut:]:
        part.add(value, 1, Budget())
    assert part == whole
    assert list(part.counts) == list(whole.counts)
