"""`netclust watch`: any source without a configuration, to its end or until somebody stops it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conn_logs import ZEEK_HEADER, eve_lines, loggable, zeek_json, zeek_tsv
from daemon_cases import append, attack_lines, cli
from daemon_process import free_port
from numpy.typing import NDArray

from netclust.cli import main
from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.stream.commands.run_watch import kind_of
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.flow_table import FlowTable

pytestmark = pytest.mark.system

PATIENCE = 60.0


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("watch") / "day.pcap"
    simulate_capture(path, hours=0.1, seed=5, attacks="all")
    return path


class Watching:
    """A `netclust watch` that does not end by itself."""

    def __init__(self, folder: Path, *words: str, stdin: int = subprocess.DEVNULL) -> None:
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "netclust", "watch", *words], stdout=out, stderr=err, stdin=stdin,
                env={**os.environ, "TMPDIR": str(folder)},
            )  # fmt: skip

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def shows(self, *words: str) -> None:
        """Wait until standard output has the words."""
        limit = time.monotonic() + PATIENCE
        while not all(word in self.out.read_text() for word in words):
            assert self.process.poll() is None, self.err.read_text()
            assert time.monotonic() < limit, self.out.read_text() + self.err.read_text()
            time.sleep(0.02)

    def interrupt(self) -> str:
        """Ctrl-C; what it says at the end."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) == 0, self.err.read_text()
        assert "Traceback" not in self.err.read_text()
        return self.out.read_text()


def summary(text: str) -> tuple[int, int, int]:
    """Records, anomalous ones and alerts, of the line at the end."""
    line = next(line for line in reversed(text.splitlines()) if " anomalous, " in line)
    records, anomalous, alerts = (int(part.split()[0].replace(",", "")) for part in line.split(", "))
    return records, anomalous, alerts


def test_a_capture_is_read_to_its_end_and_summed_up(capture: Path, tmp_path: Path) -> None:
    ran = cli("watch", str(capture), "--json", str(tmp_path / "alerts.jsonl"), TMPDIR=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    records, anomalous, alerts = summary(ran.stdout)
    assert records > 5000
    assert anomalous >= alerts >= 1
    assert (tmp_path / "alerts.jsonl").stat().st_size > 0
    assert list(tmp_path.glob("netclust-watch-*")) == []


FORMS: dict[str, tuple[str, Callable[[NDArray[Any]], list[str]]]] = {
    "zeek.tsv": ("zeek", lambda flows: [ZEEK_HEADER, *zeek_tsv(flows)]),
    "zeek.json": ("zeek", zeek_json),
    "eve.json": ("eve", eve_lines),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_of_connections_is_known_by_its_content(form: str, capture: Path, tmp_path: Path) -> None:
    table = FlowTable(4096)
    flows = loggable(np.concatenate([table.feed(block) for block in CaptureFile(capture)])[:500])
    path = tmp_path / "log"
    kind, lines = FORMS[form]
    path.write_text("".join(lines(flows)))
    assert kind_of(str(path)) == kind
    if form != "zeek.json":
        ran = cli("watch", str(path), "--warmup", "0", TMPDIR=str(tmp_path))
        assert ran.returncode == 0, ran.stderr
        assert summary(ran.stdout)[0] == len(flows)


def test_a_pipe_of_records_is_taken_from_standard_input(tmp_path: Path) -> None:
    """netclust simulate records -o - | netclust watch -"""
    command = [sys.executable, "-m", "netclust"]
    with subprocess.Popen(
        [*command, "simulate", "records", "--records", "3000", "-o", "-"], stdout=subprocess.PIPE
    ) as writer:
        ran = subprocess.run(
            [*command, "watch", "-", "--warmup", "500"], stdin=writer.stdout, capture_output=True, text=True,
            timeout=PATIENCE, check=False, env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
    assert writer.returncode == 0
    assert ran.returncode == 0, ran.stderr
    assert summary(ran.stdout)[0] == 3000


def test_ctrl_c_while_a_file_is_followed_is_no_error(tmp_path: Path) -> None:
    feed = tmp_path / "feed.txt"
    feed.write_bytes(attack_lines(tmp_path, 300, seed=1))
    with Watching(tmp_path, str(feed), "--follow", "--warmup", "0") as watching:
        watching.shows("udp_flood")
        before = watching.out.read_text()
        append(feed, attack_lines(tmp_path, 300, seed=2))
        limit = time.monotonic() + PATIENCE
        while watching.out.read_text() == before:
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert summary(watching.interrupt())[0] == 600


def test_a_socket_is_watched_until_it_is_stopped(tmp_path: Path) -> None:
    port, lines = free_port(), attack_lines(tmp_path, 300, seed=1)
    with Watching(tmp_path, f"tcp://127.0.0.1:{port}", "--warmup", "0") as watching:
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as writer:
                    writer.sendall(lines)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < limit
                time.sleep(0.05)
        watching.shows("udp_flood")
        assert summary(watching.interrupt())[0] == 300


def test_the_time_given_is_kept(tmp_path: Path) -> None:
    feed = tmp_path / "feed.txt"
    feed.write_bytes(attack_lines(tmp_path, 300, seed=1))
    state = tmp_path / "state"
    words = ("watch", str(feed), "--follow", "--for", "0.5", "--state-dir", str(state))
    ran = cli(*words, "--warmup", "200")
    assert ran.returncode == 0, ran.stderr
    assert summary(ran.stdout)[0] == 300
    append(feed, attack_lines(tmp_path, 100, seed=2))
    again = cli(*words, "--warmup", "200")  # goes on where it was
    assert again.returncode == 0, again.stderr
    assert summary(again.stdout)[0] == 400


@pytest.mark.parametrize("given", [("nowhere0",), ("tcp://127.0.0.1",), (".", "--kind", "zeek"), ("-", "--kind", "x")])
def test_what_cannot_be_watched_is_refused(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line and exit code 2; nothing is left behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["watch", *given])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("netclust: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [("words.txt", b"one two\nthree\n"), ("noise.bin", bytes(range(256)) * 40), ("log.json", b'{"a": 1}\n')],
)
def test_garbage_is_refused(name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit) as stopped:
        main(["watch", str(tmp_path / name)])
    assert stopped.value.code == 2
    assert name in capsys.readouterr().err
