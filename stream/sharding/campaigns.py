"""Campaigns: clusters of different shards that are the same thing, joined by the similarity that was learned.

Two novel clusters belong together if a link between their records would beat the root of both: had they been in one
partition, one would have been linked to the other. Two of the same known attack do if they are near in time. Campaigns
are the connected components of that, so which cluster was heard of first does not matter.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(2000, seed=1).table(), seed=0)
>>> campaigns = Campaigns(model, gap_seconds=60, most=100)
>>> def seen(partition, time):
...     return Member(partition=partition, id=f"a-{partition}", cluster=3, kind="known_attack", label="portscan",
...                   alert="", entity=f"10.0.0.{partition}", sensor="probe-1", records=5, first_time=time * 10**9,
...                   last_time=time * 10**9, root=0.0, num=[0.0] * len(model.encoding.kept), code=[]).pack()
>>> [len(campaigns.take(seen(p, t))) for p, t in ((0, 0), (1, 100), (2, 50))]
[0, 0, 1]
>>> campaigns.components()
[['a-0', 'a-1', 'a-2']]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError
from netclust.kernels.linking.score import Scorer
from netclust.scoring.model import Model
from netclust.stream.sharding.messages import Member

__all__ = ["Campaign", "Campaigns", "pair_scores"]

MAX_ENTITIES = 64
"""Of one cluster; more are only counted."""
SHOWN = 256
"""Members, entities and sensors that one event names."""

Action = Literal["open", "grow", "merge", "shrink", "end"]


class _Node(msgspec.Struct):
    member: Member  # as last heard, with the first exemplar
    entities: list[str]
    more_entities: int
    sensors: list[str]

    @property
    def order(self) -> tuple[int, int, int, str]:
        """The oldest first."""
        return self.member.first_time, self.member.partition, self.member.cluster, self.member.id


class _State(msgspec.Struct, forbid_unknown_fields=True, rename={"reported": "told"}):
    nodes: list[_Node]
    reported: dict[str, list[str]]
    given_up: Annotated[int, msgspec.Meta(ge=0)]
    unreadable: Annotated[int, msgspec.Meta(ge=0)]


class Campaign(msgspec.Struct, kw_only=True):
    """What is told of a campaign: as it is now. `was`: campaigns that it was told as before, if it changed its name."""

    campaign: str
    action: Action
    label: str = ""
    was: list[str] = []
    members: list[dict[str, Any]] = []
    clusters: int = 0
    shards: list[int] = []
    sensors: list[str] = []
    entities: int = 0
    entity_names: list[str] = []
    records: int = 0
    first_time: int = -1
    last_time: int = -1


class Campaigns:
    """The clusters that were heard of, at most so many; the one that was silent longest is given up, and counted."""

    def __init__(self, model: Model, *, gap_seconds: float, most: int, state: bytes | None = None) -> None:
        self._model = model
        self._gap = int(gap_seconds * 1e9)
        self._most = most
        self._nodes: dict[str, _Node] = {}
        self._next: dict[str, set[str]] = {}
        self._reported: dict[str, list[str]] = {}
        self._campaign_of: dict[str, str] = {}  # of members that were told
        self.given_up = 0
        self.unreadable = 0
        if state:
            self._restore(state)

    def take(self, body: bytes) -> list[bytes]:
        """Take a cluster's summary; return the campaigns that have changed, as JSON."""
        try:
            member = Member.unpack(body)
            self._check(member)
        except InputError:
            self.unreadable += 1
            return []
        touched = {member.id, *self._next.get(member.id, ())}
        self._note_member(member)
        self._link(self._nodes[member.id])
        while len(self._nodes) > self._most:
            oldest = min(self._nodes.values(), key=lambda node: (node.member.last_time, node.order)).member.id
            touched |= self._next[oldest]
            self._forget(oldest)
            self.given_up += 1
        return [msgspec.json.encode(campaign) for campaign in self._changes(touched)]

    def components(self) -> list[list[str]]:
        """The members of every campaign, sorted."""
        found = {tuple(self._component(ident)) for ident in self._nodes}
        return sorted(list(ids) for ids in found if len(ids) > 1)

    def _check(self, member: Member) -> None:
        encoding = self._model.encoding
        wide = len(member.num) == len(encoding.kept) and len(member.code) == len(encoding.widths)
        if member.kind == "novel" and not (
            wide and all(0 <= c < w for c, w in zip(member.code, encoding.widths, strict=True))
        ):
            raise InputError("a cluster's summary is not of this model's encoding")

    def _note_member(self, member: Member) -> None:
        node = self._nodes.get(member.id)
        if node is None:
            node = self._nodes[member.id] = _Node(member, [], 0, [])
            self._next[member.id] = set()
        old = node.member
        times = [time for time in (old.first_time, member.first_time) if time >= 0]
        node.member = msgspec.structs.replace(
            member,
            num=old.num,
            code=old.code,
            root=old.root,
            first_time=min(times, default=-1),
            last_time=max(old.last_time, member.last_time),
            records=max(old.records, member.records),
        )
        if member.entity not in node.entities:
            if len(node.entities) < MAX_ENTITIES:
                node.entities = sorted([*node.entities, member.entity])
            else:
                node.more_entities += 1
        if member.sensor not in node.sensors and len(node.sensors) < MAX_ENTITIES:
            node.sensors = sorted([*node.sensors, member.sensor])

    def _link(self, node: _Node) -> None:
        """Find its neighbours anew: what it is may have changed."""
        ident = node.member.id
        for other in self._next[ident]:
            self._next[other].discard(ident)
        self._next[ident] = set(self._neighbours(node))
        for other in self._next[ident]:
            self._next[other].add(ident)

    def _neighbours(self, node: _Node) -> Iterable[str]:
        member = node.member
        others = [n.member for n in self._nodes.values() if n.member.kind == member.kind and n is not node]
        if member.kind == "known_attack":
            return [m.id for m in others if m.label == member.label and _apart(m, member) <= self._gap]
        if member.kind != "novel" or not others:
            return []
        scores = pair_scores(self._model.scorer, member, others)
        return [m.id for m, s in zip(others, scores.tolist(), strict=True) if s > max(m.root, member.root)]

    def _forget(self, ident: str) -> None:
        for other in self._next.pop(ident):
            self._next[other].discard(ident)
        del self._nodes[ident]

    def _component(self, ident: str) -> list[str]:
        found, open_ = {ident}, [ident]
        while open_:
            for other in self._next[open_.pop()] - found:
                found.add(other)
                open_.append(other)
        return sorted(found)

    def _changes(self, touched: set[str]) -> list[Campaign]:
        """Campaigns around some members that are not what was told."""
        changed: list[Campaign] = []
        # What was told of those that are given up, too.
        for ident in sorted({self._campaign_of.get(i, "") for i in touched} - {""}):
            touched |= set(self._reported[ident])
        done: set[str] = set()
        for ident in sorted(touched & self._nodes.keys()):
            if ident in done:
                continue
            members = self._component(ident)
            done |= set(members)
            was = sorted({self._campaign_of[i] for i in members if i in self._campaign_of})
            if len(members) < 2 or (len(was) == 1 and self._reported[was[0]] == members):
                continue
            changed.append(self._report(members, was))
        gone = {self._campaign_of[i] for i in touched if i in self._campaign_of}
        for ident in sorted(gone):
            if not any(i in self._nodes and len(self._component(i)) > 1 for i in self._reported[ident]):
                self._withdraw(ident)
                changed.append(Campaign(campaign=ident, action="end"))
        return changed

    def _withdraw(self, ident: str) -> None:
        for i in self._reported.pop(ident):
            self._campaign_of.pop(i, None)

    def _report(self, members: list[str], was: list[str]) -> Campaign:
        before = {i for ident in was for i in self._reported[ident]}
        for ident in was:
            self._withdraw(ident)
        nodes = sorted((self._nodes[i] for i in members), key=lambda node: node.order)
        ident = f"k-{nodes[0].member.id}"
        self._reported[ident] = members
        self._campaign_of |= dict.fromkeys(members, ident)
        action: Action = "open" if not was else "merge" if len(was) > 1 else "grow"
        if before - set(members):
            action = "shrink"
        names = sorted({name for node in nodes for name in node.entities})
        labels = [node.member.label for node in nodes]
        return Campaign(
            campaign=ident,
            action=action,
            label=max(sorted(set(labels)), key=labels.count),
            was=[old for old in was if old != ident],
            members=[
                {"id": m.id, "shard": m.partition, "cluster": m.cluster, "label": m.label, "records": m.records,
                 "alert": m.alert}
                for m in (node.member for node in nodes[:SHOWN])
            ],
            clusters=len(nodes),
            shards=sorted({node.member.partition for node in nodes}),
            sensors=sorted({name for node in nodes for name in node.sensors})[:SHOWN],
            entities=len(names) + sum(node.more_entities for node in nodes),
            entity_names=names[:SHOWN],
            records=sum(node.member.records for node in nodes),
            first_time=nodes[0].member.first_time,
            last_time=max(node.member.last_time for node in nodes),
        )  # fmt: skip

    # Snapshot

    def snapshot(self) -> bytes:
        """All that is remembered, as JSON."""
        return msgspec.json.encode(_State(list(self._nodes.values()), self._reported, self.given_up, self.unreadable))

    def _restore(self, state: bytes) -> None:
        try:
            found = msgspec.json.decode(state, type=_State)
        except msgspec.DecodeError as error:
            raise ModelError(f"the campaigns' snapshot: {error}") from None
        self.given_up, self.unreadable = found.given_up, found.unreadable
        for node in found.nodes:
            try:
                self._check(node.member)
            except InputError:  # the model is another one: what it encoded says nothing
                continue
            self._nodes[node.member.id] = node
            self._next[node.member.id] = set()
        for node in found.nodes:
            if node.member.id in self._nodes:
                self._link(node)
        self._reported = found.reported
        self._campaign_of = {i: ident for ident, members in found.reported.items() for i in members}


def _apart(a: Member, b: Member) -> int:
    """Nanoseconds between two spans of time; 0 if they overlap or one is not known."""
    if min(a.first_time, b.first_time) < 0:
        return 0
    return max(a.first_time - b.last_time, b.first_time - a.last_time, 0)


def pair_scores(scorer: Scorer, one: Member, others: list[Member]) -> NDArray[np.float64]:
    """The score of a link between one cluster's record and each of the others', the lower of both directions."""
    num = np.array([m.num for m in others], np.float64).reshape(len(others), -1)
    code = np.array([m.code for m in others], np.int64).reshape(len(others), -1)
    mine = np.array(one.code, np.int64)
    apart = np.abs(num - np.array(one.num, np.float64))
    scores = float(scorer.base) + (np.minimum(apart, scorer.far) * scorer.slope.astype(np.float64)).sum(axis=1)
    if not code.shape[1]:
        return np.asarray(scores)
    at, mine_at = code + scorer.offset, mine + scorer.offset
    same = (code == mine) & (mine > 0)
    scores = scores + np.where(same, scorer.match[mine_at].astype(np.float64), 0.0).sum(axis=1)
    own, other = scorer.own.astype(np.float64), scorer.other.astype(np.float64)
    forth = own[mine_at].sum() + other[at].sum(axis=1)
    back = own[at].sum(axis=1) + other[mine_at].sum()
    return np.asarray(scores + np.minimum(forth, back))
