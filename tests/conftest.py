"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

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
