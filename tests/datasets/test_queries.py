"""Queries from files: every format, and what is said about lines that cannot be read."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from netclust.datasets.queries import QueryColumns, read_queries
from netclust.errors import InputError


def write(folder: Path, text: str, name: str = "some.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_svmrank_is_read(tmp_path: Path) -> None:
    text = "# a comment\n3 qid:a 1:0.5 3:2 # first\n0 qid:b 2:-1e2\n-1 qid:a\n\n"
    found = read_queries(write(tmp_path, text))
    assert found.fields == ("feature 1", "feature 2", "feature 3")
    a, b = found.queries
    assert (a.name, a.ids, a.labels.tolist(), a.mixed) == ("a", ("2", "4"), [1, 0], True)  # type: ignore[union-attr]
    assert a.numbers.tolist() == [[0.5, 0, 2], [0, 0, 0]]  # type: ignore[union-attr]
    assert b.numbers.tolist() == [[0, -100, 0]]  # type: ignore[union-attr]
    assert not b.mixed
    assert [len(found.mixed().queries), len(found.answered().queries)] == [1, 1]
    chosen = read_queries(write(tmp_path, text), fields=["feature 3", "feature 9"])
    assert chosen.queries[0].numbers.tolist() == [[2, 0], [0, 0]]  # type: ignore[union-attr]


def test_tables_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "query,id,size,label,age\nq1,x,1,1,2\nq2,y,3,0,4\nq1,z,5,0,6\n")
    found = read_queries(path)
    assert (found.fields, found.of_text) == (("size", "age"), False)
    assert [query.ids for query in found.queries] == [("x", "z"), ("y",)]
    assert found.queries[0].numbers.tolist() == [[1, 2], [5, 6]]  # type: ignore[union-attr]
    other = read_queries(path, columns=QueryColumns(query="id", label="age"), fields=["size"])
    assert [query.name for query in other.queries] == ["x", "y", "z"]


def test_texts_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "pairs.xz"
    packed.write_bytes(lzma.compress(b'who is it ?\t"It" is she .\t1\nwho is it ?\tNo .\t0\nwhen ?\tNow .\t0\n'))
    found = read_queries(packed)
    assert found.of_text
    assert (found.queries[0].question, found.queries[0].answers) == ("who is it ?", ('"It" is she .', "No ."))
    named = read_queries(
        write(tmp_path, 'id;q;a\n1;"who;?";she\n2;"who;?";he\n'), columns=QueryColumns(question="q", answer="a")
    )
    assert (named.queries[0].answers, named.queries[0].labels) == (("she", "he"), None)
    assert named.queries[0].question == "who;?"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["no queries"]),
        ("1 qid:1 1:x\n", ["line 1", "feature 1", "'x'"]),
        ("1 qid:1 1:1\n0 qid: 1:1\n", ["line 2", "LABEL qid:QUERY"]),
        ("1 qid:1 0:1\n", ["line 1", "'0:1'"]),
        ("1 qid:1 200000:1\n", ["line 1", "100,000"]),
        ("1 qid:1 2:1 2:1\n", ["line 1", "twice"]),
        ("1 qid:1 1:nan\n", ["line 1", "'nan'"]),
        ("1 qid:1\n", ["no line has a feature"]),
        ("q,label,size\n1,1,2\n", ["line 1", "'query'", "--query"]),
        ("query,label,size\n1,yes,2\n", ["line 2", "label", "'yes'"]),
        ("query,label,size\n1,1,\n", ["line 2", "size"]),
        ("query,label,size\n1,1\n", ["line 2", "2 columns, expected 3"]),
        ("query,label,size\n,1,2\n", ["line 2", "query is empty"]),
        ("query,label\n1,1\n", ["no column is left"]),
        ("query,label,size\n", ["no candidates"]),
        ("query,size,size\n1,1,1\n", ["line 1", "one name"]),
        ("how ?\tso\t1\nhow ?\tso\n", ["line 2", "2 columns, expected 3"]),
        ("how ?\tso\t1\nhow ?\tno\tmaybe\n", ["line 2", "'maybe'"]),
    ],
)
def test_bad_lines_are_refused(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_queries(path)
    for part in [str(path), *parts]:
        assert part in str(error.value)


def test_wikiqa_has_its_published_counts(data_folder: Path) -> None:
    """The published 873/126/243 are questions with a right answer; with a wrong one too they are fewer."""
    counts = []
    for part in ("train", "dev"):
        found = read_queries(data_folder / "wikiqa" / f"WikiQA-{part}.txt.xz")
        counts.append((len(found.queries), len(found.answered().queries), len(found.mixed().queries)))
    assert counts == [(2118, 873, 857), (296, 126, 122)]
