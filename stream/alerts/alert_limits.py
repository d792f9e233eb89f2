"""What keeps alerts few: the cool-down after an alert, the rate limit, and counters of what they hold back.

>>> limits = AlertLimits(cooldown=10, max_per_hour=1)
>>> limits.opened(0)
>>> limits.has_room(1), limits.has_room(HOUR)
(False, True)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

import msgspec

from netclust.stream.alerts.alert_episode import Episode
from netclust.stream.alerts.alert_events import EntityKind, Kind
from netclust.stream.alerts.alert_severity import severity_rank_of

__all__ = ["HOUR", "REMEMBERED", "AlertLimits", "Closed", "Counters", "count_alert_limit"]

HOUR = 3600 * 10**9
REMEMBERED = 65_536
"""Closed alerts that are remembered for their cool-down; beyond, the oldest is forgotten."""


class Counters(msgspec.Struct, kw_only=True):
    """What the book has done. Reasons: rule, cooldown, rate_limit, severity, min_records."""

    records: int = 0
    opened: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)  # by kind, by severity at opening
    updated: int = 0
    closed: dict[str, int] = msgspec.field(default_factory=dict)  # by quiet, stopped, label, limit
    suppressed_alerts: dict[str, int] = msgspec.field(default_factory=dict)
    suppressed_records: dict[str, int] = msgspec.field(default_factory=dict)
    max_open_hits: int = 0
    clock_set_back: int = 0


class Closed(msgspec.Struct):
    """An alert that was told and is over: the same again is not told for a while, unless it is worse."""

    kind: Kind
    label: str
    entity_kind: EntityKind
    entity: str
    clock: int
    rank: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What "the same" means."""
        return self.kind, self.label, self.entity_kind, self.entity


class AlertLimits:
    """Cool-down and rate limit, on traffic time in nanoseconds."""

    def __init__(self, cooldown: int, max_per_hour: int) -> None:
        self.cooldown, self.max_per_hour = cooldown, max_per_hour
        self.openings: deque[int] = deque()
        self._closed: dict[tuple[str, str, str, str], Closed] = {}

    @property
    def closed(self) -> list[Closed]:
        """Those that are remembered, in the order in which they closed."""
        return list(self._closed.values())

    def restore(self, closed: Iterable[Closed], openings: Iterable[int]) -> None:
        """As a checkpoint says."""
        self._closed = {each.key: each for each in closed}
        self.openings = deque(openings)

    def cooling_until(self, episode: Episode, now: int) -> int | None:
        """When the cool-down that holds this episode back is over; none if it may be told."""
        entities = [(episode.entity_kind, episode.entity)]
        if episode.victim:  # the first record of a flood from many sources, before it shows as one
            entities.append(("destination", episode.victim))
        rank = severity_rank_of(episode.severity_score)
        ends = [
            found.clock + self.cooldown
            for kind, entity in entities
            if (found := self._closed.get((episode.kind, episode.label, kind, entity))) is not None
            and now < found.clock + self.cooldown
            and rank <= found.rank
        ]
        return max(ends, default=None)

    def remember(self, episode: Episode, clock: int) -> None:
        """A told alert was closed."""
        closed = Closed(
            episode.kind,
            episode.label,
            episode.entity_kind,
            episode.entity,
            clock,
            severity_rank_of(episode.severity_score),
        )
        self._closed.pop(closed.key, None)
        self._closed[closed.key] = closed
        for key, each in list(islice(self._closed.items(), 2)):  # two go for one that comes: it stays small
            if len(self._closed) > REMEMBERED or each.clock + self.cooldown <= clock:
                del self._closed[key]

    def has_room(self, now: int) -> bool:
        """Whether another alert may be opened."""
        while self.openings and now - self.openings[0] >= HOUR:
            self.openings.popleft()
        return len(self.openings) < self.max_per_hour

    def opened(self, now: int) -> None:
        """An alert was opened."""
        self.openings.append(now)

    def set_back(self, now: int) -> None:
        """The clock went back: nothing happened later than now."""
        self.openings = deque(min(each, now) for each in self.openings)
        for closed in self._closed.values():
            closed.clock = min(closed.clock, now)


def count_alert_limit(counts: dict[str, int], key: str, by: int) -> None:
    """Add to a count."""
    counts[key] = counts.get(key, 0) + by
