"""Zeek and EVE logs read offline: the same records and verdicts as the sources of `watch`, and labels."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conn_logs import ZEEK_FIELDS, ZEEK_HEADER, eve_lines, labelled_tsv, loggable, zeek_rows
from text_sources import opened, rows

import netclust
from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.records.capture_format import text_kind
from netclust.records.reader import MAX_LINE_BYTES
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.scoring.model import Model
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.capture_labels import load_labels
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.sources.log_files import LogReader
from netclust.stream.sources.record_files import open_records

CONN = load_schema("conn")
ATTACKS = "port_scan,ftp_brute_force,dns_exfiltration,host_sweep"


class Hour:
    """Some minutes of a simulated hour: their connections, and the files that say the same."""

    def __init__(self, folder: Path) -> None:
        self.capture, self.label_file = folder / "hour.pcap", folder / "labels.csv"
        simulate_capture(
            self.capture, self.label_file, hours=0.3, seed=4, hosts=12, scale=0.4, campaigns_per_hour=10,
            attacks=ATTACKS,
        )  # fmt: skip
        table = FlowTable()
        parts = [table.feed(block) for block in CaptureFile(self.capture)]
        self.records = loggable(np.concatenate([*parts, table.finish()]))
        self.rules = load_labels(self.label_file)
        self.names = np.array(self.rules.names, object)[self.rules.labels_of(self.records)].tolist()
        assert len(self.records) > 500
        assert set(self.names) > {"normal"}
        self.tsv, self.json, self.eve = folder / "conn.log", folder / "conn.json", folder / "eve.json"
        rows = [row | {"label": name} for row, name in zip(zeek_rows(self.records), self.names, strict=True)]
        self.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.tsv.write_text(labelled_tsv(self.records, label=self.names))
        self.eve.write_text("".join(eve_lines(self.records)))


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Hour:
    return Hour(tmp_path_factory.mktemp("hour"))


@pytest.fixture(scope="module")
def model(hour: Hour, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the hour, written to a file."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    reader = open_records(hour.tsv)
    params = netclust.TrainParams(learner="unlearned", scale="spread", reference_size=300, false_alarm_rate=0.05)
    netclust.train_network(concat_tables(list(reader)), params, seed=0).save(path)
    return path


def watched(path: Path, kind: str, schema: str) -> list[Table]:
    """What the source of `watch` delivers."""
    source = opened(path, kind=kind, schema_=schema)
    tables = [arrival.table for arrival in source]
    source.close()
    return [table for table in tables if len(table)]


def all_rows(tables: list[Table] | Iterator[Table]) -> list[Any]:
    return [row for table in tables for row in rows(table)]


@pytest.mark.parametrize("schema", ["conn", "kdd"])
@pytest.mark.parametrize("form", ["tsv", "json", "eve"])
def test_a_log_has_the_records_that_its_source_delivers(hour: Hour, form: str, schema: str) -> None:
    path = getattr(hour, form)
    kind: Any = text_kind(path)
    assert kind == ("eve" if form == "eve" else "zeek")
    expected = all_rows(watched(path, kind, schema))
    for lines in (97, 8192):
        reader = LogReader(path, load_schema(schema), kind, batch_lines=lines)
        tables = list(reader)
        assert max(map(len, tables)) <= lines
        assert all_rows(tables) == expected
        assert rows(concat_tables(tables)) == expected
        assert reader.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (reader.records, reader.skipped) == (len(expected), Counter())
    assert reader.counters["other_events"] == (len(expected) if form == "eve" else 0)


@pytest.mark.parametrize("form", ["tsv", "json", "eve"])
def test_detect_judges_a_log_as_the_linker_judges_its_source(
    run: Any, hour: Hour, model: Path, tmp_path: Path, form: str
) -> None:
    path, out, result = getattr(hour, form), tmp_path / "found.jsonl", tmp_path / "result.json"
    ran = run("detect", "--model", model, "--input", path, "-o", out, "--every", "--window", "50", "--json", result)
    assert (ran.code, ran.err) == (0, "")
    loaded = Model.load(model)
    linker = Linker(loaded, LinkerConfig(referent_window=50))
    found = [json.loads(line) for line in out.read_text().splitlines()]
    at = 0
    for table in watched(path, text_kind(path), "conn"):
        batch = loaded.encoding.encode(table, linker.labels, delivered=True)
        verdicts = linker.process(batch)
        for i in range(len(batch)):
            line = found[at + i]
            assert line["verdict"] == netclust.VERDICTS[verdicts.verdict[i]]
            assert line["score"] == pytest.approx(float(verdicts.score[i]), rel=1e-6)
            assert (line["referent"], line["cluster"]) == (verdicts.referent(i), verdicts.cluster[i])
            assert (line["uid"], line["record"]) == (table.context["uid"][i], f"0:{at + i}")
        at += len(batch)
    body = json.loads(result.read_text())
    assert at == len(found) == body["records"] == len(hour.records)
    assert body["data"][path.name] == hashlib.sha256(path.read_bytes()).hexdigest()


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)  # type: ignore[no-any-return]


@pytest.mark.parametrize("form", ["tsv", "json", "eve"])
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd])
def test_packed_logs_are_recognised(hour: Hour, tmp_path: Path, form: str, pack: Any) -> None:
    plain, packed = getattr(hour, form), tmp_path / "no name says it"
    packed.write_bytes(pack(plain.read_bytes()))
    ours, theirs = open_records(packed), open_records(plain)
    assert all_rows(iter(ours)) == all_rows(iter(theirs))
    assert ours.sha256 == theirs.sha256


@pytest.mark.parametrize("form", ["tsv", "json", "eve"])
def test_logs_are_read_from_standard_input(hour: Hour, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = getattr(hour, form)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(plain.read_bytes()))))
    assert all_rows(iter(open_records("-"))) == all_rows(iter(open_records(plain)))


def test_a_log_that_is_cut_short_is_named(hour: Hour, tmp_path: Path) -> None:
    path = tmp_path / "conn.log.gz"
    path.write_bytes(gzip.compress(hour.tsv.read_bytes())[:-100])
    with pytest.raises(InputError, match=f"^{path}: cannot be unpacked"):
        list(open_records(path))


def test_bad_lines_are_counted_and_the_first_is_named(hour: Hour, tmp_path: Path) -> None:
    lines = hour.tsv.read_text().splitlines(keepends=True)
    at = len(lines) // 2
    odd = ["no columns\n", "x" + lines[at], "x" * (3 * MAX_LINE_BYTES) + "\n", "#close\t2026\n"]
    path = tmp_path / "conn.log"
    path.write_text("".join([*lines[:at], *odd, *lines[at:], "short and without an end"]))
    reader = LogReader(path, CONN, "zeek")
    kept = all_rows(iter(reader))
    assert kept == all_rows(iter(LogReader(hour.tsv, CONN, "zeek")))
    assert reader.skipped == {"columns": 2, "bad_value": 1, "long_line": 1}
    assert reader.first_skipped == f"{path} line {at + 1}: 1 columns, the header has {len(ZEEK_FIELDS) + 1}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"event_type":"dns"}\n', "read as a Suricata EVE log, events that are not of a flow: 1"),
        ('{"event_type":"flow"}\n', "read as a Suricata EVE log, lines that cannot be read: 1, the first: .* line 1: "),
        ('{"ts":1}\n{"ts":2}\n', "read as a Zeek conn.log, lines that cannot be read: 2, the first: .* line 1: "),
        (ZEEK_HEADER, "no records in it, read as a Zeek conn.log$"),
        ("#separator \\x09\n#path\tdns\n", "is a log of dns, not of connections"),
        ("#separator \\x09\n#fields\tts\tuid\n", "has no field id.orig_h"),
    ],
)
def test_a_log_without_a_record_is_an_error_that_names_it(
    run: Any, model: Path, tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "odd.log"
    path.write_text(text)
    with pytest.raises(InputError, match=f"^{path}: .*{why}"):
        list(open_records(path))
    ran = run("detect", "--model", model, "--input", path, "-o", tmp_path / "found.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"netclust: {path}: ")


def test_a_log_has_no_schema_of_packets(hour: Hour) -> None:
    with pytest.raises(InputError, match=f"^{hour.eve}: .* schema conn or kdd, not flow"):
        open_records(hour.eve, load_schema("flow"))


def labels_of(path: Path, **options: Any) -> list[str]:
    return [name for table in open_records(path, **options) for name in table.label_names().tolist()]


def test_labels_come_from_the_column_that_is_named(hour: Hour, tmp_path: Path) -> None:
    some = hour.records[:6]
    said = ["Benign", "Background", "scan", "-", "benign", "NORMAL"]
    kinds = ["web", "web", "a b", "web", "(empty)", "web"]
    path = tmp_path / "conn.log.labeled"
    path.write_text(labelled_tsv(some, label=said, detailedlabel=kinds))
    assert labels_of(path) == ["normal", "Background", "scan", "", "normal", "normal"]
    assert labels_of(path, leave_out=["background", ""]) == ["normal", "scan", "normal", "normal"]
    assert labels_of(path, label_column="detailedlabel", normal=["Web"]) == [
        "normal", "normal", "a b", "normal", "", "normal"
    ]  # fmt: skip
    with pytest.raises(InputError, match="no record has a label in 'verdict'"):
        labels_of(path, label_column="verdict")
    with pytest.raises(InputError, match="all 6 records have a label that is left out"):
        labels_of(path, leave_out=["normal", "benign", "background", "scan", ""])


@pytest.mark.parametrize("form", ["json", "eve"])
def test_labels_of_json_come_from_the_key_that_is_named(hour: Hour, tmp_path: Path, form: str) -> None:
    lines = [line for line in getattr(hour, form).read_text().splitlines() if '"dns","flow":"some' not in line][:6]
    values = ["Benign", 7, True, None, "scan", "x" * 300]
    said = [json.loads(line) | {"attack": value} for line, value in zip(lines, values, strict=True)]
    path = tmp_path / "log.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in said))
    reader = open_records(path, label_column="attack")
    assert [name for table in reader for name in table.label_names().tolist()] == ["normal", "7", "true", "", "scan"]
    assert reader.skipped == {"bad_value": 1}


def test_what_is_left_out_still_counts_as_traffic(hour: Hour) -> None:
    attack = Counter(name for name in hour.names if name != "normal").most_common(1)[0][0]
    everything, reader = all_rows(iter(open_records(hour.tsv))), open_records(hour.tsv, leave_out=[attack])
    kept = all_rows(iter(reader))
    assert [row[1:] for row in kept] == [
        row[1:] for row, name in zip(everything, hour.names, strict=True) if name != attack
    ]
    assert [row[0] for row in kept] == list(range(len(kept)))
    assert reader.skipped == {"left_out": hour.names.count(attack)}


@pytest.mark.parametrize("form", ["tsv", "json", "eve"])
def test_a_label_file_labels_a_log_as_it_labels_the_capture(hour: Hour, form: str) -> None:
    assert labels_of(getattr(hour, form), labels=hour.label_file) == hour.names


def test_a_label_file_and_a_label_column_are_not_mixed(hour: Hour, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not both"):
        open_records(hour.tsv, labels=hour.label_file, label_column="label")
    with pytest.raises(InputError, match="give a label file"):
        open_records(hour.capture, label_column="label")
    records = tmp_path / "records.txt"
    netclust.simulate(10, seed=1).write(records)
    with pytest.raises(InputError, match="the schema says where it is"):
        open_records(records, label_column="label")


def test_labels_of_captures_and_records_are_renamed_and_left_out_as_well(hour: Hour, tmp_path: Path) -> None:
    found = labels_of(hour.capture, schema=CONN, labels=hour.label_file, normal=["Port_Scan"], leave_out=["normal"])
    assert "normal" in found
    assert "port_scan" not in found
    records = tmp_path / "records.txt"
    netclust.simulate(500, seed=1).write(records)
    kdd = load_schema("kdd")
    whole = concat_tables(list(open_records(records, kdd)))
    some = concat_tables(list(open_records(records, kdd, leave_out=["Normal"])))
    assert len(some) == int((whole.label_names() != "normal").sum()) > 0
    np.testing.assert_array_equal(some.num, whole.num[whole.label_names() != "normal"])


def test_a_log_is_trained_on_and_evaluated_and_explained(run: Any, hour: Hour, tmp_path: Path) -> None:
    model, result = tmp_path / "model.safetensors", tmp_path / "result.json"
    rare = min(set(hour.names), key=hour.names.count)
    ran = run("train", "network", hour.tsv, "-o", model, "--params", "reference", "--leave-out", rare, "--json", result)
    assert ran.code == 0, ran.err
    kept = len(hour.names) - hour.names.count(rare)
    body = json.loads(result.read_text())
    assert (body["records"], body["skipped"]) == (kept, {"left_out": len(hour.names) - kept})
    assert f"left out {len(hour.names) - kept} record" in ran.err
    loaded = Model.load(model)
    assert loaded.encoding.schema.name == "conn"
    assert set(loaded.encoding.labels) == set(hour.names) - {rare}
    ran = run("evaluate", "network", "--model", model, "--test", hour.json, "--json", result)
    assert ran.code == 0, ran.err
    body = json.loads(result.read_text())
    assert body["records"] == len(hour.names)
    assert body["false_positives"] + body["true_negatives"] == hour.names.count("normal")
    ran = run("evaluate", "network", "--model", model, "--test", hour.eve)
    assert (ran.code, "has no label" in ran.err) == (2, True)
    assert run("evaluate", "network", "--model", model, "--test", hour.eve, "--labels", hour.label_file).code == 0
    ran = run("explain", "--model", model, "--test", hour.tsv, "--record", 7, "--leave-out", rare)
    assert (ran.code, "Record 0:7 is" in ran.out) == (0, True)


def test_flows_write_records_that_the_other_commands_read(run: Any, hour: Hour, tmp_path: Path) -> None:
    records, model, found = tmp_path / "hour.csv", tmp_path / "model", tmp_path / "found.jsonl"
    ran = run("flows", hour.capture, "--schema", "conn", "--labels", hour.label_file, "-o", records)
    assert ran.code == 0, ran.err
    from_capture = concat_tables(list(open_records(hour.capture, CONN, labels=hour.label_file)))
    from_text = concat_tables(list(open_records(records, CONN)))
    np.testing.assert_array_equal(from_text.num, from_capture.num)
    assert from_text.label_names().tolist() == from_capture.label_names().tolist()
    with records.open() as stream:
        header = next(csv.reader(stream))
    assert {a.name for a in CONN.attributes} <= set(header)
    assert run("train", "network", records, "--schema", "conn", "--params", "reference", "-o", model).code == 0
    assert run("evaluate", "network", "--model", model, "--test", records).code == 0
    assert run("evaluate", "network", "--model", model, "--test", hour.tsv).code == 0
    assert run("detect", "--model", model, "--input", records, "-o", found).code == 0
    assert run("detect", "--model", model, "--input", hour.capture, "-o", found).code == 0


def test_python_takes_a_reader_as_records(hour: Hour, model: Path) -> None:
    found = netclust.detect(model, netclust.open_records(hour.tsv))
    table = concat_tables(list(netclust.open_records(hour.tsv)))
    assert found.score.tolist() == netclust.detect(model, table).score.tolist()
    trained = netclust.train(netclust.open_records(hour.tsv), params="reference")
    assert len(netclust.detect(trained, netclust.open_records(hour.json))) == len(hour.names)
    with pytest.raises(InputError, match="have their own labels"):
        netclust.train(table, hour.names)


def test_a_real_labelled_day_is_read_whole(data_folder: Path) -> None:
    days = sorted((data_folder / "real" / "zeek-days").glob("*.conn.log.labeled"))
    if not days:
        pytest.skip("no real Zeek days: set NETCLUST_DATA to a folder that has real/zeek-days")
    for day in days:
        reader = open_records(day, leave_out=["Background"])
        names = Counter(name for table in reader for name in table.label_names().tolist())
        said = Counter(line.split("\t")[-2] for line in day.read_text().splitlines() if not line.startswith("#"))
        assert names == {"normal": said["Benign"], "Malicious": said["Malicious"]}
        assert reader.skipped == {"left_out": said["Background"]}
        assert all_rows(iter(LogReader(day, CONN, "zeek"))) == all_rows(watched(day, "zeek", "conn"))


def test_real_logs_of_either_form_are_read(data_folder: Path) -> None:
    logs = sorted((data_folder / "real" / "zeek-logs").glob("*.log"))
    if not logs:
        pytest.skip("no real Zeek logs: set NETCLUST_DATA to a folder that has real/zeek-logs")
    for log in logs:
        reader = open_records(log)
        lines = [line for line in log.read_text().splitlines() if not line.startswith("#")]
        assert sum(map(len, reader)) + reader.skipped.total() == len(lines)
