"""Bad input to the command line: one clear line that names what is wrong, and exit code 2."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Files, complaint, make_files, shell

files = pytest.fixture(scope="module")(make_files)


def test_a_missing_file_gives_one_clear_line(run: Any, files: Files, tmp_path: Path) -> None:
    gone = tmp_path / "gone.txt"
    complaint(run("train", "network", gone, "-o", tmp_path / "m"), gone, "No such file")
    complaint(run("evaluate", "network", "--model", files.model, "--test", gone), gone, "No such file")
    complaint(run("evaluate", "network", "--model", gone, "--test", files.test), gone, "No such file")
    complaint(run("info", gone), gone, "No such file")
    complaint(run("info", tmp_path), tmp_path, "Is a directory")
    complaint(run("train", "network", tmp_path, "-o", tmp_path / "m"), tmp_path, "no capture in this folder")
    complaint(run("train", "network", files.train, "-o", tmp_path / "m", "--params", gone), gone, "Presets: thesis")
    complaint(run("train", "network", files.train, "-o", tmp_path / "m", "--params", ""), "Presets: thesis")
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_gives_one_clear_line(run: Any, files: Files, tmp_path: Path) -> None:
    nowhere = tmp_path / "no" / "where"
    complaint(run("train", "network", files.train, "-o", nowhere), nowhere, "cannot be written")
    complaint(run("simulate", "records", "-o", nowhere, "--records", 10), nowhere, "cannot be written")
    ran = run("info", files.model, "--json", nowhere)
    assert (ran.code, ran.err) == (2, f"netclust: {nowhere}: cannot be written: No such file or directory\n")


def test_a_bad_schema_gives_one_clear_line(run: Any, files: Files, tmp_path: Path) -> None:
    output = ["-o", tmp_path / "m"]
    complaint(run("train", "network", files.train, *output, "--schema", "kdd98"), "kdd98", "Built in: conn, flow, kdd")
    broken = tmp_path / "broken.toml"
    for text in ('name = "x"', "name = ", '[[attribute]]\nname = "a"\ncolour = "red"', "\xff = 1"):
        broken.write_text(text, encoding="latin-1")
        complaint(run("train", "network", files.train, *output, "--schema", broken), broken)


@pytest.mark.parametrize("text", ["epoch = 3", "epochs = 0", "epochs = 'many'", "epochs", "\xff = 1", '"a\\nb" = 1'])
def test_bad_parameters_give_one_clear_line(run: Any, files: Files, tmp_path: Path, text: str) -> None:
    params = tmp_path / "params.toml"
    params.write_text(text, encoding="latin-1")
    ran = run("train", "network", files.train, "-o", tmp_path / "m", "--params", params)
    complaint(ran, params, "Known parameters: learner, ")


def test_a_corrupt_model_gives_one_clear_line(run: Any, files: Files, tmp_path: Path) -> None:
    broken = tmp_path / "broken.model"
    whole = files.model.read_bytes()
    for data in (
        b"",
        whole[:100],
        whole[:-1],
        b"\x80\x04K\x01." * 20,
        whole.replace(b"netclust.model", b"netclust.mode1"),
    ):
        broken.write_bytes(data)
        complaint(run("info", broken), broken)
        complaint(run("evaluate", "network", "--model", broken, "--test", files.test), broken)
    broken.write_bytes(whole.replace(b'\\"version\\":1', b'\\"version\\":9'))
    complaint(run("info", broken), broken, "written in format 9, this netclust reads up to 1: upgrade it")


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        (1, "abc", "column 1 (duration): 'abc' is not a number"),
        (5, "-1", "column 5 (src_bytes): '-1' is outside 0 to inf"),
        (25, "1.5", "column 25 (serror_rate): '1.5' is outside 0 to 1"),
        (7, "2", "column 7 (land): '2'"),
        (1, "nan", "column 1 (duration): 'nan'"),
    ],
)
def test_a_bad_record_is_named(run: Any, files: Files, tmp_path: Path, column: int, value: str, problem: str) -> None:
    lines = files.test.read_text().splitlines()
    row = lines[41].split(",")
    row[column - 1] = value
    lines[41] = ",".join(row)
    bad = tmp_path / "bad.txt"
    bad.write_text("\n".join(lines) + "\n")
    complaint(run("evaluate", "network", "--model", files.model, "--test", bad), f"{bad} line 42, {problem}")
    complaint(run("train", "network", bad, "-o", tmp_path / "m"), f"{bad} line 42, {problem}")
    ran = run("evaluate", "network", "--model", files.model, "--test", bad, "--on-error", "skip", "--json", "-")
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert f"the first: {bad} line 42, {problem}" in ran.err
    found = json.loads(ran.out)
    assert (found["records"], sum(found["skipped"].values())) == (1999, 1)


def test_a_row_with_columns_missing_is_named(run: Any, files: Files, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(files.test.read_text() + "0,tcp,http\n")
    complaint(run("evaluate", "network", "--model", files.model, "--test", bad), f"{bad} line 2001: 3 columns")
    ran = run("train", "network", bad, "-o", tmp_path / "m", "--on-error", "skip")
    assert ran.code == 0
    assert "skipped 1 lines (1 columns)" in ran.err


def test_unlabelled_data_is_refused(run: Any, files: Files, tmp_path: Path) -> None:
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(",".join(line.split(",")[:41]) + "\n" for line in files.test.read_text().splitlines()))
    complaint(run("evaluate", "network", "--model", files.model, "--test", bare), f"{bare}: record 1 has no label")
    complaint(run("train", "network", bare, "-o", tmp_path / "m"), "bare.txt: 2000 of 2000 records have no label")
    empty = tmp_path / "empty.txt"
    empty.touch()
    complaint(run("evaluate", "network", "--model", files.model, "--test", empty), f"{empty}: no records")


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        ("bogus", ["No such command 'bogus'", "netclust --help"]),
        ("train forest", ["No such command 'forest'", "netclust train --help"]),
        ("info --bogus x", ["--bogus", "netclust info --help"]),
        ("train network {train}", ["-o", "netclust train network --help"]),
        ("train network {train} -o x --seed -1", ["--seed"]),
        ("train network {train} -o x --seed one", ["--seed"]),
        ("train network {train} -o x --on-error ignore", ["--on-error", "stop", "skip"]),
        ("train network {train} -o x --false-alarm-rate 2", ["false_alarm_rate must lie between 0 and 1"]),
        ("train network {train} -o x --false-alarm-rate nan", ["false_alarm_rate must lie between 0 and 1"]),
        ("train network {train} -o x --false-alarm-rate 0.00001", ["needs at least 99999 held-out normal records"]),
        ("evaluate network --model {model}", ["--test"]),
        ("evaluate network --model {model} --test {test} --protocol paper", ["--protocol", "thesis", "stream"]),
        ("evaluate network --model {model} --test {test} --feedback true", ["--feedback", "predicted"]),
        ("evaluate network --model {model} --test {test} --window -1", ["--window"]),
        ("evaluate network --model {model} --test {test} --feedback gold --window 99999999", ["referent_window"]),
        ("evaluate network --model {model} --test {test} --delay -1", ["--delay"]),
        ("evaluate network --model {model} --test {test} --feedback gold --delay " + "9" * 30, ["--delay"]),
        ("evaluate network --model {model} --test {test} --mature nan", ["mature"]),
        ("simulate records -o x --records 0", ["--records"]),
        ("simulate records -o x --attacks sharknado", ["no attack is called 'sharknado'. Known: "]),
        ("simulate records -o x --day 999999999", ["day must be between"]),
        ("simulate records -o x --attack-share 0.95", ["--attack-share"]),
        ("info", ["model", "netclust info --help"]),
    ],
)
def test_a_bad_option_gives_one_clear_line(
    run: Any, files: Files, args: str, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    called = args.format(train=files.train, test=files.test, model=files.model).split()
    complaint(run(*called), *parts)
    assert os.listdir(tmp_path) == []


def test_a_process_reports_as_main_does(files: Files) -> None:
    complaint(shell("info", "--bogus"), "--bogus", "netclust info --help")
    complaint(shell("evaluate", "network", "--model", files.train, "--test", files.test), files.train)
