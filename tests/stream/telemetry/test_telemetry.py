"""Metrics: bounded, in step with their documentation, never going down, cheap enough for every batch."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needed import need_program
from prometheus_client.parser import text_string_to_metric_families

from netclust.errors import InputError
from netclust.kernels.packets.capture_index import REASONS
from netclust.kernels.packets.decode import STATUS_NAMES
from netclust.linking.verdicts import ROOT, Verdicts
from netclust.records.reader import _REASONS
from netclust.stream.packets import live
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.telemetry.metric_table import LABEL_VALUES, METRICS, label_values, metrics_page
from netclust.stream.telemetry.telemetry import CONTENT_TYPE, MAX_NAMES, SOURCE_COUNTERS, Telemetry, classified
from netclust.stream.telemetry.vector_histogram import VectorHistogram

ROOT_FOLDER = Path(__file__).resolve().parents[3]


def whole() -> Telemetry:
    """Everything that a daemon registers, with one source and one sink."""
    telemetry = Telemetry()
    packets = dict.fromkeys(("packets", "bytes", "records", "kernel_drops", "flows_evicted", "decoded", "bad_ip"), 3)
    telemetry.add_source("live", lambda: packets, lambda: {"up": 1, "queue_records": 5})
    telemetry.add_sink(
        "file",
        lambda: {"delivered": 2, "errors": 1, "dropped": 1, "spool_dropped": 2},
        lambda: {"queue": 1, "spool_bytes": 10},
    )
    linker = {"referents": 500, "clusters_opened_total": 9, "clusters_forgotten_total": 2, "matured_total": 4}
    telemetry.set_linker(lambda: linker, window=1000)
    telemetry.set_alerts(lambda: {"open": 2, ("opened", "novel", "high"): 3, ("suppressed", "rule"): 1})
    telemetry.set_model("0123456789abcdef", "flow", generation=1, references=2000)
    telemetry.observe_batch(Verdicts.empty(3), np.array([0.1, 0.2, 3.0]), 0.01)
    telemetry.watch_folder(ROOT_FOLDER)
    telemetry.add_gauges("detector", lambda: {"labels": 5})
    gaps = [(name, ("live",), 1) for name in ("source_gaps_total", "source_gap_seconds_total")]
    telemetry.add_samples("source states", lambda: [*gaps, ("source_states_refused_total", ("live",), 0)])
    return telemetry


def samples(telemetry: Telemetry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    body, content_type = telemetry.exposition()
    assert content_type == CONTENT_TYPE
    families = text_string_to_metric_families(body.decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def value(telemetry: Telemetry, name: str, **labels: str) -> float:
    return samples(telemetry)[f"netclust_{name}", tuple(sorted(labels.items()))]


def test_no_metric_is_exported_undocumented_or_documented_and_missing() -> None:
    body = whole().exposition()[0].decode()
    kinds = dict(re.findall(r"^# TYPE (netclust_\w+) (\w+)$", body, re.MULTILINE))
    assert kinds == {doc.name: doc.type for doc in METRICS}
    with_samples = {re.sub(r"_(bucket|count|sum)$", "", name) for name, _ in samples(whole()) if "netclust" in name}
    # What only appears when it happened: how a source fares beside errors; and shards are not the daemon's.
    missing = {doc.name for doc in METRICS} - with_samples
    assert missing == {"netclust_source_events_total", "netclust_shard_behind_seconds"}
    for name, labels in samples(whole()):
        doc = next((d for d in METRICS if d.name == name), None)
        if doc is not None:
            assert {key for key, _ in labels} == set(doc.labels)


def test_the_documentation_is_in_step_with_the_table() -> None:
    page = (ROOT_FOLDER / "docs" / "metrics.md").read_text()
    assert page == metrics_page(), "run: python -m netclust.stream.telemetry.metric_table docs/metrics.md"


def test_one_source_and_one_sink_do_not_make_a_flood_of_series() -> None:
    lines = [line for line in whole().exposition()[0].decode().splitlines() if not line.startswith("#")]
    assert len([line for line in lines if "_bucket{" not in line]) <= 200
    assert len([line for line in lines if "_bucket{" in line]) <= 40


def test_promtool_finds_nothing_wrong_with_names_types_and_help() -> None:
    promtool = need_program("promtool")
    body = whole().exposition()[0]
    done = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_label_values_are_never_free_text() -> None:
    closed = {label for _, label in LABEL_VALUES}
    configured = {"source", "sink", "shard", "version", "python", "numba", "fingerprint", "schema"}
    for doc in METRICS:
        for label in doc.labels:
            assert label in configured or label_values(doc.name, label), (doc.name, label)
    assert not closed & {"address", "ip", "path", "alert", "cluster", "entity"}


@given(st.dictionaries(st.text(max_size=30), st.integers(0, 10**9), max_size=50))
def test_whatever_a_source_counts_the_reasons_stay_within_their_lists(counters: dict[str, int]) -> None:
    telemetry = Telemetry()
    telemetry.add_source("a", lambda: counters, dict)
    for name, labels in samples(telemetry):
        reason = dict(labels).get("reason")
        assert reason is None or reason in label_values(name, "reason")  # type: ignore[operator]
    assert value(telemetry, "scrape_errors_total") == 0


def test_no_counter_of_a_source_in_this_repository_is_unknown() -> None:
    written = {*REASONS, *STATUS_NAMES[2:], *live.COUNTERS, *FlowTable(max_flows=16).counters, "traffic_window_full"}
    written |= set(_REASONS.values())
    packets = [
        ROOT_FOLDER / "stream" / "packets" / f"{name}.py" for name in ("live", "scapy_live", "fanout", "capture_files")
    ]
    for path in [*packets, *ROOT_FOLDER.glob("stream/sources/*.py")]:
        written |= set(re.findall(r'(?:\bcounters\[|\bskip\()"(\w+)"(?:\] \+=|,)', path.read_text()))
    assert len(written) > 40
    unknown = sorted(key for key in written - set(SOURCE_COUNTERS) if key and classified(key)[1] == "other")
    assert not unknown, "name them in stream/telemetry/metric_table.py"


def test_a_source_that_is_exchanged_does_not_make_counters_go_down() -> None:
    telemetry = Telemetry()
    old, new = Counter(records=100, bad_ip=3), Counter(records=0)
    telemetry.add_source("a", lambda: old, lambda: {"up": 1})
    assert value(telemetry, "records_total", source="a") == 100
    old["records"] += 20  # after the last scrape
    telemetry.add_source("a", lambda: new, lambda: {"up": 1})
    assert value(telemetry, "records_total", source="a") == 120
    new["records"] += 500  # more than the old one ever had
    assert value(telemetry, "records_total", source="a") == 620
    assert value(telemetry, "decode_errors_total", source="a", reason="bad_ip") == 3
    telemetry.remove_source("a")
    assert ("netclust_records_total", (("source", "a"),)) not in samples(telemetry)
    telemetry.add_source("a", lambda: {"records": 1}, dict)
    assert value(telemetry, "records_total", source="a") == 621


def test_a_counter_that_begins_again_does_not_go_down() -> None:
    telemetry = Telemetry()
    counts = Counter(records=50)
    telemetry.add_source("a", lambda: counts, dict)
    seen = []
    for now in (50, 70, 10, 15, 0):
        counts["records"] = now
        seen.append(value(telemetry, "records_total", source="a"))
    assert seen == [50, 70, 80, 85, 85]


def test_a_linker_that_goes_on_from_a_state_is_not_counted_twice() -> None:
    telemetry = Telemetry()
    telemetry.set_linker(lambda: {"clusters_opened_total": 10, "referents": 5}, window=10)
    telemetry.set_linker(lambda: {"clusters_opened_total": 11, "referents": 6}, window=10, continues=True)
    assert value(telemetry, "clusters_opened_total") == 11
    telemetry.set_linker(lambda: {"clusters_opened_total": 1, "referents": 1}, window=10)
    assert value(telemetry, "clusters_opened_total") == 12
    assert value(telemetry, "window_fill_ratio") == 0.1


def test_a_source_that_cannot_be_asked_does_not_fail_the_scrape() -> None:
    telemetry = Telemetry()
    broken = False

    def counters() -> dict[str, int]:
        if broken:
            raise OSError("closed")
        return {"records": 9}

    telemetry.add_source("a", counters, lambda: {"up": 1})
    assert value(telemetry, "records_total", source="a") == 9
    broken = True
    assert value(telemetry, "records_total", source="a") == 9
    assert value(telemetry, "scrape_errors_total") == 2  # of both scrapes since


def test_names_that_come_and_go_with_reloads_leave_nothing_behind() -> None:
    telemetry = Telemetry()
    for i in range(5 * MAX_NAMES):
        telemetry.add_sink(f"s{i}", lambda: {"delivered": 1}, dict)
        telemetry.remove_sink(f"s{i}")
    assert not any(dict(labels).get("sink") for _, labels in samples(telemetry))
    assert len(telemetry._left) <= MAX_NAMES
    for i in range(MAX_NAMES):
        telemetry.add_source(f"s{i}", dict, dict)
    with pytest.raises(InputError, match="too many"):
        telemetry.add_source("one more", dict, dict)


def test_events_that_the_spool_dropped_are_not_missing_from_what_was_lost() -> None:
    assert value(whole(), "sink_events_total", sink="file", result="dropped") == 3


def test_reasons_of_lines_are_there_before_the_first_bad_line() -> None:
    telemetry = Telemetry()
    telemetry.add_source("lines", lambda: {"records": 5}, dict)
    assert value(telemetry, "input_errors_total", source="lines", reason="columns") == 0


def test_only_the_model_in_use_is_shown() -> None:
    telemetry = whole()
    telemetry.set_model("fedcba9876543210", "kdd", generation=2, references=1)
    shown = [labels for name, labels in samples(telemetry) if name == "netclust_model_info"]
    assert shown == [(("fingerprint", "fedcba987654"), ("schema", "kdd"))]


def test_a_batch_is_counted_to_the_record() -> None:
    telemetry = Telemetry()
    batch = Verdicts.empty(10)
    batch.verdict[:4] = 2
    batch.via[:3] = ROOT
    batch.score[:] = [9, 1, 0.7, 0.6, -0.2, -0.3, -1, -3, -5, np.inf]
    telemetry.observe_batch(batch, np.full(10, 0.3), 0.004)
    telemetry.observe_batch(Verdicts.empty(0), np.empty(0), 0.004)
    assert value(telemetry, "verdicts_total", verdict="novel") == 4
    assert value(telemetry, "verdicts_total", verdict="normal") == 6
    assert value(telemetry, "links_total", to="root") == 3
    assert value(telemetry, "anomalous_share") == pytest.approx(0.4)
    assert value(telemetry, "link_score_bucket", le="0.0") == 5
    assert value(telemetry, "link_score_bucket", le="+Inf") == 10
    assert value(telemetry, "verdict_latency_seconds_count") == 10
    assert value(telemetry, "verdict_latency_seconds_sum") == pytest.approx(3.0)
    assert value(telemetry, "batch_seconds_bucket", le="0.005") == 2


def test_what_is_not_in_the_table_is_refused() -> None:
    telemetry = Telemetry()
    with pytest.raises(KeyError):
        telemetry.set("temperature", 1)
    with pytest.raises(ValueError, match="labels"):
        telemetry.inc("reloads_total")
    with pytest.raises(ValueError, match="one of"):
        telemetry.feedback("poem", accepted=True)
    with pytest.raises(ValueError, match="go down"):
        telemetry.inc("reloads_total", -1, result="ok")


def test_checkpoints_and_reloads_are_told_apart_by_their_result() -> None:
    telemetry = Telemetry()
    assert value(telemetry, "config_last_reload_successful") == 1
    telemetry.reloaded(ok=False)
    assert value(telemetry, "config_last_reload_successful") == 0
    telemetry.checkpointed(True, seconds=0.5, size=1000, pause=0.01)
    telemetry.checkpointed(False, seconds=9.0)
    assert value(telemetry, "checkpoints_total", result="failed") == 1
    assert value(telemetry, "checkpoint_bytes") == 1000
    assert 0 <= value(telemetry, "checkpoint_age_seconds") < 60


def test_scrapes_while_batches_are_counted_lose_nothing() -> None:
    telemetry = whole()
    batch, latencies = Verdicts.empty(100), np.zeros(100)
    counts: Counter[str] = Counter()
    telemetry.add_source("busy", lambda: counts, dict)
    stop = threading.Event()
    failures: list[BaseException] = []

    def scrape() -> None:
        before = -1.0
        try:
            while not stop.is_set():
                now = value(telemetry, "verdicts_total", verdict="normal")
                assert now >= before
                before = now
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=scrape) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(300):
        telemetry.observe_batch(batch, latencies, 0.0)
        counts[f"reason{i}"] += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert value(telemetry, "verdicts_total", verdict="normal") == 3 + 300 * 100
    assert value(telemetry, "source_events_total", source="busy", reason="other") == 300


def test_a_month_of_batches_takes_no_more_memory_than_an_hour() -> None:
    telemetry, batch, latencies = whole(), Verdicts.empty(64), np.zeros(64)
    for _ in range(50):
        telemetry.observe_batch(batch, latencies, 0.1)
        telemetry.exposition()
    tracemalloc.start()
    for _ in range(100):
        telemetry.observe_batch(batch, latencies, 0.1)
        telemetry.exposition()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000


@given(st.lists(st.floats(-20, 20, width=32), max_size=60), st.integers(0, 60))
def test_a_histogram_of_parts_is_that_of_the_whole(numbers: list[float], cut: int) -> None:
    values = np.array(numbers, np.float32)
    parts, together = VectorHistogram((-1.0, 0.0, 2.5)), VectorHistogram((-1.0, 0.0, 2.5))
    parts.observe(values[:cut])
    parts.observe(values[cut:])
    together.observe(values)
    assert parts.cumulative() == together.cumulative()
    assert [n for _, n in together.cumulative()] == [float((values <= b).sum()) for b in (-1.0, 0.0, 2.5, np.inf)]


def test_numbers_that_are_none_do_not_spoil_the_sum() -> None:
    histogram = VectorHistogram((1.0,))
    histogram.observe(np.array([0.5, np.nan, np.inf, -np.inf]))
    assert histogram.sum == 0.5
    assert histogram.cumulative() == [("1.0", 2.0), ("+Inf", 4.0)]
    with pytest.raises(ValueError, match="rise"):
        VectorHistogram((2.0, 1.0))


def test_help_and_telemetry_module_load_no_prometheus_before_it_is_used() -> None:
    code = "import sys, netclust.stream.telemetry.telemetry; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
