"""Items from a CSV, a folder or a tar: what is read, and what is refused with file and line."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.datasets.documents import MESSAGE_FIELDS, read_documents, split_message
from netclust.datasets.item_sets import DocumentLimits, ItemTable, read_items, sets_of
from netclust.datasets.set_splits import drawn_sets, whole_cluster_sets
from netclust.errors import InputError

CSV = "id,who,set,title\na,x,1,One\nb,x,1,Two\nc,y,2,\n"


def csv_file(folder: Path, text: str | bytes, name: str = "items.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def folder_of(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def tar_bytes(files: dict[str, bytes], *more: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member in more:
            archive.addfile(member)
    return out.getvalue()


def test_columns_are_fields_labels_sets_and_ids(tmp_path: Path) -> None:
    table = read_items(csv_file(tmp_path, CSV), label="who", set_column="set", id_column="id")
    assert (table.fields, table.columns) == (("title",), (("One", "Two", ""),))
    assert (table.ids, table.labels, table.sets) == (("a", "b", "c"), ("x", "x", "y"), ("1", "1", "2"))
    assert [part.ids for part in sets_of(table)] == [("a", "b"), ("c",)]
    assert table.clusters().tolist() == [0, 0, 1]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_packed_and_tab_separated_files_are_the_same_items(tmp_path: Path, pack, separator: str) -> None:  # type: ignore[no-untyped-def]
    text = CSV.replace(",", separator).replace("\n", "\r\n")
    table = read_items(csv_file(tmp_path, pack(b"\xef\xbb\xbf" + text.encode())), label="who")
    assert table.fields == ("id", "set", "title")
    assert table.column("title") == ("One", "Two", "")


def test_text_that_is_not_utf8_is_latin1(tmp_path: Path) -> None:
    assert read_items(csv_file(tmp_path, "t\nG\xf6del\n".encode("latin-1"))).column("t") == ("G\xf6del",)


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("", {}, "line 1: no header line"),
        ("a,b\n", {}, "no items"),
        ("a,a\n1,2\n", {}, "line 1: two columns have one name"),
        ("a,b\n1,2\n\n1\n", {}, "line 4: 1 columns, the header has 2"),
        (CSV, {"label": "cluster"}, "line 1: no column 'cluster'"),
        (CSV, {"fields": ["title", "year"]}, "line 1: no column 'year'"),
        (CSV, {"label": "title"}, "line 4: column 'title' is empty: every item needs its label"),
        ("id,t\na,1\nb,2\na,3\n", {"id_column": "id"}, "line 4: id 'a' was there in line 2 already"),
        ("who\nx\n", {"label": "who"}, "no field is left"),
        ('a,b\n1,"2\n3,4\n', {}, "cannot be read as CSV"),
        (CSV, {"limits": DocumentLimits(items=2)}, "line 4: more than 2 items"),
        (CSV, {"limits": DocumentLimits(document_bytes=4)}, "line 2: an item of more than 4 characters"),
        (CSV, {"limits": DocumentLimits(total_bytes=20)}, "more than 20 bytes"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, text: str, options: dict, complaint: str) -> None:  # type: ignore[type-arg]
    path = csv_file(tmp_path, text)
    with pytest.raises(InputError, match=r"items\.csv") as caught:
        read_items(path, **options)
    assert complaint in str(caught.value)


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_items(tmp_path / "none.csv")


@given(content=st.binary(max_size=200))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = csv_file(tmp_path_factory.getbasetemp(), content, "any")
    with suppress(InputError):
        assert len(read_items(path)) > 0


def test_a_table_whose_parts_do_not_fit_is_refused() -> None:
    for bad in (
        lambda: ItemTable(("a",), (("x",),), ("1", "2")),
        lambda: ItemTable(("a", "a"), (("x",), ("x",)), ("1",)),
        lambda: ItemTable(("a",), (("x", "y"),), ("1", "1")),
        lambda: ItemTable(("a",), (("x",),), ("1",)).column("b"),
        lambda: ItemTable(("a",), (("x",),), ("1",)).clusters(),
    ):
        with pytest.raises(InputError):
            bad()


LAYOUTS = {
    "unlabelled": ({"a.txt": "x", "b.txt": "y", "README": "no item"}, ("a.txt", "b.txt"), None, None),
    "labelled": ({"g/1": "x", "h/1": "y", "README": "no item"}, ("g/1", "h/1"), ("g", "h"), None),
    "sets": ({"s/g/1": "x", "t/g/1": "y"}, ("s/g/1", "t/g/1"), ("g", "g"), ("s", "t")),
    "names without an ending": ({"1": "x", "2": "y", ".hidden": "no"}, ("1", "2"), None, None),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("how", ["folder", "tar", "tar.gz", "tar of more"])
def test_folders_say_what_documents_are(tmp_path: Path, layout: str, how: str) -> None:
    files, ids, labels, sets = LAYOUTS[layout]
    if how == "folder":
        path = folder_of(tmp_path / "docs", files)
    else:
        lead = "./docs/" if how != "tar of more" or sets is None else "home/me/docs/"
        data = tar_bytes({lead + name: text.encode() for name, text in reversed(files.items())})
        path = csv_file(tmp_path, gzip.compress(data) if how == "tar.gz" else data, "docs.tar")
    table = read_items(path)
    assert (table.fields, table.ids, table.labels, table.sets) == (("text",), ids, labels, sets)
    assert table.column("text") == ("x", "y")


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "no documents"),
        ({"a.txt": "x", "g/1": "y"}, "a.txt is in no cluster's folder"),
        ({"g/1": "x", "s/g/1": "y"}, "must both be CLUSTER/FILE or both SET/CLUSTER/FILE"),
        ({"a/b/c/d": "x"}, "deeper than SET/CLUSTER/FILE"),
    ],
)
def test_folders_that_say_different_things_are_refused(tmp_path: Path, files: dict[str, str], complaint: str) -> None:
    folder = folder_of(tmp_path, files)
    with pytest.raises(InputError, match=complaint):
        read_items(folder)


def test_columns_are_not_asked_of_documents(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="columns are for a CSV"):
        read_items(folder_of(tmp_path, {"a.txt": "x"}), label="who")
    with pytest.raises(InputError, match="no field 'subject'"):
        read_items(folder_of(tmp_path, {"a.txt": "x"}), fields=["subject"])


def test_nothing_but_regular_files_is_read_from_a_tar_and_nothing_is_written(tmp_path: Path) -> None:
    link, device, folder = tarfile.TarInfo("d/g/link"), tarfile.TarInfo("d/g/dev"), tarfile.TarInfo("d/g")
    link.type, link.linkname, device.type, folder.type = (
        tarfile.SYMTYPE,
        "/etc/passwd",
        tarfile.CHRTYPE,
        tarfile.DIRTYPE,
    )
    data = tar_bytes({"d/g/1": b"x", "d/h/../../2": b"up", "/d/h/3": b"y"}, link, device, folder)
    table = read_items(csv_file(tmp_path, data, "d.tar"))
    assert table.ids == ("g/1", "h/3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.tar"]


def test_what_is_too_large_is_refused_before_it_is_kept(tmp_path: Path) -> None:
    path = csv_file(tmp_path, tar_bytes({"d/g/1": b"x" * 100, "d/h/2": b"y"}), "d.tar")
    for limits, complaint in (
        (DocumentLimits(document_bytes=50), "g/1: a document of more than 50 bytes"),
        (DocumentLimits(items=1), "more than 1 documents"),
        (DocumentLimits(total_bytes=1000), "an archive of more than 1000 bytes"),
    ):
        with pytest.raises(InputError, match=complaint):
            read_documents(path, limits)
    folder = folder_of(tmp_path / "f", {"g/1": "x" * 100, "h/2": "y"})
    with pytest.raises(InputError, match="a document of more than 50 bytes"):
        read_documents(folder, DocumentLimits(document_bytes=50))
    with pytest.raises(InputError, match="more than"):
        read_documents(folder, DocumentLimits(total_bytes=60))


def test_a_document_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("d/g/1", "d/h/1", "d/g/1"):
            archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(InputError, match="g/1 is there twice"):
        read_items(csv_file(tmp_path, out.getvalue(), "d.tar"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_tar_that_is_cut_anywhere_is_refused(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    random = np.random.default_rng(0)
    data = pack(tar_bytes({f"d/g/{k}": random.bytes(700) for k in range(5)})[: 5 * 1536 + 1024])
    for end in range(1536, len(data) - 512, 512):  # of the zeros at the end one block is enough
        with pytest.raises(InputError):
            read_items(csv_file(tmp_path, data[:end], "d.tar"))


def test_a_message_is_split_in_headers_own_and_quoted_lines(tmp_path: Path) -> None:
    text = (
        "From: a@b.org (A B)\nSubject: Re: =?utf-8?q?G=C3=B6del?=\n  and more\nOrganization: C\nX-Other: no\n\n"
        "In article <1@x> C writes:\n> > older\n>old\n|> and this\nKL> too\n\nOwn > text.\nC wrote:\n"
    )
    found = split_message(text)
    assert found["subject"] == "Re: G\xf6del and more"
    assert (found["from"], found["organization"]) == ("a@b.org (A B)", "C")
    assert found["quoted"].split() == ["older", "old", "and", "this", "KL>", "too"]
    assert found["text"] == "Own > text."
    table = read_items(folder_of(tmp_path, {"1.txt": text, "2.txt": "Dear all: no headers"}))
    assert table.fields == MESSAGE_FIELDS
    assert table.column("subject")[1] == ""
    assert table.column("text")[1] == "Dear all: no headers"


def test_a_text_that_only_looks_like_headers_stays_whole() -> None:
    for text in ("Note: this is no message.\n\nBody", "", "From here on: no", "Subject", "Subject: =?x?q?=FF?=\n\nb"):
        assert "text" in split_message(text)
    assert split_message("Note: this is no message.\n\nBody") == {"text": "Note: this is no message.\n\nBody"}


@given(st.text(max_size=200))
def test_no_text_breaks_the_splitting_of_messages(text: str) -> None:
    assert "text" in split_message(text)
    assert "text" in split_message("Subject: " + text)


@given(st.lists(st.integers(1, 60), min_size=20, max_size=60), st.integers(0, 5))
def test_sets_of_whole_clusters_have_every_item_once_and_the_size_asked_for(sizes: list[int], seed: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    try:
        sets = whole_cluster_sets(labels, 60, 120, seed)
    except InputError:
        assert sum(sizes) < 120  # nothing else is too hard for clusters of up to 60
        return
    assert sorted(np.concatenate(sets).tolist()) == list(range(len(labels)))
    assert all(60 <= len(rows) <= 120 for rows in sets)
    assert sum(len(set(labels[rows].tolist())) for rows in sets) == len(sizes)
    assert all(map(np.array_equal, sets, whole_cluster_sets(labels, 60, 120, seed)))


def test_drawn_sets_are_disjoint_and_of_the_clusters_asked_for() -> None:
    labels = np.array([f"g{k}" for k in np.random.default_rng(0).integers(0, 20, 3000)])
    sets = drawn_sets(labels, 100, 5, 10, 8, seed=3, clusters=[f"g{k}" for k in range(12)])
    assert [len(rows) for rows in sets] == [100] * 8
    assert len(set(np.concatenate(sets).tolist())) == 800
    assert all(5 <= len(set(labels[rows])) <= 10 for rows in sets)
    assert set(labels[np.concatenate(sets)]) <= {f"g{k}" for k in range(12)}
    assert all(map(np.array_equal, sets, drawn_sets(labels, 100, 5, 10, 8, 3, [f"g{k}" for k in range(12)])))


def test_sets_that_cannot_be_made_are_refused() -> None:
    labels = np.repeat(np.arange(4), 30)
    for bad, complaint in (
        (lambda: whole_cluster_sets(labels, 60, 20, 0), "needs 1 <= low <= high"),
        (lambda: whole_cluster_sets(labels, 5, 20, 0), "a cluster has 30 items"),
        (lambda: whole_cluster_sets(labels, 40, 50, 0), "do not go into sets"),
        (lambda: whole_cluster_sets(labels[:0], 5, 20, 0), "do not go into sets"),
        (lambda: drawn_sets(labels, 10, 3, 6, 1, 0), "of 4 clusters"),
        (lambda: drawn_sets(labels, 100, 2, 2, 1, 0), "have 60 items left"),
        (lambda: drawn_sets(labels, 60, 2, 2, 3, 0), "clusters have items left"),
    ):
        with pytest.raises(InputError, match=complaint):
            bad()


def test_cora_has_1295_citations_of_112_papers(data_folder: Path) -> None:
    table = read_items(data_folder / "cora-citations" / "cora.csv", label="2", fields=["3", "5"])
    assert len(table) == 1295
    assert len(set(table.labels or ())) == 112
    sets = whole_cluster_sets(table.clusters(), 60, 120, seed=0)
    assert all(60 <= len(rows) <= 120 for rows in sets)
    assert sum(map(len, sets)) == 1295


def test_twenty_newsgroups_has_18846_posts_of_20_groups(data_folder: Path) -> None:
    table = read_items(data_folder / "20newsgroups" / "20news-bydate-all.tar.xz")
    assert len(table) == 18846
    assert len(Counter(table.labels)) == 20
    assert table.fields == MESSAGE_FIELDS
    assert table.sets is None
    assert sum(map(bool, table.column("subject"))) > 18_800
