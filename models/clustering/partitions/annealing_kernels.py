"""Simulated annealing of a partition: items choose their cluster by chance, ever more often the best one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netclust.kernels.jit import inner, kernel
from netclust.models.clustering.partitions.moves_kernels import sum_by_cluster


@inner
def _random_bits(state: Any) -> Any:
    """Return the next of the splitmix64 numbers; `state` is an array of one."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def _random_share(state: Any) -> Any:
    """Return A number from 0 up to 1, without 1."""
    return np.float64(_random_bits(state) >> np.uint64(11)) / 9007199254740992.0


@kernel
def anneal(rows: Any, labels: Any, temperatures: Any, state: Any) -> None:
    """A sweep over all items for every temperature: an item joins c with a chance of exp(sum with c / temperature).

    Being alone has the sum 0. Labels are below the number of items.
    """
    m = len(labels)
    size, free, free_count = np.zeros(m, np.int64), np.empty(m, np.int64), 0
    for i in range(m):
        size[labels[i]] += 1
    for c in range(m - 1, -1, -1):
        if size[c] == 0:
            free[free_count] = c
            free_count += 1
    total, seen, found = np.zeros(m), np.full(m, -1), np.empty(m, np.int64)
    chance = np.empty(m + 1)
    for temperature in temperatures:
        for i in range(m):
            kinds = sum_by_cluster(rows, labels, i, total, seen, found)
            highest = 0.0
            for c in found[:kinds]:
                seen[c] = -1
                highest = max(highest, total[c])
            alone = math.exp(-highest / temperature)
            whole = alone
            for k in range(kinds):
                chance[k] = math.exp((total[found[k]] - highest) / temperature)
                whole += chance[k]
            left = _random_share(state) * whole - alone
            a, to = labels[i], -1
            if left >= 0.0:
                for k in range(kinds):
                    left -= chance[k]
                    if left < 0.0:
                        to = found[k]
                        break
            if to == a or (to < 0 and size[a] == 1):
                continue
            if to < 0:
                free_count -= 1
                to = free[free_count]
            labels[i] = to
            size[to] += 1
            size[a] -= 1
            if size[a] == 0:
                free[free_count] = a
                free_count += 1
