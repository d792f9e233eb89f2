"""Detectors that are judged: a protocol, netclust as it is adapted to a site, and one-line rules.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> scorer = AdaptedScorer(model)
>>> scorer.fit(simulate(900, seed=2, day=1, attacks=()).table())
>>> today = simulate(300, seed=3, day=2).table()
>>> scorer.scores(today).shape, scorer.flags(today, 0.01).dtype
((300,), dtype('bool'))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from netclust.linking.adaptation import RATE, adapt
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.novelty import SiteNovelty
from netclust.linking.verdicts import Verdicts
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding
from netclust.records.table import Table
from netclust.scoring.model import Model

__all__ = [
    "AdaptedScorer",
    "BegunOutside",
    "FailedConnections",
    "NoveltyScorer",
    "RuleScorer",
    "SiteScorer",
    "ThresholdScorer",
    "one_hot",
]  # fmt: skip

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]


class SiteScorer(Protocol):
    """Learns a site from benign records and scores others: the higher, the less like the site.

    A new detector is one more class with these methods. Where flagged means that the score lies above a threshold,
    inherit from `ThresholdScorer`, and write `fit`, `scores` and `threshold`.
    """

    name: str

    def fit(self, benign: Table) -> None:
        """Learn the site from records of its warm-up, in order of time."""
        ...

    def scores(self, table: Table) -> Scores:
        """Score records of the site that were not learned from."""
        ...

    def flags(self, table: Table, rate: float) -> Flags:
        """Return which records are flagged where this rate of false alarms was asked for."""
        ...


class ThresholdScorer(ABC):
    """A scorer that flags what scores above a threshold."""

    name = ""

    @abstractmethod
    def fit(self, benign: Table) -> None:
        """Learn the site."""

    @abstractmethod
    def scores(self, table: Table) -> Scores:
        """Score records."""

    @abstractmethod
    def threshold(self, rate: float) -> float:
        """Return the score above which records are flagged, set on benign records of the warm-up alone."""

    def flags(self, table: Table, rate: float) -> Flags:
        """Return which records score above the threshold of a rate."""
        return np.asarray(self.scores(table) > self.threshold(rate))


class AdaptedScorer:
    """A model adapted to the site by the warm-up of `watch`, and the score of its verdicts.

    With a window, records link to earlier ones too, as they do in `watch`; then the order of records matters.
    """

    def __init__(
        self, model: Model, *, name: str = "netclust", references: int = 2000, window: LinkerConfig | None = None
    ) -> None:
        self.name = name
        self._shipped = model
        self._references = references
        self._window = window or LinkerConfig(referent_window=0)
        self._site: Batch | None = None
        self._adapted: dict[float, Model] = {}

    def fit(self, benign: Table) -> None:
        """Keep the records of the warm-up; the model is adapted when a rate is known."""
        self._site = _unlabelled(self._shipped.encoding, benign)
        self._adapted = {}

    def scores(self, table: Table) -> Scores:
        """Score records at the rate that `watch` asks for by default: the best of the root and others, minus normal."""
        return np.asarray(self._verdicts(table, RATE).score, np.float64)

    def flags(self, table: Table, rate: float) -> Flags:
        """Return which verdicts are anomalous where the model was adapted for the rate."""
        return np.asarray(self._verdicts(table, rate).anomalous)

    def _verdicts(self, table: Table, rate: float) -> Verdicts:
        if self._site is None:
            raise RuntimeError("fit comes first")
        if rate not in self._adapted:
            self._adapted[rate] = adapt(self._shipped, self._site, rate=rate, references=self._references)
        model = self._adapted[rate]
        return Linker(model, self._window).process(_unlabelled(model.encoding, table))


def _unlabelled(encoding: Encoding, table: Table) -> Batch:
    batch = encoding.encode(table)
    return replace(batch, label=np.full(len(batch), -1, np.int32))


class NoveltyScorer(ThresholdScorer):
    """How unlike the site a record is: the distance to the k-th nearest of its referents, whatever they link to."""

    def __init__(self, encoding: Encoding, *, name: str = "netclust novelty") -> None:
        self.name = name
        self._encoding = encoding
        self._site: SiteNovelty | None = None

    def fit(self, benign: Table) -> None:
        """Draw the referents from the records, and learn units, ranges and prices of the site from them."""
        self._site = SiteNovelty.fit(_unlabelled(self._encoding, benign), self._encoding.widths)

    def scores(self, table: Table) -> Scores:
        """Return the novelty of each record."""
        return np.asarray(self._fitted.scores(_unlabelled(self._encoding, table)), np.float64)

    def threshold(self, rate: float) -> float:
        """Return the threshold that a share of ordinary records exceeds; +inf where the site has too few for it."""
        return self._fitted.threshold(rate) if rate * (len(self._fitted) + 1) >= 1 else np.inf

    @property
    def _fitted(self) -> SiteNovelty:
        if self._site is None:
            raise RuntimeError("fit comes first")
        return self._site


class RuleScorer(ThresholdScorer):
    """A rule that learns nothing of the site but the quantiles of its own score."""

    def fit(self, benign: Table) -> None:
        """Keep the scores of benign records."""
        self._held = self.scores(benign)

    def threshold(self, rate: float) -> float:
        """Return the score that this share of the benign records exceeds."""
        return upper_quantile(self._held, rate)


class BegunOutside(RuleScorer):
    """Flags connections that were begun outside: the label of attacks from outside nearly equals this rule."""

    name = "rule: begun outside"

    def __init__(self, inside: frozenset[str]) -> None:
        self._inside = inside

    def scores(self, table: Table) -> Scores:
        """Return 1 for a connection whose source is not the site's."""
        sources = table.context.get("source")
        if sources is None:
            return np.zeros(len(table))
        return np.array([source not in self._inside for source in sources.tolist()], np.float64)


class FailedConnections(RuleScorer):
    """Counts the failed connections of a source in the last minute."""

    name = "rule: failed connections"

    def scores(self, table: Table) -> Scores:
        """Return how many of the source's connections failed: their share times their number."""
        names = [a.name for a in table.schema.numeric]
        if "src_failed_rate" not in names:
            return np.zeros(len(table))
        rate, flows = (table.num[:, names.index(name)] for name in ("src_failed_rate", "src_flows"))
        return np.asarray(rate * (flows + 1), np.float64)


def upper_quantile(scores: Scores, rate: float) -> float:
    """Return the score that at most `rate` of new benign records exceed (split conformal), the highest if too few.

    >>> upper_quantile(np.arange(99.0), 0.05), upper_quantile(np.arange(9.0), 0.01)
    (94.0, 8.0)
    """
    ranked = np.sort(scores)[::-1]
    allowed = int(rate * (len(ranked) + 1) + 1e-9)
    return float(ranked[max(allowed - 1, 0)])


def one_hot(encoding: Encoding, table: Table) -> NDArray[np.float64]:
    """Return every record as numbers: scaled numeric attributes, then one bit per value of a symbolic one."""
    batch = encoding.encode(table)
    bits = [batch.code[:, s, None] == np.arange(1, width) for s, width in enumerate(encoding.widths)]
    return np.concatenate([batch.num, *bits], axis=1, dtype=np.float64)
