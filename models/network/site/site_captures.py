"""Question P: attack captures against benign captures, where each benign capture is a site of its own.

A detector learns all benign captures but a fold, scores the captures of the fold, and scores the attacks as well. So no
benign record is scored by a detector that has seen its capture. An attack's score is its mean over the folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.metrics.detection_metrics import share
from netclust.models.network.site.site_measures import RATES, measure_scores, summarise
from netclust.models.network.site.site_records import join_tables
from netclust.models.network.site.site_scorers import SiteScorer
from netclust.records.table import Table

__all__ = ["judge_captures", "thinned"]

FOLDS = 5


def judge_captures(
    benign: Mapping[str, Table],
    attacks: Mapping[str, Table],
    make: Callable[[], Sequence[SiteScorer]],
    folds: int = FOLDS,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the measures of every scorer: per attack capture, their mean, and false alarms per benign capture.

    `folds` equal to the number of benign captures leaves one capture out at a time.
    """
    names = list(benign)
    folds = min(folds, len(names))
    if folds < 2 or not attacks:
        raise InputError("split capture needs two benign captures or more, and a capture of attacks")
    scores: dict[str, dict[str, NDArray[np.float64]]] = {}
    flags: dict[str, dict[str, dict[float, NDArray[np.bool_]]]] = {}
    mean: dict[str, dict[str, NDArray[np.float64]]] = {}
    votes: dict[str, dict[str, dict[float, NDArray[np.float64]]]] = {}
    for fold in range(folds):
        held = names[fold::folds]
        train = join_tables([benign[name] for name in names if name not in held])
        for scorer in make():
            on_step(f"fold {fold + 1} of {folds}: {scorer.name}")
            scorer.fit(train)
            for name in held:
                scores.setdefault(scorer.name, {})[name] = scorer.scores(benign[name])
                flags.setdefault(scorer.name, {})[name] = {r: scorer.flags(benign[name], r) for r in RATES}
            for name, table in attacks.items():
                found = mean.setdefault(scorer.name, {})
                found[name] = found.get(name, 0.0) + scorer.scores(table) / folds
                flagged = votes.setdefault(scorer.name, {}).setdefault(name, {})
                for rate in RATES:
                    flagged[rate] = flagged.get(rate, 0.0) + scorer.flags(table, rate) / folds
    return {name: _measures(scores[name], flags[name], mean[name], votes[name]) for name in scores}


def _measures(
    scores: Mapping[str, NDArray[np.float64]],
    flags: Mapping[str, Mapping[float, NDArray[np.bool_]]],
    mean: Mapping[str, NDArray[np.float64]],
    votes: Mapping[str, Mapping[float, NDArray[np.float64]]],
) -> dict[str, Any]:
    ordinary = np.concatenate(list(scores.values()))
    captures = {}
    for name, score in mean.items():
        truth = np.arange(len(ordinary) + len(score)) >= len(ordinary)
        both = {
            rate: np.concatenate([*(f[rate] for f in flags.values()), votes[name][rate] > 0.5]).astype(np.bool_)
            for rate in RATES
        }
        captures[name] = {"attacks": len(score), **measure_scores(np.concatenate([ordinary, score]), truth, both)}
    benign = {name: {f"{rate:g}": share(int(f.sum()), len(f)) for rate, f in of.items()} for name, of in flags.items()}
    return {
        "captures": captures,
        "mean": summarise(captures.values()),
        "benign_captures": benign,
        "obtained_worst_capture": {
            f"{rate:g}": max((of[f"{rate:g}"] or 0.0 for of in benign.values()), default=None) for rate in RATES
        },
    }


def thinned(table: Table, most: int) -> Table:
    """Return at most so many records, evenly taken: one flood must not stand for all attacks."""
    if len(table) <= most:
        return table
    return table[np.linspace(0, len(table) - 1, most).astype(np.int64)]
