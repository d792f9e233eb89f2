"""Folds: nothing hidden is trained on, nothing validated is trained on, and the same file gives the same folds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.models.network.folds import (
    SIZES,
    StreamFold,
    Use,
    _spread,
    deal_kinds,
    deal_types,
    kind_attribute,
    make_folds,
)
from netclust.records.schema import parse_schema
from netclust.records.table import Table

TEXT = """
name = "t"
normal = ["ok", "fine"]
[categories]
a = ["a1", "a2"]
b = ["b1", "b2", "b3"]
[[attribute]]
name = "size"
[[attribute]]
name = "way"
kind = "symbolic"
[[attribute]]
name = "kind"
kind = "symbolic"
[[attribute]]
name = "class"
role = "label"
"""
SCHEMA = parse_schema(TEXT)
USES: tuple[Use, ...] = ("reference", "late")


def records(labels: list[str], kinds: list[str] | None = None, schema: Any = SCHEMA) -> Table:
    n = len(labels)
    kinds = kinds or [f"k{i % 7}" for i in range(n)]
    columns = {"size": np.arange(n), "way": ["up", "down"] * (n // 2) + ["up"] * (n % 2), "kind": kinds}
    return Table.from_columns(schema, columns | {"class": labels})


def names_of(table: Table, fold: StreamFold) -> tuple[Any, Any, Any, Any]:
    """(labels, kinds) of the training part and of the validation stream."""
    s = kind_attribute(table)
    label = table.label_names()
    kind = np.array([""] * len(table), object) if s is None else np.array(table.symbols[s], object)[table.sym[:, s]]
    return label[fold.train], kind[fold.train], label[fold.validation], kind[fold.validation]


LABELS = st.lists(
    st.sampled_from(["ok", "ok", "ok", "fine", "a1", "a2", "b1", "b2", "b3", "c1"]), min_size=1, max_size=200
)


@settings(max_examples=60)
@given(LABELS, st.randoms(use_true_random=False), st.sampled_from(USES))
def test_nothing_hidden_is_trained_on(labels: list[str], random: Any, use: Use) -> None:
    table = records(labels, [random.choice("aaaaabbcdefgh") for _ in labels])
    types = set(labels) - set(SCHEMA.normal)
    if len(types) < 2 or len(labels) - sum(label in types for label in labels) < 3:
        with pytest.raises(InputError):
            make_folds(table, use)
        return
    folds = make_folds(table, use)
    assert len(folds) == min(5, len(types))
    assert sorted(name for fold in folds for name in fold.types) == sorted(types)
    for fold in folds:
        label, kind, asked, asked_kind = names_of(table, fold)
        normal = np.isin(label, SCHEMA.normal)
        assert not set(label) & set(fold.types)
        assert not set(kind[normal]) & set(fold.kinds)
        assert normal.any()
        assert not set(fold.train) & set(fold.validation)
        assert (np.diff(fold.train) > 0).all()
        assert len(set(fold.validation)) == len(fold.validation)
        assert (fold.hidden == np.isin(asked, fold.types)).all()
        assert fold.hidden.any()
        assert (fold.hidden_normal == (np.isin(asked, SCHEMA.normal) & np.isin(asked_kind, fold.kinds))).all()
        assert np.isin(asked, SCHEMA.normal).sum() == min(SIZES[use].normal, np.isin(labels, SCHEMA.normal).sum() // 3)


def test_the_same_file_gives_the_same_folds() -> None:
    first, again = (make_folds(simulate(2000, seed=4).table()) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert a.train.tobytes() == b.train.tobytes()
        assert a.validation.tobytes() == b.validation.tobytes()
        assert (a.types, a.kinds) == (b.types, b.kinds)
    assert first[0].validation.tobytes() != first[1].validation.tobytes()


def test_the_numbers_of_the_plan_are_kept() -> None:
    sizes = {"ok": 20_000, "a1": 4000, "a2": 1000, "b1": 900, "b2": 40, "b3": 4, "c1": 1}
    table = records([name for name, n in sizes.items() for _ in range(n)])
    for use, normals, hidden, known in (("reference", 5000, 300, (300, 5)), ("late", 20_000 // 3, 1500, (1500, 2))):
        for fold in make_folds(table, use):  # type: ignore[arg-type]
            count = Counter(names_of(table, fold)[2].tolist())
            assert count["ok"] == normals
            for name in set(sizes) - {"ok"}:
                most = hidden if name in fold.types else known[0]
                part = sizes[name] if name in fold.types else sizes[name] // known[1]
                assert count[name] == min(most, part)
            assert fold.hidden_normal.sum() == (250 if fold.kinds else 0)
            assert use == "reference" or not fold.kinds


def test_types_are_dealt_in_turn_by_size() -> None:
    # Sorted by category ("" first), then from large to small, then by name.
    table = records(["ok"] * 9 + ["c1"] + ["a1"] + ["a2"] * 2 + ["b3"] * 5 + ["b1"] + ["b2"])
    assert deal_types(table) == [("c1", "b2"), ("a2",), ("a1",), ("b3",), ("b1",)]


def test_common_kinds_are_not_hidden() -> None:
    kinds = ["web"] * 40 + ["mail"] * 20 + ["dns"] * 20 + ["ftp"] * 12 + ["ssh"] * 8
    table = records(["ok"] * 100 + ["a1", "b1"], [*kinds, "x", "y"])
    normal = table.label_names() == "ok"
    assert kind_attribute(table) == 1
    # web and dns make up the first half; of mail and dns, as large, the name decides.
    assert deal_kinds(table, normal, 2) == [("mail", "ssh"), ("ftp",)]
    assert deal_kinds(table, normal, 5) == [("mail",), ("ftp",), ("ssh",), (), ()]


def test_hidden_kinds_are_spread_evenly() -> None:
    kinds = ["web"] * 500 + ["big"] * 300 + ["tiny"] * 3
    table = records(["ok"] * 803 + ["a1", "b1"], [*kinds, "web", "web"])
    first, second = make_folds(table)
    assert (first.kinds, second.kinds) == (("big",), ("tiny",))
    assert first.hidden_normal.sum() == int(803 // 3 * 0.05)
    assert second.hidden_normal.sum() == 3  # all there are, the known kinds fill up
    assert (names_of(table, second)[2] == "ok").sum() == 803 // 3


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 200))
def test_a_quota_is_poured_out_exactly(sizes: list[int], total: int) -> None:
    quota = _spread(sizes, total)
    assert sum(quota) == min(total, sum(sizes))
    assert all(q <= n for q, n in zip(quota, sizes, strict=True))
    unfilled = [q for q, n in zip(quota, sizes, strict=True) if q < n]
    assert not unfilled or max(quota) - min(unfilled) <= 1


def test_a_schema_without_symbols_has_folds() -> None:
    schema = parse_schema(TEXT.replace('kind = "symbolic"', ""))
    table = Table.from_columns(
        schema, {"size": range(40), "way": range(40), "kind": range(40), "class": ["ok"] * 30 + ["a1", "b1"] * 5}
    )
    assert kind_attribute(table) is None
    assert all(fold.kinds == () and not fold.hidden_normal.any() for fold in make_folds(table))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["ok"] * 9 + ["a1"], "the only attack type is a1"),
        (["ok"] * 9, "no attack type at all"),
        (["a1", "b1", "b2"], "0 normal records"),
        (["ok", "fine", "a1", "b1", "b2"], "2 normal records"),
        (["ok"] * 9 + ["a1", "", "b1"], "1 of 12 records have no label"),
        ([""] * 4, "4 of 4 records have no label"),
    ],
)
def test_files_that_cannot_be_folded_are_refused(labels: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_folds(records(labels), where="my.csv")
    assert str(caught.value).startswith("my.csv: ")
