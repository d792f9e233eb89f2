"""How quiet the detector is: alerts on ordinary traffic, and how many alerts an attack makes.

    python benchmarks/quiet.py site      # a simulated site that no shipped model has seen, with attacks (model cards)
    python benchmarks/quiet.py week      # a simulated week without attacks: alerts a day
    python benchmarks/quiet.py captures  # the shared captures, alone and in a simulated office; noted as a look

`--model flow` (or conn, kdd, a file), `--json FILE`, `--data FOLDER`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from netclust.datasets.capture_simulator import simulate_capture
from netclust.datasets.simulate import HELD_BACK, KNOWN, simulate
from netclust.model import Model
from netclust.models.capture_cases import capture_span
from netclust.models.looks import TEST_SETS, record_look
from netclust.models.shipped import load_shipped, shipped_models
from netclust.schema import load_schema
from netclust.stream.alert_events import Alert, AlertEvent
from netclust.stream.capture_files import CaptureFile, list_captures, merge_captures
from netclust.stream.capture_labels import LabelRules, load_labels
from netclust.stream.capture_reader import CaptureReader, flow_records, tables_of
from netclust.stream.daemon.config import Config, parse_config
from netclust.stream.detector import Detector
from netclust.stream.flow_table import FlowTable
from netclust.stream.sources.base import Arrival, numbered
from netclust.table import Table
from netclust.verdicts import KNOWN_ATTACK, NOVEL

HERE = Path(__file__).resolve().parent
HOUR_NS = 3600 * 10**9
LEAD_NS = HOUR_NS // 2  # of the office's own traffic before a capture's begins: longer than the warm-up
MAX_HOURS = 30  # of an office: one capture's clock leaps by years
NO_ATTACK = ("", "normal", "unknown")


@dataclass
class Replay:
    """What came of a replay. Records before the end of the warm-up are not counted, their alerts are."""

    records: int = 0
    hours: float = 0.0
    warm: bool = False
    by_label: Counter[str] = field(default_factory=Counter)
    anomalous: Counter[str] = field(default_factory=Counter)
    novel: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    alerts: dict[str, tuple[Alert, str, float]] = field(default_factory=dict)
    """By id: the alert as it was last told, the true label of its first record, hours since the beginning."""

    def share(self, counts: Counter[str], labels: Iterable[str]) -> float:
        total = sum(self.by_label[name] for name in labels)
        return sum(counts[name] for name in labels) / total if total else 0.0


def config(warmup: int, references: int, window: int) -> Config:
    """The daemon's defaults, but for warm-up and window."""
    return parse_config(
        '[[source]]\nkind = "capture"\npath = "-"\n'
        f"[warmup]\nrecords = {warmup}\nreferences = {references}\n[window]\nreferent_window = {window}\n"
    )


def replay(model: Model, tables: Iterable[Table], settings: Config) -> Replay:
    """Tables through the detector, as the daemon does it."""
    detector, done = Detector(model, settings), Replay()
    truth: list[str] = []
    began = last = -1
    for table in tables:
        names = table.label_names().tolist()
        table = numbered(table, len(truth))
        truth += names
        began = int(table.time[0]) if began < 0 else began
        last = int(table.time.max())
        at = 0
        for outcome in detector.take(0, Arrival(table, None, time.monotonic(), last)):
            if detector.generation or not settings.warmup.records:
                _count(done, outcome.verdicts.verdict, names[at : at + len(outcome.rows)])
            at += len(outcome.rows)
            for event in outcome.events:
                if isinstance(event, AlertEvent):
                    first = int(event.alert.first_record.split(":")[1])
                    done.alerts[event.alert.id] = (event.alert, truth[first], (last - began) / HOUR_NS)
    done.records, done.hours, done.warm = len(truth), (last - began) / HOUR_NS, not detector.warming
    return done


def _count(done: Replay, verdict: np.ndarray[Any, Any], names: list[str]) -> None:
    done.by_label.update(names)
    for counts, which in (
        (done.anomalous, (KNOWN_ATTACK, NOVEL)),
        (done.novel, (NOVEL,)),
        (done.known, (KNOWN_ATTACK,)),
    ):
        counts.update(names[i] for i in np.flatnonzero(np.isin(verdict, which)).tolist())


def of_capture(paths: Sequence[Path], schema: str, labels: Path | None = None) -> Iterator[Table]:
    """The connections of captures, with their labels."""
    return iter(
        CaptureReader(
            paths, load_schema(schema), labels=None if labels is None else load_labels(labels), checksum=False
        )
    )


def of_records() -> Iterator[Table]:
    """Records of schema kdd, of a day that no shipped model has seen, with attacks."""
    table = simulate(100_000, seed=7302, day=40, attacks=(*KNOWN, *HELD_BACK), attack_share=0.1).table()
    for at in range(0, len(table), 8192):
        yield table[at : at + 8192]


def in_office(path: Path, rules: LabelRules, schema: str, office: Path) -> Iterator[Table]:
    """A capture's connections among those of an office; only its own have a label, `ordinary` if it is no attack."""
    alone = np.concatenate(list(flow_records(CaptureFile(path), FlowTable())))
    own = rules.for_file(path)
    labels = [name if name not in NO_ATTACK else "ordinary" for name in np.array(own.names)[own.labels_of(alone)]]
    shift = capture_span(office)[0] + LEAD_NS - capture_span(path)[0]
    exactly = LabelRules()
    exactly.add_connections(alone, labels, shift)
    blocks = merge_captures([CaptureFile(office), CaptureFile(path, offset_ns=shift)])
    for table, _ in tables_of(flow_records(blocks, FlowTable()), schema, exactly):
        yield table


def site(models: Sequence[str], settings: Config) -> list[dict[str, Any]]:
    """A site of its own: what is found of each attack and flagged of ordinary traffic, with and without warm-up."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, labels = Path(folder, "c.pcap"), Path(folder, "c.csv")
        simulate_capture(path, labels, hours=24, seed=7301, hosts=30, attacks="all", start="2024-03-05T00:00:00Z")
        for name in models:
            model = load(name)
            for warmed in (False, True):
                used = settings if warmed else config(0, 2, settings.window.referent_window)
                schema = model.encoding.schema.name
                tables = of_records() if schema == "kdd" else of_capture([path], schema, labels)
                done = replay(model, tables, used)
                kinds = sorted(set(done.by_label) - set(NO_ATTACK))
                false = [a for a, truth, _ in done.alerts.values() if truth in NO_ATTACK]
                row = {
                    "model": name, "warm-up": settings.warmup.records if warmed else 0, "records": done.records,
                    "flagged": done.share(done.anomalous, ["normal"]), "known": done.share(done.known, ["normal"]),
                    "false alerts an hour": len(false) / done.hours,
                    "of 3 records and more": sum(a.records >= 3 for a in false) / done.hours,
                    "alerts on attacks": len(done.alerts) - len(false),
                    "found": {kind: round(done.share(done.anomalous, [kind]), 3) for kind in kinds},
                }  # fmt: skip
                rows.append(row)
                show(row)
    return rows


def week(models: Sequence[str], settings: Config) -> list[dict[str, Any]]:
    """Seven days without attacks."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.pcap")
        simulate_capture(path, None, hours=168, seed=6101, hosts=15, attacks="none", start="2024-02-12T00:00:00Z")
        for name in models:
            model = load(name)
            done = replay(model, of_capture([path], model.encoding.schema.name), settings)
            days = Counter(int(hours // 24) for *_, hours in done.alerts.values())
            severities = Counter(alert.severity for alert, *_ in done.alerts.values())
            row = {
                "model": name, "records": done.records, "flagged": done.share(done.anomalous, [""]),
                "known": done.share(done.known, [""]), "alerts a day": [days[d] for d in range(7)],
                "of 3 records and more": sum(a.records >= 3 for a, *_ in done.alerts.values()) / 7,
                "severities": dict(severities),
            }  # fmt: skip
            rows.append(row)
            show(row)
    return rows


def captures(models: Sequence[str], settings: Config, folder: Path) -> list[dict[str, Any]]:
    """The shared captures: alone, as `netclust watch` sees them, and in an office that the detector is used to."""
    rules = load_labels(HERE / "pcap-labels.csv")
    paths = [Path(path) for path in list_captures(sorted(p for p in (folder / "pcap").iterdir() if p.is_dir()))]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    looked = next((digest for digest in digests if digest in TEST_SETS), "")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        offices: dict[int, Path] = {}
        for name in models:
            model = load(name)
            schema = model.encoding.schema.name
            record_look(f"benchmarks/quiet.py captures, model {name}", looked, rows=2, draws=1)
            for path in paths:
                first, last = capture_span(path)
                hours = 2 if last - first < HOUR_NS else min(1 + -(-(last - first) // HOUR_NS), MAX_HOURS)
                if hours not in offices:
                    offices[hours] = Path(temporary, f"{hours}.pcap")
                    start = "2024-02-20T10:00:00Z"
                    simulate_capture(offices[hours], None, hours=hours, seed=6201, attacks="none", start=start)
                alone = replay(model, of_capture([path], schema), settings)
                mixed = replay(model, in_office(path, rules, schema, offices[hours]), settings)
                kinds = sorted(set(mixed.by_label) - {""})
                mine = [a for a, truth, _ in mixed.alerts.values() if truth in kinds]
                attacks = [kind for kind in kinds if kind != "ordinary"]
                row = {
                    "model": name, "capture": path.name, "hours": (last - first) / HOUR_NS, "records": alone.records,
                    "alone, alerts": len(alone.alerts), "attacks": sum(mixed.by_label[kind] for kind in attacks),
                    "attack records flagged": mixed.share(mixed.anomalous, attacks),
                    "ordinary records flagged": mixed.share(mixed.anomalous, ["ordinary"]),
                    "alerts": len(mine), "on attacks": sum(mixed.alerts[a.id][1] in attacks for a in mine),
                    "office's own": len(mixed.alerts) - len(mine),
                }  # fmt: skip
                rows.append(row)
                show(row)
    return rows


def load(name: str) -> Model:
    return load_shipped(name) if name in shipped_models() else Model.load(name)


def show(row: dict[str, Any]) -> None:
    parts = (f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
    print("; ".join(parts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("site", "week", "captures"))
    parser.add_argument("--model", action="append", help="default: flow; site: every shipped one of captures")
    parser.add_argument("--warmup", type=int, default=4000)
    parser.add_argument("--references", type=int, default=2000)
    parser.add_argument("--window", type=int, default=100)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("NETCLUST_DATA") or "../shared/datasets"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    models = given.model or (["flow", "conn", "kdd"] if given.what == "site" else ["flow"])
    settings = config(given.warmup, given.references, given.window)
    if given.what == "captures":
        rows = captures(models, settings, given.data)
    else:
        rows = {"site": site, "week": week}[given.what](models, settings)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
