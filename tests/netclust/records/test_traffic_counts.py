"""Traffic attributes kept up to date record by record, against counting everything again for every record."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netclust.kernels.packets import traffic
from netclust.records.traffic_counts import (
    REJECT_ERRORS,
    SYN_ERRORS,
    SlidingCounts,
    TrafficCounts,
    error_class,
    traffic_attributes,
    traffic_key,
)

SECOND = 10**9
FLAGS = ["SF", "S0", "S1", "SH", "REJ", "RSTO", "RSTRH", "OTH"]

Row = tuple[int, int, int, int, str]
rows = st.lists(
    st.tuples(
        st.integers(0, 60), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from(FLAGS)
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip


def counted_again(stream: list[Row], spread: int) -> list[dict[str, float]]:
    """The definitions, word by word."""
    found = []
    for i, (time, host, service, port, _) in enumerate(stream):
        row: dict[str, float] = {}
        recent = [r for r in stream[: i + 1] if time - 2 * SECOND // spread < r[0] <= time]
        last = stream[max(i - 254, 0) : i + 1]
        for prefix, window in (("", recent), ("dst_host_", last)):
            same_host = [r for r in window if r[1] == host]
            same_service = [r for r in window if r[2] == service]

            def rate(part: list[Row], whole: list[Row]) -> float:
                return float(np.round(len(part) / len(whole), 2))

            def failed(window: list[Row], names: tuple[str, ...]) -> list[Row]:
                return [r for r in window if r[4] in names]

            row[f"{prefix}count"] = min(len(same_host), 511)
            row[f"{prefix}srv_count"] = min(len(same_service), 511)
            row[f"{prefix}serror_rate"] = rate(failed(same_host, SYN_ERRORS), same_host)
            row[f"{prefix}srv_serror_rate"] = rate(failed(same_service, SYN_ERRORS), same_service)
            row[f"{prefix}rerror_rate"] = rate(failed(same_host, REJECT_ERRORS), same_host)
            row[f"{prefix}srv_rerror_rate"] = rate(failed(same_service, REJECT_ERRORS), same_service)
            row[f"{prefix}same_srv_rate"] = rate([r for r in same_host if r[2] == service], same_host)
            row[f"{prefix}diff_srv_rate"] = rate([r for r in same_host if r[2] != service], same_host)
            row[f"{prefix}srv_diff_host_rate"] = rate([r for r in same_service if r[1] != host], same_service)
        same_host = [r for r in last if r[1] == host]
        row["dst_host_same_src_port_rate"] = float(
            np.round(len([r for r in same_host if r[3] == port]) / len(same_host), 2)
        )
        found.append(row)
    return found


def columns(stream: list[Row], spread: int) -> dict[str, Any]:
    time, host, service, port, flag = (np.array(column) for column in zip(*stream, strict=True))
    return {"time": time * spread, "host": [host], "service": service, "port": port, "error": error_class(flag)}


@given(rows, st.integers(1, 60))
def test_attributes_equal_counting_again(script: list[Row], size: int) -> None:
    spread = SECOND // 10  # so that records are exactly 2 seconds apart
    stream = sorted(script, key=lambda row: row[0])
    counts = TrafficCounts(longest=64)
    parts = []
    for at in range(0, len(stream), size):  # however the stream is cut
        given_columns = columns(stream[at : at + size], spread)
        parts.append(counts.add(given_columns.pop("time"), **given_columns))
    expected = counted_again([(t * spread, *rest) for t, *rest in stream], 1)
    assert set(expected[0]) == set(parts[0])
    for name in expected[0]:
        got = np.concatenate([part[name] for part in parts]).tolist()
        assert got == [row[name] for row in expected], name


def test_attributes_of_a_long_stream_equal_counting_again() -> None:
    rng = np.random.default_rng(1)
    stream = [
        (int(t), int(h), int(s), int(p), str(f))
        for t, h, s, p, f in zip(
            np.sort(rng.integers(0, 30 * SECOND, 1200)), rng.zipf(1.5, 1200) % 40, rng.integers(0, 9, 1200),
            rng.integers(0, 5, 1200), rng.choice(FLAGS, 1200), strict=True,
        )
    ]  # fmt: skip
    time, host, service, port, flag = (np.array(column) for column in zip(*stream, strict=True))
    got = traffic_attributes(time, host=host, service=service, port=port, flag=flag)
    expected = counted_again(stream, 1)
    for name in expected[0]:
        assert got[name].tolist() == [row[name] for row in expected], name


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=50))
def test_distinct_keys_are_counted(script: list[tuple[int, int, int]]) -> None:
    stream = sorted(script)
    time, source, target = (np.array(column) for column in zip(*stream, strict=True))
    keys = np.stack([traffic_key(source, salt=1), traffic_key(source, target, salt=2)], axis=1)
    counts = SlidingCounts(2, 10, 64, {1: (0, 0)}).add(time, keys, np.zeros(len(time), np.uint8))
    for i in range(len(stream)):
        window = [row for row in stream[: i + 1] if row[0] > stream[i][0] - 10 and row[1] == stream[i][1]]
        assert counts[i, 0, traffic.ALL] == len(window)
        assert counts[i, 0, traffic.DISTINCT] == len({row[2] for row in window})


def test_records_lost_from_a_small_window_are_counted() -> None:
    counts = SlidingCounts(1, 100, 8)
    keys = traffic_key(np.zeros(20), salt=0)[:, None]
    got = counts.add(np.arange(20), keys, np.zeros(20, np.uint8))[:, 0, traffic.ALL]
    assert got.tolist() == [*range(1, 9), *[8] * 12]
    assert counts.dropped == 12


def test_a_clock_set_back_drops_records_of_the_future() -> None:
    counts = SlidingCounts(1, 100, 8)
    keys = traffic_key(np.zeros(3), salt=0)[:, None]
    assert counts.add(np.array([1000, 5, 6]), keys, np.zeros(3, np.uint8))[:, 0, 0].tolist() == [1, 1, 2]


def test_the_table_is_empty_when_all_have_left() -> None:
    counts = SlidingCounts(2, 10, 64)
    rng = np.random.default_rng(0)
    keys = np.stack([traffic_key(rng.integers(0, 50, 500), salt=k) for k in range(2)], axis=1)
    counts.add(np.sort(rng.integers(0, 400, 500)), keys, rng.integers(0, 3, 500).astype(np.uint8))
    last = traffic_key(np.array([7]), salt=9)[:, None].repeat(2, axis=1)
    last[:, 1] = traffic_key(np.array([7]), salt=10)
    counts.add(np.array([10**6]), last, np.zeros(1, np.uint8))
    assert np.count_nonzero(counts._table[0]) == 2
    assert counts._table[1].sum() == 2


def _gaps_one_by_one(times: list[int], alpha: float) -> list[tuple[float, float, float]]:
    """The twin of repeat_gaps for one key."""
    found, mean, variance, seen, last = [], 0.0, 0.0, 0, None
    for time in times:
        if last is None:
            found.append((-1.0, 0.0, 0.0))
        else:
            gap = max(time - last, 0) * 1e-9
            delta = gap - mean
            mean = gap if seen == 0 else mean + alpha * delta
            variance = 0.0 if seen == 0 else (1 - alpha) * (variance + alpha * delta * delta)
            regular = max(1 - np.sqrt(variance) / mean, 0.0) if seen >= 2 and mean > 0 else 0.0
            seen += 1
            found.append((gap, regular, float(seen)))
        last = time if last is None else max(last, time)
    return found


@given(st.lists(st.integers(0, 10**11), min_size=1, max_size=30))
def test_regularity_follows_its_definition(times: list[int]) -> None:
    out = np.zeros((len(times), 3))
    keys = np.full(len(times), 12345, np.uint64)
    state = np.zeros(16, np.uint64), np.zeros(16, np.int64), np.zeros((16, 3))
    traffic.repeat_gaps(np.array(times), keys, 0.2, *state, out)
    assert out.tolist() == [list(row) for row in _gaps_one_by_one(times, 0.2)]


def test_a_beacon_is_regular() -> None:
    def regularity(times: Any) -> float:
        out = np.zeros((len(times), 3))
        state = np.zeros(16, np.uint64), np.zeros(16, np.int64), np.zeros((16, 3))
        traffic.repeat_gaps(np.asarray(times, np.int64), np.full(len(times), 7, np.uint64), 0.2, *state, out)
        return float(out[-1, 1])

    rng = np.random.default_rng(0)
    assert regularity(np.arange(50) * 2 * SECOND) == 1.0
    assert regularity(np.cumsum(rng.exponential(2, 50)) * SECOND) < 0.6
