"""Pictures: files that open, the same bytes again, numbers that agree with the metrics, and scores that fit no axis."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from netclust.errors import InputError
from netclust.metrics.detection_metrics import auc, detection_at
from netclust.models.experiments.detection_plots import (
    Curves,
    WindowPoint,
    _edges,
    plot_detection,
    plot_roc,
    plot_scores,
    plot_windows,
)

Draw = Callable[[Path], None]

RNG = np.random.default_rng(5)
TRUTH = RNG.random(3000) < 0.3
SCORE = np.where(TRUTH, 2.0, -3.0) + RNG.normal(size=3000) * 2
GROUPS = np.where(TRUTH, RNG.choice(["dos", "probe", "probe, unseen type"], 3000), "normal").astype(object)
CURVES: Curves = {"ours": (SCORE, TRUTH), "a $poor$ one": (SCORE + 9 * RNG.normal(size=3000), TRUTH)}
ROWS = [WindowPoint(name, w, 90 + i + w / 999, 0.2) for i, name in enumerate(("a", "b")) for w in (100, 380, 1000)]

DRAWINGS: dict[str, Draw] = {
    "roc": lambda path: plot_roc(CURVES, path),
    "detection": lambda path: plot_detection(CURVES, path),
    "windows": lambda path: plot_windows(ROWS, path),
    "scores": lambda path: plot_scores(SCORE, GROUPS, path),
}


def words(path: Path) -> str:
    """The text of an SVG picture, which stands in comments beside its outlines."""
    ElementTree.fromstring(path.read_bytes())  # noqa: S314 (our own file)
    return "\n".join(re.findall(r"<!-- (.*?) -->", path.read_text()))


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_depends_on_its_data_alone(name: str, tmp_path: Path) -> None:
    DRAWINGS[name](tmp_path / "one.svg")
    with matplotlib.rc_context({"font.size": 30.0, "svg.fonttype": "none", "axes.facecolor": "red"}):
        DRAWINGS[name](tmp_path / "two.svg")
        assert matplotlib.rcParams["font.size"] == 30.0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "<dc:date>" not in (tmp_path / "one.svg").read_text()


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_png_has_the_width_of_a_readme(name: str, tmp_path: Path) -> None:
    DRAWINGS[name](tmp_path / "it.PNG")
    pixels = imread(tmp_path / "it.PNG", "png")
    assert pixels.shape[1] == 1600
    assert 0.5 < pixels[..., :3].mean() < 0.99


def test_the_legends_agree_with_the_metrics(tmp_path: Path) -> None:
    plot_roc(CURVES, tmp_path / "roc.svg")
    plot_detection(CURVES, tmp_path / "detection.svg")
    for name, (score, truth) in CURVES.items():
        assert name in words(tmp_path / "roc.svg")
        assert f"{auc(score, truth):.4f}" in words(tmp_path / "roc.svg")
        for rate in (0.001, 0.01):
            assert f"{100 * (detection_at(score, truth, rate) or 0):.1f} %" in words(tmp_path / "detection.svg")


def test_the_key_hides_no_curve(tmp_path: Path) -> None:
    good, bad = (TRUTH.astype(float), TRUTH), (np.arange(3000.0) % 1000, TRUTH)
    height = {}
    for name, curves in {"good": {"x": good}, "bad": {"x": bad}, "both": {"x": good, "y": bad}}.items():
        plot_detection(curves, tmp_path / "it.png")
        height[name] = imread(tmp_path / "it.png").shape[0]
    assert height["good"] == height["bad"] < height["both"]  # no corner is free: the key gets paper of its own


def test_infinite_scores_are_drawn_beyond_the_ends(tmp_path: Path) -> None:
    score = SCORE.copy()
    score[:40], score[40:50], score[50] = np.inf, -np.inf, 1e30
    plot_roc({"ours": (score, TRUTH)}, tmp_path / "roc.svg")
    plot_detection({"ours": (score.astype(np.float32), TRUTH)}, tmp_path / "detection.svg")
    plot_scores(score, GROUPS, tmp_path / "scores.svg", threshold=1.5)
    text = words(tmp_path / "scores.svg")
    assert "of 3,000 scores (50 infinite) are in the bars beyond its ends" in text
    above = 100 * float((score[GROUPS == "normal"] > 1.5).mean())
    assert f"{above:.1f} %" in text


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0.0, 7.0])
def test_scores_that_are_all_the_same_have_an_axis(value: float, tmp_path: Path) -> None:
    plot_scores(np.full(3, value), ["a", "a", "b"], tmp_path / "it.svg")
    assert ("infinite" in words(tmp_path / "it.svg")) == bool(np.isinf(value))


def test_a_few_far_scores_leave_room_for_the_others() -> None:
    edges = _edges([SCORE, np.array([1e30]), np.array([])], 0.0)
    assert -40 < edges[0] < SCORE.min() + 3
    assert SCORE.max() - 3 < edges[-1] < 60
    assert 0.0 in edges


def test_a_score_at_the_threshold_is_not_drawn_above_it(tmp_path: Path) -> None:
    plot_scores(np.array([0.0, 0.0, -1.0]), ["normal"] * 3, tmp_path / "it.svg")
    assert "0.0 %" in words(tmp_path / "it.svg")
    assert "#d55e00" not in (tmp_path / "it.svg").read_text().lower()


def test_records_without_a_group_are_not_drawn(tmp_path: Path) -> None:
    groups = GROUPS.copy()
    groups[groups == "dos"] = ""
    plot_scores(SCORE, groups, tmp_path / "it.svg")
    assert "dos" not in words(tmp_path / "it.svg")
    for score, none in ((SCORE, [""] * len(SCORE)), (SCORE[:0], [])):
        with pytest.raises(InputError, match="no record is in a group"):
            plot_scores(score, none, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_one_point_has_a_log_axis(tmp_path: Path) -> None:
    plot_windows([WindowPoint("alone", 380, 91.25, 0.0)], tmp_path / "it.svg")
    text = words(tmp_path / "it.svg")
    assert "alone" in text
    assert "380" in text
    assert "deviation" not in text


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda path: plot_roc({}, path), "no curves"),
        (lambda path: plot_roc({"x": (SCORE, np.ones(3000, bool))}, path), "x: a curve needs normal records"),
        (lambda path: plot_detection({"x": (SCORE[1:], TRUTH)}, path), "x: every record needs a score"),
        (lambda path: plot_detection({"x": (SCORE * np.nan, TRUTH)}, path), "x: every record needs a score"),
        (lambda path: plot_windows([], path), "no rows"),
        (lambda path: plot_windows([WindowPoint("x", 0, 90, 1)], path), "x, window 0: needs 1 referent"),
        (lambda path: plot_windows([WindowPoint("x", 9, np.nan, 1)], path), "x, window 9"),
        (lambda path: plot_scores(SCORE, ["normal"], path), "3000 scores and 1 groups"),
        (lambda path: plot_scores(SCORE * np.nan, GROUPS, path), "not a number"),
        (lambda path: plot_roc(CURVES, path.with_suffix(".pdf")), r"it\.pdf: pictures are written as \.svg or \.png"),
        (lambda path: plot_roc(CURVES, path / "it.svg"), "cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Draw, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        draw(tmp_path / "it.svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", DRAWINGS)
def test_missing_matplotlib_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'netclust\[plot\]'"):
        DRAWINGS[name](tmp_path / "it.svg")


def test_matplotlib_is_loaded_when_needed_and_pyplot_never(tmp_path: Path) -> None:
    code = """
import sys
import netclust.models.experiments.detection_plots as plots
assert "matplotlib" not in sys.modules
plots.plot_windows([plots.WindowPoint("a", 100, 90.0, 1.0)], sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "it.svg"], check=True)
