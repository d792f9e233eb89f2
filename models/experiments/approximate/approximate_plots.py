"""Pictures of the laboratory of approximate inference (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from netclust.models.experiments.approximate.approximate_inference import Lab
from netclust.models.experiments.approximate.inference_quality import Counts, Timing
from netclust.models.experiments.clustering.clustering_plots import new_figure, save_figure
from netclust.models.multilabel.binary_network import METHODS, Inference

__all__ = ["write_pictures"]

NAMES: dict[Inference, str] = {
    "greedy": "greedy",
    "lbp": "LBP",
    "combine": "combine",
    "exact": "exact",
    "lp": "LP",
    "cut": "cut",
}


def write_pictures(lab: Lab, timings: Sequence[Timing], counts: Mapping[str, Counts], folder: Path) -> list[Path]:
    """SVG files: searches by themselves, and the rho sweep."""
    written = [folder / "approximate-searches.svg"]
    _searches(timings, counts, written[0])
    if any(trained.startswith("rho") for _, trained in lab.runs):
        written.append(folder / "approximate-rho.svg")
        _rho(lab, written[1])
    return written


def _searches(timings: Sequence[Timing], counts: Mapping[str, Counts], path: Path) -> None:
    figure, panels = new_figure(1 + len(counts))
    for name in METHODS:
        own = [one for one in timings if one.name == name]
        if own:
            panels[0].plot([t.labels for t in own], [t.seconds for t in own], marker="o", ms=4, label=NAMES[name])
    panels[0].set_xscale("log")
    panels[0].set_yscale("log")
    ticks = sorted({one.labels for one in timings})
    panels[0].set_xticks(ticks, [str(tick) for tick in ticks])
    panels[0].minorticks_off()
    panels[0].set_xlabel("labels")
    panels[0].set_title("seconds a network", loc="left")
    panels[0].legend(frameon=False, fontsize="small")
    for axes, (draw, found) in zip(panels[1:], counts.items(), strict=True):
        for name, better in found.items():
            worst = np.sort(better)[::-1]
            axes.plot(np.arange(1, len(worst) + 1), worst, label=NAMES[name])
        axes.set_yscale("symlog", linthresh=1)
        axes.set_xlabel("networks, worst first")
        axes.set_title(f"labellings that are better ({draw} potentials)", loc="left")
        axes.legend(frameon=False, fontsize="small")
    save_figure(figure, path)


def _rho(lab: Lab, path: Path) -> None:
    figure, (axes,) = new_figure()
    for name in lab.names:
        own = [run for (corpus, trained), run in lab.runs.items() if corpus == name and trained.startswith("rho")]
        if own:
            found = sorted((float(run.trained[4:]), run.predicted["exact"]) for run in own)
            axes.errorbar(
                [rho for rho, _ in found], [one.mean for _, one in found], [one.error for _, one in found],
                marker="o", ms=4, capsize=2, label=name,
            )  # fmt: skip
    axes.set_xlim(1.02, -0.02)
    axes.set_xlabel("rho of the oracle in training")
    axes.set_title("test loss in percent, exact prediction", loc="left")
    axes.legend(frameon=False)
    save_figure(figure, path)
