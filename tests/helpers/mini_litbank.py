"""A folder like that of LitBank, of a few made-up stories, and experiments that are over at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.writing import write_conll
from netclust.models.coreference.story_simulator import simulate_documents
from netclust.models.experiments.coreference import litbank_experiments

FEATURES = FeatureSettings(bits=18, distance=20)
EPOCHS = 2
SIZES = (300, None)


def make_litbank(folder: Path, splits: int = 2, stories: int = 10) -> Path:
    """Per split: one story to choose by, one to test on, others to learn from."""
    (folder / "conll").mkdir(parents=True)
    names = []
    for story in simulate_documents(stories, seed=51):
        write_conll([story], folder / "conll" / f"{story.name}_brat.conll")
        names.append(f"{story.name}_brat.tsv")
    for number in range(splits):
        ids = folder / "tenfold_splits" / str(number)
        ids.mkdir(parents=True)
        turned = names[number:] + names[:number]
        for part, own in (("dev", turned[:1]), ("test", turned[1:2]), ("train", turned[2:])):
            (ids / f"{part}.ids").write_text("".join(f"{name}\n" for name in own))
    return folder


def hurry(monkeypatch: Any, *modules: Any, choices: int = 2) -> None:
    """Few features, epochs and choices, in the experiments and whoever has imported them by name."""
    for module in (litbank_experiments, *modules):
        monkeypatch.setattr(module, "FEATURES", FEATURES)
        monkeypatch.setattr(module, "SIZES", SIZES)
    monkeypatch.setattr(litbank_experiments, "EPOCHS", EPOCHS)
    grids = {
        name: {key: values[:choices] for key, values in grid.items()}
        for name, grid in litbank_experiments._GRIDS.items()
    }
    monkeypatch.setattr(litbank_experiments, "_GRIDS", grids)
