"""What the cutting-plane learners share: the constraints of an example, the loop, its reports, its checkpoints.

The loop asks the oracle for the most violated constraints at w, adds them to the working set and solves the program
over it, until nothing is violated by more than epsilon. What it prints are two bounds that close: `primal`, the
objective at the best w so far, and `dual`, the value over the planes so far; at the end they are within epsilon * C.

The bounds are as good as the oracle. One that misses the worst output (greedy clustering) makes `primal` too low: it
is then no upper bound of the full problem's optimum, though `dual` still is a lower one. One that searches a larger
set (a relaxation) bounds the problem over that set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.container import Arrays, require_array
from netclust.learners.training_state import Checkpoint
from netclust.learners.working_set import Planes, WorkingSet
from netclust.problems.base import Problem, SlackProblem, SparseProblem, Vector, signed_weights
from netclust.problems.sparse_features import Change, times

__all__ = [
    "Constraints",
    "CuttingPlaneRule",
    "Found",
    "IterationReport",
    "OnIteration",
    "Rescaling",
    "SvmFit",
    "Training",
]

X = TypeVar("X")
Y = TypeVar("Y")
H = TypeVar("H")
Rescaling = Literal["margin", "slack"]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class IterationReport:
    """One iteration: planes in the working set, the mean violation and slack at the w that was tried, and the bounds.

    `primal` is the best objective so far (infinite until all examples were looked at with one w), `dual` the value
    over the planes, this iteration's included; `round` counts the convex programs of a latent SVM.
    """

    iteration: int
    planes: int
    violation: float
    xi: float
    primal: float
    dual: float
    gap: float
    oracle_seconds: float
    qp_seconds: float
    round: int = 1


OnIteration = Callable[[IterationReport], bool | None]
"""Called after every iteration; returning True ends the training (and writes the checkpoint, if there is one)."""


@dataclass(frozen=True, eq=False)
class SvmFit:
    """A trained structural SVM.

    `xi` is the (mean) slack of w in the working set, so `|w|^2/2 + C xi` is not above the optimum; `slacks` are those
    of the examples, where they have their own. `objective` is the primal at w with the slack that the oracle found.
    Where training was ended early, w is the best one so far. `rounds` are a latent SVM's objectives, a round each.
    """

    w: Vector
    xi: float
    objective: float
    dual: float
    gap: float
    iterations: int
    converged: bool
    planes: Planes
    slacks: Vector | None = None
    reports: list[IterationReport] = field(default_factory=list)
    rounds: tuple[float, ...] = ()


class Constraints(Generic[X, Y, H]):
    """The constraints of the examples, with their gold structures fixed under `w`: (g, l) says `l - w.g <= xi`."""

    def __init__(
        self, problem: Problem[X, Y, H], examples: Sequence[tuple[X, Y]], rescaling: Rescaling, w: Vector, jobs: int
    ) -> None:
        if not len(examples):
            raise InputError("there are no examples to train on")
        if rescaling == "slack" and not hasattr(problem, "max_violating_slack"):
            raise InputError(f"{type(problem).__name__} cannot be trained with slack rescaling: use margin rescaling")
        if jobs < 1:
            raise InputError(f"jobs is {jobs}: at least one thread is needed")
        self.problem, self.examples, self.rescaling, self.jobs = problem, examples, rescaling, jobs
        self._structures = [problem.gold(x, y, w) for x, y in examples]
        self._sparse = isinstance(problem, SparseProblem)

    @cached_property
    def gold(self) -> Matrix:
        """The features of the gold structures, a row an example."""
        return np.stack([self._gold_features(i) for i in range(len(self.examples))])

    @cached_property
    def mean_gold(self) -> Vector:
        """Their mean; where differences are sparse it is all that is needed, and 80 rows of 2^20 slots are not kept."""
        if not self._sparse:
            return np.asarray(self.gold.mean(axis=0))
        total = np.zeros(self.problem.dimension)
        for i in range(len(self.examples)):
            total += self._gold_features(i)
        return total / len(self.examples)

    def worst(self, i: int, w: Vector) -> tuple[Change, float]:
        """The constraint of example i that is violated most at w."""
        x, y = self.examples[i]
        if self.rescaling == "margin":
            h, loss = self.problem.max_violating(x, y, w, 1.0)
        else:
            h, loss = cast(SlackProblem[X, Y, H], self.problem).max_violating_slack(x, y, w)
        if not (math.isfinite(loss) and loss >= 0):
            raise InputError(f"the loss of example {i + 1} is {loss}: losses are finite and not negative")
        if isinstance(self.problem, SparseProblem):
            g: Change = self.problem.difference(x, self._structures[i], h)
        else:
            g = self.gold[i] - self._features(x, h)
        return (g if self.rescaling == "margin" else times(g, loss)), float(loss)

    def all_worst(self, w: Vector) -> Iterator[tuple[Change, float]]:
        """The worst constraint of every example in turn, by `jobs` threads; the order does not depend on them."""
        places = range(len(self.examples))
        if self.jobs == 1:
            yield from (self.worst(i, w) for i in places)
            return
        with ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(lambda i: self.worst(i, w), places)

    def _gold_features(self, i: int) -> Vector:
        return self._features(self.examples[i][0], self._structures[i])

    def _features(self, x: X, h: H) -> Vector:
        phi = np.asarray(self.problem.joint_features(x, h), np.float64)
        if phi.shape != (self.problem.dimension,) or not np.isfinite(phi).all():
            raise InputError(f"joint features have shape {phi.shape}: {self.problem.dimension} finite numbers expected")
        return phi


@dataclass(frozen=True)
class Found:
    """What one look at all examples gave: `risk` is sum_k cap_k xi_k at w, None where w moved meanwhile."""

    violation: float
    xi: float
    risk: float | None
    added: bool
    qp_seconds: float = 0.0


@dataclass(eq=False)
class State:
    """A run between two iterations."""

    planes: WorkingSet
    minimiser: bool  # whether w is the minimiser over the planes, so that the stopping rule means something
    best_w: Vector
    best_primal: float = math.inf
    best_dual: float = 0.0
    iteration: int = 0
    reports: list[IterationReport] = field(default_factory=list)


class CuttingPlaneRule(Protocol):
    """What the one-slack and the n-slack learner differ in."""

    @property
    def rescaling(self) -> Rescaling:
        """Whether the loss is added to the margin or multiplies it."""

    @property
    def max_iterations(self) -> int:
        """The iterations after which training ends unfinished."""

    @property
    def purge_after(self) -> int:
        """The solutions after which an idle plane is forgotten."""

    def caps(self, examples: int) -> Vector:
        """The weight of every slack."""

    def group_gold(self, constraints: Constraints[Any, Any, Any]) -> Matrix:
        """The gold features of every slack."""

    def look(self, constraints: Constraints[Any, Any, Any], state: State) -> Found:
        """Look at all examples and add the constraints that are violated by more than epsilon."""


def check_rule(rule: Any) -> None:
    """Refuse settings that cannot be meant."""
    for name in ("C", "epsilon"):
        value = getattr(rule, name)
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value}: it must be a finite number above 0")
    if getattr(rule, "rescaling", "margin") not in ("margin", "slack"):
        raise InputError(f"rescaling is {rule.rescaling!r}: use 'margin' or 'slack'")
    for name in ("max_iterations", "purge_after", "batch"):
        if getattr(rule, name, None) is not None and getattr(rule, name) < 1:
            raise InputError(f"{name} is {getattr(rule, name)}: it must be at least 1")


def _settings_of(rule: Any, problem: Any, examples: int) -> dict[str, Any]:
    """Return the settings that a checkpoint must agree in; where training ends does not change the way to it."""
    settings = asdict(rule)
    for part in (settings, settings.get("convex", {})):
        for name in ("max_iterations", "max_rounds"):
            part.pop(name, None)
    task: dict[str, Any] = {"task": type(problem).__name__}
    if is_dataclass(problem):  # its loss and oracle: constraints of others are none of this training's
        own = {part.name: getattr(problem, part.name) for part in fields(problem) if part.name != "predictor"}
        task |= {f"task {name}": value for name, value in own.items() if isinstance(value, str | int | float)}
        task.pop("task dimension", None)
    return {
        "learner": type(rule).__name__, **settings, **task, "dimension": problem.dimension, "examples": examples,
    }  # fmt: skip


class Training(Generic[X, Y, H]):
    """One convex program: a rule on examples whose gold structures are those of the highest score under `w`."""

    def __init__(
        self,
        rule: CuttingPlaneRule,
        problem: Problem[X, Y, H],
        examples: Sequence[tuple[X, Y]],
        w: Vector,
        jobs: int = 1,
    ) -> None:
        self.rule = rule
        self.constraints = Constraints(problem, examples, rule.rescaling, w, jobs)
        self.caps = rule.caps(len(examples))
        self.gold = rule.group_gold(self.constraints)
        self.dimension = problem.dimension
        self.nonnegative = signed_weights(problem)

    def start(self, w: Vector | None = None, planes: Planes | None = None) -> State:
        """A run that begins with planes of an earlier one (at any C), or by a look at the examples with its w."""
        made = WorkingSet(self.dimension, self.caps, self.nonnegative)
        if planes is not None and len(planes):
            for vector, loss, group in zip(planes.vectors, planes.losses, planes.group, strict=True):
                made.add(vector, float(loss), int(group))
            made.solve()
        elif w is not None:
            made.w = np.array(w, np.float64)
            made.w[self.nonnegative] = np.maximum(made.w[self.nonnegative], 0.0)
        minimiser = made.count > 0 or not made.w.any()
        return State(made, minimiser, made.w, best_dual=made.dual)

    def from_fit(self, warm: SvmFit | None) -> State:
        """The start from an earlier fit: its planes where they mean the same here, else its w."""
        if warm is None:
            return self.start()
        if warm.w.shape != (self.dimension,):
            raise InputError(f"the warm start has {len(warm.w)} weights, this problem {self.dimension}")
        planes = warm.planes
        if planes.gold.shape != self.gold.shape or planes.rescaling != self.rule.rescaling:
            return self.start(warm.w)
        if not np.allclose(planes.gold, self.gold, rtol=1e-9, atol=1e-12):
            raise InputError("the warm start was trained on other examples: its constraints do not hold here")
        return self.start(warm.w, planes)

    def restore(self, checkpoint: Checkpoint, arrays: Arrays, header: dict[str, Any]) -> State:
        """The run as a checkpoint left it."""
        where = str(checkpoint.path)
        checkpoint.check_gold(arrays, self.constraints.mean_gold)
        reports = unpack_reports(arrays, where)
        best = require_array(arrays, "best", np.float64, (2,), where)
        return State(
            WorkingSet.from_arrays(arrays, self.dimension, self.caps, where, self.nonnegative),
            minimiser=True,
            best_w=require_array(arrays, "best_w", np.float64, (self.dimension,), where),
            best_primal=math.inf if best[0] < 0 else float(best[0]),
            best_dual=float(best[1]),
            iteration=int(header.get("iteration", 0)),
            reports=reports,
        )

    def run(
        self,
        state: State,
        on_iteration: OnIteration | None = None,
        checkpoint: Checkpoint | None = None,
        also: Arrays | None = None,
        round_: int = 1,
    ) -> tuple[SvmFit, bool]:
        """Iterate until nothing is violated by more than epsilon; the fit, and whether the caller ended it."""
        planes, primal, stopped, converged = state.planes, math.inf, False, False
        while state.iteration < self.rule.max_iterations and not (converged or stopped):
            started, w = time.perf_counter(), planes.w
            found = self.rule.look(self.constraints, state)
            looked = time.perf_counter()
            if found.risk is not None:
                primal = float(w @ w) / 2 + found.risk
                if primal < state.best_primal:
                    state.best_primal, state.best_w = primal, w
            if found.added:
                planes.purge(self.rule.purge_after)
                planes.solve()
                state.minimiser = True
            converged = not found.added
            state.iteration += 1
            state.best_dual = max(state.best_dual, planes.dual)
            report = IterationReport(
                iteration=state.iteration,
                planes=planes.count,
                violation=found.violation,
                xi=found.xi,
                primal=state.best_primal,
                dual=state.best_dual,
                gap=state.best_primal - state.best_dual,
                oracle_seconds=looked - started - found.qp_seconds,
                qp_seconds=time.perf_counter() - looked + found.qp_seconds,
                round=round_,
            )
            state.reports.append(report)
            stopped = bool(on_iteration is not None and on_iteration(report))
            if checkpoint is not None and not converged and (stopped or state.iteration % checkpoint.every == 0):
                self.save(checkpoint, state, also or {}, round_)
        best = not converged and math.isfinite(state.best_primal)
        w = state.best_w if best else planes.w
        return self.fit_at(w, state.best_primal if best else primal, state, converged), stopped

    def fit_at(self, w: Vector, objective: float, state: State, converged: bool) -> SvmFit:
        """The fit with weights w, whose primal objective is given."""
        slacks = state.planes.slacks(w)
        return SvmFit(
            w=w.copy(),
            xi=float(slacks.mean()),
            objective=objective,
            dual=state.best_dual,
            gap=objective - state.best_dual,
            iterations=state.iteration,
            converged=converged,
            planes=state.planes.planes(self.gold, self.rule.rescaling),
            slacks=slacks if len(slacks) == len(self.constraints.examples) else None,
            reports=list(state.reports),
        )

    def save(self, checkpoint: Checkpoint, state: State, also: Arrays, round_: int) -> None:
        """Write the state between two iterations, and what the caller needs besides."""
        primal = state.best_primal if math.isfinite(state.best_primal) else -1.0
        arrays: Arrays = {
            **state.planes.arrays(),
            **also,
            "gold": self.constraints.mean_gold,
            "best": np.array([primal, state.best_dual]),
            "best_w": state.best_w,
            "reports": pack_reports(state.reports),
        }
        checkpoint.save(arrays, {"iteration": state.iteration, "round": round_})


def pack_reports(reports: list[IterationReport]) -> Matrix:
    """Reports as rows of numbers; what is infinite (never below 0 otherwise) as -1."""
    rows = np.array([astuple(report) for report in reports], np.float64).reshape(
        len(reports), len(fields(IterationReport))
    )
    return np.where(np.isfinite(rows), rows, -1.0)


def unpack_reports(arrays: Arrays, where: str) -> list[IterationReport]:
    """The reports of a checkpoint."""
    rows = require_array(arrays, "reports", np.float64, (None, len(fields(IterationReport))), where)
    made = []
    for row in rows.tolist():
        values = dict(zip((f.name for f in fields(IterationReport)), row, strict=True))
        for name in ("iteration", "planes", "round"):
            values[name] = int(values[name])
        if values["primal"] < 0:
            values["primal"] = values["gap"] = math.inf
        made.append(IterationReport(**values))
    return made


def train_cutting_plane(
    rule: CuttingPlaneRule,
    problem: Problem[X, Y, H],
    examples: Sequence[tuple[X, Y]],
    warm: SvmFit | None,
    on_iteration: OnIteration | None,
    checkpoint: Path | None,
    checkpoint_every: int,
    jobs: int,
) -> SvmFit:
    """Train by a rule, going on from the checkpoint if there is one."""
    training = Training(rule, problem, examples, np.zeros(problem.dimension), jobs)
    file = checkpoint_file(rule, problem, len(examples), checkpoint, checkpoint_every)
    found = file.load() if file is not None else None
    state = training.restore(file, *found) if file is not None and found is not None else training.from_fit(warm)
    return training.run(state, on_iteration, file)[0]


def checkpoint_file(rule: Any, problem: Any, examples: int, path: Path | None, every: int) -> Checkpoint | None:
    """The checkpoint of a run, if it has one."""
    if path is None:
        return None
    if every < 1:
        raise InputError(f"checkpoint_every is {every}: it must be at least 1")
    return Checkpoint(Path(path), every, _settings_of(rule, problem, examples))
