"""Tables of texts: CSV and lines of JSON give the same; what is refused."""

from __future__ import annotations

import gzip

import pytest

from netclust.datasets.documents import DocumentLimits
from netclust.datasets.text_tables import TextTable, read_text_table, seconds_of
from netclust.errors import InputError


@pytest.mark.parametrize(
    "text",
    [
        'id,score\na,1.5\n"b,c",\n',
        "id\tscore\n\na\t 1.5\nb,c\t\n",
        "id;score\na;1.5\nb,c;\n",
        '{"id": "a", "score": 1.5, "more": [1]}\n\n{"id": "b,c", "score": null}\n',
        '{"id": "a", "score": "1.5"}\n{"id": "b,c"}\n',
        '﻿id,score\na,1.5\n"b,c",\n',
    ],
)
def test_one_table_is_read_in_two_ways(tmp_path, text) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for file in (path, packed):
        table = read_text_table(file)
        assert table.columns == {"id": ("a", "b,c"), "score": ("1.5", "")}
        assert len(table) == 2
    assert read_text_table(path).sha256 == read_text_table(packed).sha256
    assert table.rows([1]).columns == {"id": ("b,c",), "score": ("",)}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "nothing in it"),
        ("id,score\n", "no rows"),
        ("id,id\na,b\n", "a name of its own"),
        ("id,\na,b\n", "a name of its own"),
        ("id,score\na\n", "line 2: 1 columns"),
        ('id,score\na,"b\n', "line 2"),
        ('{"a": 1}\n[1]\n', "line 2: cannot be read as JSON"),
        ('{"a": 1}\n{"a": 1}\n{"a": 1}\n{"a": 1}\n', "more than 3 rows"),
        ("a\n1\n2\n3\n4\n", "line 5: more than 3 rows"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, word) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(InputError, match=word):
        read_text_table(path, limits=DocumentLimits(items=3))


def test_times_and_missing_columns() -> None:
    assert seconds_of(["1970-01-02T00:00:00.5Z", "", "7"], "t").tolist() == [86400.5, 86400.5, 7.0]
    for values in (["noon"], ["nan"], ["1970-13-01"]):
        with pytest.raises(InputError, match="time"):
            seconds_of(values, "t")
    with pytest.raises(InputError, match="no column 'b': there are a"):
        TextTable({"a": ("1",)}).column("b")
