"""Resuming from a checkpoint: the detector as it was, the numbers of sources, and what the log says of it."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.foundation.container import Arrays
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.scoring.model import Model
from netclust.stream.config import Config, parse_config
from netclust.stream.daemon.checkpoint import Loaded
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.daemon.resuming import resumed_detector, resumed_source_numbers
from netclust.stream.detection.detector import Detector
from netclust.stream.logs import Log
from netclust.stream.sources.base import Arrival, numbered

TODAY = simulate(400, seed=2, day=1, attacks=HELD_BACK).table()


def config(sources: Sequence[tuple[str, str, str]] = (("a", "records", "-"),), more: str = "") -> Config:
    tables = [
        f'[[source]]\nname = "{name}"\nkind = "{kind}"\n'
        + (f'interfaces = ["{path}"]\n' if kind == "live" else f'path = "{path}"\n')
        for name, kind, path in sources
    ]
    return parse_config("".join(tables) + "[warmup]\nrecords = 0\n" + more)


def loaded(facts: dict[str, Any], arrays: Arrays | None = None, linker: bytes | None = None) -> Loaded:
    return Loaded(Path("state/checkpoint-000000000007.netclust"), facts, arrays or {}, linker, None)


# Numbers of sources


def test_sources_are_numbered_from_0_and_keep_their_number_for_good() -> None:
    files = config([("a", "records", "x"), ("b", "records", "y")])
    assert resumed_source_numbers(files, None) == {"a": 0, "b": 1}
    assert resumed_source_numbers(files, loaded({})) == {"a": 0, "b": 1}
    assert resumed_source_numbers(files, loaded({"numbers": {"gone": 4, "b": 2}})) == {"gone": 4, "b": 2, "a": 5}


def test_the_numbers_of_a_checkpoint_are_not_changed() -> None:
    facts = {"numbers": {"b": 0}}
    resumed_source_numbers(config(), loaded(facts))
    assert facts == {"numbers": {"b": 0}}


# The detector


class Site:
    """A model, a shelf and a detector that has seen some records, as a checkpoint has them."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.model = model
        self.archive = ModelArchive(folder)
        self.archive.save(model)
        self.output = io.StringIO()
        self.before = self.new()
        self.before.take(0, Arrival(numbered(TODAY[:300], 0), None, 0.0))
        facts, arrays = self.before.freeze()
        self.facts: dict[str, Any] = {
            "detector": json.loads(json.dumps(facts)), "configured_model": model.fingerprint, "model": model.fingerprint
        }  # fmt: skip
        self.arrays = {f"detector.{name}": array for name, array in arrays.items()} | {"source.a.x": np.arange(2)}
        self.linker: bytes | None = self.before.linker.snapshot()

    def new(self, more: str = "") -> Detector:
        return Detector(self.model, config(more=more))

    def resume(self, settings: Config | None = None, model: Model | None = None) -> Detector:
        self.output.seek(0)
        self.output.truncate()
        from_there = loaded(self.facts, self.arrays, self.linker)
        log = Log("json", "info", self.output)
        return resumed_detector(settings or config(), model or self.model, from_there, self.archive, ["a"], log)

    def logged(self) -> list[tuple[str, str]]:
        lines = map(json.loads, self.output.getvalue().splitlines())
        return [(line["level"], line["message"]) for line in lines]


@pytest.fixture
def site(tmp_path: Path, small_model: Model) -> Site:
    return Site(tmp_path, small_model)


@pytest.fixture(scope="module")
def other_model() -> Model:
    return train_network(simulate(2000, seed=9, attacks=KNOWN).table(), load_params("late"), seed=1)


def judged(detector: Detector) -> list[Any]:
    outcomes = detector.take(0, Arrival(numbered(TODAY[300:], 300), None, 0.0))
    verdicts = [outcome.verdicts for outcome in outcomes]
    return [(v.cluster.tolist(), v.label.tolist(), v.score.tolist()) for v in verdicts]


def test_the_detector_continues_as_if_it_had_never_stopped(site: Site) -> None:
    resumed = site.resume()
    assert resumed.linker.tick == 300
    assert resumed.freeze()[0] == site.before.freeze()[0]
    assert judged(resumed) == judged(site.before)
    assert site.logged() == [("info", "goes on after record")]
    line = json.loads(site.output.getvalue())
    assert (line["records"], line["checkpoint"]) == (300, "checkpoint-000000000007.netclust")


def test_without_a_checkpoint_a_detector_begins(site: Site) -> None:
    fresh = resumed_detector(config(), site.model, None, site.archive, ["a"], Log("json", "info", site.output))
    assert fresh.linker.tick == 0
    assert fresh.model is site.model
    assert site.logged() == []


@pytest.mark.parametrize(
    ("kind", "path", "patient"),
    [
        ("records", "x.csv", True),
        ("records", "tcp://127.0.0.1:9", False),
        ("records", "unix:///run/x", False),
        ("live", "lo", False),
    ],
)
def test_files_wait_until_the_site_is_learned_and_what_is_live_does_not(
    site: Site, kind: str, path: str, patient: bool
) -> None:
    settings = config([("f", "records", "y.csv"), ("a", kind, path)])
    for from_there in (None, loaded(site.facts, site.arrays, site.linker)):
        detector = resumed_detector(settings, site.model, from_there, site.archive, ["f", "a"], Log(stream=site.output))
        assert detector._patient is patient


def test_a_window_of_another_size_begins_again_and_that_is_said(site: Site) -> None:
    resumed = site.resume(config(more="[window]\nreferent_window = 50\n"))
    assert resumed.linker.tick == 300
    assert resumed.linker.config.referent_window == 50
    assert ("warning", "[window] has changed since the last stop: the referent window begins anew") in site.logged()
    assert resumed.freeze()[0]["generation"] == 0


def test_the_model_that_was_in_force_comes_from_the_shelf(site: Site) -> None:
    """A warm-up or an answer has made another model of the configured one."""
    steered = replace(site.model, averaged=site.model.averaged * 1.5)
    site.archive.save(steered)
    site.before.linker = site.before.linker.with_model(steered)
    site.linker = site.before.linker.snapshot()
    site.facts["model"] = steered.fingerprint
    resumed = site.resume()
    assert resumed.model.fingerprint == steered.fingerprint
    assert resumed.shipped.fingerprint == site.model.fingerprint  # where a warm-up starts from
    assert site.logged() == [("info", "goes on after record")]
    assert judged(resumed) == judged(site.before)


def test_another_configured_model_takes_over_and_the_site_is_learned_again(site: Site, other_model: Model) -> None:
    resumed = site.resume(model=other_model)
    assert resumed.model.fingerprint == other_model.fingerprint
    assert resumed.shipped is other_model
    assert resumed.generation == 1
    assert resumed.linker.tick == 300
    assert [level for level, _ in site.logged()] == ["warning", "info"]


def test_a_detector_that_begins_again_beside_a_socket_does_not_wait(site: Site) -> None:
    site.linker = None
    assert site.resume(config([("a", "records", "tcp://127.0.0.1:9")]))._patient is False
    assert site.resume()._patient is True


@pytest.mark.parametrize("lost", ["linker", "facts", "model", "arrays"])
def test_a_part_that_cannot_be_used_is_named_and_the_detector_begins_anew(site: Site, lost: str) -> None:
    if lost == "linker":
        site.linker = None
    elif lost == "facts":
        del site.facts["detector"]
    elif lost == "model":
        site.facts["model"] = "beef" * 16
    else:
        site.facts["detector"]["exemplars"] = ["a-1"]
    resumed = site.resume()
    assert resumed.linker.tick == 0
    assert resumed.model is site.model
    assert site.logged() == [("error", "the detector's part of the checkpoint cannot be used: it begins anew")]
    why = json.loads(site.output.getvalue())["why"]
    assert {
        "linker": "has no linker", "facts": "detector", "model": "no kept model begins", "arrays": "do not fit"
    }[lost] in why  # fmt: skip
    if lost == "linker":
        assert why.startswith("state/checkpoint-000000000007.netclust")
