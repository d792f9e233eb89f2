"""Pictures of the coreference experiments (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from netclust.models.experiments.clustering.clustering_plots import new_figure, save_figure
from netclust.models.experiments.coreference.coreference_report import CoreferenceRow
from netclust.models.experiments.coreference.coreference_trials import CoreferenceTrial

__all__ = ["write_curves", "write_sizes"]


def write_curves(trials: Sequence[CoreferenceTrial], path: Path) -> None:
    """MELA on development documents against epochs, the mean over splits; all features and, beside it, the fewest."""
    table = [trial for trial in trials if trial.stage == "table" and len(trial.curve) > 1]
    sizes = {trial.settings.strongest for trial in table}
    few = min((size for size in sizes if size is not None), default=None)
    panels = [None, few] if few is not None else [None]
    figure, axes = new_figure(len(panels))
    colours = {model: f"C{k}" for k, model in enumerate(dict.fromkeys(trial.model for trial in table))}
    for panel, size in zip(axes, panels, strict=True):
        own = [trial for trial in table if trial.settings.strongest == size]
        for model in dict.fromkeys(trial.model for trial in own):
            curves = np.array([trial.curve for trial in own if trial.model == model])
            panel.plot(np.arange(1, curves.shape[1] + 1), curves.mean(axis=0), label=model, color=colours[model])
        panel.set_title("all features" if size is None else f"{size:,} features", fontsize="medium")
        panel.set_xlabel("epochs")
        if own:  # an empty legend is warned of
            panel.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel("MELA on development documents")
    save_figure(figure, path)


def write_sizes(rows: Sequence[CoreferenceRow], path: Path) -> None:
    """Test MELA against the number of features."""
    figure, (axes,) = new_figure(1)
    sized = [row.name for row in rows if row.features is not None]
    order = sorted({row.features for row in rows if row.features is not None})
    for model in dict.fromkeys(sized):
        own = {row.features: row for row in rows if row.name == model}
        shown = [(place, own[size]) for place, size in enumerate([*order, None]) if size in own]
        axes.errorbar(
            [place for place, _ in shown],
            [row.mean for _, row in shown],
            [row.sd or 0.0 for _, row in shown],
            marker="o",
            capsize=3,
            label=model,
        )
    axes.set_xticks(range(len(order) + 1), [*(f"{size:,}" for size in order), "all"])
    axes.set_xlabel("features")
    axes.set_ylabel("MELA on test documents")
    if sized:
        axes.legend(frameon=False)
    save_figure(figure, path)
