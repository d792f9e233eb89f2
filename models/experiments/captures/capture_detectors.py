"""netclust and its rivals as detectors that are warmed up on ordinary traffic and then score connections.

All get the same attributes; rivals as numbers, symbols as one bit a value. All stay as they are once warmed up. Rivals
need `pip install 'netclust[bench]'`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import MissingExtraError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.experiments.peers import unary_features
from netclust.models.network.train_network import NetworkFit
from netclust.records.encoding import fit_encoding
from netclust.records.table import Table
from netclust.scoring.model import Model

__all__ = ["RIVALS", "ConnectionScorer", "Netclust", "make_rival"]

Scores = NDArray[np.float64]


class ConnectionScorer(ABC):
    """Scores connections: the higher, the stranger."""

    @abstractmethod
    def score(self, table: Table) -> Scores:
        """One number a connection."""


class Netclust(ConnectionScorer):
    """A learned similarity and a drawn reference set: the score of a verdict, nothing being added to the referents."""

    def __init__(self, fit: NetworkFit, seed: int, *, only_normal: bool = False) -> None:
        self.model: Model = fit.draw(seed, only_normal=only_normal)

    def score(self, table: Table) -> Scores:
        """Best of the root and others, less best of the normal referents."""
        linker = Linker(self.model, LinkerConfig(referent_window=0))
        batch = self.model.encoding.encode(table, linker.labels)
        unlabelled = replace(batch, label=np.full(len(batch), -1, np.int32))
        return np.asarray(linker.process(unlabelled).score, np.float64)


class _Rival(ConnectionScorer):
    def __init__(self, warm: Table, seed: int) -> None:
        self._encoding = fit_encoding(warm)
        self._warm_up(self._features(warm), seed)

    def _features(self, table: Table) -> Scores:
        return unary_features(self._encoding, table)

    @abstractmethod
    def _warm_up(self, x: Scores, seed: int) -> None:
        """Learn what is ordinary."""


class _IsolationForest(_Rival):
    def _warm_up(self, x: Scores, seed: int) -> None:
        ensemble = _module("sklearn.ensemble")
        self._forest = ensemble.IsolationForest(n_estimators=200, max_samples=min(2048, len(x)), random_state=seed).fit(
            x
        )

    def score(self, table: Table) -> Scores:
        return np.asarray(-self._forest.score_samples(self._features(table)), np.float64)


class _HalfSpaceTrees(_Rival):
    def _warm_up(self, x: Scores, seed: int) -> None:
        self._trees = _module("river.anomaly").HalfSpaceTrees(n_trees=25, height=12, window_size=500, seed=seed)
        for row in np.clip(x, 0, 1).tolist():
            self._trees.learn_one(dict(enumerate(row)))

    def score(self, table: Table) -> Scores:
        rows = np.clip(self._features(table), 0, 1).tolist()
        return np.array([self._trees.score_one(dict(enumerate(row))) for row in rows])


class _KitNet(_Rival):
    """Kitsune's ensemble of autoencoders, as PySAD has it: a tenth of the warm-up maps features, the rest trains."""

    def _warm_up(self, x: Scores, seed: int) -> None:
        models = _module("pysad.models")
        mapping = max(len(x) // 10, 100)
        self._net = models.KitNet(
            grace_feature_mapping=mapping, grace_anomaly_detector=len(x) - mapping - 1, random_state=seed
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it reports what it does
            for row in x:
                self._net.fit_partial(row)

    def score(self, table: Table) -> Scores:
        with contextlib.redirect_stdout(io.StringIO()):
            found = [float(self._net.score_partial(row)) for row in self._features(table)]
        return np.asarray(np.nan_to_num(np.array(found), nan=0.0), np.float64)


RIVALS: dict[str, type[_Rival]] = {
    "isolation forest": _IsolationForest,
    "half-space trees": _HalfSpaceTrees,
    "KitNet": _KitNet,
}
"""By the name that tables show."""


def make_rival(name: str, warm: Table, seed: int) -> ConnectionScorer:
    """A rival that has seen ordinary traffic."""
    return RIVALS[name](warm, seed)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError("this baseline", name.partition(".")[0], "bench") from None
