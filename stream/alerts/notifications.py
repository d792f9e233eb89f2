"""Reports of episodes: opened, updated, held back, closed. The book says which episodes there are.

An alert is opened once it has records and severity enough, unless cool-down or rate limit hold it back. It is
reported again when its records have doubled, when some time has passed and it grew, or when it is
more severe or taken for something else.

>>> reporter = AlertReporter(AlertConfig(min_records=2))
>>> episode = Episode(
...     id="a-0", kind="novel", label="novel", entity="10.0.0.9", entity_kind="source", source="", first_record="0:7"
... )
>>> episode.records = 1
>>> reporter.reason_held_back(episode, cooling_until=None)
'min_records'
"""

from __future__ import annotations

from collections.abc import Mapping

from netclust.records.labels import NOVEL_NAME
from netclust.stream.alerts.alert_episode import (
    EXAMPLES,
    NEVER,
    AnomalousRows,
    Episode,
    Held,
    alert_of,
    note_example,
    note_examples,
    note_explanation,
)
from netclust.stream.alerts.alert_events import Action, AlertEvent, ClosedBy
from netclust.stream.alerts.alert_limits import AlertLimits, Counters, count_alert_limit
from netclust.stream.alerts.alert_severity import SEVERITIES, severity_name, severity_rank_of, severity_score
from netclust.stream.config import AlertConfig

__all__ = ["CLEAR_STEP", "AlertReporter"]

CLEAR_STEP = 1.5
"""An alert is explained again by a record whose score is this many times that of the explained one."""


class AlertReporter:
    """The reporter of alerts: limits, counters and what follows. `now` is traffic time; the book sets it."""

    def __init__(self, config: AlertConfig, categories: Mapping[str, str] | None = None) -> None:
        self.categories = dict(categories or {})
        self.limits = AlertLimits(0, 0)
        self.counters = Counters()
        self.now = -1
        self.configure(config)

    def configure(self, config: AlertConfig) -> None:
        """Go on with another configuration."""
        self.config = config
        self.quiet, self.update, self.limits.cooldown = (
            int(min(max(seconds, 0.0) * 1e9, NEVER // 4))
            for seconds in (config.quiet_seconds, config.reminder_interval, config.cooldown_seconds)
        )
        self.limits.max_per_hour = config.max_per_hour
        self._least_rank = SEVERITIES.index(config.min_severity)

    def look(self, episode: Episode, rows: AnomalousRows, i: int, events: list[AlertEvent]) -> Held:
        """Weigh an episode after record i has joined it; report it if due, and return what holds it back."""
        if episode.labels.counts:
            episode.label = episode.labels.top(1)[0].value
            episode.kind = "novel" if episode.label == NOVEL_NAME else "known_attack"
        weight = severity_score(
            episode.kind,
            self.categories.get(episode.label, ""),
            top_score=episode.top_score,
            records=episode.records,
            fan_out=episode.fan_out,
            seconds=episode.seconds,
        )
        episode.severity_score = max(episode.severity_score, weight)
        reporting = episode.reported and self.worth_reporting(episode, episode.records)
        if reporting or len(episode.examples) < EXAMPLES:
            note_examples(episode, f"{rows.source_id[i]}:{rows.seq[i]}", rows.example(i))
        until: int | None = None
        held: Held = ""
        if episode.reported:
            if episode.top_score > episode.look_score:
                self._explain(episode, rows, i)
            if reporting:
                self.report("update", episode, episode.records, events)
        else:
            until = self.limits.cooling_until(episode, self.now)
            held = self.reason_held_back(episode, until)
            if held:
                self._hold_back(episode, held)
            else:
                self.count_held_back(episode)
                episode.held = ""
                self.limits.opened(self.now)
                self._explain(episode, rows, i)
                self.report("open", episode, episode.records, events)
        self._look_later(episode, until)
        return held

    def _look_later(self, episode: Episode, cooling_until: int | None) -> None:
        at = episode.records + max(1, episode.records // 4)
        clock = self.now
        if episode.reported:
            at, clock = min(at, 2 * episode.reported_records), episode.reported_clock
        elif episode.records < self.config.min_records:
            at = min(at, self.config.min_records)
        episode.look_at = at
        episode.look_clock = NEVER if self.now < 0 else clock + self.update
        if cooling_until is not None:
            episode.look_clock = min(episode.look_clock, cooling_until)

    def _explain(self, episode: Episode, rows: AnomalousRows, i: int) -> None:
        note_explanation(episode, rows.explain(i))
        note_example(episode, rows.example(i))
        episode.look_score = CLEAR_STEP * max(episode.top_score, 1.0)

    def worth_reporting(self, episode: Episode, size: int) -> bool:
        """Return whether a reported alert has changed enough to be reported again, being of this size now."""
        return (
            size >= 2 * episode.reported_records
            or self.now >= episode.reported_clock + self.update
            or severity_rank_of(episode.severity_score) > episode.reported_rank
            or episode.label != episode.reported_label
        )

    def report(
        self, action: Action, episode: Episode, size: int, events: list[AlertEvent], closed_by: ClosedBy = ""
    ) -> None:
        """Report an alert as it is now. `size` is what has to double for the next time."""
        if action == "open":
            by_severity = self.counters.opened.setdefault(episode.kind, {})
            count_alert_limit(by_severity, severity_name(episode.severity_score), 1)
            episode.reported = True
        else:
            episode.update += 1
        if action == "update":
            self.counters.updated += 1
        episode.reported_records, episode.reported_clock = size, self.now
        episode.reported_rank, episode.reported_label = severity_rank_of(episode.severity_score), episode.label
        events.append(AlertEvent(action=action, alert=alert_of(episode, closed_by)))

    def reason_held_back(self, episode: Episode, cooling_until: int | None) -> Held:
        """Return why an episode is held back; empty if it is not."""
        if episode.records < self.config.min_records:
            return "min_records"
        if severity_rank_of(episode.severity_score) < self._least_rank:
            return "severity"
        if cooling_until is not None:
            return "cooldown"
        return "" if self.limits.has_room(self.now) else "rate_limit"

    def _hold_back(self, episode: Episode, held: Held) -> None:
        if held != episode.held:
            self.count_held_back(episode)
            episode.held = held
            if held in ("cooldown", "rate_limit"):
                count_alert_limit(self.counters.suppressed_alerts, held, 1)

    def count_held_back(self, episode: Episode) -> None:
        """Count the records that were held back; those that merely waited to be enough are reported with the rest."""
        if episode.held in ("cooldown", "rate_limit"):
            count_alert_limit(self.counters.suppressed_records, episode.held, episode.records - episode.held_from)
            episode.held_from = episode.records

    def end(self, episode: Episode, by: ClosedBy, clock: int, events: list[AlertEvent]) -> None:
        """End an episode at `clock`: report that, or count what was never reported."""
        if episode.reported:
            count_alert_limit(self.counters.closed, by, 1)
            self.report("close", episode, episode.records, events, by)
            if episode.role != "overflow":
                self.limits.remember(episode, clock)
            return
        self.count_held_back(episode)
        if episode.held in ("min_records", "severity"):
            count_alert_limit(self.counters.suppressed_alerts, episode.held, 1)
            count_alert_limit(self.counters.suppressed_records, episode.held, episode.records - episode.held_from)
