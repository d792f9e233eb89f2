"""What `netclust watch` and `netclust detect` import: nothing that trains, simulates or reproduces experiments."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.datasets.simulators.simulate import simulate

ROOT = Path(__file__).resolve().parents[3]

# Rooms and modules of trainers, simulators and experiments.
KEPT_OUT = (
    r"netclust\.(models|learners|losses|structures|problems|metrics)\b.*",
    r"netclust\.datasets\.simulators\b.*",
    r"netclust\.kernels\..*(train|margin|packet_writer)",
)
# How many modules of netclust a command may import: a new import is a decision, not an accident.
MOST = {"watch records": 141, "watch capture": 161, "detect records": 69, "detect capture": 96}

_CODE = """
import sys
from netclust.cli import main
try:
    main(sys.argv[1:])
except SystemExit as stopped:
    assert not stopped.code, stopped.code
sys.stderr.write("modules:" + " ".join(name for name in sys.modules if name.partition(".")[0] == "netclust"))
"""


def _imported(*args: object) -> set[str]:
    """The modules of netclust that a command has imported when it ends."""
    given = [sys.executable, "-c", _CODE, *map(str, args)]
    done = subprocess.run(given, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stderr.rpartition("modules:")[2].split())


def _kept_out(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if any(re.fullmatch(pattern, name) for pattern in KEPT_OUT))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run-time") / "records.txt"
    simulate(200, seed=5).write(path)
    return path


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run-time") / "office.pcap"
    simulate_capture(path, hours=0.005, seed=5, attacks="none", hosts=8)
    return path


def test_the_patterns_know_a_trainer_a_simulator_and_an_experiment() -> None:
    known = {
        "netclust.models.network.train_network",
        "netclust.datasets.simulators.capture_simulator",
        "netclust.models.experiments.detection.table41",
    }
    assert _kept_out(known | {"netclust.records.reader", "netclust.linking.linker"}) == sorted(known)


@pytest.mark.parametrize("kind", ["records", "capture"])
def test_watch_imports_no_trainer_simulator_or_experiment(kind: str, request: pytest.FixtureRequest) -> None:
    modules = _imported("watch", request.getfixturevalue(kind))
    assert _kept_out(modules) == []
    assert "netclust.linking.linker" in modules
    assert len(modules) <= MOST[f"watch {kind}"]


@pytest.mark.parametrize("kind", ["records", "capture"])
def test_detect_imports_no_trainer_simulator_or_experiment(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    model = ROOT / "netclust" / "shipped" / ("kdd.safetensors" if kind == "records" else "flow.safetensors")
    given = request.getfixturevalue(kind)
    modules = _imported("detect", "--model", model, "--input", given, "-o", tmp_path / "verdicts.jsonl")
    assert _kept_out(modules) == []
    assert not any(name.startswith("netclust.stream.daemon") for name in modules)
    assert len(modules) <= MOST[f"detect {kind}"]
