"""Fixtures for tests of streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import running

from netclust.datasets.simulators.simulate import KNOWN, simulate
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.scoring.model import Model


@pytest.fixture(scope="session")
def small_model() -> Model:
    """A model of simulated records, schema kdd."""
    return train_network(simulate(3000, seed=1, attacks=KNOWN).table(), load_params("late"), seed=0)


@pytest.fixture(params=["redis", "nats", "kafka"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Each of the buses that processes can share."""
    folder = tmp_path / "broker"
    folder.mkdir()
    with running(request.param, folder) as found:
        yield found
