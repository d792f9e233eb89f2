"""Learn to rank a query's candidates: SR by the ranking alone, JSRC by ranking and clustering at once.

>>> rng = np.random.default_rng(0)
>>> def query():
...     y = np.array([1, 0, 0, 0])
...     return RankQuery(np.column_stack([y + rng.normal(0, 0.3, 4), rng.normal(0, 1, 4)])), y
>>> train, new = [query() for _ in range(30)], [query() for _ in range(20)]
>>> w = learn_ranking(RankSettings(C=1.0, epochs=5), train)
>>> measure_ranker(RankSettings(), new, w).map > 0.9
True

C and the number of epochs are chosen by the mean average precision of queries that are not trained on: those of a
development file, or held-out folds of the training queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.learners.perceptron import Fitted, Lsp, OnEpoch
from netclust.models.ranking.ranking_metrics import RankingScores, measure_rankings
from netclust.models.ranking.ranking_problem import (
    HalfStep,
    JointProblem,
    RankingProblem,
    RankQuery,
    Relevance,
    both_steps,
)
from netclust.models.selection import k_folds
from netclust.problems.base import Vector
from netclust.structures.partition import Labels
from netclust.structures.rankings import Order

__all__ = [
    "GRID",
    "MAX_ITEMS",
    "ChosenRanking",
    "RankExample",
    "RankSettings",
    "RankTrial",
    "Ranked",
    "choose_ranking",
    "learn_ranking",
    "measure_ranker",
    "rank_items",
]

RankExample = tuple[RankQuery, Relevance]
Tick = Callable[[int, int], None]
GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Values of C that are tried."""
STARTS: tuple[Literal["zero", "pairs"], ...] = ("zero", "pairs")
MAX_ITEMS = 2000
"""Candidates of one query: a joint ranking looks at all pairs of them."""


class RankSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a ranking is learned."""

    model: Literal["sr", "jsrc"] = "sr"
    """sr: rank; jsrc: rank and cluster, with the members of a cluster next to each other."""
    C: float = 0.1
    """Weight of the loss in the search for what is most wrong."""
    epochs: int = 5
    search: Literal["exact", "greedy"] = "exact"
    """sr: how the max-violating ranking is found; greedy is the printed way."""
    start: Literal["zero", "pairs"] = "zero"
    """jsrc: pair weights start at 0 (right forests then span, also by pairs below 0), or at a pair classifier's."""
    seed: int = 0
    """Of the order of examples."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not (self.C >= 0 and np.isfinite(self.C)):
            raise InputError(f"C is {self.C}, expected 0 or more")
        if not 1 <= self.epochs <= 10_000:
            raise InputError(f"epochs is {self.epochs}, expected 1 to 10,000")


class Ranked(msgspec.Struct, frozen=True):
    """A query's items, best first, and the cluster of each item (in the order of the items; sr: each its own)."""

    order: Order
    clusters: Labels


def learn_ranking(settings: RankSettings, examples: Sequence[RankExample], on_epoch: OnEpoch | None = None) -> Vector:
    """The weights: of items, and behind them (jsrc) of pairs; averaged over all steps."""
    return _fit(settings, _usable(examples), on_epoch).averaged


def rank_items(settings: RankSettings, query: RankQuery, w: Vector) -> Ranked:
    """Rank the items of a query."""
    if len(query.items) > MAX_ITEMS and settings.model == "jsrc":
        raise InputError(f"{len(query.items)} candidates of one query: a joint ranking is for {MAX_ITEMS} at most")
    if settings.model == "sr":
        return Ranked(RankingProblem(len(w)).predict(query, w), np.arange(len(query.items)))
    found = _joint(settings, query).predict(HalfStep(query, "ranking"), w)
    return Ranked(found.order, found.clusters())


def measure_ranker(settings: RankSettings, examples: Sequence[RankExample], w: Vector) -> RankingScores:
    """Return MAP, MRR and P@1 of rankings by these weights."""
    return measure_rankings(y[rank_items(settings, x, w).order] for x, y in examples)


class RankTrial(msgspec.Struct, frozen=True):
    """One setting that was tried, and the mean average precision after every epoch."""

    C: float
    start: str
    curve: tuple[float, ...]

    @property
    def best(self) -> tuple[float, int]:
        """(MAP, epochs) where it was highest, at the earliest."""
        at = int(np.argmax(self.curve))
        return self.curve[at], at + 1


class ChosenRanking(msgspec.Struct, frozen=True):
    """The settings of the highest mean average precision, and all that was tried."""

    settings: RankSettings
    map: float
    on: Literal["development queries", "folds"]
    trials: tuple[RankTrial, ...]


def choose_ranking(
    settings: RankSettings,
    train: Sequence[RankExample],
    held: Sequence[RankExample] | None = None,
    *,
    grid: Sequence[float] = GRID,
    epochs: int = 50,
    folds: int = 5,
    on_progress: Tick | None = None,
) -> ChosenRanking:
    """C, epochs (up to so many) and the start of pair weights by MAP on `held`, or on folds of the training queries.

    Of equal ones the smallest C and the fewest epochs are taken.
    """
    usable = _usable(train)
    if held is not None and not any((y > 0).any() for _, y in held):
        raise InputError("no development query has a right candidate: nothing can be chosen by them")
    if held is None:
        if len(usable) < 2:
            raise InputError("C is chosen on held-out queries, and there is one only: give C, or more queries")
        cuts = k_folds(len(usable), min(folds, len(usable)), seed=settings.seed)
        splits = [([usable[i] for i in cut.train], [usable[i] for i in cut.held]) for cut in cuts]
    else:
        splits = [(usable, list(held))]
    starts = STARTS if settings.model == "jsrc" else STARTS[:1]
    tried = [(C, start) for C in sorted(grid) for start in starts]
    trials = []
    for done, (C, start) in enumerate(tried, 1):
        one = msgspec.structs.replace(settings, C=C, start=start, epochs=epochs)
        curves = [_curve(one, own, others) for own, others in splits]
        trials.append(RankTrial(C, start, tuple(np.mean(curves, axis=0).tolist())))
        if on_progress is not None:
            on_progress(done, len(tried))
    best = max(trials, key=lambda trial: trial.best[0])
    value, at = best.best
    chosen = msgspec.structs.replace(settings, C=best.C, start=_start_named(best.start), epochs=at)
    return ChosenRanking(chosen, value, "folds" if held is None else "development queries", tuple(trials))


def _start_named(name: str) -> Literal["zero", "pairs"]:
    return "pairs" if name == "pairs" else "zero"


def _curve(settings: RankSettings, train: Sequence[RankExample], held: Sequence[RankExample]) -> list[float]:
    found: list[float] = []

    def look(model: Fitted) -> None:
        found.append(measure_ranker(settings, held, model.averaged).map)

    _fit(settings, train, look)
    return found


def _usable(examples: Sequence[RankExample]) -> list[RankExample]:
    """The queries that say something about an order."""
    found = [(x, y) for x, y in examples if 0 < int((y > 0).sum()) < len(y)]
    if not found:
        raise InputError("no query has both a right and a wrong candidate: there is nothing to learn an order from")
    return found


def _fit(settings: RankSettings, examples: Sequence[RankExample], on_epoch: OnEpoch | None) -> Fitted:
    first = examples[0][0]
    features = first.items.shape[1]
    if settings.model == "sr":
        problem = RankingProblem(features, settings.search)
        return Lsp().fit(problem, examples, epochs=settings.epochs, C=settings.C, on_epoch=on_epoch, seed=settings.seed)
    joint = _joint(settings, first)
    w0 = np.zeros(joint.dimension)
    if settings.start == "pairs":
        w0[features:] = _pair_weights(examples)
    return Lsp().fit(
        joint, both_steps(examples), epochs=settings.epochs, C=settings.C, w0=w0, on_epoch=on_epoch, seed=settings.seed
    )


def _joint(settings: RankSettings, query: RankQuery) -> JointProblem:
    if query.pairs is None:
        raise InputError("a joint model needs features of pairs of candidates")
    return JointProblem(query.items.shape[1], query.pairs.dimension, spanning=settings.start == "zero")


def _pair_weights(examples: Sequence[RankExample]) -> Vector:
    """Of a classifier of pairs: both right or both wrong, or one of each."""
    from netclust.models.clustering.pairwise import PairClassifier, feature_rows

    sets = [(x.pairs, y) for x, y in examples if x.pairs is not None]
    constant = all((feature_rows(pairs)[:, -1] == 1).all() for pairs, _ in sets)
    return PairClassifier(constant=-1 if constant else None).fit(sets)
