"""What tests of the command line share: records, a model, a process of its own, and how a complaint looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from netclust.cli import main
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate


class Files(NamedTuple):
    folder: Path
    train: Path
    test: Path
    model: Path


def make_files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Simulated training and test records, and a model."""
    folder = tmp_path_factory.mktemp("cli")
    made = Files(folder, folder / "train.txt", folder / "test.txt", folder / "net.model")
    simulate(2500, seed=1).write(made.train)
    simulate(2000, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).write(made.test)
    with pytest.raises(SystemExit) as stop:
        main(["train", "network", str(made.train), "-o", str(made.model), "--seed", "3"])
    assert not stop.value.code
    return made


def shell(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "netclust", *map(str, args)],
        capture_output=True, text=True, check=False, timeout=120, **options,
    )  # fmt: skip


def complaint(ran: Any | subprocess.CompletedProcess[str], *parts: object) -> None:
    """Exit code 2, nothing on standard output, and one line that holds every part."""
    process = isinstance(ran, subprocess.CompletedProcess)
    code, out, err = (ran.returncode, ran.stdout, ran.stderr) if process else ran
    assert (code, out) == (2, ""), err
    assert err.startswith("netclust: ")
    assert err.count("\n") == 1, err
    for part in parts:
        assert str(part) in err
