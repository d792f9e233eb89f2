"""`netclust alerts`, `clusters`, `label` and `suppress` as people meet them: tables, JSON, and what to do instead."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netclust._version import __version__
from netclust.linking.clusters import ClusterSummary
from netclust.stream.alerts.alert_events import Alert, AlertEvent, AttributeNote, Count
from netclust.stream.store.store import Store


def alert(ident: str, **changes: Any) -> Alert:
    now = time.time_ns()
    given: dict[str, Any] = {
        "kind": "novel", "label": "novel", "entity": "10.0.0.7", "entity_kind": "source", "clusters": [41],
        "records": 1234, "first_seen": now - 10**10, "last_seen": now, "severity": "medium", "severity_score": 55,
        "sources": [Count("10.0.0.7", 1234)], "source_count": 1, "ports": [Count("22", 1000)], "port_count": 9,
        "attributes": [AttributeNote(name="duration", contribution=1.25, value=9.0, normal=None)],
        "example": {"service": "ssh", "name": "evil\x1b[2J"}, "summary": "10.0.0.7 does something new",
        "explanation": "duration is 9,\nnearest normal has none",
    }  # fmt: skip
    return Alert(id=ident, **{**given, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store(tmp_path / "netclust.db") as store:
        alerts = [
            alert("a-1f00"),
            alert("a-2f00", state="closed", closed_by="quiet", severity="critical", entity="192.0.2.9"),
            alert("a-2f11", severity="low", last_seen=-1, first_seen=-1),
        ]
        store.save_events([AlertEvent(action="open", alert=one) for one in alerts])
        facts: dict[str, Any] = {
            "alarm": "novel", "alarm_tick": 1, "first_tick": 0, "last_tick": 9, "first_time": 0, "last_time": -1,
        }  # fmt: skip
        store.save_clusters([
            ClusterSummary(id=41, label="novel", records=1500, anomalous=1234, top_score=2.5, **facts),
            ClusterSummary(id=0, label="normal", records=90_000, anomalous=0, top_score=-1.0, **facts),
        ])  # fmt: skip
    return tmp_path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with Store(folder / "netclust.db") as opened:
        yield opened


# Showing


def test_the_table_shows_the_alerts_asked_for(run: Any, folder: Path) -> None:
    ran = run("alerts", "--state-dir", folder)
    assert ran.code == 0
    assert ran.out.index("a-1f00") < ran.out.index("a-2f11")  # without a time, last
    assert "a-2f00" not in ran.out
    assert "1,234" in ran.out
    assert "no daemon seems to run" in ran.err
    for options, ids in (
        (("--state", "all"), {"a-1f00", "a-2f00", "a-2f11"}), (("--state", "closed"), {"a-2f00"}),
        (("--state", "all", "--severity", "medium"), {"a-1f00", "a-2f00"}), (("--text", "192.0"), set()),
        (("--state", "all", "--text", "192.0"), {"a-2f00"}), (("--since", "1h"), {"a-1f00", "a-2f11"}),
        (("--since", "2200-01-01"), set()),
    ):  # fmt: skip
        body = json.loads(run("alerts", "--state-dir", folder, "--json", "-", *options).out)
        assert {a["id"] for a in body["alerts"]} == ids, options


def test_the_order_of_triage_is_by_severity(run: Any, folder: Path, store: Store) -> None:
    worst = alert("a-3f00", severity_score=99, entity="192.0.2.1", clusters=[5], ports=[], last_seen=5, first_seen=5)
    store.save_events([AlertEvent(action="open", alert=worst)])
    ran = run("alerts", "--state-dir", folder, "--order", "triage")
    assert [line.split()[:2] for line in ran.out.splitlines()[2:5]] == [
        ["1", "a-3f00"],
        ["2", "a-1f00"],
        ["2", "a-2f11"],
    ]
    body = json.loads(run("alerts", "--state-dir", folder, "--order", "triage", "--limit", "1", "--json", "-").out)
    assert ([a["id"] for a in body["alerts"]], body["groups"], body["more"]) == (["a-3f00"], [1], True)


def test_what_is_cut_off_is_noted(run: Any, folder: Path) -> None:
    ran = run("alerts", "--state-dir", folder, "--state", "all", "--limit", "2")
    assert "there are more than 2" in ran.err
    assert json.loads(run("alerts", "--state-dir", folder, "--limit", "1", "--json", "-").out)["more"] is True
    assert json.loads(run("alerts", "--state-dir", folder, "--limit", "2", "--json", "-").out)["more"] is False


def test_an_alert_says_why(run: Any, folder: Path) -> None:
    ran = run("alerts", "a-1", "--state-dir", folder)
    assert ran.code == 0
    for part in (
        "Alert a-1f00", "cluster:41", "medium (55 of 100)", "22 (1,000), and 8 more", "duration", "+1.250",
        "nearest normal has none", "netclust label a-1f00", "service",
    ):  # fmt: skip
        assert part in ran.out, part
    assert "\x1b" not in ran.out  # what came from the net does not steer the terminal
    body = json.loads(run("alerts", "a-2f00", "--state-dir", folder, "--json", "-").out)
    assert [a["closed_by"] for a in body["alerts"]] == ["quiet"]
    assert (body["version"], body["command"], body["daemon"]) == (__version__, "alerts", False)


def test_nothing_to_show_is_no_error(run: Any, tmp_path: Path) -> None:
    Store(tmp_path / "netclust.db").close()
    assert run("alerts", "--state-dir", tmp_path).out == "No open alerts.\n"
    assert run("alerts", "--state", "all", "--state-dir", tmp_path).out == "No alerts.\n"
    assert run("clusters", "--all", "--state-dir", tmp_path).out == "No clusters.\n"
    assert run("label", "--list", "--state-dir", tmp_path).out == "Nobody has labelled anything.\n"
    assert run("suppress", "list", "--all", "--state-dir", tmp_path).out == "No suppressions.\n"


def test_clusters_are_shown(run: Any, folder: Path, tmp_path: Path) -> None:
    ran = run("clusters", "--state-dir", folder)
    assert "cluster:41" in ran.out
    assert "normal" not in ran.out
    assert "90,000" in run("clusters", "--all", "--state-dir", folder).out
    out = tmp_path / "clusters.json"
    assert run("clusters", "--state-dir", folder, "--json", out).code == 0
    assert [(c["ident"], c["alerts"]) for c in json.loads(out.read_text())["clusters"]] == [(41, 3)]


# Saying


def test_a_label_is_noted_as_given(run: Any, folder: Path, store: Store) -> None:
    ran = run("label", "a-1", "attack:scan", "--by", "eve", "--why", "seen before", "--state-dir", folder)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Label 1: a-1f00 is attack:scan; no daemon seems to run here")
    store.heartbeat({"pid": 7})
    ran = run("label", "41", "normal", "--state-dir", folder)
    assert ran.out == "Label 2: cluster:41 is normal; it counts from the daemon's next batch.\n"
    first, second = store.labels()
    assert (first.target, first.label, first.by, first.why) == ("a-1f00", "attack:scan", "eve", "seen before")
    assert (second.target_kind, second.target) == ("cluster", "41")
    assert second.by
    ran = run("label", "--undo", "1", "--by", "bob", "--state-dir", folder)
    assert ran.out.startswith("Label 3: takes back label 1;")
    listed = run("label", "--list", "--state-dir", folder)
    for part in ("undo 1", "pending, undone by 3", "cluster:41", "seen before", "bob"):
        assert part in listed.out, part
    body = json.loads(run("label", "--list", "--state-dir", folder, "--json", "-").out)
    assert [row["label_seq"] for row in body["labels"]] == [3, 2, 1]
    said = json.loads(run("label", "live:5", "normal", "--state-dir", folder, "--json", "-").out)
    assert (said["label"]["target"], said["command"]) == ("live:5", "label")


def test_whoever_called_sudo_is_named(run: Any, folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_USER", "eve")
    assert run("label", "7", "normal", "--state-dir", folder).code == 0
    assert store.labels()[0].by == "eve"


def test_a_suppression_is_noted_as_given(run: Any, folder: Path, store: Store) -> None:
    ran = run(
        "suppress", "add", "--address", "10.0.0.0/28", "--port", "22", "--until", "8h", "--reason", "our scanner",
        "--by", "eve", "--state-dir", folder,
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("s-1 hides alerts with address 10.0.0.0/28, port 22 until 20")
    forever = run("suppress", "add", "--cluster", "41", "--reason", "x", "--state-dir", folder)
    assert "it never ends" in forever.err
    store.add_hidden("s-1", 5)
    listed = run("suppress", "list", "--state-dir", folder)
    assert "our scanner" in listed.out
    assert "for good" in listed.out
    ran = run("suppress", "remove", "s-1", "--by", "bob", "--why", "moved", "--state-dir", folder)
    assert ran.out.startswith("s-1 is removed; it has hidden 5;")
    body = json.loads(run("suppress", "list", "--all", "--state-dir", folder, "--json", "-").out)
    assert [(s["id"], s["active"], s["removed_by"]) for s in body["suppressions"]] == [
        ("s-1", False, "bob"), ("s-2", True, ""),
    ]  # fmt: skip
    assert body["command"] == "suppress list"
    assert "s-1" not in run("suppress", "list", "--state-dir", folder).out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("alerts", "a-9"), "there is no alert 'a-9'"),
        (("alerts", "a-2f"), "several alerts (a-2f00, a-2f11)"),
        (("alerts", "--since", "yesterday"), "say 90s, 30m, 8h"),
        (("alerts", "--severity", "bad"), "--severity"),
        (("label",), "netclust label ALERT|CLUSTER|RECORD normal|attack:NAME"),
        (("label", "a-1"), "netclust label ALERT|CLUSTER|RECORD"),
        (("label", "a-1", "normal", "--undo", "1"), "netclust label ALERT|CLUSTER|RECORD"),
        (("label", "--list", "--undo", "1"), "netclust label ALERT|CLUSTER|RECORD"),
        (("label", "a-1", "benign"), "say normal, or attack:NAME"),
        (("label", "a-9", "normal"), "there is no alert"),
        (("label", "what", "normal"), "nothing that can be labelled"),
        (("label", "a-1", "normal", "--by", " "), "who says so"),
        (("label", "--undo", "7"), "there is no label 7"),
        (("suppress", "add", "--port", "22"), "--reason"),
        (("suppress", "add", "--reason", "x"), "nothing to match"),
        (("suppress", "add", "--reason", "x", "--port", "22", "--until", "2020-01-01"), "over before it begins"),
        (("suppress", "remove", "s-9"), "there is no suppression 's-9'"),
    ],
)
def test_a_bad_call_changes_nothing(run: Any, folder: Path, store: Store, args: tuple[str, ...], message: str) -> None:
    ran = run(*args, "--state-dir", folder)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert store.labels() == []
    assert store.suppressions(active_only=False) == []


def test_no_store_and_a_damaged_one_give_one_line(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "none"))
    for command in (("alerts",), ("clusters",), ("label", "7", "normal"), ("suppress", "list")):
        ran = run(*command)
        assert ran.code == 2
        assert f"{tmp_path}/none/netclust.db: there is no store: has the daemon run?" in ran.err
    (tmp_path / "netclust.db").write_bytes(b"garbage" * 1000)
    ran = run("alerts", "--state-dir", tmp_path)
    assert ran.code == 2
    assert "damaged; move it away" in ran.err


def test_looking_at_alerts_loads_no_engine(folder: Path) -> None:
    program = (
        "import sys\nfrom netclust.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n"
        "    sys.stderr.write(' '.join(m for m in ('numba', 'starlette') if m in sys.modules))"
    )
    for command in (["alerts", "--json", "-"], ["clusters"], ["label", "a-1", "attack:x"], ["suppress", "list"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *command, "--state-dir", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
