"""`netclust flows`, and captures wherever records are read: what is written, what is said, and what is refused."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from exchanges import block, handshake, tcp, udp
from needed import need_module

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.records.reader import read_table
from netclust.records.schema import load_schema
from netclust.records.table import concat_tables
from netclust.stream.packets.capture_reader import CaptureReader
from netclust.stream.packets.capture_writer import write_capture


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated quarter of an hour, and its labels beside it."""
    folder = tmp_path_factory.mktemp("hour")
    simulate_capture(
        folder / "hour.pcap", folder / "hour.csv", hours=0.25, seed=5, attacks="port_scan", start="2024-01-01T10:00:00Z"
    )
    return folder / "hour.pcap"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.pcap"
    write_capture(path, [block([*handshake(), tcp(1, "R", seq=101), udp(2, data=b"abc"), udp(3, back=True)])])
    return path


def test_records_are_what_the_capture_holds(run: Any, small: Path) -> None:
    code, out, err = run("flows", small, "-o", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(r["protocol"], r["state"], r["orig_packets"], r["end"]) for r in rows] == [
        ("tcp", "RSTO", "3", "closed"),
        ("udp", "SF", "1", "idle"),
    ]
    assert "2 records from 6 packets" in err


def test_a_summary_is_shown_without_an_output(run: Any, small: Path) -> None:
    code, out, _ = run("flows", small)
    assert code == 0
    assert "2 records from 6 packets" in out
    assert "RSTO" in out


@pytest.mark.parametrize("schema", ["kdd", "flow"])
def test_written_records_are_read_back(run: Any, hour: Path, tmp_path: Path, schema: str) -> None:
    out = tmp_path / "records.csv"
    assert run("flows", hour, "--schema", schema, "--labels", hour.with_suffix(".csv"), "-o", out)[0] == 0
    from netclust.stream.packets.capture_labels import load_labels

    rules = load_labels(hour.with_suffix(".csv"))
    direct = concat_tables(list(CaptureReader([hour], load_schema(schema), labels=rules)))
    again = read_table(out, load_schema(schema))
    assert again.num.tolist() == direct.num.tolist()
    assert again.label_names().tolist() == direct.label_names().tolist()
    for s in range(direct.sym.shape[1]):
        names = [[t.symbols[s][k] for k in t.sym[:, s]] for t in (again, direct)]
        assert names[0] == names[1]
    if schema == "flow":
        assert again.time.tolist() == direct.time.tolist()
        assert again.context["source"].tolist() == direct.context["source"].tolist()
        assert again.key.tolist() != [0] * len(again)


def test_json_lines_and_parquet_hold_the_same(run: Any, small: Path, tmp_path: Path) -> None:
    parquet = need_module("pyarrow.parquet")
    for name in ("r.csv", "r.jsonl", "r.parquet"):
        assert run("flows", small, "-o", tmp_path / name)[0] == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    columns = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert [list(r) for r in rows] == [list(r) for r in lines] == [list(r) for r in columns]
    assert (
        [float(r["orig_bytes"]) for r in rows] == [r["orig_bytes"] for r in lines] == [r["orig_bytes"] for r in columns]
    )
    assert [r["source"] for r in rows] == [r["source"] for r in columns]
    assert [int(r["destination_port"]) for r in rows] == [r["destination_port"] for r in lines]
    assert [int(r["destination_port"]) for r in rows] == [r["destination_port"] for r in columns]
    assert str(parquet.read_schema(tmp_path / "r.parquet").field("time").type) == "timestamp[ns]"


def test_the_result_has_what_every_result_carries(run: Any, small: Path, tmp_path: Path) -> None:
    code, _, _ = run("flows", small, "--json", tmp_path / "r.json")
    body = json.loads((tmp_path / "r.json").read_text())
    assert code == 0
    assert {"version", "command", "seed", "data", "duration"} <= set(body)
    assert body["counters"]["decoded"] == 6
    assert body["by_protocol_and_state"] == {"tcp RSTO": 1, "udp SF": 1}
    assert len(body["data"]["small.pcap"]) == 64


def test_standard_input_is_read(small: Path) -> None:
    command = [sys.executable, "-m", "netclust", "flows", "-", "-o", "-"]
    done = subprocess.run(command, input=gzip.compress(small.read_bytes()), capture_output=True, check=True)
    assert done.stdout.decode().count("\n") == 3


def wait_until_read(process: subprocess.Popen[bytes], path: Path) -> None:
    """Until a process stands at the end of a file, however long its kernels are compiled before."""
    limit = time.monotonic() + 120
    while True:
        for opened in Path(f"/proc/{process.pid}/fd").iterdir():
            place = Path(f"/proc/{process.pid}/fdinfo/{opened.name}")
            with contextlib.suppress(OSError):  # closed meanwhile
                if opened.readlink() == path and int(place.read_text().split()[1]) == path.stat().st_size:
                    return
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_growing_file_is_followed(small: Path, tmp_path: Path) -> None:
    content = small.read_bytes()
    growing = tmp_path / "growing.pcap"
    growing.write_bytes(content[:200])
    command = [sys.executable, "-m", "netclust", "flows", str(growing), "--follow", "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            wait_until_read(process, growing)
            with growing.open("ab") as file:
                file.write(content[200:])
            wait_until_read(process, growing)
        finally:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.decode().count("\n") == 3, err
    assert b"6 packets" in err


def test_options_have_effect(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.pcap"
    write_capture(path, [block([udp(t) for t in range(0, 200, 10)])])

    def records(*options: object) -> int:
        return int(run("flows", path, *options)[1].split()[0])

    assert records() == 1
    assert records("--idle-timeout", 5) == 20
    assert records("--active-timeout", 50) == 4
    assert records("--packets", 3, "--idle-timeout", 5) == 3


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "give captures, or interfaces with --live"),
        (["nowhere.pcap"], "nowhere.pcap: No such file"),
        (["README.md"], "README.md"),
        (["{small}", "-o", "x.xlsx"], "records are written as .csv, .jsonl or .parquet"),
        (["{small}", "-o", "nowhere/x.csv"], "there is no folder nowhere"),
        (["{small}", "-o", "{small}"], "would be overwritten"),
        (["{small}", "--live", "lo"], "one of the two"),
        (["{small}", "--max-flows", "3"], "max_flows is 3"),
        (["{small}", "--labels", "nowhere.csv"], "nowhere.csv: No such file"),
        (["{small}", "{small}", "--follow"], "only one capture can be followed"),
        (["--live", "no-such-interface"], "no-such-interface"),
        (["--live", "lo", "--workers", "2", "--packets", "5"], "for one worker"),
        (["{small}", "-o", "-", "--json", "-"], "cannot both go to standard output"),
    ],
)
def test_bad_calls_are_refused(run: Any, small: Path, options: list[str], complaint: str) -> None:
    code, out, err = run("flows", *[option.format(small=small) for option in options])
    if code == 2 and "CAP_NET_RAW" in err:
        pytest.skip("capturing needs CAP_NET_RAW, which this process lacks")
    assert (code, out) == (2, ""), err
    assert complaint in err
    assert err.count("\n") == 1


def test_what_is_no_capture_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(os.urandom(100))
    code, _, err = run("flows", tmp_path / "x.pcap")
    assert code == 2
    assert "x.pcap" in err
    assert "pcap" in err


def test_a_labelled_capture_can_train(run: Any, hour: Path, tmp_path: Path) -> None:
    model, labels = tmp_path / "m.safetensors", hour.with_suffix(".csv")
    params = tmp_path / "p.toml"
    params.write_text('learner = "unlearned"\nscale = "spread"\nreference_size = 100\nfalse_alarm_rate = 0.05\n')
    common = ("--schema", "flow", "--params", params)
    code, out, err = run("train", "network", hour, "--labels", labels, *common, "-o", model)
    assert code == 0, err
    assert "Trained on" in out
    code, out, err = run("evaluate", "network", "--model", model, "--test", hour, "--labels", labels)
    assert code == 0, err
    assert "detection rate" in out
    code, out, err = run("detect", "--model", model, "--input", hour, "-o", tmp_path / "verdicts.jsonl")
    assert code == 0, err
    lines = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert lines
    assert {"source", "destination", "destination_port", "time", "verdict"} <= set(lines[0])
    assert run("explain", "--model", model, "--test", hour, "--record", 3)[0] == 0
    late = ("--feedback", "gold", "--delay", 5, "--window", 20)
    assert run("explain", "--model", model, "--test", hour, "--labels", labels, "--record", 30, *late)[0] == 0


def test_a_capture_without_labels_cannot_train(run: Any, small: Path, tmp_path: Path) -> None:
    code, _, err = run("train", "network", small, "--schema", "flow", "-o", tmp_path / "m")
    assert code == 2
    assert "have no label" in err


def test_labels_for_records_are_refused(run: Any, small: Path, tmp_path: Path) -> None:
    run("flows", small, "-o", tmp_path / "r.csv")
    (tmp_path / "l.csv").write_text("label\nnormal\n")
    code, _, err = run(
        "train", "network", tmp_path / "r.csv", "--schema", "flow", "--labels", tmp_path / "l.csv", "-o", tmp_path / "m"
    )
    assert code == 2
    assert "labels from a file are for captures" in err


def test_a_preset_accepts_a_small_capture(run: Any, hour: Path, tmp_path: Path) -> None:
    common = [
        "train",
        "network",
        hour,
        "--labels",
        hour.with_suffix(".csv"),
        "--params",
        "capture",
        "-o",
        tmp_path / "m",
    ]
    ran = run(*common)
    assert ran.code == 0, ran.err
    assert "a false-alarm rate of 0.0001 needs more normal records than there are" in ran.err
    assert run(*common, "--false-alarm-rate", 0.0001).code == 2  # asked for by the user, it is not changed


def test_the_label_column_does_not_depend_on_what_matches(run: Any, small: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    for rule, expected in (("udp,seen", ["", "seen"]), ("sctp,never", ["", ""])):
        labels.write_text(f"protocol,label\n{rule}\n")
        ran = run("flows", small, "--labels", labels, "-o", tmp_path / "r.csv")
        rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
        assert [row["label"] for row in rows] == expected
        assert ("no row matches" in ran.err) == ("never" in rule)


def test_rules_for_one_capture_are_refused_for_several(run: Any, small: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcap"
    other.write_bytes(small.read_bytes())
    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\nsmall.pcap,x\n")
    ran = run("flows", small, other, "--labels", labels)
    assert ran.code == 2
    assert "one capture at a time" in ran.err


def test_a_file_that_is_read_is_not_overwritten(run: Any, small: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("label\nnormal\n")
    assert run("flows", small, "--labels", labels, "-o", labels).code == 2
    assert run("train", "network", small, "--labels", labels, "-o", labels).code == 2
    assert run("flows", small, "-o", tmp_path / "x.csv", "--json", tmp_path / "x.csv").code == 2
    assert run("simulate", "capture", "-o", tmp_path / "y", "--labels", tmp_path / "y").code == 2
    assert labels.read_text() == "label\nnormal\n"


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
def test_nothing_to_write_makes_a_readable_file(run: Any, tmp_path: Path, name: str) -> None:
    empty = tmp_path / "empty.pcap"
    write_capture(empty, [block([])])
    assert run("flows", empty, "-o", tmp_path / name).code == 0
    if name.endswith("csv"):
        assert (tmp_path / name).read_text().startswith("time,uid,")
    elif name.endswith("parquet"):
        parquet = need_module("pyarrow.parquet")
        assert parquet.read_table(tmp_path / name).num_rows == 0


@pytest.mark.parametrize("options", [["--bpf", "tcp"], ["--promiscuous"], ["--workers", "2"], ["--dump", "x.pcap"]])
def test_an_option_that_does_nothing_is_refused(run: Any, small: Path, options: list[str]) -> None:
    ran = run("flows", small, *options)
    assert ran.code == 2
    assert "is for live traffic" in ran.err


def test_following_a_packed_capture_is_refused(run: Any, small: Path, tmp_path: Path) -> None:
    packed = tmp_path / "x.pcap.gz"
    packed.write_bytes(gzip.compress(small.read_bytes()))
    ran = run("flows", packed, "--follow")
    assert ran.code == 2
    assert "only plain captures can be followed" in ran.err
