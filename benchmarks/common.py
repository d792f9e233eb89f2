"""What the benchmarks share: where the data is, how time is taken, where results go."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# Looks at test sets are counted in the repository, not in the state folder of whoever runs a benchmark.
os.environ.setdefault("NETCLUST_LOOKS", str(ROOT / "benchmarks" / "test-looks.jsonl"))


def data_folder() -> Path | None:
    """The shared data sets: NETCLUST_DATA, else ../shared/datasets beside the repo."""
    folder = Path(os.environ.get("NETCLUST_DATA") or ROOT.parent / "shared" / "datasets")
    return folder if folder.is_dir() else None


def nsl_kdd(name: str) -> Path:
    """An NSL-KDD file, or the end of the benchmark with the reason."""
    folder = data_folder()
    path = (folder or Path("missing")) / "nsl-kdd" / f"{name}.txt.xz"
    if not path.is_file():
        raise SystemExit(f"skipped: {name} not found, set NETCLUST_DATA to the folder of the data sets")
    return path


def best_of(run: Callable[[], Any], times: int = 5) -> float:
    """The shortest of some runs in seconds: the machine is noisy, and noise only adds."""
    return min(timed(run) for _ in range(times))


def timed(run: Callable[[], Any]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def save(name: str, body: dict[str, Any]) -> None:
    """Write benchmarks/results/NAME.json with commit, date and machine, and print the body."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    result = {
        "name": name,
        "commit": commit,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "python": platform.python_version()},
        **body,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(body, indent=2))


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
