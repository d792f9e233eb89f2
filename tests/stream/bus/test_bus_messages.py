"""Records and labels as messages: what goes in comes out, and nothing that is broken gets through."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.records.schema import Schema, load_schema, parse_schema
from netclust.records.table import Table
from netclust.stream.bus.record_messages import (
    MAX_CONTEXT_CHARACTERS,
    LabelMessage,
    RecordMessage,
    RecordPlace,
    merged,
    pack_label,
    pack_records,
    unpack_message,
    unpack_records,
)

KINDS: dict[str, Schema] = {
    "mixed": parse_schema("""
name = "mixed"
[[attribute]]
name = "size"
[[attribute]]
name = "kind"
kind = "symbolic"
[[attribute]]
name = "flag"
kind = "binary"
[[attribute]]
name = "who"
role = "context"
[[attribute]]
name = "label"
role = "label"
"""),
    "numbers": parse_schema('name = "numbers"\n[[attribute]]\nname = "size"\n'),
    "symbols": parse_schema('name = "symbols"\n[[attribute]]\nname = "kind"\nkind = "symbolic"\n'),
}
TEXT = st.text(max_size=12).filter(lambda text: "\0" not in text)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    schema = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    n = draw(st.integers(0, 12))
    columns: dict[str, Any] = {}
    for attribute in schema.attributes:
        if attribute.role == "feature" and attribute.kind == "numeric":
            values: st.SearchStrategy[Any] = st.floats(allow_nan=False, allow_infinity=False)
        elif attribute.kind == "binary":
            values = st.integers(0, 1)
        else:
            values = TEXT
        columns[attribute.name] = draw(st.lists(values, min_size=n, max_size=n))
    table = Table.from_columns(schema, columns)
    steps = draw(st.lists(st.integers(1, 1 << 40), min_size=n, max_size=n))
    table.seq = np.cumsum(np.array(steps, np.uint64), dtype=np.uint64)
    table.time = np.array(draw(st.lists(st.integers(-1, 1 << 62), min_size=n, max_size=n)), np.int64)
    table.key = np.array(draw(st.lists(st.integers(0, (1 << 64) - 1), min_size=n, max_size=n)), np.uint64)
    return table


def same(a: Table, b: Table) -> None:
    for name in ("num", "time", "seq", "key"):
        one, other = getattr(a, name), getattr(b, name)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    for s in range(len(a.schema.coded)):
        assert [a.symbols[s][k] for k in a.sym[:, s]] == [b.symbols[s][k] for k in b.sym[:, s]]
    assert a.label_names().tolist() == b.label_names().tolist()
    assert {name: column.tolist() for name, column in a.context.items()} == {
        name: column.tolist() for name, column in b.context.items()
    }


@given(tables())
@settings(deadline=None, max_examples=100)
def test_records_come_out_as_they_went_in(table: Table) -> None:
    body = pack_records(table, sensor="probe", stream="s-1", source="eth0")
    found = unpack_message(body, table.schema, "test")
    assert isinstance(found, RecordMessage)
    assert (found.sensor, found.stream, found.source) == ("probe", "s-1", "eth0")
    same(found.table, table)


@given(st.lists(tables(), min_size=1, max_size=4))
@settings(deadline=None, max_examples=50)
def test_merged_tables_are_one_after_the_other(given_tables: list[Table]) -> None:
    alike = [table for table in given_tables if table.schema.name == given_tables[0].schema.name]
    whole = merged(alike)
    at = 0
    for table in alike:
        same(whole[at : at + len(table)], table)
        at += len(table)


def test_only_symbols_that_are_used_are_sent() -> None:
    table = simulate(2000, seed=3).table()
    few = table[np.arange(3)]
    body = pack_records(few, sensor="a", stream="b", source="c")
    assert len(body) < 8000
    found = unpack_records(body, table.schema, "test").table
    assert max(map(len, found.symbols)) <= 4
    same(found, few)


def test_what_is_no_text_does_not_stop_records() -> None:
    table = simulate(2, seed=3).table()
    table.symbols = [list(names) for names in table.symbols]
    table.symbols[0][int(table.sym[0, 0])] = "broken\udcff"
    table.context["note"] = np.array(["x" * 5000, None], object)
    found = unpack_records(pack_records(table, sensor="a", stream="b", source="c"), table.schema, "test").table
    assert found.symbols[0][found.sym[0, 0]] == "broken?"
    assert found.context["note"].tolist() == ["x" * MAX_CONTEXT_CHARACTERS, ""]


def test_another_schema_is_refused_by_name() -> None:
    body = pack_records(simulate(2, seed=3).table(), sensor="probe-7", stream="b", source="c")
    with pytest.raises(InputError, match=r"partition 3.*'kdd' from 'probe-7'.*'conn'"):
        unpack_message(body, load_schema("conn"), "partition 3")


GOOD = pack_records(simulate(4, seed=3).table(), sensor="a", stream="b", source="c")
KDD = load_schema("kdd")


@given(st.integers(0, len(GOOD)))
@settings(deadline=None, max_examples=200)
def test_cut_short_it_is_refused(length: int) -> None:
    if length == len(GOOD):
        return
    with pytest.raises(InputError, match="test"):
        unpack_message(GOOD[:length], KDD, "test")


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(1, 255)), min_size=1, max_size=6))
@settings(deadline=None, max_examples=400)
def test_flipped_bytes_are_refused_or_still_records(flips: list[tuple[int, int]]) -> None:
    body = bytearray(GOOD)
    for at, by in flips:
        body[at] ^= by
    try:
        found = unpack_message(bytes(body), KDD, "test")
    except InputError:
        return
    assert isinstance(found, RecordMessage)
    for s, names in enumerate(found.table.symbols):
        assert [names[k] for k in found.table.sym[:, s]]
    assert np.isfinite(found.table.num).all()


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=200)
def test_any_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        unpack_message(body, KDD, "test")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sensor": ""}, "sensor"),
        ({"symbols": []}, "symbols of 0"),
        ({"labels": ["normal"]}, "missing one"),
        ({"labels": [""]}, "id of a symbol"),
        ({"context": {"who": ["only one"]}}, "1 values for 4"),
        ({"context": {"who": ["x" * 600] * 4}}, "over 512"),
        ({"fingerprint": "0"}, "columns"),
    ],
)
def test_headers_that_lie(change: dict[str, Any], word: str) -> None:
    from netclust.foundation.container import pack_container, unpack_container

    arrays, header = unpack_container(GOOD, "netclust.records", "good")
    with pytest.raises(InputError, match=f"lie.*{word}"):
        unpack_records(pack_container("netclust.records", arrays, header | change), KDD, "lie")


def test_numbers_must_rise() -> None:
    table = simulate(3, seed=3).table()
    table.seq = np.array([5, 5, 6], np.uint64)
    with pytest.raises(InputError, match="rise"):
        pack_records(table, sensor="a", stream="b", source="c")


@pytest.mark.parametrize(
    "label",
    [
        LabelMessage(id="1", label="scan", by="ann", cluster=0),
        LabelMessage(id="2", label="scan", by="ann", record=RecordPlace(sensor="a", source="eth0", seq=7, stream="x")),
        LabelMessage(id="3", label="", by="ann", undo="1"),
    ],
)
def test_labels_come_out_as_they_went_in(label: LabelMessage) -> None:
    assert unpack_message(pack_label(label), KDD, "test") == label


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "label", "id": "1", "label": "scan", "by": "ann"},
        {"kind": "label", "id": "1", "label": "", "by": "ann", "cluster": 1},
        {"kind": "label", "id": "1", "label": "scan", "by": "ann", "cluster": -1},
        {"kind": "label", "id": "1", "label": "scan", "by": "ann", "cluster": 1, "undo": "0"},
        {"kind": "label", "id": "1", "label": "x" * 300, "by": "ann", "cluster": 1},
        {"kind": "other", "id": "1"},
        {"kind": "label", "id": "1", "label": "scan", "by": "ann", "cluster": 1, "record": [[[]]]},
    ],
)
def test_labels_that_say_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="partition 0"):
        unpack_message(msgspec.json.encode(wrong), KDD, "partition 0")
