"""URLs of buses: what they mean, what is refused, and that no secret is shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from netclust.errors import InputError
from netclust.stream.bus.factory import check_bus, is_bus, open_reader, open_writer, parse_bus_url


@pytest.mark.parametrize(
    ("url", "servers", "topic", "database"),
    [
        ("redis://localhost/eve", ("localhost:6379",), "eve", 0),
        ("redis://[::1]:7000/3/eve", ("[::1]:7000",), "eve", 3),
        ("kafka://a,b:9093,10.0.0.1/net.records", ("a:9092", "b:9093", "10.0.0.1:9092"), "net.records", 0),
        ("nats://a:4222,b/records", ("a:4222", "b:4222"), "records", 0),
        ("memory://here/t", ("here",), "t", 0),
    ],
)
def test_what_they_mean(url: str, servers: tuple[str, ...], topic: str, database: int) -> None:
    address = parse_bus_url(url)
    assert (address.servers, address.topic, address.database) == (servers, topic, database)
    assert is_bus(url)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("eve.json", "no bus"),
        ("http://a/b", "no bus"),
        ("redis://a", "a topic is"),
        ("redis://a/", "a topic is"),
        ("redis://a/x/eve", "database"),
        ("redis://a/0", "a database and no key"),
        ("redis://a,b/eve", "one server"),
        ("redis://a:99999/eve", "HOST:PORT"),
        ("redis://a:b/eve", "HOST:PORT"),
        ("redis:///eve", "HOST:PORT"),
        ("kafka://a/b/c", "a topic is"),
        ("kafka://a/b?acks=0", "no option acks"),
        ("nats://a/b.>", "a topic is"),
        ("nats://a/b.", "a topic is"),
        ("redis://a/b?maxlen=", "no value"),
        ("redis://a/b?maxlen=1&maxlen=2", "twice"),
        ("redis://a/b#c", "behind #"),
        ("kafka://a/b?tls=/no/such/file", "cannot be read"),
        ("kafka://a/b?tls_cert=/dev/null", "go together"),
        ("redis://a/b?password_env=A&password_file=B", "not both"),
        ("memory://a b/c", "name of letters"),
        ("redis://a/" + "x" * 3000, "no bus"),
    ],
)
def test_what_is_refused(url: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        parse_bus_url(url)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("redis://a/b?timeout=never", "timeout"),
        ("redis://a/b?maxlen=-5", "maxlen"),
        ("nats://a/b?replicas=9", "replicas"),
        ("kafka://a/b?user=me&mechanism=MAGIC", "MAGIC"),
    ],
)
def test_options_that_mean_nothing(url: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        open_writer(url, 1).open()


def test_passwords_are_never_in_a_url_nor_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="password_file") as told:
        parse_bus_url("redis://me:secret@a/b")
    assert "secret" not in str(told.value)
    (tmp_path / "password").write_text("secret\n")
    address = parse_bus_url(f"redis://a/b?user=me&password_file={tmp_path}/password")
    assert (address.user, address.password()) == ("me", "secret")
    assert "me" not in str(address)
    monkeypatch.setenv("BUS_PASSWORD", "other")
    assert parse_bus_url("nats://a/b?password_env=BUS_PASSWORD").password() == "other"
    for url in ("nats://a/b?password_env=NOT_THERE", f"nats://a/b?password_file={tmp_path}/none"):
        with pytest.raises(InputError, match=r"password|NOT_THERE"):
            check_bus(url)


@pytest.mark.parametrize("partition", [-2, 4096])
def test_lanes_have_bounds(partition: int) -> None:
    with pytest.raises(InputError, match="partition"):
        open_reader("memory://a/b", partition)
    with pytest.raises(InputError, match="partitions"):
        open_writer("memory://a/b", 5000)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("kafka://a/b", "confluent_kafka", "kafka"), ("nats://a/b", "nats", "nats"), ("redis://a/b", "redis", "redis")],
)
def test_a_missing_library_is_told_with_its_extra(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'netclust\[{extra}\]'"):
        check_bus(url)
