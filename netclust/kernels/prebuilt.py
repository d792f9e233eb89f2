"""Kernels compiled when netclust was built or installed, so that a first start need not compile them.

`python -m netclust.kernels.prebuilt` compiles them beside this file for the running Python and a CPU level: the best
one of this machine, or with `--all` every level that it can run, as for a wheel. A process uses the best level that its
CPU has, if Python, numba and settings are the same. Whatever it compiles itself, for its own CPU, comes first.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple


class CpuLevel(NamedTuple):
    """A level that compilers know by name, what a CPU must have to run its code, and how it is tuned."""

    name: str
    needs: frozenset[str]
    tuning: str = ""


_V3 = frozenset(("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"))
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

LEVELS = {
    # By default compilers use half of a vector at the fourth level, which makes linking slower by half.
    "x86_64": (CpuLevel("x86-64-v4", _V4, "-prefer-256-bit"), CpuLevel("x86-64-v3", _V3)),
    "aarch64": (CpuLevel("generic", frozenset()),),
}
"""The levels for each kind of machine, best first; for other machines nothing is built ahead."""

SWITCH = "NETCLUST_PREBUILT"
"""The variable that turns prebuilt kernels off ("0"); while they are made it names the folder to write to."""

_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_DISABLE_INTEL_SVML")


def levels_here() -> list[CpuLevel]:
    """Return the levels whose code this machine can run, best first."""
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return []
    from llvmlite import binding  # type: ignore[import-untyped]

    has = {name for name, there in binding.get_host_cpu_features().items() if there}
    return [level for level in LEVELS.get(platform.machine(), ()) if level.needs <= has]


def folder_of(level: CpuLevel) -> Path:
    """Return the folder for the kernels of the running Python at a level."""
    return Path(__file__).parent / "prebuilt_files" / f"{sys.implementation.cache_tag}-{level.name}"


def folder_to_write() -> Path | None:
    """Return the folder that this process fills with prebuilt kernels, None if it does not."""
    value = os.environ.get(SWITCH, "")
    return Path(value) if value not in ("", "0") else None


def folder_to_read() -> Path | None:
    """Return the folder of prebuilt kernels that this process can use, None if there is none."""
    return None if _left_out or os.environ.get(SWITCH) else _found()


def leave_out() -> None:
    """Use no prebuilt kernels in this process from now on, and so compile for its own CPU."""
    global _left_out
    _left_out = True


_left_out = False


@cache
def _found() -> Path | None:
    if any(os.environ.get(name) for name in _SETTINGS):
        return None
    return next((folder for level in levels_here() if (folder := folder_of(level)).is_dir()), None)


def _build_levels(*, all_levels: bool = False) -> int:
    """Compile the kernels of the commands, each level in a process of its own; return the exit code."""
    levels = levels_here()
    return max((_build(level) for level in (levels if all_levels else levels[:1])), default=0)


def _build(level: CpuLevel) -> int:
    folder = folder_of(level)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    settings = {SWITCH: str(folder), "NUMBA_CPU_NAME": level.name, "NUMBA_CPU_FEATURES": level.tuning}
    command = [sys.executable, "-m", "netclust", "warmup"]
    return subprocess.run(command, env=kept | settings, stdout=subprocess.DEVNULL, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(_build_levels(all_levels="--all" in sys.argv[1:]))
