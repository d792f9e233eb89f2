"""Token buckets: nobody gets more than they hold, nobody waits longer than told, and they do not grow."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.stream.http.rate_limits import (
    ADDRESSES,
    ALL_WRONG_BURST,
    WRITE_BURST,
    WRITES_PER_SECOND,
    WRONG_BURST,
    RequestLimits,
    address_block,
)
from netclust.stream.token_bucket import Bucket


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(clock: Clock) -> RequestLimits:
    return RequestLimits(clock)


def guess(limits: RequestLimits, address: str) -> bool:
    """Whether a wrong token was compared."""
    if limits.wait_to_try(address):
        return False
    limits.note_wrong(address)
    return True


@given(
    burst=st.integers(1, 50),
    per_second=st.floats(0.01, 100),
    pauses=st.lists(st.floats(0, 30), min_size=1, max_size=200),
)
def test_a_bucket_gives_no_more_than_it_holds(burst: int, per_second: float, pauses: list[float]) -> None:
    bucket, now, taken = Bucket(burst, per_second, now=0.0), 0.0, 0
    for pause in pauses:
        now += pause
        wait = bucket.wait(now)
        if bucket.take(now):
            taken += 1
        else:
            assert 0 < wait <= 1 / per_second + 1e-6
            assert bucket.take(now + wait)  # as told
            taken, now = taken + 1, now + wait
        assert taken <= burst + now * per_second + 1e-3


def test_a_clock_that_stands_or_turns_back_gives_no_more(limits: RequestLimits, clock: Clock) -> None:
    assert [guess(limits, "10.0.0.1") for _ in range(WRONG_BURST + 1)] == [True] * WRONG_BURST + [False]
    clock.now -= 500.0
    assert not guess(limits, "10.0.0.1")


@given(pauses=st.lists(st.floats(0, 20), min_size=1, max_size=300))
def test_patient_guessing_is_slowed(pauses: list[float]) -> None:
    clock = Clock()
    limits, compared = RequestLimits(clock), 0
    for pause in pauses:
        clock.now += pause
        compared += guess(limits, "10.0.0.1")
    assert compared <= WRONG_BURST + (clock.now - 1000.0) / 6 + 1e-3


def test_whoever_waits_as_advised_is_let_in(limits: RequestLimits, clock: Clock) -> None:
    for _ in range(WRONG_BURST):
        guess(limits, "10.0.0.1")
    for _ in range(50):
        clock.now += limits.wait_to_try("10.0.0.1")
        assert guess(limits, "10.0.0.1")


def test_guessing_from_many_addresses_is_slowed(limits: RequestLimits, clock: Clock) -> None:
    addresses = [f"10.0.0.{number}" for number in range(50)]
    for _ in range(2):
        assert all(guess(limits, address) for address in addresses)
    assert ALL_WRONG_BURST == 100
    assert not any(guess(limits, address) for address in addresses)
    assert limits.wait_to_try("10.9.9.9") == 0  # who has not failed is not locked out
    clock.now += 1.0
    assert sum(guess(limits, address) for address in addresses) == 2
    clock.now += 120.0
    assert all(guess(limits, address) for address in addresses)


def test_remembered_addresses_are_bounded(limits: RequestLimits, clock: Clock) -> None:
    for number in range(3 * ADDRESSES):
        limits.note_wrong(f"10.1.{number >> 8}.{number & 255}")
    assert len(limits._wrong) == ADDRESSES
    assert limits.wait_to_try("10.1.0.0") == 0  # forgotten
    assert limits.wait_to_try("10.1.11.255") > 0
    clock.now += 3600.0
    assert limits.wait_to_try("10.1.11.255") == 0
    assert len(limits._wrong) == ADDRESSES - 1  # and forgiven


def test_an_ipv6_host_gains_nothing_by_another_of_its_addresses(limits: RequestLimits) -> None:
    assert [guess(limits, f"2001:db8::{number:x}") for number in range(11)] == [True] * 10 + [False]
    assert guess(limits, "2001:db8:0:1::1")
    assert address_block("fe80::1%eth0") == address_block("fe80::2") == "fe80::/64"
    assert address_block("::ffff:10.0.0.1") == address_block("10.0.0.1")


@given(st.text(max_size=100))
def test_an_address_that_is_none_is_counted(address: str) -> None:
    assert len(address_block(address)) <= 64
    assert guess(RequestLimits(), address)


def test_changes_are_bounded(limits: RequestLimits, clock: Clock) -> None:
    assert [limits.wait_to_write() for _ in range(WRITE_BURST + 1)] == [0] * WRITE_BURST + [1]
    clock.now += 1.0
    assert [limits.wait_to_write() for _ in range(21)].count(0) == WRITES_PER_SECOND


def test_a_flood_of_requests_is_no_flood_of_lines(
    limits: RequestLimits, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "netclust.http"):
        for _ in range(WRITE_BURST * 2):
            limits.wait_to_write()
            guess(limits, "10.0.0.1")
        assert len(caplog.records) == 2  # one of each kind
        clock.now += 59.0
        for _ in range(WRITE_BURST * 2):
            limits.wait_to_write()
            guess(limits, "10.0.0.1")
        assert len(caplog.records) == 2
        clock.now += 1.0
        for _ in range(5):
            guess(limits, "10.0.0.1")
    assert len(caplog.records) == 3
