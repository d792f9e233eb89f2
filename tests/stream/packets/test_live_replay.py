"""A simulated capture replayed between namespaces of the test's own: live records are those of a dump of the same."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from namespaces import Link, joined_or_skip
from needed import need_program

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.stream.packets.capture_files import CaptureFile

pytestmark = pytest.mark.system

link = pytest.fixture(joined_or_skip)

TOOLS = ("tcpreplay", "tcpdump")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some minutes of an office whose hosts all live at the test's own addresses."""
    for tool in TOOLS:
        need_program(tool)
    path = tmp_path_factory.mktemp("replay") / "office.pcap"
    simulate_capture(
        path, hours=0.1, seed=3, attacks="port_scan,ssh_brute_force", start="2024-01-01T10:00:00Z",
        clients="10.77.0.0/25", servers="10.77.0.128/25", hosts=12, snaplen=0, scale=0.3,
    )  # fmt: skip
    return path


def inside(link: Link, *command: object, namespace: str = "b") -> list[str]:
    return ["ip", "netns", "exec", getattr(link, namespace), *map(str, command)]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("workers", [1, 2])
def test_live_records_are_those_of_a_dump(link: Link, simulated: Path, tmp_path: Path, workers: int) -> None:
    live, dump, from_file = tmp_path / "live.csv", tmp_path / "dump.pcap", tmp_path / "file.csv"
    netclust = [sys.executable, "-m", "netclust", "flows"]
    options = ["--schema", "flow", "--idle-timeout", "2"]  # so that wall-clock time ends some while packets come
    sent = sum(len(block) for block in CaptureFile(simulated))
    tcpdump = ["tcpdump", "-i", "vb", "-w", dump, "-U", "-s", "2048", "-B", "16384", "--time-stamp-precision=nano"]
    with (
        subprocess.Popen(inside(link, *tcpdump), stderr=subprocess.PIPE) as dumping,
        subprocess.Popen(
            inside(
                link,
                *netclust,
                "--live",
                "vb",
                "-o",
                live,
                "--workers",
                workers,
                "--json",
                tmp_path / "live.json",
                *options,
            ),
            stderr=subprocess.PIPE,
        ) as running,
    ):
        try:
            _wait_for(lambda: dump.exists() and live.exists())
            time.sleep(1.5)  # the sockets are opened before the files, the kernels loaded behind them
            replay = inside(link, "tcpreplay", "-i", "va", "--pps", "4000", "-q", simulated, namespace="a")
            subprocess.run(replay, check=True, capture_output=True)
            time.sleep(2.5)
        finally:
            for process in (running, dumping):
                process.send_signal(signal.SIGINT)
        assert running.wait(60) == 0, running.stderr and running.stderr.read()
        dumping.wait(60)
    subprocess.run([*netclust, dump, "-o", from_file, *options], check=True, capture_output=True)
    received = sum(len(block) for block in CaptureFile(dump))
    assert received >= sent
    expected, found = rows(from_file), rows(live)
    if workers > 1:  # each numbers its own connections
        for row in (*expected, *found):
            del row["uid"]
    assert len(found) > 50
    # Those that end in the same nanosecond have no order.
    assert sorted(map(str, found)) == sorted(map(str, expected))


def _wait_for(condition: object, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            pytest.fail("it does not begin")
        time.sleep(0.1)
