"""Daemons in processes of their own with what tests of faults and operations need: settings, records, and what came."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon_process import DaemonProcess
from namespaces import inside

from netclust.datasets.simulators.simulate import HELD_BACK, simulate

CHECKPOINT_SECONDS = 0.2


class Settled(DaemonProcess):
    """A daemon whose sections are given one by one; verdicts of all records go to `verdicts.jsonl`."""

    def __init__(
        self, folder: Path, source: str, *, more: str = "", daemon: str = "", http: str = "", warmup: int = 0
    ) -> None:
        self.parts = {"source": source, "more": more, "daemon": daemon, "http": http}
        self.warmup = warmup
        super().__init__(folder, "")
        self.settle()

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def verdict_log(self) -> Path:
        return self.folder / "verdicts.jsonl"

    def settle(self, **parts: str) -> None:
        """Write the configuration, with some parts changed."""
        self.parts |= parts
        daemon, http = self.parts["daemon"], self.parts["http"]
        state = "" if "state_dir" in daemon else f'state_dir = "{self.state}"\n'
        seconds = "" if "checkpoint_seconds" in daemon else f"checkpoint_seconds = {CHECKPOINT_SECONDS}\n"
        verdicts = f'[verdicts]\npath = "{self.verdict_log}"\nwhich = "all"\n'
        self.write(
            f"[daemon]\n{state}{seconds}{daemon}\n"
            f'[http]\nlisten = "127.0.0.1:{self.port}"\n{http}\n'
            f"[warmup]\nrecords = {self.warmup}\nreferences = {self.warmup // 2}\n"
            f"{'' if '[verdicts]' in self.parts['more'] else verdicts}{self.parts['source']}\n{self.parts['more']}\n"
        )

    def verdicts(self) -> list[dict[str, Any]]:
        """The lines of the log of verdicts that are whole."""
        return lines_of(self.verdict_log)

    def judged(self) -> int:
        """Records judged in this run, by the metrics."""
        return round(self.total("netclust_verdicts_total"))

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric over what is not told."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            value
            for sample, value in self.metrics().items()
            if sample.split("{")[0] == name and all(label in sample for label in wanted)
        )

    def run_to_end(self, seconds: float = 60.0) -> int:
        """Start it, for what is wrong before it runs; its exit code."""
        self.start()
        try:
            return self.wait(seconds)
        finally:
            self.__exit__()


class Within(Settled):
    """A daemon that has the interfaces of a namespace; it is asked from there, too."""

    def __init__(self, namespace: str, folder: Path, source: str, **options: Any) -> None:
        self.namespace = namespace
        super().__init__(folder, source, **options)

    def start(self, **environment: str) -> DaemonProcess:
        return inside(self.namespace, lambda: super(Within, self).start(**environment))

    def get(self, path: str) -> tuple[int, bytes]:
        return inside(self.namespace, lambda: super(Within, self).get(path))


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Whole lines of JSON."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def records(path: str) -> str:
    """A source of records at a path."""
    return f'[[source]]\nkind = "records"\nname = "in"\npath = "{path}"\n'


def followed(path: Path) -> str:
    """A source that follows a file of records."""
    return f"{records(str(path))}follow = true\n"


def jsonl(path: Path) -> str:
    """A sink that is a file."""
    return f'[[sink]]\nkind = "jsonl"\nname = "file"\npath = "{path}"\n'


def attack_lines(folder: Path, count: int, seed: int = 2) -> bytes:
    """Lines of records with attacks that no model was shown."""
    path = folder / f"attacks-{count}-{seed}.txt"
    if not path.exists():
        simulate(count, seed=seed, day=1, attacks=HELD_BACK).write(path)
    return path.read_bytes()


def append(path: Path, data: bytes) -> None:
    """What a writer of a log does."""
    with path.open("ab") as file:
        file.write(data)


def cli(*words: str, timeout: float = 60.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of netclust, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "netclust", *words], capture_output=True, text=True, timeout=timeout, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "200", **environment},
    )  # fmt: skip


def each_once(daemon: Settled, count: int, source: int = 0) -> bool:
    """Whether records 0 to count - 1 were judged exactly once."""
    seen = Counter(line["record"] for line in daemon.verdicts())
    return seen == Counter(f"{source}:{seq}" for seq in range(count))


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small file system of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", *options, "netclust-test", str(folder)], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def open_folders() -> Iterator[Path]:
    """A fixture: a folder that any user may enter; those of pytest are for one user alone."""
    folder = Path(tempfile.mkdtemp(prefix="netclust-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
