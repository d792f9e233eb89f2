"""Training on prepared documents: six models on the edge losses, three on the loss learned from the measure.

>>> from netclust.models.coreference.formats.documents import Document, Mention
>>> from netclust.models.coreference.examples import prepare_examples
>>> words = tuple("Ann saw the dog . She liked it .".split())
>>> mentions = (Mention(0, 1, 7), Mention(2, 4, 8), Mention(5, 6, 7), Mention(7, 8, 8))
>>> settings = CoreferenceSettings(epochs=5)
>>> examples = prepare_examples([Document("story", words, (0, 5, 9), mentions=mentions)], settings.features)
>>> learned = learn_coreference(settings, examples)
>>> resolve_mentions(settings, examples[0].pairs, learned.w).tolist()
[0, 1, 0, 1]

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.learners.latent import LatentSvm
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Fitted, Lsp, Lspa
from netclust.learners.rho import LspRho, LspRhoJoint, LspRhoOnline, collect_regression
from netclust.losses.learned_loss import LearnedLoss, Truth
from netclust.models.coreference.antecedent_problem import AntecedentProblem
from netclust.models.coreference.coreference_metrics import mela_of_labels
from netclust.models.coreference.examples import Example, measure_examples
from netclust.models.coreference.measured_antecedents import MeasuredAntecedents
from netclust.models.coreference.settings import LEARNED_LOSS, CoreferenceSettings
from netclust.problems.forest_problem import ForestProblem
from netclust.problems.loss_learning import RegressionSet, fit_loss
from netclust.structures.hashed_pairs import HashedPairs
from netclust.structures.pairs import Indices, Vector

__all__ = [
    "BestEpoch",
    "LearnedCoreference",
    "OnModel",
    "gather_outputs",
    "learn_coreference",
    "learn_loss",
    "mela",
    "resolve_mentions",
    "with_slots",
]

OnModel = Callable[[int, Vector], bool | None]
"""Called with the number of the epoch and the weights after it; returning True ends the training."""

LOSS_DOCUMENTS, LOSS_EPOCHS, LOSS_C = 40, 30, 10.0
"""For LSP_rho: of how many documents outputs are gathered, for how long at most on each, and with which C."""

SVM_PRECISION, SVM_ITERATIONS, SVM_ROUNDS = 5.0, 30, 3
"""The gap to stop a convex program at, and what a round must gain, in units of a document's loss (some 200)."""

SVM_PRECISION_A_MENTION = 0.02
"""The same for small documents, whose loss may be below that gap: times the mentions that they have on average."""


@dataclass(frozen=True, eq=False)
class LearnedCoreference:
    """The weights, and how training went. `losses` has a sum an epoch (SVM: the objective after every round).

    `gap` is how far the SVM's last convex program is from its optimum at most.
    """

    w: Vector
    updates: int
    losses: tuple[float, ...]
    converged: bool = True
    gap: float | None = None
    loss: LearnedLoss | None = None


def resolve_mentions(settings: CoreferenceSettings, pairs: HashedPairs, w: Vector) -> NDArray[np.int64]:
    """Return the entities of a document's mentions, numbered by first appearance."""
    problem = _problem(settings, pairs.dimension)
    found: NDArray[np.int64] = problem.predict(pairs, w).clusters()
    return found


def learn_coreference(
    settings: CoreferenceSettings,
    examples: Sequence[Example],
    on_model: OnModel | None = None,
) -> LearnedCoreference:
    """Train on documents; perceptrons give the average of their weights, after `epochs` or when `on_model` says so."""
    if not examples:
        raise InputError("there are no documents to learn from")
    problem = _problem(settings, examples[0].pairs.dimension)
    data = [(example.pairs, example.truth.labels) for example in examples if example.pairs.items]
    if not data:
        raise InputError("there are no mentions to learn from")
    epoch = 0

    def report(fitted: Fitted) -> bool | None:
        nonlocal epoch
        epoch += 1
        return on_model(epoch, fitted.averaged) if on_model is not None else None

    if settings.learner == "lssvm":
        return _latent_svm(settings, problem, data)
    how: dict[str, Any] = {
        "epochs": settings.epochs,
        "C": settings.cost,
        "on_epoch": None if on_model is None else report,
        "seed": settings.seed,
    }
    if settings.learner not in LEARNED_LOSS:
        fitted = (Lsp() if settings.learner == "lsp" else Lspa()).fit(problem, data, **how)
        return LearnedCoreference(fitted.averaged, fitted.updates, fitted.losses)
    task = MeasuredAntecedents(problem, mela)
    measured = [(example.pairs, example.truth) for example in examples if example.pairs.items]
    if settings.learner == "rho":
        loss = learn_loss(task, measured, settings.seed)
        fitted = LspRho(loss).fit(task, measured, **how)
        return LearnedCoreference(fitted.averaged, fitted.updates, fitted.losses, loss=loss)
    joint = (LspRhoJoint() if settings.learner == "rho-joint" else LspRhoOnline()).fit(task, measured, **how)
    return LearnedCoreference(joint.fitted.averaged, joint.fitted.updates, joint.fitted.losses, loss=joint.loss)


def learn_loss(task: MeasuredAntecedents, measured: Sequence[tuple[HashedPairs, Truth]], seed: int) -> LearnedLoss:
    """The loss of LSP_rho: regressed from what LSP^E goes through on some documents, each of them alone."""
    chosen = np.random.default_rng(seed).permutation(len(measured))[:LOSS_DOCUMENTS]
    seen = gather_outputs(task, [measured[k] for k in chosen])
    return fit_loss(seen.features, seen.targets)


def gather_outputs(task: MeasuredAntecedents, measured: Sequence[tuple[HashedPairs, Truth]]) -> RegressionSet:
    """What LSP^E goes through on each document alone: nine features and MELA of every output."""
    return collect_regression(task, measured, epochs=LOSS_EPOCHS, C=LOSS_C)


def mela(truth: Truth, clusters: NDArray[np.int64]) -> float:
    """MELA of one document in percent; true mentions that were not found count as missed."""
    found = np.bincount(truth.keys[truth.keys >= 0], minlength=len(truth.sizes))
    missed = np.repeat(np.arange(len(truth.sizes)), truth.sizes - found)
    y, z = np.concatenate([truth.keys, missed]), np.concatenate([clusters, np.full(len(missed), -1)])
    return 100.0 * mela_of_labels(y, z)


def _latent_svm(
    settings: CoreferenceSettings, problem: Any, data: Sequence[tuple[HashedPairs, Any]]
) -> LearnedCoreference:
    """CCCP; its program has the mean of the slacks, so that C does not depend on how many documents there are."""
    mentions = sum(pairs.items for pairs, _ in data) / len(data)
    precision = min(SVM_PRECISION, SVM_PRECISION_A_MENTION * mentions)
    convex = OneSlack(C=settings.cost, epsilon=precision, max_iterations=SVM_ITERATIONS)
    fit = LatentSvm(convex, tolerance=precision, max_rounds=SVM_ROUNDS).fit(problem, data)
    return LearnedCoreference(fit.w, fit.iterations, fit.rounds, fit.converged, fit.gap)


def _problem(settings: CoreferenceSettings, dimension: int) -> Any:
    if settings.structure == "K":
        return ForestProblem(dimension) if settings.r is None else ForestProblem(dimension, settings.r)
    return AntecedentProblem(dimension, settings.edge_loss, settings.r)


class BestEpoch:
    """Chooses the epoch on documents that are not learned from: give it to `learn_coreference`.

    Of equal epochs it chooses the first.

    `curve` is MELA in percent after every epoch, `w` the weights of the best one.
    """

    def __init__(self, settings: CoreferenceSettings, dev: Sequence[Example]) -> None:
        self.curve: list[float] = []
        self.w: Vector | None = None
        self._settings, self._dev = settings, dev

    def __call__(self, epoch: int, w: Vector) -> None:
        """Measure the weights after an epoch."""
        found = measure_examples(
            self._dev, [resolve_mentions(self._settings, example.pairs, w) for example in self._dev], ["mela"]
        )
        self.curve.append(round(100.0 * found["mela"].f1, 4))
        if self.curve[-1] > max(self.curve[:-1], default=-1.0):
            self.w = w


def with_slots(examples: Sequence[Example], slots: Indices) -> list[Example]:
    """The same documents with the chosen features alone."""
    return [replace(example, pairs=example.pairs.with_slots(slots)) for example in examples]
