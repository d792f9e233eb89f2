"""The daemon under load: nothing is lost uncounted, memory does not grow, latency is bounded."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def soaks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """benchmarks/soak.py."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import soak

    return soak


def test_under_bursts_and_floods_no_record_is_lost_uncounted(soaks: Any, tmp_path: Path) -> None:
    found = soaks.soak(tmp_path, 6, 4000, quick=True)
    assert found["sent"] > 20_000
    assert found["sent"] == found["read"] == found["verdicts"] + found["shed"]
    assert found["input_errors"] == found["exit_code"] == 0
    assert found["memory"]["peak_mb"] < 2000
    assert found["checkpoints"]["failed"] == found["alerts"]["sink_errors"] == 0
    assert found["alerts"]["opened"] > 0


def test_what_input_outruns_is_shed_and_counted_and_what_is_judged_is_not_old(soaks: Any, tmp_path: Path) -> None:
    from loading import PinnedDaemon, balance, feed, latency_counts, make_pools, until_drained

    pools = make_pools(tmp_path, 4000, 1)
    small = "queue_records = 512\n"  # so that any machine is outrun
    with PinnedDaemon(tmp_path / "daemon", soaks.QUICK_SOCKET, settings=small) as daemon:
        daemon.ready()
        plan = [soaks.QUICK_WARM_UP, (1.5, 0, "flood"), (0.5, 0, "mixed")]
        sent = feed(daemon.feed_port, pools, plan).sent
        end = until_drained(daemon, sent)
        assert daemon.stop() == 0
    found = balance(end)
    assert found["read"] == sent
    assert found["verdicts"] > 0
    assert found["shed"] > 0
    counts = latency_counts(end)
    assert counts[10.0] == counts[math.inf]


@pytest.mark.parametrize(("mb_an_hour", "flat"), [(0.0, True), (0.5, True), (30.0, False), (-30.0, True)])
def test_memory_that_grows_is_told_from_memory_that_wobbles(soaks: Any, mb_an_hour: float, flat: bool) -> None:
    seconds = [10.0 * k for k in range(360)]
    sizes = [300 + mb_an_hour * s / 3600 + math.sin(s) for s in seconds]
    found = soaks.slope([(s, int(size * 2**20)) for s, size in zip(seconds, sizes, strict=True)])
    assert found["flat"] is flat
    assert found["slope_mb_per_hour"] == pytest.approx(mb_an_hour, abs=1.0)


@pytest.mark.long
def test_an_hour_at_twice_the_rated_input(soaks: Any, tmp_path: Path) -> None:
    found = soaks.soak(tmp_path, 3600, soaks.TIMES_RATED * soaks.RATED["records_per_second"])
    assert [name for name, holds in found["holds"].items() if not holds] == []
