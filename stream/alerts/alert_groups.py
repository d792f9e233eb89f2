"""Which open alert a record joins: found by source, destination and victim, whatever it is taken for.

Records without addresses are told apart by what they are taken for, and new ones by their cluster.

>>> group = Group("")
>>> place = group.place("10.0.0.7", "10.0.0.1", "12")
>>> place.entity_kind, place.entity, place.victim
('source', '10.0.0.7', '10.0.0.1')
"""

from __future__ import annotations

from typing import NamedTuple

from netclust.records.labels import NOVEL_NAME
from netclust.stream.alerts.alert_episode import Episode, Role
from netclust.stream.alerts.alert_events import EntityKind
from netclust.stream.alerts.alert_summary import MANY

__all__ = ["FEW", "LOUD", "MOST", "AlertPlace", "Group", "Groups"]

FEW = 16
"""With so many open alerts, a further entity joins a collective one."""
LOUD = 64
"""An entity with so many records in the collective alert gets an alert of its own: noise must not hide it."""
MOST = 32
"""No more than this many stand alone, however loud."""


class AlertPlace(NamedTuple):
    """Where a record that joins no alert belongs: whose alert is to be opened."""

    role: Role
    entity_kind: EntityKind
    entity: str
    victim: str = ""


class Group:
    """The open alerts of records with addresses (no name), or of those without that are taken for the same."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_source: dict[str, Episode] = {}
        self.by_destination: dict[str, Episode] = {}
        self.by_victim: dict[str, Episode] = {}
        self.by_cluster: dict[str, Episode] = {}
        self.many: Episode | None = None
        self.singles = 0

    def find(self, source: str, destination: str, cluster: str) -> Episode | None:
        """The alert that this record joins, made ready for it; none if it has to be placed."""
        if source:
            episode = self.by_source.get(source)
            if episode is not None:
                if episode.victim and destination != episode.victim:
                    self._lose_victim(episode)
                return episode
        if destination:
            episode = self.by_destination.get(destination)
            if episode is None and source:
                episode = self.by_victim.get(destination)
                if episode is not None:
                    self._turn(episode)
            return episode
        return None if source else self.by_cluster.get(self._cluster_name(cluster))

    def place(self, source: str, destination: str, cluster: str) -> AlertPlace:
        """Whose alert a record that was not found is to open or, with role "many", to join."""
        own = self._own(source, destination, cluster)
        if self.singles < FEW:
            return own
        if self.many is not None and self.singles < MOST:
            if own.entity_kind == "source" and destination:
                if self.many.sources.counts.get(source, 0) >= LOUD:
                    return own
                if self.many.destinations.counts.get(destination, 0) >= LOUD:
                    return AlertPlace("single", "destination", destination)
            elif self._records_of(own, cluster) >= LOUD:
                return own
        return AlertPlace("many", "cluster", MANY)

    def _records_of(self, own: AlertPlace, cluster: str) -> int:
        if self.many is None:
            return 0
        if own.entity_kind == "cluster":
            return self.many.clusters.counts.get(cluster, 0)
        tally = self.many.sources if own.entity_kind == "source" else self.many.destinations
        return tally.counts.get(own.entity, 0)

    def _own(self, source: str, destination: str, cluster: str) -> AlertPlace:
        if source:
            return AlertPlace("single", "source", source, destination)
        if destination:
            return AlertPlace("single", "destination", destination)
        return AlertPlace("single", "cluster", self._cluster_name(cluster))

    def _cluster_name(self, cluster: str) -> str:
        """Without addresses, what is known goes by its label, what is new by its cluster."""
        return self.name if self.name and self.name != NOVEL_NAME else f"cluster {cluster}"

    def enter(self, episode: Episode) -> None:
        """An alert was opened, or is restored."""
        if episode.role == "many":
            self.many = episode
            return
        self.singles += 1
        self._of(episode)[episode.entity] = episode
        if episode.victim:
            self.by_victim[episode.victim] = episode

    def leave(self, episode: Episode) -> None:
        """An alert was closed."""
        if episode.role == "many":
            self.many = None
            return
        self.singles -= 1
        del self._of(episode)[episode.entity]
        if episode.victim:
            self._lose_victim(episode)

    def _of(self, episode: Episode) -> dict[str, Episode]:
        if episode.entity_kind == "source":
            return self.by_source
        return self.by_destination if episode.entity_kind == "destination" else self.by_cluster

    def _lose_victim(self, episode: Episode) -> None:
        del self.by_victim[episode.victim]
        episode.victim = ""

    def _turn(self, episode: Episode) -> None:
        """From the alert of a source to that of its only destination, which another source now calls on too."""
        del self.by_source[episode.entity]
        episode.entity, episode.entity_kind = episode.victim, "destination"
        self._lose_victim(episode)
        self.by_destination[episode.entity] = episode


class Groups:
    """All groups, by name."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def of(self, name: str) -> Group:
        """The group of a name, made if need be."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name)
        return group

    def of_rows(self, labels: list[str], sources: list[str], destinations: list[str]) -> list[Group]:
        """The group of each record."""
        met = {label: self.of(label) for label in dict.fromkeys(labels)}
        shared = self.of("")
        return [
            shared if source or destination else met[label]
            for label, source, destination in zip(labels, sources, destinations, strict=True)
        ]

    def drop_empty(self) -> None:
        """Forget groups without an open alert."""
        for key in [k for k, group in self._groups.items() if not group.singles and group.many is None]:
            del self._groups[key]
