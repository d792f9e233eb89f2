"""Settings chosen by cross-validation, on training examples alone.

A test set takes no part: `select_candidate` sees the examples that it is given, fits every candidate on each fold's
training part and measures the loss on what that fold holds out.

>>> examples = [1.0, 2.0, 3.0, 6.0]
>>> chosen = select_candidate(
...     [0.0, 1.0],  # how far the mean is pulled to zero
...     examples,
...     leave_one_out(len(examples)),
...     fit=lambda pull, train: (1 - pull) * sum(train) / len(train),
...     measure=lambda pull, mean, held: abs(mean - held[0]),
... )
>>> chosen.best, chosen.loss == min(chosen.losses), len(chosen.losses)
(0.0, True, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from netclust.errors import InputError

__all__ = ["Choice", "ExampleFold", "k_folds", "leave_one_out", "select_candidate"]

Candidate = TypeVar("Candidate")
Example = TypeVar("Example")
Fitted = TypeVar("Fitted")


class ExampleFold(NamedTuple):
    """Numbers of the examples that are trained on, and of those that are held out."""

    train: tuple[int, ...]
    held: tuple[int, ...]


@dataclass(frozen=True)
class Choice(Generic[Candidate]):
    """The best candidate, its mean loss over folds, and the losses of all candidates in their order."""

    best: Candidate
    loss: float
    losses: tuple[float, ...]


def leave_one_out(examples: int) -> list[ExampleFold]:
    """One fold for every example.

    >>> leave_one_out(3)[1]
    ExampleFold(train=(0, 2), held=(1,))
    """
    return k_folds(examples, examples, seed=None)


def k_folds(examples: int, folds: int, seed: int | None = 0) -> list[ExampleFold]:
    """Folds of even size; examples are dealt in a random order (None: in theirs).

    >>> [fold.held for fold in k_folds(5, 2, seed=None)]
    [(0, 2, 4), (1, 3)]
    """
    if not 2 <= folds <= examples:
        raise InputError(f"{folds} folds of {examples} examples: cross-validation needs 2 or more of both")
    order = np.arange(examples) if seed is None else np.random.default_rng(seed).permutation(examples)
    held = [set(order[i::folds].tolist()) for i in range(folds)]
    return [ExampleFold(tuple(i for i in range(examples) if i not in out), tuple(sorted(out))) for out in held]


def select_candidate(
    candidates: Sequence[Candidate],
    examples: Sequence[Example],
    folds: Sequence[ExampleFold],
    fit: Callable[[Candidate, list[Example]], Fitted],
    measure: Callable[[Candidate, Fitted, list[Example]], float],
) -> Choice[Candidate]:
    """Return the candidate of the lowest mean loss over folds; of equals the first, so put the simplest first.

    `fit` may remember its models: candidates that differ in prediction alone, and folds that train on the same
    examples, then cost one training.
    """
    if not candidates or not folds:
        raise InputError(f"nothing to choose from: {len(candidates)} candidates, {len(folds)} folds")
    losses = []
    for candidate in candidates:
        found = []
        for fold in folds:
            model = fit(candidate, [examples[i] for i in fold.train])
            found.append(measure(candidate, model, [examples[i] for i in fold.held]))
        losses.append(float(np.mean(found)))
    if not np.isfinite(losses).all():
        raise InputError(f"a candidate's loss is no number: {losses}")
    best = int(np.argmin(losses))
    return Choice(candidates[best], losses[best], tuple(losses))
