"""A slow twin of the linker: the contract written down once more, one record at a time, with lists and dicts.

A member keeps every label it ever had as a layer, the one in force on top: the true label of the stream replaces all
layers, feedback lays one on top, undo takes its layer out, wherever it lies. A record that links to a member copies
its layers. Nothing here is shared with the engine but the numbers that stand for verdicts and sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from netclust.kernels.linking.link import NORMAL_SIDE, NOTHING, NOVEL_LABEL, OTHER_SIDE, ROOT, WITHHELD
from netclust.linking.verdicts import DESCENDANT, KNOWN_ATTACK, NORMAL, NOVEL, REFERENCE, WINDOW
from netclust.linking.verdicts import ROOT as VIA_ROOT

NEVER = np.float32(-np.inf)


@dataclass(frozen=True)
class Layer:
    label: int
    side: int
    event: int = -1


@dataclass
class Cluster:
    ident: int
    labels: list  # (label, event), in force last
    records: int = 0
    anomalous: int = 0
    alarm: int = NOVEL_LABEL
    alarm_tick: int = -1
    first_tick: int = 0
    last_tick: int = 0
    first_time: int = -1
    last_time: int = -1
    top_score: np.float32 = NEVER
    joined: bool = False  # since the hand last passed
    forgotten: bool = False

    @property
    def label(self):
        return self.labels[-1][0]


@dataclass
class Member:
    handle: int
    num: list
    code: list
    layers: list
    cluster: Cluster
    number: int = 0  # in its partition
    truth: int = -1
    revealed: bool = False
    trusted: bool = False
    time: int = -1
    source: int = 0
    seq: int = 0
    priority: float = 0.0

    @property
    def top(self):
        return self.layers[-1]


@dataclass
class Partition:
    number: int
    classes: list  # clusters of the reference classes
    slots: list  # clusters that hang on the root, or None
    hand: int = 0
    window: list = field(default_factory=list)
    kept: list = field(default_factory=list)  # representatives, each in its place
    pushed: int = 0
    opened: int = 0
    forgotten: int = 0
    unsummed: int = 0
    matured: int = 0


def scattered(h):
    h = ((h ^ h >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    h = ((h ^ h >> 27) * 0x94D049BB133111EB) % 2**64
    return h ^ h >> 31


def random_bits(number, k):
    """The k-th random number of a record: splitmix64, started from its number in its partition."""
    return scattered((scattered(number) + (k + 1) * 0x9E3779B97F4A7C15) % 2**64)


@dataclass
class Event:
    number: int
    scope: str
    target: tuple
    label: int
    from_tick: int
    applied: bool = False
    covered: int = 0


class SlowLinker:
    def __init__(self, model, config, names):
        """`names`: the label names, numbered in order."""
        self.model, self.config = model, config
        self.normal = {k for k, name in enumerate(names) if name in model.encoding.schema.normal}
        self.weights = [float(w) for w in model.w]
        self.widths = model.encoding.widths
        self.features = len(model.encoding.kept)
        self.tick = 0
        self.events = []
        classes = len(model.encoding.labels)
        self.partitions = [
            Partition(p, [Cluster(c, [(c, -1)]) for c in range(classes)], [None] * config.max_clusters)
            for p in range(config.partitions)
        ]
        ref = model.reference
        self.references = [
            Member(
                handle=-2 - k,
                num=list(ref.num[k]),
                code=[int(c) for c in ref.code[k]],
                layers=[Layer(int(ref.label[k]), self.side(int(ref.label[k])))],
                cluster=self.partitions[0].classes[int(ref.label[k])],
            )
            for k in range(len(ref))
        ]

    def side(self, label):
        return NORMAL_SIDE if label in self.normal else OTHER_SIDE

    # Scores

    def lookups(self, s, value):
        """What value adds of its own, as a referent's, and if both have it: from the AND, OR and NOR weights."""
        at = self.features + 3 * sum(width - 1 for width in self.widths[:s])
        # For values 1, 2, ...; value 0 is unknown and has no bit set.
        both, one, neither = ([0.0, *self.weights[at + k : at + 3 * (self.widths[s] - 1) : 3]] for k in range(3))
        none = 0.0
        for v in range(1, self.widths[s]):
            none += neither[v]
        differs = one[value] - neither[value]
        return np.float32(none + differs), np.float32(differs), np.float32(both[value] - differs)

    def pair_score(self, num, code, member):
        base = 0.0
        for f in range(self.features):
            base += self.weights[f]
        start, unary = np.float32(base), np.float32(0)
        for s in range(len(self.widths)):
            start += self.lookups(s, code[s])[0]
            unary += self.lookups(s, member.code[s])[1]
        score = start + unary
        for f in range(self.features):
            gap = abs(num[f] - member.num[f])
            if self.model.far is not None:
                gap = min(gap, np.float32(self.model.far[f]))
            score += np.float32(self.model.sign * self.weights[f]) * gap
        for s in range(len(self.widths)):
            if code[s] and code[s] == member.code[s]:
                score += self.lookups(s, code[s])[2]
        return score

    def root_score(self, num):
        if self.model.calibration is not None:
            return np.float32(self.model.calibration.root)
        if not self.model.rooted:
            return NEVER
        inputs = {"none": [], "bias": [np.float32(1)], "attributes": [np.float32(1), *num]}[self.model.root]
        score = np.float32(0)
        for weight, value in zip(self.weights[len(self.weights) - len(inputs) :], inputs, strict=True):
            score += np.float32(weight) * value
        return score

    # One record

    def process(self, batch):
        """A dict of columns, as `Verdicts` has them."""
        rows = [self.push(batch, i) for i in range(len(batch))]
        self.apply_due()
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    def push(self, batch, i):
        conf = self.config
        self.apply_due()
        part = self.partitions[int(batch.key[i]) % conf.partitions]
        num, code, time = list(batch.num[i]), [int(c) for c in batch.code[i]], int(batch.time[i])
        self.reveal(part)
        self.mature(part, time)

        # Referents in the order of the tie rule: the reference set, then the kept and the window from oldest to newest.
        number = part.pushed
        candidates = [m for m in part.window if conf.gap < number - m.number <= conf.gap + conf.referent_window]
        if conf.whole and number < conf.gap + conf.referent_window:
            candidates = []
        best = {NORMAL_SIDE: (NEVER, None), OTHER_SIDE: (NEVER, None)}
        link, parent = NEVER, None
        for member in [*self.references, *sorted(part.kept, key=lambda m: m.handle), *candidates]:
            score = self.pair_score(num, code, member)
            side = member.top.side
            if side != WITHHELD:
                if score > best[side][0]:
                    best[side] = (score, member)
                if score > link:
                    link, parent = score, member
        root = self.root_score(num)
        if parent is None or root >= link:
            link, parent = root, None

        if parent is None:
            via, cluster, layers = VIA_ROOT, self.open(part), [Layer(NOVEL_LABEL, OTHER_SIDE)]
        else:
            hide = conf.mature_after is not None
            layers = [replace(x, side=WITHHELD) if hide and x.side == NORMAL_SIDE else x for x in parent.layers]
            if parent.handle < 0:
                via, cluster = REFERENCE, part.classes[parent.cluster.ident]
            else:
                via, cluster = (DESCENDANT if parent.top.label == NOVEL_LABEL else WINDOW), parent.cluster
                if conf.keep == "medoid" and any(m is parent for m in part.window):
                    parent.priority += np.float32(1)
        label = layers[-1].label
        verdict = NORMAL if label in self.normal else NOVEL if label == NOVEL_LABEL else KNOWN_ATTACK
        normal, normal_member = best[NORMAL_SIDE]
        other, other_member = best[OTHER_SIDE]
        score = np.float32(np.inf) if normal_member is None else max(other, root) - normal
        self.count(part, cluster, time, score, label, verdict)

        if conf.referent_window:
            member = Member(
                self.tick, num, code, layers, cluster, number, int(batch.label[i]),
                time=time, source=int(batch.source[i]), seq=int(batch.seq[i]), priority=self.priority(score, number),
            )  # fmt: skip
            part.window.append(member)
            if len(part.window) > conf.referent_window + conf.gap:
                self.retain(part, part.window.pop(0))
        part.pushed += 1
        self.tick += 1
        from_window = parent is not None and parent.handle >= 0
        return {
            "verdict": verdict,
            "via": via,
            "label": label,
            "cluster": cluster.ident,
            "score": score,
            "link": link,
            "normal": normal,
            "other": other,
            "parent": ROOT if parent is None else parent.handle,
            "normal_at": NOTHING if normal_member is None else normal_member.handle,
            "other_at": NOTHING if other_member is None else other_member.handle,
            "normal_label": -1 if normal_member is None else normal_member.top.label,
            "other_label": -1 if other_member is None else other_member.top.label,
            "parent_source": parent.source if from_window else 0,
            "parent_seq": parent.seq if from_window else 0,
        }

    def priority(self, score, number):
        """What a record has to be kept for when it comes."""
        if self.config.keep == "reservoir":
            return np.float32((random_bits(number, 0) >> 40) / 2**24)
        return np.float32(-abs(score)) if self.config.keep == "difficulty" and np.isfinite(score) else np.float32(0)

    def retain(self, part, member):
        """Keep one that left the window, in the place of one whose cluster holds most."""
        room = self.config.representatives
        member.trusted = False
        if room == 0 or member.top.side == WITHHELD:
            return
        if len(part.kept) < room:
            part.kept.append(member)
            return

        def holds(cluster):
            return 1 if cluster.forgotten else sum(m.cluster is cluster for m in part.kept)

        places = range(room) if room <= 32 else [random_bits(member.number, k + 1) % room for k in range(32)]
        key = {at: (-holds(part.kept[at].cluster), part.kept[at].priority, part.kept[at].handle) for at in places}
        place = min(key, key=key.get)
        own, most, least = holds(member.cluster), -key[place][0], key[place][1]
        if own < most or (own == most and member.priority >= least):
            part.kept[place] = member

    def reveal(self, part):
        """True labels count for record j if j - i > delay; the last word said of a member is the one in force."""
        delay = self.config.label_delay
        for member in part.window:
            if delay is not None and not member.revealed and part.pushed - member.number > delay:
                member.revealed = True
                if member.truth >= 0:
                    member.layers = [Layer(member.truth, self.side(member.truth))]
                    member.trusted = False

    def mature(self, part, now):
        """In order of arrival, withheld members of normal clusters become referents, as long as the cap allows."""
        conf = self.config
        if conf.mature_after is None or now < 0:
            return
        for member in part.window:
            if member.top.side != WITHHELD or member.time < 0:
                continue
            if member.cluster.forgotten or member.cluster.label not in self.normal:
                continue
            trusted = sum(m.trusted for m in part.window)
            if now - member.time < int(conf.mature_after * 1e9):
                return
            if trusted >= int(conf.mature_share * conf.referent_window):
                return
            member.layers[-1] = replace(member.top, side=NORMAL_SIDE)
            member.trusted = True
            part.matured += 1

    def open(self, part):
        """A new cluster, in the place of one that nothing joined since the hand last passed."""
        conf = self.config
        ident = len(part.classes) + part.opened * conf.partitions + part.number
        part.opened += 1
        while part.slots[part.hand] is not None and part.slots[part.hand].joined:
            part.slots[part.hand].joined = False
            part.hand = (part.hand + 1) % conf.max_clusters
        old = part.slots[part.hand]
        if old is not None:
            old.forgotten = True
            part.forgotten += 1
        part.slots[part.hand] = Cluster(ident, [(NOVEL_LABEL, -1)])
        part.hand = (part.hand + 1) % conf.max_clusters
        return part.slots[part.hand - 1]

    def count(self, part, cluster, time, score, label, verdict):
        if cluster.forgotten:
            part.unsummed += 1
            return
        if cluster.records == 0:
            cluster.first_tick, cluster.first_time = self.tick, time
        else:
            cluster.joined = True
        cluster.records += 1
        if verdict != NORMAL:
            cluster.anomalous += 1
            cluster.alarm, cluster.alarm_tick = label, self.tick
        cluster.last_tick, cluster.last_time = self.tick, time
        cluster.top_score = max(cluster.top_score, score)

    # Feedback

    def say(self, scope, target, label=-1, from_tick=None):
        """`target`: (source, seq), (cluster,) or (event,)."""
        event = Event(len(self.events), scope, target, label, self.tick if from_tick is None else from_tick)
        self.events.append(event)
        self.apply_due()
        return event

    def apply_due(self):
        due = [e for e in self.events if not e.applied and e.from_tick <= self.tick]
        for event in sorted(due, key=lambda e: (e.from_tick, e.number)):
            if event.scope != "undo":
                if not event.applied:  # not taken back before it counts
                    self.cover(event)
            else:
                undone = self.events[event.target[0]]
                self.uncover(event, undone.number)
                undone.applied = True
            event.applied = True

    def members(self):
        return [*self.references, *(m for part in self.partitions for m in [*part.kept, *part.window])]

    def summaries(self):
        return [c for part in self.partitions for c in [*part.classes, *part.slots] if c is not None]

    def cover(self, event):
        for m in self.members():
            about = (m.cluster.ident,) if event.scope == "cluster" else (m.source, m.seq) if m.handle >= 0 else None
            if about == event.target:
                if m.trusted:  # it has to mature anew when the label is taken back
                    m.trusted = False
                    m.layers[-1] = replace(m.top, side=WITHHELD)
                m.layers.append(Layer(event.label, self.side(event.label), event.number))
                event.covered += 1
        for c in self.summaries() if event.scope == "cluster" else []:
            if (c.ident,) == event.target:
                c.labels.append((event.label, event.number))

    def uncover(self, event, number):
        for m in self.members():
            if m.top.event == number:
                m.trusted = False
                event.covered += 1
            m.layers = [x for x in m.layers if x.event != number]
        for c in self.summaries():
            c.labels = [x for x in c.labels if x[1] != number]

    # What it knows

    def clusters(self, names):
        """Summaries by id, the parts of a reference class joined: first and last are by arrival."""
        found = {}
        for c in self.summaries():
            if c.records:
                found.setdefault(c.ident, []).append(c)
        rows = []
        for ident in sorted(found):
            parts = found[ident]
            first, last = min(parts, key=lambda c: c.first_tick), max(parts, key=lambda c: c.last_tick)
            label = parts[0].label
            rows.append(
                {
                    "id": ident,
                    "label": "novel" if label == NOVEL_LABEL else names[label],
                    "records": sum(c.records for c in parts),
                    "anomalous": sum(c.anomalous for c in parts),
                    "alarm": self.alarm_name(parts, names),
                    "alarm_tick": max(c.alarm_tick for c in parts),
                    "first_tick": first.first_tick,
                    "last_tick": last.last_tick,
                    "first_time": first.first_time,
                    "last_time": last.last_time,
                    "top_score": float(max(c.top_score for c in parts)),
                }
            )
        return rows

    def alarm_name(self, parts, names):
        """What the last anomalous record was taken for."""
        last = max(parts, key=lambda c: c.alarm_tick)
        if last.alarm_tick < 0:
            return ""
        return "novel" if last.alarm == NOVEL_LABEL else names[last.alarm]

    def counters(self):
        window = [m for part in self.partitions for m in part.window]
        return {
            "trusted": sum(m.trusted for m in window),
            "matured_total": sum(part.matured for part in self.partitions),
            "clusters_opened_total": sum(part.opened for part in self.partitions),
            "clusters_forgotten_total": sum(part.forgotten for part in self.partitions),
            "records_unsummed_total": sum(part.unsummed for part in self.partitions),
            "referents": len(window),
            "representatives": sum(len(part.kept) for part in self.partitions),
            "records_total": self.tick,
        }
