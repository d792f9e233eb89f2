"""A soak of the daemon: twice the rated input for an hour, on one core, with bursts and floods.

    .venv/bin/python benchmarks/soak.py [--seconds 3600] [--rate 40000] [--folder FOLDER] [--name soak]

Three writers send records over TCP. Every record that was sent must be read, and judged or counted as dropped; memory
must not grow; the 99th percentile of latency stays under a second. Exit code 1 where one of these fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import save
from daemon_rate import RATED, SOCKET
from loading import (
    PRIORITY,
    WARM_UP,
    Phase,
    PinnedDaemon,
    Watch,
    Watched,
    balance,
    feed,
    latency_counts,
    make_pools,
    pinned,
    quantile,
    total,
    until_drained,
)

TIMES_RATED = 2
MINUTE: tuple[Phase, ...] = (
    (20.0, 0.9, "mixed"),
    (2.0, 2.0, "mixed"),
    (18.0, 0.9, "normal"),
    (10.0, 1.0, "flood"),
    (2.0, 2.0, "flood"),
    (8.0, 0.975, "mixed"),
)
"""Seconds, multiple of the rate, pool: on average the rate, with two bursts of twice as much."""
QUICK_SOCKET = f"{SOCKET}[warmup]\nrecords = 1000\nreferences = 500\n"
QUICK_WARM_UP: Phase = (1.0, 1500, "normal")
FLAT_MB_AN_HOUR = 1.0
MAX_PAUSE = 0.2
MAX_LATENCY = 1.0


def plan(seconds: float, rate: float, warm_up: Phase = WARM_UP) -> list[Phase]:
    """The warm-up, then minutes; a soak of less than one squeezes it."""
    minutes = max(1, round(seconds / 60))
    squeeze = min(1.0, seconds / 60)
    return [
        warm_up,
        *((length * squeeze, times * rate, pool) for _ in range(minutes) for length, times, pool in MINUTE),
    ]


def soak(folder: Path, seconds: float, rate: float, *, quick: bool = False) -> dict[str, Any]:
    """Run it; everything that was seen, and whether it is as it must be. `quick`: a short warm-up, looks more often."""
    scrape, memory = (1.0, 0.5) if quick else (5.0, 10.0)
    source, warm_up = (QUICK_SOCKET, QUICK_WARM_UP) if quick else (SOCKET, WARM_UP)
    folder.mkdir(parents=True, exist_ok=True)
    pools = make_pools(folder, *((4000, 1) if quick else (50_000, 4)))
    with PinnedDaemon(folder / "daemon", source) as daemon:
        daemon.ready()
        cpu = daemon.cpu_seconds()
        with Watch(daemon, scrape=scrape, memory=memory) as seen:
            fed = feed(daemon.feed_port, pools, plan(seconds, rate, warm_up))
        cpu = daemon.cpu_seconds() - cpu
        end = until_drained(daemon, fed.sent)
        peak = daemon.peak_rss()
        code = daemon.stop()
    found = balance(end)
    return checked({
        "asked_records_per_second": rate,
        "times_rated": round(rate / RATED["records_per_second"], 2),
        "seconds": round(fed.seconds, 1),
        "sent": fed.sent,
        **found,
        "shed_share": round(found["shed"] / max(found["read"], 1), 5),
        "sent_per_second": round(fed.sent / fed.seconds),
        "verdicts_per_second": round(found["verdicts"] / fed.seconds),
        "latency": latency(seen, end, rate),
        "memory": {**slope(seen.memory), "peak_mb": round(peak / 2**20, 1)},
        "cpu_share": round(cpu / fed.seconds, 3),
        "cpu_microseconds_a_record": round(cpu / max(found["verdicts"], 1) * 1e6, 2),
        "checkpoints": {
            "written": total(end, 'netclust_checkpoints_total{result="ok"}'),
            "failed": total(end, 'netclust_checkpoints_total{result="failed"}'),
            "longest_pause_seconds": round(
                max(s.get("netclust_checkpoint_pause_seconds", 0.0) for s in [*seen.samples, end]), 4
            ),
            "longest_write_seconds": round(
                max(s.get("netclust_checkpoint_seconds", 0.0) for s in [*seen.samples, end]), 3
            ),
        },
        "alerts": {
            "opened": total(end, "netclust_alerts_opened_total"),
            "closed": total(end, "netclust_alerts_closed_total"),
            "open": total(end, "netclust_alerts_open"),
            "lines_written": _lines(folder / "daemon" / "alerts.jsonl"),
            "sink_errors": total(end, "netclust_sink_errors_total"),
        },
        "scrapes": len(seen.samples),
        "problems": seen.problems[:20],
        "exit_code": code,
        "pinned": bool(pinned(0)),
        "priority": PRIORITY if os.geteuid() == 0 else 0,
    })  # fmt: skip


def checked(body: dict[str, Any]) -> dict[str, Any]:
    """What must hold, beside what was found."""
    body["holds"] = {
        "every_record_sent_was_read": body["sent"] == body["read"],
        "every_record_read_was_judged_or_counted_as_dropped": body["read"] == body["verdicts"] + body["shed"],
        "no_input_errors": body["input_errors"] == 0,
        "memory_is_flat": body["memory"]["flat"],
        "p99_latency_below_1_s": body["latency"]["p99_seconds"] < MAX_LATENCY,
        "p99_latency_below_1_s_in_every_minute": body["latency"]["worst_minute_p99_seconds"] < MAX_LATENCY,
        "checkpoint_pause_below_200_ms": body["checkpoints"]["longest_pause_seconds"] < MAX_PAUSE,
        "stopped_in_order": body["exit_code"] == 0,
    }
    return body


def latency(seen: Watched, end: dict[str, float], rate: float) -> dict[str, Any]:
    """From the daemon's histogram: over all, and in the worst minute; and what bytes waited in the kernel before."""
    counts = [latency_counts(sample) for sample in [*seen.samples, end]]
    times = [*seen.times, seen.times[-1] + 1.0] if seen.times else [0.0]
    windows = []
    for i, began in enumerate(times):
        j = next((k for k in range(i, len(times)) if times[k] >= began + 60), None)
        if j is None:
            break
        windows.append(quantile(0.99, counts[j], counts[i]))
    whole = counts[-1]
    worst = max([w for w in windows if not math.isnan(w)], default=quantile(0.99, whole))
    waited = sorted(waiting for _, waiting in seen.waiting) or [0]
    return {
        **{f"p{100 * q:g}_seconds": round(quantile(q, whole), 3) for q in (0.5, 0.95, 0.99, 0.999)},
        "worst_minute_p99_seconds": round(worst, 3),
        "above_1_second": round(whole[math.inf] - whole[1.0]),
        "buckets": {f"{bound:g}": round(count) for bound, count in sorted(whole.items())},
        "kernel_queue_bytes_p99": waited[int(0.99 * (len(waited) - 1))],
        "kernel_queue_bytes_max": waited[-1],
    }


def slope(memory: Sequence[tuple[float, int]]) -> dict[str, Any]:
    """Resident memory over the second half: a straight line by least squares, and how sure its slope is.

    Flat: it does not rise, or by less than two standard errors, or by less than FLAT_MB_AN_HOUR. Samples lie on each
    other's heels, so the error is made from means of blocks, which do so less.
    """
    half = memory[len(memory) // 2 :]
    times, sizes = np.array([t for t, _ in half]) / 3600, np.array([s for _, s in half]) / 2**20
    if len(half) < 6:
        return {"mb": round(float(sizes[-1]), 1) if len(sizes) else 0.0, "flat": True, "too_few_samples": len(half)}
    blocks = min(len(half) // 2, 12)
    times, sizes = (np.array([part.mean() for part in np.array_split(a, blocks)]) for a in (times, sizes))
    at, level = times - times.mean(), sizes - sizes.mean()
    rise = float(at @ level / (at @ at))
    error = math.sqrt(float(((level - rise * at) ** 2).sum()) / max(blocks - 2, 1) / float(at @ at))
    falls, within, small = rise <= 0, rise <= 2 * error, rise < FLAT_MB_AN_HOUR
    return {
        "mb_at_start": round(memory[0][1] / 2**20, 1),
        "mb_at_half": round(half[0][1] / 2**20, 1),
        "mb": round(half[-1][1] / 2**20, 1),
        "slope_mb_per_hour": round(rise, 3),
        "standard_error_mb_per_hour": round(error, 3),
        "flat": within or small,
        "because": "it does not rise"
        if falls
        else "within two standard errors"
        if within
        else "below 1 MB an hour"
        if small
        else "it rises",
        "every_ten_minutes_mb": [round(size / 2**20, 1) for _, size in memory[:: max(len(memory) // 7, 1)]],
    }


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def main() -> None:
    parser = argparse.ArgumentParser(description="A soak of the daemon.")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rate", type=float, default=float(TIMES_RATED * RATED["records_per_second"]))
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--name", default="soak", help="Of the file in benchmarks/results.")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        body = soak(folder, options.seconds, options.rate)
    save(options.name, body)
    if not all(body["holds"].values()):
        print(json.dumps([name for name, holds in body["holds"].items() if not holds]), file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
