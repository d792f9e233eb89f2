"""Are clusters found again after a restart without state? Windows of a stream, each linked anew; classes tell.

Rules: the nearest exemplar (greedy), profiles by unlearned distance (greedy, and by a best matching), and a learned
matching. What a rule has to choose (a limit; C) is chosen on training windows alone. Simulated days, and KDDTrain+
in windows; clusters of the later window found under the same model, and under another one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from common import nsl_kdd, save

from netclust.datasets.candidate_pairs import CandidatePairs
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.models.matching.matchings import MatchGraph, Partners, best_matching, chosen_edges
from netclust.models.matching.task import TASK, MatchSettings, graph_of, learn
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.models.structured_task import choose_cost
from netclust.models.tracking.cluster_tracking import (
    LEAST,
    NORMAL,
    TRACKING,
    Known,
    matched_pairs,
    of_class,
    same_class,
    track_nearest_first,
    tracking_windows,
)
from netclust.models.tracking.profile_pairs import candidate_pairs, profile_distances
from netclust.records.reader import read_table
from netclust.records.schema import load_schema
from netclust.scoring.model import Model

SEEDS = 5
FALSE_ALARMS = 0.01
GAP = 4
SIZE, RECORDS, TRAIN_DAYS, TEST_DAYS = 3000, 12_000, 4, 4
NSL_TRAIN, NSL_TEST = 12, 12
LIMITS = tuple(np.round(np.geomspace(0.02, 2.0, 25), 4))
GRID = (10.0, 100.0, 1000.0)


class Case(NamedTuple):
    """Two windows, the candidates between their clusters, and which are of one class."""

    pairs: CandidatePairs
    graph: MatchGraph
    same: Any
    normal: Any
    possible: int
    """So many clusters could be found again."""


class Count(NamedTuple):
    kept: int
    told: int
    possible: int


def case(old: Known, new: Known) -> Case | None:
    if not (old.profiles and new.profiles):
        return None
    pairs = candidate_pairs(old.profiles, new.profiles)
    same = same_class(pairs, old, new)
    both = same & of_class(pairs, old, NORMAL)
    classes = set(old.classes) - {NORMAL}
    possible = sum(min(old.classes.count(c), new.classes.count(c)) for c in classes)
    return Case(pairs, graph_of(pairs, general=False), same, both, possible)


def count(cases: Sequence[Case], rule: Callable[[Case], Partners]) -> dict[str, float]:
    """Identities kept, and how many of those told are right; F1; normal with normal is not counted."""
    kept = told = 0
    for one in cases:
        chosen = chosen_edges(one.graph, rule(one)) & ~one.normal
        kept += int((chosen & one.same).sum())
        told += int(chosen.sum())
    possible = sum(one.possible for one in cases)
    return {
        "kept": kept / max(possible, 1),
        "right": kept / max(told, 1),
        "f1": 2 * kept / max(told + possible, 1),
        "errors": (told + possible - 2 * kept) / max(possible, 1),
    }


def by_limit(what: Any, match: Callable[[MatchGraph, Any], Partners], limit: float) -> Callable[[Case], Partners]:
    return lambda one: match(one.graph, limit - profile_distances(one.pairs, what))


def tuned(what: Any, match: Callable[[MatchGraph, Any], Partners], train: Sequence[Case]) -> tuple[Any, float]:
    best = max(LIMITS, key=lambda limit: count(train, by_limit(what, match, limit))["f1"])
    return by_limit(what, match, best), float(best)


def learned(raw: list[CandidatePairs]) -> tuple[Callable[[Case], Partners], float]:
    settings = MatchSettings(C=1.0, epsilon=1.0)
    encoder = TRACKING.fit(raw, settings)
    C = choose_cost(TRACKING, settings, raw, encoder, grid=GRID, folds=3).C
    w = learn(TRACKING, msgspec.structs.replace(settings, C=C), encoder, TRACKING.encode(encoder, raw)).w

    def rule(one: Case) -> Partners:
        ((x, _),) = TASK.encode(encoder, [one.pairs])
        return best_matching(x.graph, x.features @ w)

    return rule, C


def trial(train: list[Known], test: list[Known], other: list[Known]) -> dict[str, Any]:
    """All rules: learned on windows of one part of a stream, measured on those of another.

    `other` has the clusters of the test windows again, found under another model.
    """
    pairs = later(train, train)
    examples = [e for a, b in pairs if (e := matched_pairs(a, b)) is not None]
    tried = cases(pairs)
    rules: dict[str, tuple[Any, Any]] = {
        "nearest exemplar, no limit": (by_limit("apart at first", track_nearest_first, 1e9), None),
        "nearest exemplar": tuned("apart at first", track_nearest_first, tried),
        "nearest profile": tuned("apart", track_nearest_first, tried),
        "matching of profiles": tuned("apart", best_matching, tried),
        "learned": learned(examples),
    }
    found: dict[str, Any] = {}
    for what, held in (("same model", later(test, test)), ("another model", later(test, other))):
        counted = cases(held)
        found[what] = {name: count(counted, rule) for name, (rule, _) in rules.items()}
        found[what]["size"] = {"possible": float(np.mean([one.possible for one in counted])), "pairs": len(counted)}
    found["chosen"] = {name: {"value": chosen} for name, (_, chosen) in rules.items() if chosen is not None}
    found["clusters"] = {"of a window": {"mean": float(np.mean([len(known.profiles) for known in test]))}}
    return found


def cases(pairs: Sequence[tuple[Known, Known]]) -> list[Case]:
    return [one for a, b in pairs if (one := case(a, b)) is not None]


def later(old: list[Known], new: list[Known]) -> list[tuple[Known, Known]]:
    """Pairs of windows of one stream, the later one at most GAP after the earlier one."""
    return [(a, b) for k, a in enumerate(old) for b in new[k + 1 : k + 1 + GAP]]


def novelty(table: Any, seed: int) -> Model:
    params = msgspec.structs.replace(load_params("unlearned-reference"), false_alarm_rate=FALSE_ALARMS)
    return train_network(table, params, seed=seed)


def simulated(seed: int) -> dict[str, Any]:
    """The model is of day 0, the other one of another day 0; three attacks are known."""
    models = [novelty(simulate(6000, seed=s, attacks=KNOWN[:3]).table(), s) for s in (seed, seed + 50)]
    attacks = (*KNOWN, *HELD_BACK)

    def days(model: Model, first: int, count: int) -> list[Known]:
        streams = [
            simulate(RECORDS, seed=100 * seed + d, day=d, attacks=attacks, attack_share=0.3).table()
            for d in range(first, first + count)
        ]
        return [window for stream in streams for window in tracking_windows(model, stream, SIZE, least=LEAST)]

    last = 1 + TRAIN_DAYS
    return trial(days(models[0], 1, TRAIN_DAYS), *(days(model, last, TEST_DAYS) for model in models))


def nsl(seed: int) -> dict[str, Any]:
    """Models of normal traffic and three attacks; then windows of what is left, in an order drawn anew."""
    table = read_table(nsl_kdd("KDDTrain+"), load_schema("kdd"))
    order = np.random.default_rng(seed).permutation(len(table))
    table = table[order]
    known = np.flatnonzero(np.isin(table.label_names(), ["normal", "neptune", "ipsweep", "warezclient"]))[:20_000]
    models = [novelty(table[part], seed) for part in (known[:10_000], known[10_000:])]
    rest = table[np.setdiff1d(np.arange(len(table)), known)]
    train, test = rest[: NSL_TRAIN * SIZE], rest[NSL_TRAIN * SIZE : (NSL_TRAIN + NSL_TEST) * SIZE]
    learned_on = list(tracking_windows(models[0], train, SIZE, least=LEAST))
    return trial(learned_on, *(list(tracking_windows(model, test, SIZE, least=LEAST)) for model in models))


def gathered(run: Callable[[int], dict[str, Any]], seeds: int) -> dict[str, Any]:
    """Mean and standard deviation of every number over the seeds."""
    runs = []
    for seed in range(seeds):
        start = time.perf_counter()
        runs.append(run(seed))
        print(run.__name__, seed, f"{time.perf_counter() - start:.0f} s", json.dumps(runs[-1]), flush=True)
    return {
        part: {
            name: {key: spread([one[part][name][key] for one in runs]) for key in values}
            for name, values in runs[0][part].items()
        }
        for part in runs[0]
    }


def spread(values: list[float]) -> dict[str, float]:
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": round(float(np.mean(values)), 4), "sd": round(sd, 4)}


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    body = {
        "seeds": seeds,
        "window": SIZE,
        "gap": GAP,
        "records_a_day": RECORDS,
        "train_days": TRAIN_DAYS,
        "test_days": TEST_DAYS,
        "nsl_windows": [NSL_TRAIN, NSL_TEST],
        "least": LEAST,
        "false_alarm_rate": FALSE_ALARMS,
        "simulated": gathered(simulated, seeds),
        "nsl_kdd": gathered(nsl, seeds),
    }
    save("cluster_tracking", body)


if __name__ == "__main__":
    main()
