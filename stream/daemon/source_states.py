"""Where each source continues after a restart, and the gaps of those that cannot be read again.

A record's number has two halves: an epoch, and a count within it. A source that can be read again gives the same
records the same numbers. One that cannot (an interface, a socket, a pipe) has lost what came after the last
checkpoint, unless the last run ended in order. It then continues in an epoch that no source of this state folder has
used, so no number is given twice. Whatever was saved of it, it opens: a state that cannot be used is counted and left
aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from netclust.errors import ModelError
from netclust.foundation.container import Arrays
from netclust.stream.daemon.checkpoint import Loaded
from netclust.stream.logs import Log
from netclust.stream.sources.base import MAX_SEQ, Source, SourceState, next_epoch
from netclust.stream.store.store import Store, StoreError
from netclust.stream.telemetry.telemetry import Sample

__all__ = ["EPOCH", "SourceStates"]

EPOCH = "epoch"
"""Under this name the store keeps the newest epoch, should all checkpoints be lost."""
EPOCHS_SINCE = 1_577_836_800
"""Epochs that cannot be noted are counted in seconds since 2020."""

_Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_SEQ)]


class _Gaps(msgspec.Struct):
    """What a checkpoint keeps of the gaps of one source."""

    gaps: _Count = 0
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    refused: _Count = 0  # states that could not be used


class _Facts(msgspec.Struct):
    """What a checkpoint keeps of all of them."""

    epoch: _Count = 0
    time: Annotated[float, msgspec.Meta(ge=-1, le=1 << 33)] = -1.0  # of the cut
    sources: dict[str, _Gaps] = {}


class SourceStates:
    """Opens sources where a checkpoint has them; `newest_epoch` is the first number of the newest epoch in use."""

    def __init__(
        self, loaded: Loaded | None, store: Store, log: Log, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._facts: dict[str, Any] = {} if loaded is None else loaded.facts
        self._arrays: Arrays = {} if loaded is None else loaded.arrays
        self._store, self._log, self._clock = store, log, clock
        self._known = _known(self._facts.get("continuing"))
        self._saved: dict[str, Any] = self._facts.get("sources", {})
        claimed = _claimed(store)
        self._used = loaded is not None or claimed >= 0
        numbers = [*map(_number, self._saved.values())]
        self.newest_epoch = max(self._known.epoch, claimed, *(max(number, 0) >> 32 << 32 for number in numbers), 0)
        self._next = next_epoch(max([self.newest_epoch, *numbers]))
        self._began = False
        if claimed < self.newest_epoch or claimed < 0:
            self._claim()
        self.lost = False
        """Whether a source continues with a gap."""

    def open(self, source: Source) -> SourceState | None:
        """Open a source; where it stands then, None if it has never been read."""
        if source.replayable:
            state = self._state(source.name)
            source.open(state)
            return state
        if not self._used or self._is_new(source.name):
            source.open(None)
            return None
        state = self._state(source.name)
        clean = bool(self._facts.get("clean"))
        if clean and state is not None and self._opens(source, state):
            return state
        self._begin_epoch()
        if not clean:
            self._note_gap(source.name)
        empty = SourceState({"seq": self.newest_epoch})
        if clean or state is None or not self._opens(source, _with_gap(state, self.newest_epoch)):
            source.open(empty)
        return empty  # until it says more

    def _opens(self, source: Source, state: SourceState) -> bool:
        """Open a source at a state; False where that cannot be used, which is counted."""
        try:
            if _number(state.facts) < 0:
                raise ModelError(f"{source.name}: the saved state does not say which record comes next")
            source.open(state)
            return True
        except ModelError as error:
            self._known.sources.setdefault(source.name, _Gaps()).refused += 1
            message = "the saved state of a source cannot be used: the source begins empty"
            self._log.warning(message, source=source.name, why=str(error))
            return False

    def _begin_epoch(self) -> None:
        """Begin one, before any record has a number of it; all sources of this run share it.

        Where the disk is full, it cannot be noted, and it may be forgotten: it is that of this second then.
        """
        if self._began:
            return
        self._began, self.newest_epoch = True, self._next
        if not self._claim():
            self.newest_epoch = max(self._next, int(self._clock() - EPOCHS_SINCE) << 32)

    def _claim(self) -> bool:
        """Note the newest epoch in the store."""
        try:
            self._store.set_meta(EPOCH, self.newest_epoch)
        except StoreError as error:
            self._log.error("the epoch of record numbers could not be noted in the store", why=str(error))
            return False
        return True

    def facts(self) -> dict[str, Any]:
        """For a checkpoint."""
        facts: dict[str, Any] = msgspec.to_builtins(_Facts(self.newest_epoch, self._clock(), self._known.sources))
        return facts

    def samples(self, names: Iterable[str]) -> Iterator[Sample]:
        """For Prometheus: of the sources of these names."""
        for name in names:
            gaps = self._known.sources.get(name, _Gaps())
            yield "source_gaps_total", (name,), gaps.gaps
            yield "source_gap_seconds_total", (name,), gaps.seconds
            yield "source_states_refused_total", (name,), gaps.refused

    def _state(self, name: str) -> SourceState | None:
        saved = self._saved.get(name)
        if saved is None:
            return None
        prefix = f"source.{name}."
        return SourceState(saved, {n.removeprefix(prefix): a for n, a in self._arrays.items() if n.startswith(prefix)})

    def _is_new(self, name: str) -> bool:
        """Whether a source came into the configuration since the checkpoint."""
        return bool(self._facts) and name not in self._facts.get("numbers", {})

    def _note_gap(self, name: str) -> None:
        """Count it; how long it is nobody knows better than from the checkpoint, else from the last sign of life."""
        now = self._clock()
        since = self._known.time if self._facts else _last_seen(self._store)
        seconds = max(now - since, 0.0) if since > 0 else 0.0
        gaps = self._known.sources.setdefault(name, _Gaps())
        gaps.gaps += 1
        gaps.seconds += seconds
        self.lost = True
        self._log.warning(
            "a source continues with a gap: the last run did not end in order, and what came since is lost",
            source=name,
            since=datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds") if since > 0 else "unknown",
            seconds=round(seconds, 1),
            next_record=self.newest_epoch,
        )


def _known(raw: Any) -> _Facts:
    try:
        return msgspec.convert(raw or {}, _Facts)
    except msgspec.ValidationError:
        return _Facts()


def _with_gap(state: SourceState, seq: int) -> SourceState:
    """The same state, as far as it counts when what came after it is lost."""
    facts = state.facts if isinstance(state.facts, dict) else {}
    return SourceState({**facts, "seq": seq}, state.arrays, gap=True)


def _number(facts: Any) -> int:
    """The number of the next record by saved facts; -1 if there is none that can be."""
    seq = facts.get("seq") if isinstance(facts, dict) else None
    return seq if isinstance(seq, int) and 0 <= seq < MAX_SEQ else -1


def _claimed(store: Store) -> int:
    """The newest epoch that the store knows of, -1 if it knows of none."""
    try:
        found = store.meta(EPOCH)
    except StoreError:
        return -1
    return found if isinstance(found, int) and 0 <= found < MAX_SEQ else -1


def _last_seen(store: Store) -> float:
    """When the last run last said that it was there, in seconds since 1970; 0 if it never did."""
    try:
        said = store.meta("daemon")
    except StoreError:
        return 0.0
    nanoseconds = said.get("time") if isinstance(said, dict) else None
    return nanoseconds / 1e9 if isinstance(nanoseconds, int) else 0.0
