"""What a start costs: --help, a first verdict warm, and the first verdicts ever, with an empty kernel cache."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from common import best_of, save

from netclust.kernels.prebuilt import folder_to_read

NETCLUST = [sys.executable, "-m", "netclust"]


class Commands:
    """Commands that are run in one folder, with kernel caches in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *args: str, cache: str = "cache", prebuilt: bool = True) -> float:
        """Run a command; the seconds of CPU that it took, its own and the system's."""
        switch = {} if prebuilt else {"NETCLUST_PREBUILT": "0"}
        env = {**os.environ, "NUMBA_CACHE_DIR": str(self.folder / cache), **switch}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*NETCLUST, *args], check=True, capture_output=True, env=env, cwd=self.folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        commands = Commands(Path(folder))
        commands.run("simulate", "records", "-o", "records.txt", "--records", "1000")
        commands.run("simulate", "capture", "-o", "packets.pcap", "--hours", "0.3", "--hosts", "10", "--scale", "0.5",
                     "--attacks", "all")  # fmt: skip
        commands.run("train", "network", "records.txt", "-o", "model")
        first = {
            "detect": ("detect", "--model", "model", "--input", "records.txt", "-o", "verdicts.jsonl"),
            "explain": ("explain", "--model", "model", "--test", "records.txt", "--record", "10"),
            "watch": ("watch", "packets.pcap"),
        }
        prebuilt = {name: commands.run(*args, cache=f"prebuilt-{name}") for name, args in first.items()}
        empty = {name: commands.run(*args, cache=f"empty-{name}", prebuilt=False) for name, args in first.items()}
        warm = {name: commands.run(*args, cache=f"empty-{name}", prebuilt=False) for name, args in first.items()}
        everything = {name: round(spent, 2) for name, spent in empty.items()}
        save(
            "startup",
            {
                "target": "--help under 0.5 s; first verdict ever at most 8 s of CPU, under 2 s warm",
                "help_seconds": round(best_of(lambda: commands.run("--help")), 3),
                "prebuilt_kernels": folder_to_read() is not None,
                "first_verdict_ever_cpu_seconds": {name: round(spent, 2) for name, spent in prebuilt.items()},
                "first_verdict_compiling_everything_cpu_seconds": everything,
                "first_verdict_warm_cpu_seconds": {name: round(spent, 2) for name, spent in warm.items()},
                "warmup_cpu_seconds": round(commands.run("warmup", cache="warmup"), 2),
            },
        )


if __name__ == "__main__":
    main()
