"""Spoiled captures through the whole path, with every index of the kernels checked: nothing breaks, nothing is lost."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from capture_spoiling import SPOIL, load_samples, spoiled_capture

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[3]
INPUTS = 1500  # many more in the long run, below
SEED = 20_000


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("fuzz_captures", ROOT / "benchmarks" / "fuzz_captures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path


def test_spoiled_captures_break_no_promise(script: ModuleType, data_folder: Path) -> None:
    done = script.run(INPUTS, SEED, data_folder)
    assert done["inputs"] == INPUTS + 1, "the one before them compiles"
    assert done["refused"] < INPUTS * 0.02, "what is refused at its first bytes tests nothing"
    assert done["decoded"] > 10 * INPUTS
    assert done["records"] > 3 * INPUTS
    # Every way to be undecodable, and all that the table may have to do, has happened.
    for name in ("snapped", "too_short", "bad_ip", "bad_transport", "bad_arp", "unknown_link", "not_ip", "too_deep",
                 "length_beyond_frame", "flows_evicted", "orphan_fragments", "wrong_fragments", "clock_set_back",
                 "clock_leaps", "packets_out_of_order", "ports_reused"):  # fmt: skip
        assert done[name] > 0, name
    assert done["records of a crowd"] > 4096 * 2, "more than the output of the kernel holds"


@pytest.mark.long
def test_spoiled_captures_break_no_promise_in_the_long_run(script: ModuleType, data_folder: Path) -> None:
    script.main(["--data", str(data_folder)])
    saved = json.loads((ROOT / "benchmarks" / "results" / "fuzz_captures.json").read_text())
    assert saved["fuzz"]["inputs"] >= 200_000


def test_every_input_can_be_made_again(data_folder: Path) -> None:
    samples = load_samples(data_folder)
    for number in range(20):
        first, again = (spoiled_capture(samples, random.Random(number)) for _ in range(2))
        assert first == again
    seen = {kind for number in range(300) for kind in spoiled_capture(samples, random.Random(number))[1]}
    assert seen == {*SPOIL, "file bytes"}, "a way to spoil is never used"
