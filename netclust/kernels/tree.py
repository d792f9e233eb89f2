"""The best earlier link of every record of a batch: prediction over a window, Algorithm 5 with C = 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import kernel
from netclust.kernels.score import LANES, best_link, score_referents


@kernel
def best_earlier_links(
    num: Any, code: Any, unary: Any, root: Any, scorer: Any, window: Any, parents: Any, scores: Any
) -> None:
    """parents[j] = the best of the `window` records before j, or -1 for the root, and its score; root first."""
    acc = np.empty(window + LANES, np.float32)
    x = np.empty(len(num), np.float32)
    codes = np.empty(len(code), np.uint16)
    matches = np.empty(len(code), np.float32)
    for j in range(len(root)):
        start = scorer.base
        for f in range(len(num)):
            x[f] = num[f, j]
        for s in range(len(code)):
            codes[s] = code[s, j]
            start += scorer.own[scorer.offset[s] + codes[s]]
            matches[s] = scorer.match[scorer.offset[s] + codes[s]]
        lo = max(0, j - window)
        score_referents(x, codes, start, matches, scorer.slope, scorer.far, num, code, unary, lo, j, acc)
        best, at = best_link(acc, j - lo)
        parents[j] = -1 if at < 0 or root[j] >= best else lo + at
        scores[j] = root[j] if parents[j] < 0 else best
