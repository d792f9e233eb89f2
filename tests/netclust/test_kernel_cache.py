"""The kernel cache: kept in the first writable place of the list, and done without where there is none."""

from __future__ import annotations

import os
import shutil
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
from netclust.kernels.parse import hash_texts
hashes = np.zeros(1, np.uint64)
hash_texts(np.array([97], np.uint8), np.array([[0, 1]]), hashes)
print(CACHE_FOLDER and CACHE_FOLDER.parent, int(hashes[0] != 0))
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """One folder a variable, none of them made yet."""
    found = {name: tmp_path / name.lower() for name in VARIABLES}
    for name, folder in found.items():
        monkeypatch.setenv(name, str(folder))
    return found


def chosen() -> Path | None:
    """The place, without the folder in it that is named after the state of the kernels."""
    folder = jit.choose_cache()
    return None if folder is None else folder.parent


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
        assert chosen() == expected[name]
        (version,) = expected[name].iterdir()
        assert list(version.iterdir()) == []  # the trial file is gone
        monkeypatch.delenv(name)
    assert chosen() is None


def test_an_empty_variable_is_the_current_folder(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES[:3]:
        monkeypatch.setenv(name, "")
    assert chosen() == places["HOME"] / ".cache" / "netclust" / "kernels"
    monkeypatch.setenv("HOME", "")
    assert chosen() is None


def test_a_place_that_is_not_writable_ends_the_search(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    places["CACHE_DIRECTORY"].touch()  # a file where a folder should be: not even root can write below it
    assert chosen() == places["XDG_CACHE_HOME"] / "netclust" / "kernels"


def test_a_second_folder_of_systemd_is_overlooked(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    blocked = places["CACHE_DIRECTORY"]
    blocked.touch()
    second = places["HOME"] / "second"
    monkeypatch.setenv("CACHE_DIRECTORY", f"{blocked}:{second}")
    assert chosen() == second / "kernels"


def test_a_place_that_was_asked_for_is_replaced(places: dict[str, Path]) -> None:
    places["NUMBA_CACHE_DIR"].touch()
    assert chosen() is None


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
        assert "hash_texts" in compiled[0]


def test_numba_imported_before_us_keeps_its_own_place(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import numba\n" + PROGRAM],
        env={name: value for name, value in os.environ.items() if name not in VARIABLES} | {"HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / ".cache" / "netclust" / "kernels").rglob("*.nbc"))


def test_a_change_in_a_kernel_leaves_the_compiled_ones_that_call_it(tmp_path: Path) -> None:
    package = tmp_path / "netclust"
    shutil.copytree(Path(jit.__file__).parent.parent, package, symlinks=False)
    program = "import netclust.kernels.jit as jit; print(jit.CACHE_FOLDER)"
    places = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        places.append(done.stdout)
        source = package / "kernels" / "score.py"  # called by kernels of other files, which numba does not look into
        source.write_text(source.read_text() + "\n")
    assert places[0] != places[1]
