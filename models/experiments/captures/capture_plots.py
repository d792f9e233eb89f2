"""The comparison on captures as a picture: for every attack, how much of it each detector finds.

>>> import tempfile
>>> row = {"kind": "probe", "flows": 50, "detection": {"ours": {"mean": 0.9}, "theirs": {"mean": 0.2}}}
>>> with tempfile.TemporaryDirectory() as folder:
...     plot_captures([row], Path(folder, "captures.svg"))
...     Path(folder, "captures.svg").read_text()[:5]
'<?xml'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netclust.models.experiments.detection_plots import COLOURS, FAINT, SMALL, picture

__all__ = ["plot_captures"]

_ROW = 0.32  # inches
_MARKS = ("o", "s", "^", "D", "v")


def plot_captures(rows: Sequence[dict[str, Any]], path: str | Path) -> None:
    """One line an attack, one mark a detector; the first is drawn on top."""
    names = list(rows[0]["detection"])
    with picture(path, 1.1 + _ROW * len(rows)) as figure:
        axes = figure.subplots()
        for y, row in enumerate(rows):
            axes.plot([0, 100], [y, y], color=FAINT, linewidth=1.0, zorder=1)
            for i, name in enumerate(names):
                share = 100 * row["detection"][name]["mean"]
                axes.plot(
                    share, y, _MARKS[i % len(_MARKS)], color=COLOURS[i], markersize=8 if i == 0 else 6,
                    zorder=9 - i, label=name if y == 0 else None, clip_on=False,
                )  # fmt: skip
        axes.set_yticks(range(len(rows)), [f"{row['kind']} ({row['flows']:,})" for row in rows], size=SMALL)
        axes.set(
            xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5), xlabel="Percent of an attack's connections that are found"
        )
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=len(names), frameon=False, fontsize=SMALL)
