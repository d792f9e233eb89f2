"""Novelty: how unlike the ordinary traffic of its site a record is.

The score is the distance to the k-th nearest of the site's referents, where k is a share of them. A few odd referents
therefore make nothing ordinary, and neither does an attack in the warm-up that is a smaller share than k. The exact
definition is in docs/design/linking.md.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.records.encoding import fit_encoding
>>> day = simulate(2000, seed=1, attacks=()).table()
>>> encoding = fit_encoding(day)
>>> site = SiteNovelty.fit(encoding.encode(day), encoding.widths)
>>> today = simulate(500, seed=2, day=1)
>>> batch = encoding.encode(today.table())
>>> scores, attack = site.scores(batch), today.label != "normal"
>>> bool(np.median(scores[attack]) > np.median(scores[~attack]))
True
>>> threshold = site.threshold(0.01)
>>> np.array_equal(site.exceeds(batch, threshold), scores > threshold)
True
>>> found = site.explain(batch, int(np.argmax(scores)))
>>> math.fsum(found.contributions) == found.score == float(scores.max())
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays, require_array
from netclust.kernels.linking import novelty_scan
from netclust.kernels.linking.novelty_scan import ScanRoom, SiteScan, block_columns, make_scan_room
from netclust.kernels.seam import read_only
from netclust.records.batch import Batch
from netclust.records.encoding import FAR, MAX_CODES, Encoding
from netclust.scoring.calibration import threshold_for

__all__ = ["NoveltyExplanation", "SiteNovelty"]

REFERENTS = 1000
MAX_REFERENTS = 1 << 16
SHARE = 1 / 3
"""k is this share of the referents: well above the share of attacks that a warm-up must withstand, which is a fifth."""
NORMAL_SPREAD = 1.349
"""The interquartile range of a normal distribution, in standard deviations."""
WIDEST = 4
"""The range of an attribute at the site is at most this many of its units: the rule of thumb for a few dozen values."""
CONSTANT = 1e-6
"""An attribute whose range at the site is below this share of the encoding's range counts as constant."""
_MAX_PRICE = 1e3
_MAX_SPAN = 2 * WIDEST
_PREFIX = "novelty."


class NoveltyExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The k-th nearest referent of a record, and the part of the distance that each attribute contributes.

    `referent` is a row of the site's referents. Contributions stand in the order of `Encoding.shown_names`, none is
    negative by more than rounding, and `math.fsum` of them is the score.
    """

    score: float
    referent: int
    contributions: tuple[float, ...]

    def by_attribute(self, encoding: Encoding) -> dict[str, float]:
        """Return the contributions by the name of their attribute, the largest first."""
        named = zip(encoding.shown_names, self.contributions, strict=True)
        return dict(sorted(named, key=lambda item: -item[1]))


@dataclass(frozen=True, eq=False)
class SiteNovelty:
    """The referents of a site, with the units, ranges and prices that a record is measured by.

    Numbers are those of a `Batch`, before they are put into units. `slope` is 1 / unit, and 0 where the attribute is
    constant at the site. `middle` is the site's median. Prices of all codes lie behind one another, attribute by
    attribute, `widths` of them each.
    """

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    middle: NDArray[np.float32]
    slope: NDArray[np.float32]
    price: NDArray[np.float32]
    widths: NDArray[np.int64]
    share: float = SHARE

    @classmethod
    def fit(
        cls,
        records: Batch,
        widths: Sequence[int],
        *,
        share: float = SHARE,
        referents: int = REFERENTS,
        seed: int = 0,
    ) -> Self:
        """Return the novelty of a site whose ordinary traffic is known from some records.

        `widths` is `Encoding.widths`. If there are more records than `referents`, a uniform sample is taken: a
        covering sample would give a larger share to whoever sends the most different records.
        """
        if not 0 < share <= 1:
            raise InputError(f"the share of referents lies above 0 and is at most 1, not {share}")
        if not 0 < referents <= MAX_REFERENTS:
            raise InputError(f"a site has 1 to {MAX_REFERENTS} referents, not {referents}")
        if not np.isfinite(records.num).all():
            raise InputError("a referent has a number that is not finite")
        sizes = np.array(widths, np.int64)
        _check_codes(records.code, sizes)
        if len(records) > referents:
            rows = np.random.default_rng(seed).choice(len(records), referents, replace=False)
            records = records[np.sort(rows)]
        num, code = records.num, records.code
        low, high, middle, slope = _ranges(num)
        price = _prices(_counts(code, sizes) + 1, len(num) + 2, _MAX_PRICE)
        site = cls(num, code, low, high, middle, slope, price, sizes, share)
        # The most typical referents come first: what is typical itself is then counted through soonest.
        order = np.argsort(site.own_scores, kind="stable")
        return replace(site, num=num[order], code=code[order])

    def __len__(self) -> int:
        """Return the number of referents."""
        return len(self.num)

    @property
    def k(self) -> int:
        """Which of the referents, counted from the nearest, gives the score."""
        return _kth(self.share, len(self))

    def scores(self, batch: Batch) -> NDArray[np.float32]:
        """Return the novelty of every record; +inf where the site has no referents."""
        out = np.full(len(batch), np.inf, np.float32)
        self._check(batch)
        if len(self):
            novelty_scan.kth_distances(batch.num, batch.code, self._scan, len(self), self.k, self._room(), out)
        return out

    def exceeds(self, batch: Batch, threshold: float | NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return whether the score of each record exceeds a threshold, or its own one of several.

        This is quicker than `scores`, because referents are counted only until the answer is known.
        """
        limits = np.ascontiguousarray(np.broadcast_to(threshold, len(batch)), np.float32) + np.float32(0)  # no -0
        if np.isnan(limits).any():
            raise InputError("a threshold of novelty is not a number")
        self._check(batch)
        out = limits < np.inf
        if len(self):
            site, n, k = self._scan, len(self), self.k
            novelty_scan.count_below(batch.num, batch.code, site, n, k, limits, self._room(), out)
        return out

    def explain(self, batch: Batch, row: int) -> NoveltyExplanation:
        """Return why a record of a batch has its score; of referents that are equally far, the first one counts."""
        if not len(self):
            raise InputError("a site without referents explains nothing")
        record = batch[row : row + 1]
        score = self.scores(record)[0]
        room = self._room()
        novelty_scan.distances_of(record.num[0], record.code[0], self._scan, room)
        referent = int(np.flatnonzero(room.acc[: len(self)] == score)[0])
        site = self._scan
        steps = np.zeros(self.num.shape[1] + len(self.widths), np.float32)
        steps[site.kept] = np.abs(room.x - site.num[:, referent])
        steps[self.num.shape[1] :] = np.where(record.code[0] == self.code[referent], np.float32(0), room.price)
        # Rounding goes to the attribute at which it happened, so that the parts add up to the kernel's own sum.
        parts = np.diff(np.cumsum(steps, dtype=np.float32).astype(np.float64), prepend=0.0)
        parts[int(np.argmax(parts))] += float(score) - math.fsum(parts)
        return NoveltyExplanation(score=float(score), referent=referent, contributions=tuple(parts.tolist()))

    @cached_property
    def own_scores(self) -> NDArray[np.float32]:
        """The score of each referent against the others, as if it came new; +inf of a single one."""
        n = len(self)
        out = np.full(n, np.inf, np.float32)
        if n > 1:
            # A new record is one more of its own code, and a referent is one of them already.
            price = _prices(np.maximum(_counts(self.code, self.widths), 1), n + 1, _MAX_PRICE)
            site = self._scan._replace(price=read_only(price))
            # Itself is the nearest, at 0.
            k = _kth(self.share, n - 1) + 1
            novelty_scan.kth_distances(self.num, self.code, site, n, k, self._room(), out)
        return out

    def p_values(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the conformal p-value of scores: the share of ordinary records that would score as high.

        Each is (1 + referents that score at least as high) / (1 + referents).
        """
        below = np.searchsorted(np.sort(self.own_scores), np.asarray(scores, np.float32), side="left")
        return np.asarray((1 + len(self) - below) / (1 + len(self)), np.float64)

    def threshold(self, rate: float, among: NDArray[np.bool_] | None = None) -> float:
        """Return the threshold that a share `rate` of ordinary records exceeds, at most.

        A score exceeds it if and only if its p-value is at most `rate`. `among` says which referents to go by, for the
        threshold of one stratum. InputError where there are fewer than 1 / rate - 1 of them.
        """
        own = self.own_scores if among is None else self.own_scores[among]
        return -threshold_for(-own, rate) + 0.0

    def arrays(self) -> Arrays:
        """Return what a snapshot stores."""
        stored = {f"{_PREFIX}{name}": getattr(self, name) for name in _STORED}
        return stored | {f"{_PREFIX}share": np.array([self.share])}

    @classmethod
    def from_arrays(cls, arrays: Arrays, widths: Sequence[int], features: int, where: str) -> Self:
        """Return the novelty that `arrays` gave; `widths` and `features` are those of the model's encoding.

        ModelError for what `arrays` never gives.
        """
        sizes = np.array(widths, np.int64)
        shapes = dict.fromkeys(("low", "high", "middle", "slope"), (features,)) | {"price": (int(sizes.sum()),)}
        found = {name: require_array(arrays, f"{_PREFIX}{name}", np.float32, shapes[name], where) for name in shapes}
        num = require_array(arrays, f"{_PREFIX}num", np.float32, (None, features), where)
        code = require_array(arrays, f"{_PREFIX}code", np.uint16, (len(num), len(sizes)), where)
        share = float(require_array(arrays, f"{_PREFIX}share", np.float64, (1,), where)[0])
        low, high, slope, price = (found[name] for name in ("low", "high", "slope", "price"))
        largest = max(float(np.abs(array).max(initial=0)) for array in (num, low, high, found["middle"]))
        span = slope.astype(np.float64) * (high.astype(np.float64) - low)
        if len(num) > MAX_REFERENTS or not 0 < share <= 1 or largest > FAR or (code >= sizes).any():
            raise ModelError(f"{where}: the site's referents are out of range")
        if (low > high).any() or (slope < 0).any() or (span > _MAX_SPAN).any():
            raise ModelError(f"{where}: the site's units are out of range")
        if (price < 0).any() or (price > _MAX_PRICE).any():
            raise ModelError(f"{where}: a price of a symbol is out of range")
        return cls(num=num, code=code, widths=sizes, share=share, **found)

    @cached_property
    def _scan(self) -> SiteScan:
        kept = np.flatnonzero(self.slope > 0)
        low, slope = self.low[kept], self.slope[kept]
        span = (self.high[kept] - low) * slope
        num = np.clip((self.num[:, kept] - low) * slope, np.float32(0), span)
        middle = np.clip((self.middle[kept] - low) * slope, np.float32(0), span)
        missing = np.where(middle > span - middle, np.float32(0), span)
        offset = (np.cumsum(self.widths) - self.widths).astype(np.int64)
        arrays = (block_columns(num), block_columns(self.code), kept, low, slope, span, missing, self.price, offset)
        return SiteScan(*(read_only(array) for array in arrays))

    def _room(self) -> ScanRoom:
        return make_scan_room(self._scan, len(self))

    def _check(self, batch: Batch) -> None:
        if batch.num.shape[1] != self.num.shape[1] or batch.code.shape[1] != len(self.widths):
            raise InputError("the records have other attributes than the site's referents")
        _check_codes(batch.code, self.widths)


_STORED = ("num", "code", "low", "high", "middle", "slope", "price")


def _kth(share: float, n: int) -> int:
    """Return which of n referents counts: the share of them, rounded up.

    >>> _kth(0.25, 1000), _kth(1 / 3, 999), _kth(1 / 3, 3), _kth(1.0, 7)
    (250, 333, 1, 7)
    """
    return min(max(math.ceil(share * n), 1), max(n, 1))


def _ranges(num: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
    """Return low end, high end, median and 1 / unit of each attribute."""
    if not len(num):
        return tuple(np.zeros(num.shape[1], np.float32) for _ in range(4))
    wide = num.astype(np.float64)
    low, lower, middle, upper, high = np.quantile(wide, (0, 0.25, 0.5, 0.75, 1), axis=0)
    reach = high - low
    unit = np.maximum((upper - lower) / NORMAL_SPREAD, reach / WIDEST)
    slope = np.divide(1, unit, out=np.zeros_like(unit), where=reach > CONSTANT)
    return tuple(array.astype(np.float32) for array in (low, high, middle, slope))


def _counts(code: NDArray[np.uint16], widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many referents have each code, attribute by attribute."""
    found = [np.bincount(code[:, s], minlength=width) for s, width in enumerate(widths.tolist())]
    return np.concatenate([np.zeros(0, np.int64), *found])


def _prices(counts: NDArray[np.int64], of: int, most: float) -> NDArray[np.float32]:
    """Return the price of a code with this share: as many standard deviations as are as surprising."""
    return np.asarray(np.minimum(np.sqrt(-2 * np.log(counts / of)), most), np.float32)


def _check_codes(code: NDArray[np.uint16], widths: NDArray[np.int64]) -> None:
    if code.shape[1] != len(widths) or (widths > MAX_CODES + 1).any():
        raise InputError("the records have other coded attributes than the encoding")
    if len(code) and (code.max(axis=0).astype(np.int64) >= widths).any():
        raise InputError("a record has a code that its encoding does not have")
