"""Records over sockets, standard input and pipes: several writers at once, garbage, and writers that go."""

from __future__ import annotations

import random
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from text_sources import LINES, Watched, expected, opened

from netclust.errors import InputError
from netclust.records.schema import load_schema
from netclust.stream.sources.base import SourceState

HEADER = ",".join(a.name for a in load_schema("kdd").attributes) + "\n"


@pytest.fixture(params=["tcp", "unix"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watched]:
    url = "tcp://127.0.0.1:0" if request.param == "tcp" else f"unix://{tmp_path}/s"
    watched = Watched(opened(url, max_writers=5))
    yield watched
    watched.source.close()


def connect(watched: Watched) -> socket.socket:
    address: Any = watched.source.feed.address  # type: ignore[attr-defined]
    sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(20)
    sock.connect(address)
    return sock


def send(watched: Watched, data: bytes) -> None:
    with closing(connect(watched)) as sock:
        sock.sendall(data)


def test_several_writers_at_once_lose_mix_and_double_no_record(listening: Watched, tmp_path: Path) -> None:
    plain = {row[1:]: i for i, row in enumerate(map(_hashable, expected(LINES, tmp_path)))}
    assert len(plain) > 2900  # nearly all differ
    parts = [LINES[k * 700 : (k + 1) * 700] for k in range(4)]

    def write(k: int) -> None:
        data = "".join([HEADER] * (k % 2) + parts[k]).encode()
        with closing(connect(listening)) as sock:
            for at in range(0, len(data), 777):  # cut within lines
                sock.sendall(data[at : at + 777])

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    listening.until_rows(2800)
    for thread in threads:
        thread.join()
    listening.finish()
    assert [row[0] for row in listening.rows] == list(range(2800))
    found = [_hashable(row)[1:] for row in listening.rows]
    wanted = [_hashable(row)[1:] for row in expected(LINES[:2800], tmp_path)]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    order = [plain[row] for row in found]
    for k in range(4):
        of_writer = [i for i in order if k * 700 <= i < (k + 1) * 700 and wanted.count(wanted[i]) == 1]
        assert of_writer == sorted(of_writer)
    assert listening.source.counters["writers"] == 4
    assert (listening.source.replayable, listening.source.sheds) == (False, True)


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0], tuple(row[1]), *row[2:])


def test_garbage_on_the_socket_stops_neither_the_source_nor_other_writers(listening: Watched, tmp_path: Path) -> None:
    noise = [bytes(range(256)) * 40, b"\0" * 3000 + b"\n", b"GET / HTTP/1.1\r\n\r\n", b"@relation x\n%\n"]
    # The last are records, strange as they are.
    noise += [b"\xff" * (2 << 20), random.Random(1).randbytes(20_000), b"\n" * 5000, b"1," * 42 + b"1\n"]
    with closing(connect(listening)) as good:
        good.sendall("".join(LINES[:50]).encode())
        for data in noise:
            sending = threading.Thread(target=send, args=(listening, data))
            sending.start()
            listening.until(lambda: not sending.is_alive())  # noqa: B023
        good.sendall("".join(LINES[50:100]).encode())
        listening.until_rows(101)
    listening.finish()
    counters = listening.source.counters
    assert counters["columns"] > 0
    assert counters["half_line"] > 0
    assert counters["long_line"] == 1
    assert counters["bad_header"] >= 1
    assert 1 <= len(listening.source.first_skipped) <= 20


def test_a_writer_that_closes_with_half_a_line_gives_no_half_record(listening: Watched) -> None:
    send(listening, (LINES[0] + LINES[1]).encode().removesuffix(b"\n"))
    listening.until(lambda: listening.source.counters["half_line"] == 1)
    listening.finish()
    assert len(listening.rows) == 1


def test_a_writer_too_many_is_refused_and_counted(listening: Watched) -> None:
    writers = [connect(listening) for _ in range(5)]
    listening.until(lambda: listening.source.counters["writers"] == 5)
    with closing(connect(listening)) as refused:
        listening.until(lambda: listening.source.counters["refused_writers"] == 1)
        assert refused.recv(1) == b""
    writers.pop().close()
    listening.idle(0.3)
    send(listening, LINES[0].encode())
    listening.until_rows(1)
    for writer in writers:
        writer.close()
    listening.finish()


def test_a_single_record_takes_less_than_two_seconds(listening: Watched) -> None:
    with closing(connect(listening)) as sock:
        listening.idle(0.2)
        sent = time.monotonic()
        sock.sendall(LINES[0].encode())
        listening.until_rows(1)
        assert time.monotonic() - sent < 2
    listening.finish()


def test_what_was_sent_before_the_stop_is_kept(listening: Watched) -> None:
    with closing(connect(listening)) as sock:
        listening.until(lambda: listening.source.counters["writers"] == 1)
        sock.sendall("".join(LINES[:20]).encode())
        state = listening.finish()
    assert len(listening.rows) == 20
    assert state.facts["seq"] == 20


def test_numbers_continue_after_a_restart() -> None:
    watched = Watched(opened("tcp://127.0.0.1:0", SourceState({"seq": 41})))
    send(watched, "".join(LINES[:2]).encode())
    watched.until_rows(2)
    watched.finish()
    assert [row[0] for row in watched.rows] == [41, 42]


def test_a_unix_socket_is_closed_to_others_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    source = opened(f"unix://{path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="another process listens there"):
        opened(f"unix://{path}")
    source.close()
    assert not path.exists()
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    opened(f"unix://{path}").close()
    path.write_text("precious")
    with pytest.raises(InputError, match="no socket"):
        opened(f"unix://{path}")
    assert path.read_text() == "precious"


def test_an_error_at_listening_names_the_address() -> None:
    source = opened("tcp://127.0.0.1:0")
    port = source.feed.address[1]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=f"tcp://127.0.0.1:{port}: cannot listen there: Address already in use"):
        opened(f"tcp://127.0.0.1:{port}")
    source.close()
    for url in ("tcp://127.0.0.1", "tcp://127.0.0.1:99999"):
        with pytest.raises(InputError, match="no port: say tcp://HOST:PORT"):
            opened(url)
    with pytest.raises(InputError, match="no path: say unix:///PATH"):
        opened("unix://")
    with pytest.raises(InputError, match="cannot listen there: No such file or directory"):
        opened("unix:///no/such/folder/s")


def test_without_a_host_only_loopback_is_listened_at() -> None:
    source = opened("tcp://:0")
    assert source.feed.address[0] == "127.0.0.1"  # type: ignore[attr-defined]
    source.close()


READ_STDIN = """
import sys
from netclust.stream.config import SourceConfig
from netclust.stream.sources.records import open_text_source
source = open_text_source(SourceConfig(kind="records", name="x", path="-"))
source.open(None)
print(sum(len(arrival.table) for arrival in source), source.counters["half_line"])
source.close()
"""


def test_standard_input_is_read_to_its_end() -> None:
    content = "".join(LINES).removesuffix("\n")
    done = subprocess.run([sys.executable, "-c", READ_STDIN], input=content, text=True, capture_output=True, check=True)
    assert done.stdout.split() == ["3000", "0"]
