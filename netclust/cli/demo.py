"""`netclust demo`: one minute with a simulated office, from learning what is usual to an answered alert.

Everything shown is computed: simulated packets go through the flow table, the shipped model and the daemon's detector,
and the answer is applied. True labels are compared with the verdicts afterwards; the detector never has them.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError
from netclust.options.output import echo
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.shipped.loading import load_shipped
from netclust.stream.alerts.alert_summary import summary_of
from netclust.stream.config import Config, SourceConfig, WarmupConfig
from netclust.stream.detection.answers import Answer
from netclust.stream.detection.detector import Detector
from netclust.stream.packets.capture_labels import load_labels
from netclust.stream.packets.capture_reader import CaptureReader
from netclust.stream.sinks.ecs import ecs_time
from netclust.stream.sources.base import Arrival, numbered

if TYPE_CHECKING:
    from netclust.stream.alerts.alert_events import Alert

SEED = 23
HOSTS = 12
SCHEMA = "flow"
SHOWN_ATTRIBUTES = 4
MEANING = {
    "src_flows": "connections of this source in a minute",
    "src_hosts": "hosts that it called in a minute",
    "src_ports": "ports that it called in a minute",
    "src_failed_rate": "share of them without success",
    "service": "by its port; high is above 1023",
    "dst_flows": "connections to this host in a minute",
    "dst_sources": "sources that called it in a minute",
    "dst_failed_rate": "share of them without success",
}


@dataclass(frozen=True)
class Period:
    """Some minutes of the simulated office."""

    name: str
    start: str
    minutes: int
    attack: str


USUAL = Period("1-usual", "2024-01-02T09:00:00Z", 11, "none")
TODAY = Period("2-today", "2024-01-02T09:11:00Z", 4, "port_scan")
LATER = Period("3-later", "2024-01-02T10:00:00Z", 3, "ssh_brute_force")


@dataclass(frozen=True, eq=False)
class Traffic:
    """The connections of a period without labels, and which of them the simulator made as an attack."""

    table: Table
    attack: NDArray[np.bool_]

    @property
    def attacks(self) -> int:
        """How many connections are an attack's."""
        return int(self.attack.sum())


def run_demo(keep: Path | None) -> None:
    """Run the demonstration; captures and their true labels stay in the folder `keep`, if it is given."""
    temporary = tempfile.TemporaryDirectory(prefix="netclust-demo-") if keep is None else nullcontext(_fresh(keep))
    echo("netclust demo: a simulated office, the model that comes with netclust, one attack.")
    echo("The first run compiles kernels for up to a minute. Later runs take a few seconds.")
    echo()
    _echo_now("1. Learn what is usual")
    with temporary as folder:
        usual, today, later = (_simulated(Path(folder), period) for period in (USUAL, TODAY, LATER))
    detector = _learn(usual)
    alert = _watch(detector, today, len(usual.table))
    _explain(alert)
    _answer(detector, alert, today, later)
    _next(keep, len(usual.table))


def _fresh(folder: Path) -> Path:
    """Make a folder that did not exist, so that nothing of anybody's is overwritten."""
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}): name a folder that does not exist") from None
    return folder


def _echo_now(line: str) -> None:
    """Print a line that is seen before the work that follows it, also where the output is piped."""
    echo(line)
    sys.stdout.flush()


def _simulated(folder: Path, period: Period) -> Traffic:
    """Simulate the packets of a period, and read the connections in them."""
    capture, labels = folder / f"{period.name}.pcap", folder / f"{period.name}.csv"
    simulate_capture(
        capture, labels, hours=period.minutes / 60, seed=SEED, hosts=HOSTS, start=period.start, attacks=period.attack,
        campaigns_per_hour=0.0,
    )  # fmt: skip
    table = concat_tables(list(CaptureReader([capture], load_schema(SCHEMA), labels=load_labels(labels))))
    return Traffic(replace(table, label=np.zeros_like(table.label)), table.label_names() != "normal")


def _learn(usual: Traffic) -> Detector:
    """Fit the shipped model to the office, as the daemon does with the first records of a site."""
    records = len(usual.table)
    config = Config(
        sources=(SourceConfig(kind="capture", name="demo", path="-"),),
        warmup=WarmupConfig(records=records, references=records // 2),
    )
    detector = Detector(load_shipped(SCHEMA), config)
    _take(detector, usual.table, 0)
    _echo_now(f"   {records} connections of {HOSTS} hosts in {USUAL.minutes} minutes, without labels.")
    return detector


def _take(detector: Detector, table: Table, first: int) -> NDArray[np.bool_]:
    """Run the detector over records, the first of which has the number `first`; return which are anomalous."""
    outcomes = detector.take(0, Arrival(numbered(table, first), None, 0.0))
    return np.concatenate([outcome.verdicts.anomalous for outcome in outcomes])


def _watch(detector: Detector, today: Traffic, first: int) -> Alert:
    """Show the alert of today, beside the truth."""
    anomalous = _take(detector, today.table, first)
    alert = max(detector.book.open_alerts, key=lambda each: each.records)
    alerts = (
        "Together they are one alert" if detector.book.opened == 1 else f"The largest of {detector.book.opened} alerts"
    )
    found, false = int((anomalous & today.attack).sum()), int((anomalous & ~today.attack).sum())
    echo()
    echo("2. Watch the next minutes")
    echo(f"   {len(anomalous)} connections, {found + false} of them anomalous. {alerts}:")
    echo()
    echo(f"   {(ecs_time(alert.first_seen) or '')[11:19]}  {alert.severity}  {summary_of(alert)}")
    echo()
    others = len(anomalous) - today.attacks
    echo(f"   The simulator hid {today.attacks} connections of a port scan among {others} others.")
    echo(f"   Reported: {found} of the scan, {false or 'none'} of the others.")
    return alert


def _explain(alert: Alert) -> None:
    """Show what makes the alert's example more like an attack than like anything normal."""
    echo()
    echo("3. See why this is an alert")
    echo(f"   It is nearer to a known {alert.label} than to any normal connection. What says so:")
    echo()
    echo(f"   {'attribute':16}{'here':>6}{'nearest normal':>16}{'adds':>8}   meaning")
    for part in sorted(alert.parts, key=lambda part: -part.contribution)[:SHOWN_ATTRIBUTES]:
        values = f"{_shown(part.value):>6}{_shown(part.normal):>16}{part.contribution:>+8.2f}"
        echo(f"   {part.name:16}{values}   {MEANING.get(part.name, '')}".rstrip())


def _shown(value: float | str | None) -> str:
    return f"{value:g}" if isinstance(value, float) else value or "-"


def _answer(detector: Detector, alert: Alert, today: Traffic, later: Traffic) -> None:
    """Apply the answer of an operator, and show what changes by it and what does not."""
    before = _reported(detector, today)
    answer = Answer(
        number=1, from_tick=detector.linker.tick, label=detector.linker.normal_label, clusters=tuple(alert.clusters),
        records=tuple(alert.record_ids), alert=alert.id,
    )  # fmt: skip
    detector.decide(answer)
    detector.take(0, Arrival(today.table[:0], None, 0.0))
    echo()
    echo("4. Answer it")
    echo(f"   Suppose that {alert.entity} is your own inventory scanner. You would type")
    echo(f"     netclust label {alert.id} normal")
    now = _reported(detector, today)
    echo("   The demo has just applied this answer; nothing was trained again. Reported now:")
    echo(f"   {now} of {today.attacks} connections of the same scan ({before} before the answer),")
    echo(f"   {_reported(detector, later)} of {later.attacks} connections of an SSH password attack, an hour later.")
    echo("   An answer covers what resembles the alert. A scan of another kind would be reported.")


def _reported(detector: Detector, traffic: Traffic) -> int:
    """Count the attack's connections that would be reported if the traffic came next; nothing is remembered."""
    batch = detector.model.encoding.encode(traffic.table, detector.linker.labels)
    return int((detector.linker.score_only(batch).anomalous & traffic.attack).sum())


def _next(keep: Path | None, warmup: int) -> None:
    echo()
    echo("Simulated traffic shows how netclust works, not how well. On your own network:")
    echo("   netclust watch FILE.pcap            a capture, a folder of them, a Zeek or EVE log")
    echo("   netclust watch FILE.pcap --console  the same in a browser")
    echo("   sudo netclust watch eth0            an interface")
    echo("   netclust --help                     everything else")
    if keep is not None:
        echo(f"The simulated traffic is in {keep}: netclust watch {shlex.quote(str(keep))} --warmup {warmup}")
