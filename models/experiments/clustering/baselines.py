"""Plain k-means: the clusterer that learns nothing, for supervised clusterers to be compared with.

>>> import numpy as np
>>> found = PlainKMeans().cluster(np.array([[0.0], [0.1], [5.0]]), 2)
>>> found.tolist()
[0, 0, 1]
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.structures.partition import Labels, canonical_partition

__all__ = ["PlainKMeans"]

TrainingSet = tuple[Any, NDArray[Any]]
"""Items' features [items, features], an array or a CSR matrix, and the items' labels."""


@dataclass(frozen=True)
class PlainKMeans:
    """k-means on the items' own features, the best of several restarts. It learns nothing and needs k."""

    restarts: int = 10
    seed: int = 0
    name: str = "kmeans"

    def fit(self, train: Sequence[TrainingSet]) -> Self:
        """Nothing to learn."""
        return self

    def cluster(self, X: Any, k: int | None = None) -> Labels:
        """The best of all restarts."""
        _check(X, k)
        means = require_optional("sklearn.cluster", "k-means").KMeans(k, n_init=self.restarts, random_state=self.seed)
        with _quiet():  # fewer distinct items than k
            return canonical_partition(means.fit_predict(X))


def _check(X: Any, k: int | None) -> None:
    if k is None:
        raise InputError("k-means must be told k")
    if not 1 <= k <= X.shape[0]:
        raise InputError(f"k-means of {X.shape[0]} items into {k} clusters: needs 1 <= k <= items")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning that something has not converged."""
    category = require_optional("sklearn.exceptions", "clustering").ConvergenceWarning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
