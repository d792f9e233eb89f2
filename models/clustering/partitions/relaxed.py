"""C_R, the linear relaxation of correlation clustering: pairs may be partly together.

    max sum of s_ij e_ij,  0 <= e <= 1,  e_ij + e_jk <= 1 + e_ik for every triple and rotation

Its value is at least that of any partition; where it is integral, it is the best partition. The triangle rows are
cubically many, so only those that are violated are ever added.

>>> star = PairScores(4, np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))  # item 0 to its leaves: 1, the leaves: -1
>>> relaxed = relaxed_partition(star)
>>> round(relaxed.value, 9), relaxed.integral(), relaxed.together[:3].round(6).tolist()
(1.5, False, [0.5, 0.5, 0.5])

Where only some pairs are stored, only triples with three stored pairs have rows: the bound still holds but is weaker,
and even an integral solution may be no partition (round it).

T. Finley and T. Joachims, "Supervised clustering with support vector machines", ICML 2005, with its triangle
inequality corrected (as printed it is the one of distances); E. Demaine and N. Immorlica, "Correlation clustering with
partial information", 2003; M. Groetschel and Y. Wakabayashi, "A cutting plane algorithm for a clustering problem",
1989.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from netclust.errors import InputError
from netclust.models.clustering.partitions.triangle_program import TriangleProgram, restricted, triangle_components
from netclust.structures.pairs import Vector
from netclust.structures.partition import PairScores, RelaxedPartition, check_partition_scores
from netclust.structures.sizes import check_size

__all__ = ["LpRelaxed", "Round", "relaxed_partition"]


DROP_EVERY = 4
"""Rounds of the interior point method after which slack rows go: sooner, too many of them come back."""


class Round(NamedTuple):
    """A solved program: its value is a bound already (up to the solver's error), and its solution violates so many
    triangles (at most one a pair is counted). A hard program begins anew with another method: then the value rises."""

    number: int
    value: float
    rows: int
    violated: int


@dataclass(frozen=True, eq=False)
class LpRelaxed(RelaxedPartition):
    """A relaxed partition; `bound` follows from the rows' prices alone, so it holds whatever the solver's errors."""

    bound: float
    rounds: int
    rows: int


def relaxed_partition(
    scores: PairScores,
    *,
    tolerance: float = 1e-6,
    on_round: Callable[[Round], None] | None = None,
    largest: int | None = None,
) -> LpRelaxed:
    """Solve the relaxation; no triangle is violated by more than the tolerance.

    Items that no positive scores connect are solved apart. `largest` is how many items one program may have (see
    `netclust.structures.sizes`); `on_round` is told of every solved program.
    """
    check_partition_scores(scores)
    if not 1e-9 <= tolerance <= 0.1:
        raise InputError(f"tolerance {tolerance} is not between 1e-9 and 0.1")
    parts = [restricted(scores, group) for group in triangle_components(scores)]
    for part, _ in parts:
        check_size(part.items, "lp", pairs=len(part.values), largest=largest)
    together = np.zeros(len(scores.values))
    bound, rounds, rows = 0.0, 0, 0
    for part, pairs in parts:
        together[pairs], part_bound, part_rounds, part_rows = _solve(part, tolerance, on_round)
        bound, rounds, rows = bound + part_bound, rounds + part_rounds, rows + part_rows
    return LpRelaxed(together, float(scores.values @ together), bound, rounds, rows, index=scores.index)


def _solve(
    scores: PairScores, tolerance: float, on_round: Callable[[Round], None] | None
) -> tuple[Vector, float, int, int]:
    program = TriangleProgram(scores, tolerance)
    e: Vector = (scores.values > 0).astype(np.float64)  # the solution without rows
    best, rounds, added, polished = np.inf, 0, 0, False
    while True:
        rounds += 1
        value = float(scores.values @ e)
        triangles = program.violated(e)
        if on_round is not None:
            on_round(Round(rounds, value, program.rows.count, len(triangles)))
        if not len(triangles):
            if not program.interior or polished:
                break
            e, polished = program.corner(), True
            continue
        dropping = rounds > 1 and (not program.interior or rounds % DROP_EVERY == 0)
        if dropping and value < best - 1e-6 * program.scale:  # dropping rows without progress could go on forever
            best = value
            program.drop_slack()
        program.add_triangles(triangles)
        added += len(triangles)
        e = program.corner() if polished else program.solve()
    bound = program.bound() if rounds > 1 else float(np.maximum(scores.values, 0.0).sum())
    return e, bound, rounds, added
