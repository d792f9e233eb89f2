"""Verdicts smoothed over the connections that are related: what it does to false alarms and to detection.

The detector is trained on one simulated day, the network that smooths is learned from its verdicts on the next, and
both are measured on later days, so that every verdict is out of sample where it is learned from. Nodes are records,
seen by the verdict alone (score, verdict, via); ties are `RELATIONS`.

>>> from netclust.models.experiments.detection.judged_days import DayPlan, judged_days
>>> plan = DayPlan(hours=0.2, hosts=8, rate=0.05, references=100, attacks="port_scan,ssh_brute_force")
>>> first, second = judged_days(plan)
>>> smoother = learn_smoothing([first], C=100.0, cut=500)
>>> rows = compare_smoothing(smoother, second)
>>> [row.name for row in rows]
['detector', 'votes', 'each by itself', 'network', 'detector at as many false alarms']

Reference: B. Taskar, "Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University,
2004; chapter 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.linking.verdicts import VERDICTS, VIAS
from netclust.models.attractive.attractive_networks import Labels, network_majority
from netclust.models.attractive.attractive_problem import NetworkFeatures
from netclust.models.attractive.relational_templates import Template
from netclust.models.attractive.tables import (
    RELATIONS,
    AttractiveEncoder,
    RawNetwork,
    RelationColumns,
    cut_table_networks,
)
from netclust.models.attractive.task import TASK, AttractiveSettings, TextTable
from netclust.models.experiments.detection.judged_days import JudgedDay
from netclust.models.structured_task import choose_cost, learn
from netclust.problems.base import Vector

__all__ = ["SmoothingOutcome", "VerdictSmoother", "compare_smoothing", "day_network", "learn_smoothing", "outcome"]

COLUMNS = RelationColumns(fields=("score", "verdict", "via"))
GRID = (100.0, 1000.0, 10_000.0)
OWN = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Votes of a record's own verdict that are tried."""
Flags = NDArray[np.bool_]


class SmoothingOutcome(msgspec.Struct, frozen=True):
    """What somebody's verdicts on a day are worth."""

    name: str
    false_alarms: int
    false_alarm_rate: float
    """Of normal records."""
    missed: int
    detection: float
    """Of attack records."""
    mean_detection: float
    """The mean over types of attacks."""


@dataclass(frozen=True, eq=False)
class VerdictSmoother:
    """Weights of the network, of single nodes, and the number of own votes: all learned from the same days."""

    encoder: AttractiveEncoder
    settings: AttractiveSettings
    w: Vector
    alone: Vector
    own: float
    costs: tuple[float, float]
    """C of the network, and of single nodes."""


def day_network(day: JudgedDay, templates: tuple[Template, ...] = RELATIONS) -> RawNetwork:
    """A judged day as nodes: verdicts, whom and what they are about, and the truth."""
    table = day.table
    columns = {name: own.astype(str).tolist() for name, own in table.context.items()}
    for s, attribute in enumerate(table.schema.coded):
        if attribute.kind == "symbolic":
            values = table.symbols[s]
            columns[attribute.name] = [str(values[k]) for k in table.sym[:, s].tolist()]
    columns |= {
        "score": [f"{score:.6g}" for score in day.score.tolist()],
        "verdict": [VERDICTS[k] for k in day.verdicts.verdict.tolist()],
        "via": [VIAS[k] for k in day.verdicts.via.tolist()],
        "time": [f"{time / 1e9:.6f}" for time in day.batch.time.tolist()],
        "label": ["attack" if attack else "normal" for attack in day.attack.tolist()],
    }
    nodes = TextTable({name: tuple(own) for name, own in columns.items()}, path="judged day")
    return RawNetwork(nodes, columns=COLUMNS, templates=templates)


def learn_smoothing(
    days: Sequence[JudgedDay],
    *,
    templates: tuple[Template, ...] = RELATIONS,
    C: float | None = None,
    cut: int = 4000,
    epsilon: float = 0.05,
    folds: int = 2,
) -> VerdictSmoother:
    """Learn from judged days; C is chosen by folds of their pieces, for the network and for single nodes."""
    raw = [piece for day in days for piece in cut_table_networks(day_network(day, templates), COLUMNS, cut)]
    settings = AttractiveSettings(epsilon=epsilon)
    encoder = TASK.fit(raw, settings)
    bare = [_bare(one) for one in raw]
    weights, costs = [], []
    for some in (raw, bare):
        own = TASK.fit(some, settings)
        chosen = C or choose_cost(TASK, settings, some, own, grid=GRID, folds=folds).C
        costs.append(chosen)
        one = msgspec.structs.replace(settings, C=chosen)
        weights.append(learn(TASK, one, own, TASK.encode(own, some)).w)
    alarms = [day.alarm for day in days]
    ties = [TASK.encode(encoder, [day_network(day, templates)])[0][0] for day in days]
    wrong = [
        sum(int((voted(x, alarm, own) != day.attack).sum()) for x, alarm, day in zip(ties, alarms, days, strict=True))
        for own in OWN
    ]
    return VerdictSmoother(encoder, settings, weights[0], weights[1], OWN[int(np.argmin(wrong))], (costs[0], costs[1]))


def _bare(raw: RawNetwork) -> RawNetwork:
    """The same nodes without ties."""
    return RawNetwork(raw.nodes, raw.others, raw.columns, ())


def voted(x: NetworkFeatures, alarm: Flags, own: float) -> Flags:
    """The majority of the verdicts of related records, and of `own` votes of the record's."""
    return np.asarray(network_majority(x.cliques, alarm.astype(np.int64), 2, own) == 1)


def compare_smoothing(smoother: VerdictSmoother, day: JudgedDay) -> list[SmoothingOutcome]:
    """Compare the detector alone, votes, single nodes and the network on one day.

    And, for what a mere change of threshold does: the detector with the threshold that gives as many false alarms as
    the network, chosen in hindsight.
    """
    x, _ = TASK.encode(smoother.encoder, [day_network(day, smoother.encoder.templates)])[0]
    attack = smoother.encoder.labels.index("attack")
    problem = TASK.problem(smoother.encoder, smoother.settings)
    network: Labels = problem.predict(x, smoother.w)
    single = TASK.problem(msgspec.structs.replace(smoother.encoder, templates=()), smoother.settings)
    alone: Labels = single.predict(x.without_cliques(), smoother.alone)
    rows = [
        outcome("detector", day, day.alarm),
        outcome("votes", day, voted(x, day.alarm, smoother.own)),
        outcome("each by itself", day, alone == attack),
        outcome("network", day, network == attack),
    ]
    normal = np.sort(day.score[~day.attack])[::-1]
    allowed = rows[-1].false_alarms
    threshold = normal[allowed] if allowed < len(normal) else -np.inf
    return [*rows, outcome("detector at as many false alarms", day, day.score > threshold)]


def outcome(name: str, day: JudgedDay, alarm: Flags) -> SmoothingOutcome:
    """Count."""
    normal, attack = ~day.attack, day.attack
    kinds = [float(alarm[day.label == kind].mean()) for kind in np.unique(day.label[attack])]
    false, missed = int((alarm & normal).sum()), int((~alarm & attack).sum())
    return SmoothingOutcome(
        name=name,
        false_alarms=false,
        false_alarm_rate=false / max(int(normal.sum()), 1),
        missed=missed,
        detection=1.0 - missed / max(int(attack.sum()), 1),
        mean_detection=float(np.mean(kinds)) if kinds else 1.0,
    )
