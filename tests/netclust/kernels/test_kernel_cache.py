"""The kernel cache: kept in the first place of the list that is ours to write, and done without where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netclust.kernels import cache_folder

VARIABLES = ("NUMBA_CACHE_DIR", "CACHE_DIRECTORY", "XDG_CACHE_HOME", "HOME")

# A tiny kernel, its result, and what was decided about the cache.
PROGRAM = """
import numpy as np
from netclust.kernels.jit import CACHE_FOLDER
from netclust.kernels.packets.parse import hash_texts
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
    """The place, without the folder in it that is netclust's own."""
    folder, _ = cache_folder.choose()
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


def test_places_are_tried_in_order(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "NUMBA_CACHE_DIR": places["NUMBA_CACHE_DIR"],
        "CACHE_DIRECTORY": places["CACHE_DIRECTORY"],
        "XDG_CACHE_HOME": places["XDG_CACHE_HOME"] / "netclust",
        "HOME": places["HOME"] / ".cache" / "netclust",
    }
    for name in VARIABLES:
        assert chosen() == expected[name]
        (folder,) = expected[name].iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []  # the trial file is gone
        monkeypatch.delenv(name)
    assert chosen() is None


def test_an_empty_variable_is_passed_over(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES[:3]:
        monkeypatch.setenv(name, "")
    assert chosen() == places["HOME"] / ".cache" / "netclust"
    monkeypatch.setenv("HOME", "")
    assert chosen() is None


def test_a_place_that_is_not_writable_is_passed_over(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    places["CACHE_DIRECTORY"].touch()  # a file where a folder should be: not even root can write below it
    assert chosen() == places["XDG_CACHE_HOME"] / "netclust"


def test_a_second_folder_of_systemd_is_tried(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    blocked = places["CACHE_DIRECTORY"]
    blocked.touch()
    second = places["HOME"] / "second"
    monkeypatch.setenv("CACHE_DIRECTORY", f"{blocked}:{second}")
    assert chosen() == second


def test_a_place_that_was_asked_for_is_not_replaced(places: dict[str, Path]) -> None:
    places["NUMBA_CACHE_DIR"].touch()
    assert chosen() is None


def test_a_start_without_a_writable_place_works_and_warns(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run({"NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")})
    assert (done.returncode, done.stdout) == (0, "None 1\n")
    assert done.stderr.count("RuntimeWarning: netclust: no writable folder for compiled kernels") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert os.listdir(tmp_path) == ["file"]


def test_a_start_without_a_home_works_and_warns() -> None:
    done = run({})
    assert (done.returncode, done.stdout) == (0, "None 1\n")
    assert done.stderr.count("RuntimeWarning") == 1


def test_the_warning_can_be_turned_into_an_error() -> None:
    done = run({}, "-W", "error::RuntimeWarning")
    assert done.returncode == 1
    assert "no writable folder" in done.stderr


def test_compiled_kernels_are_found_by_the_next_start(tmp_path: Path) -> None:
    for _ in range(2):
        done = run({"NUMBA_CACHE_DIR": str(tmp_path / "cache")}, "-W", "error")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'cache'} 1\n", "")
        compiled = sorted(path.name for path in tmp_path.rglob("*.kernel"))
        assert len(compiled) == 1  # compiled by the first run, found by the second
        assert "hash_texts" in compiled[0]


def test_numba_keeps_its_own_place() -> None:
    program = "import os, numba; before = numba.config.CACHE_DIR, os.environ.get('NUMBA_CACHE_DIR')\n" + PROGRAM
    program += "assert (numba.config.CACHE_DIR, os.environ.get('NUMBA_CACHE_DIR')) == before == ('', None)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], check=False, capture_output=True, text=True, timeout=120,
        env={name: value for name, value in os.environ.items() if name not in VARIABLES},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / cache_folder.NAME
    folder.mkdir()
    folder.chmod(mode)
    done = run({"NUMBA_CACHE_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "None 1\n")
    assert f"others can write to {folder}" in done.stderr
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder.objection(tmp_path / "kernels") is None
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "belongs to another user" in str(cache_folder.objection(tmp_path / "kernels"))


@pytest.mark.parametrize("left", [b"", b"\x80\x05", b"no pickle"])
def test_a_file_that_a_power_failure_cut_short_is_compiled_again(tmp_path: Path, left: bytes) -> None:
    place = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(place).returncode == 0
    files = sorted(tmp_path.rglob("*.kernel"))
    whole = files[0].stat().st_size
    for file in files:
        file.write_bytes(left)
    again = run(place)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.split()[1] == "1"
    assert sorted(tmp_path.rglob("*.kernel")) == files
    assert files[0].stat().st_size == pytest.approx(whole, rel=0.1)


def test_numba_without_optimisation_works(tmp_path: Path) -> None:
    ran = run({"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"})
    assert (ran.returncode, ran.stdout.split()[1]) == (0, "1"), ran.stderr
