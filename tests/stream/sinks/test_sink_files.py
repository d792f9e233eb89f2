"""Log files: whole lines only, cut back on resume, rotated; full disks and missing rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import sink_events as make
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.jsonl import JsonLines
from netclust.stream.sinks.line_file import LineFile
from netclust.stream.sinks.verdict_log import VerdictLog


def translated_errors(path: Path) -> list[str]:
    return [json.loads(line)["netclust"]["alert"]["id"] for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alerts.jsonl"


def opened(path: Path, facts: dict[str, object] | None = None) -> JsonLines:
    sink = JsonLines("alerts", path)
    sink.open(facts)
    return sink


def test_a_resumed_file_does_not_hold_an_event_twice(path: Path) -> None:
    sink = opened(path)
    sink.write(make.alert_events(2))
    facts = sink.sync()
    sink.write(make.alert_events(3, first=2))
    sink.close()
    sink = opened(path, json.loads(json.dumps(facts)))
    sink.write(make.alert_events(1, first=2))
    sink.close()
    assert translated_errors(path) == ["a-000000", "a-000001", "a-000002"]
    assert sink.note == ""


@pytest.mark.parametrize("how", ["rotated", "gone", "shorter", "emptied and grown again"])
def test_a_file_that_was_replaced_meanwhile_is_not_cut(path: Path, how: str) -> None:
    sink = opened(path)
    sink.write(make.alert_events(3))
    facts = sink.sync()
    sink.close()
    before = path.read_bytes()
    kept = b""
    if how == "rotated":
        path.rename(path.with_suffix(".1"))
        kept = b'{"other":1}\n' * 999
    elif how == "emptied and grown again":
        kept = b'{"other":2}\n' * 999
    elif how == "shorter":
        kept = before[:-10]
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(kept)
    sink = opened(path, facts)
    assert "not cut back" in sink.note
    sink.write(make.alert_events(1, first=9))
    sink.close()
    data = path.read_bytes()
    assert data.startswith(kept)
    assert json.loads(data.splitlines()[-1])["netclust"]["alert"]["id"] == "a-000009"


@given(
    whole=st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"")), max_size=4), half=st.binary(max_size=9)
)
@settings(max_examples=50)
def test_half_a_line_of_a_crash_does_not_stay(
    tmp_path_factory: pytest.TempPathFactory, whole: list[bytes], half: bytes
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    lines = b"".join(line + b"\n" for line in whole)
    path.write_bytes(lines + half.replace(b"\n", b""))
    log = VerdictLog(path)
    log.open(None)
    log.write_lines(b"next\n")
    log.close()
    assert path.read_bytes() == lines + b"next\n"


def test_reopening_does_not_write_on_into_the_rotated_file(path: Path) -> None:
    sink = opened(path)
    sink.write(make.alert_events(1))
    path.rename(path.with_suffix(".1"))
    sink.write(make.alert_events(1, first=1))  # until the signal comes
    sink.reopen()
    sink.write(make.alert_events(1, first=2))
    sink.close()
    assert translated_errors(path.with_suffix(".1")) == ["a-000000", "a-000001"]
    assert translated_errors(path) == ["a-000002"]


def test_a_failed_reopen_does_not_lose_the_old_file(path: Path) -> None:
    sink = opened(path)
    moved = path.rename(path.with_suffix(".1"))
    path.mkdir()
    with pytest.raises(SinkError, match="cannot be reopened"):
        sink.reopen()
    sink.write(make.alert_events(1))
    sink.close()
    assert translated_errors(moved) == ["a-000000"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .*absent"):
        opened(tmp_path / "absent" / "alerts.jsonl")


def test_a_pipe_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        opened(path)


def test_full_disk_is_an_error_that_can_be_retried() -> None:
    sink = opened(Path("/dev/full"))
    with pytest.raises(SinkError, match="No space left") as caught:
        sink.write(make.alert_events(1))
    assert caught.value.retry
    sink.close()


def run_child(script: str, *args: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, args)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    run_child(
        """
        import resource, signal, sys
        from netclust.stream.sinks.base import SinkError
        from netclust.stream.sinks.line_file import LineFile

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        log = LineFile(sys.argv[1])
        log.open(None)
        line = b"x" * 299 + b"\\n"
        for _ in range(3):
            log.write_lines(line)
        for _ in range(2):
            try:
                log.write_lines(line)
            except SinkError:
                assert log.sync()["length"] == 900
            else:
                raise SystemExit("the disk was not full")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        log.write_lines(line)
        assert log.sync()["length"] == 1200
        """,
        tmp_path / "log",
    )


def test_unwritable_log_is_refused_at_start_and_an_error_later(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:  # for the one that we become
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    log = tmp_path / "log"
    log.touch()
    log.chmod(0o666)
    tmp_path.chmod(0o555)
    run_child(
        """
        import os, sys
        from netclust.errors import InputError
        from netclust.stream.sinks.base import SinkError
        from netclust.stream.sinks.line_file import LineFile

        log = LineFile(sys.argv[1])
        if os.getuid() == 0:
            os.setuid(65534)
        log.open(None)
        log.path = log.path.with_name("new")
        try:
            LineFile(log.path).open(None)
        except InputError as error:
            assert "Permission denied" in str(error)
        else:
            sys.exit("opened")
        try:
            log.reopen()
        except SinkError:
            log.write_lines(b"goes on\\n")
        else:
            sys.exit("reopened")
        """,
        log,
    )


def test_a_huge_file_without_a_newline_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netclust.stream.sinks.line_file.MAX_HALF_LINE", 1 << 17)
    path = tmp_path / "log"
    path.write_bytes(b"x" * (1 << 18))
    log = LineFile(path)
    log.open(None)
    log.close()
    assert path.stat().st_size == (1 << 18) + 1
    assert log.odd == 1
