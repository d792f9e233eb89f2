"""What the distributed engine takes with 1, 2 and 4 workers, beside the daemon's detector in one process, in one run.

    .venv/bin/python benchmarks/cluster_scaling.py [--records 600000] [--rounds 3]

Connections of a simulated office, ordinary ones with a part of attacks, lie in 8 partitions of a Redis server on
loopback before the workers start; verdicts of anomalous records and events go back to it. A rate is records by the
time from the first message that any worker took to the last one that was done with: starting is not in it. Redis runs
on the same cores. The model was adapted to the office before, as the warm-up does. Rounds alternate; the best of each
counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import save

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.linking.adaptation import adapt
from netclust.records.table import Table
from netclust.shipped.loading import load_shipped
from netclust.stream.bus.base import Outgoing
from netclust.stream.bus.factory import open_reader, open_writer
from netclust.stream.bus.record_messages import merged, pack_records
from netclust.stream.config import Config, SourceConfig, load_config
from netclust.stream.detection.detector import Detector
from netclust.stream.sharding.shard import Shard
from netclust.stream.sources.base import Arrival
from netclust.stream.sources.captures import open_packet_source

PARTITIONS = 8
ROWS = 512
WORKERS = (1, 2, 4)
SENSORS, SENSOR_RATE = 100, 50_000
SPARE = 0.5
"""Of what a core can take, how much is planned with."""
MODEL = load_shipped("conn")


def office(folder: Path, hours: float, seed: int, attacks: str) -> Table:
    path = folder / f"{attacks}.pcap"
    simulate_capture(path, hours=hours, seed=seed, attacks=attacks)
    source = open_packet_source(SourceConfig(kind="capture", name="in", path=str(path)), MODEL.encoding.schema)
    source.open(None)
    tables = []
    for arrival in source:
        arrival.table.context = arrival.context_of(np.arange(len(arrival.table)))
        tables.append(arrival.table)
    source.close()
    return merged([table for table in tables if len(table)])


def traffic(folder: Path, records: int) -> Table:
    """Ordinary traffic again and again, later each time, and a part of attacks in the middle."""
    plain, mixed = office(folder, 0.5, 5, "none"), office(folder, 0.1, 3, "all")
    span = int(plain.time.max() - plain.time.min()) + 10**9
    parts = []
    total = 0
    while total < records:
        some = (mixed if len(parts) == 2 else plain)[:]
        some.time = some.time - some.time.min() + len(parts) * span + 1_700_000_000 * 10**9
        parts.append(some)
        total += len(some)
    whole = merged(parts)[:records]
    whole.seq = np.arange(len(whole), dtype=np.uint64)
    return whole


def cut(table: Table) -> list[Outgoing]:
    """Messages of ROWS records in each partition."""
    found = []
    for begin in range(0, len(table), ROWS * PARTITIONS):
        some = table[begin : begin + ROWS * PARTITIONS]
        for partition in range(PARTITIONS):
            part = some[some.key % np.uint64(PARTITIONS) == partition]
            if len(part):
                found.append(Outgoing(partition, 0, pack_records(part, sensor="probe-1", stream="s1", source="eth0")))
    return found


def settings(folder: Path, port: int) -> Path:
    bus = "\n".join(
        f'{name} = "redis://127.0.0.1:{port}/{name}?maxlen=0"' for name in ("input", "verdicts", "events", "campaigns")
    )
    path = folder / "netclust.toml"
    path.write_text(
        f'[sharding]\n{bus}\npartitions = {PARTITIONS}\nrecovery = "{folder}/recovery"\n'
        f'[model]\npath = "{folder}/model.safetensors"\n[log]\nformat = "json"\n'
    )
    return path


def one_process(config: Config, table: Table) -> float:
    """Records a second of the daemon's detector, with as many partitions and without a bus."""
    import msgspec

    whole = msgspec.structs.replace(config, window=msgspec.structs.replace(config.window, partitions=PARTITIONS))
    from netclust.scoring.model import Model

    detector = Detector(Model.load(config.model.path), whole, names=["eth0"])
    start = time.perf_counter()
    for begin in range(0, len(table), 2048):
        detector.take(0, Arrival(table[begin : begin + 2048], None, 0.0))
    return len(table) / (time.perf_counter() - start)


def shards_in_a_row(config: Config, sent: list[Outgoing]) -> tuple[float, list[tuple[int, float]]]:
    """Records a second of the shards in one process, without bus or Bytewax; size and seconds of their snapshots."""
    from netclust.scoring.model import Model

    model = Model.load(config.model.path)
    shards = [Shard(model, config, p, PARTITIONS) for p in range(PARTITIONS)]
    start = time.perf_counter()
    for message in sent:
        shards[message.partition].step([message.body])
    rate = sum(shard.records for shard in shards) / (time.perf_counter() - start)
    snapshots = []
    for shard in shards:
        start = time.perf_counter()
        snapshots.append((len(shard.snapshot()), time.perf_counter() - start))
    return rate, snapshots


def cluster(path: Path, port: int, workers: int, records: int) -> dict[str, Any]:
    """One run: its rate, and what each worker used."""
    for topic in ("verdicts", "events", "campaigns"):
        for partition in range(PARTITIONS):
            subprocess.run(
                ["redis-cli", "-p", str(port), "del", f"{topic}:{partition}"],
                check=True,
                capture_output=True,
                timeout=60,
            )
    shutil.rmtree(path.parent / "recovery", ignore_errors=True)
    with (path.parent / "log").open("wb") as log:
        subprocess.run(
            [sys.executable, "-m", "netclust", "shards", "run", "-c", str(path), "-w", str(workers), "--until-idle",
             "2"],
            stdout=log, stderr=subprocess.STDOUT, check=True, timeout=600,
        )  # fmt: skip
    lines = [json.loads(line) for line in (path.parent / "log").read_text().splitlines() if line.startswith("{")]
    ended = [line for line in lines if line["message"] == "worker ends" and line["records"]]
    if sum(line["records"] for line in ended) != records:
        raise SystemExit(f"not every record was judged: {ended}")
    seconds = max(line["last"] for line in ended) - min(line["first"] for line in ended)
    return {
        "records_per_second": round(records / seconds),
        "seconds": round(seconds, 2),
        "records_a_worker": sorted(line["records"] for line in ended),
    }


def large_window(config: Config, sent: list[Outgoing], referents: int = 100_000) -> dict[str, Any]:
    """What a referent costs: memory of a shard's window, and its snapshot, which is taken every epoch."""
    import msgspec

    from netclust.scoring.model import Model

    window = msgspec.structs.replace(config.window, referent_window=referents)
    shard = Shard(Model.load(config.model.path), msgspec.structs.replace(config, window=window), 0, 1)
    shard.step([message.body for message in sent if message.partition == 0])
    part = shard.detector.linker.memory.partitions[0]
    size = sum(array.nbytes for array in part.window)
    start = time.perf_counter()
    snapshot = shard.snapshot()
    seconds = time.perf_counter() - start
    live = part.live.stop - part.live.start
    return {
        "memory_mb_a_million_referents": round(size / referents * 1e6 / 2**20),
        "snapshot_of_referents": live,
        "snapshot_mb": round(len(snapshot) / 2**20, 2),
        "snapshot_seconds": round(seconds, 3),
    }


def alerts_of(port: int) -> set[str]:
    found = set()
    for partition in range(PARTITIONS):
        reader = open_reader(f"redis://127.0.0.1:{port}/events", partition)
        reader.open(None)
        while messages := reader.take(0.1, 1000):
            for message in messages:
                found.add(json.loads(message.body)["event"]["id"])
        reader.close()
    return found


def estimate(per_core: float, memory_mb: float, bytes_a_record: float) -> dict[str, Any]:
    """Not a measurement: arithmetic from the rates of this run."""
    rate = SENSORS * SENSOR_RATE
    cores = rate / (per_core * SPARE)
    return {
        "is": "an estimate by arithmetic from this run; nothing of this size was run",
        "sensors": SENSORS,
        "records_per_second_a_sensor": SENSOR_RATE,
        "records_per_second": rate,
        "records_per_second_a_core_here": round(per_core),
        "load_planned_for": SPARE,
        "cores": int(np.ceil(cores)),
        "arithmetic": f"{SENSORS} x {SENSOR_RATE} / ({per_core:.0f} x {SPARE})",
        "memory_gb": round(np.ceil(cores) * memory_mb / 1024, 1),
        "lanes_at_least": int(2 ** np.ceil(np.log2(cores))),
        "bus_gigabits_per_second_in": round(rate * bytes_a_record * 8 / 1e9, 1),
        "not_in_it": "uneven partitions: one source address is one partition, and no partition is faster than a core",
    }


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="netclust-cluster-"))
    port = free_port()
    redis = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        table = traffic(folder, given.records)
        site = MODEL.encoding.encode(table[:20_000])
        adapt(MODEL, site, rate=0.001, references=4000).save(folder / "model.safetensors")
        path = settings(folder, port)
        config = load_config(path)
        sent = cut(table)
        size = sum(len(message.body) for message in sent)
        writer = open_writer(f"redis://127.0.0.1:{port}/input?maxlen=0", PARTITIONS)
        writer.open()
        for begin in range(0, len(sent), 100):
            writer.send(sent[begin : begin + 100])
        one_process(config, table[:4096])
        save("cluster-scaling", measured(given, path, port, config, table, sent, size))
    finally:
        redis.send_signal(signal.SIGTERM)
        redis.wait()
        shutil.rmtree(folder, ignore_errors=True)


def measured(
    given: argparse.Namespace, path: Path, port: int, config: Config, table: Table, sent: list[Outgoing], size: int
) -> dict[str, Any]:
    import resource

    detector, in_a_row, best, alerts = 0.0, 0.0, {}, {}
    snapshots: list[tuple[int, float]] = []
    for _ in range(given.rounds):
        detector = max(detector, one_process(config, table))
        rate, snapshots = shards_in_a_row(config, sent)
        in_a_row = max(in_a_row, rate)
        for workers in WORKERS:
            found = cluster(path, port, workers, len(table))
            alerts[workers] = alerts_of(port)
            if workers not in best or found["records_per_second"] > best[workers]["records_per_second"]:
                best[workers] = found
    one = best[1]["records_per_second"]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    cores = os.cpu_count() or 1
    return {
        "records": len(table),
        "lanes": PARTITIONS,
        "records_a_message": round(len(table) / len(sent)),
        "bytes_a_record": round(size / len(table)),
        "detector_in_one_process_per_second": round(detector),
        "shards_without_bus_per_second": round(in_a_row),
        "workers": {str(workers): found for workers, found in best.items()},
        "speedup": {str(w): round(best[w]["records_per_second"] / one, 2) for w in WORKERS},
        "efficiency": {str(w): round(best[w]["records_per_second"] / one / min(w, cores), 2) for w in WORKERS},
        "speedup_that_these_lanes_allow": {
            str(w): round(len(table) / max(best[w]["records_a_worker"]), 2) for w in WORKERS
        },
        "same_alerts": len({frozenset(found) for found in alerts.values()}) == 1,
        "alert_events": len(alerts[1]),
        "snapshot_bytes_a_shard": max(s[0] for s in snapshots),
        "snapshot_seconds_a_shard": round(max(s[1] for s in snapshots), 4),
        "largest_process_mb": round(memory),
        "window": large_window(config, sent),
        "estimate": estimate(one, memory, size / len(table)),
    }


if __name__ == "__main__":
    main()
