"""How long a start takes: --help, the first verdict with an empty kernel cache, the first verdict warm."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import best_of, save, timed

NETCLUST = [sys.executable, "-m", "netclust"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        records, model = Path(folder, "records.txt"), Path(folder, "model.safetensors")
        cache = Path(folder, "cache")

        def run(*args: str, cache: Path = cache) -> None:
            env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
            subprocess.run([*NETCLUST, *args], check=True, capture_output=True, env=env)

        evaluate = ("evaluate", "network", "--model", str(model), "--test", str(records))
        run("simulate", "records", "-o", str(records), "--records", "1000")
        run("train", "network", str(records), "-o", str(model), cache=Path(folder, "other-cache"))
        cold = timed(lambda: run(*evaluate))
        save(
            "startup",
            {
                "target": "--help under 0.5 s, first verdict under 15 s with an empty cache, under 2 s warm",
                "help_seconds": round(best_of(lambda: run("--help")), 3),
                "first_verdict_empty_cache_seconds": round(cold, 2),
                "first_verdict_warm_seconds": round(best_of(lambda: run(*evaluate)), 2),
            },
        )


if __name__ == "__main__":
    main()
