"""Accuracy by the length of the referent window, up to everything seen: true labels come back, `DELAY` records late.

The rows of Table 4.1 with gold labels have 100 referents of the stream, or some thousands; here the window goes on to
the whole stream. Trained as the `netclust` rows of that table with late labels: preset `late`, seed 0, 280 references;
only the window differs. The window of 100 is used when it is full, as published; longer ones from the first member on.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.params import TrainParams
>>> past, today = simulate(1500, seed=1).table(), simulate(800, seed=2, day=1).table()
>>> rough = TrainParams(learner="unlearned")
>>> rows = run_windows(past, today, windows=(100, None), draws=2, params=rough)
>>> [(row.setting, row.window, row.draws) for row in rows]
[('100 referents', 100, 2), ('everything seen', 800, 2)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.linking.linker import LinkerConfig
from netclust.metrics.detection_metrics import DecisionMetrics
from netclust.models.experiments.detection_plots import WindowPoint, plot_windows
from netclust.models.experiments.peers import Published
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import TrainParams, load_params
from netclust.models.network.train_network import fit_network
from netclust.records.table import Table

__all__ = [
    "MEASURES",
    "PRESET",
    "PUBLISHED",
    "SEED",
    "WINDOWS",
    "WindowRow",
    "plot_window_rows",
    "run_windows",
    "window_summary",
]

WINDOWS: tuple[int | None, ...] = (100, 300, 1000, 3000, 10_000, None)
"""None: everything seen."""
DELAY = 100
REFERENCES = 280
PRESET = "late"
SEED = 0
MEASURES = ("accuracy", "detection_rate", "false_positive_rate")
PUBLISHED = {100: Published(89.18, 86.61, 7.85)}
"""TR+TE_gold, d = 100, in percent."""


class WindowRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table: fractions, mean and standard deviation (None of a single draw) over reference sets."""

    name: str
    setting: str
    window: int
    mean: dict[str, float]
    sd: dict[str, float | None]
    draws: int
    published: dict[str, float] | None
    records_per_second: float


def run_windows(
    train: Table,
    test: Table,
    *,
    windows: Sequence[int | None] = WINDOWS,
    draws: int = 5,
    published: bool = False,
    params: TrainParams | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[WindowRow]:
    """Train once, draw reference sets, and link the test records with every window. Draw k is of seed k."""
    if draws < 1 or not windows:
        raise InputError(f"{draws} draws of {len(windows)} windows: at least one of both")
    fit = fit_network(train, params or load_params(PRESET, train.schema), seed=SEED)
    models = [fit.draw(draw, size=REFERENCES) for draw in range(draws)]
    rows: list[WindowRow] = []
    for window in windows:
        length = len(test) if window is None else window
        whole = length == min(PUBLISHED)
        config = LinkerConfig.thesis(referent_window=length, delay=DELAY, feedback="gold", whole=whole)
        runs = []
        for model in models:
            runs.append(evaluate_network(model, [test], config))
            on_progress(len(rows) * draws + len(runs), len(windows) * draws)
        mean, sd = window_summary([run.decisions for run in runs])
        printed = PUBLISHED.get(length) if published else None
        rows.append(
            WindowRow(
                name="netclust",
                setting="everything seen" if window is None else f"{window} referents",
                window=length,
                mean=mean,
                sd=sd,
                draws=draws,
                published=None if printed is None else {k: round(v / 100, 6) for k, v in printed._asdict().items()},
                records_per_second=len(test) * draws / sum(run.seconds for run in runs),
            )
        )
    return rows


def window_summary(runs: Sequence[DecisionMetrics]) -> tuple[dict[str, float], dict[str, float | None]]:
    """Return mean and standard deviation of every measure; an undefined value of a run counts as 0."""
    values = {name: [float(getattr(run, name) or 0.0) for run in runs] for name in MEASURES}
    mean = {name: float(np.mean(of)) for name, of in values.items()}
    return mean, {name: float(np.std(of, ddof=1)) if len(of) > 1 else None for name, of in values.items()}


def plot_window_rows(rows: Sequence[WindowRow], path: Path) -> None:
    """Plot accuracy against the length of the window, with the published point."""
    points = [
        WindowPoint(row.name, row.window, 100 * row.mean["accuracy"], 100 * (row.sd["accuracy"] or 0.0)) for row in rows
    ]
    points += [
        WindowPoint("published", row.window, 100 * row.published["accuracy"], 0.0) for row in rows if row.published
    ]
    plot_windows(points, path)
