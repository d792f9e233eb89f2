"""How quiet the detector is: alerts on ordinary traffic, and how many alerts an attack makes.

    python benchmarks/quiet.py           # the week and the captures, into benchmarks/results/quiet.json (make quiet)
    python benchmarks/quiet.py week      # simulated weeks without attacks: alerts a day
    python benchmarks/quiet.py captures  # the shared captures, alone and in a simulated office; noted as a look
    python benchmarks/quiet.py site      # a simulated site that no shipped model has seen, with attacks (model cards)

`--model flow` (or conn, kdd, a file), `--data FOLDER`, `--told FILE` for the alerts of the captures as people see them.
A part alone is printed only.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from common import data_folder, save

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.linking.verdicts import KNOWN_ATTACK, NOVEL
from netclust.models.experiments.captures.capture_cases import capture_span
from netclust.models.test_set_ledger import TEST_SETS, record_test_use
from netclust.records.schema import load_schema
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.shipped.loading import load_shipped, shipped_models
from netclust.stream.alerts.alert_events import Alert, AlertEvent, Event, Notice
from netclust.stream.commands.run_watch import configured
from netclust.stream.config import Config, parse_config
from netclust.stream.detection.detector import Detector
from netclust.stream.packets.capture_files import CaptureFile, list_captures, merge_captures
from netclust.stream.packets.capture_labels import LabelRules, load_labels
from netclust.stream.packets.capture_reader import CaptureReader, capture_tables, flow_records
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.sinks.terminal import Terminal
from netclust.stream.sources.base import Arrival, numbered

HERE = Path(__file__).resolve().parent
SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS
NO_ATTACK = ("", "normal", "unknown", "ordinary")
DAYS = 7
WEEK_SEEDS = (8101, 8102, 8103)  # of sites that nothing was fitted or chosen on
OFFICE_SEED = 8201
LEAD_HOURS = 3  # of the office's own traffic before a capture's begins: longer than the warm-up
GAP_NS = 60 * SECOND_NS  # a longer gap between packets is no traffic: two captures' clocks leap by years
MAX_HOURS = 48  # a capture that seems to last longer has such a clock

DAEMON = parse_config('[[source]]\nkind = "capture"\npath = "-"\n')
WATCH = configured(
    "-", kind="capture", follow=False, model="", schema="", warmup=None, bpf="", json="", http="", state=""
)


@dataclass
class ReportedAlert:
    """An alert as it was last reported, and the true labels of the records that it names."""

    alert: Alert
    truth: set[str]
    opened: int  # the place of the record that opened it
    lines: str  # as a terminal shows it

    def about(self, labels: Iterable[str]) -> bool:
        return not self.truth.isdisjoint(labels)


@dataclass
class Replay:
    """What came of a replay. Verdicts of the warm-up are not counted, its alerts are."""

    truth: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    warm_at: int | None = None
    held: int = 0  # anomalous records that were not told in the warm-up
    by_label: Counter[str] = field(default_factory=Counter)
    anomalous: Counter[str] = field(default_factory=Counter)
    novel: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    alerts: dict[str, ReportedAlert] = field(default_factory=dict)

    @property
    def hours(self) -> float:
        return (max(self.times) - self.times[0]) / HOUR_NS

    def share(self, counts: Counter[str], labels: Iterable[str]) -> float:
        total = sum(self.by_label[name] for name in labels)
        return sum(counts[name] for name in labels) / total if total else 0.0


def replay(model: Model, tables: Iterable[Table], settings: Config) -> Replay:
    """Tables through the detector, as the daemon does it."""
    detector, done, terminal = Detector(model, settings), Replay(), _Lines()
    if not detector.warming:
        done.warm_at = 0
    for table in tables:
        names = table.label_names().tolist()
        at = len(done.truth)
        table = numbered(table, at)
        done.truth += names
        done.times += table.time.tolist()
        for outcome in detector.take(0, Arrival(table, None, time.monotonic(), int(table.time.max()))):
            if done.warm_at is not None:
                _count(done, outcome.verdicts.verdict, done.truth[at : at + len(outcome.rows)])
            at += len(outcome.rows)
            if done.warm_at is None and any(_ends_warmup(event) for event in outcome.events):
                done.warm_at = at
            _report(done, outcome.events, terminal)
    _report(done, detector.finish(), terminal)
    done.held = detector.counters["not_told_in_warmup"]
    return done


def _ends_warmup(event: Event) -> bool:
    return isinstance(event, Notice) and event.topic == "warmup" and not event.key.startswith("warmup-failed")


class _Lines:
    """What a terminal shows of an event."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self._terminal = Terminal(stream=self._stream, width=110)

    def of(self, event: Event) -> str:
        self._stream.seek(0)
        self._stream.truncate()
        self._terminal.write([event])
        return self._stream.getvalue()


def _report(done: Replay, events: Sequence[Event], terminal: _Lines) -> None:
    for event in events:
        if not isinstance(event, AlertEvent):
            continue
        alert = event.alert
        named = [int(record.split(":")[1]) for record in (*alert.record_ids, alert.first_record, alert.last_record)]
        told = done.alerts.setdefault(alert.id, ReportedAlert(alert, set(), named[-1], ""))
        told.alert = msgspec.structs.replace(alert)
        told.truth |= {done.truth[record] for record in named}
        told.lines += terminal.of(event)


def _count(done: Replay, verdict: np.ndarray[Any, Any], names: list[str]) -> None:
    done.by_label.update(names)
    for counts, which in (
        (done.anomalous, (KNOWN_ATTACK, NOVEL)),
        (done.novel, (NOVEL,)),
        (done.known, (KNOWN_ATTACK,)),
    ):
        counts.update(names[i] for i in np.flatnonzero(np.isin(verdict, which)).tolist())


# Traffic


def of_capture(paths: Sequence[Path], schema: str, labels: LabelRules | None = None) -> Iterator[Table]:
    """The connections of captures, with their labels."""
    return iter(CaptureReader(paths, load_schema(schema), labels=labels, checksum=False))


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
    shift = capture_span(office)[0] + LEAD_HOURS * HOUR_NS - capture_span(path)[0]
    exactly = LabelRules()
    exactly.add_connections(alone, labels, shift)
    blocks = merge_captures([CaptureFile(office), CaptureFile(path, offset_ns=shift)])
    for table, _ in capture_tables(flow_records(blocks, FlowTable()), schema, exactly):
        yield table


def traffic_hours(path: Path) -> float:
    """How long a capture's traffic lasts: gaps of a minute and more between packets are left out."""
    times = np.concatenate([block.index["time"].copy() for block in CaptureFile(path)])  # blocks share their memory
    gaps = np.diff(np.sort(times))
    return float(gaps[gaps < GAP_NS].sum()) / HOUR_NS


# The parts


def week(model: Model) -> dict[str, Any]:
    """Weeks of sites without attacks, with the daemon's defaults."""
    patient = msgspec.structs.replace(DAEMON, alerts=msgspec.structs.replace(DAEMON.alerts, min_records=3))
    sites = []
    for seed in WEEK_SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "c.pcap")
            simulate_capture(
                path, None, hours=24 * DAYS, seed=seed, hosts=15, attacks="none", start="2024-02-12T00:00:00Z"
            )
            schema = model.encoding.schema.name
            all_of_them = replay(model, of_capture([path], schema), DAEMON)
            of_three = replay(model, of_capture([path], schema), patient)
        row = {
            "seed": seed,
            "records": len(all_of_them.truth),
            "warm after hours": _hours_since(all_of_them, all_of_them.warm_at or 0),
            "flagged": all_of_them.share(all_of_them.anomalous, [""]),
            "flagged as a known attack": all_of_them.share(all_of_them.known, [""]),
            "alerts a day": _by_day(all_of_them),
            "alerts a day, min_records 3": _by_day(of_three),
            "severities": dict(Counter(told.alert.severity for told in all_of_them.alerts.values())),
            "labels": dict(Counter(told.alert.label for told in all_of_them.alerts.values()).most_common()),
        }
        sites.append(row)
        show(row)
    sums = {}
    for name in ("alerts a day", "alerts a day, min_records 3"):
        days = np.array([row[name] for row in sites], float)
        sums[name] = {
            "mean": days.mean(), "least": days.min(), "most": days.max(),
            "deviation over days": days.std(ddof=1), "means of the sites": days.mean(axis=1).tolist(),
        }  # fmt: skip
    return {"hosts": 15, "days": DAYS, **sums, "sites": sites}


def _hours_since(done: Replay, place: int) -> float:
    return (done.times[min(place, len(done.times) - 1)] - done.times[0]) / HOUR_NS


def _by_day(done: Replay) -> list[int]:
    days = Counter(int(_hours_since(done, told.opened) // 24) for told in done.alerts.values())
    return [days[day] for day in range(DAYS)]


def captures(model: Model, folder: Path, told: Path | None) -> dict[str, Any]:
    """The shared captures: alone, as `netclust watch` sees them, and in an office that the daemon has warmed up on."""
    rules = load_labels(HERE / "pcap-labels.csv")
    paths = [Path(path) for path in list_captures(sorted(p for p in (folder / "pcap").iterdir() if p.is_dir()))]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    looked = next((digest for digest in digests if digest in TEST_SETS), "")
    record_test_use(f"benchmarks/quiet.py captures, model {model.encoding.schema.name}", looked, rows=2, draws=1)
    benign, attacks, lines, offices = [], [], "", {}
    with tempfile.TemporaryDirectory() as temporary:
        for path in paths:
            first, last = capture_span(path)
            lasts = -(-(last - first) // HOUR_NS)
            hours = LEAD_HOURS + (1 + lasts if 1 < lasts <= MAX_HOURS else 1)
            office = Path(temporary, f"{hours}.pcap")
            if not office.exists():
                simulate_capture(
                    office, None, hours=hours, seed=OFFICE_SEED, attacks="none", start="2024-02-20T08:00:00Z"
                )
            schema = model.encoding.schema.name
            alone = replay(model, of_capture([path], schema, rules.for_file(path)), WATCH)
            mixed = replay(model, in_office(path, rules, schema, office), DAEMON)
            kinds = sorted(set(alone.truth) - set(NO_ATTACK))
            row: dict[str, Any] = {"capture": path.name, "records": len(alone.truth)}
            if kinds:
                row |= {"attack records": sum(name in kinds for name in alone.truth), "kinds": kinds}
                row |= {"alone": _found(alone, kinds), "in an office": _found(mixed, kinds)}
                attacks.append(row)
            else:
                row |= {
                    "hours": traffic_hours(path), "clock leaps": lasts > MAX_HOURS, "alone": _raised(alone),
                    "in an office": _raised(mixed) | {"flagged": mixed.share(mixed.anomalous, ["ordinary"])},
                }  # fmt: skip
                benign.append(row)
            offices[hours] = _office(mixed)
            show(row)
            for way, done in (("alone", alone), ("in an office", mixed)):
                mine = [one.lines for one in done.alerts.values() if way == "alone" or one.about([*kinds, "ordinary"])]
                lines += f"== {path.name}, {way}\n" + "\n".join(mine)
    if told is not None:
        told.write_text(lines)
    return {
        "benign": {**_rates(benign), "captures": benign},
        "attacks": {**_tally(attacks), "captures": attacks},
        "offices": list(offices.values()),
    }


def _found(done: Replay, kinds: Sequence[str]) -> dict[str, Any]:
    """The alerts on an attack, and when the first came: in traffic time and records since the attack began."""
    mine = [told for told in done.alerts.values() if told.about(kinds)]
    places = [i for i, name in enumerate(done.truth) if name in kinds]
    row: dict[str, Any] = {
        "alerts": len(mine),
        "other alerts of the capture": sum(
            told.about(["ordinary", "normal", "unknown"]) and not told.about(kinds) for told in done.alerts.values()
        ),
        "warm": done.warm_at is not None and done.warm_at <= places[0],
        "not told in the warm-up": done.held,
        "flagged": done.share(done.anomalous, kinds) if done.warm_at is not None else None,
        "told": [
            {
                "label": told.alert.label, "severity": told.alert.severity, "records": told.alert.records,
                "entity kind": told.alert.entity_kind, "sources": told.alert.source_count,
                "destinations": told.alert.destination_count,
            }
            for told in sorted(mine, key=lambda told: told.opened)
        ],
    }  # fmt: skip
    if mine:
        opened = min(told.opened for told in mine)
        row["first after records"] = sum(place <= opened for place in places)
        row["first after seconds"] = max(done.times[opened] - done.times[places[0]], 0) / SECOND_NS
    return row


def _raised(done: Replay) -> dict[str, Any]:
    """The alerts on a capture without an attack. Records of the office around it have no label."""
    mine = [told for told in done.alerts.values() if told.about(["ordinary", "normal", "unknown"])]
    return {"alerts": len(mine), "labels": dict(Counter(f"{told.alert.label}, {told.alert.severity}" for told in mine))}


def _office(done: Replay) -> dict[str, Any]:
    """What the office's own traffic raised after the warm-up, up to its own end."""
    own = [told for told in done.alerts.values() if not told.truth - {""} and told.opened >= (done.warm_at or 0)]
    ends = max(t for t, name in zip(done.times, done.truth, strict=True) if not name)
    hours = (ends - done.times[done.warm_at or 0]) / HOUR_NS
    return {"hours": hours, "alerts": len(own), "flagged": done.share(done.anomalous, [""])}


def _rates(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    hours = sum(row["hours"] for row in rows)
    alerts = {way: sum(row[way]["alerts"] for row in rows) for way in ("alone", "in an office")}
    return {"hours": hours, "alerts": alerts, "alerts an hour": {way: n / hours for way, n in alerts.items()}}


def _tally(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    ways = ("alone", "in an office")
    return {
        "captures with none, one to three, and more alerts": {
            way: [
                sum(row[way]["alerts"] == 0 for row in rows),
                sum(1 <= row[way]["alerts"] <= 3 for row in rows),
                sum(row[way]["alerts"] > 3 for row in rows),
            ]
            for way in ways
        }
    }


def site(name: str) -> list[dict[str, Any]]:
    """A site of its own: what is found of each attack and flagged of ordinary traffic, by warm-up."""
    rows = []
    cold = msgspec.structs.replace(DAEMON, warmup=msgspec.structs.replace(DAEMON.warmup, records=0))
    model = load(name)
    schema = model.encoding.schema.name
    with tempfile.TemporaryDirectory() as folder:
        path, labels = Path(folder, "c.pcap"), Path(folder, "c.csv")
        if schema != "kdd":
            simulate_capture(path, labels, hours=24, seed=7301, hosts=30, attacks="all", start="2024-03-05T00:00:00Z")
        for settings in (cold, WATCH, DAEMON):
            tables = of_records() if schema == "kdd" else of_capture([path], schema, load_labels(labels))
            done = replay(model, tables, settings)
            kinds = sorted(set(done.by_label) - set(NO_ATTACK))
            false = [told.alert for told in done.alerts.values() if told.truth <= set(NO_ATTACK)]
            row = {
                "model": name, "warm-up": settings.warmup.records, "records": len(done.truth),
                "flagged": done.share(done.anomalous, ["normal"]), "known": done.share(done.known, ["normal"]),
                "false alerts an hour": len(false) / done.hours,
                "of 3 records and more": sum(a.records >= 3 for a in false) / done.hours,
                "alerts on attacks": len(done.alerts) - len(false),
                "found": {kind: round(done.share(done.anomalous, [kind]), 3) for kind in kinds},
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
    parser.add_argument("what", nargs="?", choices=("all", "site", "week", "captures"), default="all")
    parser.add_argument("--model", default="flow")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--told", type=Path, help="write the alerts of the captures here, as a terminal shows them")
    given = parser.parse_args()
    if given.what == "site":
        site(given.model)
        return
    if given.what != "week" and (given.data is None or not (given.data / "pcap").is_dir()):
        raise SystemExit("the captures were not found: set NETCLUST_DATA to the folder of the data sets")
    model = load(given.model)
    body: dict[str, Any] = {
        "model": {"name": given.model, "fingerprint": model.fingerprint},
        "daemon": msgspec.to_builtins(DAEMON.warmup) | {"referent_window": DAEMON.window.referent_window},
        "watch": msgspec.to_builtins(WATCH.warmup) | {"referent_window": WATCH.window.referent_window},
    }
    if given.what in ("all", "week"):
        body["week"] = week(model)
    if given.what in ("all", "captures"):
        body |= captures(model, given.data, given.told)
    if given.what == "all":
        save("quiet", body)


if __name__ == "__main__":
    main()
