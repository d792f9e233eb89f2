"""The models that come with netclust: that they load, are small, and are what their recipe makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.linking.adaptation import adapt
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.make_shipped import RECIPES, Office, main, make_shipped, simulated_days
from netclust.records.batch import Batch
from netclust.records.reader import RecordReader
from netclust.records.schema import load_schema
from netclust.scoring.model import Model
from netclust.shipped.loading import load_shipped, shipped_models

QUICK = (
    Office(start="2024-01-01T10:00:00Z", seed=1, hosts=8, clients="10.20.0.0/24", hours=0.2),
    Office(start="2024-01-02T10:00:00Z", seed=2, hosts=8, clients="10.21.0.0/24", hours=0.2),
)
USUAL = (Office(start="2024-01-03T10:00:00Z", seed=3, hosts=20, clients="10.22.0.0/24", hours=0.75, attacks="none"),)


def test_every_shipped_model_has_a_recipe() -> None:
    assert tuple(sorted(RECIPES)) == shipped_models()


@pytest.mark.parametrize("name", shipped_models())
def test_no_shipped_model_is_large_uncalibrated_or_of_another_schema(name: str) -> None:
    model = load_shipped(name)
    assert len(model.to_bytes()) < 1_000_000
    assert len(model.reference) <= 2000
    assert model.encoding.schema.name == RECIPES[name].schema
    # A schema in a model is as it was then: records of today's must still be encoded.
    ours, theirs = ([(a.name, a.kind) for a in s.features] for s in (model.encoding.schema, load_schema(name)))
    assert ours == theirs
    assert model.calibration is not None
    assert model.calibration.false_alarm_rate == 0.001
    assert model.calibration.alarms < 0.005
    assert model.provenance.data
    assert model.provenance.params["calibrated_on"]


@pytest.mark.parametrize("name", shipped_models())
def test_no_shipped_model_lacks_an_attack_or_normal_traffic(name: str) -> None:
    model = load_shipped(name)
    counts = np.bincount(model.reference.label, minlength=len(model.encoding.labels))
    assert model.encoding.labels[0] == "normal"
    assert len(model.encoding.labels) == 15
    assert counts.min() >= 1
    assert counts[0] > 500


def test_no_record_of_the_training_data_is_in_the_kdd_model(data_folder: Path) -> None:
    model = load_shipped("kdd")
    own = set(_rows(model.reference))
    for table in RecordReader(data_folder / "nsl-kdd" / "KDDTrain+.txt.xz", load_schema("kdd")):
        assert own.isdisjoint(_rows(model.encoding.encode(table)))


def _rows(batch: Batch) -> list[bytes]:
    return [row.tobytes() for row in np.concatenate([batch.num, batch.code.astype(np.float32)], axis=1)]


@pytest.mark.system
def test_a_recipe_does_not_give_two_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    recipe = replace(RECIPES["flow"], training=QUICK, calibration=USUAL, references=120)
    one, two = (make_shipped("flow", recipe=recipe) for _ in range(2))
    assert one.to_bytes() == two.to_bytes()
    assert len(one.reference) == 120
    assert "seed 1" in one.provenance.data


def test_days_of_several_offices_do_not_lose_their_labels() -> None:
    table = simulated_days(QUICK, "flow")
    assert len(set(table.label_names().tolist())) == 15
    assert "" not in table.label_names()
    assert (np.diff(table.time) >= 0).all()


def test_a_model_that_does_not_come_with_it_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="no model called 'sharknado' comes with netclust, there are conn, flow, kdd"):
        load_shipped("sharknado")


def test_the_kdd_model_is_not_made_without_its_data() -> None:
    with pytest.raises(InputError, match="name the folder of the data sets"):
        make_shipped("kdd")


def test_the_command_does_not_write_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = replace(RECIPES["conn"], training=QUICK, calibration=USUAL, references=60)
    monkeypatch.setitem(RECIPES, "conn", quick)
    main([str(tmp_path), "--only", "conn"])
    assert [path.name for path in tmp_path.iterdir()] == ["conn.safetensors"]
    assert len(Model.load(tmp_path / "conn.safetensors").reference) == 60
    assert "60 referents" in capsys.readouterr().out


def test_a_shipped_model_is_not_noisy_on_a_simulated_day_once_it_is_adapted() -> None:
    model = load_shipped("kdd")
    table = simulate(20_000, seed=77, day=20, attacks=()).table()
    site = model.encoding.encode(table)
    adapted = adapt(model, site[:6000], rate=0.001, references=2000)
    plain = replace(site[6000:], label=np.full(14_000, -1, np.int32))
    flagged = [
        float(Linker(each, LinkerConfig(referent_window=0)).process(plain).anomalous.mean())
        for each in (model, adapted)
    ]
    assert flagged[1] < flagged[0] < 0.02
    assert flagged[1] < 0.006
