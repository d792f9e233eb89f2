"""`netclust watch --console`: it says where it is, goes on when the source has ended, and takes answers to its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import until
from daemon_process import free_port

from netclust.cli import main
from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError
from netclust.stream.commands.run_watch import free_listen, make_token
from netclust.stream.config import HttpConfig
from netclust.stream.http.guard import parse_listen

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client, str]]:
    folder = tmp_path_factory.mktemp("watch")
    simulate_capture(folder / "day.pcap", hours=0.15, seed=5, attacks="all", campaigns_per_hour=40)
    command = [
        sys.executable, "-m", "netclust", "watch", str(folder / "day.pcap"), "--console", "--warmup", "0",
        "--http", f"127.0.0.1:{free_port()}",
    ]  # fmt: skip
    said = folder / "said"  # a pipe that nobody reads would hold up its alerts
    with said.open("w") as out:
        run = subprocess.Popen(command, stdout=out, env={**os.environ, "TMPDIR": str(folder)})
    try:
        found = until(lambda: re.search(r"console: (\S+)/#token=(\S+)", said.read_text()))
        with httpx.Client(base_url=f"{found[1]}/api/v1/", trust_env=False, timeout=30) as client:
            yield run, client, found[2]
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 0
    finally:
        run.kill()
    assert "anomalous" in said.read_text()
    assert not list(folder.glob("netclust-watch-*")), "nothing is left behind"


def ended(client: httpx.Client) -> Any:
    """Whether everything was read and judged: nothing changes by itself any more."""
    before = client.get("status").json()
    time.sleep(0.3)
    status = client.get("status").json()
    source = status["sources"]["capture"]
    return source["ended"] and not source["waiting"] and status["records"] == before["records"] and status


@pytest.mark.story
def test_it_goes_on_when_the_file_has_ended(watched: tuple[Any, httpx.Client, str]) -> None:
    run, client, _ = watched
    records = until(lambda: ended(client))["records"]
    time.sleep(0.5)
    assert run.poll() is None
    assert records > 500
    now = until(lambda: (said := client.get("overview").json()["now"]) and said["records"] >= records and said)
    assert now["alerts"]["open"] > 0, "nothing closes while people look"
    assert client.get("forest").json()["nodes"]["tick"]


def test_an_answer_counts_although_nothing_more_comes(watched: tuple[Any, httpx.Client, str]) -> None:
    _, client, token = watched
    until(lambda: ended(client))
    first = next(row for row in client.get("backlog").json()["backlog"] if row["alert"]["state"] == "open")
    headers = {"Authorization": f"Bearer {token}"}
    body = {"target": first["alert"]["id"], "label": "normal", "by": "eve"}
    seq = client.post("labels", json=body, headers=headers).json()["label"]["label_seq"]
    row = until(lambda: (found := client.get(f"labels/{seq}").json())["label"]["status"] == "applied" and found)
    assert first["alert"]["id"] in [brief["id"] for brief in row["closed"]]
    path = until(lambda: client.get(f"alerts/{first['alert']['id']}").json()["path"])
    assert path[-1]["kind"] in ("root", "reference")
    undone = client.post(f"labels/{seq}/undo", json={"by": "eve"}, headers=headers).json()["label"]["label_seq"]
    until(lambda: client.get(f"labels/{undone}").json()["label"]["status"] == "applied")


def test_packets_come_from_the_capture(watched: tuple[Any, httpx.Client, str]) -> None:
    _, client, token = watched
    until(lambda: ended(client))
    headers = {"Authorization": f"Bearer {token}"}
    some = [row["alert"]["id"] for row in client.get("backlog").json()["backlog"]]
    codes = {client.get(f"alerts/{ident}/packets", headers=headers).status_code for ident in some}
    assert 200 in codes
    assert codes <= {200, 404}


def test_a_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = Path(make_token(str(tmp_path / "state")))
    first = path.read_text()
    assert len(first.strip()) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Path(make_token(str(tmp_path / "state"))).read_text() == first
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--state-dir"):
        make_token(str(tmp_path / "file" / "state"))


def test_a_port_that_is_taken_is_no_reason_to_give_up() -> None:
    usual = HttpConfig().listen
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(parse_listen(usual))
            other.listen()
        except OSError:
            pass  # taken already, which is as well
        assert free_listen() == "127.0.0.1:0"


def test_a_pace_for_what_cannot_be_paced_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["watch", "tcp://127.0.0.1:0", "--pace", "2"])
    assert stopped.value.code == 2
    assert "pace" in capsys.readouterr().err
