"""Training parameters: what is misspelt, out of range or not TOML is refused by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.network.params import PRESETS, TrainParams, load_params, parse_params

FUZZ = settings(max_examples=2000 if os.environ.get("NETCLUST_LONG") else 150, deadline=None)
NAMES = [f.name for f in msgspec.structs.fields(TrainParams)]


def toml(values: dict[str, object]) -> str:
    written = {name: json.dumps(value) for name, value in values.items() if value is not None}
    return "".join(f"{name} = {value}\n" for name, value in written.items())


def test_every_preset_loads() -> None:
    for name in PRESETS:
        assert isinstance(load_params(name), TrainParams)
    thesis = load_params("thesis")
    assert (thesis.transform, thesis.training_window, thesis.epochs, thesis.reference_size) == ("none", 100, 5, 280)
    assert thesis.false_alarm_rate is None


def test_an_empty_file_is_the_defaults() -> None:
    assert parse_params("") == TrainParams()


def test_written_parameters_are_read_back() -> None:
    chosen = TrainParams(learner="lspa", cap=0.5, C=2, sign=1, root="attributes", false_alarm_rate=0.01, weights="last")
    assert parse_params(toml(msgspec.to_builtins(chosen))) == chosen


@pytest.mark.parametrize(
    "text",
    [
        "learner = 'svm'", "transform = 'sqrt'", "training_window = 0", "training_window = 1_000_001", "epochs = 0",
        "epochs = 10_001", "epochs = 1.5", "epochs = '5'", "C = -1", "C = nan", "C = inf", "C = 1e10", "r = -0.1",
        "r = nan", "cap = 0", "cap = -1.0", "cap = nan", "absent = 'never'", "sign = 0", "sign = 2", "root = 'deep'",
        "weights = 'best'", "reference_size = 0", "reference_size = 16_777_217", "false_alarm_rate = 0",
        "false_alarm_rate = 1", "false_alarm_rate = nan", "holdout = 0", "holdout = 0.95", "holdout = nan",
        "loss = 'hinge'", "loss = 'learned'\nlearner = 'margin'", "measure = 'auc'", "beta = 0", "beta = nan",
        "alarm_budget = 0", "alarm_budget = 1.0",
    ],
)  # fmt: skip
def test_values_that_cannot_work_are_refused(text: str) -> None:
    name = text.split(" ")[0]
    with pytest.raises(InputError, match=name) as caught:
        parse_params(text, "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert "Known parameters: learner, " in str(caught.value)


def test_bad_values_are_refused_without_a_file_too() -> None:
    with pytest.raises(InputError, match="epochs must be 1 to 10,000"):
        TrainParams(epochs=0)
    assert TrainParams(holdout=0.9, false_alarm_rate=0.999, cap=1e-9).cap == 1e-9


@pytest.mark.parametrize(
    "text", ["epoch = 3", "[learner]", "epochs = ", "= 3", "epochs = 1\nepochs = 2", "\0", "r = 1979-99-99"]
)
def test_misspelt_files_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"my\.toml: .*Known parameters"):
        parse_params(text, "my.toml")


@pytest.mark.parametrize("data", [b"\xff\xfee\0", b"epochs = 1 # caf\xe9"])
def test_another_character_set_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="utf-8"):
        parse_params(data, "my.toml")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(InputError, match="recursion"):
        parse_params("C = " + "[" * 100_000)


@FUZZ
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_parameters_or_refused(data: bytes) -> None:
    try:
        parse_params(data)
    except InputError:
        return


@FUZZ
@given(st.dictionaries(st.sampled_from(NAMES), st.integers(-3, 3) | st.floats() | st.text(max_size=5), max_size=3))
def test_any_value_is_taken_or_refused(values: dict[str, object]) -> None:
    try:
        params = parse_params(toml(values))
    except InputError:
        return
    assert params.rule.epochs == params.epochs


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: No such file or directory\. Presets: thesis"):
        load_params(tmp_path / "none.toml")
    with pytest.raises(InputError, match="Is a directory"):
        load_params(tmp_path)
    with pytest.raises(InputError, match="Presets: thesis"):
        load_params("theses")
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(InputError, match="larger than"):
        load_params(large)
    fine = tmp_path / "fine.toml"
    fine.write_text("epochs = 2\n")
    assert load_params(str(fine)).epochs == 2


def test_the_learner_gets_the_parameters() -> None:
    params = TrainParams(learner="lspa", training_window=7, epochs=3, C=2.0, r=0.5, cap=0.1, absent="global", sign=1)
    rule = params.rule
    assert (rule.update, rule.training_window, rule.epochs, rule.C, rule.r) == ("lspa", 7, 3, 2.0, 0.5)
    assert (rule.cap, rule.absent, rule.sign, rule.root) == (0.1, "global", 1, "bias")
    assert TrainParams().rule.update == "lsp"
    judged = TrainParams(loss="learned", measure="budget", beta=2.0, alarm_budget=0.05).judged_by
    assert (judged.name, judged.beta, judged.budget) == ("budget", 2.0, 0.05)
