"""Passwords and TLS with real brokers: those who know get in, those who do not are told, and no secret is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from brokers import Broker, nats_broker, redis_broker
from needed import need_program

from netclust.stream.bus.base import BusError, Outgoing
from netclust.stream.bus.factory import open_reader, open_writer

pytestmark = pytest.mark.system

SECRET = "a-long-secret"  # noqa: S105


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that vouches for itself, and its key."""
    need_program("openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(words, check=True, capture_output=True)
    return cert, key


def with_words(broker: Broker, *words: str) -> Broker:
    broker._words += words
    return broker


def round_trip(url: str) -> None:
    writer, reader = open_writer(url, 1), open_reader(url, 0)
    try:
        writer.open()
        writer.send([Outgoing(0, 1, b"hello")])
        reader.open(None)
        assert [m.body for m in reader.take(5.0, 5)] == [b"hello"]
    finally:
        writer.close()
        reader.close()


def refused(url: str) -> str:
    writer = open_writer(url, 1)
    with pytest.raises(BusError) as told:
        writer.open()
    writer.close()
    assert SECRET not in str(told.value)
    return str(told.value)


def test_a_password_for_redis(tmp_path: Path, password: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with with_words(redis_broker(tmp_path), "--requirepass", SECRET) as broker:
        round_trip(f"{broker.url('t')}&password_file={password}")
        assert "uthentication" in refused(broker.url("t"))
        monkeypatch.setenv("BUS_PASSWORD", "wrong" + SECRET)
        assert "password" in refused(f"{broker.url('t')}&password_env=BUS_PASSWORD")


def test_a_user_and_a_token_for_nats(tmp_path: Path, password: Path) -> None:
    with with_words(nats_broker(tmp_path), "--user", "me", "--pass", SECRET) as broker:
        round_trip(f"{broker.url('t')}&user=me&password_file={password}")
        # Refused every time; why, is lost now and then, when the connection is ended before it was read.
        said = [refused(f"{broker.url('t')}&user=other&password_file={password}") for _ in range(4)]
        assert any("uthorization" in why for why in said), said
    with with_words(nats_broker(tmp_path), "--auth", SECRET) as broker:
        round_trip(f"{broker.url('t')}&password_file={password}")


def test_redis_over_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    broker = redis_broker(tmp_path)
    tls = ["--tls-port", str(broker.port), "--tls-cert-file", str(cert), "--tls-key-file", str(key)]
    broker._words[broker._words.index("--port") + 1] = "0"
    with with_words(broker, *tls, "--tls-ca-cert-file", str(cert), "--tls-auth-clients", "no"):
        url = broker.url("t").replace("redis://", "rediss://")
        round_trip(f"{url}&tls={cert}")
        assert "ertificate" in refused(url)  # nobody of the system vouches for it
        refused(broker.url("t"))


def test_nats_over_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with with_words(nats_broker(tmp_path), "--tls", "--tlscert", str(cert), "--tlskey", str(key)) as broker:
        round_trip(f"{broker.url('t')}&tls={cert}")
        assert "ertificate" in refused(f"{broker.url('t')}&tls=system")
