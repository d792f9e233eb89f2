"""What the load measurements share: a daemon on one core, somebody who feeds it from another, and how it is watched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import ROOT

sys.path.insert(0, str(ROOT / "tests" / "helpers"))
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "streams"))  # the same daemon process as the tests'

from daemon_process import DaemonProcess, free_port

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.stream.config import WarmupConfig

DAEMON_CORE, OTHER_CORE = 0, 1
PRIORITY = -10
LATENCY = "netclust_verdict_latency_seconds"
FLOODS = ("syn_flood", "udp_flood", "icmp_flood", "http_flood")

Sample = Mapping[str, float]
Phase = tuple[float, float, str]
"""Seconds, records a second, pool."""
WARM_UP: Phase = (6.0, WarmupConfig().records / 5, "normal")
"""A little more than the site is learned from."""


class PinnedDaemon(DaemonProcess):
    """`netclust run`, all its threads on one core, with defaults: `settings` are more of [daemon], a line each."""

    def __init__(self, folder: Path, source: str, settings: str = "", prefix: Sequence[str] = ()) -> None:
        self.prefix = list(prefix)
        self.feed_port = free_port()
        self._source, self._settings = source, settings
        super().__init__(folder, "")

    def write(self, config: str) -> None:
        folder = self.folder
        self.config.write_text(
            f'[daemon]\nstate_dir = "{folder}/state"\n{self._settings}[http]\nlisten = "127.0.0.1:{self.port}"\n'
            f'[[sink]]\nkind = "jsonl"\npath = "{folder}/alerts.jsonl"\n'
            f"{self._source.format(port=self.feed_port)}\n"
        )

    def start(self, **environment: str) -> PinnedDaemon:
        command = [
            *self.prefix, *pinned(DAEMON_CORE), sys.executable, "-m", "netclust", "run", "--config", str(self.config),
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stderr=log, stdout=log, stdin=subprocess.DEVNULL, env={**os.environ, **environment},
                start_new_session=True,
            )  # fmt: skip
        put_first(self.process.pid)
        return self

    @property
    def pid(self) -> int:
        """Of the daemon itself: what is before it in the command replaces itself by it."""
        if self.process is None:
            raise RuntimeError("it was not started")
        return self.process.pid

    def rss(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def peak_rss(self) -> int:
        """The most that was resident."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024

    def cpu_seconds(self) -> float:
        """Used by all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kernel_queue(self) -> int:
        """Bytes that the kernel has taken for the daemon's socket and the daemon has not read."""
        port = f":{self.feed_port:04X}"
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return sum(int(f[4].split(":")[1], 16) for f in lines if f[1].endswith(port) and f[3] != "0A")


def pinned(core: int) -> list[str]:
    """The beginning of a command that stays on a core; none where there is but one."""
    return ["taskset", "-c", str(core)] if (os.cpu_count() or 1) > core else []


def put_first(pid: int) -> bool:
    """Let a process that leads a session come before others on its core, where that is allowed; whether it does."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, PRIORITY)
        group = Path(f"/proc/{pid}/autogroup")  # the kernel weighs sessions first, where it has this
        if group.exists():
            group.write_text(str(PRIORITY))
    except OSError:
        return False
    return True


def total(sample: Sample, name: str) -> int:
    """The sum of a counter over its labels."""
    return round(sum(value for key, value in sample.items() if key == name or key.startswith(name + "{")))


def balance(sample: Sample) -> dict[str, int]:
    """What became of the records, as /metrics says."""
    return {
        "read": total(sample, "netclust_records_total"),
        "verdicts": total(sample, "netclust_verdicts_total"),
        "shed": total(sample, "netclust_records_shed_total"),
        "input_errors": total(sample, "netclust_input_errors_total"),
    }


def is_drained(sample: Sample, sent: int) -> bool:
    """Return whether every record that was sent was read, and is judged or counted as dropped."""
    found = balance(sample)
    return found["read"] >= sent and found["read"] == found["verdicts"] + found["shed"]


def latency_counts(sample: Sample) -> dict[float, float]:
    """Cumulative counts by upper bound, of the latency histogram."""
    head = f'{LATENCY}_bucket{{le="'
    return {float(key[len(head) : -2]): value for key, value in sample.items() if key.startswith(head)}


def quantile(q: float, after: Mapping[float, float], before: Mapping[float, float] | None = None) -> float:
    """As Prometheus reckons it: within a bucket in proportion; NaN where nothing was observed."""
    bounds = sorted(after)
    counts = [after[b] - (before or {}).get(b, 0.0) for b in bounds]
    if not counts or counts[-1] <= 0:
        return float("nan")
    rank, low, below = q * counts[-1], 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=True):
        if count >= rank:
            if bound == float("inf"):
                return low
            return low + (bound - low) * (rank - below) / max(count - below, 1e-12)
        low, below = bound, count
    return low


@dataclass(eq=False)
class Watched:
    """What was seen of a daemon while it was fed."""

    times: list[float] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    waiting: list[tuple[float, int]] = field(default_factory=list)  # bytes in the kernel
    problems: list[str] = field(default_factory=list)


class Watch:
    """Looks at a daemon from a thread: /metrics, memory, and what waits in the kernel, each at its own pace."""

    def __init__(self, daemon: PinnedDaemon, *, scrape: float = 5.0, memory: float = 10.0) -> None:
        self.seen = Watched()
        self._daemon = daemon
        self._scrape, self._memory = scrape, memory
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watched:
        self._began = time.monotonic()
        self._thread.start()
        return self.seen

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        scraped = measured = -1e9
        while not self._end.is_set():
            now = time.monotonic() - self._began
            try:
                if now - scraped >= self._scrape:
                    scraped = now
                    if sample := self._daemon.metrics():
                        self.seen.samples.append(sample)
                        self.seen.times.append(now)
                if now - measured >= self._memory:
                    measured = now
                    self.seen.memory.append((now, self._daemon.rss()))
                self.seen.waiting.append((now, self._daemon.kernel_queue()))
            except (OSError, ValueError) as error:
                self.seen.problems.append(f"{now:.0f} s: {error}")
            self._end.wait(0.5)


@dataclass(frozen=True)
class Fed:
    """What the feeder says."""

    sent: int
    seconds: float
    phases: list[dict[str, Any]]


def start_feeder(
    port: int, pools: Mapping[str, Path], plan: Sequence[Phase], writers: int = 3
) -> subprocess.Popen[str]:
    """Begin to feed from the other core."""
    order = {"port": port, "writers": writers, "pools": {n: str(p) for n, p in pools.items()}, "plan": plan}
    command = [
        *pinned(OTHER_CORE),
        sys.executable,
        str(Path(__file__).with_name("load_feeder.py")),
        json.dumps(order),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    put_first(process.pid)
    return process


def feed(port: int, pools: Mapping[str, Path], plan: Sequence[Phase], writers: int = 3) -> Fed:
    """Feed until the plan is done."""
    with start_feeder(port, pools, plan, writers) as process:
        said = process.communicate()[0].splitlines()
    if process.returncode:
        raise RuntimeError(f"the feeder ended with {process.returncode}")
    *phases, whole = [json.loads(line) for line in said]
    return Fed(whole["sent"], whole["seconds"], phases)


def make_pools(folder: Path, records: int = 50_000, days: int = 4) -> dict[str, Path]:
    """Lines of simulated days: normal traffic, a day's mix with a fifth of attacks of all types, and a flood."""
    made = {
        "normal": lambda day: simulate(records, seed=11, day=day, attacks=()),
        "mixed": lambda day: simulate(records, seed=12, day=day, attacks=(*KNOWN, *HELD_BACK), attack_share=0.2),
        "flood": lambda day: simulate(records, seed=13, day=day, attacks=FLOODS, attack_share=0.9),
    }
    return {
        name: _write(folder / f"{name}.txt", (make(day) for day in range(days)), name) for name, make in made.items()
    }


def _write(path: Path, streams: Iterator[Any], name: str) -> Path:
    with path.open("w", encoding="ascii") as file:
        for stream in streams:
            for line, label in zip(stream.lines(), stream.label.tolist(), strict=True):
                if name != "flood" or label != "normal":
                    file.write(line + "\n")
    return path


def until_drained(daemon: PinnedDaemon, sent: int) -> dict[str, float]:
    """Wait for the last verdict; return the metrics then."""
    found: dict[str, float] = {}

    def done() -> bool:
        nonlocal found
        found = daemon.metrics()
        time.sleep(0.1)
        return is_drained(found, sent)

    daemon.until(done, f"{sent} records to be judged or dropped")
    return found
