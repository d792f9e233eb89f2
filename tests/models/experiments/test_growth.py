"""The experiments on long windows and few labels."""

from __future__ import annotations

from pathlib import Path

import pytest
from needed import need_module

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.models.experiments.detection import label_economy, windows
from netclust.models.network.params import TrainParams
from netclust.records.table import Table

ROUGH = TrainParams(learner="unlearned", false_alarm_rate=0.05)
BOTH = dict.fromkeys(label_economy.PRESETS, ROUGH)


@pytest.fixture(scope="module")
def past() -> Table:
    return simulate(1500, seed=1).table()


@pytest.fixture(scope="module")
def today() -> Table:
    return simulate(800, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).table()


def test_a_window_beyond_the_stream_equals_everything_seen(past: Table, today: Table, tmp_path: Path) -> None:
    need_module("matplotlib")
    ticks: list[tuple[int, int]] = []
    rows = windows.run_windows(
        past, today, windows=(100, 3000, None), draws=2, params=ROUGH, published=True,
        on_progress=lambda done, total: ticks.append((done, total)),
    )  # fmt: skip
    assert rows[1].mean == rows[2].mean
    assert rows[2].window == len(today)
    assert [row.published is not None for row in rows] == [True, False, False]
    assert ticks == [(k, 6) for k in range(1, 7)]
    windows.plot_window_rows(rows, tmp_path / "windows.svg")
    assert (tmp_path / "windows.svg").read_bytes().startswith(b"<?xml")


def test_a_row_costs_no_more_than_its_budget(past: Table, today: Table, tmp_path: Path) -> None:
    need_module("matplotlib")
    rows = label_economy.run_economy(past, today, budgets=(0.01, 0.03), draws=2, presets=BOTH)
    assert [row.name for row in rows] == [
        "no labels", *["new clusters, plain"] * 2,
        "no labels", *(name for name in label_economy.STRATEGIES for _ in range(2)), "all labels",
    ]  # fmt: skip
    for row in rows:
        assert row.labelled <= row.budget + 1e-9
        assert row.labelled == pytest.approx(row.budget) or row.name == "new clusters, plain"
    again = label_economy.run_economy(past, today, budgets=(0.01,), draws=2, presets=BOTH)
    assert [row for row in again if row.name == "worth most"] == [
        row for row in rows if row.name == "worth most" and row.budget == 0.01
    ]
    label_economy.plot_label_economy(rows, tmp_path / "economy.png")
    assert (tmp_path / "economy.png").stat().st_size > 1000


def test_development_streams_share_no_records_with_training(past: Table) -> None:
    for fold in range(2):
        learned, stream = label_economy.development_stream(past, fold)
        assert not set(learned.seq.tolist()) & set(stream.seq.tolist())
        assert set(learned.label_names()) < set(stream.label_names())


def test_running_nothing_is_refused(past: Table, today: Table) -> None:
    with pytest.raises(InputError):
        windows.run_windows(past, today, draws=0, params=ROUGH)
    with pytest.raises(InputError):
        label_economy.run_economy(past, today, budgets=(0.0,), presets=BOTH)
