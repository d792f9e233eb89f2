"""Pictures of an evaluation: ROC, detection at few false alarms, accuracy by referents, scores by class of traffic.

Each function writes one file, SVG or PNG by its suffix, and the same data gives the same bytes. They need matplotlib
(`pip install 'netclust[plot]'`), which is loaded when the first picture is drawn, and never pyplot: nothing is shown,
and no setting of the process stays changed.

>>> import tempfile
>>> score, truth = np.array([3.0, 1.0, 2.0, -1.0]), np.array([True, True, False, False])
>>> with tempfile.TemporaryDirectory() as folder:
...     plot_roc({"ours": (score, truth)}, Path(folder, "roc.svg"))
...     Path(folder, "roc.svg").read_text()[:5]
'<?xml'
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, MissingExtraError
from netclust.foundation.container import write_container_bytes
from netclust.metrics.detection_metrics import auc, detection_at, roc_points

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.offsetbox import OffsetBox

__all__ = ["WindowPoint", "picture", "plot_detection", "plot_roc", "plot_scores", "plot_windows"]

Scores = NDArray[np.floating[Any]]
Line = tuple[NDArray[np.float64], NDArray[np.float64]]
Curves = Mapping[str, tuple[Scores, NDArray[np.bool_]]]

# Okabe and Ito's colours, told apart by the colour-blind; without the yellow, which white paper swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
DASHES = ("-", "--", ":")  # for the second and third seven
BELOW, ABOVE = "#7F9DB9", "#D55E00"
INK, QUIET, FAINT = "#222222", "#666666", "#E4E4E4"
DOTS = (0, (2, 3))
SMALL = 9.0
LINE_HEIGHT = 0.055  # of a name, as a share of the axes

WIDTH = 8.0  # inches: 800 px at 100 dots an inch; PNG files have twice as many
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.titlesize": 10.5,
    "font.size": 10.5,
    "lines.linewidth": 1.8,
    "savefig.dpi": 200,
    "svg.hashsalt": "netclust",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
}
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}

LEAST_RATE = 1e-4
DECADES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
GUIDES = (0.001, 0.01)
BINS = 120
HAIRLINE = 0.025  # of a row
COLUMNS = (58, 112)  # points right of the axes


@dataclass(frozen=True)
class WindowPoint:
    """The accuracy of a method with a window of referents, in percent: mean and standard deviation over draws."""

    name: str
    window: int
    mean: float
    sd: float


def plot_roc(curves: Curves, path: str | Path) -> None:
    """Detection rate against false-alarm rate, with the area under each curve."""
    _check_curves(curves)
    with picture(path, 4.6) as figure:
        axes = figure.subplots()
        axes.set(xlim=(-0.006, 1), ylim=(0, 1.01), xlabel="False-alarm rate", title="Detection rate")
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle=DOTS)
        along: dict[str, Any] = {"rotation": 45, "transform_rotates_text": True, "rotation_mode": "anchor"}
        axes.text(0.3, 0.285, "chance", color=QUIET, size=SMALL, ha="center", va="top", **along)
        lines = [_corners(score, truth) for score, truth in curves.values()]
        for i, (rate, found) in enumerate(lines):
            axes.plot(rate, found, zorder=3 - i / 100, **_line(i))
        ticks = np.linspace(0, 1, 6)
        axes.set_xticks(ticks, [_percent(tick) for tick in ticks])
        axes.set_yticks(ticks, [_percent(tick) for tick in ticks])
        areas = [f"{auc(score, truth):.4f}" for score, truth in curves.values()]
        _key(figure, axes, lines, [["", *curves], ["AUC", *areas]])


def plot_detection(curves: Curves, path: str | Path) -> None:
    """Detection rate against false-alarm rate on a log axis: what is found when hardly any alarm may be false."""
    _check_curves(curves)
    with picture(path, 4.6) as figure:
        axes = figure.subplots()
        axes.set(xscale="log", xlim=(LEAST_RATE, 1), ylim=(0, 1.01))
        axes.set(xlabel="False-alarm rate (log scale)", title="Detection rate")
        lines = [_steps(score, truth) for score, truth in curves.values()]
        for i, (rate, found) in enumerate(lines):
            axes.plot(rate, found, drawstyle="steps-post", zorder=3 - i / 100, **_line(i))
        table = [["detected at false alarms of", *curves]]
        for guide in GUIDES:
            axes.axvline(guide, color=QUIET, linewidth=0.8, linestyle=DOTS, zorder=1)
            shares = [detection_at(score, truth, guide) or 0.0 for score, truth in curves.values()]
            for i, share in enumerate(shares):
                axes.plot(guide, share, "o", markersize=5, color=_line(i)["color"], zorder=3.5 - i / 100)
            table.append([_percent(guide), *(_percent(share, ".1f") for share in shares)])
        axes.set_xticks(DECADES, [_percent(rate) for rate in DECADES])
        axes.set_yticks(np.linspace(0, 1, 6), [_percent(rate) for rate in np.linspace(0, 1, 6)])
        axes.yaxis.grid(color=FAINT, linewidth=0.8)
        _key(figure, axes, lines, table)


def plot_windows(rows: Sequence[WindowPoint], path: str | Path) -> None:
    """Accuracy against the number of referents on a log axis, one line a method, with the spread over draws."""
    if not rows:
        raise InputError("no rows to draw: accuracy by referents needs a point at least")
    for row in rows:
        if row.window < 1 or not np.isfinite([row.mean, row.sd]).all() or row.sd < 0:
            raise InputError(f"{row.name}, window {row.window}: needs 1 referent at least, a mean and a deviation")
    with picture(path, 4.4) as figure:
        axes = figure.subplots()
        low, high = min(row.mean - row.sd for row in rows), max(row.mean + row.sd for row in rows)
        room = 0.08 * (high - low) or 1.0
        spread = " (mean, standard deviation)" if any(row.sd for row in rows) else ""
        axes.set(xscale="log", ylim=(low - room, high + room), xlabel="Referents (log scale)")
        axes.set_title(f"Accuracy{spread}")
        least, most = min(row.window for row in rows), max(row.window for row in rows)
        margin = max(1.1, (most / least) ** 0.04)
        axes.set_xlim(least / margin, most * margin)
        names = list(dict.fromkeys(row.name for row in rows))
        ends: dict[int, list[tuple[float, str, str]]] = {}
        for i, name in enumerate(names):
            points = sorted((row for row in rows if row.name == name), key=lambda row: row.window)
            x, mean, sd = (np.array([getattr(p, part) for p in points]) for part in ("window", "mean", "sd"))
            aside = 1 + 0.015 * (i - (len(names) - 1) / 2)  # bars of two methods do not hide each other
            axes.errorbar(
                x * aside, mean, sd if sd.any() else None, fmt="o", markersize=4.5, elinewidth=1.1, **_line(i)
            )
            ends.setdefault(points[-1].window, []).append((points[-1].mean, name, _line(i)["color"]))
        windows = _apart(sorted({row.window for row in rows}))
        axes.set_xticks(windows, [f"{window:,}" for window in windows])
        axes.set_xticks([], minor=True)
        decimals = int(np.clip(np.ceil(0.9 - np.log10(high - low + 2 * room)), 0, 3))
        axes.yaxis.set_major_formatter(lambda percent, _: f"{percent:.{decimals}f} %")
        axes.yaxis.grid(color=FAINT, linewidth=0.8)
        for window, lines in ends.items():
            _label_ends(axes, window, lines)


def plot_scores(
    score: Scores, groups: Sequence[str] | NDArray[np.object_], path: str | Path, threshold: float = 0.0
) -> None:
    """The distribution of the scores of every class of traffic, a row each: "normal" on top, then by name; "" is none.

    The axis ends at the classes' outermost 1st and 99th percentiles; the bars beyond its ends count the rest.
    """
    names = np.asarray(groups, object)
    if len(names) != len(score):
        raise InputError(f"{len(score)} scores and {len(names)} groups: every score needs its group")
    if np.isnan(score).any():
        raise InputError("a score is not a number")
    shown = {name: np.asarray(score[names == name], np.float64) for name in _in_order(names)}
    if not shown:
        raise InputError("no scores to draw: no record is in a group")
    edges = _edges(list(shown.values()), threshold)
    with picture(path, 1.3 + 0.45 * len(shown)) as figure:
        axes = figure.subplots()
        gap = 3 * (edges[1] - edges[0])
        axes.set(xlim=(edges[0] - gap, edges[-1] + gap), ylim=(0.85 - len(shown), 1.0), xlabel="Score")
        for row, of in enumerate(shown.values()):
            _ridge(axes, of, edges, threshold, base=-row)
            cells = f"{len(of):,}", _percent((of > threshold).mean(), ".1f")
            for cell, points in zip(cells, COLUMNS, strict=True):
                _place(axes, cell, (1, 0.2 - row), ("axes fraction", "data"), (points, 0), INK, ha="right")
        axes.axvline(threshold, color=INK, linewidth=0.8)
        _place(axes, "normal", (threshold, 1), ("data", "axes fraction"), (-5, 8), BELOW, ha="right", size=SMALL)
        _place(axes, "anomalous", (threshold, 1), ("data", "axes fraction"), (5, 8), ABOVE, ha="left", size=SMALL)
        for heading, points in zip(("records", "above"), COLUMNS, strict=True):
            _place(
                axes, heading, (1, 1), ("axes fraction", "axes fraction"), (points, 8), QUIET, ha="right", size=SMALL
            )
        axes.set_yticks([0.2 - row for row in range(len(shown))], list(shown))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xticks([tick for tick in axes.get_xticks() if edges[0] <= tick <= edges[-1]])
        axes.spines["bottom"].set_bounds(edges[0], edges[-1])
        remark = _beyond(np.concatenate(list(shown.values())), edges)
        if remark:
            figure.supxlabel(remark, color=QUIET, size=SMALL, x=0.01, ha="left")


@contextmanager
def picture(path: str | Path, height: float) -> Iterator[Figure]:
    """A figure to draw on, written when that is done."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in METADATA:
        raise InputError(f"{path}: pictures are written as .svg or .png")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a picture", "matplotlib", "plot") from None
    buffer = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever a matplotlibrc here says
        matplotlib.rcParams.update(STYLE)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure
        figure.savefig(buffer, format=kind, metadata=METADATA[kind])
    write_container_bytes(path, buffer.getvalue())


def _check_curves(curves: Curves) -> None:
    if not curves:
        raise InputError("no curves to draw")
    for name, (score, truth) in curves.items():
        if len(score) != len(truth) or np.isnan(score).any():
            raise InputError(f"{name}: every record needs a score that is a number, and its truth")
        if truth.all() or not truth.any():
            raise InputError(f"{name}: a curve needs normal records and anomalies")


def _line(i: int) -> dict[str, Any]:
    """How the i-th curve is drawn, in every picture."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def _corners(score: Scores, truth: NDArray[np.bool_]) -> Line:
    """The ROC curve, where it turns."""
    fp, tp = roc_points(score, truth)
    dx, dy = np.diff(fp), np.diff(tp)
    turns = np.concatenate([[True], dx[1:] * dy[:-1] != dx[:-1] * dy[1:], [True]])
    return fp[turns] / fp[-1], tp[turns] / tp[-1]


def _steps(score: Scores, truth: NDArray[np.bool_]) -> Line:
    """Detection at every false-alarm rate from the least shown: constant until the next rate."""
    fp, tp = roc_points(score, truth)
    last = np.append(fp[1:] != fp[:-1], True)
    rate, found = fp[last] / fp[-1], tp[last] / tp[-1]
    first = int(np.searchsorted(rate, LEAST_RATE, "right")) - 1
    return np.maximum(rate[first:], LEAST_RATE), found[first:]


def _percent(fraction: float, form: str = "g") -> str:
    return f"{100 * fraction:{form}} %"


def _key(figure: Figure, axes: Axes, lines: list[Line], columns: list[list[str]]) -> None:
    """A legend with numbers, headings first, in a corner that no line enters, else below the axes."""
    from matplotlib.lines import Line2D
    from matplotlib.offsetbox import DrawingArea, HPacker, TextArea, VPacker

    packed: list[Artist] = []
    for column in columns:
        first = column is columns[0]
        cells: list[Artist] = [TextArea(column[0], textprops={"color": QUIET, "size": SMALL})]
        for i, cell in enumerate(column[1:]):
            row: list[Artist] = [TextArea(cell)]
            if first:
                sample = DrawingArea(20, 2)
                sample.add_artist(Line2D([0, 20], [1, 1], linewidth=2.2, **_line(i)))
                row.insert(0, sample)
            cells.append(HPacker(children=row, align="center", pad=0, sep=7))
        packed.append(VPacker(children=cells, align="left" if first else "right", pad=0, sep=5))
    table = HPacker(children=packed, align="bottom", pad=0, sep=16)
    _put(figure, axes, lines, table, inches=0.22 * len(columns[0]))


def _put(figure: Figure, axes: Axes, lines: list[Line], table: OffsetBox, inches: float) -> None:
    """Rising lines leave a corner free or they do not: lower right, upper left, else more paper below the axes."""
    from matplotlib.offsetbox import AnchoredOffsetbox
    from matplotlib.transforms import ScaledTranslation

    for corner in ("lower right", "upper left"):
        box = AnchoredOffsetbox(corner, child=table, pad=0.4, borderpad=0.6)
        box.patch.set(edgecolor="none", facecolor="white")
        box.set_zorder(4)
        axes.add_artist(box)
        figure.draw_without_rendering()
        (left, bottom), (right, top) = axes.transData.inverted().transform(box.get_window_extent().get_points())
        if corner == "lower right" and all(y[x <= left].max(initial=0) > top for x, y in lines):
            return
        if corner == "upper left" and all(y[x >= right].min(initial=1) < bottom for x, y in lines):
            return
        box.remove()
    figure.set_figheight(figure.get_figheight() + inches)
    under = axes.transAxes + ScaledTranslation(0, -0.62, figure.dpi_scale_trans)
    box = AnchoredOffsetbox(
        "upper left", child=table, pad=0, borderpad=0, frameon=False, bbox_to_anchor=(0, 0), bbox_transform=under
    )
    box.set_clip_on(False)
    axes.add_artist(box)


def _apart(windows: list[int]) -> list[int]:
    """The windows that have room for a tick label on a log axis."""
    least = 0.07 * np.log(windows[-1] / windows[0])
    kept = windows[:1]
    for window in windows[1:]:
        if np.log(window / kept[-1]) >= least:
            kept.append(window)
    return kept


def _label_ends(axes: Axes, window: int, ends: list[tuple[float, str, str]]) -> None:
    """Name the lines that end at a window, right of it; names that would overlap are moved apart."""
    low, high = axes.get_ylim()
    ordered = sorted(ends)
    placed = np.array([(mean - low) / (high - low) for mean, _, _ in ordered])
    for _ in range(100):
        for i in range(1, len(placed)):
            lack = max(0.0, LINE_HEIGHT - (placed[i] - placed[i - 1]))
            placed[i - 1 : i + 1] += (-lack / 2, lack / 2)
    for y, (_, name, colour) in zip(placed, ordered, strict=True):
        _place(axes, name, (window, y), ("data", "axes fraction"), (10, 0), colour)


def _place(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    coordinates: tuple[str, str],
    shift: tuple[float, float],
    colour: str,
    **style: Any,
) -> None:
    """Text some points away from a place, inside the axes or not, darker than a line of that colour would be."""
    dark = "#" + "".join(f"{int(0.75 * int(colour[i : i + 2], 16)):02x}" for i in (1, 3, 5))
    axes.annotate(
        text, at, shift, coordinates, "offset points", annotation_clip=False, va="center_baseline", color=dark, **style
    )


def _in_order(names: NDArray[np.object_]) -> list[str]:
    """Normal first, then by name: a class stands above its unseen types."""
    return sorted(set(names.tolist()) - {""}, key=lambda name: (name != "normal", name))


def _edges(groups: list[NDArray[np.float64]], threshold: float) -> NDArray[np.float64]:
    """Equal bins over the groups' 1st to 99th percentiles; the threshold is an edge.

    A group that lies farther out than three times where 9 of 10 scores are would leave the others no room.
    """
    finite = [of[np.isfinite(of)] for of in groups if np.isfinite(of).any()] or [np.array([threshold])]
    left, right = np.quantile(np.concatenate(finite), [0.05, 0.95])
    most = 3 * (right - left)
    low = max(left - most, min(np.quantile(of, 0.01, method="lower") for of in finite))
    high = min(right + most, max(np.quantile(of, 0.99, method="higher") for of in finite))
    low, high = min(low, threshold), max(high, threshold)
    if low == high:
        low, high = low - 1, high + 1
    step = (high - low) / BINS
    first, last = np.floor((low - threshold) / step), np.ceil((high - threshold) / step)
    return np.asarray(threshold + step * np.arange(first, last + 1))


def _ridge(axes: Axes, of: NDArray[np.float64], edges: NDArray[np.float64], threshold: float, base: float) -> None:
    """A histogram on a line of its own, in two colours; the highest bar of every group is of the same height.

    A bar of few records among many is drawn as a hairline at least: a rare false alarm is what one looks for.
    """
    counts = np.histogram(-of[np.isfinite(of)], -edges[::-1])[0][::-1]  # a score at the threshold is not above it
    under, over = int((of < edges[0]).sum()), int((of > edges[-1]).sum())
    most = max(1, under, over, counts.max())
    height = np.where(counts, np.maximum(0.8 * counts / most, HAIRLINE), 0)
    step = edges[1] - edges[0]
    middle = int(np.searchsorted(edges, threshold))
    for part, colour in ((slice(0, middle), BELOW), (slice(middle, len(counts)), ABOVE)):
        if counts[part].any():
            within = edges[part.start : part.stop + 1]
            axes.stairs(base + height[part], within, baseline=base, fill=True, color=colour, linewidth=0)
    for count, start, colour in ((under, edges[0] - 2.5 * step, BELOW), (over, edges[-1] + step, ABOVE)):
        if count:
            tall = max(0.8 * count / most, HAIRLINE)
            axes.bar(start, tall, 1.5 * step, bottom=base, align="edge", color=colour, linewidth=0)
    axes.axhline(base, color=FAINT, linewidth=0.8, zorder=0.5)


def _beyond(score: NDArray[np.float64], edges: NDArray[np.float64]) -> str:
    """What the picture says about scores that are not on its axis; nothing if all are."""
    beyond, infinite = int(((score < edges[0]) | (score > edges[-1])).sum()), int(np.isinf(score).sum())
    if not beyond:
        return ""
    which = f"{beyond:,} of {len(score):,} scores" + (f" ({infinite:,} infinite)" if infinite else "")
    return f"Axis cut at outer percentiles: {which} are in the bars beyond its ends."
