"""Scores and features of the arcs of some records of a stream: what a learner of whole structures asks of the network.

The arithmetic is that of `train`, record for record, so that both break ties alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import kernel
from netclust.kernels.linking.score import LANES, fold, score_referents
from netclust.kernels.linking.train import add_arc


class StreamRecords(NamedTuple):
    """The records of a stream in arrival order, column by column; `num` and `code` are LANES columns longer."""

    num: NDArray[np.float32]  # [F, n]
    code: NDArray[np.uint16]  # [S, n]
    root: NDArray[np.float32]  # [n, K] features of the root arc


class CodedWeightLayout(NamedTuple):
    """Where the weights of each coded attribute start, and how many codes it has."""

    at: NDArray[np.int64]
    width: NDArray[np.int64]


@kernel
def score_arcs(records: Any, layout: Any, w: Any, sign: Any, window: Any, lo: Any, hi: Any, scores: Any) -> None:
    """scores[j - lo] = the root's score, then those of the `window` records before j, oldest first; -inf where none."""
    features, coded, roots = len(records.num), len(records.code), records.root.shape[1]
    D = len(w)
    acc = np.empty(window + LANES, np.float64)
    x = np.empty(features, np.float64)
    slope = np.empty(features, np.float64)
    far = np.full(features, np.inf)
    codes = np.empty(coded, np.uint16)
    matches = np.empty(coded, np.float64)
    offset = np.empty(coded, np.int64)
    total = 0
    for s in range(coded):
        offset[s] = total
        total += layout.width[s]
    own, other, match = np.empty(total), np.empty(total), np.empty(total)
    base = fold(w, features, sign, layout.at, layout.width, offset, slope, own, other, match)
    first = max(0, lo - window)
    unary = np.zeros(hi - first + LANES, np.float64)
    for k in range(first, hi):
        for s in range(coded):
            unary[k - first] += other[offset[s] + records.code[s, k]]
    num, code = records.num[:, first:], records.code[:, first:]
    for j in range(lo, hi):
        start = max(0, j - window)
        n = j - start
        start_score = base
        for f in range(features):
            x[f] = records.num[f, j]
        for s in range(coded):
            codes[s] = records.code[s, j]
            start_score += own[offset[s] + codes[s]]
            matches[s] = match[offset[s] + codes[s]]
        score_referents(x, codes, start_score, matches, slope, far, num, code, unary, start - first, j - first, acc)
        row = scores[j - lo]
        row[0] = 0.0
        for k in range(roots):
            row[0] += w[D - roots + k] * records.root[j, k]
        row[1 : 1 + n] = acc[:n]
        row[1 + n :] = -np.inf


@kernel
def sum_arcs(records: Any, layout: Any, sign: Any, lo: Any, parents: Any, g: Any) -> None:
    """g += the features of the arcs of records lo, lo + 1, ...: from a record, from the root (-1), or none (-2)."""
    for k in range(len(parents)):
        if parents[k] >= -1:
            add_arc(g, 1.0, parents[k], lo + k, records, layout, sign)
