"""Algorithm 6: the tree of a high score plus a loss of its whole clustering, one arc at a time.

A node v moves with all that hangs from it, S. The nine features of the clustering depend on a few sums over the cells
of the contingency table (entity k, cluster r, c shared items), so a candidate cluster is weighed by its own cells and
those of S alone; all arcs into one cluster share that weight. A cell has at least one item: memory is linear in items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from netclust.kernels.jit import inlined, kernel

PLACED = 0
"""Sum: items that are in a cluster."""
TRUE = 1
"""Sum: those of them that belong to an entity."""
CLUSTERS = 2
"""Sum: clusters that are not empty."""
CELLS = 3
"""Sum: cells that are not empty."""
PRECISION = 4
"""Sum: c^2 / |r|, the numerator of B3's precision."""
RECALL = 5
"""Sum: c^2 / |k|, the numerator of B3's recall."""
SIMILARITY = 6
"""Sum: 2c / (|k| + |r|), the numerator of the simplified CEAF."""
SUMS = 7


class ClusteredTree(NamedTuple):
    """A tree with its clusters, named after their first item, and the cells of each as a linked list."""

    parents: Any
    """-1: not placed yet, 0: the root, i + 1: item i."""
    child: Any
    after: Any
    before: Any
    """Children as lists: the first, the next, the one before; -1 ends."""
    label: Any
    size: Any
    squares: Any
    """For each cluster: its items, and the sum of c^2."""
    head: Any
    key: Any
    count: Any
    follow: Any
    free: Any
    """Cells: each cluster's first, then entity, c and the next cell; free[0] starts the list of unused ones."""
    members: Any
    part_keys: Any
    part: Any
    """S: its items, its entities, and by entity how many of it are in S."""
    stamp: Any
    worth: Any
    """For each cluster: when it was last weighed, and what came out."""
    sums: Any


class TrueEntities(NamedTuple):
    """Keys of the items, sizes of the entities, their number, members and links, and 1/m for every m that occurs."""

    keys: Any
    sizes: Any
    entities: Any
    mentions: Any
    links: Any
    inverse: Any


@inlined
def _clear(table: Any) -> None:
    for j in range(len(table.parents)):
        table.parents[j] = -1
        table.child[j] = -1
        table.size[j] = 0
        table.head[j] = -1
        table.follow[j] = j + 1
        table.stamp[j] = -1
    table.free[0] = 0
    table.part[:] = 0


@inlined
def _count(table: Any, truth: Any, r: Any, sign: Any) -> None:
    """Add what cluster r gives to the sums, or take it away."""
    size = table.size[r]
    if size == 0:
        return
    squares = 0
    cells = 0
    true = 0
    recall = 0.0
    similarity = 0.0
    cell = table.head[r]
    while cell >= 0:
        c = table.count[cell]
        k = truth.sizes[table.key[cell]]
        cells += 1
        true += c
        squares += c * c
        recall += c * c * truth.inverse[k]
        similarity += 2 * c * truth.inverse[k + size]
        cell = table.follow[cell]
    table.squares[r] = squares
    sums = table.sums
    sums[PLACED] += sign * size
    sums[TRUE] += sign * true
    sums[CLUSTERS] += sign
    sums[CELLS] += sign * cells
    sums[PRECISION] += sign * (squares * truth.inverse[size])
    sums[RECALL] += sign * recall
    sums[SIMILARITY] += sign * similarity


@inlined
def _recount(table: Any, truth: Any) -> None:
    """All sums anew, so that rounding errors do not pile up from pass to pass."""
    table.sums[:] = 0.0
    for r in range(len(table.parents)):
        _count(table, truth, r, 1.0)


@inlined
def _gather(table: Any, truth: Any, v: Any) -> Any:
    """S = v and all below it; returns how many items and how many entities it has."""
    table.members[0] = v
    size = 1
    entities = 0
    at = 0
    while at < size:
        item = table.members[at]
        at += 1
        k = truth.keys[item]
        if k >= 0:
            if table.part[k] == 0:
                table.part_keys[entities] = k
                entities += 1
            table.part[k] += 1
        child = table.child[item]
        while child >= 0:
            table.members[size] = child
            size += 1
            child = table.after[child]
    return size, entities


@inlined
def _leave(table: Any, truth: Any, r: Any, size: Any) -> None:
    """Take S out of cluster r."""
    _count(table, truth, r, -1.0)
    table.size[r] -= size
    last = -1
    cell = table.head[r]
    while cell >= 0:
        follow = table.follow[cell]
        table.count[cell] -= table.part[table.key[cell]]
        if table.count[cell] == 0:
            if last < 0:
                table.head[r] = follow
            else:
                table.follow[last] = follow
            table.follow[cell] = table.free[0]
            table.free[0] = cell
        else:
            last = cell
        cell = follow
    _count(table, truth, r, 1.0)


@inlined
def _join(table: Any, truth: Any, r: Any, size: Any, entities: Any) -> None:
    """Put S into cluster r, which may be empty, and forget its counts."""
    _count(table, truth, r, -1.0)
    table.size[r] += size
    cell = table.head[r]
    while cell >= 0:
        k = table.key[cell]
        table.count[cell] += table.part[k]
        table.part[k] = 0
        cell = table.follow[cell]
    for e in range(entities):
        k = table.part_keys[e]
        if table.part[k] > 0:
            cell = table.free[0]
            table.free[0] = table.follow[cell]
            table.key[cell] = k
            table.count[cell] = table.part[k]
            table.follow[cell] = table.head[r]
            table.head[r] = cell
            table.part[k] = 0
    _count(table, truth, r, 1.0)


@inlined
def _hang(table: Any, v: Any, parent: Any) -> None:
    """Move v from the list of its parent's children to that of another parent."""
    old = table.parents[v]
    if old > 0:
        before = table.before[v]
        after = table.after[v]
        if before < 0:
            table.child[old - 1] = after
        else:
            table.after[before] = after
        if after >= 0:
            table.before[after] = before
    table.parents[v] = parent
    if parent > 0:
        first = table.child[parent - 1]
        table.before[v] = -1
        table.after[v] = first
        if first >= 0:
            table.before[first] = v
        table.child[parent - 1] = v


@inlined
def _rates(v0: Any, v1: Any, v2: Any, claimed: Any, wanted: Any) -> Any:
    """v . (P, R, F1) of one shared numerator is this many times the numerator, in percent."""
    rate = 0.0
    if claimed > 0:
        rate += v0 / claimed
    if wanted > 0:
        rate += v1 / wanted
    if claimed + wanted > 0:
        rate += 2.0 * v2 / (claimed + wanted)
    return 100.0 * rate


@inlined
def _f1(precision: Any, recall: Any) -> Any:
    both = precision + recall
    return 2.0 * precision * recall / both if both > 0.0 else 0.0


@inlined
def _weigh(table: Any, truth: Any, v: Any, r: Any, size: Any, entities: Any, muc: Any, ceaf: Any) -> Any:
    """v.Psi if S joins cluster r; r = -1: if S stays alone."""
    sums = table.sums
    together = size
    cross = 0
    cells = entities
    precision = sums[PRECISION]
    recall = 0.0
    similarity = 0.0
    squares = 0
    if r >= 0:
        old = table.size[r]
        together = old + size
        squares = table.squares[r]
        precision -= squares * truth.inverse[old]
        cell = table.head[r]
        while cell >= 0:
            c = table.count[cell]
            k = table.key[cell]
            s = table.part[k]
            k = truth.sizes[k]
            similarity += c * (truth.inverse[k + together] - truth.inverse[k + old])
            if s > 0:
                cells -= 1
                cross += c * s
                recall += 2 * c * s * truth.inverse[k]
            cell = table.follow[cell]
    true = 0
    for e in range(entities):
        s = table.part[table.part_keys[e]]
        k = truth.sizes[table.part_keys[e]]
        true += s
        squares += s * s
        recall += s * s * truth.inverse[k]
        similarity += s * truth.inverse[k + together]
    precision += (squares + 2 * cross) * truth.inverse[together]
    linked = sums[TRUE] + true - sums[CELLS] - cells
    p = 100.0 * precision / (sums[PLACED] + size)
    q = 100.0 * (sums[RECALL] + recall) / truth.mentions if truth.mentions > 0 else 0.0
    b3 = v[3] * p + v[4] * q + v[5] * _f1(p, q)
    return muc * linked + b3 + ceaf * (sums[SIMILARITY] + 2.0 * similarity)


@inlined
def _features(table: Any, truth: Any, psi: Any) -> None:
    """Psi from the sums that were kept up to date."""
    sums = table.sums
    claimed = sums[PLACED] - sums[CLUSTERS]
    numerators = (sums[TRUE] - sums[CELLS], sums[PRECISION], sums[SIMILARITY])
    found = (numerators[0], sums[RECALL], numerators[2])
    responses = (claimed, sums[PLACED], sums[CLUSTERS])
    wanted = (truth.links, truth.mentions, truth.entities)
    for m in range(3):
        psi[3 * m] = 100.0 * numerators[m] / responses[m] if responses[m] > 0 else 0.0
        psi[3 * m + 1] = 100.0 * found[m] / wanted[m] if wanted[m] > 0 else 0.0
        psi[3 * m + 2] = _f1(psi[3 * m], psi[3 * m + 1])


@kernel
def global_loss_tree(
    starts: Any, scores: Any, truth: Any, v: Any, weight: Any, scaled: Any, tie: Any, passes: Any, table: Any, psi: Any
) -> Any:
    """Coordinate ascent on the sum over nodes i of (n/i) s(e_i), less weight * v.Psi; n/i is 1 if not `scaled`.

    An arc is given up only for one that is better by more than `tie`; else the root goes first, then the oldest.
    Returns the passes made; the last changed no arc, unless all `passes` were made. The tree is in table.parents.
    """
    n = len(table.parents)
    _clear(table)
    clock = 0
    for done in range(passes):
        _recount(table, truth)
        changed = False
        for j in range(n):
            size, entities = _gather(table, truth, j)
            current = table.parents[j]
            if current >= 0:
                _leave(table, truth, table.label[j], size)
            placed = table.sums[PLACED] + size
            clusters = table.sums[CLUSTERS]
            muc = _rates(v[0], v[1], v[2], placed - clusters, truth.links)
            ceaf = _rates(v[6], v[7], v[8], clusters, truth.entities)
            muc_alone = _rates(v[0], v[1], v[2], placed - clusters - 1, truth.links)
            ceaf_alone = _rates(v[6], v[7], v[8], clusters + 1, truth.entities)
            share = weight * (j + 1) / n if scaled else weight
            alone = -share * _weigh(table, truth, v, -1, size, entities, muc_alone, ceaf_alone)
            first = j - (starts[j + 1] - starts[j])
            clock += 1
            best = alone
            parent = 0
            if current > 0:
                r = table.label[current - 1]
                table.worth[r] = -share * _weigh(table, truth, v, r, size, entities, muc, ceaf)
                table.stamp[r] = clock
                held = scores[starts[j] + current - 1 - first] + table.worth[r]
                if alone <= held + tie:
                    best = held
                    parent = current
            for i in range(first, j):
                r = table.label[i]
                if table.stamp[r] != clock:
                    table.stamp[r] = clock
                    table.worth[r] = -share * _weigh(table, truth, v, r, size, entities, muc, ceaf)
                value = scores[starts[j] + i - first] + table.worth[r]
                if value > best + tie:
                    best = value
                    parent = i + 1
            target = j if parent == 0 else table.label[parent - 1]
            if parent != current:
                changed = True
                _hang(table, j, parent)
                for m in range(size):
                    table.label[table.members[m]] = target
            _join(table, truth, target, size, entities)
        if not changed:
            _features(table, truth, psi)
            return done + 1
    _features(table, truth, psi)
    return passes
