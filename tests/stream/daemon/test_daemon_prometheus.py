"""A real Prometheus scrapes a running daemon and evaluates our rules; a real Alertmanager receives what both tell."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from daemon_cases import Settled, attack_lines, followed, jsonl, lines_of
from daemon_process import free_port
from needed import need_program

from netclust.stream.telemetry.metric_table import METRICS

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules" / "netclust.rules.yml"
PROGRAMS = ("prometheus", "prometheus-alertmanager", "promtool")

pytestmark = pytest.mark.system


@contextmanager
def program(folder: Path, *words: str) -> Iterator[Path]:
    """A server in a process, killed at the end; its log."""
    log = folder / f"{words[0]}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def ask(port: int, path: str) -> Any:
    """JSON from a server here, None while it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        return json.loads(body) if response.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def quick_rules(path: Path) -> None:
    """Our rules, with seconds for minutes."""
    path.write_text(re.sub(r"(?m)^(\s+for:) \w+$", r"\1 1s", RULES.read_text()))


def prometheus_settings(folder: Path, daemon: int, alertmanager: int) -> Path:
    path = folder / "prometheus.yml"
    path.write_text(f"""
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [rules.yml]
alerting:
  alertmanagers:
    - static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]
scrape_configs:
  - job_name: netclust
    static_configs: [{{targets: ["127.0.0.1:{daemon}"]}}]
""")
    return path


def test_prometheus_and_alertmanager_understand_us(tmp_path: Path) -> None:
    for name in PROGRAMS:
        need_program(name)
    feed, alerts = tmp_path / "feed.txt", tmp_path / "alerts.jsonl"
    feed.write_bytes(attack_lines(tmp_path, 600, seed=1))
    web, manager = free_port(), free_port()
    sink = f'[[sink]]\nkind = "alertmanager"\nurl = "http://127.0.0.1:{manager}"\n'
    running = Settled(tmp_path / "run", followed(feed), more=sink + jsonl(alerts))
    settings = prometheus_settings(tmp_path, running.port, manager)
    quick_rules(tmp_path / "rules.yml")
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    with (
        program(
            tmp_path, "prometheus", f"--config.file={settings}", f"--storage.tsdb.path={tmp_path}/tsdb",
            f"--web.listen-address=127.0.0.1:{web}", "--log.level=warn",
        ) as log,
        program(
            tmp_path, "prometheus-alertmanager", f"--config.file={tmp_path}/alertmanager.yml",
            f"--storage.path={tmp_path}/am", f"--web.listen-address=127.0.0.1:{manager}", "--cluster.listen-address=",
        ),
        running,
    ):  # fmt: skip
        running.ready()
        running.until(lambda: running.judged() == 600)

        # promtool accepts what we export.
        checked = subprocess.run(
            ["promtool", "check", "metrics"],
            input=running.get("/metrics")[1],
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr.decode()

        # Our sink's alerts arrive.
        def received() -> list[dict[str, str]]:
            return [alert["labels"] for alert in ask(manager, "/api/v2/alerts") or []]

        told = {line["netclust"]["alert"]["id"] for line in lines_of(alerts)}
        assert told
        running.until(lambda: told <= {labels.get("id") for labels in received()}, f"alerts of our sink: {received()}")

        # A refused reload goes the long way: metric, rule, Alertmanager.
        running.config.write_text("nonsense")
        running.signal(signal.SIGHUP)
        running.until(
            lambda: "NetclustReloadFailed" in {labels["alertname"] for labels in received()},
            f"the rule's alert; {log.read_text()[-2000:]}",
        )

        # Every rule was evaluated, without an error.
        def rules() -> list[dict[str, Any]]:
            groups = (ask(web, "/api/v1/rules") or {"data": {"groups": []}})["data"]["groups"]
            return [rule for group in groups for rule in group["rules"]]

        count = RULES.read_text().count("- alert:") + RULES.read_text().count("- record:")
        running.until(lambda: {rule["health"] for rule in rules()} == {"ok"}, f"healthy rules: {rules()}")
        assert len(rules()) == count
        firing = {rule["name"] for rule in rules() if rule.get("state") == "firing"}
        assert firing - {"NetclustDrift", "NetclustWarmupLong"} == {"NetclustReloadFailed"}

        # What we export is there to be asked for.
        def value(query: str) -> float:
            found = (ask(web, f"/api/v1/query?query={quote(query)}") or {"data": {"result": []}})["data"]["result"]
            return sum(float(sample["value"][1]) for sample in found)

        assert value("sum(netclust_verdicts_total)") == 600
        assert value('up{job="netclust"}') == 1
        names = set((ask(web, "/api/v1/label/__name__/values") or {"data": []})["data"])
        exported = {name.split("{")[0] for name in running.metrics()}
        assert {name for name in exported if name.startswith("netclust_")} <= names
        assert len(names & {metric.name for metric in METRICS}) > 20
        assert running.stop() == 0
    assert "error" not in log.read_text().lower()
