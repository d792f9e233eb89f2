"""Measure training parameters on folds of the training file: how well are hidden attack types found?

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.folds import make_folds
>>> table = simulate(2500, seed=1).table()
>>> rule = TrainParams(learner="unlearned", scale="spread", false_alarm_rate=0.05)
>>> with measurer(table, make_folds(table)[:2], "reference", jobs=1, draws=1) as measure:
...     ((first, second),) = measure([rule])
>>> first.numbers["auc"] > 0.5
True
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, NetclustError
from netclust.linking.linker import LinkerConfig
from netclust.metrics.detection_metrics import auc, decision_metrics, detection_at
from netclust.models.network.evaluation import Evaluation, evaluate_network
from netclust.models.network.folds import StreamFold, Use
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import NetworkFit, fit_network
from netclust.records.table import Table
from netclust.scoring.model import Model

__all__ = ["DRAWS", "FIT_SEED", "FoldResult", "Measure", "Numbers", "measure_fold", "measurer"]

Numbers = dict[str, float]

DRAWS = 4
"""Reference sets that a candidate is measured with on every fold, with the seeds 1, 2, ...: the same for all."""
FIT_SEED = 0


class FoldResult(msgspec.Struct, frozen=True):
    """The numbers of a candidate on a fold, and how much each attribute moves its scores."""

    numbers: Numbers
    weights: dict[str, float] = {}


def measure_fold(
    table: Table, fold: StreamFold, use: Use, candidates: Sequence[TrainParams], draws: int = DRAWS
) -> list[FoldResult | str]:
    """Every candidate on one fold, or why it cannot be. Those that differ in the false-alarm rate alone share a fit."""
    train, validation = table[fold.train], table[fold.validation]
    results: list[FoldResult | str] = []
    fit: NetworkFit | None = None
    for params in candidates:
        try:
            if fit is not None and _same_fit(fit.params, params):
                fit = replace(fit, params=params)
            else:
                fit = fit_network(train, params, seed=FIT_SEED)
            models = [fit.draw(seed) for seed in range(1, draws + 1)]
            numbers = [_numbers(evaluate_network(m, [validation], _config(use)), fold, use) for m in models]
        except InputError as error:
            results.append(str(error))
            continue
        mean = {name: float(np.mean([n[name] for n in numbers])) for name in numbers[0]}
        results.append(FoldResult(mean, _attribute_weights(models[0])))
    return results


def _same_fit(a: TrainParams, b: TrainParams) -> bool:
    """Whether they differ at most in the false-alarm rate, which counts when a reference set is drawn."""
    calibrated = a.false_alarm_rate is not None and b.false_alarm_rate is not None
    return calibrated and msgspec.structs.replace(a, false_alarm_rate=b.false_alarm_rate) == b


def _config(use: Use) -> LinkerConfig:
    if use == "reference":
        return LinkerConfig.thesis(feedback="none")
    return LinkerConfig.thesis(referent_window=1000, delay=100, feedback="gold", whole=False)


def _numbers(evaluation: Evaluation, fold: StreamFold, use: Use) -> Numbers:
    """What is compared. For `reference`, AUC and detection are means over hidden types, each among all normal records.

    A type counts as one whatever its size: pooled, the floods that fill a file would decide how intrusions are found.
    """
    score, truth = evaluation.verdicts.score, evaluation.truth
    anomalous = evaluation.verdicts.anomalous
    decisions = decision_metrics(anomalous, truth)
    everything = np.ones(len(truth), np.bool_)
    types = [fold.hidden & (evaluation.label_names == name) for name in fold.types]
    asked = [of | ~truth for of in types if of.any()] if use == "reference" else [everything]

    def mean(of: Callable[[NDArray[np.bool_]], float | None], rows: list[NDArray[np.bool_]]) -> float:
        return float(np.mean([of(each) or 0.0 for each in rows])) if rows else 0.0

    alarms = decisions.false_positive_rate or 0.0
    found = decisions.detection_rate or 0.0
    found_hidden = mean(lambda of: float(anomalous[of].mean()), [of for of in types if of.any()])
    numbers = {
        "auc": mean(lambda rows: auc(score[rows], truth[rows]), asked),
        "detection_at_1": mean(lambda rows: detection_at(score[rows], truth[rows], 0.01), asked),
        "detection_at_6": mean(lambda rows: detection_at(score[rows], truth[rows], 0.06), asked),
        "overall_auc": auc(score, truth),
        "accuracy": decisions.accuracy,
        "balanced_accuracy": (found + 1 - alarms) / 2,
        "hidden_balanced_accuracy": (found_hidden + 1 - alarms) / 2,
        "detection_rate": found,
        "hidden_detection_rate": found_hidden,
        "false_positive_rate": alarms,
    }
    return {name: float(value or 0.0) for name, value in numbers.items()}


def _attribute_weights(model: Model) -> dict[str, float]:
    """Return how much each attribute moves a score: its weight times how much it varies in the reference set."""
    scorer, reference = model.scorer, model.reference
    spread = np.minimum(np.std(reference.num, axis=0), scorer.far) * np.abs(scorer.slope)
    weights = {a.name: float(w) for a, w in zip(model.encoding.numeric, spread, strict=True)}
    for s, a in enumerate(model.encoding.schema.coded):
        if model.encoding.vocabularies[s]:
            weights[a.name] = float(np.std(scorer.match[scorer.offset[s] + reference.code[:, s].astype(np.int64)]))
    return weights


Measure = Callable[[Sequence[TrainParams]], list[list[FoldResult | str]]]
"""Candidates to their results, fold by fold."""

_shared: tuple[Table, list[StreamFold], Use, int] | None = None


@contextmanager
def measurer(table: Table, folds: list[StreamFold], use: Use, jobs: int, draws: int = DRAWS) -> Iterator[Measure]:
    """Measures candidates on all folds, `jobs` folds at a time; 1 is in this process."""
    if jobs == 1:
        yield lambda candidates: _by_candidate([measure_fold(table, fold, use, candidates, draws) for fold in folds])
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(folds)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_set_up,
        initargs=(table, folds, use, draws),
    )

    def measure(candidates: Sequence[TrainParams]) -> list[list[FoldResult | str]]:
        waiting = [pool.submit(_measure_shared, k, list(candidates)) for k in range(len(folds))]
        return _by_candidate([future.result() for future in waiting])

    try:
        yield measure
    except BrokenProcessPool:
        raise NetclustError("a measuring process died, perhaps for want of memory: try --jobs 1") from None
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()  # whoever stops the search does not wait for the folds that are under way
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _set_up(table: Table, folds: list[StreamFold], use: Use, draws: int) -> None:
    """Set up a measuring process with what it needs. Ctrl-C is the parent's to handle."""
    global _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared = (table, folds, use, draws)


def _measure_shared(k: int, candidates: Sequence[TrainParams]) -> list[FoldResult | str]:
    if _shared is None:
        raise RuntimeError("a measuring process was given no folds")
    table, folds, use, draws = _shared
    return measure_fold(table, folds[k], use, candidates, draws)


def _by_candidate(by_fold: list[list[FoldResult | str]]) -> list[list[FoldResult | str]]:
    return [list(results) for results in zip(*by_fold, strict=True)]
