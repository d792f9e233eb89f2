"""Tables as attractive networks: features of columns, the model file, the guide's commands."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from netclust.errors import InputError, ModelError
from netclust.models.attractive.relational_templates import read_templates
from netclust.models.attractive.tables import (
    MOST,
    SCALE,
    AttractiveEncoder,
    Field,
    RawNetwork,
    RelationColumns,
    cut_table_networks,
    edge_templates,
    encode_network,
    fit_encoder,
)
from netclust.models.attractive.task import TASK, AttractiveSettings, Template, TextTable, node_measures
from netclust.models.structured_model import StructuredModel
from netclust.models.structured_task import learn

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "attractive.md"
TIE = Template(name="host", where=("a.host = b.host",), nearest=1)


def hosts(seed: int, rows: int = 60) -> RawNetwork:
    rng = np.random.default_rng(seed)
    ill = np.sin(np.arange(rows) / 6 + seed) > 0
    columns = {
        "host": ("h",) * rows,
        "seen": tuple("" if rng.random() < 0.1 else f"{x:.4f}" for x in ill + rng.normal(0, 0.7, rows)),
        "kind": tuple(np.where(rng.random(rows) < 0.3 + 0.3 * ill, "odd", "plain").tolist()),
        "label": tuple(np.where(ill, "ill", "well").tolist()),
    }
    return RawNetwork(TextTable(columns), columns=RelationColumns(fields=("seen", "kind")), templates=(TIE,))


def model_of(seeds: range) -> StructuredModel:
    raw, settings = [hosts(seed) for seed in seeds], AttractiveSettings(C=100.0)
    encoder = TASK.fit(raw, settings)
    learned = learn(TASK, settings, encoder, TASK.encode(encoder, raw))
    return StructuredModel(task=TASK, settings=settings, encoder=encoder, w=learned.w)


def test_a_model_file_gives_the_same_model_back(tmp_path) -> None:
    model = model_of(range(3))
    model.save(tmp_path / "m")
    again = StructuredModel.load(tmp_path / "m", "attractive")
    assert (again.encoder, again.settings) == (model.encoder, model.settings)
    assert again.w.tobytes() == model.w.tobytes()
    test = hosts(7)
    assert again.predict([test])[0].tolist() == model.predict([test])[0].tolist()
    measures = model.evaluate([test])
    assert list(measures) == ["wrong nodes", "mean recall", "mean F1"]
    assert measures["wrong nodes"] < 25
    assert len(model.names) == len(model.w)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["a"]},
        {"labels": ["a", "a"]},
        {"fields": []},
        {"fields": [{"name": "seen", "spread": 0.0}]},
        {"templates": [{"name": "x", "where": ["import os"]}]},
        {"costs": [1.0]},
        {"costs": [1.0, -1.0]},
        {"surprise": 1},
        {"columns": {"label": 3}},
    ],
)
def test_files_that_were_tampered_with_are_refused(change) -> None:
    import netclust.foundation.container as container

    model = model_of(range(1))
    arrays, header = container.unpack_container(model.to_bytes(), "netclust.structured", "m")
    header["encoder"] |= change
    with pytest.raises(ModelError):
        StructuredModel.from_bytes(container.pack_container("netclust.structured", arrays, header), "m")


def test_columns_are_made_as_the_encoder_says() -> None:
    raw = hosts(1)
    encoder = fit_encoder([raw], balanced=True)
    assert encoder.feature_names == ["seen", "no seen", "kind=odd", "kind=plain", "constant"]
    x, y = encode_network(encoder, raw)
    assert y is not None
    assert np.asarray(encoder.costs) @ np.bincount(y) == pytest.approx(len(y))  # every label the same, the sum is kept
    far = replace(
        raw, nodes=replace(raw.nodes, columns={**raw.nodes.columns, "seen": ("1e9",) * 60, "kind": ("?",) * 60})
    )
    x, _ = encode_network(encoder, far)
    assert (x.nodes / SCALE)[0].tolist() == [MOST, 0.0, 0.0, 0.0, 1.0]
    without = {name: own for name, own in raw.nodes.columns.items() if name != "label"}
    assert encode_network(encoder, replace(raw, nodes=TextTable(without)))[1] is None


def test_tables_that_do_not_fit_are_refused() -> None:
    raw = hosts(1)
    encoder = fit_encoder([raw])

    def with_column(name: str, values: tuple[str, ...]) -> RawNetwork:
        return replace(raw, nodes=TextTable({**raw.nodes.columns, name: values}))

    for bad, word in [
        (lambda: encode_network(encoder, with_column("label", ("new",) * 60)), "none of ill, well"),
        (lambda: encode_network(encoder, with_column("seen", ("x",) * 60)), "no number"),
        (lambda: encode_network(encoder, with_column("seen", ("inf",) * 60)), "no finite number"),
        (lambda: fit_encoder([with_column("label", ("",) * 60)]), "no label"),
        (lambda: fit_encoder([with_column("label", ("one",) * 60)]), "nothing can be learned"),
        (lambda: fit_encoder([replace(raw, columns=RelationColumns(fields=("gone",)))]), "no column 'gone'"),
        (lambda: fit_encoder([RawNetwork(TextTable({"label": ("a", "b")}))]), "name some"),
        (lambda: Field(name="x", values=tuple(map(str, range(2000)))), "more than"),
        (lambda: edge_templates(TextTable({"from": ("a",), "to": ("b",), "relation": ("it's",)})), "quote"),
    ]:
        with pytest.raises(InputError, match=word):
            bad()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"labels": []}, AttractiveEncoder)


def test_networks_are_cut_where_expected() -> None:
    raw = hosts(1)
    assert [len(one) for one in cut_table_networks(raw, raw.columns, 25)] == [20, 20, 20]
    assert cut_table_networks(raw, raw.columns) == [raw]
    named = replace(raw, nodes=TextTable({**raw.nodes.columns, "network": ("a", "b") * 30}))
    assert [len(one) for one in cut_table_networks(named, raw.columns)] == [30, 30]


def test_measures_equal_those_counted_by_hand() -> None:
    y, h = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    found = node_measures([(y[:2], h[:2]), (y[2:], h[2:])])
    assert found["wrong nodes"] == 25.0
    assert found["mean recall"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert found["mean F1"] == pytest.approx(100 * (4 / 5 + 2 / 3) / 2)


def test_templates_and_code_of_the_guide_work() -> None:
    text = GUIDE.read_text()
    (toml,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert [one.name for one in read_templates(toml)] == ["same source", "called, then calls", "runs of a service"]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (the guide's own)
    assert names["best_labels"](names["network"]).tolist() == [1, 1, 1]


@pytest.mark.docs
def test_the_commands_of_the_guide_run(run: Any, tmp_path, monkeypatch) -> None:
    """Those of the detector's part, on shorter days."""
    monkeypatch.chdir(tmp_path)
    part = GUIDE.read_text().split("## Smooth the verdicts")[1]
    block = re.findall(r"```console\n(.*?)```", part, re.DOTALL)[0]
    lines = [line.removeprefix("$ ").split("#")[0] for line in block.strip().splitlines()]
    assert len(lines) == 12
    shorter = {
        "--hours 6": "--hours 0.25", "--hosts 20": "--hosts 8", "rate 0.01": "rate 0.1", "--cut 4000": "--cut 500",
        "--C 1000": "--C 10",
    }  # fmt: skip
    for line in lines:
        for given, less in shorter.items():
            line = line.replace(given, less)
        line = line.replace("--attacks all", "--attacks port_scan,ssh_brute_force --campaigns-per-hour 12")
        ran = run(*shlex.split(line)[1:])
        assert ran.code == 0, (line, ran.err)
    rows = Path("smoothed2.csv").read_text().splitlines()
    assert rows[0] == "id,label,alone"
    assert len(rows) == len(Path("verdicts2.jsonl").read_text().splitlines()) + 1
