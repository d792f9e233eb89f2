"""Which open alert a record joins: the alerts of one kind and label, found by source, destination, victim and cluster.

>>> group = Group("novel", "novel")
>>> place = group.place("10.0.0.7", "10.0.0.1", "12")
>>> place.entity_kind, place.entity, place.victim
('source', '10.0.0.7', '10.0.0.1')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from netclust.stream.alert_episode import Episode, Role
from netclust.stream.alert_events import EntityKind, Kind
from netclust.stream.alert_summary import MANY
from netclust.verdicts import NOVEL

__all__ = ["FEW", "LOUD", "MOST", "Group", "Groups", "Place"]

FEW = 8
"""With so many open alerts of a kind and label, what is new joins a collective alert."""
LOUD = 64
"""An entity with so many records in the collective alert gets an alert of its own: noise must not hide it."""
MOST = 16
"""No more than this many stand alone, however loud."""


class Place(NamedTuple):
    """Where a record that joins no alert belongs: whose alert is to be opened."""

    role: Role
    entity_kind: EntityKind
    entity: str
    victim: str = ""


class Group:
    """The open alerts of one kind and label."""

    def __init__(self, kind: Kind, label: str) -> None:
        self.kind, self.label = kind, label
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

    def place(self, source: str, destination: str, cluster: str) -> Place:
        """Whose alert a record that was not found is to open or, with role "many", to join."""
        own = self._own(source, destination, cluster)
        if self.singles < FEW:
            return own
        if self.many is not None and self.singles < MOST:
            if own.entity_kind == "source" and destination:
                if self.many.sources.counts.get(source, 0) >= LOUD:
                    return own
                if self.many.destinations.counts.get(destination, 0) >= LOUD:
                    return Place("single", "destination", destination)
            elif self._heard(own, cluster) >= LOUD:
                return own
        return Place("many", "cluster", MANY)

    def _heard(self, own: Place, cluster: str) -> int:
        if self.many is None:
            return 0
        if own.entity_kind == "cluster":
            return self.many.clusters.counts.get(cluster, 0)
        tally = self.many.sources if own.entity_kind == "source" else self.many.destinations
        return tally.counts.get(own.entity, 0)

    def _own(self, source: str, destination: str, cluster: str) -> Place:
        if source:
            return Place("single", "source", source, destination)
        if destination:
            return Place("single", "destination", destination)
        return Place("single", "cluster", self._cluster_name(cluster))

    def _cluster_name(self, cluster: str) -> str:
        """Without addresses, what is known goes by its label, what is new by its cluster."""
        return f"cluster {cluster}" if self.kind == "novel" else self.label

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
    """All groups, by kind and label."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Kind, str], Group] = {}

    def of(self, kind: Kind, label: str) -> Group:
        """The group of a kind and label, made if need be."""
        group = self._groups.get((kind, label))
        if group is None:
            group = self._groups[kind, label] = Group(kind, label)
        return group

    def of_rows(self, kinds: Iterable[int], labels: Iterable[str]) -> list[Group]:
        """The group of each record. What is new is one group, whatever its cluster."""
        met: dict[tuple[int, str], Group] = {}
        found = []
        for key in zip(kinds, labels, strict=True):
            group = met.get(key)
            if group is None:
                group = self.of("novel", "novel") if key[0] == NOVEL else self.of("known_attack", key[1])
                met[key] = group
            found.append(group)
        return found

    def drop_empty(self) -> None:
        """Forget groups without an open alert."""
        for key in [k for k, group in self._groups.items() if not group.singles and group.many is None]:
            del self._groups[key]
