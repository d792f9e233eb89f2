"""`netclust reproduce table-4.1` as scripts and people meet it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from quick_presets import quick

import netclust.models.experiments.detection.reproduce_table41
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.models.test_set_ledger import TEST_SETS

pytestmark = pytest.mark.peers

DRAWS, SEEDS = 2, 1


class Files(NamedTuple):
    folder: Path
    train: Path
    test: Path
    other: Path


@pytest.fixture
def reproduce(run: Any) -> Any:
    """Run the command in this process."""
    return lambda *args: run("reproduce", "table-4.1", *args)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("table")
    made = Files(folder, folder / "train.txt", folder / "test.txt", folder / "other.txt")
    simulate(2000, seed=1).write(made.train)
    simulate(1500, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).write(made.test)
    simulate(500, seed=3, day=2, attacks=(*KNOWN, *HELD_BACK)).write(made.other)
    return made


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The presets, learned in a few steps."""
    monkeypatch.setattr(netclust.models.experiments.detection.reproduce_table41, "load_params", quick)


def test_every_option_has_help(reproduce: Any) -> None:
    ran = reproduce("--help")
    assert (ran.code, ran.err) == (0, "")
    options = dict(re.findall(r"^  (?:-h, )?(--[a-z-]+)(.*(?:\n {10,}.*)*)", ran.out, re.MULTILINE))
    assert set(options) == {
        "--train", "--test", "--draws", "--seeds", "--json", "--plots", "--peers", "--pretrain", "--schema", "--jobs",
        "--help",
    }  # fmt: skip
    assert all(re.sub(r"<[^>]*>|\[[^\]]*\]", "", text).strip() for text in options.values())


def test_the_command_says_what_its_json_says(reproduce: Any, files: Files, tmp_path: Path, monkeypatch: Any) -> None:
    ledger, out = tmp_path / "looks.jsonl", tmp_path / "table.json"
    monkeypatch.setenv("NETCLUST_LOOKS", str(ledger))
    options = ["--draws", DRAWS, "--seeds", SEEDS, "--peers", "none", "--json", out]
    ran = reproduce("--train", files.train, "--test", files.test, "--test", files.other, *options)
    assert ran.code == 0, ran.err
    assert not ledger.exists()  # our own records: no look
    found = json.loads(out.read_bytes())
    assert found["command"] == "reproduce table-4.1"
    assert set(found["data"]) == {"train.txt", "test.txt", "other.txt"}
    assert {"version", "seed", "duration", "rows", "windows", "paired", "looks", "params", "tests"} <= set(found)
    assert found["tests"] == {"test.txt": 1500, "other.txt": 500}
    count = {name: sum(row["test"] == name for row in found["rows"]) for name in found["tests"]}
    assert count == {"test.txt": 34, "other.txt": 16}
    assert found["looks"] == {
        "tests": {name: {"noted": False, "rows": rows, "draws": DRAWS} for name, rows in count.items()},
        "ledger": {"runs": 0, "rows": 0},
    }
    assert found["windows"] == []
    assert [pair["test"] for pair in found["paired"]] == (["test.txt"] * 9 + ["other.txt"] * 4) + 2 * (
        ["test.txt"] * 2 + ["other.txt"] * 2
    )
    for row in found["rows"]:
        assert set(row) == {"name", "setting", "test", "mean", "sd", "draws", "seeds", "published"}
        shown = f"{100 * row['mean']['accuracy']:.2f} ± {100 * row['sd']['accuracy']:.2f}"
        lines = [line for line in ran.out.splitlines() if f"  {row['setting']}  " in line and row["name"] in line]
        assert any(shown in line for line in lines)
    for pair in found["paired"]:
        assert pair["same_referents"] == pair["against"].startswith("unlearned")
        assert set(pair["accuracy"]) == {"difference", "low", "high", "excludes_zero"}
    assert len(re.findall(r"75\.82 / 59\.35 / 2\.42", ran.out)) == 1
    assert len(re.findall("learning helps|learning hurts|no difference shown", ran.out)) == 21
    assert ran.err == "the published numbers are about KDDTest+, test.txt is another file\n"


def test_bad_calls_are_refused(reproduce: Any, files: Files, tmp_path: Path) -> None:
    given = ["--train", files.train, "--test", files.test]
    (tmp_path / "copy.txt").write_bytes(files.test.read_bytes())
    (tmp_path / "test.txt").write_bytes(files.other.read_bytes())
    for args, part in (
        (["--test", files.test], "--train"),
        (["--train", files.train], "--test"),
        (["--train", "absent.txt", "--test", files.test, "--peers", "none"], "absent.txt: No such file"),
        (["--train", files.train, "--test", "absent.txt", "--peers", "none"], "absent.txt: No such file"),
        ([*given, "--draws", 0], "--draws"),
        ([*given, "--peers", "some"], "--peers"),
        ([*given, "--schema", "absent.toml"], "absent.toml"),
        ([*given, "--json", tmp_path / "no" / "table.json"], "there is no folder"),
        ([*given, "--plots", files.train], "cannot be written"),
        ([*given, "--test", tmp_path / "copy.txt"], "the same records twice"),
        ([*given, "--test", tmp_path / "test.txt"], "another test file of that name"),
    ):
        ran = reproduce(*args)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
        assert part in ran.err


@pytest.mark.parametrize(
    ("absent", "option", "part"),
    [
        ("river", ["--peers", "fast"], "(--peers none leaves them out) needs river: pip install 'netclust[bench]'"),
        (
            "sklearn",
            ["--peers", "all"],
            "(--peers none leaves them out) needs scikit-learn: pip install 'netclust[bench]'",
        ),
        ("matplotlib", ["--peers", "none", "--plots", "pictures"], "pip install 'netclust[plot]'"),
    ],
)
def test_an_absent_package_is_named_before_the_start(
    reproduce: Any, files: Files, monkeypatch: Any, absent: str, option: list[str], part: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else found(name))
    ran = reproduce("--train", files.train, "--test", files.test, *option)
    assert (ran.code, ran.out) == (2, "")
    assert part in ran.err


def test_a_use_of_a_test_set_is_counted(reproduce: Any, files: Files, tmp_path: Path, monkeypatch: Any) -> None:
    ledger = tmp_path / "looks.jsonl"
    monkeypatch.setenv("NETCLUST_LOOKS", str(ledger))
    checksum = _sha256(files.other)
    monkeypatch.setitem(TEST_SETS, checksum, "KDDTest-21")  # the only one of its name here
    options = ["--draws", 1, "--seeds", 1, "--peers", "none", "--json", "-"]
    ran = reproduce("--train", files.train, "--test", files.other, *options)
    found = json.loads(ran.out)
    assert found["tests"] == {"KDDTest-21": 500}
    assert not any(row["published"] for row in found["rows"])  # printed numbers are about another set
    assert found["looks"]["tests"] == {"KDDTest-21": {"noted": True, "rows": 34, "draws": 1}}
    assert found["looks"]["ledger"] == {"runs": 1, "rows": 34}
    [look] = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert (look["what"], look["set"], look["rows"], look["draws"]) == ("reproduce table-4.1", "KDDTest-21", 34, 1)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
