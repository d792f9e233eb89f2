"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from netclust.cli import main

# No test asserts a time, and no run depends on what an earlier one left behind.
settings.register_profile("netclust", deadline=None, database=None)
settings.load_profile("netclust")

# Set here, not in a fixture: fixtures of modules and processes that tests start have it too. The ledger counts looks at
# a test set that may decide something; the suite repeats fixed runs, which decide nothing.
os.environ["NETCLUST_LOOKS"] = "off"

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The shared data sets: NETCLUST_DATA, else ../shared/datasets beside the repo."""
    folder = Path(os.environ.get("NETCLUST_DATA") or ROOT.parent / "shared" / "datasets")
    if not folder.is_dir():
        absent = pytest.fail if os.environ.get("NETCLUST_REQUIRE_DATA") else pytest.skip
        absent("shared data not found: set NETCLUST_DATA")
    return folder


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command in this process."""

    def run_it(*args: object) -> Ran:
        capsys.readouterr()
        code: Any = 0
        try:
            main([str(a) for a in args])
        except SystemExit as stop:
            code = stop.code or 0
        return Ran(int(code), *capsys.readouterr())

    return run_it
