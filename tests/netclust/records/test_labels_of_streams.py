"""Labels that records of a stream bring: any text, any number of them, and never an error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.records import labels as bounds
from netclust.records.encoding import fit_encoding
from netclust.records.labels import KEPT_FOR_PEOPLE, MAX_LABEL_CHARACTERS, LabelTable
from netclust.records.schema import parse_schema
from netclust.records.table import Table
from netclust.scoring.model import distance_model

SCHEMA = parse_schema("""
name = "t"
normal = ["normal"]
attribute = [{name = "size"}, {name = "kind", kind = "symbolic"}, {name = "class", role = "label"}]
""")


def table(labels: list[str]) -> Table:
    count = len(labels)
    found = Table.from_columns(SCHEMA, {"size": np.arange(count), "kind": ["a"] * count})
    found.labels = ["", *dict.fromkeys(name for name in labels if name)]
    found.label = np.array([found.labels.index(name) for name in labels], np.int32)
    return found


@pytest.fixture(scope="module")
def past() -> Table:
    return table(["normal", "worm"] * 50)


def test_labels_beyond_the_cap_are_left_out_counted_and_named_once(
    past: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_LABELS", KEPT_FOR_PEOPLE + 4)
    encoding = fit_encoding(past)
    names = encoding.label_table()
    batch = encoding.encode(
        table(["one", "two", "two", "three\x1b", "worm", "", "four", "four"]), names, delivered=True
    )
    assert batch.label.tolist() == [2, 3, 3, -1, 1, -1, -1, -1]
    assert names.dropped == {"full": 3, "unusable": 0}
    assert names.first_dropped == {"full": "'three\\x1b'"}
    assert names.add("an answer") == 4  # people find room
    with pytest.raises(InputError, match="different labels"):
        [names.add(str(k)) for k in range(KEPT_FOR_PEOPLE)]


def test_too_many_labels_are_an_error_where_no_stream_delivers_them(
    past: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_LABELS", 3)
    encoding = fit_encoding(past)
    with pytest.raises(InputError, match="more than 3 different labels"):
        encoding.encode(table(["one", "two"]), encoding.label_table())


def test_text_that_is_no_name_is_left_out() -> None:
    names = LabelTable(["normal"], ["normal"])
    for odd in ("x" * (MAX_LABEL_CHARACTERS + 1), "\ud800", ""):
        assert names.take(odd, 2) == -1
        with pytest.raises(InputError, match="a label is text of 1 to 255 characters"):
            names.add(odd)
    assert names.dropped["unusable"] == 6
    assert names.first_dropped["unusable"] == f"'{'x' * 40}'..."
    assert names.take("x" * MAX_LABEL_CHARACTERS) == 1


def test_the_characters_of_all_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_CHARACTERS", 1000)
    names = LabelTable(["normal"], ["normal"])
    found = [names.take(f"{k:0100}") for k in range(20)]
    assert found == [*range(1, 10), *[-1] * 11]
    assert names.take("short") == 10


@given(st.lists(st.text(max_size=300), max_size=30), st.integers(1, 6))
def test_any_labels_are_numbered_alike_however_the_stream_is_cut(labels: list[str], cut: int) -> None:
    past = table(["normal", "worm"] * 50)
    encoding = fit_encoding(past)
    whole, parts = encoding.label_table(), encoding.label_table()
    records = table(labels)
    numbers = encoding.encode(records, whole, delivered=True).label
    cuts = [encoding.encode(records[k : k + cut], parts, delivered=True).label for k in range(0, len(labels), cut)]
    assert np.concatenate([np.zeros(0, np.int32), *cuts]).tolist() == numbers.tolist()
    assert parts.names == whole.names
    assert (whole.is_normal == [name == "normal" for name in whole.names]).all()
    for name, number in zip(labels, numbers.tolist(), strict=True):
        assert number == -1 or whole.names[number] == name


def test_late_labels_beyond_the_cap_leave_a_record_unlabelled(past: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    model = distance_model(past)
    linker = Linker(model, LinkerConfig(referent_window=20, label_delay=2))
    monkeypatch.setattr(bounds, "MAX_LABELS", KEPT_FOR_PEOPLE + 3)
    records = table([f"label {k}" for k in range(40)])
    verdicts = linker.process(model.encoding.encode(records, linker.labels, delivered=True))
    assert len(verdicts) == 40
    assert linker.labels.dropped["full"] == 39
    assert len(linker.labels) == 3
    restored = Linker.restore(model, linker.snapshot())
    assert restored.labels.names == linker.labels.names
