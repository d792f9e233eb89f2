"""Two made multi-label problems of which everything is known: Synth1, where pairs of labels help, and Synth2, where
they are needed.

Synth1: 6 labels; the first is always on, every other with probability 1/2 where the one before it is on. Each label
owns 1,000 of 6,000 binary features, and 10 of them are on where it is. To predict the first label alone is wrong in
100 * (1/2 + 1/4 + 1/8 + 1/16 + 1/32) / 6 = 16.15 % of the labels.

>>> table = synth1(200, seed=0)
>>> table.X.shape, table.Y[:, 0].min(), (np.asarray(table.X.sum(axis=1)).ravel() == 10 * table.Y.sum(axis=1)).all()
((200, 6000), np.uint8(1), np.True_)

Synth2: 10 labels, of which one is on, the i-th with 4i of 40 features. Only how many are on tells. To predict nothing
is wrong in 10 %. Without a constant feature no linear model can do much better; `bias` appends one.

>>> table = synth2(200, seed=0, bias=True)
>>> table.X.shape, table.X.sum(axis=1)[0, 0] == 4 * (table.Y[0].argmax() + 1) + 1
((200, 41), np.True_)

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, section 5.5.1. Its text
has Synth1 the wrong way round in one sentence (a label is off where the one before it is off, not on), and no constant
in Synth2, without which it cannot be learned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.label_sets import LabelSetTable
from netclust.errors import InputError
from netclust.foundation.optional import require_optional

__all__ = ["synth1", "synth2"]

_MOST_ROWS = 10_000_000
_OWN, _ON = 1000, 10  # Synth1: features of a label, and how many are on
_STEP = 4  # Synth2: features that a label has more than the one before it


def synth1(n: int, seed: int = 0) -> LabelSetTable:
    """`n` rows of Synth1; X is CSR."""
    rng = _generator(n, seed)
    labels = 6
    coins = rng.random((n, labels)) < 0.5
    coins[:, 0] = True
    Y = np.logical_and.accumulate(coins, axis=1).astype(np.uint8)
    row, label = np.nonzero(Y)
    own = rng.integers(0, _OWN, (len(row), _ON))
    while len(again := np.flatnonzero((np.diff(np.sort(own, axis=1), axis=1) == 0).any(axis=1))):
        own[again] = rng.integers(0, _OWN, (len(again), _ON))
    columns = np.sort(own, axis=1) + _OWN * label[:, None]
    starts = np.concatenate([[0], np.cumsum(Y.sum(axis=1, dtype=np.int64) * _ON)])
    return _table(columns.ravel(), starts, labels * _OWN, Y)


def synth2(n: int, seed: int = 0, bias: bool = False) -> LabelSetTable:
    """`n` rows of Synth2; X is CSR."""
    rng = _generator(n, seed)
    labels = 10
    width = _STEP * labels
    label = rng.integers(0, labels, n)
    Y = (label[:, None] == np.arange(labels)).astype(np.uint8)
    rank = rng.random((n, width)).argsort(axis=1)
    on = np.zeros((n, width + bias), bool)
    np.put_along_axis(on, rank, np.arange(width) < _STEP * (label[:, None] + 1), axis=1)
    on[:, width:] = True
    starts = np.concatenate([[0], np.cumsum(on.sum(axis=1))])
    return _table(np.nonzero(on)[1], starts, width + bias, Y)


def _generator(n: int, seed: int) -> np.random.Generator:
    if not 1 <= n <= _MOST_ROWS:
        raise InputError(f"{n} rows: 1 to {_MOST_ROWS:,}")
    return np.random.default_rng(seed)


def _table(columns: NDArray[np.int64], starts: NDArray[np.int64], width: int, Y: NDArray[np.uint8]) -> LabelSetTable:
    csr = require_optional("scipy.sparse", "making sparse features").csr_matrix
    X = csr((np.ones(len(columns)), columns, starts), shape=(len(Y), width))
    names = tuple(f"feature {k}" for k in range(1, width + 1))
    labels = tuple(f"label {k}" for k in range(1, Y.shape[1] + 1))
    return LabelSetTable(names, labels, X, Y, tuple(map(str, range(1, len(Y) + 1))))
