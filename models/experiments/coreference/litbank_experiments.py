"""The published experiments on coreference models, run on LitBank's ten splits.

Hyper-parameters are chosen on the development documents of split 0 and then kept; the number of epochs is chosen on the
development documents of every split. Test documents are only measured with what came out. Every training is a
`CoreferenceTrial`, a line of a file as soon as it is done: a run that was stopped continues where it was.

>>> settings = CoreferenceSettings()
>>> CoreferenceTrial(split=1, model="LSP^E", stage="table", settings=settings, curve=(71.0, 72.5, 72.0)).epochs
2

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; tables 5.2
to 5.8. D. Bamman, O. Lewke and A. Mansoor, "An annotated dataset of coreference in English literature", LREC 2020.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.coreference.antecedent_problem import AntecedentProblem
from netclust.models.coreference.examples import Example, measure_examples, prepare_examples
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.learning import (
    BestEpoch,
    gather_outputs,
    learn_coreference,
    mela,
    resolve_mentions,
    with_slots,
)
from netclust.models.coreference.measured_antecedents import MeasuredAntecedents
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.coreference.train_coreference import choose_slots
from netclust.models.experiments.coreference.coreference_baselines import head_match, singletons
from netclust.models.experiments.coreference.coreference_trials import CoreferenceTrial, Trials
from netclust.models.experiments.coreference.litbank import read_split
from netclust.problems.loss_learning import fit_loss
from netclust.problems.loss_learning import measure_loss as quality
from netclust.structures.pairs import Indices

__all__ = [
    "BASELINES",
    "FEATURES",
    "MODELS",
    "SIZED",
    "SIZES",
    "Regression",
    "SplitData",
    "best_settings",
    "measure_regression",
    "run_litbank_split",
    "tune_litbank",
]

FEATURES = FeatureSettings()

EPOCHS = 30
TUNING_EPOCHS = 20

MODELS: dict[str, CoreferenceSettings] = {
    "LSP^E": CoreferenceSettings(learner="lsp"),
    "LSP_YJ": CoreferenceSettings(learner="lsp", loss="yj"),
    "LSPA^E": CoreferenceSettings(learner="lspa"),
    "LSSVM^E": CoreferenceSettings(learner="lssvm"),
    "LSP^K": CoreferenceSettings(learner="lsp", structure="K"),
    "LSPA^K": CoreferenceSettings(learner="lspa", structure="K"),
    "LSSVM^K": CoreferenceSettings(learner="lssvm", structure="K"),
    "LSP_rho": CoreferenceSettings(learner="rho"),
    "LSP*_rho": CoreferenceSettings(learner="rho-joint"),
    "LSP*_rho,online": CoreferenceSettings(learner="rho-online"),
}
"""The models by their names in the literature; LSP^E is LSP_F there where losses are compared."""

BASELINES = {"head match": head_match, "singletons": singletons}

SIZES = (10_000, 100_000, None)
SIZED = ("LSP^E", "LSP_YJ", "LSP_rho", "LSP*_rho", "LSP*_rho,online")
"""The models that are compared with few features and with many."""

_PERCEPTRON_C = (1.0, 10.0, 100.0, 1000.0)
_LEARNED_C = (*_PERCEPTRON_C, 10_000.0)
_ONE = (1.0,)  # a step of LSPA makes up for C exactly: another one scales the weights
_SVM_C = (0.001, 0.01, 0.1)
_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "LSP^E": {"C": _PERCEPTRON_C, "r": (0.5, 2.0)},
    "LSP_YJ": {"C": _PERCEPTRON_C, "r": (0.05, 0.5)},
    "LSPA^E": {"C": _ONE, "r": (0.5, 2.0)},
    "LSSVM^E": {"C": _SVM_C},
    "LSP^K": {"C": _PERCEPTRON_C, "r": (0.05, 0.5)},
    "LSPA^K": {"C": _ONE, "r": (0.05, 0.5)},
    "LSSVM^K": {"C": _SVM_C},
    "LSP_rho": {"C": _LEARNED_C},
    "LSP*_rho": {"C": _LEARNED_C},
    "LSP*_rho,online": {"C": _LEARNED_C},
}


class SplitData:
    """The documents of one split, prepared when they are first needed."""

    def __init__(self, folder: Path, number: int, jobs: int = 1) -> None:
        self.number = number
        self._documents = read_split(folder, number)
        self._jobs = jobs
        self._parts: dict[tuple[str, int | None], list[Example]] = {}
        self._slots: dict[int, Indices] = {}

    def part(self, name: Literal["train", "dev", "test"], strongest: int | None = None) -> list[Example]:
        """The examples of a part, with all features or the strongest of the training documents'."""
        if (name, strongest) not in self._parts:
            if strongest is None:
                documents = getattr(self._documents, name)
                self._parts[name, None] = prepare_examples(documents, FEATURES, jobs=self._jobs)
            else:
                self._parts[name, strongest] = with_slots(self.part(name), self._strongest(strongest))
        return self._parts[name, strongest]

    def _strongest(self, count: int) -> Indices:
        if count not in self._slots:
            self._slots[count] = choose_slots(self.part("train"), count)
        return self._slots[count]


def run_trial(
    data: SplitData, model: str, settings: CoreferenceSettings, stage: Literal["tune", "table"]
) -> CoreferenceTrial:
    """Train, choose the epoch on the development documents, and, for the table, measure the test documents."""
    size = settings.strongest
    train, dev = data.part("train", size), data.part("dev", size)
    best = BestEpoch(settings, dev)
    start = time.perf_counter()
    learned = learn_coreference(settings, train, best)
    seconds = time.perf_counter() - start
    if best.w is None:  # the SVM has no epochs
        best(0, learned.w)
    w = learned.w if best.w is None else best.w
    held = data.part("test", size) if stage == "table" else []
    return CoreferenceTrial(
        split=data.number,
        model=model,
        stage=stage,
        settings=settings,
        curve=tuple(best.curve),
        test=_measured(held, [resolve_mentions(settings, e.pairs, w) for e in held]) if held else {},
        seconds=seconds,
        updates=learned.updates,
        converged=learned.converged,
        losses=learned.losses,
    )


def tune_litbank(data: SplitData, trials: Trials, models: Sequence[str] = tuple(MODELS)) -> None:
    """Tune every model's C, and then its r, on the development documents of split 0."""
    for model in models:
        base = _settings(MODELS[model], {"epochs": TUNING_EPOCHS})
        for name, grid in _GRIDS[model].items():
            for value in grid:
                _do(data, trials, model, _settings(base, {"epochs": TUNING_EPOCHS, name: value}), "tune")
            base = best_settings(trials, model)


def best_settings(trials: Trials, model: str) -> CoreferenceSettings:
    """What was best on the development documents; of equal ones the first that was tried."""
    tried = [trial for trial in trials if trial.stage == "tune" and trial.model == model]
    if not tried:
        raise InputError(f"{trials.path}: {model} has not been tuned: tune it first")
    return max(tried, key=lambda trial: trial.dev).settings


def run_litbank_split(
    data: SplitData, trials: Trials, models: Sequence[str], sizes: Sequence[int | None] = (None,)
) -> None:
    """Run the trainings of the table on one split that are not done yet."""
    for size in sizes:
        for model in models:
            settings = best_settings(trials, model)
            _do(data, trials, model, _settings(settings, {"strongest": size}), "table")
    for name, rule in BASELINES.items():
        if not any(trial.model == name and trial.split == data.number for trial in trials):
            test = data.part("test")
            trials.add(
                CoreferenceTrial(
                    split=data.number,
                    model=name,
                    stage="table",
                    settings=CoreferenceSettings(features=FEATURES),
                    test=_measured(test, [rule(example.document) for example in test]),
                )
            )


def _do(data: SplitData, trials: Trials, model: str, settings: CoreferenceSettings, stage: Any) -> None:
    if not trials.has(data.number, model, settings, stage):
        trials.add(run_trial(data, model, settings, stage))


def _settings(base: CoreferenceSettings, change: dict[str, Any]) -> CoreferenceSettings:
    return msgspec.structs.replace(base, **{"features": FEATURES, "epochs": EPOCHS, **change})


def _measured(examples: Sequence[Example], found: Iterable[NDArray[np.int64]]) -> dict[str, float]:
    """F1 in percent by measure."""
    return {name: round(100.0 * score.f1, 4) for name, score in measure_examples(examples, found).items()}


class Regression(msgspec.Struct, frozen=True):
    """A loss learned on one sample of documents, measured on another: mean squared error and squared correlation."""

    train: str
    test: str
    examples: int
    mse: float
    scc: float


def measure_regression(data: SplitData) -> list[Regression]:
    """How well the nine features tell MELA: two halves of the training documents, each way."""
    train = data.part("train")
    task = MeasuredAntecedents(AntecedentProblem(FEATURES.dimension), mela)
    halves = {"S1": train[0::2], "S2": train[1::2]}
    seen = {name: gather_outputs(task, [(e.pairs, e.truth) for e in half]) for name, half in halves.items()}
    found = []
    for first, second in (("S1", "S2"), ("S2", "S1")):
        loss = fit_loss(seen[first].features, seen[first].targets)
        mse, scc = quality(loss, seen[second].features, seen[second].targets)
        found.append(Regression(first, second, len(seen[first]), mse, scc))
    return found
