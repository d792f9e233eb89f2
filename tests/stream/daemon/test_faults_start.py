"""What is wrong before it starts is told in one line, with exit code 2; `check-config` tells it beforehand."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from daemon_cases import Settled, attack_lines, cli, followed

from netclust.cli import main

pytestmark = pytest.mark.system


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    path = tmp_path / "feed.txt"
    path.write_bytes(attack_lines(tmp_path, 100))
    return path


def refused(daemon: Settled) -> str:
    """The message with which it does not start."""
    assert daemon.run_to_end() == 2, daemon.text()
    assert "Traceback" not in daemon.text()
    return daemon.text()


def test_port_in_use(feed: Path, tmp_path: Path) -> None:
    daemon = Settled(tmp_path / "run", followed(feed))
    with socket.create_server(("127.0.0.1", daemon.port)):
        assert f"cannot listen at 127.0.0.1:{daemon.port}: Address already in use" in refused(daemon)
    with daemon:  # and nothing of the failed start is in the way
        daemon.ready()
        assert daemon.stop() == 0


def test_a_socket_source_whose_port_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        daemon = Settled(tmp_path / "run", f'[[source]]\nkind = "records"\npath = "{url}"\n')
        assert f"{url}: cannot listen there: Address already in use" in refused(daemon)


BAD = {
    "checkpoint_secnds": ("daemon", "checkpoint_secnds = 5\n"),
    "shutdown_timeout": ("daemon", "shutdown_timeout = -1\n"),
    "queue_records": ("daemon", 'queue_records = "many"\n'),
    "token_file": ("http", 'token_file = "/nonexistent/token"\n'),
    "no such file": ("more", '[model]\npath = "/nonexistent/model.safetensors"\n'),
    "false_alarm_rate": ("more", "[model]\nfalse_alarm_rate = 7\n"),
    "there is no folder": ("more", '[[sink]]\nkind = "jsonl"\npath = "/nonexistent/alerts.jsonl"\n'),
    "suppress 1": ("more", '[[suppress]]\nreason = "x"\naddress = "10.0.0.0/99"\n'),
    "kind": ("source", '[[source]]\nkind = "carrier pigeon"\n'),
    "source": ("source", ""),
}


@pytest.mark.parametrize("named", BAD)
def test_bad_config(named: str, feed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the option, from `check-config` and, for the first ones, from `run` alike."""
    part, text = BAD[named]
    daemon = Settled(tmp_path / "run", followed(feed))
    daemon.settle(**{part: text})
    with pytest.raises(SystemExit) as ended:
        main(["check-config", str(daemon.config)])
    assert ended.value.code == 2
    assert named in capsys.readouterr().err
    if named in ("checkpoint_secnds", "no such file"):
        assert named in refused(daemon)


def test_check_config_says_what_would_run(feed: Path, tmp_path: Path) -> None:
    daemon = Settled(tmp_path / "run", followed(feed), more='[[sink]]\nkind = "terminal"\n')
    said = cli("check-config", str(daemon.config))
    assert said.returncode == 0
    for word in ("good", "in (records)", "terminal (terminal)", "kdd", str(daemon.state), str(daemon.port)):
        assert word in said.stdout
    assert not daemon.state.exists()
    missing = cli("check-config", str(tmp_path / "nowhere.toml"))
    assert missing.returncode == 2
    assert "nowhere.toml: No such file" in missing.stderr
