"""Calibration: the promised false-alarm rate holds on average, and what cannot be promised is refused."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.scoring.calibration import calibrate, threshold_for

LONG = bool(os.environ.get("NETCLUST_LONG"))
FUZZ = settings(max_examples=3000 if LONG else 200, deadline=None)


@pytest.mark.parametrize(("n", "rate"), [(19, 0.05), (99, 0.01), (100, 0.1), (250, 0.033), (7, 0.5), (3, 0.9)])
@pytest.mark.parametrize("ties", [False, True])
def test_false_alarms_are_as_promised_on_average(n: int, rate: float, ties: bool) -> None:
    rng = np.random.default_rng(5)
    draws = 20_000 if LONG else 2_000
    alarms = 0
    for _ in range(draws):
        scores = rng.normal(size=n + 1).astype(np.float32)
        if ties:
            scores = np.round(scores * 2) / 2
        alarms += bool(scores[-1] <= np.float32(calibrate(scores[:-1], rate).root))
    slack = 4 * np.sqrt(rate * (1 - rate) / draws)
    assert alarms / draws <= rate + slack
    if not ties:  # and not far fewer than could be had: k / (n + 1) is the exact chance
        assert alarms / draws >= np.floor(round((n + 1) * rate, 9)) / (n + 1) - slack


@FUZZ
@given(st.lists(st.integers(-3, 3) | st.floats(-1e6, 1e6, width=32), min_size=1, max_size=200), st.floats(0.001, 0.999))
def test_the_held_out_records_stay_within_the_rate(values: list[float], rate: float) -> None:
    scores = np.array(values, np.float32)
    try:
        c = calibrate(scores, rate)
    except InputError:
        assert (len(scores) + 1) * rate < 1 + 1e-9
        return
    assert (c.records, c.false_alarm_rate) == (len(scores), rate)
    assert c.obtained == (scores <= np.float32(c.root)).mean() <= rate
    # Just below a score that occurs: the root beats nothing that it ties with.
    above = scores[scores > np.float32(c.root)]
    assert np.nextafter(np.float32(c.root), np.float32(np.inf)) == above.min()
    assert np.float32(c.root) == c.root


@FUZZ
@given(st.floats(1e-6, 0.5) | st.integers(2, 20_000).map(lambda m: 1 / m))
def test_the_number_of_records_asked_for_is_exact(rate: float) -> None:
    with pytest.raises(InputError, match="needs at least") as caught:
        threshold_for([], rate)
    match = re.search(r"at least (\d+) held-out normal records, there are 0: choose a larger rate", str(caught.value))
    assert match
    need = int(match[1])
    scores = np.zeros(need)
    assert threshold_for(scores, rate) == 0
    with pytest.raises(InputError, match=f"at least {need} held-out normal records, there are {need - 1}"):
        threshold_for(scores[1:], rate)


@pytest.mark.parametrize(("n", "rate", "k"), [(99, 0.29, 29), (9, 0.3, 3), (9, 0.1, 1), (99, 0.07, 7), (999, 0.001, 1)])
def test_rounding_does_not_shift_the_threshold(n: int, rate: float, k: int) -> None:
    assert threshold_for(np.arange(1, n + 1)[::-1], rate) == k


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 1.5, float("nan"), float("inf")])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        threshold_for(np.arange(1000), rate)


def test_equal_scores_become_no_false_alarms() -> None:
    c = calibrate(np.full(100, 2.5, np.float32), 0.05)
    assert (c.obtained, c.root) == (0.0, float(np.nextafter(np.float32(2.5), np.float32(0))))


def test_a_score_finer_than_float32_stays_above_the_root() -> None:
    scores = np.full(20, 1 + 1e-12)
    c = calibrate(scores, 0.1)
    assert c.root < 1
    assert c.obtained == 0.0
