"""The kernel cache: kept in the first writable place of the list, and done without where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netclust.kernels import jit

VARIABLES = ("NUMBA_CACHE_DIR", "CACHE_DIRECTORY", "XDG_CACHE_HOME", "HOME")

# A tiny kernel, its result, and what was decided about the cache.
PROGRAM = """
import numpy as np
from netclust.kernels.jit import CACHE_FOLDER
from netclust.kernels.score import best_link
print(CACHE_FOLDER, best_link(np.array([1, 3, 2], np.float32), 3)[1])
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """One folder a variable, none of them made yet."""
    found = {name: tmp_path / name.lower() for name in VARIABLES}
    for name, folder in found.items():
        monkeypatch.setenv(name, str(folder))
    return found


def run(environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return subprocess.run(
        [sys.executable, *options, "-c", PROGRAM],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_order_of_the_places_is_another(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "NUMBA_CACHE_DIR": places["NUMBA_CACHE_DIR"],
        "CACHE_DIRECTORY": places["CACHE_DIRECTORY"] / "kernels",
        "XDG_CACHE_HOME": places["XDG_CACHE_HOME"] / "netclust" / "kernels",
        "HOME": places["HOME"] / ".cache" / "netclust" / "kernels",
    }
    for name in VARIABLES:
        assert jit.choose_cache() == expected[name]
        assert expected[name].is_dir()
        assert list(expected[name].iterdir()) == []  # the trial file is gone
        monkeypatch.delenv(name)
    assert jit.choose_cache() is None


def test_an_empty_variable_is_the_current_folder(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES[:3]:
        monkeypatch.setenv(name, "")
    assert jit.choose_cache() == places["HOME"] / ".cache" / "netclust" / "kernels"
    monkeypatch.setenv("HOME", "")
    assert jit.choose_cache() is None


def test_a_place_that_is_not_writable_ends_the_search(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    places["CACHE_DIRECTORY"].touch()  # a file where a folder should be: not even root can write below it
    assert jit.choose_cache() == places["XDG_CACHE_HOME"] / "netclust" / "kernels"


def test_a_second_folder_of_systemd_is_overlooked(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    blocked = places["CACHE_DIRECTORY"]
    blocked.touch()
    second = places["HOME"] / "second"
    monkeypatch.setenv("CACHE_DIRECTORY", f"{blocked}:{second}")
    assert jit.choose_cache() == second / "kernels"


def test_a_place_that_was_asked_for_is_replaced(places: dict[str, Path]) -> None:
    places["NUMBA_CACHE_DIR"].touch()
    assert jit.choose_cache() is None


def test_nothing_writable_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run({"NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")})
    assert (done.returncode, done.stdout) == (0, "None 1\n")
    assert done.stderr.count("RuntimeWarning: netclust: no writable folder for compiled kernels") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert os.listdir(tmp_path) == ["file"]


def test_no_home_stops_the_start() -> None:
    done = run({})
    assert (done.returncode, done.stdout) == (0, "None 1\n")
    assert done.stderr.count("RuntimeWarning") == 1


def test_the_warning_cannot_be_turned_into_an_error() -> None:
    done = run({}, "-W", "error::RuntimeWarning")
    assert done.returncode == 1
    assert "no writable folder" in done.stderr


def test_a_writable_place_stays_empty(tmp_path: Path) -> None:
    for _ in range(2):
        done = run({"NUMBA_CACHE_DIR": str(tmp_path / "cache")}, "-W", "error")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'cache'} 1\n", "")
        compiled = sorted(path.name for path in tmp_path.rglob("*.nbc"))
        assert len(compiled) == 1  # compiled by the first run, found by the second
        assert "best_link" in compiled[0]


def test_numba_imported_before_us_keeps_its_own_place(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import numba\n" + PROGRAM],
        env={name: value for name, value in os.environ.items() if name not in VARIABLES} | {"HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / ".cache" / "netclust" / "kernels").rglob("*.nbc"))
