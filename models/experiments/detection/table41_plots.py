"""The pictures of Table 4.1: accuracy by referents, ROC, detection at few false alarms, scores by class of traffic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netclust.models.experiments.detection.table41 import (
    NEAREST,
    NEAREST_MANY,
    NETCLUST,
    UNLEARNED,
    WINDOWS,
    Results,
    TestStream,
)
from netclust.models.experiments.detection_plots import (
    Curves,
    WindowPoint,
    plot_detection,
    plot_roc,
    plot_scores,
    plot_windows,
)
from netclust.models.experiments.peers import PEERS, anomalies
from netclust.records.table import Table

__all__ = ["write_plots"]


def write_plots(results: Results, folder: Path) -> list[Path]:
    """SVG files about the first test set; curves and scores are those of seed 0, draw 0."""
    test = results.tests[0]
    online = [name for name in PEERS if name.startswith("river") and PEERS[name].setting == "late labels"]
    peers = [name for name in online if (test.name, PEERS[name].label, name) in results.entries]
    no_labels = _curves(results, test, [(method, "none") for method in (NETCLUST, UNLEARNED, NEAREST, NEAREST_MANY)])
    late = [(method, "window-1000") for method in (NETCLUST, UNLEARNED)]
    late += [(PEERS[name].label, name) for name in peers]
    written = [folder / "windows.svg"]
    plot_windows(_points(results, test, peers), written[0])
    for what, curves in (("no-test-labels", no_labels), ("late-labels", _curves(results, test, late))):
        if curves:
            written += [folder / f"roc-{what}.svg", folder / f"detection-{what}.svg"]
            plot_roc(curves, written[-2])
            plot_detection(curves, written[-1])
    for what, key in (("no-test-labels", "none"), ("late-labels", "window-1000")):
        run = results.entries[test.name, NETCLUST, key].runs[0, 0]
        written.append(folder / f"scores-{what}.svg")
        plot_scores(run.score, _groups(test.table), written[-1])
    return written


def _points(results: Results, test: TestStream, peers: list[str]) -> list[WindowPoint]:
    """netclust and the unlearned rule by window; a peer has no referents and is a level line."""
    points = []
    for name in (NETCLUST, UNLEARNED):
        for window in WINDOWS:
            key = "gold-100" if window == WINDOWS[0] else f"window-{window}"
            points.append(_point(results, (test.name, name, key), name, window))
    for peer in (name for name in peers if name != "river-hst"):  # half-space trees learn no labels: another scale
        label = PEERS[peer].label
        points += [_point(results, (test.name, label, peer), label, w) for w in (WINDOWS[0], WINDOWS[-1])]
    return points


def _point(results: Results, at: tuple[str, str, str], name: str, window: int) -> WindowPoint:
    row = results.row(at)
    return WindowPoint(name, window, 100 * row.mean["accuracy"], 100 * (row.sd["accuracy"] or 0.0))


def _curves(results: Results, test: TestStream, rows: list[tuple[str, str]]) -> Curves:
    """Scores and truth by method; none where the records are all of one kind."""
    truth = test.truth
    if truth.all() or not truth.any():
        return {}
    return {name: (results.entries[test.name, name, key].runs[0, 0].score, truth) for name, key in rows}


def _groups(table: Table) -> NDArray[np.object_]:
    """The class of traffic of every record: normal, or the category of its attack."""
    category = table.schema.category_of
    names = zip(table.label_names().tolist(), anomalies(table).tolist(), strict=True)
    return np.array([category.get(name, "attack") if bad else "normal" for name, bad in names], object)
