"""How long detection waits for a checkpoint of a large referent window: the copy, and what writing it holds up.

    .venv/bin/python benchmarks/checkpoint_pause.py [MEMBERS]

Linking a million records to a million referents takes hours, so the window is filled by hand with records of a
simulated day, as the linker would have left them; a restore from what was written checks that it is a state that can
be. The pause is `Linker.freeze`, between two batches. While a thread writes what was copied, detection goes on, except
where that thread keeps the interpreter to itself: another thread that wakes every millisecond notes the longest gap.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import save, timed

from netclust.datasets.simulators.simulate import simulate
from netclust.kernels.linking import link as kernels
from netclust.linking.linker import Linker
from netclust.linking.snapshot import Frozen
from netclust.shipped.loading import load_shipped
from netclust.stream.config import WindowConfig
from netclust.stream.daemon.checkpoint import CheckpointStore, Cut, Written

MEMBERS = 1_000_000
CHANGED = 20_000
"""Records between the base and the next checkpoint."""
RUNS = 5
CLUSTERS = 60_000


def filled(members: int) -> Linker:
    """A linker whose window is full, and whose cluster summaries nearly are."""
    model = load_shipped("kdd")
    linker = Linker(model, WindowConfig(referent_window=members).linker())
    day = model.encoding.encode(simulate(20_000, seed=3).table(), linker.labels)
    part = linker.memory.partitions[0]
    append(linker, day, members)
    classes = int(part.cursor[kernels.HAND])
    part.clusters.ident[classes : classes + CLUSTERS] = classes + np.arange(CLUSTERS)
    part.clusters.used[classes : classes + CLUSTERS] = 1
    part.cursor[kernels.NEXT_CLUSTER] = CLUSTERS
    return linker


def append(linker: Linker, day: Any, count: int) -> None:
    """Records at the end of the window, each in the cluster of the first class; the oldest leave."""
    part = linker.memory.partitions[0]
    part.make_room()
    window, begin = part.window, int(part.cursor[kernels.END])
    rows = np.arange(count) % len(day)
    new = slice(begin, begin + count)
    ticks = np.arange(linker.tick, linker.tick + count)
    window.num[:, new], window.code[:, new] = day.num[rows].T, day.code[rows].T
    for name, values in (("tick", ticks), ("seq", ticks), ("origin", -2), ("event", -1), ("truth", -1)):
        getattr(window, name)[new] = values
    for name in ("label", "side", "trusted", "cluster", "slot", "time", "source"):
        getattr(window, name)[new] = 0
    window.side[new] = kernels.NORMAL_SIDE
    linker.tick += count
    part.cursor[kernels.END] = begin + count
    part.cursor[kernels.START] = max(0, begin + count - linker.config.kept)
    part.cursor[kernels.PUSHED] = linker.tick


class Gaps:
    """The longest time for which a thread that wants to run could not."""

    def __enter__(self) -> Gaps:
        self.longest = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self) -> None:
        before = time.perf_counter()
        while not self._end.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            self.longest, before = max(self.longest, now - before), now

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def written(store: CheckpointStore, frozen: Frozen) -> tuple[Written, dict[str, float]]:
    """Write a checkpoint; how long it took and the longest gap for others."""
    found: list[Written] = []
    with Gaps() as gaps:
        seconds = timed(lambda: found.append(store.write(Cut({}, linker=frozen))))
    size = found[0].bytes + found[0].base_bytes
    return found[0], {"seconds": round(seconds, 3), "longest_gap_seconds": round(gaps.longest, 4), "bytes": size}


def main() -> None:
    members = int(sys.argv[1]) if len(sys.argv) > 1 else MEMBERS
    linker = filled(members)
    day = linker.model.encoding.encode(simulate(20_000, seed=4).table(), linker.labels)
    whole = [timed(linker.freeze) for _ in range(RUNS)]
    body: dict[str, Any] = {"members": members, "base": {"pause_seconds": [round(s, 4) for s in whole]}}
    with tempfile.TemporaryDirectory() as folder:
        store = CheckpointStore(Path(folder))
        base = linker.freeze()
        body["base"]["written"] = written(store, base)[1]
        since = store.since(linker.tick, members, linker.model.fingerprint)
        if since is None:
            raise SystemExit("the store does not ask for changes: the window is too small")
        del base
        append(linker, day, CHANGED)
        changes = [timed(lambda: linker.freeze(since)) for _ in range(RUNS)]
        body["changes"] = {"records": CHANGED, "pause_seconds": [round(s, 4) for s in changes]}
        body["changes"]["written"] = written(store, linker.freeze(since))[1]
        loaded = store.load()
        if loaded is None or loaded.linker is None:
            raise SystemExit("what was written cannot be read")
        began = time.perf_counter()
        again = Linker.restore(linker.model, loaded.linker, "benchmark", loaded.base)
        body["restore_seconds"] = round(time.perf_counter() - began, 3)
        body["restored_equals"] = again.snapshot() == linker.snapshot()
    part = linker.memory.partitions[0]
    append(linker, day, len(part.window.label) - int(part.cursor[kernels.END]))
    body["move_to_front_seconds"] = round(timed(part.make_room), 4)
    body["longest_pause_seconds"] = {"base": round(max(whole), 4), "changes": round(max(changes), 4)}
    save("checkpoint_pause", body)


if __name__ == "__main__":
    main()
