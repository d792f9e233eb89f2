"""The console's API: it shows what is there, refuses nonsense, and changes nothing."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from console_cases import grown, saved_of
from http_cases import TOKEN, FakeControl
from store_cases import START, alert, told

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.stream.console.events import MAX_LISTENERS
from netclust.stream.console.forest import CAPACITY, Step
from netclust.stream.daemon.http_app import make_app
from netclust.stream.http.server import HttpServer, serve
from netclust.stream.store.store import Store

ROOT = Path(__file__).resolve().parents[3]
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def control(tmp_path: Path) -> Iterator[FakeControl]:
    with Store(tmp_path / "netclust.db") as store:
        store.save_events([told("a-1"), told("a-2", clusters=[41, 42])])
        yield FakeControl(store)


@pytest.fixture
def server(control: FakeControl) -> Iterator[HttpServer]:
    running = serve(make_app(control), "127.0.0.1:0")
    yield running
    control.view.hub.close()
    assert running.stop()


@pytest.fixture
def client(server: HttpServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/api/v1/", trust_env=False, timeout=20) as opened:
        yield opened


def got(client: httpx.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_page_learns_whether_it_needs_a_token(client: httpx.Client, control: FakeControl) -> None:
    expected = {"reads_need_token": False, "changes": True, "authenticated": False}
    found = got(client, "session")
    assert {name: found[name] for name in expected} == expected
    assert client.get("session", headers=AUTHORIZED).json()["authenticated"]
    assert client.get("session", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert found["instance"] == control.view.instance


def test_an_alert_comes_with_all_that_explains_it(client: httpx.Client, control: FakeControl) -> None:
    control.view.history.save_paths({"a-1": [Step(kind="root", record="root")]})
    control.store.add_label("a-1", "attack:scan", by="eve")
    found = got(client, "alerts/a-1")
    assert found["alert"]["summary"] == alert().summary
    assert [step["record"] for step in found["path"]] == ["root"]
    assert [row["label"] for row in found["labels"]] == ["attack:scan"]
    assert "10.0.0.7" in found["filters"]["bpf"]
    assert found["packets"] == {"available": False, "why": "no packets are at hand"}
    assert found["settles_alerts"] == 0, "it is answered"
    assert got(client, "alerts/a-2")["settles_alerts"] == 1


def test_the_backlog_is_not_older_than_the_store(client: httpx.Client, control: FakeControl) -> None:
    found = got(client, "backlog")
    assert (found["unanswered"], [row["alert"]["id"] for row in found["backlog"]]) == (2, ["a-2", "a-1"])
    assert (found["backlog"][0]["settles_alerts"], found["backlog"][0]["settles_records"]) == (2, 6)
    client.post("labels", json={"target": "a-2", "label": "normal", "by": "eve"}, headers=AUTHORIZED)
    found = got(client, "backlog", limit=1)
    assert (found["unanswered"], [row["alert"]["id"] for row in found["backlog"]]) == (1, ["a-1"])


def test_what_an_answer_changed_is_shown(client: httpx.Client, control: FakeControl) -> None:
    row = control.store.add_label("a-1", "normal", by="eve")
    assert got(client, f"labels/{row.label_seq}")["closed"] == []
    effect = {"pinned": 3, "closed": ["a-1", "a-gone"]}
    control.store.label_result(row.label_seq, status="applied", from_tick=9, covered=5, effect=effect)
    found = got(client, f"labels/{row.label_seq}")
    assert (found["label"]["covered"], found["label"]["from_tick"], found["pinned"]) == (5, 9, 3)
    assert [brief["id"] for brief in found["closed"]] == ["a-1"]


def test_the_forest_live_and_past(client: httpx.Client, control: FakeControl) -> None:
    forest, history = control.view.forest, control.view.history
    assert got(client, "forest")["nodes"]["tick"] == []
    assert got(client, "forest/extent")["nodes"] == 0
    grown(forest, [-1, 0, 1])
    history.save_nodes(saved_of(forest))
    live = got(client, "forest")
    assert (live["newest"], live["nodes"]["link"], live["labels"]) == (2, [-1, 0, 1], ["novel"])
    assert got(client, "forest", after=live["newest"])["nodes"]["tick"] == []
    past = got(client, "forest", until=10**9, span=10**9)
    assert past["nodes"]["tick"] == [0, 1]
    assert {**past["nodes"], "label": []} == {**{k: v[:2] for k, v in live["nodes"].items()}, "label": []}
    assert got(client, "forest/extent", buckets=3)["counts"] == [1, 1, 1]
    assert got(client, "records/1")["record"]["record"] == "0:1"
    assert client.get("records/77").status_code == 404


def test_a_cluster_with_its_alerts_and_records(client: httpx.Client, control: FakeControl) -> None:
    assert client.get("clusters/41").status_code == 404

    class Summary:
        id, label, records, anomalous, first_time, last_time, top_score = 41, "novel", 3, 3, START, START, 1.0

    control.store.save_clusters([Summary()])
    grown(control.view.forest, [-1, 0], cluster=41)
    found = got(client, "clusters/41")
    assert (found["cluster"]["ident"], found["cluster"]["alerts"]) == (41, 2)
    assert {brief["id"] for brief in found["alerts"]} == {"a-1", "a-2"}
    assert [record["record"] for record in found["records"]] == ["0:1", "0:0"]


def test_seconds_or_minutes(client: httpx.Client, control: FakeControl) -> None:
    control.view.overview.take({"records": 0}, seconds=1.0)
    control.view.overview.take({"records": 10}, seconds=2.0)
    control.view.history.save_sample(control.store.clock() - 10**12, {"records": 7.0})
    assert got(client, "overview", seconds=60)["samples"]["records"] == [0.0, 10.0]
    assert got(client, "overview", seconds=7200)["samples"]["records"] == [7.0]
    assert sum(map(sum, got(client, "alerts/timeline")["counts"].values())) == 2


@pytest.mark.parametrize(
    "path",
    [
        "forest?limit=0", f"forest?limit={CAPACITY + 1}", "forest?until=x", "forest?after=1e99", "overview?seconds=0",
        "overview?seconds=99999999999", "alerts/timeline?buckets=0", "alerts/timeline?buckets=1001", "backlog?limit=-1",
        "forest/extent?buckets=x", "alerts/timeline?since=soon", "backlog?bogus=1",
    ],
)  # fmt: skip
def test_bad_questions_are_refused(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"error", "detail"}


@pytest.mark.parametrize(
    "path", ["records/18446744073709551616", "clusters/99999999999999999999", "labels/99999999999999999999"]
)
def test_numbers_that_nobody_has(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_hostile_records_come_out_as_json_and_nothing_else(client: httpx.Client, control: FakeControl) -> None:
    evil = "<script>alert(1)</script>\u202e\x1b[31m\r\n" + "x" * 100
    control.store.save_events([told("a-9", entity=evil, summary=evil, example={"source": evil, "name": evil})])
    answer = client.get("alerts/a-9")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["alert"]["entity"] == evil
    filters = answer.json()["filters"]
    assert not any(set(text) & set("<>\r\n\x1b\u202e") for text in filters.values())


# Packets


def test_packets_need_the_token_even_here(client: httpx.Client, control: FakeControl, tmp_path: Path) -> None:
    assert client.get("alerts/a-1/packets").status_code == 401
    answer = client.get("alerts/a-1/packets", headers=AUTHORIZED)
    assert (answer.status_code, answer.json()["error"]) == (404, "no_packets")


def test_packets_of_an_alert_are_a_capture(client: httpx.Client, control: FakeControl, tmp_path: Path) -> None:
    capture, labels = tmp_path / "c.pcap", tmp_path / "c.csv"
    simulate_capture(capture, labels, hours=0.02, attacks="syn_flood", hosts=10)
    row = labels.read_text().splitlines()[1].split(",")
    names = ("source", "source_port", "destination", "destination_port", "protocol", "start")
    example: dict[str, float | str | None] = dict(zip(names, row, strict=False))
    example["start"] = datetime.fromtimestamp(float(row[5]), UTC).isoformat().replace("+00:00", "Z")
    control.store.save_events([told("a-5", example=example, examples=[example], source="in")])
    control.view.captures = lambda alert: ([capture], "")
    assert got(client, "alerts/a-5")["packets"]["available"]
    answer = client.get("alerts/a-5/packets", headers=AUTHORIZED)
    assert answer.status_code == 200, answer.text
    assert answer.content[:4].hex() in ("d4c3b2a1", "4d3cb2a1", "0a0d0d0a")
    assert answer.headers["content-type"] == "application/vnd.tcpdump.pcap"
    assert "a-5.pcap" in answer.headers["content-disposition"]
    capture.unlink()
    assert client.get("alerts/a-5/packets", headers=AUTHORIZED).status_code == 400


# Events


def lines_of(client: httpx.Client, count: int, then: Any = None) -> list[str]:
    """The first events of a stream; `then` is called when the first has come."""
    events: list[str] = []
    with client.stream("GET", "events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("event: "):
                events.append(line.removeprefix("event: "))
                if len(events) == 1 and then is not None:
                    then()
            if len(events) == count:
                break
    return events


def test_pages_hear_of_labels_and_rules(client: httpx.Client, server: HttpServer, control: FakeControl) -> None:
    def answer() -> None:
        with httpx.Client(base_url=f"{server.url}/api/v1/", trust_env=False, headers=AUTHORIZED) as other:
            other.post("labels", json={"target": "a-1", "label": "normal", "by": "eve"})
            other.post("suppressions", json={"port": 22, "reason": "scan", "by": "eve"})

    control.view.now = {"records": 7}
    assert lines_of(client, 4, answer) == ["hello", "overview", "label", "rules"]


def test_too_many_pages_are_told_so(server: HttpServer, control: FakeControl) -> None:
    clients = [httpx.Client(base_url=server.url, trust_env=False, timeout=20) for _ in range(MAX_LISTENERS + 1)]
    streams = [c.stream("GET", "/api/v1/events") for c in clients]
    try:
        answers = [stream.__enter__() for stream in streams]
        assert [a.status_code for a in answers[:-1]] == [200] * MAX_LISTENERS
        assert answers[-1].status_code == 503
        assert clients[-1].get("/healthz").status_code == 200, "others are still answered"
    finally:
        for stream in streams:
            stream.__exit__(None, None, None)
        for c in clients:
            c.close()


def test_a_look_at_the_head_takes_no_place(client: httpx.Client, control: FakeControl) -> None:
    assert client.head("events").status_code == 200
    assert control.view.hub.listeners == 0


def test_a_stop_ends_the_streams(client: httpx.Client, server: HttpServer, control: FakeControl) -> None:
    timer = threading.Timer(0.2, control.view.hub.close)
    assert lines_of(client, 2, timer.start) == ["hello", "bye"]


def test_the_python_of_the_guide_runs(
    server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "console.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("token").write_text(TOKEN)
    exec(compile(code.replace("http://127.0.0.1:9471", server.url), "console.md", "exec"), {})  # noqa: S102 (our own file)
    assert capsys.readouterr().out.splitlines() == [
        "2 medium 10.0.0.7 does something new", "1 medium 10.0.0.7 does something new", "pending",
    ]  # fmt: skip


# The description


def test_every_route_is_described_and_every_description_is_a_route(client: httpx.Client) -> None:
    described = got(client, "openapi.json")
    assert described["openapi"] == "3.1.0"
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if path.endswith(("/events", "/openapi.json")):
                continue
            url = path.replace("{id}", "a-1").replace("{seq}", "1").replace("{tick}", "0")
            if path.startswith("/api/v1/clusters/"):
                url = "/api/v1/clusters/1"
            answer = client.request(method, f"http://{client.base_url.netloc.decode()}{url}")
            assert answer.status_code != 405, path
            assert operation["summary"]
    assert json.dumps(described).count("#/components/schemas/Alert") > 0
