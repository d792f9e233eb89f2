"""Choose training parameters on the training file alone: hide whole attack types, and ask how well they are found.

A candidate is measured on every fold of `models.network.folds`; a coordinate search keeps what is better. Nothing is
random from one run to the next; only the budget, in seconds, decides how far it gets.

>>> parse_budget("30m")
1800.0
>>> print(params_toml(TrainParams(learner="unlearned", symbol_weight=0.5)), end="")
learner = "unlearned"
symbol_weight = 0.5
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from netclust.errors import InputError, NetclustError
from netclust.models.network.folds import StreamFold, Use, make_folds
from netclust.models.network.measuring import DRAWS, FoldResult, Measure, Numbers, measurer
from netclust.models.network.params import TrainParams, parse_params
from netclust.records.schema import Schema
from netclust.records.table import Table

__all__ = [
    "OBJECTIVES",
    "SPACES",
    "STARTS",
    "Objective",
    "Search",
    "Tuning",
    "TuningTrial",
    "attribute_groups",
    "params_toml",
    "parse_budget",
    "tune",
]  # fmt: skip

Space = dict[str, tuple[Any, ...]]

SEARCH_RATE = 0.02
"""The false-alarm rate during the search: the root bounds the score from below, so it must be the same for all."""
RATES = (0.005, 0.01, 0.02, 0.03, 0.05)
MIN_GROUP = 3

_MARGIN: Space = {
    "training_window": (500, 1000, 2000, 4000),
    "temperature": (1.0, 3.0, 10.0),
    "reach": (0.5, 1.0, 2.0, None),
    "far": (1.0, 2.0, 4.0, None),
    "symbol_weight": (0.3, 1.0, 2.0),
    "hide": (0.0, 0.25, 0.5),
    "kind_balance": (0.0, 0.5, 0.7),
    "class_balance": (0.0, 0.25, 0.5, 0.75),
    "steps": (200, 400, 800),
    "pull": (0.0, 1e-3, 1e-2),
    "transform": ("schema", "none", "log1p"),
    "reference_choice": ("proportional", "balanced", "covering"),
    "without": ((),),  # in the first pass also each group, then, if time remains, single attributes
}
_PERCEPTRON: Space = {
    "training_window": (50, 100, 200, 400),
    "epochs": (1, 2, 5, 10),
    "C": (0.0, 0.1, 1.0, 10.0),
    "r": (0.0, 1.0, 10.0),
    "sign": (-1, 1),
    "absent": ("window", "global"),
    "root": ("bias", "none", "attributes"),
    "transform": ("schema", "none", "log1p"),
}
_UNLEARNED: Space = {
    "scale": ("range", "spread"),
    "symbol_weight": (0.3, 1.0, 2.0),
    "far": (1.0, 2.0, 4.0, None),
    "transform": ("schema", "none", "log1p"),
    "reference_choice": ("proportional", "balanced", "covering"),
}
SPACES: dict[str, Space] = {
    "margin": _MARGIN,
    "lsp": _PERCEPTRON,
    "lspa": _PERCEPTRON,
    "unlearned": _UNLEARNED,
}
"""Which values of which parameter are tried, in this order, by learner."""

STARTS: dict[str, TrainParams] = {
    "margin": TrainParams(learner="margin", scale="spread", training_window=1000),  # `far` counts in spreads
    "lsp": TrainParams(learner="lsp"),
    "lspa": TrainParams(learner="lspa"),
    "unlearned": TrainParams(learner="unlearned"),
}
"""Where the search starts if it is told nothing else."""


# What is better


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """`first` decides; where it differs by less than `tolerance`, `second` does if it differs by `enough`.

    Both are about what another draw of reference sets does by itself. `decision` chooses the root.
    """

    first: str
    tolerance: float
    second: str
    enough: float
    decision: str
    rates: tuple[float | None, ...]

    def better(self, a: Numbers, b: Numbers, top: float = -math.inf) -> bool:
        """Whether a is better than b. A walk of near-ties never falls a tolerance below `top`, the highest of them.

        >>> o = OBJECTIVES["reference"]
        >>> o.better({"auc": 0.9, "detection_at_1": 0.1}, {"auc": 0.89, "detection_at_1": 0.9})
        True
        >>> o.better({"auc": 0.9, "detection_at_1": 0.1}, {"auc": 0.8997, "detection_at_1": 0.2})
        False
        >>> o.better({"auc": 0.9, "detection_at_1": 0.11}, {"auc": 0.8997, "detection_at_1": 0.1})
        False
        """
        ahead = a[self.first] - b[self.first]
        if abs(ahead) >= self.tolerance:
            return ahead > 0
        return a[self.second] - b[self.second] >= self.enough and a[self.first] > top - self.tolerance


OBJECTIVES: dict[Use, Objective] = {
    "reference": Objective(
        first="auc",
        tolerance=0.002,
        second="detection_at_1",
        enough=0.02,
        decision="hidden_balanced_accuracy",
        rates=RATES,
    ),
    "late": Objective(
        first="auc", tolerance=0.0002, second="accuracy", enough=0.0003, decision="accuracy", rates=(None, *RATES)
    ),
}


# The search


class TuningTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate as it was measured: what was moved, what it differs in from the start, and what came of it."""

    step: str
    params: TrainParams
    changed: dict[str, Any]
    kept: bool
    seconds: float
    mean: Numbers = {}
    folds: list[Numbers] = []
    weights: dict[str, float] = {}
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For the result: the parameters are those of the start with what changed."""
        names = ("step", "changed", "kept", "seconds", "mean", "folds", "error")
        return {name: msgspec.to_builtins(getattr(self, name)) for name in names}


@dataclass
class Search:
    """A coordinate search: one parameter at a time, value by value, keeping what is better. See `run`."""

    use: Use
    measure: Measure
    budget: float
    fixed: frozenset[str] = frozenset()
    on_trial: Callable[[TuningTrial], None] = lambda trial: None
    clock: Callable[[], float] = time.monotonic
    trials: list[TuningTrial] = field(default_factory=list)
    start: TrainParams = field(default_factory=TrainParams)
    best: TuningTrial | None = None
    passes: int = 0
    exhausted: bool = False
    _top: float = -math.inf
    _began: float = 0.0
    _seen: dict[TrainParams, TuningTrial] = field(default_factory=dict)

    def run(self, start: TrainParams, schema: Schema) -> TuningTrial:
        """The start; passes until one changes nothing or time is up; single attributes; the decision rule."""
        if unknown := sorted(self.fixed - set(SPACES[start.learner])):
            known = ", ".join(SPACES[start.learner])
            raise InputError(
                f"{', '.join(unknown)} is not searched for learner {start.learner} anyway; these are: {known}"
            )
        space = {name: values for name, values in SPACES[start.learner].items() if name not in self.fixed}
        self._began = self.clock()
        self.start = _replace(start, false_alarm_rate=SEARCH_RATE)
        self._try("start", self.start)
        if self.best is None:
            raise InputError(f"the start parameters cannot be measured: {self.trials[0].error}")
        improved = True
        while improved and not self.exhausted:
            self.passes += 1
            improved = self._pass(space, attribute_groups(schema) if self.passes == 1 else [])
        if "without" in space and not self.exhausted:
            self._single_attributes()
        return self._decide(self.best)

    def _pass(self, space: Space, groups: Sequence[tuple[str, ...]]) -> bool:
        """Every value of every parameter, once; whether one was kept."""
        improved = False
        for name, values in space.items():
            for value in (*values, *(groups if name == "without" else ())):
                improved |= self._move(name, value)
        return improved

    def _move(self, name: str, value: Any) -> bool:
        """Try one value from the best so far; a group of attributes is left out besides those that are already."""
        now = self.current
        if name == "without" and value:
            value = tuple(sorted({*now.without, *value}))
        candidate = _replace(now, **{name: value})
        if candidate in self._seen or not self._affordable():
            return False
        return self._try(name, candidate)

    def _single_attributes(self) -> None:
        """Leave out one attribute after the other, the one that moves scores least first."""
        weights = self.best.weights if self.best else {}
        for name in sorted(weights, key=lambda name: (weights[name], name)):
            self._move("without", (name,))

    @property
    def current(self) -> TrainParams:
        """The parameters of the best candidate so far."""
        return self.best.params if self.best else self.start

    def _affordable(self) -> bool:
        """Whether there is time for another candidate, and for the decision rule after it."""
        recent = [trial.seconds for trial in self.trials[1:][-3:]]  # the first one also starts processes and kernels
        fits = 1 + len({rate is None for rate in OBJECTIVES[self.use].rates})
        need = fits * sum(recent) / len(recent) if recent else 0.0
        self.exhausted |= self.clock() - self._began + need > self.budget
        return not self.exhausted

    def _try(self, step: str, params: TrainParams) -> bool:
        began = self.clock()
        (results,) = self.measure([params])
        trial = self._trial(step, params, results, self.clock() - began)
        objective = OBJECTIVES[self.use]
        better = trial.error is None and (self.best is None or objective.better(trial.mean, self.best.mean, self._top))
        trial = self._note(trial, kept=better)
        if better:
            self.best = trial
            self._top = max(self._top, trial.mean[objective.first])
        return better

    def _decide(self, best: TuningTrial) -> TuningTrial:
        """The false-alarm rate with the best decisions; of equals the first."""
        objective = OBJECTIVES[self.use]
        rated = {rate: _replace(best.params, false_alarm_rate=rate) for rate in objective.rates}
        new = [params for params in rated.values() if params not in self._seen]
        began = self.clock()
        measured = self.measure(new) if new else []
        seconds = (self.clock() - began) / max(len(new), 1)
        found = {best.params: best}
        for params, results in zip(new, measured, strict=True):
            found[params] = self._trial("false_alarm_rate", params, results, seconds)
        usable = [found[p] for p in rated.values() if p in found and found[p].error is None]
        chosen = max(usable, key=lambda trial: trial.mean[objective.decision])
        for params in new:
            self._note(found[params], kept=params == chosen.params)
        self.best = self._seen[chosen.params]
        return self.best

    def _trial(self, step: str, params: TrainParams, results: list[FoldResult | str], seconds: float) -> TuningTrial:
        error = next((r for r in results if isinstance(r, str)), None)
        fine = [r for r in results if isinstance(r, FoldResult)]
        mean: Numbers = {}
        weights: dict[str, float] = {}
        if error is None:
            mean = {name: float(np.mean([r.numbers[name] for r in fine])) for name in fine[0].numbers}
            weights = {name: float(np.mean([r.weights.get(name, 0.0) for r in fine])) for name in fine[0].weights}
        return TuningTrial(
            step=step,
            params=params,
            changed=_differences(params, self.start),
            kept=False,
            seconds=seconds,
            mean=mean,
            folds=[r.numbers for r in fine],
            weights=weights,
            error=error,
        )

    def _note(self, trial: TuningTrial, kept: bool) -> TuningTrial:
        trial = msgspec.structs.replace(trial, kept=kept)
        self.trials.append(trial)
        self._seen[trial.params] = trial
        self.on_trial(trial)
        return trial


@dataclass(frozen=True)
class Tuning:
    """What a search found, and everything that it tried."""

    best: TuningTrial
    start: TrainParams
    trials: list[TuningTrial]
    folds: list[StreamFold]
    passes: int
    exhausted: bool
    interrupted: bool
    seconds: float

    @property
    def searched(self) -> TuningTrial:
        """The best of the search, before the false-alarm rate was chosen."""
        return [trial for trial in self.trials if trial.kept and trial.step != "false_alarm_rate"][-1]


def tune(
    table: Table,
    start: TrainParams,
    *,
    use: Use = "reference",
    budget: float = 1800.0,
    jobs: int = 2,
    draws: int = DRAWS,
    fixed: Sequence[str] = (),
    on_trial: Callable[[TuningTrial], None] = lambda trial: None,
    where: str = "training data",
) -> Tuning:
    """Search from `start` for at most about `budget` seconds. Ctrl-C ends it with the best so far, if there is one.

    Parameters named in `fixed` stay as they are in the start.
    """
    folds = make_folds(table, use, where)
    began = time.monotonic()
    interrupted = False
    search = Search(use=use, measure=_nothing, budget=budget, fixed=frozenset(fixed), on_trial=on_trial)
    try:
        with measurer(table, folds, use, jobs, draws) as search.measure:
            search.run(start, table.schema)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        interrupted = True
    if search.best is None:
        raise RuntimeError("a search ended without a best candidate")
    return Tuning(
        best=search.best,
        start=search.start,
        trials=search.trials,
        folds=folds,
        passes=search.passes,
        exhausted=search.exhausted,
        interrupted=interrupted,
        seconds=time.monotonic() - began,
    )


def _nothing(candidates: Sequence[TrainParams]) -> list[list[FoldResult | str]]:
    return [["not measured"] for _ in candidates]


def attribute_groups(schema: Schema) -> list[tuple[str, ...]]:
    """Attributes that may be left out together: the binary ones, and those whose names begin with the same word.

    >>> from netclust.records.schema import load_schema
    >>> [group[0] for group in attribute_groups(load_schema("kdd"))]
    ['land', 'dst_bytes', 'num_failed_logins', 'srv_count']
    """
    groups = [tuple(a.name for a in schema.coded if a.kind == "binary")]
    words = [re.split(r"[_.\W]", a.name)[0].lower() for a in schema.features]
    groups += [
        tuple(a.name for a, own in zip(schema.features, words, strict=True) if own == word)
        for word in dict.fromkeys(words)
    ]
    return [group for group in groups if MIN_GROUP <= len(group) < len(schema.features)]


# Text


def parse_budget(text: str) -> float:
    """Seconds of `90s`, `30m` or `2h`."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(s|m|h)", text.strip())
    seconds = float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if not 0 < seconds <= 1e7:
        raise InputError(f"a budget is a number above 0 and a unit, such as 90s, 30m or 2h, not {text[:100]!r}")
    return seconds


def params_toml(params: TrainParams) -> str:
    """The parameters as TOML that `load_params` reads: what differs from the defaults."""
    changed = _differences(params, TrainParams())
    text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in changed.items())
    if parse_params(text) != params:
        raise NetclustError(f"these parameters cannot be written as TOML: {changed}")
    return text


def _differences(params: TrainParams, other: TrainParams) -> dict[str, Any]:
    names = [f.name for f in msgspec.structs.fields(TrainParams)]
    return {
        name: msgspec.to_builtins(getattr(params, name))
        for name in names
        if getattr(params, name) != getattr(other, name)
    }


def _replace(params: TrainParams, **changes: Any) -> TrainParams:
    replaced = msgspec.structs.replace(params, **changes)
    replaced.__post_init__()  # replace does not check
    return replaced
