"""Every partition of a few items, one after the other: the ground truth of all searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import kernel


@kernel
def enumerate_labels(S: Any, best: Any) -> Any:
    """Write the first partition of the highest sum within clusters to `best`; return that sum.

    Labels are tried in the order of an odometer: item i takes 0, ..., 1 + the highest label before it.
    """
    m = len(S)
    labels, highest, total = np.zeros(m, np.int64), np.full(m + 1, -1), np.zeros(m + 1)
    found = -np.inf
    i = 0
    label = 0  # that item i is to try
    while i >= 0:
        if i == m:
            if total[m] > found:
                found = total[m]
                best[:] = labels
        elif label <= highest[i] + 1:
            labels[i] = label
            total[i + 1] = total[i]
            for j in range(i):
                if labels[j] == label:
                    total[i + 1] += S[j, i]
            highest[i + 1] = max(highest[i], label)
            i += 1
            label = 0
            continue
        i -= 1
        if i >= 0:
            label = labels[i] + 1
    return found
