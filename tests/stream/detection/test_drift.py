"""Drift: a change is told, a quiet stream is not, and neither batches nor restarts matter."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.linking.verdicts import NOVEL, ROOT, WINDOW, Verdicts
from netclust.stream.alerts.alert_events import Notice
from netclust.stream.detection.drift import BLOCK_RECORDS, KEPT_BLOCKS, DriftWatch


def stream(blocks: int, seed: int, *, link: float = 50.0, roots: float = 0.002) -> Verdicts:
    """Verdicts of ordinary traffic."""
    rng = np.random.default_rng(seed)
    found = Verdicts.empty(blocks * BLOCK_RECORDS)
    found.link[:] = link + 4 * rng.normal(size=len(found))
    novel = rng.random(len(found)) < roots
    found.via[:] = np.where(novel, ROOT, WINDOW)
    found.verdict[novel] = NOVEL
    return found


def part(verdicts: Verdicts, begin: int, end: int) -> Verdicts:
    found = Verdicts.empty(len(range(*slice(begin, end).indices(len(verdicts)))))
    for name in ("link", "via", "verdict"):
        getattr(found, name)[:] = getattr(verdicts, name)[begin:end]
    return found


def facts(notices: list[Notice]) -> list[tuple[Any, ...]]:
    return [(n.key, n.facts["before"], n.facts["after"]) for n in notices]


def test_an_unchanged_stream_is_not_told_of() -> None:
    alarmed = 0
    for seed in range(40):
        watch = DriftWatch()
        alarmed += bool(watch.observe(stream(400, seed), time=-1))
    assert alarmed <= 1  # 100,000 records each


def test_link_scores_that_fall_are_told_once_with_the_means() -> None:
    watch = DriftWatch()
    assert watch.observe(stream(200, 1), time=5) == []
    (notice,) = watch.observe(stream(200, 2, link=48.0), time=7)
    assert (notice.topic, notice.time, notice.facts["what"]) == ("drift", 7, "link_score")
    assert notice.facts["before"] == pytest.approx(50.0, abs=0.2)
    assert notice.facts["after"] == pytest.approx(48.0, abs=0.3)
    assert notice.facts["records"] % BLOCK_RECORDS == 0
    assert 0 < notice.facts["records"] <= 50 * BLOCK_RECORDS  # how long ago it changed
    assert "worse" in notice.message
    assert notice.key.startswith("drift:link_score:")


@pytest.mark.parametrize("rates", [(0.002, 0.03), (0.1, 0.02)])
def test_a_root_rate_that_moves_either_way_is_told(rates: tuple[float, float]) -> None:
    watch = DriftWatch()
    watch.observe(stream(200, 1, roots=rates[0]), time=-1)
    told = watch.observe(stream(200, 2, roots=rates[1]), time=-1)
    assert [n.facts["what"] for n in told] == ["root_rate"]
    assert told[0].message.startswith("More" if rates[1] > rates[0] else "Fewer")
    assert told[0].facts["after"] == pytest.approx(rates[1], rel=0.3)


def test_scores_of_anomalous_records_do_not_look_like_drift() -> None:
    watch = DriftWatch()
    watch.observe(stream(100, 1), time=-1)
    flood = stream(100, 2, link=20.0, roots=0.0)
    flood.verdict[:] = NOVEL
    flood.via[:] = WINDOW
    assert watch.observe(flood, time=-1) == []


def test_the_score_says_how_far_before_a_change_is_told() -> None:
    watch = DriftWatch()
    watch.observe(stream(20, 1), time=-1)
    assert watch.scores() == {"link_score": 0.0, "root_rate": 0.0}
    watch.observe(stream(100, 2), time=-1)
    assert abs(watch.scores()["link_score"]) < 2
    watch.observe(stream(4, 3, link=45.0), time=-1)
    assert watch.scores()["link_score"] < -3


def test_another_model_with_other_scores_is_no_drift() -> None:
    watch = DriftWatch()
    watch.observe(stream(100, 1), time=-1)
    watch.restart()
    assert watch.observe(stream(100, 2, link=5.0), time=-1) == []
    (notice,) = watch.observe(stream(100, 3, link=2.0), time=-1)
    assert int(notice.key.rpartition(":")[2]) > 190  # a key is not given twice


@settings(max_examples=15, phases=(Phase.generate,))
@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=30), st.integers(0, 5))
def test_how_the_stream_is_cut_into_batches_does_not_matter(cuts: list[int], seed: int) -> None:
    changing = [stream(100, seed), stream(100, seed + 1, link=47.0, roots=0.06)]
    verdicts = Verdicts.empty(200 * BLOCK_RECORDS)
    for name in ("link", "via", "verdict"):
        getattr(verdicts, name)[:] = np.concatenate([getattr(v, name) for v in changing])
    whole, cut = DriftWatch(), DriftWatch()
    told = whole.observe(verdicts, time=-1)
    in_parts: list[Notice] = []
    begin = 0
    for size in [*cuts, len(verdicts)]:
        in_parts += cut.observe(part(verdicts, begin, begin + size), time=-1)
        begin += size
    assert sorted(facts(in_parts)) == sorted(facts(told))
    assert {n.facts["what"] for n in told} == {"link_score", "root_rate"}
    assert cut.state() == whole.state()


@pytest.mark.parametrize("stop_at", [100, 50 * BLOCK_RECORDS + 7, (2 * KEPT_BLOCKS + 40) * BLOCK_RECORDS])
def test_after_a_restart_the_same_is_told(stop_at: int) -> None:
    before = stream(2 * KEPT_BLOCKS + 60, 3)
    after = stream(100, 4, link=48.5)
    unbroken = DriftWatch()
    unbroken.observe(part(before, 0, stop_at), time=-1)
    resumed = DriftWatch()
    resumed.restore(json.loads(json.dumps(unbroken.state())))
    for verdicts in (part(before, stop_at, len(before)), after):
        told = unbroken.observe(verdicts, time=-1)
        assert facts(resumed.observe(verdicts, time=-1)) == facts(told)
    assert told
    assert resumed.state() == unbroken.state()


def test_what_is_usual_is_taken_from_the_kept_blocks_once_older_ones_were_dropped() -> None:
    dropped = 2 * KEPT_BLOCKS  # at this count the older half is forgotten, and with it what was usual then
    unbroken = DriftWatch()
    unbroken.observe(stream(dropped - 1, 3, roots=0.0), time=-1)
    usual = unbroken.scores()
    unbroken.observe(stream(1, 4, roots=0.0), time=-1)
    kept = unbroken.state()["link_score"]
    assert (len(kept["blocks"]), kept["seen"]) == (KEPT_BLOCKS, dropped)
    assert unbroken.scores() != usual
    resumed = DriftWatch()
    resumed.restore(json.loads(json.dumps(unbroken.state())))
    assert resumed.scores() == unbroken.scores()
    told = 0
    for block in range(100):  # a slow fall: the block at which it is noticed depends on all that a detector has seen
        verdicts = stream(1, 100 + block, link=50.0 - block / 100, roots=0.0)
        notices = unbroken.observe(verdicts, time=-1)
        assert facts(resumed.observe(verdicts, time=-1)) == facts(notices)
        assert resumed.scores() == unbroken.scores()
        told += len(notices)
    assert told


def test_the_state_stays_small() -> None:
    watch = DriftWatch()
    for seed in range(6):
        watch.observe(stream(KEPT_BLOCKS, seed), time=-1)
        assert len(json.dumps(watch.state())) < 2 * 2 * KEPT_BLOCKS * 25 + 2 * BLOCK_RECORDS * 25


def test_scores_that_never_vary_are_no_drift_and_infinite_ones_no_harm() -> None:
    watch = DriftWatch()
    flat = Verdicts.empty(100 * BLOCK_RECORDS)
    assert watch.observe(flat, time=-1) == []
    flat.link[:] = -np.inf
    assert watch.observe(flat, time=-1) == []
    watch.restore(watch.state())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s["link_score"].update(blocks=[0.0] * 2 * KEPT_BLOCKS),
        lambda s: s["link_score"].update(pending=[0.0] * BLOCK_RECORDS),
        lambda s: s["link_score"].update(blocks=["x"]),
        lambda s: s["root_rate"].update(seen=-1),
        lambda s: s["root_rate"].update(seen=1 << 62),
        lambda s: s["root_rate"].update(blocks=[float("nan")], seen=1),
        lambda s: s.pop("root_rate"),
    ],
)
def test_a_state_that_cannot_be_is_refused(spoil: Any) -> None:
    state = DriftWatch().state()
    spoil(state)
    with pytest.raises(InputError, match="drift"):
        DriftWatch().restore(state)


def test_watching_does_not_import_all_of_river() -> None:
    """Most of what `river.drift` imports is for other purposes, and each start of a daemon would wait for it."""
    program = (
        "import sys; from netclust.stream.detection.drift import DriftWatch; "
        "assert DriftWatch().watched; print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"river.drift", "sklearn", "scipy", "pandas"} & set(modules)


def test_without_river_nothing_is_watched_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river", None)
    watch = DriftWatch()
    assert not watch.watched
    assert watch.observe(stream(100, 1), time=-1) == []
    assert (watch.scores(), watch.state()) == ({}, {})
    watch.restore({})
