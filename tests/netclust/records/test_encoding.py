"""Encoding: every number finite and scaled by the training range, every code and label one that training gave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.records import encoding as module
from netclust.records.batch import NO_LABEL
from netclust.records.encoding import FAR, fit_encoding
from netclust.records.schema import Schema, parse_schema
from netclust.records.table import Table

SCHEMA = parse_schema("""
name = "t"
normal = ["ok"]
attribute = [
  {name = "size"},
  {name = "still"},
  {name = "count", transform = "log1p"},
  {name = "rate", transform = "clip"},
  {name = "kind", kind = "symbolic"},
  {name = "syn", kind = "binary"},
  {name = "class", role = "label"},
]
""")


def table(schema: Schema = SCHEMA, **columns: Sequence[Any]) -> Table:
    """Some records; columns that are not given are constant."""
    n = len(next(iter(columns.values())))
    defaults: dict[str, Sequence[Any]] = {
        a.name: ["a"] * n if a.kind == "symbolic" else [0] * n for a in schema.features
    }
    return Table.from_columns(schema, {**defaults, **columns})


def scaled(past: Sequence[float], today: Sequence[float], name: str = "size") -> list[float]:
    """What `today` becomes in the only column that varies in `past`."""
    encoding = fit_encoding(table(**{name: past}))
    assert encoding.kept == (name,)
    num = encoding.encode(table(**{name: today})).num
    assert num.dtype == np.float32
    return [float(value) for value in num[:, 0]]


def test_the_training_range_becomes_0_to_1() -> None:
    assert scaled([10, 20, 15], [10, 20, 15, 12.5]) == [0, 1, 0.5, 0.25]


def test_values_outside_the_training_range_are_not_cut() -> None:
    assert scaled([0, 10], [-5, 30]) == [-0.5, 3]


def test_values_far_outside_stay_finite() -> None:
    assert scaled([0, 1], [1e300, -1e300, 1e308, -1e308]) == [FAR, -FAR, FAR, -FAR]
    assert scaled([0, 1e-30], [1e308, -1e308]) == [FAR, -FAR]


def test_a_range_wider_than_the_numbers_stays_finite() -> None:
    assert scaled([-1e308, 1e308], [-1e308, 0, 1e308]) == [0, 0.5, 1]


def test_a_clipped_attribute_stays_in_0_to_1() -> None:
    assert scaled([2, 4], [-1e308, 1, 2, 3, 4, 5, 1e308], "rate") == [0, 0, 0, 0.5, 1, 1, 1]


def test_log1p_of_a_negative_number_is_the_mirror_image_and_not_nan() -> None:
    got = scaled([-(math.e - 1), math.e - 1], [-(math.e - 1), 0, math.e - 1, math.exp(3) - 1], "count")
    assert got == pytest.approx([0, 0.5, 1, 2])


def test_a_constant_attribute_is_dropped() -> None:
    encoding = fit_encoding(table(size=[1, 2], still=[7, 7]))
    assert encoding.kept == ("size",)
    assert [a.name for a in encoding.numeric] == ["size"]
    assert encoding.encode(table(size=[1], still=[8])).num.tolist() == [[0]]


def test_a_range_too_small_for_float32_counts_as_constant() -> None:
    assert fit_encoding(table(size=[0, 1e-46])).kept == ()


def test_columns_keep_their_scaling_when_one_between_is_dropped() -> None:
    encoding = fit_encoding(table(size=[0, 10], still=[3, 3], rate=[0, 100]))
    assert encoding.kept == ("size", "rate")
    assert encoding.encode(table(size=[5], still=[9], rate=[20])).num.tolist() == [[0.5, np.float32(0.2)]]


def test_a_symbol_not_seen_in_training_has_no_code() -> None:
    encoding = fit_encoding(table(kind=["tcp", "udp", "tcp"]))
    assert encoding.vocabularies[0] == ("tcp", "udp")
    assert encoding.widths == (3, 2)
    code = encoding.encode(table(kind=["udp", "icmp", "tcp", ""])).code
    assert code.dtype == np.uint16
    assert code[:, 0].tolist() == [2, 0, 1, 0]


def test_codes_do_not_depend_on_the_order_of_the_training_records() -> None:
    assert fit_encoding(table(kind=["b", "a"])).vocabularies == fit_encoding(table(kind=["a", "b"])).vocabularies


def test_symbols_of_records_that_were_left_out_get_no_code() -> None:
    some = table(kind=["a", "b", "c"], **{"class": ["ok", "worm", "scan"]})[np.array([0, 2])]
    encoding = fit_encoding(some)
    assert encoding.vocabularies[0] == ("a", "c")
    assert encoding.labels == ("ok", "scan")


def test_symbols_that_read_alike_share_a_code() -> None:
    past = table(kind=["a", "b"])
    past.symbols[0][1:] = ["\ufffd", "\ufffd"]  # two byte strings that are not UTF-8
    assert fit_encoding(past).vocabularies[0] == ("\ufffd",)


def test_the_code_of_a_binary_attribute_is_its_bit() -> None:
    for past in ([0, 1], [1, 1], [0, 0]):
        encoding = fit_encoding(table(syn=past, size=[0, 1]))
        assert encoding.vocabularies[1] == ("1",)
        assert encoding.encode(table(syn=[0, 1, 1])).code[:, 1].tolist() == [0, 1, 1]


def test_more_values_than_codes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CODES", 3)
    assert fit_encoding(table(kind=["a", "b"])).widths == (3, 2)
    with pytest.raises(InputError, match="attribute kind has 3 values, at most 2 can be coded"):
        fit_encoding(table(kind=["a", "b", "c"]))


def test_nothing_to_learn_from_is_refused() -> None:
    plain = parse_schema('name = "t"\nattribute = [{name = "size"}]')
    with pytest.raises(InputError, match="every attribute is constant"):
        fit_encoding(table(plain, size=[1, 1]))
    with pytest.raises(InputError, match="no records to fit an encoding on"):
        fit_encoding(table(size=[1, 2])[:0])


def test_normal_labels_come_first_and_the_empty_one_not_at_all() -> None:
    encoding = fit_encoding(table(size=[0, 1, 2, 3], **{"class": ["worm", "", "ok", "apache"]}))
    assert encoding.labels == ("ok", "apache", "worm")
    assert encoding.label_table().is_normal.tolist() == [True, False, False]


def test_an_unlabelled_record_is_not_taken_for_a_class() -> None:
    encoding = fit_encoding(table(size=[0, 1], **{"class": ["ok", "worm"]}))
    assert encoding.encode(table(size=[0, 1])).label.tolist() == [NO_LABEL, NO_LABEL]
    assert encoding.encode(table(size=[0, 1, 1], **{"class": ["", "worm", "ok"]})).label.tolist() == [NO_LABEL, 1, 0]


def test_a_new_label_is_unknown_unless_a_table_may_grow() -> None:
    encoding = fit_encoding(table(size=[0, 1], **{"class": ["ok", "worm"]}))
    today = table(size=[0, 1, 2], **{"class": ["scan", "ok", "flood"]})
    assert encoding.encode(today).label.tolist() == [NO_LABEL, 0, NO_LABEL]
    labels = encoding.label_table()
    assert encoding.encode(today, labels).label.tolist() == [2, 0, 3]
    assert labels.names == ["ok", "worm", "scan", "flood"]
    assert encoding.encode(today[::-1], labels).label.tolist() == [3, 0, 2]
    assert encoding.labels == ("ok", "worm")


def test_what_is_not_scored_is_carried() -> None:
    schema = parse_schema("""
    name = "t"
    attribute = [
      {name = "size"}, {name = "src", role = "context"}, {name = "dst", role = "key"}, {name = "ts", role = "time"},
    ]
    """)
    past = Table.from_columns(schema, {"size": [0, 1], "src": ["a", "b"], "dst": ["c", "d"], "ts": [5, 6]})
    batch = fit_encoding(past).encode(past[1:])
    assert batch.context["src"].tolist() == ["b"]
    assert batch.context["dst"].tolist() == ["d"]
    assert batch.time.tolist() == [6]
    assert batch.seq.tolist() == [1]
    assert batch.key.tolist() == past.key[1:].tolist()
    assert past.key[0] != past.key[1]


def test_records_are_shown_as_they_came() -> None:
    table, later = simulate(2000, seed=1).table(), simulate(300, seed=2).table()
    encoding = fit_encoding(table)
    batch = encoding.encode(later)
    for row in range(len(later)):
        shown = encoding.shown(later, row).values()
        decoded = dict(zip(encoding.shown_names, encoding.decode(batch.num[row], batch.code[row]), strict=True))
        assert list(shown) == list(decoded)
        for attribute in (*encoding.numeric, *encoding.schema.coded):
            now, then = shown[attribute.name], decoded[attribute.name]
            if isinstance(now, str) or now is None:
                assert now == then
            elif attribute.transform == "log1p":
                assert isinstance(then, float)
                assert now == pytest.approx(then, rel=1e-4, abs=1e-4)


def test_a_value_beyond_training_is_shown_as_it_is_and_one_that_was_not_met_is_none() -> None:
    schema = parse_schema("""
name = "t"
attribute = [{name = "rate", transform = "clip"}, {name = "kind", kind = "symbolic"}, {name = "on", kind = "binary"}]
""")
    past = Table.from_columns(schema, {"rate": [0.0, 1.0], "kind": ["a", "b"], "on": [0, 1]})
    today = Table.from_columns(schema, {"rate": [7.0, 0.1234567], "kind": ["a", "c"], "on": [1, 0]})
    encoding = fit_encoding(past)
    assert encoding.shown(today, 0).values() == {"rate": 7.0, "kind": "a", "on": "1"}
    assert encoding.shown(today, 1).values() == {"rate": 0.123457, "kind": None, "on": "0"}
    assert encoding.texts(today, np.array([1, 0, 0]), 0).tolist() == ["", "a", "a"]


def test_simulated_training_records_lie_in_0_to_1() -> None:
    past = simulate(2000).table()
    batch = fit_encoding(past).encode(past)
    assert batch.num.min() == 0
    assert batch.num.max() == 1
    binary = [s for s, a in enumerate(past.schema.coded) if a.kind == "binary"]
    symbolic = [s for s, a in enumerate(past.schema.coded) if a.kind == "symbolic"]
    assert (batch.code[:, symbolic] > 0).all()
    assert (batch.code[:, binary] <= 1).all()
    assert (batch.label >= 0).all()


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(
    past=st.lists(finite, min_size=2, max_size=5),
    today=st.lists(finite, min_size=1, max_size=5),
    transform=st.sampled_from(["none", "log1p", "clip"]),
)
def test_no_finite_number_becomes_one_that_is_not(past: list[float], today: list[float], transform: str) -> None:
    schema = parse_schema(
        f'name = "t"\nattribute = [{{name = "x", transform = "{transform}"}}, {{name = "bit", kind = "binary"}}]'
    )
    encoding = fit_encoding(table(schema, x=past))
    trained = encoding.encode(table(schema, x=past)).num
    assert ((trained >= 0) & (trained <= 1)).all()
    new = encoding.encode(table(schema, x=today)).num
    assert np.isfinite(new).all()
    assert (np.abs(new) <= FAR).all()
