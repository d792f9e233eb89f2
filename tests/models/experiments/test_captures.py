"""The comparison on captures: what is mixed, what counts as found, and who wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needed import need_module

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.models.experiments.captures import capture_table
from netclust.models.experiments.captures.capture_cases import LEAD_NS, attack_case, capture_span
from netclust.models.experiments.captures.capture_detectors import RIVALS, make_rival
from netclust.models.experiments.captures.capture_table import OURS, CapturePlan, compare_on_captures, wilson
from netclust.models.network.params import TrainParams
from netclust.records.schema import load_schema
from netclust.records.table import concat_tables
from netclust.stream.packets.capture_labels import load_labels, parse_labels
from netclust.stream.packets.capture_reader import CaptureReader

pytestmark = pytest.mark.peers

LABELS = """file,protocol,label
scan.pcap,arp,probe
scan.pcap,,unknown
twin.pcap,arp,probe
twin.pcap,,unknown
quiet.pcap,,normal
"""
PARAMS = TrainParams(learner="unlearned", scale="spread", reference_size=200)
RULES = parse_labels(LABELS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ARP scan in an office, the same again, and a quiet office."""
    made = tmp_path_factory.mktemp("captures")
    simulate_capture(
        made / "scan.pcap", hours=0.1, seed=8, attacks="arp_scan", hosts=8, scale=0.1, start="2024-02-01T12:00:00Z"
    )
    (made / "twin.pcap").write_bytes((made / "scan.pcap").read_bytes())
    simulate_capture(made / "quiet.pcap", hours=0.1, seed=9, attacks="none", hosts=8, start="2024-02-01T12:00:00Z")
    (made / "labels.csv").write_text(LABELS)
    return made


def test_an_attack_is_mixed_with_ordinary_traffic(folder: Path) -> None:
    asked: list[float] = []

    def ordinary(seconds: float) -> Path:
        asked.append(seconds)
        return folder / "quiet.pcap"

    case = attack_case(folder / "scan.pcap", RULES, "flow", ordinary, most=10_000)
    assert case is not None
    first, last = capture_span(folder / "scan.pcap")
    assert asked == [pytest.approx((last - first + 2 * LEAD_NS) / 1e9)]
    assert case.kind == "probe"
    assert set(case.records.label_names()) == {"probe"}
    assert case.began >= capture_span(folder / "quiet.pcap")[0] + LEAD_NS
    alone = concat_tables(
        list(CaptureReader([folder / "scan.pcap"], load_schema("flow"), labels=RULES.for_file("scan.pcap")))
    )
    assert case.flows == (alone.label_names() == "probe").sum()
    few = attack_case(folder / "scan.pcap", RULES, "flow", ordinary, most=7)
    assert few is not None
    assert few.flows == 7


def test_a_capture_without_an_attack_is_no_case(folder: Path) -> None:
    assert attack_case(folder / "quiet.pcap", RULES, "flow", lambda _: folder / "quiet.pcap", most=10) is None


@pytest.fixture(scope="module")
def plan() -> CapturePlan:
    rivals = ("isolation forest",)
    return CapturePlan(
        schema="flow", params=PARAMS, rate=0.02, hours=0.5, draws=2, rivals=rivals, rival_seeds=1, every=2
    )


def test_the_comparison_reports_what_it_ran(folder: Path, plan: CapturePlan) -> None:
    captures = [folder / name for name in ("scan.pcap", "twin.pcap", "quiet.pcap")]
    result = compare_on_captures(plan, captures, RULES)
    assert [row["capture"] for row in result.rows] == ["scan.pcap"]  # the twin counts once
    row = result.rows[0]
    assert set(row["detection"]) == {OURS, "isolation forest"}
    assert row["against"]["isolation forest"]["outcome"] in ("win", "tie", "loss")
    assert sum(result.score("isolation forest").values()) == 1
    for name, found in result.detectors.items():
        assert 0 <= found["false_alarm_rate"]["mean"] < 0.5, name
        assert found["benign_flows"] > 10
        low, high = found["benign_interval"]
        assert low <= found["benign_flagged"] / found["benign_flows"] <= high


def test_the_command_runs(run: Any, folder: Path, tmp_path: Path) -> None:
    out, params = tmp_path / "r.json", tmp_path / "p.toml"
    params.write_text('learner = "unlearned"\nscale = "spread"\nreference_size = 100\n')
    options = ["--hours", 0.5, "--draws", 1, "--seeds", 1, "--every", 4, "--peers", "none", "--params", params]
    picture = tmp_path / "p.svg"
    ran = run(
        "evaluate", "capture", folder, "--labels", folder / "labels.csv", *options, "--json", out, "--picture", picture
    )
    assert ran.code == 0, ran.err
    assert picture.read_text().startswith("<?xml")
    assert "False alarms" in ran.out
    body = json.loads(out.read_text())
    assert body["schemas"]["flow"]["rows"]
    assert len(body["data"]) == 3
    assert {"version", "command", "seed", "duration"} <= set(body)


def test_bad_calls_are_refused(run: Any, folder: Path, tmp_path: Path) -> None:
    labels = folder / "labels.csv"
    assert "No such file" in run("evaluate", "capture", folder, "--labels", tmp_path / "no.csv").err
    assert run("evaluate", "capture", "-", "--labels", labels).code == 2
    assert run("evaluate", "capture", tmp_path, "--labels", labels).code == 2


@pytest.mark.parametrize("name", [*RIVALS])
def test_every_rival_runs(name: str, folder: Path) -> None:
    library = {"half-space trees": "river", "KitNet": "pysad", "isolation forest": "sklearn"}[name]
    need_module(library)
    warm = concat_tables(list(CaptureReader([folder / "quiet.pcap"], load_schema("flow"))))
    scores = make_rival(name, concat_tables([warm] * 3), 0).score(warm)
    assert scores.shape == (len(warm),)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        (np.ones((3, 50), bool), np.zeros((2, 50), bool), "win"),
        (np.zeros((3, 50), bool), np.ones((2, 50), bool), "loss"),
        (np.ones((3, 50), bool), np.ones((2, 50), bool), "tie"),
        (np.ones((3, 5), bool), np.zeros((2, 5), bool), "win"),
        (np.eye(3, 5, dtype=bool), np.ones((2, 5), bool), "tie"),
    ],
)
def test_outcomes_follow_the_intervals(ours: Any, theirs: Any, outcome: str) -> None:
    assert capture_table._outcome(ours, theirs)["outcome"] == outcome


def test_intervals_stay_between_0_and_1() -> None:
    assert wilson(0, 10)[0] == pytest.approx(0)
    assert wilson(10, 10)[1] == pytest.approx(1)
    assert wilson(0, 0) == (0, 1)


def test_the_label_file_of_the_benchmark_covers_every_capture(data_folder: Path) -> None:
    rules = load_labels(Path(__file__).parents[3] / "benchmarks" / "pcap-labels.csv")
    for line in (data_folder / "pcap" / "labels.csv").read_text().splitlines()[1:]:
        name, klass = line.split(",")[:2]
        own = {rules.names[r.label] for r in rules.for_file(data_folder / "pcap" / name).rules}
        assert own, name
        assert ("normal" in own) == (klass != "attack") or klass == "mixed" or "icmp-tunnel" in name, name
