"""Syslog receivers, webhooks and Alertmanager on loopback: nothing is lost when they come and go."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sink_events as make
from needed import need_program
from sink_receivers import HttpReceiver, StreamReceiver, serving

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import Notice
from netclust.stream.config import SinkConfig
from netclust.stream.sinks.alertmanager import Alertmanager
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.factory import open_sink
from netclust.stream.sinks.filtering import AtLeast
from netclust.stream.sinks.syslog import Syslog
from netclust.stream.sinks.webhook import Webhook


def test_udp_messages_arrive_one_a_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        sink = Syslog("s", f"udp://127.0.0.1:{receiver.getsockname()[1]}", observer="probe")
        sink.write([*make.alert_events(2), make.nasty_event()])
        got = [receiver.recv(65536) for _ in range(3)]
    assert b'id="a-000001"' in got[1]
    assert got[1].endswith(b" number 1")
    with pytest.raises(SinkError, match="refused"):  # nobody listens any more
        sink.write(make.alert_events(1))
    sink.close()


def test_a_unix_socket_that_is_made_anew_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = Syslog("s", f"unix://{path}", style="cef")
    with pytest.raises(SinkError, match="No such file"):
        sink.write(make.alert_events(1))
    for _ in range(2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(str(path))
            try:
                sink.write(make.alert_events(1))
            except SinkError:  # of the old one; the runner tries again
                sink.write(make.alert_events(1))
            assert b"CEF:0|netclust|" in receiver.recv(65536)
        path.unlink()
    sink.close()


def test_a_tcp_receiver_that_was_restarted_misses_nothing() -> None:
    receiver = StreamReceiver()
    sink = Syslog("s", f"tcp://127.0.0.1:{receiver.port}")
    sink.write([make.nasty_event(), *make.alert_events(2)])
    make.until(lambda: len(receiver.messages) == 3)
    receiver.stop()
    with pytest.raises(SinkError):
        sink.write(make.alert_events(1, first=2))
    again = StreamReceiver(receiver.port)
    sink.write(make.alert_events(2, first=2))
    make.until(lambda: len(again.messages) == 2)
    sink.close()
    again.stop()
    assert [b'id="a-00000%d"' % i in m for i, m in enumerate(receiver.messages[1:] + again.messages)] == [True] * 4


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = need_program("openssl")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    new = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        path,
        "-out",
        f"{path}.crt",
    ]
    subprocess.run([*new, *names], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def test_tls_is_not_spoken_with_a_stranger(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    receiver = StreamReceiver(context=context)
    sink = Syslog("s", f"tls://localhost:{receiver.port}", ca_file=f"{certificate}.crt")
    sink.write(make.alert_events(2))
    sink.write(make.alert_events(1, first=2))
    make.until(lambda: len(receiver.messages) == 3)
    sink.close()
    stranger = Syslog("s", f"tls://localhost:{receiver.port}")
    with pytest.raises(SinkError, match=r"(?i)certificate.verify.failed"):
        stranger.write(make.alert_events(1))
    receiver.stop()
    assert len(receiver.messages) == 3


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with serving() as started:
        yield started


def test_a_webhook_gets_one_event_a_request_with_its_key(receiver: HttpReceiver, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-1\n")
    sink = Webhook("w", receiver.url + "/in?x=1", headers={"X-Team": "blue"}, token_file=str(token))
    sink.open(None)
    sink.write([*make.alert_events(1), make.nasty_event()])
    token.write_text("secret-2\n")
    sink.write(make.alert_events(1))
    sink.close()
    path, headers, body = receiver.requests[0]
    assert (path, headers["X-Team"], headers["Authorization"]) == ("/in?x=1", "blue", "Bearer secret-1")
    assert headers["Idempotency-Key"] == "a-000000:0"
    assert json.loads(body)["netclust"]["alert"]["id"] == "a-000000"
    assert receiver.requests[2][1]["Authorization"] == "Bearer secret-2"


@pytest.mark.parametrize(
    ("status", "retry"), [(400, False), (413, False), (422, False), (401, True), (404, True), (408, True), (503, True)]
)
def test_a_webhook_does_not_give_up_what_may_still_be_taken(receiver: HttpReceiver, status: int, retry: bool) -> None:
    receiver.statuses = [status]
    sink = Webhook("w", receiver.url)
    with pytest.raises(SinkError, match=str(status)) as caught:
        sink.write(make.alert_events(1))
    assert caught.value.retry is retry
    sink.write(make.alert_events(1))
    sink.close()


def test_a_webhook_does_not_follow_a_redirect_with_its_token(receiver: HttpReceiver) -> None:
    receiver.statuses = [307]
    receiver.headers = {"Location": "http://elsewhere.invalid/"}
    sink = Webhook("w", receiver.url)
    with pytest.raises(SinkError, match="redirects are not followed: set url to 'http://elsewhere"):
        sink.write(make.alert_events(1))
    sink.close()
    assert len(receiver.requests) == 1


def test_a_pause_that_a_receiver_asks_for_is_bounded(receiver: HttpReceiver) -> None:
    sink = Webhook("w", receiver.url)
    for said, seconds in (("7", 7.0), ("99999999", 300.0)):
        receiver.statuses, receiver.headers = [429], {"Retry-After": said}
        with pytest.raises(SinkError) as caught:
            sink.write(make.alert_events(1))
        assert caught.value.after_seconds == seconds  # type: ignore[attr-defined]
    sink.close()


def test_a_proxy_of_the_environment_is_not_used(receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    sink = Webhook("w", receiver.url)
    sink.write(make.alert_events(1))
    sink.close()
    assert receiver.keys == ["a-000000:0"]


def test_a_silent_receiver_does_not_hold_the_webhook_for_good() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sink = Webhook("w", f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
        with pytest.raises(SinkError, match="timed out"):
            sink.write(make.alert_events(1))
        sink.close()


def posted(receiver: HttpReceiver, request: int = -1) -> list[dict[str, dict[str, str]]]:
    path, _, body = receiver.requests[request]
    assert path == "/prefix/api/v2/alerts"
    found: list[dict[str, dict[str, str]]] = json.loads(body)
    return found


def test_an_open_alert_does_not_expire_at_the_alertmanager(receiver: HttpReceiver) -> None:
    now = [1000.0]
    sink = Alertmanager("am", receiver.url + "/prefix/", clock=lambda: now[0])
    sink.open(None)
    sink.write([make.alert_event(5, severity="high"), Notice(topic="drift", time=0, key="n", message="")])
    (first,) = posted(receiver)
    assert first["labels"] == {
        "alertname": "NetclustAlert",
        "severity": "high",
        "id": "a-000005",
        "kind": "novel",
        "label": "novel",
        "entity": "10.0.0.7",
        "entity_kind": "source",
    }
    assert first["endsAt"] == "1970-01-01T00:20:40.000000Z"
    sink.tick()
    now[0] += 30
    sink.tick()
    assert len(receiver.requests) == 2
    now[0] += 31
    sink.tick()
    assert posted(receiver)[0]["labels"] == first["labels"]
    facts = json.loads(json.dumps(sink.sync()))
    sink.close()
    again = Alertmanager("am", receiver.url + "/prefix", clock=lambda: now[0])
    again.open(facts)
    again.tick()
    assert posted(receiver)[0]["labels"] == first["labels"]
    again.write([make.alert_event(5, action="close", severity="high", label="changed", update=3)])
    (closed,) = posted(receiver)
    assert closed["labels"] == first["labels"]
    assert closed["endsAt"] == "1970-01-01T00:17:41.000000Z"
    assert again.sync() == {}
    again.close()


def test_a_rising_severity_does_not_leave_the_old_alert_open(receiver: HttpReceiver) -> None:
    sink = Alertmanager("am", receiver.url + "/prefix", clock=lambda: 1000.0)
    sink.write([make.alert_event(1), make.alert_event(1, action="update", severity="critical", update=1)])
    old, new = posted(receiver)
    assert (old["labels"]["severity"], old["endsAt"]) == ("low", "1970-01-01T00:16:40.000000Z")
    assert (new["labels"]["severity"], new["endsAt"]) == ("critical", "1970-01-01T00:20:40.000000Z")
    assert {**old["labels"], "severity": ""} == {**new["labels"], "severity": ""}
    sink.close()


def test_a_failed_post_does_not_change_what_is_open(receiver: HttpReceiver) -> None:
    receiver.statuses = [500]
    sink = Alertmanager("am", receiver.url, max_open=2)
    with pytest.raises(SinkError):
        sink.write(make.alert_events(1))
    assert sink.sync() == {}
    sink.write(make.alert_events(3))
    assert list(sink.sync()["open"]) == ["a-000001", "a-000002"]
    assert sink.forgotten == 1
    sink.close()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (SinkConfig(kind="jsonl"), "needs path"),
        (SinkConfig(kind="webhook"), "needs url"),
        (SinkConfig(kind="syslog"), "needs address"),
        (SinkConfig(kind="syslog", address="http://x"), "write udp://HOST:PORT"),
        (SinkConfig(kind="syslog", address="tcp://x:99999"), "[Pp]ort"),
        (SinkConfig(kind="syslog", address="tls://x", ca_file="/absent"), "ca_file /absent"),
        (SinkConfig(kind="webhook", url="ftp://x"), "write http://"),
        (SinkConfig(kind="webhook", url="http://me:pw@x/"), "use token_file"),
        (SinkConfig(kind="webhook", url="http://x", headers={"A": "b\r\nc"}), "printable"),
        (SinkConfig(kind="webhook", url="http://x", headers={"Host": "y"}), "not a name"),
        (SinkConfig(kind="alertmanager", url="http://x", timeout_seconds=0.0), "timeout_seconds"),
    ],
)
def test_a_wrong_configuration_is_not_taken(config: SinkConfig, says: str) -> None:
    with pytest.raises(InputError, match=f"sink '?{config.kind}.*{says}"):
        open_sink(config, observer="probe")


def test_a_missing_token_is_found_at_the_start(tmp_path: Path) -> None:
    sink = open_sink(SinkConfig(kind="webhook", url="http://x", token_file=f"{tmp_path}/t"), observer="")
    with pytest.raises(InputError, match="token_file"):
        sink.open(None)


def test_a_mild_alert_does_not_reach_a_sink_for_severe_ones(tmp_path: Path) -> None:
    config = SinkConfig(kind="jsonl", path=f"{tmp_path}/log", min_severity="high")
    sink = open_sink(config, observer="probe")
    assert isinstance(sink, AtLeast)
    assert sink.cuts_back
    assert not hasattr(sink, "tick")
    sink.open(None)
    sink.write([make.alert_event(i, severity=s) for i, s in enumerate(("low", "critical", "medium", "high"))])
    sink.write([Notice(topic="drift", time=0, key="n", message="")])
    sink.close()
    assert [json.loads(x)["message"] for x in (tmp_path / "log").read_text().splitlines()] == ["number 1", "number 3"]
