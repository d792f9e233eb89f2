"""Compiling is announced on a terminal, on one line that is erased; anywhere else it is silent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals, which this system does not have")

PROGRAM = """
import numpy as np
from netclust.kernels import announcing
{start}
from netclust.kernels.jit import inner, kernel

@inner
def once(x):
    return x + 1

@inner
def twice(x):
    return 2 * once(x)

@kernel
def work(x):
    return twice(x)

work(1)
"""


def on_terminal(arguments: list[str], kept: Path, **streams: int) -> str:
    """Everything that a program writes to standard error, a terminal unless it is given."""
    leader, follower = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env=os.environ | {"NUMBA_CACHE_DIR": str(kept), "NETCLUST_PREBUILT": "0"},
            **({"stderr": follower} | streams),
        )  # fmt: skip
        os.close(follower)
        written = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            written += piece
        assert process.wait(120) == 0, written
        return written.decode()
    finally:
        os.close(leader)


def program(tmp_path: Path, start: str) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(start=start))
    return [str(path)]


def test_progress_is_counted_on_one_line_that_is_erased(tmp_path: Path) -> None:
    written = on_terminal(program(tmp_path, "announcing.on_terminal()"), tmp_path)
    steps = re.findall(r"\rcompiling kernels, once: (\d) of (\d)", written)
    assert steps == [("0", "3"), ("1", "3"), ("2", "3"), ("3", "3")]
    assert "\n" not in written
    last = written.rsplit("\rcompiling", 1)[1]
    erased = re.fullmatch(r"([^\r]*)\r( +)\r", last)
    assert erased is not None
    assert len(erased[2]) == len("compiling" + erased[1])


def test_a_warm_cache_is_silent(tmp_path: Path) -> None:
    arguments = program(tmp_path, "announcing.on_terminal()")
    assert on_terminal(arguments, tmp_path)
    assert on_terminal(arguments, tmp_path) == ""


def test_libraries_are_silent(tmp_path: Path) -> None:
    assert on_terminal(program(tmp_path, ""), tmp_path) == ""


def test_commands_announce_on_a_terminal_and_not_in_a_pipe(tmp_path: Path) -> None:
    records = tmp_path / "records.txt"
    subprocess.run(
        [sys.executable, "-m", "netclust", "simulate", "records", "-o", records, "--records", "300"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    command = ["-m", "netclust", "train", "network", str(records), "-o", str(tmp_path / "m")]
    assert "compiling kernels, once: " in on_terminal(command, tmp_path / "first")
    with (tmp_path / "errors").open("w") as errors:
        assert on_terminal(command, tmp_path / "second", stderr=errors.fileno()) == ""
    assert "compiling" not in (tmp_path / "errors").read_text()
