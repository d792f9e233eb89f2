"""The command line as scripts and people meet it: output, exit codes, one-line errors, and the same numbers again."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import Files, complaint, make_files, shell

import netclust.models.network.run_network
from netclust._version import __version__
from netclust.scoring.model import Model

ANSI_OR_BOX = re.compile(r"\x1b|[\u2500-\u259f]")
COMMON = {"version", "command", "seed", "data", "duration"}
METRICS = {
    "accuracy", "precision", "detection_rate", "false_positive_rate", "f1", "auc", "average_precision",
    "detection_at_fpr", "unseen_detection_rate", "per_category", "records", "records_per_second",
}  # fmt: skip


files = pytest.fixture(scope="module")(make_files)


# Start


@pytest.mark.parametrize("args", [["--help"], ["train", "network", "--help"], ["--version"]])
def test_help_is_quick_and_plain(args: list[str]) -> None:
    program = (
        "import sys\nfrom netclust.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n"
        "    sys.stderr.write(' '.join(m for m in ('numba', 'numpy', 'sklearn', 'scipy', 'river') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not ANSI_OR_BOX.search(done.stdout)


def test_the_version_is_shown(run: Any) -> None:
    assert run("--version") == (0, f"netclust {__version__}\n", "")
    assert shell("--version").stdout == f"netclust {__version__}\n"


def test_no_command_shows_the_help(run: Any) -> None:
    for args, wanted in (((), ["train", "evaluate", "simulate", "warmup", "info"]), (("evaluate",), ["network"])):
        ran = run(*args)
        assert ran.code == 2
        assert all(command in ran.out + ran.err for command in wanted)


@pytest.mark.parametrize("command", [["train", "network"], ["evaluate", "network"], ["simulate", "records"], ["info"]])
def test_every_option_has_help(run: Any, command: list[str]) -> None:
    ran = run(*command, "--help")
    assert (ran.code, ran.err) == (0, "")
    options = re.findall(r"^  (?:-[oh], )?(--[a-z-]+)(.*(?:\n {10,}.*)*)", ran.out, re.MULTILINE)
    assert len(options) >= 3
    for name, text in options:
        assert re.sub(r"<[^>]*>|\[[^\]]*\]", "", text).strip(), name


# Output


def test_piped_output_has_no_colours_or_boxes(files: Files) -> None:
    commands: list[list[object]] = [
        ["evaluate", "network", "--model", files.model, "--test", files.test, "--alerts", "3"],
        ["info", files.model],
    ]
    for command in commands:
        done = shell(*command, env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"})
        assert (done.returncode, done.stderr) == (0, "")
        assert not ANSI_OR_BOX.search(done.stdout)
        assert all(line == line.rstrip() or set(line) == {" "} for line in done.stdout.splitlines())


def on_a_terminal(*args: object) -> tuple[int, str]:
    """Exit code and output of a command whose standard output and error are a pseudo-terminal."""
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-m", "netclust", *map(str, args)], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    received = b""
    try:
        while select.select([ours], [], [], 120)[0]:
            try:
                block = os.read(ours, 65_536)
            except OSError:  # how Linux tells that the other end was closed
                break
            if not block:
                break
            received += block
    finally:
        os.close(ours)
    return process.wait(120), received.decode()


def test_a_terminal_gets_tables(files: Files) -> None:
    code, text = on_a_terminal("evaluate", "network", "--model", files.model, "--test", files.test)
    assert code == 0
    assert ANSI_OR_BOX.search(text)
    assert "accuracy" in text
    assert "2,000 records, stream protocol" in text


def test_names_are_shown_without_markup_or_control_characters(files: Files, tmp_path: Path) -> None:
    text = files.train.read_text().replace("port_scan", "[/b]").replace("syn_flood", "[red]x\x1b[2J")
    (tmp_path / "odd.txt").write_text(text)
    code, shown = on_a_terminal("train", "network", tmp_path / "odd.txt", "-o", tmp_path / "[bold].model")
    assert code == 0, shown
    code, shown = on_a_terminal("info", tmp_path / "[bold].model")
    assert code == 0, shown
    assert "[/b]" in shown
    assert "[red]x\\x1b[2J" in shown
    assert "\x1b[2J" not in shown
    assert "[bold].model" in shown


def test_an_error_on_a_terminal_is_one_plain_line(files: Files) -> None:
    code, text = on_a_terminal("evaluate", "network", "--model", files.model, "--test", files.test, "--bogus")
    assert code == 2
    assert text.replace("\r", "").count("\n") == 1
    assert not ANSI_OR_BOX.search(text)


# Results


def test_json_has_every_key(run: Any, files: Files, tmp_path: Path) -> None:
    ran = run(
        "evaluate", "network", "--model", files.model, "--test", files.test, "--protocol", "thesis",
        "--feedback", "gold", "--delay", 50, "--window", 80, "--json", tmp_path / "out.json",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    found = json.loads((tmp_path / "out.json").read_bytes())
    assert found.keys() >= METRICS | COMMON
    assert set(found["detection_at_fpr"]) == {"0.001", "0.01", "0.05"}
    assert set(found["per_category"]) == {"dos", "probe", "r2l", "u2r"}
    for name in METRICS - {"detection_at_fpr", "per_category", "records", "records_per_second"}:
        assert 0 <= found[name] <= 1
    assert (found["version"], found["command"], found["seed"]) == (__version__, "evaluate network", 3)
    assert (found["protocol"], found["feedback"], found["delay"], found["window"]) == ("thesis", "gold", 50, 80)
    assert (found["records"], found["model"]) == (2000, Model.load(files.model).fingerprint)
    assert found["data"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (files.train, files.test)
    }
    assert found["duration"] > 0


def test_the_printed_numbers_are_those_of_the_json(run: Any, files: Files, tmp_path: Path) -> None:
    ran = run("evaluate", "network", "--model", files.model, "--test", files.test, "--json", tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_bytes())
    shown = dict(re.findall(r"^  ([a-z0-9. ]+?)  +([0-9.]+)(?: %)?$", ran.out, re.MULTILINE))
    assert float(shown["accuracy"]) == pytest.approx(100 * found["accuracy"], abs=0.006)
    assert float(shown["auc"]) == pytest.approx(found["auc"], abs=0.00006)
    assert float(shown["detection at 0.05 false positives"]) == pytest.approx(
        100 * found["detection_at_fpr"]["0.05"], abs=0.006
    )


@pytest.mark.parametrize("command", ["train", "evaluate", "info"])
def test_json_on_standard_output_stands_alone(run: Any, files: Files, tmp_path: Path, command: str) -> None:
    args: dict[str, list[object]] = {
        "train": ["train", "network", files.train, "-o", tmp_path / "m"],
        "evaluate": ["evaluate", "network", "--model", files.model, "--test", files.test, "--alerts", 2],
        "info": ["info", files.model],
    }
    ran = run(*args[command], "--json", "-")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out).keys() >= COMMON
    assert not Path("-").exists()


def test_the_test_checksum_is_that_of_the_test_file(run: Any, files: Files, tmp_path: Path) -> None:
    namesake = tmp_path / files.train.name
    namesake.write_bytes(files.test.read_bytes())
    found = json.loads(run("evaluate", "network", "--model", files.model, "--test", namesake, "--json", "-").out)
    assert found["data"] == {namesake.name: hashlib.sha256(files.test.read_bytes()).hexdigest()}


def test_info_describes_the_model(run: Any, files: Files) -> None:
    found = json.loads(run("info", files.model, "--json", "-").out)
    model = Model.load(files.model)
    assert (found["schema"], found["fingerprint"], found["seed"]) == ("kdd", model.fingerprint, 3)
    assert sum(found["reference"].values()) == len(model.reference) == 280
    assert found["bytes"] == files.model.stat().st_size
    assert found["data"] == {"train.txt": hashlib.sha256(files.train.read_bytes()).hexdigest()}
    text = run("info", files.model, "--top", 3).out
    assert "train.txt (2,500 records, seed 3)" in text
    assert len(text.split("Strongest weights")[1].split("\n\n")[0].splitlines()) == 5
    assert "Strongest" not in run("info", files.model, "--top", 0).out


def test_warmup_loads_every_kernel(run: Any) -> None:
    ran = run("warmup", "--json", "-")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert found.keys() >= COMMON | {"cache", "seconds"}
    assert run("warmup").out.startswith("kernels ready in ")


# Determinism


def test_the_same_seed_gives_the_same_model_and_numbers(
    run: Any, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    train = ["train", "network", files.train, "--false-alarm-rate", 0.05, "--seed", 5]
    assert run(*train, "-o", tmp_path / "a").code == 0
    # Another process, with other hash randomisation.
    assert shell(*train, "-o", tmp_path / "b", env=os.environ | {"PYTHONHASHSEED": "99"}).returncode == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert run(*train[:-1], 6, "-o", tmp_path / "c").code == 0
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()
    evaluate = ["evaluate", "network", "--test", files.test, "--json", "-"]
    results = [json.loads(run(*evaluate, "--model", tmp_path / name).out) for name in "ab"]
    results.append(json.loads(shell(*evaluate, "--model", tmp_path / "b").stdout))
    for found in results:
        assert found.pop("duration") > 0
        assert found.pop("records_per_second") > 0
    assert results[0] == results[1] == results[2]


def test_simulating_again_gives_the_same_bytes(run: Any, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "a.txt.gz", "b.txt.gz"):
        ran = run("simulate", "records", "-o", tmp_path / name, "--records", 500, "--seed", 4, "--attacks", "all")
        assert (ran.code, ran.out) == (0, "")
        assert "500 records, 100 of them attacks, seed 4, day 0. Synthetic data" in ran.err
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()
    printed = run("simulate", "records", "-o", "-", "--records", 500, "--seed", 4, "--attacks", "all")
    assert printed.out == (tmp_path / "a.txt").read_text()


# Standard input and broken pipes


def test_standard_input_is_read(files: Files, tmp_path: Path) -> None:
    train = files.train.read_text()
    done = shell("train", "network", "-", "-o", tmp_path / "m", "--seed", 3, input=train)
    assert done.returncode == 0, done.stderr
    assert Model.load(tmp_path / "m").fingerprint == Model.load(files.model).fingerprint
    done = shell(
        "evaluate", "network", "--model", files.model, "--test", "-", "--json", "-", input=files.test.read_text()
    )
    assert json.loads(done.stdout)["data"]["-"] == hashlib.sha256(files.test.read_bytes()).hexdigest()


def test_standard_input_is_read_in_process(run: Any, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(files.test.read_bytes())))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", stdin)
    ran = run("evaluate", "network", "--model", files.model, "--test", "-", "--json", "-")
    assert json.loads(ran.out)["records"] == 2000


@pytest.mark.parametrize("command", ["simulate records -o - --records 20000", "info {model}", "--help"])
def test_a_closed_pipe_is_silent(files: Files, command: str) -> None:
    called = command.format(model=files.model).split()
    process = subprocess.Popen(
        [sys.executable, "-m", "netclust", *called], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    if called[0] == "simulate":
        assert process.stdout.readline().count(",") == 42
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(120) == 0
    assert "Traceback" not in err
    assert "Broken" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_gives_one_line(files: Files) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "netclust", "info", str(files.model)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "netclust: output: No space left on device\n")


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "netclust: interrupted\n"),
        (MemoryError("4 TiB"), 1, "netclust: not enough memory: use fewer records or a smaller window (4 TiB)\n"),
        (PermissionError(13, "Permission denied", "here.txt"), 1, "netclust: here.txt: Permission denied\n"),
    ],
)
def test_trouble_while_running_gives_one_line(
    run: Any, files: Files, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, line: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise raised

    monkeypatch.setattr(netclust.models.network.run_network, "evaluate_network", fail)
    assert run("evaluate", "network", "--model", files.model, "--test", files.test) == (code, "", line)


# Another schema, from CSV to alerts

DOORS = """
name = "doors"
normal = ["ok"]
delimiter = ";"
attribute = [
  {name = "at", role = "time", unit = "s"}, {name = "door", role = "context"},
  {name = "seconds", transform = "log1p", min = 0}, {name = "night", kind = "binary"},
  {name = "badge", kind = "symbolic"}, {name = "verdict", role = "label"},
]
[categories]
break_in = ["forced"]
"""


def doors(path: Path, n: int, seed: int, header: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = ["seconds;badge;night;verdict;at;door"] if header else []
    for i in range(n):
        forced = rng.random() < 0.2
        seconds = rng.exponential(200 if forced else 3)
        badge = rng.choice(["", "guest"] if forced else ["staff", "guest", "cleaning"])
        fields = {"seconds": f"{seconds:.2f}", "badge": badge, "night": str(int(rng.random() < 0.5)), "at": str(i)}
        fields |= {"verdict": "forced" if forced else "ok", "door": f"door {i % 7}"}
        names = rows[0].split(";") if header else ["at", "door", "seconds", "night", "badge", "verdict"]
        rows.append(";".join(fields[name] for name in names))
    path.write_text("\n".join(rows) + "\n")


def test_a_csv_with_its_own_schema_needs_no_code(run: Any, tmp_path: Path) -> None:
    (tmp_path / "doors.toml").write_text(DOORS)
    (tmp_path / "params.toml").write_text("epochs = 2\nreference_size = 60\nlearner = 'lspa'\n")
    doors(tmp_path / "past.csv", 800, 1, header=True)
    doors(tmp_path / "today.csv", 500, 2, header=False)
    ran = run(
        "train", "network", tmp_path / "past.csv", "--schema", tmp_path / "doors.toml", "--params",
        tmp_path / "params.toml", "--false-alarm-rate", 0.05, "-o", tmp_path / "doors.model",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert "false alarms" in ran.out
    (tmp_path / "doors.toml").unlink()  # the model carries its schema
    ran = run(
        "evaluate", "network", "--model", tmp_path / "doors.model", "--test", tmp_path / "today.csv",
        "--feedback", "predicted", "--mature", 60, "--alerts", 2, "--json", tmp_path / "out.json",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert "Alerts" in ran.out
    assert "break_in" in ran.out
    found = json.loads((tmp_path / "out.json").read_bytes())
    assert found["records"] == 500
    assert found["auc"] > 0.8
    assert found["per_category_records"]["break_in"] == found["per_class"]["forced"]["records"] > 50
    info = json.loads(run("info", tmp_path / "doors.model", "--json", "-").out)
    assert (info["schema"], info["numeric"], info["coded"]) == ("doors", ["seconds"], {"night": 1, "badge": 3})


def test_traffic_taken_for_normal_raises_alarms_at_a_rate(run: Any, files: Files, tmp_path: Path) -> None:
    model = tmp_path / "warm.model"
    complaint(run("train", "network", files.train, "-o", model, "--assume-normal"), "give a --false-alarm-rate")
    ran = run("train", "network", files.train, "-o", model, "--assume-normal", "--false-alarm-rate", "0.05")
    assert ran.code == 0, ran.err
    assert "held-out normal records" in ran.out
    assert Model.load(model).encoding.labels == ("normal",)
