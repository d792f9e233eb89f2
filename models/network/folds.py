"""Folds of a training file that ask tomorrow's question: new attack types, among normal traffic that has changed.

A fold hides whole attack types, and kinds of normal traffic; a model is trained on the rest and asked for the hidden.
Everything is fixed: the same file gives the same folds.

>>> from netclust.datasets.simulators.simulate import simulate
>>> table = simulate(3000, seed=1).table()
>>> folds = make_folds(table)
>>> len(folds), folds[0].types
(5, ('icmp_flood', 'ssh_brute_force'))
>>> names = table.label_names()
>>> set(names[folds[0].train]) & set(folds[0].types)
set()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.table import Table

__all__ = [
    "FOLDS",
    "SEED",
    "FoldSizes",
    "StreamFold",
    "Use",
    "deal_kinds",
    "deal_types",
    "kind_attribute",
    "make_folds",
]

Use = Literal["reference", "late"]
"""What the model is for: `reference`: no label ever comes back; `late`: true labels come back after a delay."""

Rows = NDArray[np.int64]

FOLDS = 5
SEED = 1_119_991
"""Of every draw in this module. Committed: a fold that could be chosen would be chosen."""


@dataclass(frozen=True)
class FoldSizes:
    """How many records a validation stream has, at most."""

    normal: int
    hidden: int  # of every hidden type
    known: int  # of every known type
    known_part: int  # and no more than one in this many of it
    new_kinds: float  # share of the normal records that are of hidden kinds


SIZES: dict[Use, FoldSizes] = {
    # With one normal record in twenty of a new kind, false alarms are about twice what the root is calibrated for.
    "reference": FoldSizes(normal=5000, hidden=300, known=300, known_part=5, new_kinds=0.05),
    # Labels come back, so that new kinds of normal traffic are soon known: none are hidden. A longer stream.
    "late": FoldSizes(normal=10_000, hidden=1500, known=1500, known_part=2, new_kinds=0.0),
}
_DRAW: dict[Use, int] = {"reference": 0, "late": 1}


@dataclass(frozen=True, eq=False)
class StreamFold:
    """Rows of a table: what is trained on, in file order, and the validation stream, in stream order."""

    train: Rows
    validation: Rows
    hidden: NDArray[np.bool_]  # of the validation records: an attack of a hidden type
    hidden_normal: NDArray[np.bool_]  # of the validation records: normal, of a hidden kind
    types: tuple[str, ...]
    kinds: tuple[str, ...]


def make_folds(table: Table, use: Use = "reference", where: str = "training data") -> list[StreamFold]:
    """Five folds, or as many as there are attack types if those are fewer; at least two."""
    unlabelled = int((table.label == 0).sum())
    if unlabelled:
        raise InputError(f"{where}: {unlabelled} of {len(table)} records have no label: label them or leave them out")
    is_normal = np.array([name in table.schema.normal for name in table.labels], np.bool_)[table.label]
    normal = int(is_normal.sum())
    if normal < 3:
        raise InputError(
            f"{where}: {normal} normal records ({' or '.join(table.schema.normal)} is the label): folds need 3 or more"
        )
    types = deal_types(table)
    if len(types) < 2:
        have = f"the only attack type is {types[0][0]}" if types else "no attack type at all"
        raise InputError(f"{where}: {have}: folds hide one type and train on another, so they need 2 or more")
    kinds = deal_kinds(table, is_normal, len(types)) if SIZES[use].new_kinds else [()] * len(types)
    return [_fold(table, use, k, is_normal, types, kinds[k]) for k in range(len(types))]


def deal_types(table: Table) -> list[tuple[str, ...]]:
    """The attack types that each fold hides: sorted by category, then size, and dealt in turn."""
    counts = np.bincount(table.label, minlength=len(table.labels))
    category = table.schema.category_of
    types = [
        (category.get(name, ""), -int(n), name)
        for name, n in zip(table.labels, counts, strict=True)
        if n and name and name not in table.schema.normal
    ]
    return _deal([name for _, _, name in sorted(types)], min(FOLDS, len(types)))


def kind_attribute(table: Table) -> int | None:
    """Which coded attribute tells kinds of traffic apart: the symbolic one with the most values (kdd: the service)."""
    values = {s: len(np.unique(table.sym[:, s])) for s, a in enumerate(table.schema.coded) if a.kind == "symbolic"}
    return max(values, key=lambda s: values[s]) if values else None  # of equals the first


def deal_kinds(table: Table, is_normal: NDArray[np.bool_], folds: int) -> list[tuple[str, ...]]:
    """The kinds of normal traffic that each fold hides: never the largest ones that make up half of it."""
    s = kind_attribute(table)
    if s is None:
        return [()] * folds
    counts = np.bincount(table.sym[is_normal, s], minlength=len(table.symbols[s]))
    kinds = sorted((-int(n), name) for name, n in zip(table.symbols[s], counts, strict=True) if n)
    before = np.cumsum([0, *(-n for n, _ in kinds)])[:-1]
    common = int((2 * before < counts.sum()).sum())
    return _deal([name for _, name in kinds[common:]], folds)


def _deal(names: Sequence[str], folds: int) -> list[tuple[str, ...]]:
    return [tuple(names[k::folds]) for k in range(folds)]


def _fold(
    table: Table,
    use: Use,
    k: int,
    is_normal: NDArray[np.bool_],
    types: Sequence[tuple[str, ...]],
    kinds: tuple[str, ...],
) -> StreamFold:
    sizes = SIZES[use]
    rng = np.random.default_rng([SEED, _DRAW[use], k])
    number = {name: i for i, name in enumerate(table.labels)}
    is_hidden = np.isin(table.label, [number[name] for name in types[k]])
    kind = np.zeros(len(table), np.int64)
    if kinds:
        s = kind_attribute(table)
        place = {name: i for i, name in enumerate(kinds, 1)}
        kind = np.array([place.get(name, 0) for name in table.symbols[s or 0]])[table.sym[:, s or 0]]
    is_new = is_normal & (kind > 0)

    wanted = min(sizes.normal, int(is_normal.sum()) // 3)
    of_kind = [np.flatnonzero(is_new & (kind == i)) for i in range(1, len(kinds) + 1)]
    quota = _spread([len(rows) for rows in of_kind], int(wanted * sizes.new_kinds))
    drawn = [_draw(rng, rows, n) for rows, n in zip(of_kind, quota, strict=True)]
    # Where the hidden kinds do not have enough, the known ones fill up: every fold has as many normal records.
    drawn.append(_draw(rng, np.flatnonzero(is_normal & ~is_new), wanted - sum(quota)))
    for name in sorted(name for fold in types for name in fold):
        rows = np.flatnonzero(table.label == number[name])
        most = min(sizes.hidden, len(rows)) if name in types[k] else min(sizes.known, len(rows) // sizes.known_part)
        drawn.append(_draw(rng, rows, most))
    validation = rng.permutation(np.concatenate(drawn))
    left = ~(is_hidden | is_new)
    left[validation] = False
    return StreamFold(
        train=np.flatnonzero(left),
        validation=validation,
        hidden=is_hidden[validation],
        hidden_normal=is_new[validation],
        types=types[k],
        kinds=kinds,
    )


def _draw(rng: np.random.Generator, rows: Rows, n: int) -> Rows:
    return rng.choice(rows, n, replace=False)


def _spread(sizes: Sequence[int], total: int) -> list[int]:
    """Water filling: `total` spread as evenly as the sizes allow, less where there are not so many.

    >>> _spread([2, 10, 10], 12), _spread([1, 1], 5)
    ([2, 5, 5], [1, 1])
    """
    quota = [0] * len(sizes)
    left = min(total, sum(sizes))
    # From the smallest up, each takes an even share of what is left, or all it has.
    for behind, i in enumerate(sorted(range(len(sizes)), key=lambda i: (sizes[i], i))):
        quota[i] = min(sizes[i], left // (len(sizes) - behind))
        left -= quota[i]
    return quota
