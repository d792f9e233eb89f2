"""The daemon over HTTP: what is read is what the store holds, and nobody changes anything without the token."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_cases import TOKEN, FakeControl
from store_cases import alert, told

from netclust.errors import InputError
from netclust.stream.daemon.http_app import make_app
from netclust.stream.http.server import HttpServer, serve
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store import Store

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
READS = ("status", "alerts", "alerts/a-1", "clusters", "labels", "suppressions", "audit")
LABEL = {"target": "a-1", "label": "attack:scan", "by": "eve", "why": "seen before"}
WRITES: list[tuple[str, str, Any]] = [
    ("POST", "labels", LABEL),
    ("POST", "labels/1/undo", {"by": "eve"}),
    ("POST", "suppressions", {"port": 22, "reason": "scanner", "by": "eve", "until": "8h"}),
    ("DELETE", "suppressions/s-1", {"by": "eve", "why": "over"}),
    ("POST", "reload", {}),
]


@pytest.fixture
def control(tmp_path: Path) -> Iterator[FakeControl]:
    with Store(tmp_path / "netclust.db") as store:
        store.save_events([told("a-1"), told("a-2", state="closed", severity="critical")])
        yield FakeControl(store)


@pytest.fixture
def server(control: FakeControl) -> Iterator[HttpServer]:
    running = serve(make_app(control), "127.0.0.1:0")
    yield running
    assert running.stop()


@pytest.fixture
def client(server: HttpServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=20) as opened:
        yield opened


def refused(answer: httpx.Response, code: int, error: str) -> str:
    assert answer.status_code == code, answer.text
    body = answer.json()
    assert set(body) == {"error", "detail"}
    assert body["error"] == error
    return str(body["detail"])


# Reading


def test_prometheus_and_restarters_get_what_they_expect(client: httpx.Client, control: FakeControl) -> None:
    metrics = client.get("/metrics")
    assert (metrics.status_code, metrics.content) == (200, b"netclust_records_total 7\n")
    assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "server" not in metrics.headers
    assert client.get("/healthz").json() == {"healthy": True, "phase": "running"}
    assert client.get("/readyz").json() == {"ready": True, "warming_up": False}
    control.fine = False
    assert [client.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")] == [503, 503, 200]


def test_what_is_read_is_what_is_stored(client: httpx.Client, control: FakeControl) -> None:
    assert client.get("/api/v1/status").json() == {"records": 7}
    found = client.get("/api/v1/alerts").json()["alerts"]
    assert [a["id"] for a in found] == ["a-2", "a-1"]
    for query, ids in (
        ("state=closed", ["a-2"]), ("state=open", ["a-1"]), ("severity=high", ["a-2"]), ("text=A-2", ["a-2"]),
        ("since=1h", ["a-2", "a-1"]), ("limit=1", ["a-2"]), ("since=2200-01-01", []), ("order=triage&limit=1", ["a-2"]),
    ):  # fmt: skip
        assert [a["id"] for a in client.get(f"/api/v1/alerts?{query}").json()["alerts"]] == ids, query
    one = client.get("/api/v1/alerts/a-1").json()["alert"]
    assert one["explanation"] == alert().explanation
    assert one["example"]["source"] == "10.0.0.7"
    control.store.add_suppression(SuppressionRule(port=22), reason="scanner", by="eve")
    (rule,) = client.get("/api/v1/suppressions").json()["suppressions"]
    assert (rule["id"], rule["port"], rule["active"]) == ("s-1", 22, True)
    assert client.get("/api/v1/clusters").json() == {"clusters": []}
    assert client.get("/api/v1/audit").json()["audit"][0]["what"] == "suppress s-1"


@pytest.mark.parametrize(
    "query",
    [
        "order=best",
        "limit=0",
        "limit=1001",
        "limit=x",
        "state=new",
        "severity=bad",
        "since=soon",
        "bogus=1",
        "limit=1e999",
    ],
)
def test_bad_questions_are_refused(client: httpx.Client, query: str) -> None:
    assert client.get(f"/api/v1/alerts?{query}").status_code == 400


def test_what_is_not_there_is_said(client: httpx.Client) -> None:
    assert "no alert" in refused(client.get("/api/v1/alerts/a-9"), 404, "not_found")
    refused(client.get("/api/v1/nothing"), 404, "http")
    refused(client.put("/api/v1/labels", headers=AUTHORIZED, json={}), 405, "http")
    refused(client.post("/api/v1/labels/99/undo", headers=AUTHORIZED, json={"by": "eve"}), 404, "not_found")
    refused(client.request("DELETE", "/api/v1/suppressions/s-9", headers=AUTHORIZED), 404, "not_found")


# Writing


def test_a_label_gets_through(client: httpx.Client, control: FakeControl) -> None:
    answer = client.post("/api/v1/labels", json=LABEL, headers=AUTHORIZED)
    assert answer.status_code == 201
    assert answer.json()["label"]["label_seq"] == 1
    (row,) = control.store.labels()
    assert (row.target, row.label, row.by, row.why) == ("a-1", "attack:scan", "eve", "seen before")
    undone = client.post("/api/v1/labels/1/undo", json={"by": "bob"}, headers=AUTHORIZED)
    assert undone.json()["label"]["target_kind"] == "undo"
    refused(client.post("/api/v1/labels/1/undo", json={"by": "bob"}, headers=AUTHORIZED), 400, "input")
    assert control.changes == 2
    listed = client.get("/api/v1/labels?after=1&newest=true&status=pending").json()["labels"]
    assert [r["label_seq"] for r in listed] == [2]


def test_a_suppression_gets_through(client: httpx.Client, control: FakeControl) -> None:
    body = {"address": "10.0.0.0/8", "port": 22, "reason": "scanner", "by": "eve", "until": "8h"}
    made = client.post("/api/v1/suppressions", json=body, headers=AUTHORIZED)
    assert (made.status_code, made.json()["suppression"]["id"]) == (201, "s-1")
    assert len(control.store.suppressions()) == 1
    gone = client.request("DELETE", "/api/v1/suppressions/s-1", headers=AUTHORIZED)
    assert (gone.status_code, gone.json()["suppression"]["removed_by"]) == (200, "http")
    assert control.store.suppressions() == []
    assert len(client.get("/api/v1/suppressions?all=true").json()["suppressions"]) == 1
    assert control.changes == 2


def test_a_refused_reload_is_told_from_one_that_worked(client: httpx.Client, control: FakeControl) -> None:
    assert client.post("/api/v1/reload", json={"by": "eve"}, headers=AUTHORIZED).json()["reloaded"] is True
    control.reloads = (False, "netclust.toml: no [[source]]")
    answer = client.post("/api/v1/reload", json={}, headers=AUTHORIZED)
    assert (answer.status_code, answer.json()["detail"]) == (409, "netclust.toml: no [[source]]")
    assert [(row.by, row.result) for row in control.store.audit(2)] == [
        ("http", control.reloads[1]),
        ("eve", "reloaded"),
    ]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"target":"a-1"}', b'{"target":"a-1","label":"normal","by":"eve","extra":1}',
     b'{"target":7,"label":"normal","by":"eve"}', b'{"target":"a-1","label":"bad","by":"eve"}', b"\xff\xfe",
     b'{"target":"a-1","label":"normal","by":""}', b"[" * 60_000, b'{"target":"a-1","label":"normal","by":"\\ud800"}'],
)  # fmt: skip
def test_bad_bodies_are_refused(client: httpx.Client, control: FakeControl, body: bytes) -> None:
    headers = AUTHORIZED | {"content-type": "application/json"}
    answer = client.post("/api/v1/labels", content=body, headers=headers)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] in ("body", "input")
    assert control.store.labels() == []
    assert control.changes == 0


# Who may


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_nothing_changes_without_the_token(
    client: httpx.Client, control: FakeControl, method: str, path: str, body: Any
) -> None:
    before = control.store.data_version()
    for given in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xe9"):
        headers = {"Authorization": given.encode("latin-1")} if given else {}
        answer = client.request(method, f"/api/v1/{path}", json=body, headers=headers)
        refused(answer, 401, "token")
        assert answer.headers["www-authenticate"] == "Bearer"
    control.token = ""
    for headers in ({}, AUTHORIZED, {"Authorization": "Bearer"}):
        refused(client.request(method, f"/api/v1/{path}", json=body, headers=headers), 403, "no_token")
    assert control.store.data_version() == before
    assert control.changes == 0


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_a_form_of_a_web_page_changes_nothing(
    client: httpx.Client, control: FakeControl, method: str, path: str, body: Any
) -> None:
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"):
        headers = AUTHORIZED | ({"content-type": kind} if kind else {})
        answer = client.request(method, f"/api/v1/{path}", content=b'{"by":"eve"}', headers=headers)
        refused(answer, 415, "content_type")
    assert control.changes == 0


def test_a_page_that_calls_itself_loopback_reads_no_alerts(client: httpx.Client) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9471", "10.0.0.7", "[fe80::1]"):
        for path in ("/metrics", "/api/v1/alerts"):
            refused(client.get(path, headers={"Host": host}), 421, "host")
    for host in ("localhost", "LOCALHOST:9471", "127.0.0.1:1", "127.8.8.8", "[::1]:9471"):
        assert client.get("/api/v1/alerts", headers={"Host": host}).status_code == 200


def test_reading_beyond_loopback_needs_the_token(control: FakeControl) -> None:
    server = serve(make_app(control, "0.0.0.0:9471"), "127.0.0.1:0")
    try:
        with httpx.Client(base_url=server.url, trust_env=False, headers={"Host": "ids.example"}) as client:
            for path in ("/metrics", "/healthz", "/readyz"):
                assert client.get(path).status_code == 200
            for path in READS:
                refused(client.get(f"/api/v1/{path}"), 401, "token")
                assert client.get(f"/api/v1/{path}", headers=AUTHORIZED).status_code == 200
    finally:
        server.stop()


def test_beyond_loopback_a_token_is_needed(control: FakeControl) -> None:
    control.token = ""
    for listen in ("0.0.0.0:9471", "[::]:9471", "192.0.2.1:80", "ids.example:80"):
        with pytest.raises(InputError, match="token"):
            make_app(control, listen)
    for listen in ("127.0.0.1:9471", "[::1]:1", "localhost:9471"):
        make_app(control, listen)


# Trouble


def test_a_store_that_is_locked_or_gone_is_reported(
    client: httpx.Client, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netclust.stream.store.store_schema.BUSY_SECONDS", 0.05)
    while control.store._idle:  # connections that would wait longer
        control.store._idle.pop().close()
    other = sqlite3.connect(control.store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "locked" in refused(client.post("/api/v1/labels", json=LABEL, headers=AUTHORIZED), 503, "store")
    assert client.get("/api/v1/alerts").status_code == 200
    other.close()
    control.store.close()
    refused(client.get("/api/v1/alerts"), 503, "store")
    assert client.get("/metrics").status_code == 200


def test_an_internal_error_hides_its_insides(
    client: httpx.Client, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> dict[str, Any]:
        raise RuntimeError("the token is hunter2")

    monkeypatch.setattr(control, "status", broken)
    assert "hunter2" not in refused(client.get("/api/v1/status"), 500, "internal")
    assert client.get("/healthz").status_code == 200
