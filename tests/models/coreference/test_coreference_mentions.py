"""What is known of mentions: facts of pronouns, names and nominals, heads, direct speech, and odd input."""

from __future__ import annotations

import pytest
from coreference_texts import odd_documents, text
from hypothesis import given

from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.models.coreference.mentions.classes import word_classes
from netclust.models.coreference.mentions.describing import describe_mentions
from netclust.models.coreference.mentions.heads import Heads
from netclust.models.coreference.mentions.lexicon.facts import MentionFacts
from netclust.models.coreference.mentions.lexicon.names import FEMALE_NAMES, MALE_NAMES, TITLES
from netclust.models.coreference.mentions.lexicon.nouns import singular
from netclust.models.coreference.mentions.lexicon.pronouns import PRONOUNS
from netclust.models.coreference.mentions.named import named_spans, named_words
from netclust.models.coreference.mentions.parses import constituents
from netclust.models.coreference.mentions.quotes import quoted_words


def span_of(document: Document, phrase: str) -> Span:
    wanted = tuple(phrase.split())
    n = len(wanted)
    return next(Span(i, i + n) for i in range(len(document.words)) if document.words[i : i + n] == wanted)


def facts(sentences: str, phrase: str, **columns: tuple[str, ...]) -> MentionFacts:
    document = text(sentences, **columns)
    return describe_mentions(document, [span_of(document, phrase)])[0]


@pytest.mark.parametrize(
    ("word", "form", "gender", "number", "animacy", "person"),
    [
        ("I", "i", "unknown", "singular", "animate", "first"),
        ("myself", "i", "unknown", "singular", "animate", "first"),
        ("us", "we", "unknown", "plural", "animate", "first"),
        ("You", "you", "unknown", "unknown", "animate", "second"),
        ("thy", "you", "unknown", "singular", "animate", "second"),
        ("him", "he", "male", "singular", "animate", "third"),
        ("His", "he", "male", "singular", "animate", "third"),
        ("herself", "she", "female", "singular", "animate", "third"),
        ("her", "she", "female", "singular", "animate", "third"),
        ("its", "it", "neutral", "singular", "inanimate", "third"),
        ("them", "they", "unknown", "plural", "unknown", "third"),
        ("'em", "they", "unknown", "plural", "unknown", "third"),
        ("whom", "who", "unknown", "unknown", "animate", "third"),
        ("these", "these", "unknown", "plural", "unknown", "third"),
        ("nobody", "nobody", "unknown", "singular", "animate", "third"),
        ("everything", "everything", "neutral", "singular", "inanimate", "third"),
    ],
)
def test_a_pronoun_is_not_taken_for_another(
    word: str, form: str, gender: str, number: str, animacy: str, person: str
) -> None:
    known = facts(f"so {word} came", word)
    assert known.kind == "pronoun"
    assert (known.form, known.gender, known.number, known.animacy, known.person) == (
        form, gender, number, animacy, person,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "phrase", "head", "form", "gender", "animacy"),
    [
        ("then Mrs. John Dashwood came", "Mrs. John Dashwood", "Dashwood", "titled", "female", "animate"),
        ("then Miss Temple came", "Miss Temple", "Temple", "titled", "female", "animate"),
        ("then Captain Wentworth came", "Captain Wentworth", "Wentworth", "titled", "male", "animate"),
        ("then Dr. Grant came", "Dr. Grant", "Grant", "titled", "unknown", "animate"),
        ("then Tom Sawyer came", "Tom Sawyer", "Sawyer", "name", "male", "animate"),
        ("then Emma came", "Emma", "Emma", "name", "female", "animate"),
        ("then Knightley came", "Knightley", "Knightley", "name", "unknown", "unknown"),
        ("then poor Fanny came", "poor Fanny", "Fanny", "name", "female", "animate"),
        ("we saw London then", "London", "London", "name", "neutral", "inanimate"),
        ("we saw Park Lane then", "Park Lane", "Lane", "name", "neutral", "inanimate"),
        ("we saw the Thames then", "the Thames", "Thames", "name", "neutral", "inanimate"),
        ("then Charlotte Temple came", "Charlotte Temple", "Temple", "name", "female", "animate"),
    ],
)
def test_a_name_keeps_its_head_title_and_gender(
    sentence: str, phrase: str, head: str, form: str, gender: str, animacy: str
) -> None:
    document = text(sentence)
    known = describe_mentions(document, [span_of(document, phrase)])[0]
    assert (known.kind, document.words[known.head]) == ("name", head)
    assert (known.form, known.gender, known.animacy, known.number) == (form, gender, animacy, "singular")
    assert known.person == "none"


@pytest.mark.parametrize(
    ("phrase", "head", "form", "gender", "number", "animacy"),
    [
        ("the old man", "man", "definite", "male", "singular", "animate"),
        ("a young widow", "widow", "indefinite", "female", "singular", "animate"),
        ("his three sisters", "sisters", "possessive", "female", "plural", "animate"),
        ("my father 's house", "house", "possessive", "neutral", "singular", "inanimate"),
        ("those villages", "villages", "demonstrative", "neutral", "plural", "inanimate"),
        ("two gentlemen", "gentlemen", "quantified", "male", "plural", "animate"),
        ("every servant", "servant", "quantified", "unknown", "singular", "animate"),
        ("people", "people", "bare", "unknown", "plural", "animate"),
        ("the county of Gloucester", "county", "definite", "neutral", "singular", "inanimate"),
        ("a thin , frail boy , with dark eyes", "boy", "indefinite", "male", "singular", "animate"),
        ("the girl who sang", "girl", "definite", "female", "singular", "animate"),
        ("the poor", "poor", "definite", "unknown", "plural", "unknown"),
        ("her happiness", "happiness", "possessive", "neutral", "singular", "inanimate"),
        ("a sister-in-law", "sister-in-law", "indefinite", "female", "singular", "animate"),
        ("an old yard-boy", "yard-boy", "indefinite", "male", "singular", "animate"),
        ("the man and the boy", "man", "definite", "male", "plural", "animate"),
        ("the wounded soldiers", "soldiers", "definite", "male", "plural", "animate"),
        ("a Catholic", "Catholic", "indefinite", "unknown", "singular", "animate"),
        ("the Captain", "Captain", "definite", "male", "singular", "animate"),
        ("one of the houses", "houses", "quantified", "neutral", "singular", "inanimate"),
    ],
)
def test_a_nominal_keeps_its_head_beginning_gender_and_number(
    phrase: str, head: str, form: str, gender: str, number: str, animacy: str
) -> None:
    document = text(f"then we saw {phrase} .")
    known = describe_mentions(document, [span_of(document, phrase)])[0]
    assert (known.kind, document.words[known.head], known.form) == ("nominal", head, form)
    assert (known.gender, known.number, known.animacy) == (gender, number, animacy)


def test_two_words_that_are_one_pronoun_are_not_a_nominal() -> None:
    assert facts("they saw each other .", "each other").form == "each_other"
    assert facts("but no one came .", "no one")[4:6] == ("pronoun", "no_one")


def test_a_capital_letter_at_the_start_of_a_sentence_makes_no_name() -> None:
    document = text('Silence fell . | Heathcliff rose . | Books lay there . | " Women wept . | We saw Heathcliff .')
    kinds = dict(zip(document.words, word_classes(document), strict=True))
    assert [kinds[word] for word in ("Silence", "Heathcliff", "Books", "Women")] == ["N", "P", "N", "N"]


def test_a_word_seen_in_small_letters_is_no_name_at_the_start_of_a_sentence() -> None:
    document = text("Zorbs sang . | Every zorb sang . | Zorb is good . | Glim sang to Glim .")
    known = describe_mentions(document, [Span(7, 8), Span(11, 12)])
    assert [fact.kind for fact in known] == ["nominal", "name"]


def test_the_country_us_is_not_the_pronoun() -> None:
    assert facts("it left the US .", "the US").kind == "name"
    assert facts("it left US soil .", "US").kind == "name"
    assert facts("it left us .", "us").kind == "pronoun"


def test_tags_are_believed_before_lists() -> None:
    pos = ("NNP", "VBZ", "PRP", "DT", "JJ", "NNS", ".")
    document = text("Hope saves us the glib zang .", pos=pos)
    hope, zang = describe_mentions(document, [Span(0, 1), Span(3, 6)])
    assert (hope.kind, hope.gender) == ("name", "female")
    assert (zang.number, document.words[zang.head]) == ("plural", "zang")


def test_universal_tags_and_empty_tags_are_read_too() -> None:
    document = text("my dog saw Ann", pos=("DET", "NOUN", "VERB", "PROPN"))
    assert word_classes(document) == ["O", "N", "V", "P"]
    empty = text("my dog saw Ann", pos=("_", "", "-", "_"))
    assert word_classes(empty) == word_classes(text("my dog saw Ann"))


def test_the_parse_decides_a_head_that_words_would_miss() -> None:
    bits = ("(TOP(S(NP(NP*", "*", "*)", "(NP*))", "(VP*)))")
    document = text("Ann Lee 's glug sang", parse=bits, pos=("NNP", "NNP", "POS", "NN", "VBD"))
    heads = Heads(document)
    assert [heads.of(Span(0, 4)), heads.of(Span(0, 3))] == [1, 1]  # Collins: the first noun phrase of two
    flat = text("Ann 's old glug sang", parse=("(TOP(S(NP(NP*", "*)", "*", "*)", "(VP*)))"))
    assert Heads(flat).of(Span(0, 4)) == 3
    assert Heads(flat).of(Span(0, 2)) == 0


def test_broken_brackets_of_a_parse_are_closed_at_the_end_of_the_sentence() -> None:
    found = constituents(("(S(NP*", "*))))", "(VP*"), 5)
    assert [(phrase.label, phrase.start, phrase.end) for phrase in found] == [("S", 5, 7), ("NP", 5, 7), ("VP", 7, 8)]


def test_speaker_named_entity_and_sentence_come_from_their_columns() -> None:
    document = text(
        "Ann left . | So did Rome .",
        speakers=("ann", "ann", "ann", "-", "-", "-", "-"),
        named=("(PERSON)", "*", "*", "*", "*", "(GPE)", "*"),
    )
    ann, rome = describe_mentions(document, [Span(0, 1), Mention(5, 6, 3)])
    assert (ann.speaker, ann.named, ann.sentence) == ("ann", "PERSON", 0)
    assert (rome.speaker, rome.named, rome.sentence, rome.animacy) == ("", "GPE", 1, "inanimate")


def test_named_entities_in_both_ways_of_writing_are_the_same() -> None:
    words = "Ann Lee left New York for Rome"
    brackets = text(words, named=("(PERSON*", "*)", "*", "(GPE*", "*)", "*", "(GPE)"))
    letters = text(words, named=("B-PERSON", "I-PERSON", "O", "B-GPE", "I-GPE", "O", "B-GPE"))
    assert named_words(brackets) == named_words(letters)
    assert named_spans(brackets) == named_spans(letters) == [Span(0, 2), Span(3, 5), Span(6, 7)]


def inside(sentences: str) -> str:
    document = text(sentences)
    marked = zip(document.words, quoted_words(document), strict=True)
    return " ".join(word for word, quoted in marked if quoted)


@pytest.mark.parametrize(
    ("sentences", "speech"),
    [
        ('" Come , " said Ann . | " I will , " he said .', "Come , I will ,"),
        ("`` Come , '' said Ann .", "Come ,"),
        ("“ Come , ” said Ann . | He left .", "Come ,"),
        ("‘ Come , ’ said Ann of the boys ’ hats .", "Come ,"),
        ("' Come , ' said Ann . | The boys ' hats fell .", "Come ,"),
        ("He saw the boys ' hats . | Ann 's hat fell .", ""),
        ("“ Come , said Ann . | He left .", "Come , said Ann ."),
        ('" One . | " Two . " | He left .', "One . Two ."),
        ("“ One . | “ Two . ” | He left .", "One . Two ."),
        ('He said : " yes . " | No more .', "yes ."),
        ("‘ She said “ no ” , ’ he said . | ‘ Oh ! ’ he said .", "She said “ no ” , Oh !"),
    ],
)
def test_direct_speech_begins_and_ends_at_its_marks(sentences: str, speech: str) -> None:
    assert inside(sentences) == speech


def test_a_quote_mark_that_is_missing_does_not_quote_the_rest_of_the_text() -> None:
    narrative = " | ".join(["He walked down the road ."] * 200)
    assert len(inside(f'" Come . | {narrative}').split()) == 2


def test_singular_undoes_plurals_and_leaves_singulars_alone() -> None:
    pairs = {
        "gentlemen": "gentleman",
        "churches": "church",
        "cities": "city",
        "boxes": "box",
        "Thames".lower(): "thame",
    }
    assert {word: singular(word) for word in pairs} == pairs
    same = ("james", "princess", "bus", "crisis", "specimen", "gas", "mistress", "his", "people")
    assert [singular(word) for word in same] == list(same)


def test_lists_are_in_lower_case_and_hold_no_blanks() -> None:
    for word in (*PRONOUNS, *TITLES, *MALE_NAMES, *FEMALE_NAMES):
        assert word == word.lower()
        assert " " not in word


@given(odd_documents())
def test_no_text_however_odd_breaks_the_description(document: Document) -> None:
    n = len(document.words)
    spans = [Span(i, j) for i in range(n) for j in range(i + 1, min(n, i + 7) + 1)]
    for span, known in zip(spans, describe_mentions(document, spans), strict=True):
        assert (known.start, known.end) == (span.start, span.end)
        assert span.start <= known.head < span.end
        assert document.sentences[known.sentence] <= span.start < document.sentences[known.sentence + 1]
