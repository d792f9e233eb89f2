"""Drift: tells when link scores or the share of root links have changed for good. Needs river (`netclust[river]`).

Two things are watched by river's ADWIN: how well normal records match (the mean of `link` over blocks of 256 records
with a normal verdict), and how often records link to the root (the share in blocks of 256 records). Blocks are counted
in records, so how a stream is cut into batches does not matter.

>>> import numpy as np
>>> from netclust.linking.verdicts import Verdicts
>>> watch, batch = DriftWatch(), Verdicts.empty(256)
>>> rng = np.random.default_rng(0)
>>> for day in (0.0, -3.0):
...     for _ in range(100):
...         batch.link[:] = day + rng.normal(size=256)
...         for notice in watch.observe(batch, time=-1):
...             print(notice.facts["what"], round(notice.facts["before"]), round(notice.facts["after"]))
link_score 0 -3
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.verdicts import NORMAL, ROOT, Verdicts
from netclust.stream.alerts.alert_events import Notice

__all__ = ["BLOCK_RECORDS", "KEPT_BLOCKS", "DriftWatch"]

BLOCK_RECORDS: Final = 256
KEPT_BLOCKS: Final = 512
"""A detector remembers at least so many blocks, and at most twice as many."""

_SETTLE_BLOCKS: Final = 32  # what is usual is taken from these
_RECENT_BLOCKS: Final = 16  # what is "now"
_DEVIATIONS: Final = 4.0  # further from the usual is no worse: ADWIN wants values between 0 and 1
_CONFIDENCE: Final = 0.0005
_MESSAGES: Final = {
    "link_score": "normal records match their referents {how} than before: the mean link score went from {a} to {b}",
    "root_rate": "{how} records are like nothing known: the share of root links went from {a} to {b}",
}


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    """What a checkpoint keeps of one watched number."""

    blocks: list[float] = []
    pending: list[float] = []  # records of the block that is not full yet
    seen: int = 0  # full blocks since the beginning


class _State(msgspec.Struct, forbid_unknown_fields=True):
    block: int
    link_score: _Kept
    root_rate: _Kept


class DriftWatch:
    """Watches verdicts. Without river it does nothing, and `watched` says so."""

    def __init__(self) -> None:
        adwin = _find_adwin()
        self.watched = adwin is not None
        """Whether river is there."""
        self._streams = {} if adwin is None else {what: _Watched(what, adwin) for what in ("link_score", "root_rate")}

    def observe(self, verdicts: Verdicts, time: int) -> list[Notice]:
        """Take a batch; the changes that it brought to light. `time`: traffic time, for the notices."""
        if not self._streams:
            return []
        normal = verdicts.link[verdicts.verdict == NORMAL]
        roots = (verdicts.via == ROOT).astype(np.float32)
        return [*self._streams["link_score"].feed(normal, time), *self._streams["root_rate"].feed(roots, time)]

    def scores(self) -> dict[str, float]:
        """How far the last blocks are from what was usual, in deviations of a block; 0 while that is learned."""
        return {what: watched.score() for what, watched in self._streams.items()}

    def restart(self) -> None:
        """Forget what was usual: another model is in use, whose scores do not compare with those before."""
        for watched in self._streams.values():
            watched.restore(_Kept(seen=watched.kept.seen))

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON: the block means that the detectors are rebuilt from."""
        kept = {what: msgspec.to_builtins(watched.kept) for what, watched in self._streams.items()}
        return {"block": BLOCK_RECORDS, **kept} if kept else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on at a state. River's detectors are not stored: they are fed the kept means again, which is the same.

        An empty state, as that of a watch without river, begins anew. Raises InputError for one that cannot be.
        """
        if not state or not self._streams:
            return
        try:
            found = msgspec.convert(dict(state), _State)
        except msgspec.ValidationError as error:
            raise InputError(f"state of the drift watch: {error}") from None
        if found.block != BLOCK_RECORDS:
            return  # of another release: its means do not compare with ours
        for what, watched in self._streams.items():
            watched.restore(getattr(found, what))


class _Watched:
    """One number, by its block means."""

    def __init__(self, what: str, adwin: Callable[..., Any]) -> None:
        self.what = what
        self.kept = _Kept()
        self._adwin = adwin
        self._rebuild()

    def feed(self, values: NDArray[np.float32], time: int) -> list[Notice]:
        """Take the values of a batch."""
        kept = self.kept
        joined = np.concatenate([np.array(kept.pending, np.float64), values.astype(np.float64)])
        whole = len(joined) - len(joined) % BLOCK_RECORDS
        kept.pending = joined[whole:].tolist()
        notices = []
        for mean in joined[:whole].reshape(-1, BLOCK_RECORDS).mean(axis=1).tolist():
            kept.seen += 1
            if math.isfinite(mean) and self._changed(mean):
                notices.append(self._notice(time))
        return notices

    def _changed(self, mean: float) -> bool:
        blocks = self.kept.blocks
        blocks.append(mean)
        if len(blocks) <= _SETTLE_BLOCKS:
            if len(blocks) == _SETTLE_BLOCKS:
                self._rebuild()
            return False
        if len(blocks) == 2 * KEPT_BLOCKS:  # at a fixed count: after a restart the detector is the same
            del blocks[:KEPT_BLOCKS]
            self._rebuild()
            return False
        self._detector.update(self._scaled(mean))
        return bool(self._detector.drift_detected)

    def _rebuild(self) -> None:
        """A detector that has seen the kept blocks."""
        # Every block is looked at: they are few. A short window is enough, a block being a mean already.
        self._detector = self._adwin(delta=_CONFIDENCE, clock=1, min_window_length=5, grace_period=10)
        first = np.array(self.kept.blocks[:_SETTLE_BLOCKS])
        self._usual = float(first.mean()) if len(first) else 0.0
        self._spread = self._floor(float(first.std()) if len(first) else 0.0)
        if len(self.kept.blocks) >= _SETTLE_BLOCKS:
            for mean in self.kept.blocks:
                self._detector.update(self._scaled(mean))

    def _floor(self, spread: float) -> float:
        """A spread that is not smaller than chance or rounding make it."""
        if self.what == "root_rate":  # 32 blocks may hold no root link at all
            rate = max(self._usual, 1 / (2 * BLOCK_RECORDS))
            return max(spread, math.sqrt(rate / BLOCK_RECORDS))
        return max(spread, 1e-3 * abs(self._usual), 1e-6)

    def _scaled(self, mean: float) -> float:
        far = (mean - self._usual) / (2 * _DEVIATIONS * self._spread)
        return min(max(0.5 + far, 0.0), 1.0)

    def _notice(self, time: int) -> Notice:
        """Tell of the change, and begin anew: what is usual now is taken from the blocks to come."""
        blocks = np.array(self.kept.blocks)
        change = _change_point(blocks)
        before, after = float(blocks[:change].mean()), float(blocks[change:].mean())
        how = {"link_score": ("better", "worse"), "root_rate": ("more", "fewer")}[self.what][after < before]
        message = _MESSAGES[self.what].format(how=how, a=f"{before:.4g}", b=f"{after:.4g}")
        self.kept.blocks = []
        self._rebuild()
        return Notice(
            topic="drift",
            time=time,
            key=f"drift:{self.what}:{self.kept.seen}",
            message=message[0].upper() + message[1:] + ".",
            facts={
                "what": self.what,
                "before": before,
                "after": after,
                "records": (len(blocks) - change) * BLOCK_RECORDS,
                "block": self.kept.seen,
            },
        )

    def score(self) -> float:
        blocks = self.kept.blocks
        if len(blocks) <= _SETTLE_BLOCKS:
            return 0.0
        return (float(np.mean(blocks[-_RECENT_BLOCKS:])) - self._usual) / self._spread

    def restore(self, kept: _Kept) -> None:
        numbers = [*kept.blocks, *kept.pending]
        if (
            len(kept.blocks) >= 2 * KEPT_BLOCKS
            or len(kept.pending) >= BLOCK_RECORDS
            or not len(kept.blocks) <= kept.seen < 1 << 62
            or not all(map(math.isfinite, numbers))
        ):
            raise InputError(f"state of the drift watch: {self.what} cannot be")
        self.kept = kept
        self._rebuild()


def _change_point(values: NDArray[np.float64]) -> int:
    """Return where the second part begins if a series is cut in two whose means differ most clearly.

    ADWIN says that there was a change; what it drops then is only the oldest part of what was before.

    >>> _change_point(np.array([1.0, 1.1, 0.9, 1.0, 5.0, 5.1]))
    4
    """
    n = len(values)
    first = np.arange(1, n)
    sums = np.cumsum(values)[:-1]
    gap = sums / first - (values.sum() - sums) / (n - first)
    return 1 + int(np.argmax(gap * gap * first * (n - first)))


def _find_adwin() -> Callable[..., Any] | None:
    """river's detector, read from its own file: `river.drift` also imports data sets, and with them scikit-learn, SciPy
    and pandas, which would be more than half of what the start of a daemon costs."""
    river = importlib.util.find_spec("river")
    if river is None:
        return None
    files = [Path(folder) / "drift" / "adwin.py" for folder in river.submodule_search_locations or ()]
    spec = next((importlib.util.spec_from_file_location("river.drift.adwin", f) for f in files if f.is_file()), None)
    try:
        if spec is None or spec.loader is None:  # a river that has it elsewhere
            module: Any = importlib.import_module("river.drift")
        else:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
    except ImportError:
        return None
    adwin: Callable[..., Any] = module.ADWIN
    return adwin
