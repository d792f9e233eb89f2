"""A record format of one's own, from schema file to verdicts: train on last week's door openings, judge today's.

Run it: `python examples/doors.py [FOLDER]`. The CSV files that it makes up go to that folder, or to a temporary one.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import VERDICTS
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.records.reader import RecordReader, read_table
from netclust.records.schema import load_schema

SCHEMA = Path(__file__).with_name("doors.toml")


def write_openings(path: Path, days: int, seed: int, strange: float) -> None:
    """Made-up door openings: office hours, short; some doors held open, some visits at night."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        names = ["time", "reader", "address", "minutes_since_midnight", "seconds_open", "zone", "weekend", "verdict"]
        out.writerow(names)
        for day in range(days):
            rows = []
            for _ in range(400):
                kind = rng.choice(["ok", "held_open", "night_visit"], p=[1 - strange, strange / 2, strange / 2])
                minute = rng.normal(720, 150) if kind != "night_visit" else rng.normal(150, 40)
                minute = float(np.clip(minute, 0, 1439))
                seconds = rng.lognormal(1.5, 0.5) if kind != "held_open" else rng.lognormal(5, 0.5)
                zone = rng.choice(["lobby", "office", "lab"], p=[0.5, 0.4, 0.1])
                door = int(rng.integers(1, 9))
                rows.append((minute, seconds, zone, door, kind))
            for minute, seconds, zone, door, kind in sorted(rows):
                when = datetime(2026, 1, 5) + timedelta(days=day, minutes=minute)
                address, weekend = f"10.0.0.{door}", int(when.weekday() >= 5)
                out.writerow(
                    [when.isoformat(), f"door-{door}", address, int(minute), f"{seconds:.1f}", zone, weekend, kind]
                )


def main(keep: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        past, today = Path(keep or folder, "past.csv"), Path(keep or folder, "today.csv")
        write_openings(past, days=7, seed=1, strange=0.1)
        write_openings(today, days=1, seed=2, strange=0.05)
        schema = load_schema(SCHEMA)
        model = train_network(read_table(past, schema), TrainParams(reference_size=200, false_alarm_rate=0.02))
        linker = Linker(model, LinkerConfig(referent_window=100, mature_after=3600, partitions=4))
        for table in RecordReader(today, schema):
            batch = model.encoding.encode(table, linker.labels)
            verdicts = linker.process(batch)
            for i in np.flatnonzero(verdicts.anomalous)[:10]:
                about = f"{batch.context['reader'][i]} at {np.datetime64(int(batch.time[i]), 'ns').astype('M8[m]')}"
                what = f"{VERDICTS[verdicts.verdict[i]]} ({linker.labels.name(int(verdicts.label[i]))})"
                truth = linker.labels.name(int(batch.label[i]))
                print(f"{about}: {what}, linked to {verdicts.referent(i)}; truly {truth}")
            right = verdicts.anomalous == ~linker.labels.is_normal[batch.label]
            print(f"{len(batch)} openings, {verdicts.anomalous.sum()} anomalous, {right.mean():.1%} judged rightly")


if __name__ == "__main__":
    main(*sys.argv[1:2])
