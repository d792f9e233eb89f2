"""`netclust warmup`: run every kernel once on a little data."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from netclust.options.output import echo, output_result, write_json

if TYPE_CHECKING:
    from netclust.scoring.model import Model


def run_warmup(json: Path | None) -> None:
    """Compile what training, reading, linking and following packets need."""
    start = time.perf_counter()
    from netclust.kernels import prebuilt

    prebuilt.leave_out()
    from netclust.datasets.simulators.simulate import simulate
    from netclust.kernels.jit import CACHE_FOLDER
    from netclust.linking.linker import LinkerConfig
    from netclust.models.network.evaluation import evaluate_network
    from netclust.models.network.params import TrainParams
    from netclust.models.network.train_network import train_network
    from netclust.records.reader import RecordReader
    from netclust.records.schema import load_schema

    with tempfile.TemporaryDirectory(dir=CACHE_FOLDER) as folder:
        file = Path(folder, "records.txt")
        simulate(600, seed=0).write(file)
        reader = RecordReader(file, load_schema("kdd"))
        table = next(iter(reader))
        train_network(table, TrainParams(learner="margin", steps=1, training_window=50, reference_size=40))
        model = train_network(table, TrainParams(epochs=1, reference_size=40))
        evaluate_network(model, [table], LinkerConfig(referent_window=50, label_delay=10, mature_after=60.0))
        _captures(Path(folder))
        _daemon(model)
    seconds = time.perf_counter() - start
    kept = f"kept in {CACHE_FOLDER}" if CACHE_FOLDER else "but not kept: no writable folder, set NUMBA_CACHE_DIR"
    if str(json) != "-":
        echo(f"kernels ready in {seconds:.1f} s, {kept}")
    body = {"seconds": seconds, "cache": str(CACHE_FOLDER) if CACHE_FOLDER else None}
    write_json(json, output_result(["warmup"], body, seed=None, data={}))


def _daemon(model: Model) -> None:
    """Adapt the model to a site, follow links, and put two alerts in order."""
    from netclust.scoring.reference import covering_reference
    from netclust.stream.alerts.alert_events import Alert
    from netclust.stream.alerts.alert_triage import in_triage_order
    from netclust.stream.console.forest import load_forest_kernels

    covering_reference(model.reference, 2, np.random.default_rng(0))
    load_forest_kernels()
    in_triage_order([Alert(id=i, kind="novel", label="", entity="", entity_kind="source") for i in ("a", "b")])


def _captures(folder: Path) -> None:
    """Write a few minutes of packets, and read them in both formats and by both schemas."""
    from netclust.datasets.simulators.capture_simulator import simulate_capture
    from netclust.records.schema import load_schema
    from netclust.stream.packets.capture_files import CaptureFile, merge_captures
    from netclust.stream.packets.capture_reader import CaptureReader
    from netclust.stream.packets.capture_writer import write_capture
    from netclust.stream.packets.live import load_live_kernels

    packets = folder / "packets.pcap"
    simulate_capture(packets, hours=0.05, scale=0.2, hosts=8, attacks="all")
    write_capture(folder / "packets.pcapng", CaptureFile(packets), format="pcapng")
    for schema in ("kdd", "flow"):
        for _ in CaptureReader([folder / "packets.pcapng"], load_schema(schema)):
            pass
    for _ in merge_captures([CaptureFile(packets), CaptureFile(packets)]):
        pass
    load_live_kernels()
