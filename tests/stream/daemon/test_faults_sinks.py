"""Receivers that are not there: detection goes on, and every alert arrives at least once when they come."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from daemon_cases import Settled, append, attack_lines, followed, jsonl, lines_of
from daemon_process import free_port
from sink_receivers import StreamReceiver, serving

pytestmark = pytest.mark.system


def keys_of(events: list[dict[str, object]]) -> set[str]:
    """What events are known by."""
    return {str(event["event"]["id"]) for event in events}  # type: ignore[index]


def test_sink_down(tmp_path: Path) -> None:
    """Webhook, Alertmanager and syslog are all away at first, over a restart, and come later."""
    hook, manager, log = free_port(), free_port(), free_port()
    feed, alerts = tmp_path / "feed.txt", tmp_path / "alerts.jsonl"
    feed.write_bytes(attack_lines(tmp_path, 600, seed=1))
    sinks = f"""
{jsonl(alerts)}
[[sink]]
kind = "webhook"
url = "http://127.0.0.1:{hook}/hook"
[[sink]]
kind = "alertmanager"
url = "http://127.0.0.1:{manager}"
[[sink]]
kind = "syslog"
address = "tcp://127.0.0.1:{log}"
"""
    running = Settled(tmp_path / "run", followed(feed), more=sinks, daemon="shutdown_timeout = 4\n")
    with running:
        running.ready()
        running.until(lambda: running.judged() == 600, "verdicts")
        for sink in ("webhook", "alertmanager", "syslog"):
            running.until(lambda s=sink: running.total("netclust_sink_errors_total", sink=s) > 0, f"errors of {sink}")
        append(feed, attack_lines(tmp_path, 600, seed=2))
        running.until(lambda: running.judged() == 1200, "verdicts all the same")
        good = running.total("netclust_checkpoints_total", result="ok")
        running.until(lambda: running.total("netclust_checkpoints_total", result="ok") > good, "checkpoints")
        assert running.stop() == 0
    with serving(hook) as webhook, serving(manager) as alertmanager:
        syslog = StreamReceiver(log)
        try:
            with running:
                running.ready()
                append(feed, attack_lines(tmp_path, 600, seed=3))
                running.until(lambda: running.judged() == 600)
                told = keys_of(lines_of(alerts))
                running.until(lambda: told <= set(webhook.keys), "the webhook")
                ids = Counter(key.split(":")[0] for key in told)
                running.until(lambda: Counter(map(sent, syslog.messages)) >= ids, "syslog")
                running.until(lambda: set(ids) <= named(alertmanager.requests), "Alertmanager")
                running.until(lambda: not running.status()["troubles"], "no trouble")
                assert running.total("netclust_sink_events_total", result="dropped") == 0
                assert running.total("netclust_sink_events_total", result="refused") == 0
                assert running.stop() == 0
        finally:
            syslog.stop()
    assert len(told) > 10


def sent(message: bytes) -> str:
    """The alert that a syslog message is about."""
    found = re.search(rb'"(a-[0-9a-f]+)"', message)
    return "" if found is None else found[1].decode()


def named(requests: list[tuple[str, dict[str, str], bytes]]) -> set[str]:
    """The alerts that an Alertmanager was told of."""
    return {alert["labels"]["id"] for _, _, body in requests for alert in json.loads(body)}
