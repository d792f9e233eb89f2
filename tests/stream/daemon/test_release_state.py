"""What a daemon of an earlier release left behind is gone on from: checkpoint, store and models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from make_release_state import CONFIG

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.scoring.model import Model
from netclust.stream.config import parse_config
from netclust.stream.daemon.service import Daemon
from netclust.stream.logs import Log
from netclust.stream.sources.base import MemorySource

STATES = sorted(Path(__file__).parent.glob("state-*"))


@pytest.mark.parametrize("state", STATES, ids=lambda path: path.name)
def test_the_state_of_an_earlier_release_is_kept(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    shutil.copytree(state, folder)
    for path in folder.glob("model-*.safetensors"):
        assert len(Model.load(path).reference) >= 60
    tables = [simulate(700, seed=2 + k, day=1, attacks=HELD_BACK).table() for k in range(3)]
    source = MemorySource("records", tables[0].schema, tables)
    daemon = Daemon(parse_config(CONFIG.format(folder=folder)), sources=[source], log=Log("text", "error"))
    daemon.open()
    detector = daemon.detector
    assert detector.linker.tick == 1400
    assert not detector.warming
    assert detector.answers.applied
    assert [rule.port for rule in detector.rules.values()] == [9]
    assert daemon.store.alerts()
    assert daemon.store.labels()[0].status == "applied"
    assert daemon.run() == 0
    assert detector.linker.tick == 2100
