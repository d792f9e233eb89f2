"""CoNLL-2012 and its sparser layouts: what is read, what is refused, and that what is written is read again."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.coreference.formats.conll import parse_conll, read_conll
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.formats.reading import find_format, read_documents
from netclust.models.coreference.formats.writing import to_conll, write_conll
from netclust.models.experiments.coreference.litbank import read_split, split_files

FULL = """#begin document (bc/radio/00/radio_0001); part 000
bc/radio/00/radio_0001   0   0      Ann   NNP  (TOP(S(NP*)      -    -   -   Host_1   (PERSON)   (ARG0*)     (12)
bc/radio/00/radio_0001   0   1   called   VBD         (VP*   call   01   1   Host_1          *     (V*)        -
bc/radio/00/radio_0001   0   2      her  PRP$         (NP*      -    -   -   Host_1          *   (ARG1*   (3|(12)
bc/radio/00/radio_0001   0   3      dog    NN         *)))      -    -   -   Host_1          *       *)       3)

bc/radio/00/radio_0001   0   0       No    UH       (TOP*)      -    -   -        -          *        -

#end document
#begin document (bc/radio/00/radio_0001); part 001
bc/radio/00/radio_0001   1   0   It   PRP   (TOP(NP*))   -   -   -   -   *   (12)

#end document
"""
THREE = (
    "# begin document \n0\tRex\t(1)\n1\tsaw\t_\n2\this\t(2(1)\n3\tbone\t2)\n4\t.\t_\n"
    "5\tIt\t(2)\n6\tfell\t_\n7\t.\t_\n# end document\n"
)


def in_columns(*fields: str, name: str = "d") -> str:
    """A file of two columns with these brackets, each at a word of its own."""
    return f"#begin document ({name})\n" + "".join(f"w{k}\t{f}\n" for k, f in enumerate(fields)) + "\n#end document\n"


def spans(text: str) -> list[tuple[int, int, int]]:
    [document] = parse_conll(text, "f")
    return [tuple(mention) for mention in document.mentions]


def test_no_column_of_the_shared_task_is_lost_or_shifted_by_the_columns_of_verbs() -> None:
    first, second = parse_conll(FULL, "f")
    assert (first.name, first.part, first.genre, second.part) == ("bc/radio/00/radio_0001", 0, "bc", 1)
    assert first.words == ("Ann", "called", "her", "dog", "No")
    assert first.sentences == (0, 4, 5)
    assert first.pos == ("NNP", "VBD", "PRP$", "NN", "UH")
    assert first.lemmas == ("-", "call", "-", "-", "-")
    assert first.parse is not None
    assert first.parse[0] == "(TOP(S(NP*)"
    assert first.speakers == ("Host_1",) * 4 + ("-",)
    assert first.named == ("(PERSON)", "*", "*", "*", "*")
    assert first.mentions == (Mention(0, 1, 12), Mention(2, 4, 3), Mention(2, 3, 12))


def test_entities_of_two_parts_are_not_joined_and_void_columns_are_absent() -> None:
    second = parse_conll(FULL, "f")[1]
    assert second.mentions == (Mention(0, 1, 12),)
    assert second.lemmas is None
    assert second.speakers is None
    assert second.named is None
    assert second.pos == ("PRP",)


def test_an_empty_last_column_is_not_taken_for_a_missing_one() -> None:
    row = "d\t0\t{}\t{}\t_\t_\t_\t_\t_\t_\t_\t_\t{}\n"
    rows = row.format(0, "Ann", "(0)") + row.format(1, "left", "") + "\n" + row.format(0, "Now", "")
    [document] = parse_conll(f"#begin document (d); part 0\n{rows}\n#end document\n", "f")
    assert document.words == ("Ann", "left", "Now")
    assert document.sentences == (0, 2, 3)
    assert document.pos is document.parse is document.lemmas is document.speakers is document.named is None
    assert document.mentions == (Mention(0, 1, 0),)


def test_three_columns_without_a_name_or_sentences_still_have_both(tmp_path: Path) -> None:
    path = tmp_path / "GUM_tale.conll"
    path.write_text(THREE)
    [document] = read_conll(path)
    assert document.name == "GUM_tale"
    assert document.words[:4] == ("Rex", "saw", "his", "bone")
    assert document.sentences == (0, 5, 8)
    assert [tuple(m) for m in document.mentions] == [(0, 1, 1), (2, 4, 2), (2, 3, 1), (5, 6, 2)]


def test_five_columns_of_scorer_tests_with_a_stray_tab_are_read() -> None:
    text = "#begin document (Case); \nt\t0\t0\ta\t(0\nt\t0\t1\tb\t0)\nt\t0\t2\t.\t-\t\n#end document\n"
    [document] = parse_conll(text, "f")
    assert (document.name, document.words, document.mentions) == ("Case", ("a", "b", "."), (Mention(0, 2, 0),))


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "d.conll"
    path.write_bytes(b"\xef\xbb\xbf" + FULL.replace("\n", "\r\n").encode())
    assert read_conll(path) == parse_conll(FULL, "f")


def test_hash_signs_are_words_in_narrow_files_and_comments_elsewhere() -> None:
    text = "#begin document (d)\n# a remark\n#tag\t(1)\n\n#end document\n"
    assert parse_conll(text, "f")[0].words == ("#tag",)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("(3", "(3)", "3)"), [(0, 3, 3), (1, 2, 3)]),  # one entity in itself
        (("(3(3", "-", "3)", "3)"), [(0, 4, 3), (0, 3, 3)]),  # innermost first
        (("(1", "(2", "1)", "2)"), [(0, 3, 1), (1, 4, 2)]),  # crossing
        (("(1|(2", "2)|1)"), [(0, 2, 1)]),  # the same words twice: the first entity
        (("(3|(3)|3)",), [(0, 1, 3)]),
        (("(5", "5)|(5)"), [(0, 2, 5), (1, 2, 5)]),
        (("(123456789012)", "_", "*", ""), [(0, 1, 123456789012)]),
    ],
)
def test_brackets_are_not_paired_otherwise_than_the_official_scorer_does(
    fields: tuple[str, ...], expected: list[tuple[int, int, int]]
) -> None:
    assert spans(in_columns(*fields)) == expected


def test_a_mention_that_is_passed_over_is_told() -> None:
    notes: list[str] = []
    parse_conll(in_columns("(1|(2", "2)|1)", "(1)|(1)"), "f.conll", notes=notes)
    assert notes == [
        "f.conll line 4: the same words are a mention again, the first one is kept",
        "f.conll line 2: the same words are a mention of another entity, the first one is kept",
    ]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (in_columns("(1", "-"), "line 2", "does not end in its document"),
        (in_columns("-", "1)"), "line 3", "did not begin"),
        (in_columns("-", "(x)"), "line 3", "is no coreference"),
        (in_columns("(1||(2)", "1)"), "line 2", "is no coreference"),
        (in_columns("(1)|"), "line 2", "is no coreference"),
        (in_columns("(-1)"), "line 2", "is no coreference"),
        (in_columns("(99999999999999999999)"), "line 2", "too large"),
        ("word\t-\n" + in_columns("-"), "line 1", "outside of a document"),
        (in_columns("-") + "word\t-\n", "line 5", "outside of a document"),
        ("#end document\n", "line 1", "did not begin"),
        ("#begin document (d)\nw\t-\n", "line 1", "no `#end document`"),
        ("#begin document (d)\n#begin document (e)\n", "line 2", "before that of line 1"),
        (in_columns("-") * 2, "line 5", "twice"),
        ("#begin document (d)\na\t-\nb\t-\t-\n#end document\n", "line 3", "3 columns, but line 2 has 2"),
        ("#begin document (d)\na\t-\n\n1\tb\t-\n#end document\n", "line 4", "3 columns, but line 2 has 2"),
        ("#begin document (d)\na b c d\n#end document\n", "line 2", "4 columns"),
        ("#begin document (d)\n0\t\t-\n#end document\n", "line 2", "word is empty"),
        ("once upon a time\n", "line 1", "outside of a document"),
        ("\n", "f.conll", "no `#begin document`"),
    ],
)
def test_a_broken_file_is_not_read_as_something_else(text: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_conll(text, "f.conll")
    assert str(caught.value).startswith("f.conll")
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_bytes_that_are_not_utf8_are_placed(tmp_path: Path) -> None:
    path = tmp_path / "d.conll"
    path.write_bytes(b"#begin document (d)\ncaf\xe9\t-\n#end document\n")
    with pytest.raises(InputError, match=r"d\.conll line 2: not UTF-8"):
        read_conll(path)


# Writing


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Any text, with mentions that brackets can tell: those of one entity do not cross."""
    word = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), min_size=1, max_size=4)
    words = draw(st.lists(word, min_size=1, max_size=12))
    n = len(words)
    inner = draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()
    kept: dict[tuple[int, int], int] = {}
    for start, end, entity in draw(st.lists(st.tuples(*(st.integers(0, n),) * 2, st.integers(0, 3)), max_size=12)):
        crosses = any(e == entity and (a < start < b < end or start < a < end < b) for (a, b), e in kept.items())
        if start < end and not crosses:
            kept.setdefault((start, end), entity)
    column = st.none() | st.lists(st.sampled_from(("x", "y z", "*", "-")), min_size=n, max_size=n).map(
        lambda values: tuple(values) if {"x", "y z"} & set(values) else None
    )
    columns = {name: draw(column) for name in ("pos", "lemmas", "parse", "speakers", "named")}
    name = draw(st.sampled_from(("a", "bc/cctv/00/cctv_0000", "(odd); part 7", "two words")))
    genre = "bc" if name.startswith("bc/") else ""
    document = Document(
        name, tuple(words), (0, *sorted(inner), n), part=draw(st.integers(0, 2000)), genre=genre, **columns
    )
    return document.with_mentions(Mention(start, end, entity) for (start, end), entity in kept.items())


@given(documents())
def test_what_is_written_is_not_read_as_anything_else(document: Document) -> None:
    text = to_conll(document)
    [again] = parse_conll(text, "f")
    assert again == document
    assert to_conll(again) == text


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 1)), max_size=8))
def test_mentions_that_cross_in_one_entity_are_told_and_never_written_wrong(
    drawn: list[tuple[int, int, int]],
) -> None:
    plain = Document("d", tuple("abcdefghij"), (0, 10))
    unique = {(start, start + size): entity for start, size, entity in drawn}
    document = plain.with_mentions(Mention(start, end, entity) for (start, end), entity in unique.items())
    notes: list[str] = []
    [again] = parse_conll(to_conll(document, notes=notes), "f")
    assert set(again.mentions) <= set(document.mentions)
    assert len(document.mentions) - len(again.mentions) == len(notes)
    if notes:
        with pytest.raises(InputError, match="cross"):
            to_conll(document)


def test_mentions_without_an_entity_do_not_become_one() -> None:
    document = Document("d", ("a", "b"), (0, 2), mentions=(Mention(0, 1), Mention(1, 2)))
    assert parse_conll(to_conll(document), "f")[0].mentions == ()


@pytest.mark.parametrize("word", ["a\tb", "a\nb", "\r", ""])
def test_a_word_that_breaks_its_line_is_not_written(word: str) -> None:
    with pytest.raises(InputError, match="d: "):
        to_conll(Document("d", ("a", word), (0, 2)))


def test_standard_output_is_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    documents = parse_conll(FULL, "f")
    write_conll(documents, "-")
    assert parse_conll(capsys.readouterr().out, "f") == documents


# Files, folders and LitBank


def test_packed_files_of_a_folder_are_read_in_order_and_others_left(tmp_path: Path) -> None:
    (tmp_path / "b.v4_gold_conll.gz").write_bytes(gzip.compress(in_columns("(1)", name="b").encode()))
    (tmp_path / "a.conll.xz").write_bytes(lzma.compress(in_columns("(1)", name="a").encode()))
    (tmp_path / "c.txt").write_text("Plain words.")
    (tmp_path / "README.md").write_text("not read")
    (tmp_path / ".hidden.txt").write_text("not read")
    (tmp_path / "folder.txt").mkdir()
    assert [document.name for document in read_documents(tmp_path)] == ["a", "b", "c"]


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no file named"):
        read_documents(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_documents(tmp_path / "none.conll")
    with pytest.raises(InputError, match="not known"):
        read_documents(tmp_path, format="xml")  # type: ignore[arg-type]
    (tmp_path / "a.txt").write_text("  \n")
    with pytest.raises(InputError, match=r"a\.txt: no words"):
        read_documents(tmp_path)


def test_a_document_in_two_files_is_not_read_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.conll").write_text(in_columns("(1)"))
    with pytest.raises(InputError, match=r"b\.conll: document d part 0 is in a\.conll too"):
        read_documents(tmp_path)


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(FULL.encode()))))
    assert read_documents("-") == parse_conll(FULL, "f")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Ann left.")))
    assert [document.name for document in read_documents("-")] == ["stdin"]


def test_a_table_without_its_first_line_is_not_taken_for_a_text() -> None:
    assert find_format("bc/x 0 0 Ann NNP * - - - - * -\n") == "conll"
    assert find_format("The year was a long one and 7 of the 12 men went home again.") == "text"


def test_litbank_is_read_as_counted_and_written_back(data_folder: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    documents = read_documents(data_folder / "coref" / "litbank" / "conll", notes=notes)
    sizes = [len(mentions) for document in documents for mentions in document.entities().values()]
    assert len(documents) == 100
    assert sum(len(document.sentences) - 1 for document in documents) == 8_562
    assert sum(len(document.words) for document in documents) == 210_532
    assert sum(len(document.mentions) for document in documents) == 29_103 == sum(sizes)
    assert (len(sizes), sizes.count(1), notes) == (7_927, 5_763, [])
    write_conll(documents, tmp_path / "all.conll")
    assert read_documents(tmp_path / "all.conll") == documents


def test_splits_of_litbank_share_no_document(data_folder: Path) -> None:
    folder = data_folder / "coref" / "litbank"
    for number in range(10):
        parts = [split_files(folder, number, part) for part in ("train", "dev", "test")]
        assert [len(part) for part in parts] == [80, 10, 10]
        assert len({file for part in parts for file in part}) == 100
    split = read_split(folder, 0)
    assert [document.name for document in split.dev] == [file.stem for file in split_files(folder, 0, "dev")]


def test_a_split_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="splits 0 to 9"):
        read_split(tmp_path, 10)
    with pytest.raises(InputError, match=r"train\.ids: not found"):
        read_split(tmp_path, 0)
    ids = tmp_path / "tenfold_splits" / "0" / "train.ids"
    ids.parent.mkdir(parents=True)
    ids.write_text("one.tsv\n")
    with pytest.raises(InputError, match=r"train\.ids line 1: .*one\.conll is not there"):
        read_split(tmp_path, 0)
    ids.write_text("\n")
    with pytest.raises(InputError, match="names no document"):
        read_split(tmp_path, 0)
    with pytest.raises(InputError, match="parts train, dev, test"):
        split_files(tmp_path, 0, "all")
