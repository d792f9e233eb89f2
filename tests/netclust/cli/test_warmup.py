"""After `netclust warmup` the commands find all their kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netclust.datasets.simulators.capture_simulator import simulate_capture

pytestmark = pytest.mark.system

# A command, and behind it a line for each kernel that it compiled.
COMMAND = """
import sys
from numba.core import event
from netclust.kernels.jit import Kernel

class Compiled(event.Listener):
    def on_start(self, happened):
        if isinstance(happened.data["dispatcher"], Kernel):
            print("compiled", happened.data["dispatcher"], file=sys.stderr)

    def on_end(self, happened):
        pass

event.register("numba:compile", Compiled())
from netclust.cli import main
main(sys.argv[1:])
"""


def run(folder: Path, *arguments: str) -> list[str]:
    """The kernels that a command compiled."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, check=False, timeout=600,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("compiled")]


def test_commands_compile_nothing_after_warmup(tmp_path: Path) -> None:
    assert run(tmp_path, "warmup")
    simulate_capture(tmp_path / "packets.pcap", hours=0.05, scale=0.3, hosts=8, attacks="all")
    simulate = ("simulate", "records", "--records", "400", "-o")
    train = ("train", "network", "records.txt", "-o", "model")
    for arguments in (
        (*simulate, "records.txt"),
        train,
        ("detect", "--model", "model", "--input", "records.txt", "-o", "out.jsonl"),
        ("explain", "--model", "model", "--test", "records.txt", "--record", "10"),
        ("watch", "records.txt"),
        ("watch", "packets.pcap"),
        ("warmup",),
    ):
        assert run(tmp_path, *arguments) == [], arguments
