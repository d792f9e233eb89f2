"""How large a program is before it is built, so that a set that is too large is refused before the start.

>>> estimate_size(100, "lp-full")
Estimate(variables=4950, rows=485100, bytes=123512400)
>>> check_size(5000, "lp")
Traceback (most recent call last):
    ...
netclust.errors.InputError: a set of 5,000 items is too large for the LP relaxation: 12,497,500 variables, ...
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from netclust.errors import InputError
from netclust.structures.pairs import pair_count

__all__ = ["LIMITS", "Estimate", "Method", "check_size", "estimate_size"]

Method = Literal["lp", "lp-full", "exact", "sdp", "minmax-lp", "minmax-sdp"]

LIMITS: dict[str, int] = {"lp": 300, "lp-full": 60, "exact": 150, "sdp": 400, "minmax-lp": 40, "minmax-sdp": 40}
"""Items of a set that each method takes unless told otherwise: what ends in minutes on one core."""

INTERIOR_ITEMS = 40
"""Up to so many items the semidefinite relaxation is solved by an interior point method, beyond by ADMM."""

_NAMES = {
    "lp": "the LP relaxation",
    "lp-full": "the LP with all triangles at once",
    "exact": "branch and cut",
    "sdp": "the semidefinite relaxation",
    "minmax-lp": "the LP min-max learner",
    "minmax-sdp": "the SDP min-max learner",
}
_ROW_BYTES = 224  # a triangle in the solver: three entries by row and by column, bounds, prices, basis, factors
_PAIR_BYTES = (
    3000  # a pair: bounds, costs, basis, factors, separation (measured at 100 and 200 items: 3.4 kB with rows)
)


class Estimate(NamedTuple):
    """The size of a program: of lazily added rows those that are usual, about two a pair."""

    variables: int
    rows: int
    bytes: int


def estimate_size(items: int, method: Method, pairs: int | None = None) -> Estimate:
    """Estimate the resources for a set of so many items (and so many stored pairs; None: all)."""
    if method not in LIMITS:
        raise InputError(f"method {method!r} is not known: one of {', '.join(LIMITS)}")
    variables = pair_count(items) if pairs is None else pairs
    if method in ("lp", "exact"):
        rows = 2 * variables
        return Estimate(variables, rows, rows * _ROW_BYTES + variables * _PAIR_BYTES)
    if method in ("lp-full", "minmax-lp"):
        rows = 3 * (items * (items - 1) * (items - 2) // 6)
        return Estimate(variables, rows, rows * _ROW_BYTES + variables * _PAIR_BYTES)
    triangle = items * (items + 1) // 2
    interior = 4 * 8 * triangle**2  # the cone's scaling is a dense matrix of its entries
    dense = method == "minmax-sdp" or items <= INTERIOR_ITEMS
    return Estimate(variables, variables + triangle, interior if dense else 10 * 8 * items**2)


def check_size(items: int, method: Method, *, pairs: int | None = None, largest: int | None = None) -> None:
    """Refuse a set that is too large, with the estimate and what to do; `largest` items are allowed."""
    allowed = LIMITS.get(method, 0) if largest is None else largest
    size = estimate_size(items, method, pairs)
    if size.variables <= pair_count(max(allowed, 2)):
        return
    raise InputError(
        f"a set of {items:,} items is too large for {_NAMES[method]}: {size.variables:,} variables, about "
        f"{size.rows:,} rows, {_memory(size.bytes)} (up to {allowed:,} items are taken); cluster it by greedy merging "
        f"or local search, split the set, or raise the limit (largest={items})"
    )


def _memory(count: int) -> str:
    return f"{count / 1e9:,.1f} GB of memory" if count >= 1e9 else f"{max(count / 1e6, 1):,.0f} MB of memory"
