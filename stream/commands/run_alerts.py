"""`netclust alerts` and `netclust clusters`: what the daemon's store holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from netclust.foundation.text import sanitize
from netclust.options.output import echo, output_note, output_result, output_table, write_json
from netclust.stream.alerts.alert_events import Alert, Count, Severity
from netclust.stream.daemon.paths import store_path
from netclust.stream.store.requests import iso, parse_since
from netclust.stream.store.store import Store

State = Literal["open", "closed", "all"]
AMONG = 1000
"""So many of the last seen are put in the order of triage."""


def alerts(
    ident: str | None,
    state: State,
    since: str | None,
    severity: Severity | None,
    text: str | None,
    limit: int,
    json: Path | None,
    folder: Path | None,
    triage: bool = False,
) -> None:
    """A table of alerts, or all about one."""
    with Store(store_path(folder), read_only=True) as store:
        if ident is not None:
            found = [store.alert(ident)]
        else:
            after = None if since is None else parse_since(since, time.time_ns())
            among = max(limit + 1, AMONG) if triage else limit + 1
            found = store.alerts(None if state == "all" else state, after, severity, text, among)
        running = store.daemon() is not None
    groups: list[int] | None = None
    if triage and ident is None:
        from netclust.stream.alerts.alert_triage import in_triage_order

        found, groups = in_triage_order(found)
        groups = groups[:limit]
    more, found = len(found) > limit and ident is None, found[:limit] if ident is None else found
    if str(json) != "-":
        if ident is not None:
            _print_one(found[0])
        else:
            _print_all(found, state, groups)
        if more:
            output_note(f"there are more than {limit}: see --limit, --since, --severity")
        if not running:
            output_note("no daemon seems to run here: this is what the last one left")
    body = {"alerts": [msgspec.to_builtins(a) for a in found], "more": more, "daemon": running}
    if groups is not None:
        body["groups"] = groups
    write_json(json, output_result(["alerts"], body, seed=None, data={}))


def _print_all(found: Sequence[Alert], state: State, groups: Sequence[int] | None) -> None:
    if not found:
        echo(f"No {'' if state == 'all' else state + ' '}alerts.")
        return
    rows = [
        [
            a.id, a.severity, a.state, a.label, a.entity, a.records, iso(a.first_seen) or "-", iso(a.last_seen) or "-",
            a.summary or a.explanation,
        ]
        for a in found
    ]  # fmt: skip
    columns = ["alert", "severity", "state", "label", "entity", "records", "first seen", "last seen", "what"]
    if groups is not None:
        columns, rows = ["group", *columns], [[group, *row] for group, row in zip(groups, rows, strict=True)]
    output_table("Alerts" if groups is None else "Alerts, the worst first, similar ones together", columns, rows)


def _print_one(alert: Alert) -> None:
    """Everything about an alert, its explanation last, where the eye is."""
    state = f"{alert.state} ({alert.closed_by})" if alert.closed_by else alert.state
    facts: list[list[Any]] = [
        ["what", f"{alert.kind}, {alert.label}"],
        ["state", state],
        ["severity", f"{alert.severity} ({alert.severity_score} of 100)"],
        [alert.entity_kind, alert.entity],
        ["records", f"{alert.records:,} ({alert.first_record or '?'} to {alert.last_record or '?'})"],
        ["seen", f"{iso(alert.first_seen) or '?'} to {iso(alert.last_seen) or '?'}"],
        ["clusters", ", ".join(f"cluster:{c}" for c in alert.clusters) or "-"],
        ["sources", _counts(alert.sources, alert.source_count)],
        ["destinations", _counts(alert.destinations, alert.destination_count)],
        ["ports", _counts(alert.ports, alert.port_count)],
        ["protocol, service", ", ".join(x for x in (alert.protocol, alert.service) if x) or "-"],
        ["came from", alert.source or "-"],
        ["top score", f"{alert.top_score:.4g}"],
        ["update", str(alert.update)],
    ]
    output_table(f"Alert {alert.id}", ["", ""], facts)
    if alert.attributes:
        rows = [[a.name, f"{a.contribution:+.3f}", _value(a.value), _value(a.normal)] for a in alert.attributes]
        output_table("Why", ["attribute", "adds", "here", "nearest normal"], rows)
    if alert.example:
        output_table("Example record", ["", ""], [[name, _value(value)] for name, value in alert.example.items()])
    for text in (alert.summary, alert.explanation):
        for line in text.splitlines():
            echo(sanitize(line))
    echo(f"Answer with: netclust label {alert.id} normal, or attack:NAME")


def _counts(counts: Sequence[Count], different: int) -> str:
    shown = ", ".join(f"{c.value} ({c.records:,})" for c in counts)
    more = different - len(counts)
    return (f"{shown}, and {more:,} more" if more > 0 and shown else shown) or "-"


def _value(value: float | str | None) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def clusters(limit: int, everything: bool, json: Path | None, folder: Path | None) -> None:
    """A table of clusters."""
    with Store(store_path(folder), read_only=True) as store:
        found = store.clusters(limit, anomalous_only=not everything)
    if str(json) != "-":
        if found:
            columns = ["cluster", "label", "records", "anomalous", "alerts", "first seen", "last seen", "top score"]
            rows = [
                [
                    f"cluster:{c.ident}", c.label, c.records, c.anomalous, c.alerts, iso(c.first_time) or "-",
                    iso(c.last_time) or "-", f"{c.top_score:.4g}",
                ]
                for c in found
            ]  # fmt: skip
            output_table("Clusters", columns, rows)
        else:
            echo("No clusters." if everything else "No clusters with anomalous records: --all shows the others.")
    body = {"clusters": [msgspec.to_builtins(c) for c in found]}
    write_json(json, output_result(["clusters"], body, seed=None, data={}))
