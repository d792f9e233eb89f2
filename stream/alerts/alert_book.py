"""The alert book: anomalous records in, few alerts out. One alert is one entity's episode, whatever its size.

A record joins an open alert of its kind and label: its source's; else its destination's; else the one whose only
destination so far is this record's, which becomes the destination's alert (a flood from many sources). Where there are
many open ones already, it joins a collective alert, until it is loud enough to stand alone. Time is traffic time.

>>> ports, one = np.arange(1, 801), np.ones(800, np.int64)
>>> scan = AnomalousRows(
...     source_id=one * 0, seq=ports, time=10**9 * one, cluster=12 * one, kind=one * NOVEL, label=["novel"] * 800,
...     score=2.0 * one, source=np.array(["10.0.0.7"] * 800, object), destination=np.array(["10.0.0.1"] * 800, object),
...     destination_port=ports.astype(object),
... )
>>> book = AlertBook(AlertConfig(quiet_seconds=60), source_names=["wire"])
>>> events = book.take(scan)
>>> len(events), events[0].action, events[-1].alert.summary
(11, 'open', 'new from 10.0.0.7: 640 records to 1 host, 640 ports')
>>> [(event.alert.closed_by, event.alert.records) for event in book.advance(100 * 10**9)]
[('quiet', 800)]

Results depend neither on how the stream is cut into batches, nor on a restart from `state()` at any point.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.linking.verdicts import NOVEL
from netclust.records.labels import NOVEL_NAME
from netclust.stream.alerts.alert_episode import HIGHEST, NEVER, RECORD_IDS, AnomalousRows, Episode, alert_of, texts
from netclust.stream.alerts.alert_events import Alert, AlertEvent, ClosedBy
from netclust.stream.alerts.alert_groups import AlertPlace, Group, Groups
from netclust.stream.alerts.alert_limits import Closed, Counters, count_alert_limit
from netclust.stream.alerts.alert_severity import SEVERITIES, severity_name
from netclust.stream.alerts.alert_summary import RATE_LIMIT
from netclust.stream.alerts.alert_tallies import Budget
from netclust.stream.alerts.notifications import AlertReporter
from netclust.stream.alerts.suppression import SuppressionSet
from netclust.stream.alerts.traffic_clock import FAR_BEHIND, TrafficClock
from netclust.stream.config import AlertConfig

__all__ = ["NOVEL", "AlertBook", "AnomalousRows"]


class _State(msgspec.Struct, kw_only=True):
    """All that a checkpoint holds of a book. Episodes: those that are quiet longest first."""

    version: int = 1
    now: int
    clock: TrafficClock
    episodes: list[Episode]
    closed: list[Closed]
    openings: list[int]
    counters: Counters
    hidden: dict[str, int]


def _ident(record: str, time: int, place: AlertPlace, label: str) -> str:
    """Of an alert: the same when its records are read again, another one at another time or for another host."""
    text = f"{record} {time} {place.role} {place.entity} {label}"
    return "a-" + blake2b(text.encode(errors="replace"), digest_size=6).hexdigest()


class AlertBook:
    """Open alerts, and what is needed to open, update and close them. No threads, no wall clock, no files.

    `categories` are the schema's: the category of an attack's label weighs in its severity.
    """

    def __init__(
        self, config: AlertConfig, *, source_names: Sequence[str], categories: Mapping[str, str] | None = None
    ) -> None:
        self.source_names = list(source_names)
        self._reporter = AlertReporter(config, categories)
        self._rules = SuppressionSet()
        self._restored_counts: dict[str, int] = {}
        self._clock = TrafficClock()
        self._open: OrderedDict[str, Episode] = OrderedDict()
        self._groups = Groups()
        self._overflow: Episode | None = None
        self._budget = Budget()

    @property
    def config(self) -> AlertConfig:
        """The settings in force."""
        return self._reporter.config

    def configure(self, config: AlertConfig) -> None:
        """Go on with other settings."""
        self._reporter.configure(config)

    @property
    def suppressions(self) -> SuppressionSet:
        """The rules in force. Other rules may be set at any time; those that stay keep their counts."""
        return self._rules

    @suppressions.setter
    def suppressions(self, rules: SuppressionSet) -> None:
        self._rules = SuppressionSet(rules.rules, {**self._restored_counts, **self._rules.counts})

    def find(self, alert_id: str) -> Alert | None:
        """An alert that is open."""
        episode = self._open.get(alert_id)
        return alert_of(episode) if episode is not None and episode.reported else None

    @property
    def open_alerts(self) -> list[Alert]:
        """Every alert that was told and is open; the one that is quiet longest first."""
        return [alert_of(episode) for episode in self._open.values() if episode.reported]

    @property
    def opened(self) -> int:
        """How many alerts were opened so far."""
        return sum(sum(by_severity.values()) for by_severity in self._reporter.counters.opened.values())

    def open_by_severity(self) -> dict[str, int]:
        """How many alerts are open, by severity."""
        found: dict[str, int] = dict.fromkeys(SEVERITIES, 0)
        for episode in self._open.values():
            if episode.reported:
                found[severity_name(episode.severity_score)] += 1
        return found

    @property
    def open_count(self) -> int:
        """How many alerts are open: quicker than making them."""
        return sum(episode.reported for episode in self._open.values())

    @property
    def counters(self) -> Counters:
        """What was done so far, with what is being held back now."""
        found = msgspec.convert(msgspec.to_builtins(self._reporter.counters), Counters)
        for episode in self._open.values():
            if episode.held in ("cooldown", "rate_limit"):
                count_alert_limit(found.suppressed_records, episode.held, episode.records - episode.held_from)
        return found

    def take(self, rows: AnomalousRows) -> list[AlertEvent]:
        """Count in the anomalous records of a batch; what is to be told comes back."""
        events: list[AlertEvent] = []
        n = len(rows)
        clocks = rows.clock if rows.clock is not None else self._clock.run(rows.time)
        names = {cluster: str(cluster) for cluster in set(rows.cluster.tolist())}
        scores = np.clip(np.nan_to_num(rows.score.astype(np.float64), nan=0.0, posinf=HIGHEST), 0.0, HIGHEST)
        sources, destinations = texts(rows.source, n), texts(rows.destination, n)
        columns = zip(
            count(),
            self._groups.of_rows(rows.label, sources, destinations),
            rows.label,
            clocks.tolist(),
            rows.time.tolist(),
            zip(rows.source_id.tolist(), rows.seq.tolist(), strict=True),
            [names[cluster] for cluster in rows.cluster.tolist()],
            scores.tolist(),
            sources,
            destinations,
            texts(rows.destination_port, n),
            texts(rows.protocol, n),
            texts(rows.service, n),
        )
        rules, budget = self._rules if self._rules else None, self._budget
        now, due = self._reporter.now, self._due()
        episode: Episode | None = None  # of the record before, if the next one like it surely joins it too
        before: tuple[Group | None, str, str, str] = (None, "", "", "")
        for (
            i,
            group,
            label,
            clock,
            time,
            record,
            cluster,
            score,
            source,
            destination,
            port,
            protocol,
            service,
        ) in columns:
            if clock != now:
                back = self._move(clock) < now
                now = self._reporter.now
                if now > due or back:
                    self._close_quiet(events)
                    due, episode = self._due(), None
            if rules is not None and self._hidden(rows, i, label, source, destination, port, cluster):
                continue
            here = (group, source, destination, "" if source or destination else cluster)
            if episode is None or here != before:
                episode = group.find(source, destination, cluster)
                if episode is None:
                    place = group.place(source, destination, cluster)
                    episode = group.many if place.role == "many" else None
                    if episode is None:
                        episode = self._made(rows, i, label, place, events, group.name)
                        group.enter(episode)
                        due = min(due, now + self._reporter.quiet)
                self._open.move_to_end(episode.id)
                before = here
            episode.records += 1
            episode.activity = now
            episode.last_source, episode.last_seq = record
            if time > episode.last_seen:
                episode.last_seen = time
                if episode.first_seen < 0:
                    episode.first_seen = time
            elif 0 <= time < episode.first_seen:
                episode.first_seen = time
            if score > episode.top_score:
                episode.top_score = score
            if source:
                if source in (counts := episode.sources.counts):
                    counts[source] += 1
                else:
                    episode.sources.miss(source, 1, budget)
            if destination:
                if destination in (counts := episode.destinations.counts):
                    counts[destination] += 1
                else:
                    episode.destinations.miss(destination, 1, budget)
            if port:
                if port in (counts := episode.ports.counts):
                    counts[port] += 1
                else:
                    episode.ports.miss(port, 1, budget)
            if label in (counts := episode.labels.counts):
                counts[label] += 1
            else:
                episode.labels.miss(label, 1, budget)
            if cluster in (counts := episode.clusters.counts):
                counts[cluster] += 1
            else:
                episode.clusters.miss(cluster, 1, budget)
            if protocol != episode.protocol:
                episode.protocol = protocol if episode.records == 1 else ""
            if service != episode.service:
                episode.service = service if episode.records == 1 else ""
            if episode.records <= RECORD_IDS:
                episode.record_ids.append(f"{record[0]}:{record[1]}")
            if episode.records >= episode.look_at or now >= episode.look_clock or score > episode.look_score:
                self._look(episode, rows, i, events)
            if episode.role == "many":
                episode = None  # one like it may come to stand alone
        self._reporter.counters.records += n
        self._groups.drop_empty()
        return events

    def advance(self, now: int) -> list[AlertEvent]:
        """Traffic time has come to `now`: alerts whose quiet time is over close."""
        events: list[AlertEvent] = []
        if now >= 0:
            self._clock.now = self._move(now)
            self._close_quiet(events)
            self._groups.drop_empty()
        return events

    def report_grown(self) -> list[AlertEvent]:
        """Report alerts that have grown since their last report, once it is time: for a silent stream."""
        events: list[AlertEvent] = []
        for episode in self._open.values():
            grown = episode.reported and episode.records > episode.reported_records and episode.role != "overflow"
            if grown and self._reporter.now >= episode.reported_clock + self._reporter.update:
                self._reporter.report("update", episode, episode.records, events)
        return events

    def close_all(self, by: ClosedBy = "stopped") -> list[AlertEvent]:
        """Close everything."""
        events: list[AlertEvent] = []
        for episode in list(self._open.values()):
            self._close(episode, by, self._reporter.now, events)
        self._groups.drop_empty()
        return events

    def labelled(self, alert_id: str, normal: bool, clusters: Collection[int] = ()) -> list[AlertEvent]:
        """A person has answered an alert, or `clusters`: what is normal is closed, an attack goes on until it is quiet.

        Alerts about nothing but the clusters that are normal now are closed as well: one answer settles them all.
        """
        events: list[AlertEvent] = []
        if not normal:
            return events
        names = {str(cluster) for cluster in clusters}
        for episode in list(self._open.values()):
            about = episode.clusters
            settled = (
                episode.reported and about.counts and about.distinct == len(about.counts) and names >= set(about.counts)
            )
            if episode.id == alert_id or (settled and episode.role != "overflow"):
                self._close(episode, "label", self._reporter.now, events)
        self._groups.drop_empty()
        return events

    def _move(self, clock: int) -> int:
        """Set the clock: forward, or back if it was far wrong."""
        if self._reporter.now < 0 <= clock:  # it starts: what came before has come now
            for episode in self._open.values():
                episode.activity = episode.reported_clock = clock
                episode.look_clock = clock + self._reporter.update
        if 0 <= clock < self._reporter.now - FAR_BEHIND:
            self._reporter.counters.clock_set_back += 1
            self._reporter.limits.set_back(clock)
            for episode in self._open.values():
                episode.activity, episode.reported_clock = (
                    min(episode.activity, clock),
                    min(episode.reported_clock, clock),
                )
                episode.look_clock = min(episode.look_clock, clock + self._reporter.update)
            self._reporter.now = clock
        self._reporter.now = max(self._reporter.now, clock)
        return self._reporter.now

    def _due(self) -> int:
        """Before this time nothing closes."""
        for episode in self._open.values():
            return episode.activity + self._reporter.quiet
        return NEVER

    def _close_quiet(self, events: list[AlertEvent]) -> None:
        while self._open:
            episode = next(iter(self._open.values()))
            if self._reporter.now <= episode.activity + self._reporter.quiet:
                return
            # The time at which it was over, not that at which it was found to be: batches must not matter.
            self._close(episode, "quiet", episode.activity + self._reporter.quiet, events)

    def _hidden(
        self, rows: AnomalousRows, i: int, label: str, source: str, destination: str, port: str, cluster: str
    ) -> bool:
        number = int(port) if port.isdecimal() else None
        rule = self._rules.hidden(
            source, destination, number, int(cluster), label, lambda: rows.attributes(i), self._reporter.now
        )
        if rule is not None:
            count_alert_limit(self._reporter.counters.suppressed_records, "rule", 1)
        return rule is not None

    def _made(
        self, rows: AnomalousRows, i: int, label: str, place: AlertPlace, events: list[AlertEvent], group: str = ""
    ) -> Episode:
        """A new episode, among the open ones; if there are too many, the one that is quiet longest goes."""
        while len(self._open) >= max(self.config.max_open, 2):
            self._reporter.counters.max_open_hits += 1
            self._close(next(iter(self._open.values())), "limit", self._reporter.now, events)
        source_id = int(rows.source_id[i])
        record = f"{source_id}:{rows.seq[i]}"
        episode = Episode(
            id=_ident(record, int(rows.time[i]), place, label),
            kind="novel" if label == NOVEL_NAME else "known_attack",
            label=label,
            entity=place.entity,
            entity_kind=place.entity_kind,
            source=self.source_names[source_id] if source_id < len(self.source_names) else "",
            first_record=record,
            role=place.role,
            group=group,
            victim=place.victim,
            activity=self._reporter.now,
        )
        self._open[episode.id] = episode
        return episode

    def _look(self, episode: Episode, rows: AnomalousRows, i: int, events: list[AlertEvent]) -> None:
        if self._reporter.look(episode, rows, i, events) == "rate_limit":
            self._sum_up(episode, rows, i, events)

    def _sum_up(self, episode: Episode, rows: AnomalousRows, i: int, events: list[AlertEvent]) -> None:
        """Count an episode that the rate limit holds back into the one alert that stands for all of them."""
        total = self._overflow
        if total is None:
            place = AlertPlace("overflow", "cluster", RATE_LIMIT)
            total = self._overflow = self._made(rows, i, RATE_LIMIT, place, events)
            total.first_seen = episode.first_seen
            total.explanation = (
                f"More than {self.config.max_per_hour} alerts in an hour: those beyond are counted here."
            )
        if not episode.summed:
            total.alerts += 1
            if len(total.record_ids) < RECORD_IDS:
                total.record_ids.append(episode.first_record)
        self._add_up(total, episode)
        self._open.move_to_end(total.id)
        self._open.move_to_end(episode.id)
        total.activity = self._reporter.now
        if not total.reported:
            self._reporter.report("open", total, total.alerts, events)
        elif self._reporter.worth_reporting(total, total.alerts):
            self._reporter.report("update", total, total.alerts, events)

    def _add_up(self, total: Episode, episode: Episode) -> None:
        grown = episode.records - episode.summed
        episode.summed = episode.records
        total.records += grown
        total.last_seen = max(total.last_seen, episode.last_seen)
        total.last_source, total.last_seq = episode.last_source, episode.last_seq
        total.top_score = max(total.top_score, episode.top_score)
        total.severity_score = max(total.severity_score, episode.severity_score)
        if episode.entity_kind != "cluster" and grown:
            tally = total.sources if episode.entity_kind == "source" else total.destinations
            tally.add(episode.entity, grown, self._budget)

    def _close(self, episode: Episode, by: ClosedBy, clock: int, events: list[AlertEvent]) -> None:
        del self._open[episode.id]
        if episode.role == "overflow":
            self._overflow = None
        else:
            self._groups.of(episode.group).leave(episode)
        self._reporter.end(episode, by, clock, events)
        if episode.held == "rate_limit" and self._overflow is not None:
            self._add_up(self._overflow, episode)
        for tally in (episode.sources, episode.destinations, episode.ports, episode.clusters, episode.labels):
            tally.release(self._budget)

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint has to hold, as JSON can hold it."""
        found = _State(
            now=self._reporter.now,
            clock=self._clock,
            episodes=list(self._open.values()),
            closed=self._reporter.limits.closed,
            openings=list(self._reporter.limits.openings),
            counters=self._reporter.counters,
            hidden=self._rules.counts,
        )
        built: dict[str, Any] = msgspec.to_builtins(found)
        return built

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken. Rules are not part of it: they are put in force before or after."""
        try:
            found = msgspec.convert(dict(state), _State)
        except msgspec.ValidationError as error:
            raise InputError(f"the alerts of a checkpoint cannot be read: {error}") from None
        if found.version != 1:
            raise InputError(f"the alerts of a checkpoint are of version {found.version}: this release reads 1")
        self._reporter.now, self._clock, self._reporter.counters = found.now, found.clock, found.counters
        self._reporter.limits.restore(found.closed, found.openings)
        self._rules.counts.update({rule: n for rule, n in found.hidden.items() if rule in self._rules.counts})
        self._restored_counts = found.hidden  # of rules that are yet to be put in force
        self._open, self._groups, self._overflow, self._budget = OrderedDict(), Groups(), None, Budget()
        for episode in found.episodes:
            self._open[episode.id] = episode
            if episode.role == "overflow":
                self._overflow = episode
            else:
                self._groups.of(episode.group).enter(episode)
            for tally in (episode.sources, episode.destinations, episode.ports, episode.clusters, episode.labels):
                self._budget.left -= len(tally.seen or ())
