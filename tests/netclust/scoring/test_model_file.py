"""The model file: what is written is read back bit for bit, and nothing that is not a sound model gets through."""

from __future__ import annotations

import ast
import errno
import json
import os
import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import (
    FORMAT_VERSION,
    pack_container,
    read_container_bytes,
    unpack_container,
    write_container_bytes,
)
from netclust.foundation.model_file import MAX_WEIGHT
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.records.batch import Batch
from netclust.records.schema import parse_schema
from netclust.records.table import Table
from netclust.scoring.calibration import Calibration
from netclust.scoring.model import KIND, Model

EXAMPLES = 2000 if os.environ.get("NETCLUST_LONG") else 150
FUZZ = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=not os.environ.get("NETCLUST_LONG"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip

SCHEMA = parse_schema("""
name = "doors"
normal = ["ok"]
attribute = [
  {name = "seconds", transform = "log1p", min = 0}, {name = "weight"}, {name = "night", kind = "binary"},
  {name = "badge", kind = "symbolic"}, {name = "verdict", role = "label"},
]
""")


def doors(n: int = 200, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    verdict = rng.choice(["ok", "ok", "ok", "tailgate", "forced"], n)
    bad = verdict != "ok"
    return Table.from_columns(
        SCHEMA,
        {
            "seconds": rng.exponential(5, n) * (1 + 20 * bad),
            "weight": rng.normal(70, 10, n) + 60 * (verdict == "tailgate"),
            "night": rng.integers(0, 2, n),
            "badge": rng.choice(["staff", "guest", "cleaning"], n),
            "verdict": verdict,
        },
    )


def make_model() -> Model:
    model = train_network(doors(), TrainParams(epochs=2, reference_size=20), seed=1, data="doors.csv", sha256="00")
    return model.with_root(Calibration(root=0.25, false_alarm_rate=0.05, obtained=0.04, records=50))


MODEL = make_model()
DATA = MODEL.to_bytes()
ARRAYS, HEADER = unpack_container(DATA, KIND, "model")


def packed(
    header: dict[str, Any] | None = None, *, without: tuple[str, ...] = (), kind: str = KIND, **arrays: Any
) -> bytes:
    """The sound model's bytes, with other header fields or other arrays (`reference_label=...`)."""
    changed = {name.replace("_", ".", 1): array for name, array in arrays.items()}
    kept = {name: a for name, a in {**ARRAYS, **changed}.items() if name not in without}
    return pack_container(kind, kept, {**HEADER, **(header or {})})


def enveloped(envelope: Any, header: bytes | None = None) -> bytes:
    """A safetensors file without arrays around any envelope."""
    raw = header or json.dumps({"__metadata__": {"netclust": json.dumps(envelope)}}).encode()
    return len(raw).to_bytes(8, "little") + raw


def link_with(model: Model) -> None:
    """Use everything of the model that kernels index by: tables, reference set, window, clusters."""
    rng = np.random.default_rng(7)
    linker = Linker(model, LinkerConfig(referent_window=8, label_delay=2, max_clusters=4))
    n, features = 24, len(model.encoding.kept)
    code = np.stack([rng.integers(0, w, n) for w in model.encoding.widths], axis=1) if model.encoding.widths else None
    label = rng.integers(-1, len(model.encoding.labels), n)
    batch = Batch(
        num=rng.uniform(-1e6, 1e6, (n, features)).astype(np.float32),
        code=np.zeros((n, 0), np.uint16) if code is None else code.astype(np.uint16),
        label=label.astype(np.int32),
    )
    verdicts = linker.process(batch)
    assert not np.isnan(verdicts.score).any()
    assert verdicts.label.max() < len(model.encoding.labels)
    assert len(linker.clusters()) > 0
    assert len(model.fingerprint) == 64


def refused_or_sound(data: bytes) -> None:
    """Either of the two is right; a crash, another exception or a wild index is not."""
    complaint = ""
    try:
        model = Model.from_bytes(data, "fuzzed.model")
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert complaint.startswith("fuzzed.model: ")
        return
    link_with(model)
    again = Model.from_bytes(model.to_bytes())
    assert again.fingerprint == model.fingerprint


# What is written is what is read


def test_a_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    path = tmp_path / "doors.model"
    MODEL.save(path)
    again = Model.load(path)
    assert again.to_bytes() == DATA == path.read_bytes()
    for name in ("averaged", "last"):
        assert getattr(again, name).tobytes() == getattr(MODEL, name).tobytes()
    for name in ("low", "span"):
        assert getattr(again.encoding, name).tobytes() == getattr(MODEL.encoding, name).tobytes()
    for name in ("num", "code", "label", "seq"):
        ours, theirs = getattr(MODEL.reference, name), getattr(again.reference, name)
        assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes())
    assert (again.encoding.schema, again.encoding.kept) == (SCHEMA, MODEL.encoding.kept)
    assert (again.encoding.vocabularies, again.encoding.labels) == (MODEL.encoding.vocabularies, MODEL.encoding.labels)
    assert (again.calibration, again.provenance) == (MODEL.calibration, MODEL.provenance)
    assert (again.sign, again.root, again.rooted, again.weights) == (-1, "bias", True, "averaged")


def test_a_loaded_model_decides_the_same() -> None:
    batch = MODEL.encoding.encode(doors(300, seed=2))
    batch.label[:] = -1
    config = LinkerConfig.stream(referent_window=50)
    before, after = (Linker(m, config).process(batch) for m in (MODEL, Model.from_bytes(DATA)))
    assert before.score.tobytes() == after.score.tobytes()
    assert before.cluster.tobytes() == after.cluster.tobytes()


@pytest.mark.parametrize("columns", [("numeric",), ("symbolic",), ("binary",)])
def test_a_schema_of_one_kind_can_be_stored(columns: tuple[str]) -> None:
    schema = parse_schema(
        f'name = "one"\nattribute = [{{name = "x", kind = "{columns[0]}"}}, {{name = "y", role = "label"}}]'
    )
    x = ["a", "b"] * 20 if columns[0] == "symbolic" else [0, 1] * 20
    model = train_network(Table.from_columns(schema, {"x": x, "y": ["normal", "bad"] * 20}), seed=0)
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    link_with(again)


@pytest.mark.parametrize("root", ["bias", "none", "attributes"])
def test_every_kind_of_root_is_kept(root: Any) -> None:
    model = train_network(doors(), TrainParams(root=root, epochs=1, reference_size=10), seed=1)
    again = Model.from_bytes(model.to_bytes())
    assert (again.root, again.layout.dimension) == (root, model.layout.dimension)
    link_with(again)


def test_arrays_of_a_loaded_model_are_writable_and_aligned() -> None:
    model = Model.from_bytes(DATA)
    for array in (model.averaged, model.reference.num, model.reference.code, model.encoding.low):
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.flags.c_contiguous


def test_models_that_decide_differently_have_different_fingerprints() -> None:
    other = replace(
        MODEL.encoding, vocabularies=tuple(tuple(reversed(v)) if len(v) > 1 else v for v in MODEL.encoding.vocabularies)
    )
    renamed = replace(MODEL.encoding, labels=("ok", "rammed", "tailgate"))
    variants = [
        MODEL,
        replace(MODEL, sign=1),
        replace(MODEL, encoding=other),
        replace(MODEL, encoding=renamed),
        MODEL.with_root(None),
        replace(MODEL.with_root(None), rooted=False),
        replace(MODEL, averaged=MODEL.averaged + 1),
        replace(MODEL, reference=MODEL.reference[1:]),
    ]
    assert len({m.fingerprint for m in variants}) == len(variants)


def test_provenance_does_not_change_the_fingerprint() -> None:
    moved = replace(MODEL, provenance=msgspec.structs.replace(MODEL.provenance, data="elsewhere.csv"))
    assert moved.fingerprint == MODEL.fingerprint


# Damage


def test_truncated_files_are_refused() -> None:
    header = int.from_bytes(DATA[:8], "little")
    offsets = {0, 1, 7, 8, 9, 8 + header // 2, 8 + header - 1, 8 + header, 8 + header + 1, len(DATA) - 1}
    offsets |= set(range(0, len(DATA), 1 if EXAMPLES > 1000 else 37))
    for offset in sorted(offsets):
        with pytest.raises(ModelError, match=r"cut\.model: "):
            Model.from_bytes(DATA[:offset], "cut.model")


@pytest.mark.parametrize("tail", [b"\0", b"x" * 100, DATA])
def test_bytes_behind_the_end_are_refused(tail: bytes) -> None:
    with pytest.raises(ModelError, match="corrupt"):
        Model.from_bytes(DATA + tail)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 7)), min_size=1, max_size=4))
def test_bit_flips_are_rejected(flips: list[tuple[int, int]]) -> None:
    data = bytearray(DATA)
    for at, bit in flips:
        data[at] ^= 1 << bit
    refused_or_sound(bytes(data))


@FUZZ
@given(st.data())
def test_bit_flips_in_an_array_are_rejected_or_harmless(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ARRAYS)))
    raw = bytearray(ARRAYS[name].tobytes())
    for at in data.draw(st.lists(st.integers(0, 8 * len(raw) - 1), min_size=1, max_size=8)):
        raw[at // 8] ^= 1 << (at % 8)
    changed = np.frombuffer(bytes(raw), ARRAYS[name].dtype).reshape(ARRAYS[name].shape)
    refused_or_sound(pack_container(KIND, {**ARRAYS, name: changed}, HEADER))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5) | st.sampled_from(["ok", "seconds", "badge", "symbolic", "label", "attributes", "last"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def paths(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [at, *(path for key, child in children for path in paths(child, (*at, key)))]


@FUZZ
@given(st.data())
def test_edited_headers_are_rejected_or_harmless(data: st.DataObject) -> None:
    header = json.loads(json.dumps(HEADER))
    path = data.draw(st.sampled_from([p for p in paths(header) if p]))
    spot: Any = header
    for key in path[:-1]:
        spot = spot[key]
    action = data.draw(st.sampled_from(["set", "delete", "double", "add"]))
    if action == "set":
        spot[path[-1]] = data.draw(JSON)
    elif action == "delete":
        del spot[path[-1]]
    elif action == "double" and isinstance(spot, list):
        spot.append(spot[path[-1]])
    elif isinstance(spot, dict):
        spot[data.draw(st.text(max_size=8))] = data.draw(JSON)
    refused_or_sound(pack_container(KIND, ARRAYS, header))


@FUZZ
@given(st.data())
def test_edited_tensor_tables_are_rejected_or_harmless(data: st.DataObject) -> None:
    size = int.from_bytes(DATA[:8], "little")
    table = json.loads(DATA[8 : 8 + size])
    name = data.draw(st.sampled_from(sorted(set(table) - {"__metadata__"})))
    number = st.integers(0, 64) | st.sampled_from([-1, 2**31, 2**63, 2**64 - 1, 2**70])
    action = data.draw(st.sampled_from(["dtype", "shape", "offsets", "delete", "rename", "swap"]))
    if action == "dtype":
        dtypes = ["F64", "F32", "I64", "I32", "U64", "U16", "U8", "BOOL", "BF16", "F16", "F4", "U128", "", "I8"]
        table[name]["dtype"] = data.draw(st.sampled_from(dtypes))
    elif action == "shape":
        table[name]["shape"] = data.draw(st.lists(number, max_size=4))
    elif action == "offsets":
        table[name]["data_offsets"] = data.draw(st.lists(number, max_size=3))
    elif action == "delete":
        del table[name]
    elif action == "rename":
        table[data.draw(st.text(max_size=8))] = table.pop(name)
    else:
        other = data.draw(st.sampled_from(sorted(set(table) - {"__metadata__"})))
        table[name], table[other] = table[other], table[name]
    raw = json.dumps(table).encode()
    refused_or_sound(len(raw).to_bytes(8, "little") + raw + DATA[8 + size :])


@FUZZ
@given(st.binary(max_size=400))
def test_random_bytes_are_rejected(noise: bytes) -> None:
    for data in (noise, len(noise).to_bytes(8, "little") + noise, DATA[:8] + noise + DATA[8 + len(noise) :]):
        assume(data != DATA)
        refused_or_sound(data)


# Wrong in one particular way


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a netclust file, or cut short"),
        (b"\0" * 8, "corrupt"),
        (b"\xff" * 8, "cut short"),
        ((2**63).to_bytes(8, "little") + b"{}", "cut short"),
        ((2**40).to_bytes(8, "little") + DATA[8:], "cut short"),
        (pickle.dumps({"w": np.zeros(3)}), "not a netclust file"),
        (pickle.dumps(list(range(5000)), protocol=0), "not a netclust file"),
        (enveloped(None, b"{}"), "not one of netclust's"),
        (enveloped(None, b'{"__metadata__": {"format": "pt"}}'), "not one of netclust's"),
        (enveloped(None, b'{"__metadata__": [1]}'), "not one of netclust's"),
        (enveloped(None, b'{"__metadata__": {"netclust": 3}}'), "not one of netclust's"),
        (enveloped(None, b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "corrupt"),
        (enveloped(None, b'{"a": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"), "corrupt"),
        (enveloped(None, b'\xff{"__metadata__": {}}'), "corrupt"),
        (enveloped("text"), "corrupt"),
        (enveloped({"kind": KIND, "version": 1}), "corrupt"),
        (enveloped({"kind": KIND, "version": "1", "header": {}}), "corrupt"),
        (enveloped({"kind": KIND, "version": True, "header": {}}), "corrupt"),
        (enveloped({"kind": "netclust.linker", "version": 1, "header": {}}), "holds 'netclust.linker', expected"),
        (enveloped({"kind": KIND, "version": 0, "header": {}}), "format 0 is not known"),
        (enveloped({"kind": KIND, "version": -7, "header": {}}), "format -7 is not known"),
        (enveloped({"kind": KIND, "version": FORMAT_VERSION + 1, "header": {}}), "upgrade"),
        (enveloped({"kind": KIND, "version": 10**30, "header": {}}), "upgrade"),
        (enveloped({"kind": KIND, "version": 2, "header": {}, "signature": "of a later format"}), "upgrade"),
        (enveloped({"kind": KIND, "version": 1, "header": {}}), "missing required field"),
    ],
)
def test_what_is_no_model_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        Model.from_bytes(data, "odd.model")
    assert str(caught.value).startswith("odd.model: ")
    assert "\n" not in str(caught.value)


def test_a_deep_header_is_refused() -> None:
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    text = '{"kind":"netclust.model","version":1,"header":' + deep + "}"
    with pytest.raises(ModelError, match=r"corrupt|unknown field"):  # newer Pythons go so deep
        Model.from_bytes(enveloped(None, json.dumps({"__metadata__": {"netclust": text}}).encode()))


def test_a_snapshot_is_refused_as_a_model() -> None:
    with pytest.raises(ModelError, match=r"holds 'netclust\.linker'"):
        Model.from_bytes(Linker(MODEL).snapshot())


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_a_missing_array_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match=f"has no {name}"):
        Model.from_bytes(packed(without=(name,)))


def test_an_extra_array_is_refused() -> None:
    with pytest.raises(ModelError, match="does not have: extra"):
        Model.from_bytes(pack_container(KIND, {**ARRAYS, "extra": np.zeros(4)}, HEADER))


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_a_wrong_type_or_shape_is_refused(name: str) -> None:
    array = ARRAYS[name]
    other = np.float32 if array.dtype == np.float64 else np.float64
    for wrong in (array.astype(other), array[:-1], np.concatenate([array, array[:1]]), array[None], array.reshape(-1)):
        if wrong.shape == array.shape and wrong.dtype == array.dtype:
            continue
        with pytest.raises(ModelError, match=r"expected|has no"):
            Model.from_bytes(pack_container(KIND, {**ARRAYS, name: wrong}, HEADER))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["weights.averaged", "weights.last", "scaling.low", "scaling.span", "reference.num"])
def test_a_number_that_is_not_finite_is_refused(name: str, value: float) -> None:
    array = ARRAYS[name].copy()
    array.flat[-1] = value
    with pytest.raises(ModelError, match=f"{name} holds a number that is not finite"):
        Model.from_bytes(pack_container(KIND, {**ARRAYS, name: array}, HEADER))


@pytest.mark.parametrize(
    ("name", "value"), [("weights.averaged", 1e21), ("weights.last", -1e300), ("reference.num", 2e6)]
)
def test_a_huge_number_is_refused(name: str, value: float) -> None:
    array = ARRAYS[name].copy()
    array.flat[0] = value
    with pytest.raises(ModelError, match="too large"):
        Model.from_bytes(pack_container(KIND, {**ARRAYS, name: array}, HEADER))


def test_the_largest_weights_do_not_overflow() -> None:
    w = np.where(np.arange(len(MODEL.averaged)) % 2, MAX_WEIGHT, -MAX_WEIGHT)
    link_with(Model.from_bytes(packed(weights_averaged=w)))
    link_with(Model.from_bytes(packed(weights_averaged=np.abs(w))))


@pytest.mark.parametrize("span", [0.0, -0.0, -1.0])
def test_a_span_that_is_not_positive_is_refused(span: float) -> None:
    with pytest.raises(ModelError, match=r"scaling\.span must be positive"):
        Model.from_bytes(packed(scaling_span=np.array([1.0, span])))


@pytest.mark.parametrize("label", [-1, 3, 2**31 - 1, -(2**31)])
def test_a_reference_label_out_of_range_is_refused(label: int) -> None:
    labels = ARRAYS["reference.label"].copy()
    labels[-1] = label
    with pytest.raises(ModelError, match="labels or values that the model does not have"):
        Model.from_bytes(packed(reference_label=labels))


@pytest.mark.parametrize(("attribute", "code"), [(0, 2), (1, 4), (1, 65_535)])
def test_a_reference_code_out_of_range_is_refused(attribute: int, code: int) -> None:
    codes = ARRAYS["reference.code"].copy()
    codes[0, attribute] = code
    with pytest.raises(ModelError, match="labels or values that the model does not have"):
        Model.from_bytes(packed(reference_code=codes))


def test_a_batch_with_codes_of_another_model_is_refused() -> None:
    batch = MODEL.encoding.encode(doors(10))
    batch.code[3, 1] = 4
    with pytest.raises(InputError, match="codes that this model's vocabularies do not have"):
        Linker(MODEL).process(batch)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"vocabularies": [["1"], ["staff", "guest", "staff"]]}, "names a value twice"),
        ({"vocabularies": [["1"]]}, "do not fit the schema"),
        ({"vocabularies": [["1"], ["cleaning", "guest", "staff"], []]}, "do not fit the schema"),
        ({"vocabularies": [["1"], ["cleaning", "guest"]]}, r"does not have|expected"),
        ({"kept": ["weight", "seconds"]}, "do not fit the schema"),
        ({"kept": ["seconds", "seconds"]}, "do not fit the schema"),
        ({"kept": ["seconds", "badge"]}, "do not fit the schema"),
        ({"kept": ["seconds"]}, "expected"),
        ({"labels": []}, "no labels"),
        ({"labels": ["ok", "ok", "forced"]}, "named twice"),
        ({"labels": ["ok"]}, "labels or values that the model does not have"),
        ({"labels": ["ok", "forced", ""]}, "1 to 255 characters"),
        ({"labels": ["ok", "forced", "x" * 256]}, "1 to 255 characters"),
        ({"sign": 0}, "Invalid enum value 0"),
        ({"root": "attributes"}, "expected"),
        ({"root": "trunk"}, "Invalid enum value"),
        ({"weights": "best"}, "Invalid enum value"),
        ({"calibration": {"root": 1e39, "false_alarm_rate": 0.1, "obtained": 0.1, "records": 5}}, "too large"),
        ({"calibration": {"root": -1e300, "false_alarm_rate": 0.1, "obtained": 0.1, "records": 5}}, "too large"),
        ({"calibration": {"root": 1.0}}, "missing required field"),
        ({"calibration": {"root": None, "false_alarm_rate": 0.1, "obtained": 0, "records": 5}}, "Expected `float`"),
        ({"schema": {"name": "empty", "attribute": []}}, "no attribute with role feature"),
        ({"schema": {"name": "x", "attribute": [{"name": "a"}, {"name": "a"}]}}, "used twice: a"),
        ({"schema": {"name": "x", "attribute": [{"name": "a", "code": "import os"}]}}, "unknown field"),
        ({"schema": None}, "Expected `object`"),
        ({"plugin": "os.system"}, "unknown field"),
    ],
)  # fmt: skip
def test_an_impossible_header_is_refused(header: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        Model.from_bytes(packed(header), "odd.model")
    assert str(caught.value).startswith("odd.model: ")


def test_a_calibrated_root_that_is_not_a_number_is_refused() -> None:
    broken = MODEL.with_root(Calibration(root=float("nan"), false_alarm_rate=0.1, obtained=0.1, records=5))
    with pytest.raises(ModelError, match="Expected `float`"):
        Model.from_bytes(broken.to_bytes())


def test_a_large_vocabulary_is_loaded_quickly() -> None:
    values = [str(v) for v in range(65_534)]
    dimension = 2 + 3 + 3 * len(values) + 1
    data = packed(
        {"vocabularies": [["1"], values]}, weights_averaged=np.zeros(dimension), weights_last=np.zeros(dimension)
    )
    link_with(Model.from_bytes(data))


def test_a_vocabulary_with_more_values_than_codes_is_refused() -> None:
    with pytest.raises(ModelError, match="too large or names a value twice"):
        Model.from_bytes(packed({"vocabularies": [["1"], [str(v) for v in range(65_535)]]}))


def test_a_model_without_reference_set_works() -> None:
    empty = {f"reference_{name}": ARRAYS[f"reference.{name}"][:0] for name in ("num", "code", "label", "seq")}
    link_with(Model.from_bytes(packed(**empty)))


# Files


def test_a_file_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.model"
    path.write_bytes(DATA)
    assert read_container_bytes(path, limit=len(DATA)) == DATA
    with pytest.raises(ModelError, match=rf"large\.model: larger than {len(DATA) - 1} bytes, refused"):
        read_container_bytes(path, limit=len(DATA) - 1)
    monkeypatch.setattr(container.read_container_bytes, "__defaults__", (100,))
    with pytest.raises(ModelError, match="larger than 100 bytes"):
        Model.load(path)


def test_a_pipe_without_end_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "endless"
    os.mkfifo(pipe)

    def write() -> None:
        with open(pipe, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 65_536)
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(ModelError, match="larger than 1000 bytes"):
        read_container_bytes(pipe, limit=1000)
    writer.join(30)


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        Model.load(tmp_path)
    with pytest.raises(InputError, match=r"nothing\.model: No such file"):
        Model.load(tmp_path / "nothing.model")
    (tmp_path / "empty.model").touch()
    with pytest.raises(ModelError, match=r"empty\.model: not a netclust file"):
        Model.load(tmp_path / "empty.model")


def test_a_pickle_is_not_run_when_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "ran"),))

    (tmp_path / "bomb.model").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError):
        Model.load(tmp_path / "bomb.model")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "doors.model"
    MODEL.save(path)

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(InputError, match=r"doors\.model: cannot be written: No space left on device"):
        replace(MODEL, averaged=MODEL.averaged * 2).save(path)
    assert path.read_bytes() == DATA
    assert os.listdir(tmp_path) == ["doors.model"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_container_bytes(tmp_path / "x", b"data")
    assert os.listdir(tmp_path) == []


def test_writing_where_one_cannot_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "folder" / "x", tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be written"):
            write_container_bytes(path, b"data")
    assert os.listdir(tmp_path) == []


def test_a_device_is_written_to_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_container_bytes(pipe, b"result")
    reader.join(30)
    assert received == [b"result"]
    assert pipe.is_fifo()


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "current.model"
    (tmp_path / "models").mkdir()
    link.symlink_to(Path("models", "v1.model"))
    for _ in range(2):
        MODEL.save(link)
        assert link.is_symlink()
        assert (tmp_path / "models" / "v1.model").read_bytes() == DATA
    link.unlink()
    link.symlink_to(link)
    MODEL.save(link)  # a link to nowhere but itself is the one that is replaced
    assert link.read_bytes() == DATA


def test_the_file_mode_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        MODEL.save(tmp_path / "x.model")
    finally:
        os.umask(old)
    assert (tmp_path / "x.model").stat().st_mode & 0o777 == 0o640


# No code from data


def python_files() -> list[Path]:
    root = Path(container.__file__).parents[1]
    found = [Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names]
    return sorted(path for path in found if path.suffix == ".py")


def test_the_scan_covers_the_linked_folders() -> None:
    parts = {path.parent.name for path in python_files()}
    assert {"netclust", "kernels", "stream", "models", "datasets", "cli"} <= parts


# Compiled kernels are pickled, as numba does it, in a folder that nobody else can write to (test_kernel_cache.py).
KEEPS_CODE = "kernels/cache.py"
OTHERS = [path for path in python_files() if "/".join(path.parts[-2:]) != KEEPS_CODE]


@pytest.mark.parametrize("path", OTHERS, ids=lambda p: "/".join(p.parts[-2:]))
def test_netclust_cannot_run_code_from_data(path: Path) -> None:
    modules = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle"}
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert not {name.split(".")[0] for name in names} & modules, f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            assert called not in {"eval", "exec", "compile", "__import__"}, f"{path}:{node.lineno}"
            for keyword in node.keywords:
                pickles = keyword.arg == "allow_pickle" and getattr(keyword.value, "value", True) is not False
                assert not pickles, f"{path}:{node.lineno}"
