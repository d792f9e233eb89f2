"""Do explanations name what was done? In simulated streams the attributes that an attack alters are known.

Of anomalous records of an attack, the share whose three strongest attributes include one that the simulator altered.
"""

from __future__ import annotations

from collections import defaultdict
from math import comb

from common import save

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, PROFILES, simulate
from netclust.linking.explanation import explain
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network

RECORDS, STREAMS = 20_000, 5


def named(preset: str, config: LinkerConfig, streams: int = STREAMS, records: int = RECORDS) -> dict[str, object]:
    """By attack type, and in all: how many of the judged anomalies were explained by an altered attribute."""
    altered = {profile.name: profile.altered for profile in PROFILES.values()}
    hit: dict[str, int] = defaultdict(int)
    asked: dict[str, int] = defaultdict(int)
    model = train_network(simulate(records, seed=1).table(), load_params(preset), seed=0)
    for k in range(streams):
        today = simulate(records, seed=100 + k, day=1 + k, attacks=(*KNOWN, *HELD_BACK))
        linker = Linker(model, config)
        batch = model.encoding.encode(today.table(), linker.labels)
        verdicts, evidence = linker.process_with_evidence(batch)
        for row in evidence.rows.tolist():
            name = str(today.label[row])
            if name != "normal":
                asked[name] += 1
                hit[name] += bool(altered[name] & set(explain(linker, batch, verdicts, evidence, row).top(3)))
    scored = [*model.encoding.kept, *(a.name for a in model.encoding.schema.coded)]
    luck = {name: chance(len(scored), len(altered[name] & set(scored))) for name in asked}
    return {
        "explained": sum(asked.values()),
        "share": sum(hit.values()) / sum(asked.values()),
        "by_chance": sum(luck[name] * n for name, n in asked.items()) / sum(asked.values()),
        "by_type": {name: hit[name] / asked[name] for name in sorted(asked)},
        "by_chance_by_type": {name: luck[name] for name in sorted(asked)},
    }


def chance(attributes: int, altered: int) -> float:
    """That three attributes drawn at random include an altered one."""
    return 1 - comb(attributes - altered, 3) / comb(attributes, 3)


if __name__ == "__main__":
    save(
        "explanations",
        {
            "records": RECORDS,
            "streams": STREAMS,
            "reference": named("reference", LinkerConfig.stream(feedback="none")),
            "late": named("late", LinkerConfig.stream(referent_window=1000, feedback="gold")),
        },
    )
