"""Operating a running daemon: signals, restarts, systemd, rights, health, and what people tell it meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daemon_cases import Settled, append, attack_lines, each_once, followed, jsonl, lines_of, open_folders
from daemon_process import DaemonProcess
from needed import need_filters

from netclust.cli import main
from netclust.scoring.model import Model
from netclust.stream.store.store import Store

pytestmark = pytest.mark.system

open_folder = pytest.fixture(open_folders)
Said = Callable[..., str]
CAP_NET_RAW = 1 << 13


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    path = tmp_path / "feed.txt"
    path.write_bytes(attack_lines(tmp_path, 600, seed=1))
    return path


@pytest.fixture
def knows_little(tmp_path: Path, small_model: Model) -> str:
    """A model to which some attacks are new."""
    small_model.save(tmp_path / "model.safetensors")
    return f'[model]\npath = "{tmp_path}/model.safetensors"\n[window]\nreferent_window = 1000\n'


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a command says, of a state folder that a daemon in another process uses."""
    monkeypatch.setenv("COLUMNS", "250")

    def run(*words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capsys.readouterr()
        assert ended.value.code == code, err
        return out + err

    return run


def test_a_good_configuration_is_taken_on_sighup_and_a_bad_one_is_not(feed: Path, tmp_path: Path) -> None:
    """Bad: unreadable, a section that needs a restart, a sink that cannot be opened. The old one goes on each time."""
    alerts, more = tmp_path / "alerts.jsonl", tmp_path / "more.jsonl"
    running = Settled(tmp_path / "run", followed(feed), more=jsonl(alerts))

    def reloaded(result: str, count: int) -> None:
        running.signal(signal.SIGHUP)
        running.until(lambda: running.total("netclust_reloads_total", result=result) == count, f"reload {result}")
        assert running.metrics()["netclust_config_last_reload_successful"] == float(result == "ok")

    with running:
        running.ready()
        running.until(lambda: running.judged() == 600)
        running.settle(more=jsonl(alerts) + '[[suppress]]\nreason = "known"\nport = 9\n')
        reloaded("ok", 1)
        good = running.config.read_text()
        running.config.write_text("[[source]\n")
        reloaded("failed", 1)
        running.config.write_text(good + "[window]\nreferent_window = 7\n")
        reloaded("failed", 2)
        assert "window cannot change while it runs" in running.text()
        (tmp_path / "folder").mkdir()
        running.settle(more=jsonl(tmp_path / "folder") + "[log]\nlevel = 'error'\n")
        reloaded("failed", 3)
        assert running.text().count("reload refused: it goes on as before") == 3
        before = len(lines_of(alerts))
        append(feed, attack_lines(tmp_path, 600, seed=2))
        running.until(lambda: running.judged() == 1200)
        running.until(lambda: len(lines_of(alerts)) > before, "alerts in the old file")
        running.settle(more=jsonl(more))
        reloaded("ok", 2)
        append(feed, attack_lines(tmp_path, 600, seed=3))
        running.until(lambda: lines_of(more), "alerts in the new file")
        assert running.stop() == 0
    assert running.text().count(" reloaded") == 2
    assert "Traceback" not in running.text()


def test_a_rotated_log_is_reopened_after_sigusr1(feed: Path, tmp_path: Path) -> None:
    alerts = tmp_path / "alerts.jsonl"
    with Settled(tmp_path / "run", followed(feed), more=jsonl(alerts)) as running:
        running.ready()
        running.until(lambda: running.judged() == 600)
        running.until(lambda: lines_of(alerts))
        for path in (alerts, running.verdict_log):
            path.rename(f"{path}.1")
        running.signal(signal.SIGUSR1)
        running.until(lambda: alerts.exists() and running.verdict_log.exists(), "new files")
        old = Path(f"{running.verdict_log}.1").read_bytes()
        append(feed, attack_lines(tmp_path, 600, seed=2))
        running.until(lambda: len(running.verdicts()) == 600, "the new file")
        running.until(lambda: lines_of(alerts))
        assert Path(f"{running.verdict_log}.1").read_bytes() == old
        assert running.stop() == 0
    assert running.verdicts()[0]["record"] == "0:600"


def test_a_restart_neither_loses_nor_repeats_a_record(tmp_path: Path) -> None:
    """Stopped and started again and again, once killed, while somebody writes the log that it follows."""
    feed, lines = tmp_path / "feed.txt", attack_lines(tmp_path, 4000).splitlines(keepends=True)
    feed.write_bytes(b"")
    done, quarters = threading.Event(), threading.Semaphore(0)

    def write() -> None:
        with feed.open("ab", buffering=0) as file:
            for k in range(0, len(lines), 20):
                if k % 1000 == 0:  # however slow a start is, there is something left to be written after it
                    quarters.acquire()
                part = b"".join(lines[k : k + 20])
                file.write(part[:-7])  # never a whole line at once
                time.sleep(0.02)
                file.write(part[-7:])
        done.set()

    writer = threading.Thread(target=write)
    running = Settled(tmp_path / "run", followed(feed), daemon="shutdown_timeout = 5\n")
    with running:
        running.ready()
        writer.start()
        for end in ("stop", "kill", "stop"):
            before = len(running.verdicts())
            quarters.release()
            running.until(lambda b=before: len(running.verdicts()) > b + 100, "verdicts")
            if end == "kill":
                running.kill()
            else:
                began = time.monotonic()
                assert running.stop() == 0
                assert time.monotonic() - began < 15
            running.start()
            running.ready()
        quarters.release()
        writer.join()
        running.until(lambda: len(running.verdicts()) >= 4000, "all")
        assert running.stop() == 0
    assert done.is_set()
    assert each_once(running, 4000)


def test_systemd_is_notified_and_health_is_what_it_is(feed: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(0.05)
        heard: list[str] = []

        def hears(word: str) -> bool:
            try:
                while True:
                    heard.append(told.recv(4096).decode())
            except TimeoutError:
                return any(word in message.split("\n") for message in heard)

        running = Settled(tmp_path / "run", followed(feed))
        running.start(NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="1000000")
        try:
            seen: set[int] = set()
            running.until(lambda: seen.add(running.get("/readyz")[0]) or 200 in seen, "readiness")
            assert seen <= {0, 503, 200}
            assert running.get("/healthz")[0] == 200
            running.until(lambda: hears("READY=1"), "READY")
            running.until(lambda: sum("WATCHDOG=1" in message for message in heard) >= 2 or hears(""), "WATCHDOG")
            running.until(lambda: hears("WATCHDOG=1"), "WATCHDOG")
            heard.clear()
            running.signal(signal.SIGHUP)
            running.until(lambda: hears("RELOADING=1") and hears("READY=1"), "RELOADING, then READY")
            assert any("MONOTONIC_USEC=" in message for message in heard)
            running.signal(signal.SIGTERM)
            assert running.wait(30) == 0
            assert hears("STOPPING=1")
        finally:
            running.__exit__()
        assert any(message.startswith("STATUS=") for message in heard)
        assert running.get("/healthz")[0] == 0


def rights(running: DaemonProcess) -> list[tuple[int, int]]:
    """User and effective capabilities of every thread."""
    assert running.process is not None
    found = []
    for task in Path(f"/proc/{running.process.pid}/task").iterdir():
        words = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        found.append((int(words["Uid"].split()[1]), int(words["CapEff"], 16)))
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")
@pytest.mark.parametrize("live", [False, True])
def test_root_is_given_up(live: bool, open_folder: Path) -> None:
    """It becomes nobody; CAP_NET_RAW is all that a live source keeps. Its logs are still its own."""
    feed, alerts = open_folder / "feed.txt", open_folder / "logs" / "alerts.jsonl"
    alerts.parent.mkdir(mode=0o777)
    alerts.parent.chmod(0o777)
    feed.write_bytes(attack_lines(open_folder, 600))
    need_filters()
    wire = '[[source]]\nkind = "live"\nname = "in"\ninterfaces = ["lo"]\nbpf = "udp port 9"\n'
    daemon = "" if live else 'user = "nobody"\n'
    running = Settled(open_folder / "run", wire if live else followed(feed), daemon=daemon, more=jsonl(alerts))
    running.settle(more=jsonl(alerts) + f'[verdicts]\npath = "{alerts.parent}/verdicts.jsonl"\n')
    with running:
        running.ready()
        found = rights(running)
        assert {user for user, _ in found} == {65534}
        assert {capabilities for _, capabilities in found} <= {0, CAP_NET_RAW if live else 0}
        assert any(capabilities == CAP_NET_RAW for _, capabilities in found) == live
        good = running.total("netclust_checkpoints_total", result="ok")
        running.until(lambda: running.total("netclust_checkpoints_total", result="ok") > good, "a checkpoint")
        if not live:
            running.until(lambda: running.judged() == 600)
        alerts.rename(f"{alerts}.1")
        running.signal(signal.SIGUSR1)
        running.until(alerts.exists, "a new log")
        assert alerts.stat().st_uid == Path(f"{alerts}.1").stat().st_uid == 65534
        assert running.stop() == 0
    assert " error " not in running.text()
    with running:  # what it left can be used by the next one
        running.ready()
        assert running.stop() == 0
    assert "goes on after record" in running.text()


def post(running: Settled, path: str, body: dict[str, Any], token: str = "") -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.story
def test_feedback_needs_a_token_counts_and_is_kept(feed: Path, tmp_path: Path, said: Said, knows_little: str) -> None:
    """Labels over HTTP and by command while it runs: applied, undone, audited, kept over a restart."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    running = Settled(tmp_path / "run", followed(feed), http=f'token_file = "{token}"\n', more=knows_little)
    here = ("--state-dir", str(running.state))

    def status(store: Store, number: int) -> str:
        return store.labels(after=number - 1, limit=1)[0].status

    with running:
        running.ready()
        running.until(lambda: running.judged() == 600)
        with Store(running.state / "netclust.db", read_only=True) as store:
            running.until(lambda: [a for a in store.alerts() if a.kind == "novel"], "alerts in the store")
            first, second = [a for a in store.alerts() if a.kind == "novel"][:2]
            label = {"target": first.id, "label": "normal", "by": "eve", "why": "a backup"}
            assert post(running, "/api/v1/labels", label)[0] == 401
            assert post(running, "/api/v1/labels", label, "0123456789abcdeX")[0] in (401, 403)
            assert store.labels() == []
            code, answer = post(running, "/api/v1/labels", label, "0123456789abcdef")
            assert code == 201, answer
            running.until(lambda: status(store, 1) == "applied", "the label")
            assert "it counts from record " in said(
                "label", second.id, "attack:odd", "--by", "bob", "--why", "seen before", *here
            )
            running.until(lambda: status(store, 2) == "applied", "the label of the command")
            said("label", "--undo", "1", *here)
            running.until(lambda: status(store, 3) == "applied", "the undo")
            assert "undone by 3" in said("label", "--list", *here)
            assert {entry.by for entry in store.audit()} >= {"eve", "bob"}
            assert running.total("netclust_feedback_total", result="accepted") == 3
            refused = said("label", "a-000000000000", "normal", *here, code=2)
            assert "a-000000000000" in refused
        assert running.stop() == 0
    with running:
        running.ready()
        running.until(lambda: running.total("netclust_label_events") == 1, "the label that was not undone")
        append(feed, attack_lines(tmp_path, 600, seed=1))
        running.until(lambda: running.judged() == 600)
        labels = {line["label"] for line in running.verdicts()[600:]}
        assert "odd" in labels
        assert post(running, "/api/v1/reload", {"by": "eve"}, "0123456789abcdef")[0] == 200
        assert running.stop() == 0


def test_commands_show_and_change_what_runs(feed: Path, tmp_path: Path, said: Said, knows_little: str) -> None:
    running = Settled(tmp_path / "run", followed(feed), warmup=200, more=knows_little)
    here = ("--state-dir", str(running.state))
    with running:
        running.ready()
        running.until(lambda: running.judged() == 600)
        running.until(lambda: "a-" in said("alerts", *here), "alerts")
        shown = json.loads(said("alerts", "--json", "-", *here))
        assert shown["daemon"] is True
        first = shown["alerts"][0]["id"]
        assert first in said("alerts", first[:8], *here)
        running.until(lambda: "cluster:" in said("clusters", *here), "clusters")
        # A rule hides, counts what it hid, and is taken back.
        hidden = said("suppress", "add", "--label", "novel", "--reason", "a test", "--until", "1h", *here)
        rule = hidden.split()[0]
        with Store(running.state / "netclust.db", read_only=True) as store:
            running.until(lambda: store.suppressions()[0].from_tick is not None, "the rule is taken up")
        append(feed, attack_lines(tmp_path, 600, seed=2))
        running.until(lambda: running.judged() == 1200)
        running.until(lambda: running.total("netclust_alert_records_suppressed_total", by="rule") > 0, "hiding")
        assert rule in said("suppress", "list", *here)
        assert "is removed" in said("suppress", "remove", rule, *here)
        # The model before the warm-up is kept, and can be gone back to.
        running.until(lambda: len(models(said, here)) >= 2, "snapshots")
        used = running.status()["model"][:12]
        other = next(model for model in models(said, here) if model != used)
        said("rollback", other, "--why", "a test", *here)
        append(feed, attack_lines(tmp_path, 100, seed=3))
        running.until(lambda: running.status()["model"][:12] == other, "the model before")
        assert "no kept model" in said("rollback", "ffffffffffff", *here, code=2)
        assert running.stop() == 0
    assert "no daemon seems to run here" in said("alerts", *here)
    with running:
        running.ready()
        assert running.status()["model"][:12] == other
        assert running.stop() == 0


def models(said: Said, here: tuple[str, str]) -> list[str]:
    """The fingerprints that `netclust snapshots` lists."""
    words = said("snapshots", *here).split()
    return [word for word in words if len(word) == 12 and set(word) <= set("0123456789abcdef")]
