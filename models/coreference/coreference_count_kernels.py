"""The contingency table of two clusterings of mentions, what every coreference metric sums over it, and CEAF's blocks.

`key[i]` and `response[i]` are the clusters of mention i, below 0 where a side does not have the mention. A cell is what
a key cluster `row` and a response cluster `column` share; `rows` and `columns` are the sizes of the clusters, with the
mentions that the other side lacks. A cluster without mentions does not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import inlined, kernel
from netclust.kernels.structured.union_find import grow_forest, number_components

MUC, B3, COREFERENT, APART, LEA, MENTIONS = range(6)
"""The lines of `sum_table`: each holds the sums of recall, above and below, then those of precision."""


@kernel
def cells_of(key: Any, response: Any, rows: Any, columns: Any, row: Any, column: Any, size: Any) -> Any:
    """Fill sizes and cells, cells in the order of (row, column) whatever that of the mentions; how many there are."""
    after_row, after_column = np.zeros(len(rows) + 1, np.int64), np.zeros(len(columns) + 1, np.int64)
    rows[:], columns[:] = 0, 0
    both = 0
    for i in range(len(key)):
        k, r = key[i], response[i]
        if k >= 0:
            rows[k] += 1
        if r >= 0:
            columns[r] += 1
        if k >= 0 and r >= 0:
            after_row[k + 1] += 1
            after_column[r + 1] += 1
            both += 1
    for k in range(len(rows)):
        after_row[k + 1] += after_row[k]
    for r in range(len(columns)):
        after_column[r + 1] += after_column[r]
    # Two counting sorts: by column, and then, keeping that order, by row.
    by_column, by_row = np.empty(both, np.int64), np.empty(both, np.int64)
    for i in range(len(key)):
        if key[i] >= 0 and response[i] >= 0:
            by_column[after_column[response[i]]] = i
            after_column[response[i]] += 1
    for j in by_column:
        by_row[after_row[key[j]]] = j
        after_row[key[j]] += 1
    count = 0
    for j in by_row:
        if count and row[count - 1] == key[j] and column[count - 1] == response[j]:
            size[count - 1] += 1
        else:
            row[count], column[count], size[count] = key[j], response[j], 1
            count += 1
    return count


@inlined
def _pairs(n: Any) -> Any:
    return n * (n - 1) // 2


@inlined
def _put(line: Any, recalled: Any, wanted: Any, precise: Any, claimed: Any) -> None:
    line[0], line[1], line[2], line[3] = recalled, wanted, precise, claimed


@kernel
def sum_table(rows: Any, columns: Any, row: Any, column: Any, size: Any, sums: Any) -> None:
    """The sums of every metric but CEAF, a line each: recall above and below, precision above and below."""
    keys, responses, linked_keys, linked_responses = 0, 0, 0, 0
    in_key, in_response = 0, 0
    for n in rows:
        keys += n > 0
        in_key += n
        linked_keys += _pairs(n)
    for n in columns:
        responses += n > 0
        in_response += n
        linked_responses += _pairs(n)
    kept_row, kept_column = np.zeros(len(rows), np.int64), np.zeros(len(columns), np.int64)
    both, linked, b3_recall, b3_precision, lea_recall, lea_precision = 0, 0, 0.0, 0.0, 0.0, 0.0
    for c in range(len(size)):
        n, k, r = size[c], row[c], column[c]
        both += n
        linked += _pairs(n)
        kept_row[k] += n
        kept_column[r] += n
        b3_recall += n * n / rows[k]
        b3_precision += n * n / columns[r]
        # LEA weighs a cluster's share of right links by its mentions; a singleton has one link, to itself.
        if rows[k] > 1:
            lea_recall += rows[k] * (_pairs(n) / _pairs(rows[k]))
        elif columns[r] == 1:
            lea_recall += 1.0
        if columns[r] > 1:
            lea_precision += columns[r] * (_pairs(n) / _pairs(columns[r]))
        elif rows[k] == 1:
            lea_precision += 1.0
    # Pairs of shared mentions that are apart on both sides, by inclusion and exclusion.
    apart = _pairs(both) + linked
    for n in kept_row:
        apart -= _pairs(n)
    for n in kept_column:
        apart -= _pairs(n)
    right = both - len(size)
    _put(sums[MUC], right, in_key - keys, right, in_response - responses)
    _put(sums[B3], b3_recall, in_key, b3_precision, in_response)
    _put(sums[COREFERENT], linked, linked_keys, linked, linked_responses)
    _put(sums[APART], apart, _pairs(in_key) - linked_keys, apart, _pairs(in_response) - linked_responses)
    _put(sums[LEA], lea_recall, in_key, lea_precision, in_response)
    _put(sums[MENTIONS], both, in_key, both, in_response)


@inlined
def _alike(n: Any, k: Any, r: Any, by_mention: Any) -> Any:
    return float(n) if by_mention else 2.0 * n / (k + r)


@kernel
def assignment_blocks(rows: Any, columns: Any, row: Any, column: Any, size: Any, by_mention: Any) -> Any:
    """CEAF's similarities, cut into blocks of clusters that share mentions: no best assignment needs a pair across.

    Similarity is 2n / (|k| + |r|), or n by mention. Returns the total of the blocks that have one row or one column
    (their highest similarity each), the shapes of the other blocks, and these as matrices, one after the other.
    """
    high = len(rows)
    parent = np.arange(high + len(columns))
    label = np.empty(len(parent), np.int64)
    grow_forest(row, column + high, parent, np.empty(len(row), np.int64))
    blocks = number_components(parent, label)
    shape, place = np.zeros((blocks, 2), np.int64), np.empty(len(parent), np.int64)
    for i in range(len(parent)):
        side = int(i >= high)
        place[i] = shape[label[i], side]
        shape[label[i], side] += 1
    start, at, large = np.zeros(blocks, np.int64), 0, 0
    for b in range(blocks):
        if shape[b].min() > 1:
            start[b] = at
            at += shape[b, 0] * shape[b, 1]
            large += 1
    values, best, shapes = np.zeros(at), np.zeros(blocks), np.empty((large, 2), np.int64)
    for c in range(len(size)):
        b = label[row[c]]
        alike = _alike(size[c], rows[row[c]], columns[column[c]], by_mention)
        if shape[b].min() > 1:
            values[start[b] + place[row[c]] * shape[b, 1] + place[high + column[c]]] = alike
        else:
            best[b] = max(best[b], alike)
    small, large = 0.0, 0
    for b in range(blocks):
        small += best[b]
        if shape[b].min() > 1:
            shapes[large] = shape[b]
            large += 1
    return small, shapes, values
