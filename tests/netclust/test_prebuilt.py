"""Prebuilt kernels: used instead of compiling where Python, settings and CPU allow it, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from netclust.kernels import cache_folder, prebuilt

pytestmark = pytest.mark.skipif(
    not prebuilt.levels_here(), reason="kernels are built ahead on Linux with x86-64-v3 or aarch64 only"
)

# A tiny kernel with prebuilt files in a folder, its result, and what was compiled.
PROGRAM = """
import sys
from pathlib import Path
from netclust.kernels import prebuilt
prebuilt._found = lambda: Path(sys.argv[1])
import numpy as np
from numba.core import event
from netclust.kernels.jit import Kernel
from netclust.kernels.packets.parse import hash_texts

class Compiled(event.Listener):
    def on_start(self, happened):
        if isinstance(happened.data["dispatcher"], Kernel):
            print("compiled", end=" ")

    def on_end(self, happened):
        pass

event.register("numba:compile", Compiled())
hashes = np.zeros(1, np.uint64)
hash_texts(np.array([97], np.uint8), np.array([[0, 1]]), hashes)
print(hashes[0])
"""


def run(folder: Path, cache: Path, **environment: str) -> list[str]:
    """Return what the program prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    env = kept | {"NUMBA_CACHE_DIR": str(cache), prebuilt.SWITCH: ""} | environment
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def build(folder: Path, cache: Path) -> list[str]:
    """Fill a folder as `netclust.kernels.prebuilt` does, with the one kernel of the program."""
    folder.mkdir()
    level = prebuilt.levels_here()[-1]
    settings = {prebuilt.SWITCH: str(folder), "NUMBA_CPU_NAME": level.name, "NUMBA_CPU_FEATURES": level.tuning}
    return run(folder, cache, **settings)


def test_a_prebuilt_kernel_is_used_and_gives_the_same_result(tmp_path: Path) -> None:
    compiled, expected = build(tmp_path / "built", tmp_path / "cache")
    assert compiled == "compiled"
    assert not (tmp_path / "cache").exists()
    assert run(tmp_path / "built", tmp_path / "cache") == [expected]
    assert list((tmp_path / "cache" / cache_folder.NAME).iterdir()) == []
    assert run(tmp_path / "built", tmp_path / "cache", **{prebuilt.SWITCH: "0"}) == ["compiled", expected]


def test_a_kernel_of_other_settings_or_that_is_damaged_is_compiled(tmp_path: Path) -> None:
    _, expected = build(tmp_path / "built", tmp_path / "cache")
    assert run(tmp_path / "built", tmp_path / "other", NUMBA_BOUNDSCHECK="1") == ["compiled", expected]
    (file,) = (tmp_path / "built").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    assert run(tmp_path / "built", tmp_path / "cache") == ["compiled", expected]
    assert run(tmp_path / "built", tmp_path / "cache") == [expected]  # its own comes first


def test_a_level_is_left_out_where_the_cpu_lacks_a_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    for level in prebuilt.levels_here():
        for feature in level.needs:
            has = dict.fromkeys(level.needs, True) | {feature: False}
            monkeypatch.setattr(binding, "get_host_cpu_features", lambda has=has: has)
            assert level not in prebuilt.levels_here()
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda level=level: dict.fromkeys(level.needs, True))
        assert level in prebuilt.levels_here()


@pytest.mark.parametrize("name", ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"])
def test_nothing_prebuilt_is_used_where_a_cpu_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(prebuilt.SWITCH, raising=False)
    monkeypatch.setenv(name, "generic")
    prebuilt._found.cache_clear()
    assert prebuilt.folder_to_read() is None
    monkeypatch.undo()
    prebuilt._found.cache_clear()
