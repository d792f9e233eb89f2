"""What a structured task must say so that one command line, one model file and one choice of C serve it.

A task reads raw examples its own way; what it learns of them besides weights (vocabularies, scales) is its encoder,
a struct that goes into the model file as JSON. Weights are learned on the task's `Problem` by a structural SVM. This
one tells how many of two things there are, from a number:

>>> class Count(SvmSettings, frozen=True, kw_only=True):
...     pass
>>> class Scale(msgspec.Struct, frozen=True):
...     largest: float
>>> class Counting(StructuredTask):
...     name, settings, encoder = "counting", Count, Scale
...     def fit(self, raw, settings):
...         return Scale(max(x for x, _ in raw))
...     def encode(self, encoder, raw):
...         return [(np.array([x / encoder.largest, 1.0]), y) for x, y in raw]
...     def problem(self, encoder, settings):
...         return Above()
...     def weight_names(self, encoder, settings):
...         return ["size", "constant"]
...     def measure(self, pairs):
...         return {"loss": float(np.mean([100.0 * (y != h) for y, h in pairs]))}
>>> class Above:  # score h * w.x
...     dimension = 2
...     def joint_features(self, x, h):
...         return h * x
...     def predict(self, x, w):
...         return int(w @ x > 0)
...     def max_violating(self, x, y, w, C):
...         h = max((0, 1), key=lambda h: h * (w @ x) + C * self.loss(y, h))
...         return h, self.loss(y, h)
...     def gold(self, x, y, w):
...         return y
...     def loss(self, y, h):
...         return 100.0 * (y != h)
>>> raw = [(1.0, 0), (2.0, 0), (8.0, 1), (9.0, 1)]
>>> task, settings = Counting(), Count(C=1e4)
>>> encoder = task.fit(raw, settings)
>>> learned = learn(task, settings, encoder, task.encode(encoder, raw))
>>> task.problem(encoder, settings).predict(np.array([7.5 / 9, 1.0]), learned.w), learned.converged
(1, True)
>>> choose_cost(task, Count(), raw, encoder, grid=(1e-3, 1e4), folds=2).C
10000.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.learners.cutting_plane import OnIteration, SvmFit
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.models.selection import k_folds
from netclust.problems.base import Problem, Vector

__all__ = ["GRID", "ChosenCost", "LearnedTask", "StructuredTask", "SvmSettings", "choose_cost", "learn"]

GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
"""Values of C that are tried."""
Tick = Callable[[int, int], None]


class SvmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How weights are learned; a task adds what is its own."""

    C: float = 1.0
    """Weight of the mean loss, in percent, against the size of the weights."""
    epsilon: float = 0.1
    """How far, in percent of loss, a constraint may be violated at the end."""
    learner: Literal["one-slack", "n-slack", "frank-wolfe"] = "one-slack"
    max_iterations: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not (self.C > 0 and np.isfinite(self.C)):
            raise InputError(f"C is {self.C}, expected a number above 0")
        if not (self.epsilon > 0 and np.isfinite(self.epsilon)):
            raise InputError(f"epsilon is {self.epsilon}, expected a number above 0")
        if self.max_iterations < 1:
            raise InputError(f"max_iterations is {self.max_iterations}, expected 1 or more")


class LearnedTask(msgspec.Struct, frozen=True):
    """Weights, and what is known of how good they are for the program that was to be solved."""

    w: Vector
    iterations: int
    converged: bool
    objective: float
    gap: float
    by: str = ""
    """What learned them, in words."""
    fit: SvmFit | None = None
    """With its planes: where the next training, at another C, begins."""


class StructuredTask(Protocol):
    """A task: its names, and how raw examples become those of its problem.

    `raw` is a sequence of what the task's reader gives; y is None where an example has no gold output.
    """

    name: ClassVar[str]
    """As in `netclust train NAME`."""
    settings: ClassVar[type[Any]]
    """A subclass of `SvmSettings`."""
    encoder: ClassVar[type[Any]]
    """A struct of what is learned of the data besides weights; goes into the model file."""
    grid: ClassVar[Sequence[float]] = GRID
    """Values of C that are tried for it."""

    def fit(self, raw: Any, settings: Any) -> Any:
        """The encoder of training examples."""

    def encode(self, encoder: Any, raw: Any) -> list[tuple[Any, Any]]:
        """Examples (x, y) of the task's problem."""

    def problem(self, encoder: Any, settings: Any) -> Problem[Any, Any, Any]:
        """The task as learners see it."""

    def weight_names(self, encoder: Any, settings: Any) -> Sequence[str]:
        """What every weight is of."""

    def measure(self, pairs: Sequence[tuple[Any, Any]]) -> Mapping[str, float]:
        """Measures of outputs (y, h), the first one the loss in percent by which C is chosen."""

    def notes(self, encoder: Any, raw: Any, examples: Sequence[tuple[Any, Any]]) -> Sequence[str]:
        """What people should know of how their examples were read, a line each."""
        return ()

    def take(self, raw: Any, chosen: Sequence[int]) -> Any:
        """Some of the raw examples."""
        return [raw[i] for i in chosen]

    def learn(
        self,
        settings: Any,
        problem: Problem[Any, Any, Any],
        examples: Sequence[tuple[Any, Any]],
        *,
        warm: SvmFit | None = None,
        on_iteration: OnIteration | None = None,
    ) -> LearnedTask:
        """Weights; a task with a learner of its own does it here."""
        return learn_svm(settings, problem, examples, warm=warm, on_iteration=on_iteration)


def learn_svm(
    settings: SvmSettings,
    problem: Problem[Any, Any, Any],
    examples: Sequence[tuple[Any, Any]],
    *,
    warm: SvmFit | None = None,
    on_iteration: OnIteration | None = None,
) -> LearnedTask:
    """Weights by the structural SVM that the settings name; `warm` is a fit on the same examples at any C."""
    C, epsilon, most = settings.C, settings.epsilon, settings.max_iterations
    if settings.learner == "frank-wolfe":
        fit = FrankWolfe(C=C, epsilon=epsilon, max_iterations=most, seed=settings.seed).fit(
            problem, examples, on_iteration=on_iteration
        )
    elif settings.learner == "n-slack":
        fit = NSlack(C=C, epsilon=epsilon, max_iterations=most).fit(
            problem, examples, warm=warm, on_iteration=on_iteration
        )
    else:
        fit = OneSlack(C=C, epsilon=epsilon, max_iterations=most).fit(
            problem, examples, warm=warm, on_iteration=on_iteration
        )
    by = f"structural SVM, {settings.learner}"
    return LearnedTask(fit.w, fit.iterations, fit.converged, fit.objective, fit.gap, by, fit)


def learn(
    task: StructuredTask,
    settings: SvmSettings,
    encoder: Any,
    examples: Sequence[tuple[Any, Any]],
    *,
    warm: SvmFit | None = None,
    on_iteration: OnIteration | None = None,
) -> LearnedTask:
    """Weights from examples that all have their gold outputs."""
    if any(y is None for _, y in examples):
        raise InputError("an example has no gold output: there is nothing to learn from it")
    return task.learn(settings, task.problem(encoder, settings), examples, warm=warm, on_iteration=on_iteration)


@dataclass(frozen=True)
class ChosenCost:
    """The C of the lowest held-out loss (of equals the smallest), and the loss of every C, in percent."""

    C: float
    grid: tuple[float, ...]
    losses: tuple[float, ...]
    folds: int


def choose_cost(
    task: StructuredTask,
    settings: SvmSettings,
    raw: Any,
    encoder: Any,
    *,
    grid: Sequence[float] | None = None,
    folds: int = 5,
    on_progress: Tick | None = None,
) -> ChosenCost:
    """C by folds of the training examples; of one fold, every training goes on from the planes of the C before."""
    costs = sorted(task.grid if grid is None else grid)
    if len(raw) < 2:
        raise InputError("C is chosen on held-out examples, and there is one only: give --C NUMBER, or more examples")
    cuts = k_folds(len(raw), min(folds, len(raw)), seed=settings.seed)
    losses = np.zeros((len(cuts), len(costs)))
    for f, cut in enumerate(cuts):
        train, held = (task.encode(encoder, task.take(raw, chosen)) for chosen in (cut.train, cut.held))
        warm: SvmFit | None = None
        for c, C in enumerate(costs):
            one = msgspec.structs.replace(settings, C=C)
            learned = learn(task, one, encoder, train, warm=warm)
            warm = learned.fit
            problem = task.problem(encoder, one)
            found = task.measure([(y, problem.predict(x, learned.w)) for x, y in held])
            losses[f, c] = next(iter(found.values()))
            if on_progress is not None:
                on_progress(f * len(costs) + c + 1, losses.size)
    mean = losses.mean(axis=0)
    return ChosenCost(costs[int(np.argmin(mean))], tuple(costs), tuple(mean.tolist()), len(cuts))
