"""A page that somebody opens can write to a socket of this machine: what it sends ends nothing."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest
from daemon_cases import Settled, append, attack_lines, followed, records
from daemon_process import free_port

from netclust.records.labels import KEPT_FOR_PEOPLE, MAX_LABELS

pytestmark = pytest.mark.system

COUNT = 70_000
PATIENT = "max_queue_age = 300\nqueue_records = 1000000\n"


def labelled(folder: Path, count: int) -> bytes:
    """Records with as many different labels."""
    fields = attack_lines(folder, 50).splitlines()[0].split(b",")[:41]
    head = b",".join(fields)
    return b"".join(b"%s,label %d\x1b[2J\n" % (head, k) for k in range(count))


def post(port: int, body: bytes) -> None:
    """What `fetch(url, {mode: "no-cors", method: "POST", body})` sends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Origin": "http://evil.example", "Content-Type": "text/plain;charset=UTF-8", "Sec-Fetch-Mode": "no-cors"}
    connection.request("POST", "/", body, headers)
    connection.close()  # no answer will come


def test_a_post_with_70000_labels_leaves_the_daemon_at_work(tmp_path: Path) -> None:
    port, feed = free_port(), tmp_path / "feed.txt"
    feed.write_bytes(b"")
    sources = f'{followed(feed)}[[source]]\nkind = "records"\nname = "net"\npath = "tcp://127.0.0.1:{port}"\n'
    running = Settled(tmp_path / "run", sources, daemon=PATIENT)
    room = MAX_LABELS - KEPT_FOR_PEOPLE

    def left_out() -> float:
        return running.total("netclust_labels_dropped_total", reason="full")

    with running:
        running.ready()
        post(port, labelled(tmp_path, COUNT))
        running.until(lambda: running.judged() == COUNT, "all of them")
        assert running.get("/readyz")[0] == 200
        names = running.metrics()["netclust_labels"]
        assert names == room
        assert COUNT - room <= left_out() <= COUNT - room + 100  # and the classes of the model
        running.until(lambda: "too many different labels" in running.text(), "the log")
        append(feed, attack_lines(tmp_path, 300))  # labels that the model knows are read as ever
        running.until(lambda: running.judged() == COUNT + 300, "a good source")
        dropped = left_out()
        running.kill()
    with running:  # the full table is in the checkpoint
        running.ready()
        assert running.metrics()["netclust_labels"] == room
        append(feed, labelled(tmp_path, 10) + labelled(tmp_path, COUNT)[-5000:])
        running.until(lambda: left_out() > 0, "more of them, out of a file")
        assert running.get("/readyz")[0] == 200
        assert running.stop() == 0
    assert dropped > 0
    (line,) = [line for line in running.text().splitlines()[:200] if "too many different labels" in line][:1]
    assert "\x1b" not in running.text()
    assert "first='label" in line


def test_a_file_with_a_poison_pill_is_read_to_its_end(tmp_path: Path) -> None:
    """It would be read again after every restart."""
    path = tmp_path / "day.txt"
    path.write_bytes(labelled(tmp_path, COUNT) + attack_lines(tmp_path, 50))
    running = Settled(tmp_path / "run", records(str(path)))
    assert running.run_to_end(120) == 0
    assert len(running.verdicts()) == COUNT + 50


def test_a_log_of_zeek_with_a_label_that_is_none_is_read_on(tmp_path: Path) -> None:
    from test_faults_input import connection

    path = tmp_path / "conn.log"
    odd = connection(1, 1.7e9).rstrip("}\n") + ', "label": "' + "y" * 256 + '"}\n'
    path.write_text(connection(0, 1.7e9) + odd + connection(2, 1.7e9))
    running = Settled(tmp_path / "run", f'[[source]]\nkind = "zeek"\nname = "in"\npath = "{path}"\nfollow = true\n')
    with running:
        running.ready()
        running.until(lambda: running.judged() == 3, "all lines")
        assert running.total("netclust_labels_dropped_total", reason="unusable") == 1
        assert running.stop() == 0
