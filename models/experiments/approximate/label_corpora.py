"""Multi-label data for experiments: made ones, and the public ones of a folder with a subfolder each.

A subfolder `scene` has `scene-train.arff` and `scene-test.arff` (packed or not), as Mulan gives them, with `scene.xml`
beside them, which says what columns are labels.

>>> made = made_corpora(seed=0, sizes={"synth2": (100, 50)}, names=("synth2",))
>>> made[0].name, made[0].train.Y.shape, made[0].test.Y.shape, made[0].test_sha256
('synth2', (100, 10), (50, 10), None)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.label_names import LabelChoice
from netclust.datasets.label_sets import LabelSetTable, read_labels
from netclust.datasets.simulators.synth_labels import synth1, synth2
from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.multilabel.multilabel_problem import LabelRows

__all__ = ["CORPORA", "MADE", "LabelBlock", "LabelCorpus", "Sizes", "made_corpora", "read_corpora", "with_constant"]

Sizes = Mapping[str, tuple[int, int]]
MADE: Sizes = {"synth1": (471, 5045), "synth2": (1000, 10_000), "synth2+1": (1000, 10_000)}
"""Rows for training and test, as published; `+1` is with a constant feature."""
CORPORA = ("scene", "yeast", "emotions", "enron", "medical")
EXTRA = ("emotions", "enron", "medical")
"""Not in the published study: they get a constant feature, and dense features are standardised on training rows."""
_MAKERS: dict[str, Callable[..., LabelSetTable]] = {
    "synth1": synth1,
    "synth2": synth2,
    "synth2+1": partial(synth2, bias=True),
}
_PACKED = ("", ".xz", ".gz", ".zip", ".zst")


@dataclass(frozen=True, eq=False)
class LabelBlock:
    """Rows with their labels."""

    x: LabelRows
    Y: NDArray[np.uint8]

    @classmethod
    def of(cls, table: LabelSetTable, where: str) -> LabelBlock:
        """The rows of a table."""
        if table.Y is None:
            raise InputError(f"{where}: the file has no labels")
        return cls(LabelRows(table.X), table.Y)

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.x)

    def take(self, rows: Sequence[int]) -> LabelBlock:
        """Some of the rows."""
        at = np.asarray(rows, np.int64)
        return LabelBlock(self.x.take(at), self.Y[at])


@dataclass(frozen=True, eq=False)
class LabelCorpus:
    """What is trained on, and what is measured on; the checksum of the test file where there is one."""

    name: str
    train: LabelBlock
    test: LabelBlock
    sha256: dict[str, str]
    test_sha256: str | None = None
    constant: bool = False
    """Whether one feature is 1 everywhere."""

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return int(self.train.Y.shape[1])

    @property
    def features(self) -> int:
        """How many features there are."""
        return int(self.train.x.features.shape[1])


def made_corpora(seed: int, sizes: Sizes = MADE, names: Sequence[str] = tuple(MADE)) -> list[LabelCorpus]:
    """Synth1 and Synth2: training rows have the seed 2 s, test rows 2 s + 1."""
    found = []
    for name in names:
        if name not in _MAKERS:
            raise InputError(f"{name!r} is no made data set: they are {', '.join(MADE)}")
        parts = [
            LabelBlock.of(_MAKERS[name](rows, seed=2 * seed + at), name)
            for at, rows in enumerate(sizes.get(name, MADE[name]))
        ]
        found.append(LabelCorpus(name, parts[0], parts[1], {}, constant=name.endswith("+1")))
    return found


def read_corpora(folder: Path, names: Sequence[str] = CORPORA) -> list[LabelCorpus]:
    """The public data sets of a folder that are there; none at all is refused."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no folder of multi-label data")
    found = [_read(folder / name, name) for name in names if (folder / name).is_dir()]
    if not found:
        raise InputError(f"{folder}: none of the subfolders {', '.join(names)} is there")
    return found


def _read(folder: Path, name: str) -> LabelCorpus:
    names = folder / f"{name}.xml"
    choice = LabelChoice(file=names) if names.is_file() else LabelChoice()
    train_path, test_path = (_file(folder, f"{name}-{part}.arff") for part in ("train", "test"))
    train = read_labels(train_path, choice=choice)
    test = read_labels(test_path, choice=choice, features=train.features, labels=train.labels)
    checksums = {train_path.name: train.sha256, test_path.name: test.sha256}
    blocks = LabelBlock.of(train, str(train_path)), LabelBlock.of(test, str(test_path))
    corpus = LabelCorpus(name, *blocks, checksums, test.sha256)
    return with_constant(_standardised(corpus)) if name in EXTRA else corpus


def with_constant(corpus: LabelCorpus) -> LabelCorpus:
    """The same rows with one more feature, 1 everywhere.

    >>> made = made_corpora(seed=0, sizes={"synth2": (20, 20)}, names=("synth2",))[0]
    >>> made.features, with_constant(made).features
    (40, 41)
    """
    blocks = []
    for part in (corpus.train, corpus.test):
        ones = np.ones((len(part), 1))
        if isinstance(part.x.features, np.ndarray):
            made: Any = np.hstack([part.x.features, ones])
        else:
            made = require_optional("scipy.sparse", "sparse features").hstack([part.x.features, ones], format="csr")
        blocks.append(LabelBlock(LabelRows(made), part.Y))
    return replace(corpus, train=blocks[0], test=blocks[1], constant=True)


def _standardised(corpus: LabelCorpus) -> LabelCorpus:
    """Dense features in units of the training rows' spread; sparse ones as they are."""
    if not isinstance(corpus.train.x.features, np.ndarray):
        return corpus
    mean, spread = corpus.train.x.features.mean(axis=0), corpus.train.x.features.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    blocks = [LabelBlock(LabelRows((part.x.features - mean) / spread), part.Y) for part in (corpus.train, corpus.test)]
    return replace(corpus, train=blocks[0], test=blocks[1])


def _file(folder: Path, name: str) -> Path:
    for ending in _PACKED:
        if (folder / (name + ending)).is_file():
            return folder / (name + ending)
    raise InputError(f"{folder}: there is no {name}, packed or not")
