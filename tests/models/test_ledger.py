"""The ledger of looks at a test set: no look is lost or mixed with another, and none is noted that was not one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from netclust.cli import main
from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.models.test_set_ledger import TEST_SETS, count_test_uses, find_ledger, record_test_use
from netclust.records.reader import RecordReader
from netclust.records.schema import load_schema

KDD_TEST, KDD_TEST_21 = list(TEST_SETS)[:2]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def no_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The default ledger, as if the suite named none: in a state folder of the test's own, which is not made yet."""
    monkeypatch.delenv("NETCLUST_LOOKS")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "netclust" / "test-looks.jsonl"


def test_a_line_has_its_format(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    assert record_test_use("replicate.py", KDD_TEST, rows=36, draws=5, ledger=ledger)
    assert record_test_use('a "näme"\n', KDD_TEST_21, rows=1, draws=1, ledger=ledger)
    first, second = map(json.loads, ledger.read_text().splitlines())
    assert list(first) == ["date", "what", "set", "rows", "draws"]
    assert (first["what"], first["set"], first["rows"], first["draws"]) == ("replicate.py", "KDDTest+", 36, 5)
    assert (second["what"], second["set"]) == ('a "näme"\n', "KDDTest-21")
    age = datetime.now(UTC) - datetime.fromisoformat(first["date"])
    assert 0 <= age.total_seconds() < 600
    assert count_test_uses(ledger) == (2, 37)


def test_the_committed_ledger_can_be_counted() -> None:
    runs, rows = count_test_uses(ROOT / "benchmarks" / "test-looks.jsonl")
    assert runs >= 3
    assert rows >= 112 + 36 + 36


@pytest.mark.parametrize("sha256", ["", "0" * 64, KDD_TEST.upper(), KDD_TEST[:-1]])
def test_other_records_are_not_taken_for_a_test_set(sha256: str, tmp_path: Path) -> None:
    assert not record_test_use("ours", sha256, rows=1, draws=1, ledger=tmp_path / "looks.jsonl")
    assert not list(tmp_path.iterdir())


def test_lines_written_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    with ThreadPoolExecutor(8) as pool:
        done = pool.map(lambda i: record_test_use("x" * 5000, KDD_TEST, rows=i, draws=1, ledger=ledger), range(200))
        assert all(done)
    assert count_test_uses(ledger) == (200, sum(range(200)))


@pytest.mark.parametrize("value", ["", "off"])
def test_no_look_is_noted_while_the_variable_is_off(
    value: str, no_variable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NETCLUST_LOOKS", value)
    assert find_ledger() is None
    assert not record_test_use("x", KDD_TEST, rows=1, draws=1)
    assert count_test_uses(no_variable) == (0, 0)
    assert not list(tmp_path.iterdir())


def test_a_ledger_named_by_the_variable_wins(
    no_variable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETCLUST_LOOKS", str(tmp_path / "mine.jsonl"))
    assert record_test_use("x", KDD_TEST, rows=4, draws=1)
    assert count_test_uses(tmp_path / "mine.jsonl") == (1, 4)
    assert not no_variable.parent.exists()


def test_looks_go_to_the_users_state_folder_by_default(no_variable: Path) -> None:
    assert find_ledger() == no_variable
    assert not record_test_use("x", "0" * 64, rows=1, draws=1)
    assert not no_variable.parent.exists()
    assert record_test_use("x", KDD_TEST, rows=1, draws=1)
    assert record_test_use("x", KDD_TEST, rows=2, draws=1)
    assert count_test_uses(no_variable) == (2, 3)


def test_the_default_ledger_is_not_in_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETCLUST_LOOKS")
    ledger = find_ledger()
    assert ledger is None or ROOT not in ledger.parents


def test_a_state_folder_that_cannot_be_written_has_no_ledger(
    no_variable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anything
    assert find_ledger() is None
    assert not record_test_use("x", KDD_TEST, rows=1, draws=1)
    assert not no_variable.parent.exists()


def test_a_named_ledger_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be noted there: No such file or directory; NETCLUST_LOOKS names"):
        record_test_use("x", KDD_TEST, rows=1, draws=1, ledger=tmp_path / "missing" / "looks.jsonl")


def test_lines_that_are_no_entries_are_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    record_test_use("x", KDD_TEST, rows=2, draws=1, ledger=ledger)
    good = ledger.read_bytes()
    assert count_test_uses(tmp_path / "none") == (0, 0)
    for bad in (b"{", b'{"rows": 3}', b"\xff", good.strip() + good.strip()):
        ledger.write_bytes(good + b"\n" + bad + b"\n")
        with pytest.raises(InputError, match=r"looks\.jsonl line 3: not a look"):
            count_test_uses(ledger)
    with pytest.raises(InputError, match="Is a directory"):
        count_test_uses(tmp_path)


def test_the_packed_file_has_the_same_checksum(data_folder: Path) -> None:
    for sha256, name in list(TEST_SETS.items())[:2]:
        reader = RecordReader(data_folder / "nsl-kdd" / f"{name}.txt.xz", load_schema("kdd"))
        for _ in reader:
            pass
        assert reader.sha256 == sha256


def test_an_evaluation_of_a_test_set_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    past, today, model, ledger = (tmp_path / name for name in ("past.txt", "today.txt", "model", "looks.jsonl"))
    simulate(1500, seed=1).write(past)
    simulate(1000, seed=2, day=1).write(today)
    monkeypatch.setenv("NETCLUST_LOOKS", str(ledger))

    def run(*args: object) -> str:
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in args])
        assert not stopped.value.code
        return capsys.readouterr().err

    run("train", "network", past, "-o", model)
    evaluate = ("evaluate", "network", "--model", model, "--test", today, "--json", "-")
    assert "a look at" not in run(*evaluate)
    assert not ledger.exists()

    monkeypatch.setitem(TEST_SETS, hashlib.sha256(today.read_bytes()).hexdigest(), "today's test")
    assert f"a look at today's test: noted in {ledger}\n" in run(*evaluate)
    (line,) = ledger.read_text().splitlines()
    look = json.loads(line)
    assert (look["what"], look["set"], look["rows"], look["draws"]) == ("evaluate network", "today's test", 1, 1)

    monkeypatch.setenv("NETCLUST_LOOKS", "off")
    assert "a look at" not in run(*evaluate)
    assert count_test_uses(ledger) == (1, 1)


def test_the_suite_and_what_it_starts_note_nothing() -> None:
    code = "from netclust.models.test_set_ledger import find_ledger; assert find_ledger() is None"
    subprocess.run([sys.executable, "-c", code], check=True)
