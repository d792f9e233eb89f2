"""Mutated captures through the whole path, file bytes to records, with every index of the kernels checked.

    python benchmarks/fuzz_captures.py --inputs 200000

The work is done in a process of its own where numba checks bounds (NUMBA_BOUNDSCHECK=1), with a cache of its own: the
first run of a kernel version compiles for about a minute. A failure prints the seed that repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [
    str(ROOT / "benchmarks"),
    str(ROOT / "tests" / "helpers" / "streams"),
    str(ROOT / "tests" / "helpers"),
]  # common; capture_fuzzer

INPUTS, SEED, PROCESSES = 200_000, 1, 2


def start(inputs: int, seed: int, data: Path) -> subprocess.Popen[str]:
    """Begin a run in a process where numba checks bounds."""
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--work", "--inputs", str(inputs), "--seed", str(seed), "--data", str(data)]
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)


def run(inputs: int, seed: int, data: Path, processes: int = 1) -> Counter[str]:
    """Try so many inputs: what was done, by kind. Raises with the output of the process that failed."""
    each = -(-inputs // processes)
    done = _result(start(1, seed, data))  # alone, so that only one compiles
    running = [start(each, seed + k, data) for k in range(processes)]
    try:
        for process in running:
            done += _result(process)
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return done


def _result(process: subprocess.Popen[str]) -> Counter[str]:
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, process.args))}\n{out[-2000:]}\n{err[-6000:]}")
    return Counter(json.loads(out.splitlines()[-1]))


def work(inputs: int, seed: int, data: Path) -> dict[str, int]:
    """The inputs of one process."""
    import capture_fuzzer
    import numba

    if not numba.config.BOUNDSCHECK:
        raise SystemExit("numba does not check bounds here: start it without --work")
    return {**capture_fuzzer.fuzz(inputs, seed, data), "records of a crowd": capture_fuzzer.crowd()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--data", type=Path, default=os.environ.get("NETCLUST_DATA") or ROOT.parent / "shared/datasets")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        print(json.dumps(work(options.inputs, options.seed, options.data)))
        return
    from common import save

    begin = time.perf_counter()
    done = run(options.inputs, options.seed, options.data, options.processes)
    seconds = round(time.perf_counter() - begin, 1)
    result = {"seed": options.seed, "processes": options.processes, "seconds": seconds, **dict(sorted(done.items()))}
    save("fuzz_captures", {"fuzz": result})


if __name__ == "__main__":
    main()
