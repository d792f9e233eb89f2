"""Pictures of the engine at work: which record links to which, what the window holds, why a verdict was given.

Made from real runs of the linker, by `python -m netclust.models.experiments.detection.engine_plots docs/pictures`; like
all pictures they need matplotlib (`pip install 'netclust[plot]'`).

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     sorted(path.name for path in write_all(Path(folder)))
['explanation.svg', 'links.svg', 'window.svg']
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.simulate import simulate
from netclust.linking.explanation import ROOT_PART, Explanation, explain, own_score
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import ROOT_HANDLE
from netclust.models.experiments.detection_plots import ABOVE, BELOW, COLOURS, FAINT, INK, QUIET, SMALL, picture
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.records.frames import as_table
from netclust.scoring.calibration import Calibration
from netclust.scoring.model import distance_model

__all__ = ["plot_explanation", "plot_links", "plot_window", "write_all"]

REACH = 0.9  # how far a record may be from its best earlier one, in standard deviations
ARROW = {"arrowstyle": "-|>", "lw": 1.1, "shrinkA": 4, "shrinkB": 5, "alpha": 0.75}


def plot_links(points: NDArray[np.float64], parent: NDArray[np.int64], cluster: NDArray[np.int64], path: Path) -> None:
    """Records in two dimensions, each with the arc to its best earlier one; those that hang on the root are ringed."""
    with picture(path, 4.6) as figure:
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set(title="Every record links to its best earlier one, or to the root (rings)")
        axes.margins(0.08)
        for i, at in enumerate(parent.tolist()):
            colour = COLOURS[int(cluster[i]) % len(COLOURS)]
            if at >= 0:
                axes.annotate("", points[at], points[i], arrowprops=ARROW | {"color": colour})
            axes.plot(*points[i], "o", color=colour, markersize=6, zorder=3)
            if at == ROOT_HANDLE:
                axes.plot(*points[i], "o", markersize=17, markerfacecolor="none", markeredgecolor=INK, zorder=2)
                axes.annotate(f"record {i}", points[i], (0, 14), textcoords="offset points", ha="center", size=SMALL)


def plot_window(window: int, delay: int, path: Path, *, pinned: int = 8, now: int = 40) -> None:
    """What a record may link to: the reference set, and the window with labels that came after the delay or not yet."""
    with picture(path, 2.2) as figure:
        axes = figure.subplots()
        axes.set(xlim=(-pinned - 4, now + 2), ylim=(-0.9, 1.5))
        axes.set_axis_off()
        axes.set_title("What the next record may link to")
        for k in range(pinned):
            axes.plot(k - pinned - 2, 0, "s", color=COLOURS[4], markersize=8)
        for tick in range(now):
            age = now - tick
            colour = FAINT if age > window else COLOURS[0] if age > delay else COLOURS[5]
            axes.plot(tick, 0, "o", color=colour, markersize=8)
        axes.plot(now, 0, "D", color=ABOVE, markersize=9)
        rows: list[tuple[float, str, str]] = [
            (-pinned / 2 - 2.5, f"reference set\n{pinned} pinned records", COLOURS[4]),
            ((now - window) / 2 - 0.5, "gone:\nno longer remembered", QUIET),
            (now - (window + delay) / 2 - 0.5, "window:\ntrue labels known", COLOURS[0]),
            (now - delay / 2 - 0.5, "window: labels as\njudged, for now", COLOURS[5]),
        ]
        for x, text, colour in rows:
            axes.text(x, 0.55, text, ha="center", va="bottom", size=SMALL, color=INK)
            axes.plot([x], [0.35], "v", color=colour, markersize=5)
        axes.text(now, -0.45, "next", ha="center", va="top", size=SMALL, color=ABOVE)
        low: dict[str, Any] = {"ha": "center", "va": "top", "size": SMALL}
        axes.text((now - pinned) / 2, -0.45, "or to the root, if none of these is near enough", color=QUIET, **low)


def plot_explanation(explanation: Explanation, path: Path, *, most: int = 10) -> None:
    """The contributions of the strongest attributes: to the right for the verdict, to the left against it."""
    parts = [part for part in explanation.parts if part.contribution][:most][::-1]
    with picture(path, 1.2 + 0.32 * max(len(parts), 1)) as figure:
        axes = figure.subplots()
        what = explanation.label if explanation.verdict == "known_attack" else explanation.verdict
        axes.set_title(f"Why record {explanation.record} is {what}: what each attribute adds to the margin")
        names = ["root" if part.attribute == ROOT_PART else f"{part.attribute} {_value(part.value)}" for part in parts]
        values = [part.contribution for part in parts]
        axes.barh(range(len(parts)), values, color=[ABOVE if v > 0 else BELOW for v in values], height=0.7)
        axes.set_yticks(range(len(parts)), names)
        axes.axvline(0, color=QUIET, linewidth=0.8)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value or "")


def write_all(folder: Path) -> list[Path]:
    """Run the engine on a little data, and draw what it did."""
    written = [folder / name for name in ("links.svg", "window.svg", "explanation.svg")]
    rng = np.random.default_rng(4)
    centres = np.array([[0, 0], [4, 1], [2, 4]])
    points = centres[rng.choice(3, 36, p=[0.5, 0.3, 0.2])] + rng.normal(0, 0.55, (36, 2))
    whole = distance_model(as_table(points))
    root = own_score(whole, (whole.reference.num[0], whole.reference.code[0])) - REACH
    calibration = Calibration(root=root, false_alarm_rate=0.1, obtained=0.1, records=len(points))
    model = replace(whole, reference=whole.reference[:0]).with_root(calibration)
    verdicts = Linker(model, LinkerConfig(referent_window=100)).process(whole.reference)
    plot_links(points, verdicts.parent, verdicts.cluster, written[0])
    plot_window(30, 12, written[1])
    params = load_params("late")
    model = train_network(simulate(6000, seed=1).table(), params, seed=0)
    linker = Linker(model, LinkerConfig.stream(feedback="none"))
    batch = model.encoding.encode(simulate(2000, seed=2, day=1).table())
    verdicts, evidence = linker.process_with_evidence(batch)
    row = int(np.argmax(np.where(verdicts.verdict == 1, verdicts.score, -np.inf)))
    plot_explanation(explain(linker, batch, verdicts, evidence, row), written[2])
    return written


if __name__ == "__main__":
    for path in write_all(Path(sys.argv[1])):
        sys.stdout.write(f"wrote {path}\n")
