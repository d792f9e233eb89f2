"""What the novelty score costs beside linking, at the same number of referents and in the same run.

Per record: linking alone; linking and the exact score; linking and the comparison with a threshold, which is all that a
verdict needs. The threshold lets 0.1 % of the site's own records through. Rounds alternate between the three, because
the machine is noisy; the shortest round of each counts.

    python benchmarks/novelty.py [--referents 1000] [--records 4000] [--rounds 40]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from common import save

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.datasets.simulators.simulate import simulate
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.novelty import SiteNovelty
from netclust.records.batch import Batch
from netclust.records.table import concat_tables
from netclust.scoring.model import Model
from netclust.shipped.loading import load_shipped
from netclust.stream.packets.capture_reader import open_captures_as_tables

RATE = 0.001


def kdd_records(model: Model, seed: int, attacks: bool) -> Batch:
    """Return simulated records of schema kdd."""
    mixed = {} if attacks else {"attacks": ()}
    return model.encoding.encode(simulate(12_000, seed=seed, day=seed, **mixed).table())


def conn_records(model: Model, seed: int, attacks: bool) -> Batch:
    """Return the connections of a simulated capture."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/day.pcap"
        simulate_capture(path, hours=2.0, attacks="all" if attacks else "none", hosts=40, seed=seed)
        return model.encoding.encode(concat_tables(list(open_captures_as_tables(path, model.encoding.schema))))


def compare(model: Model, site: Batch, day: Batch, referents: int, records: int, rounds: int) -> dict[str, Any]:
    """Return microseconds per record of the three, and their ratios to linking alone."""
    rows = np.linspace(0, len(model.reference) - 1, min(referents, len(model.reference))).astype(np.int64)
    model = replace(model, reference=model.reference[rows])
    window = referents - len(rows)
    linker = Linker(model, LinkerConfig.stream(referent_window=window), search="full")
    linker.process(site[: 2 * referents])
    novelty = SiteNovelty.fit(site, model.encoding.widths, referents=referents)
    threshold = novelty.threshold(max(RATE, 1 / (len(novelty) + 1)))
    batch = day[:records]
    runs: dict[str, Callable[[], Any]] = {
        "link": lambda: linker.process(batch),
        "score": lambda: novelty.scores(batch),
        "count": lambda: novelty.exceeds(batch, threshold),
    }
    best = dict.fromkeys(runs, np.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.thread_time()
            run()
            best[name] = min(best[name], (time.thread_time() - start) / len(batch) * 1e6)
    return {
        "references": len(model.reference),
        "window": window,
        "site_referents": len(novelty),
        "records": len(batch),
        "exceed": float(novelty.exceeds(batch, threshold).mean()),
        "microseconds": {name: round(value, 3) for name, value in best.items()},
        "with_score": round((best["link"] + best["score"]) / best["link"], 3),
        "with_count": round((best["link"] + best["count"]) / best["link"], 3),
    }


def main() -> None:
    """Measure with the shipped models for records and for connections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--referents", type=int, default=1000)
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    body: dict[str, Any] = {"referents": args.referents, "rate": RATE}
    for name, make in (("kdd", kdd_records), ("conn", conn_records)):
        model = load_shipped(name)
        site = make(model, 1, False)
        for kind, attacks in (("ordinary", False), ("mixed", True)):
            day = make(model, 2, attacks)
            body[f"{name}_{kind}"] = compare(model, site, day, args.referents, args.records, args.rounds)
    save("novelty", body)


if __name__ == "__main__":
    main()
