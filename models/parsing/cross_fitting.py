"""Cross-fitting: what an auxiliary model says of training data must be as unreliable as what it says of new data.

A model's predictions of its own training data are too good, and whoever learns from them relies on them too much. So
the data is split into folds; every example is predicted by a model that was fitted on the other folds, and new data by
one that was fitted on everything.

>>> def fit(examples): return dict(examples)  # learns by heart
>>> def predict(model, example): return model.get(example[0], "?")
>>> found = cross_fit([("a", 1), ("b", 2), ("c", 1)], fit, predict)
>>> found.predictions, predict(found.model, ("a", None))
(['?', '?', '?'], 1)

B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004;
chapter 9 (auxiliary classifiers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from netclust.errors import InputError

__all__ = ["CrossFitted", "cross_fit"]

Example = TypeVar("Example")
Model = TypeVar("Model")
Prediction = TypeVar("Prediction")


@dataclass(frozen=True, eq=False)
class CrossFitted(Generic[Model, Prediction]):
    """The model of all examples, and for each example what a model that has not seen it predicts."""

    model: Model
    predictions: list[Prediction]


def cross_fit(
    examples: Sequence[Example],
    fit: Callable[[list[Example]], Model],
    predict: Callable[[Model, Example], Prediction],
    *,
    folds: int = 2,
    seed: int = 0,
) -> CrossFitted[Model, Prediction]:
    """Fit `folds` models on parts of the examples and one on all; the folds are drawn by the seed."""
    if not 2 <= folds <= len(examples):
        raise InputError(f"{folds} folds of {len(examples)} examples: 2 or more are needed, with an example each")
    fold = np.random.default_rng(seed).permutation(len(examples)) % folds
    found: dict[int, Prediction] = {}
    for part in range(folds):
        model = fit([example for example, own in zip(examples, fold, strict=True) if own != part])
        for at in np.flatnonzero(fold == part).tolist():
            found[at] = predict(model, examples[at])
    return CrossFitted(fit(list(examples)), [found[at] for at in range(len(examples))])
