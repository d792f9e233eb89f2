"""Fixtures for tests of streams."""

from __future__ import annotations

import pytest

from netclust.datasets.simulate import KNOWN, simulate
from netclust.model import Model
from netclust.models.network import train_network
from netclust.models.params import load_params


@pytest.fixture(scope="session")
def small_model() -> Model:
    """A model of simulated records, schema kdd."""
    return train_network(simulate(3000, seed=1, attacks=KNOWN).table(), load_params("late"), seed=0)
