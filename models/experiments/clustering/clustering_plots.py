"""Pictures of the clustering experiments (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netclust.foundation.optional import require_optional
from netclust.models.experiments.clustering.clustering_scaling import Point
from netclust.models.experiments.clustering.irrelevant_features import Curve

__all__ = ["new_figure", "save_figure", "write_curve", "write_scaling"]


def write_curve(rows: Sequence[Curve], path: Path) -> None:
    """Edge accuracy against irrelevant dimensions, with standard deviations."""
    figure, (axes,) = new_figure()
    for name in dict.fromkeys(row.name for row in rows):
        own = [row for row in rows if row.name == name]
        D = [int(row.setting.split()[-1]) for row in own]
        axes.errorbar(D, [row.mean for row in own], [row.sd or 0.0 for row in own], marker="o", capsize=3, label=name)
    axes.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    shown = sorted({int(row.setting.split()[-1]) for row in rows})
    axes.set_xticks(shown, [str(D) for D in shown])
    axes.set_ylim(0.4, 1.02)
    axes.set_xlabel("irrelevant dimensions")
    axes.set_ylabel("edge accuracy")
    axes.legend(frameon=False)
    save_figure(figure, path)


def write_scaling(series: Mapping[str, Sequence[Point]], slopes: Mapping[str, float], path: Path) -> None:
    """Seconds against size, by what was done, on logarithmic axes."""
    figure, (axes,) = new_figure()
    for name, exponent in slopes.items():
        own = series[name]
        label = f"{name}: size^{exponent:.2f}"
        axes.plot([p.size for p in own], [p.seconds for p in own], marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("sets, or items of a set")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False, fontsize="small")
    save_figure(figure, path)


def new_figure(panels: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, side by side."""
    require_optional("matplotlib", "drawing pictures", "plot").use("Agg")
    plt = require_optional("matplotlib.pyplot", "drawing pictures", "plot")
    width = 7 if panels == 1 else 4.8 * panels
    figure, axes = plt.subplots(1, panels, figsize=(width, 4.5), layout="constrained", squeeze=False)
    return figure, axes[0]


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure, the same bytes every time, and let go of it."""
    with require_optional("matplotlib", "drawing pictures", "plot").rc_context({"svg.hashsalt": "netclust"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    require_optional("matplotlib.pyplot", "drawing pictures", "plot").close(figure)
