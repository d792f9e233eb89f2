"""What a link costs at referent windows from 100 to a million: searching by bounds beside the full scan, in one run.

Streams: NSL-KDD's training file again and again, in new orders, every number that is not 0 jittered by 2 % after the
first pass; and simulated traffic. A record has a near referent if its best link is above the root's score. Times are of
single records, by the thread's clock within the kernel; the peer is the same model at a window of 100, in the same run.

    python benchmarks/search.py [--most 1000000] [--records 4000]
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Iterator
from dataclasses import fields

import numba
import numpy as np
from common import nsl_kdd, save

from netclust.datasets.simulators.simulate import simulate
from netclust.kernels.linking import boxes
from netclust.kernels.linking import link as kernels
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.train_network import network_with_reference
from netclust.records.batch import Batch, concat_batches
from netclust.records.reader import read_table
from netclust.records.schema import load_schema
from netclust.scoring.model import Model
from netclust.shipped.loading import load_shipped

WINDOWS = (100, 1000, 10_000, 100_000, 1_000_000)
BLOCK = 500
JITTER = 0.02

link_records = kernels.link_records  # the real one, also while another stands for it
_clock = ctypes.CDLL(None).clock_gettime
_clock.argtypes = [ctypes.c_int, ctypes.c_void_p]


def timed_call(run) -> float:
    """Seconds of this thread's own time: others work on the machine."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def jittered(model: Model) -> Iterator[Batch]:
    """NSL-KDD's training records without end."""
    records = model.encoding.encode(read_table(nsl_kdd("KDDTrain+"), load_schema("kdd")))
    rng = np.random.default_rng(0)
    spread = 0.0
    while True:
        order = rng.permutation(len(records))
        num = records.num[order]
        num += (spread * rng.normal(size=num.shape)).astype(np.float32) * num
        yield Batch(num=num, code=records.code[order], label=records.label[order])
        spread = JITTER


def simulated(model: Model) -> Iterator[Batch]:
    """Days of simulated records."""
    day = 0
    while True:
        batch = model.encoding.encode(simulate(50_000, seed=100 + day, day=day).table())
        yield Batch(num=batch.num, code=batch.code)
        day += 1


def take(stream: Iterator[Batch], n: int) -> Batch:
    """The next n records, and what is left of a batch is forgotten."""
    parts: list[Batch] = []
    while sum(map(len, parts)) < n:
        parts.append(next(stream))
    return concat_batches(parts)[:n]


@numba.njit(nogil=True)
def timed_links(index, rest, tally, one, now, spent, work):
    """Link record by record: nanoseconds, and bounds and scores of the window's members, of each."""
    for i in index:
        one[0] = i
        bounded, scored = tally[boxes.BOUNDED], tally[boxes.SCORED]
        _clock(3, now.ctypes)
        before = now[0] * 1_000_000_000 + now[1]
        link_records(one, *rest)
        _clock(3, now.ctypes)
        spent[i] = now[0] * 1_000_000_000 + now[1] - before
        work[i, 0] = tally[boxes.BOUNDED] - bounded
        work[i, 1] = tally[boxes.SCORED] - scored


class Timed:
    """Stands for the kernel while a batch is linked."""

    def __init__(self, n: int) -> None:
        self.spent = np.zeros(n, np.int64)
        self.work = np.zeros((n, 2), np.int64)
        self.room = np.zeros(1, np.int64), np.zeros(2, np.int64)

    def __call__(self, index, *rest):
        one, now = self.room
        groups = [part for part in rest if isinstance(part, boxes.Index)][-1]  # behind those of the references
        timed_links(index, rest, groups.tally, one, now, self.spent, self.work)

    def link(self, linker: Linker, batch: Batch, real):
        kernels.link_records = self
        try:
            return linker.process(batch)
        finally:
            kernels.link_records = real


def figures(spent, work, members, chosen) -> dict:
    """Of some records."""
    if not chosen.any():
        return {"records": 0}
    p50, p99 = np.percentile(spent[chosen], [50, 99])
    return {
        "records": int(chosen.sum()),
        "mean_us": round(float(spent[chosen].mean()) / 1e3, 2),
        "p50_us": round(float(p50) / 1e3, 2),
        "p99_us": round(float(p99) / 1e3, 2),
        "bounds": round(float(work[chosen, 0].mean()), 1),
        "scored": round(float(work[chosen, 1].mean()), 1),
        "share_scored": float(f"{work[chosen, 1].mean() / members:.3g}"),
    }


def bytes_per_referent(linker: Linker) -> dict[str, float]:
    """Memory of a window by what it is for; untouched pages of the groups are not counted."""
    part = linker.memory.partitions[0]
    index = linker.referent_search._windows[0]
    kept = max(linker.config.kept, 1)
    window = sum(a.nbytes for a in part.window)
    rows = sum(getattr(index, n).nbytes for n in ("row", "where", "held", "hint"))
    used = int((index.size > 0).sum())
    leaf = sum(getattr(index, n)[:1].nbytes for n in ("member", "number", "size", "node", "column", "worn"))
    nodes = int((index.side != boxes.FREE).sum())
    node = sum(getattr(index, n)[:1].nbytes for n in ("span", "mask", "least", "oldest", "exact", "leaf"))
    return {
        "window": round(window / kept, 1),
        "rows": round(rows / kept, 1),
        "leaves": round(used * leaf / kept, 1),
        "boxes": round(nodes * node / kept, 1),
    }


def measure(name: str, model: Model, stream: Iterator[Batch], most: int, records: int) -> list[dict]:
    real = kernels.link_records
    rows = []
    small = Linker(model, LinkerConfig(referent_window=100))
    small.process(take(stream, 2000))
    Timed(BLOCK).link(small, take(stream, BLOCK), real)  # compiles
    for window in [w for w in WINDOWS if w <= most]:
        linker = Linker(model, LinkerConfig(referent_window=window))
        left = window
        while left > 0:
            left -= len(linker.process(take(stream, min(left, 50_000))))
        batch = take(stream, records)
        ours, peer, verdicts = Timed(records), Timed(records), []
        whole: dict[int, list[float]] = {0: [], 1: []}
        for at in range(0, records, BLOCK):
            block, plain = batch[at : at + BLOCK], take(stream, BLOCK)
            for which, (timed, linked) in enumerate(((ours, linker), (peer, small))):
                one = Timed(len(block))
                found = one.link(linked, block, real)
                timed.spent[at : at + BLOCK], timed.work[at : at + BLOCK] = one.spent, one.work
                if linked is linker:
                    verdicts.append(found)
                whole[which].append(timed_call(lambda linked=linked, plain=plain: linked.process(plain)) * 1e9 / BLOCK)
        # To call the kernel for each record costs something by itself: it is the difference to whole blocks.
        for timed, blocks in ((ours, whole[0]), (peer, whole[1])):
            timed.spent = np.maximum(timed.spent - max(timed.spent.mean() - np.mean(blocks), 0), 1)
        kind = np.concatenate([v.verdict for v in verdicts])
        near = np.concatenate([v.link > model.root_scores(batch[i * BLOCK : (i + 1) * BLOCK])
                               for i, v in enumerate(verdicts)])  # fmt: skip
        everyone = np.ones(records, bool)
        row = {"stream": name, "window": window}
        for which, chosen in (
            ("all", everyone), ("near", near), ("far", ~near), ("normal", kind == 0), ("known attack", kind == 1),
            ("novel", kind == 2),
        ):  # fmt: skip
            row[which] = figures(ours.spent, ours.work, window, chosen)
            if chosen.any():
                row[which]["times_the_cost_at_100"] = round(
                    float(ours.spent[chosen].mean() / peer.spent[chosen].mean()), 1
                )
        row["records_per_second"] = round(1e9 / float(np.mean(whole[0])))
        row["block_ratio_best"] = round(min(whole[0]) / min(whole[1]), 1)
        full = Linker.restore(model, linker.snapshot(), search="full")
        few = batch[: max(min(records, 20_000_000 // window), 50)]
        again = Linker.restore(model, linker.snapshot())
        found, wanted = again.process(few), []
        row["full_scan_us"] = round(
            timed_call(lambda full=full, few=few, to=wanted: to.append(full.process(few))) * 1e6 / len(few), 2
        )
        wanted = wanted[0]
        row["full_scan_same"] = all(
            getattr(wanted, f.name).tobytes() == getattr(found, f.name).tobytes() for f in fields(wanted)
        )
        if linker.referent_search.window(0, linker.memory.partitions[0])[1]:
            row["bytes_per_referent"] = bytes_per_referent(linker)
        rows.append(row)
        print(
            name,
            window,
            row["all"],
            "near:",
            row["near"].get("times_the_cost_at_100"),
            "full:",
            row["full_scan_us"],
            row["block_ratio_best"],
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=WINDOWS[-1])
    parser.add_argument("--records", type=int, default=4000)
    asked = parser.parse_args()
    kdd = load_shipped("kdd")
    model = network_with_reference(kdd, take(jittered(kdd), 20_000), 280, seed=0)
    rows = measure("nsl-kdd with jitter", model, jittered(model), asked.most, asked.records)
    rows += measure("simulated", model, simulated(model), asked.most, asked.records)
    save(
        "search",
        {
            "target": "10,000 at most 8 times the cost at 100, 1,000,000 at most 40, where a near referent exists",
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
