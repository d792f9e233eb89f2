"""CoNLL-U with entities, plain text, made-up stories, and the page that shows a document."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.coreference.formats.conll import parse_conll
from netclust.models.coreference.formats.conllu import parse_conllu
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.formats.html_view import to_html
from netclust.models.coreference.formats.plain import plain_document, words_of
from netclust.models.coreference.formats.reading import read_documents
from netclust.models.coreference.formats.sentences import sentence_starts
from netclust.models.coreference.formats.writing import to_conll
from netclust.models.coreference.story_simulator import simulate_documents


def row(number: str, word: str, misc: str = "_", tags: str = "_\t_\t_") -> str:
    return f"{number}\t{word}\t{tags}\t_\t_\t_\t_\t{misc}\n"


def conllu(*misc: str, order: str = "eid-etype-head-other") -> str:
    words = "".join(row(str(k + 1), f"w{k}", m) for k, m in enumerate(misc))
    return f"# newdoc id = d\n# global.Entity = {order}\n{words}\n"


def marked(text: str) -> list[tuple[int, int, int]]:
    [document] = parse_conllu(text, "f")
    return [tuple(mention) for mention in document.mentions]


def test_a_file_of_several_documents_keeps_words_sentences_tags_and_speakers_apart() -> None:
    text = (
        "# newdoc id = GUM_a\n# global.Entity = GRP-etype-infstat\n# sent_id = 1\n# speaker = Ann\n"
        + row("1-2", "Don't", "Entity=(9-x)")
        + row("1", "Do", tags="do\tAUX\tVB")
        + row("2", "n't", tags="not\tPART\tRB")
        + row("2.1", "you", "Entity=(8-person)")
        + row("3", "go", "SpaceAfter=No|Entity=(1-event-new)", tags="go\tVERB\tVB")
        + "\n# sent_id = 2\n"
        + row("1", "It", "Entity=(1-event-giv)|Bridge=1<2", tags="it\tPRON\tPRP")
        + "\n# newdoc id = GUM_b\n"
        + row("1", "It", "Entity=(1-object-new)", tags="it\tPRON\t_")
    )
    notes: list[str] = []
    first, second = parse_conllu(text, "f", notes=notes)
    assert (first.name, second.name, first.part, first.genre) == ("GUM_a", "GUM_b", 0, "")
    assert first.words == ("Do", "n't", "go", "It")
    assert first.sentences == (0, 3, 4)
    assert (first.pos, second.pos) == (("VB", "RB", "VB", "PRP"), ("PRON",))
    assert first.lemmas == ("do", "not", "go", "it")
    assert (first.speakers, second.speakers) == (("Ann", "Ann", "Ann", "-"), None)
    assert first.mentions == (Mention(2, 3, 0), Mention(3, 4, 0))
    assert second.mentions == (Mention(0, 1, 0),)
    assert len(notes) == 2  # of the range and of the empty node


@pytest.mark.parametrize(
    ("misc", "expected"),
    [
        (("Entity=(e1-person(e2-place)", "Entity=e1)"), [(0, 2, 0), (0, 1, 1)]),
        (("Entity=(e1-person-1(e2-place-1-x", "Entity=e2)(e3)e1)"), [(0, 2, 0), (1, 2, 2)]),
        (("Entity=(e1", "Entity=(e2", "Entity=e1)", "Entity=e2)"), [(0, 3, 0), (1, 4, 1)]),
        (("Entity=(e1-a", "Entity=(e1-a)", "Entity=e1)"), [(0, 3, 0), (1, 2, 0)]),
        (
            ("Entity=(e5[1/2]-x-1", "Entity=e5[1/2])", "_", "Entity=(e5[2/2]-x-1)", "Entity=(e5)"),
            [(0, 2, 0), (4, 5, 0)],
        ),
    ],
)
def test_entities_that_are_written_together_are_not_mixed_up(
    misc: tuple[str, ...], expected: list[tuple[int, int, int]]
) -> None:
    assert marked(conllu(*misc)) == expected


def test_the_order_that_the_header_tells_is_kept_to() -> None:
    text = conllu("Entity=(person-7-new", "Entity=person-7)", "Entity=(object-7)", order="etype-eid-infstat")
    assert marked(text) == [(0, 2, 0), (2, 3, 0)]


def test_a_mention_in_pieces_is_told() -> None:
    notes: list[str] = []
    parse_conllu(conllu("Entity=(e5[1/2]-x)", "_", "Entity=(e5[2/2]-x)"), "f", notes=notes)
    assert notes == ["f line 3: of a mention of e5 in pieces, the first is taken"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (conllu("Entity=(e1-person"), "f line 3: a mention of entity e1 begins here and does not end"),
        (conllu("_", "Entity=e1)"), "f line 4: a mention of entity e1 ends here that did not begin"),
        (conllu("Entity=e1"), "f line 3: 'e1' are no entities"),
        (conllu("Entity=(-person)"), "f line 3: '(-person)' has a bracket without a name"),
        ("1\tword\n", "f line 1: 2 columns"),
        (row("x", "word"), "f line 1: 'x' is no number of a word"),
        (row("1", ""), "f line 1: the word is empty"),
        ("# global.Entity =\n", "f line 1: global.Entity says nothing"),
        ("\n", "f: no words"),
    ],
)
def test_broken_conllu_is_not_read_as_something_else(text: str, what: str) -> None:
    with pytest.raises(InputError, match=re.escape(what)):
        parse_conllu(text, "f")


def test_conllu_is_told_by_its_content_and_written_as_conll(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text(conllu("Entity=(e1-person(e2-place)", "Entity=e1)"))
    [document] = read_documents(path)
    assert document == read_documents(path, format="conllu")[0]
    assert parse_conll(to_conll(document), "f") == [document]


# Plain text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'd've gone; you'll see.", "I 'd 've gone ; you 'll see ."),
        ("He can’t. They cannot.", "He ca n’t . They can not ."),
        ("John's and the dogs' tails", "John 's and the dogs ' tails"),
        ("Mr. and Mrs. Hale, Dr. J. Poe", "Mr. and Mrs. Hale , Dr. J. Poe"),
        ("at 10:30 p.m. in the U.S. for $3,000.50", "at 10:30 p.m. in the U.S. for $ 3,000.50"),
        ("well-known — yes... (O'Brien)", "well-known — yes ... ( O'Brien )"),
        ("No. 7? No. You and I. He", "No. 7 ? No . You and I . He"),
        ("see https://a.b/c?d=1, or x.y@z.org.", "see https://a.b/c?d=1 , or x.y@z.org ."),
        ("«Привет!» हिन्दी है। 彼も。 naïve", "« Привет ! » हिन्दी है । 彼 も 。 naïve"),
    ],
)
def test_words_are_not_cut_otherwise_than_in_the_treebank(text: str, words: str) -> None:
    assert words_of(text) == words.split()


@given(st.text(max_size=60))
def test_no_character_is_lost_or_made_up(text: str) -> None:
    assert "".join(words_of(text)) == "".join(re.findall(r"\S", text))


def test_an_endless_word_does_not_end_the_program() -> None:
    assert words_of("a" + "'s" * 5000) == ["a", *["'s"] * 5000]
    assert len(words_of("a.a." * 5000)) == 1
    assert len(words_of("''" * 5000)) == 5000


def test_sentences_do_not_run_past_paragraphs_nor_stop_in_titles_and_quotes() -> None:
    document = plain_document('A Tale\n\n"Stop!" said Mr. Hale. He\nran.\r\n\r\nThe end', "tale")
    sentences = [document.words[a:b] for a, b in zip(document.sentences, document.sentences[1:], strict=False)]
    assert [" ".join(sentence) for sentence in sentences] == [
        "A Tale",
        '" Stop ! " said Mr. Hale .',
        "He ran .",
        "The end",
    ]
    assert (document.pos, document.mentions) == (None, ())


def test_no_mention_is_cut_by_a_guessed_sentence() -> None:
    words = ["The", "band", "Oh", "!", "Yes", "played", ".", "Good", "."]
    assert sentence_starts(words) == [0, 4, 7, 9]
    assert sentence_starts(words, [Mention(0, 5, 0)]) == [0, 7, 9]
    assert sentence_starts([]) == [0]


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="no words"):
        plain_document(" \n\n ")


# Made-up stories


def test_stories_do_not_depend_on_how_many_there_are_and_differ_by_seed() -> None:
    assert simulate_documents(3, 5) == simulate_documents(8, 5)[:3]
    assert simulate_documents(3, 5) != simulate_documents(3, 6)
    assert simulate_documents(0) == []
    with pytest.raises(InputError, match="0 or more"):
        simulate_documents(-1)


def test_stories_have_what_coreference_is_about() -> None:
    documents = simulate_documents(40, 0, with_pos=True, with_speakers=True)
    texts = {document.text(mention).lower() for document in documents for mention in document.mentions}
    assert {"he", "him", "his", "she", "her", "it", "they", "i", "you", "my brother"} <= texts
    for document in documents:
        assert document.pos is not None
        assert document.speakers is not None
        assert 12 <= len(document.sentences) - 1 <= 24
        spans = [mention.span for mention in document.mentions]
        assert len(set(spans)) == len(spans)
        assert parse_conll(to_conll(document), "f")[0].mentions == document.mentions
        for mention in document.mentions:  # "I" is who speaks, and nobody speaks outside of quotes
            assert (document.words[mention.start] == "I") <= (document.speakers[mention.start] != "-")
    sizes = [len(mentions) for document in documents for mentions in document.entities().values()]
    assert 0.2 < sizes.count(1) / len(sizes) < 0.7
    assert max(sizes) > 8
    nested = [
        m
        for d in documents
        for m in d.mentions
        if any(o.start <= m.start < m.end <= o.end for o in d.mentions if o != m)
    ]
    assert len(nested) > 20


def test_an_owner_in_a_story_is_never_what_it_owns_and_two_people_are_neither_of_them() -> None:
    owned = joined = 0
    for document in simulate_documents(20, 3, with_pos=True):
        assert document.pos is not None
        for mention in document.mentions:
            words, tags = (column[mention.start : mention.end] for column in (document.words, document.pos))
            inner = [m for m in document.mentions if mention.start <= m.start < m.end <= mention.end and m != mention]
            assert all(other.entity != mention.entity for other in inner)
            owned += "PRP$" in tags[:-1]
            joined += "and" in words
            assert "and" not in words or len(inner) == 2
    assert owned > 20
    assert joined > 10


def test_nobody_in_a_story_is_both_he_and_she() -> None:
    gender = {"he": "m", "him": "m", "his": "m", "she": "f", "her": "f", "it": "n", "they": "p"}
    for document in simulate_documents(20, 3):
        found: dict[int, str] = {}
        for mention in document.mentions:
            kind = gender.get(document.text(mention).lower())
            assert kind is None or found.setdefault(mention.entity, kind) == kind


# The page


class Tags(HTMLParser):
    """Counts tags and sees that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def tags_of(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert parser.stack == []
    return parser.seen


def test_hostile_words_names_and_titles_are_inert() -> None:
    evil = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;", "</style>")
    document = Document(evil[0], evil, (0, 4), mentions=(Mention(0, 1, 0), Mention(1, 2, 0)))
    for page in (to_html(document), to_html(document, title=evil[1]), to_html(document, key=document)):
        tags = tags_of(page)
        assert {tag for tag, _ in tags}.isdisjoint({"script", "img", "link", "iframe", "a"})
        assert not any(name.startswith("on") or name in ("src", "href") for _, attrs in tags for name in attrs)
        body = unescape(re.sub(r"<[^>]*>", "", page[page.index("<main>") :]))
        assert all(word in body for word in evil)


def test_the_page_needs_nothing_from_elsewhere_and_fits_a_phone() -> None:
    page = to_html(simulate_documents(1)[0])
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page
    assert "default-src 'none'" in page


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 6), st.integers(-1, 2)), max_size=8))
def test_boxes_are_closed_in_order_even_if_mentions_cross_each_other_and_sentences(
    drawn: list[tuple[int, int, int]],
) -> None:
    document = Document("d", tuple("abcdefghi"), (0, 4, 9)).with_mentions(
        Mention(start, min(start + size, 9), entity) for start, size, entity in drawn
    )
    page = to_html(document)
    tags_of(page)
    text = page[page.index("<main>") :]
    numbers = sorted(int(number) for number in re.findall(r"<sub>(\d+)</sub>", text))
    assert numbers == sorted(mention.entity for mention in document.mentions if mention.entity >= 0)


def test_entities_are_told_apart_by_number_colour_and_name() -> None:
    words = ("Ann", "Lee", "met", "her", "dog", ".", "She", "left", ".")
    mentions = (Mention(0, 2, 4), Mention(3, 5, 9), Mention(3, 4, 4), Mention(6, 7, 4))
    page = to_html(Document("d", words, (0, 6, 9), mentions=mentions))
    assert '<span class="s"><span class="m" style="--h:190">her<sub>4</sub></span> dog<sub>9</sub></span>.' in page
    assert '<li><span class="m" style="--h:190">Ann Lee<sub>4</sub></span> 3</li>' in page
    hues = {int(hue) for hue in re.findall(r"--h:(\d+)", to_html(_pairs(12)))}
    assert len(hues) == 12


def _pairs(count: int) -> Document:
    words = tuple(f"w{k}" for k in range(2 * count))
    return Document("d", words, (0, 2 * count), mentions=tuple(Mention(k, k + 1, k // 2) for k in range(2 * count)))


def test_mentions_that_the_key_does_not_have_so_are_framed() -> None:
    document = _pairs(3)
    key = document.with_mentions([*document.mentions[:4], Mention(4, 6, 2)])
    page = to_html(document, key=key)
    assert page.count('class="m off"') == 2
    assert "2 mentions are wrong (framed) and 1 are missing" in page
    assert "off" not in re.sub(r"<style>.*</style>", "", to_html(document, key=document), flags=re.DOTALL)
