"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from installed_wheel import installed
from kernel_turns import take_turns

from netclust.cli import main
from netclust.kernels.jit import CACHE_FOLDER

__all__ = ["installed"]  # a fixture of every test

# No test asserts a time, and no run depends on what an earlier one left behind.
settings.register_profile("netclust", deadline=None, database=None)
settings.load_profile("netclust")

# Set here, not in a fixture: fixtures of modules and processes that tests start have it too. The ledger counts looks at
# a test set that may decide something; the suite repeats fixed runs, which decide nothing.
os.environ["NETCLUST_LOOKS"] = "off"

# Processes of the suite that need the same kernel at once wait for the one that compiles it. Those that tests start
# keep their kernels in the same folder, whatever home a test gives them.
take_turns()
if CACHE_FOLDER is not None:
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE_FOLDER.parent)

# Processes that tests start read our modules compiled: without, each start of a daemon compiles a hundred of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).resolve().parent.parent

# Files that take longest, begun first, so that no process is left with one of them at the end. The first four compile
# most of what the others find compiled, and begin together because each needs other kernels: the first the two of
# linking (the larger takes a minute), the second those of captures with checked bounds, the fourth those of captures.
SLOW_FIRST = (
    "test_table41.py", "test_fuzz_captures.py", "test_guides.py", "test_run_flows.py", "test_installed.py",
    "test_daemon_operations.py", "test_dataflow.py", "test_shard_crashes.py", "test_bus_daemon.py",
    "test_daemon_kills.py", "test_console_pages.py", "test_faults_disk.py", "test_shipped.py",
    "test_console_filters.py", "test_run_watch.py", "test_console_for_everybody.py", "test_cli.py",
    "test_console_safety.py", "test_faults_input.py", "test_console_under_load.py", "test_against_tshark.py",
    "test_search.py", "test_live_replay.py", "test_flow_state.py", "test_tuning.py", "test_daemon_prometheus.py",
    "test_faults_sinks.py", "test_watch_console.py", "test_soak.py", "test_decode.py", "test_against_nfstream.py",
    "test_sources_live.py", "test_online.py", "test_faults_start.py", "test_daemon.py", "test_console_packets.py",
    "test_captures.py", "test_pcap_and_pcapng_twins.py", "test_run_alerts.py", "test_http_openapi.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Files are handed out in the order below; by itself xdist puts those with few tests, which are slow, last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow files first, and what needs the shared corpora into its tier."""
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.peers)
    place = {name: number for number, name in enumerate(SLOW_FIRST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file, what it has left is no longer looked through: compilers leave millions of objects that stay."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


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
