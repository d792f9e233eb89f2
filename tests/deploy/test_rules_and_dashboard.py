"""Rules and dashboard: they name only what is exported, promtool accepts them, each rule has its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_tools import run_tool
from promql import labels_of, metrics_of

from netclust.stream.config import HttpConfig
from netclust.stream.telemetry.metric_table import METRICS, label_values

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rules" / "netclust.rules.yml"
RUNBOOK = ROOT / "docs" / "runbook"
# Of Prometheus itself and of its client library.
OTHERS = {"up": {"job", "instance"}, "process_resident_memory_bytes": set(), "process_cpu_seconds_total": set()}
TARGET = {"instance", "job"}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboards" / "netclust.json").read_text())
    return found


def dashboard_queries() -> Iterator[str]:
    board = dashboard()
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (note["expr"] for note in board["annotations"]["list"])
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield re.sub(r"label_values\((\w+), *(\w+)\)", r"count by (\2) (\1)", variable["query"]["query"])


def exported() -> dict[str, set[str]]:
    """Every series name with its labels, as Prometheus has it after scraping and recording."""
    found = {name: labels | TARGET for name, labels in OTHERS.items()}
    for doc in METRICS:
        if doc.type == "histogram":
            found[f"{doc.name}_bucket"] = {"le"} | TARGET
        else:
            found[doc.name] = set(doc.labels) | TARGET
    for rule in rules():
        if "record" in rule:
            found[rule["record"]] = labels_of(rule["expr"])[""] or {"source"} | TARGET
    return found


QUERIES = [*(str(rule["expr"]) for rule in rules()), *dashboard_queries()]


@pytest.mark.parametrize("expression", QUERIES)
def test_no_query_names_a_metric_or_a_label_that_is_not_exported(expression: str) -> None:
    known = exported()
    used = metrics_of(expression)
    assert used, expression
    assert used <= set(known), used - set(known)
    for metric, labels in labels_of(expression).items():
        allowed = known[metric] if metric else set().union(*(known[name] for name in used))
        assert labels <= allowed, (metric, labels - allowed)


@pytest.mark.parametrize("expression", QUERIES)
def test_no_query_asks_for_a_label_value_that_cannot_be(expression: str) -> None:
    for metric, inside in re.findall(r"(\w+)\{([^}]*)\}", expression):
        for label, wanted in re.findall(r'(\w+)(?:=|=~|!=|!~)"([^"$]*)"', inside):
            values = label_values(metric, label)
            assert values is None or set(wanted.split("|")) <= set(values), (metric, label, wanted)


def test_the_parser_of_queries_finds_what_is_there() -> None:
    query = 'sum by (le) (rate(a_total{x="b{c}", y!~"d|e"}[5m])) / on (z) (n:b:c > 0) and time() - f offset 5m'
    assert metrics_of('a{x="b"} / on (z) c') == {"a", "c"}
    assert labels_of('a{x="b", y!~"d|e"}') == {"": set(), "a": {"x", "y"}}
    assert {"n:b:c", "f"} <= metrics_of(query)
    assert labels_of(query)[""] == {"le", "z"}


def test_promtool_accepts_configuration_and_rules() -> None:
    run_tool("promtool", "check", "rules", RULES)
    run_tool("promtool", "check", "config", DEPLOY / "prometheus" / "prometheus.yml")


@pytest.mark.system
def test_every_rule_fires_when_it_should_and_not_before() -> None:
    run_tool("promtool", "test", "rules", "netclust.test.yml", cwd=RULES.parent)
    tested = {group["name"] for group in yaml.safe_load((RULES.parent / "netclust.test.yml").read_text())["tests"]}
    assert set(alerts()) <= tested


def test_amtool_accepts_the_routing() -> None:
    run_tool("amtool", "check-config", DEPLOY / "alertmanager" / "alertmanager.yml")


def test_routing_names_only_alerts_that_there_are() -> None:
    text = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text()
    assert set(re.findall(r'alertname="(\w+)"', text)) <= set(alerts())


def test_every_rule_has_a_severity_a_text_and_a_page() -> None:
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        notes = rule["annotations"]
        assert notes["summary"]
        assert notes["description"]
        assert notes["runbook_url"] == f"docs/runbook/{name}.md"


def test_every_page_of_the_runbook_belongs_to_a_rule_and_says_what_it_says() -> None:
    assert {path.stem for path in RUNBOOK.glob("*.md")} == {*alerts(), "index"}
    index = (RUNBOOK / "index.md").read_text()
    for name, rule in alerts().items():
        page = (RUNBOOK / f"{name}.md").read_text()
        assert rule["expr"].strip() in page
        assert f"Severity: {rule['labels']['severity']}." in page
        assert rule["annotations"]["summary"] in page
        for heading in ("## What it means", "## Look first", "## What to do"):
            assert heading in page
        assert f"[{name}]({name}.md)" in index


def test_pages_and_texts_name_only_metrics_that_there_are() -> None:
    known = {doc.name for doc in METRICS} | set(exported())
    texts = [*RUNBOOK.glob("*.md"), DEPLOY / "README.md"]
    for path in texts:
        named = set(re.findall(r"`[^`]*?\b(netclust[_:][a-z][\w:]+)", path.read_text()))
        assert named <= known, (path, named - known)


def test_links_between_pages_lead_somewhere() -> None:
    for path in RUNBOOK.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (path.parent / target).is_file(), (path, target)


def test_the_dashboard_is_whole() -> None:
    board = dashboard()
    assert board["uid"] == "netclust"
    assert set(board["time"]) == {"from", "to"}
    assert {v["name"]: v["type"] for v in board["templating"]["list"]} == {
        "datasource": "datasource",
        "instance": "query",
    }
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"]["uid"] == "${datasource}"
            assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_no_two_panels_lie_on_one_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_prometheus_scrapes_where_the_daemon_listens() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["job_name"] == "netclust"  # as the rule NetclustDown says
    assert job["static_configs"][0]["targets"] == [HttpConfig().listen]
