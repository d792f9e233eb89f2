"""Mentions found from a parse, from tags or from words alone, and the filter that learns what a corpus wants."""

from __future__ import annotations

import numpy as np
import pytest
from coreference_texts import odd_documents, text
from hypothesis import example, given

from netclust.errors import InputError
from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.models.coreference.formats.plain import plain_document
from netclust.models.coreference.mentions.classes import group_classes, word_classes
from netclust.models.coreference.mentions.describing import describe_mentions
from netclust.models.coreference.mentions.detection import columns_used, detect_candidates, find_mentions
from netclust.models.coreference.mentions.mention_filter import MentionFilter
from netclust.models.coreference.mentions.span_features import span_slots
from netclust.models.coreference.story_simulator import simulate_documents


def found(document: Document) -> list[str]:
    return [document.text(span) for span in find_mentions(document)[0]]


@pytest.mark.parametrize(
    ("sentence", "mentions"),
    [
        ("Ann saw his mother .", ["Ann", "his mother", "his"]),
        ("Ann 's hat fell .", ["Ann 's hat", "Ann"]),
        ("my father 's old house burned .", ["my father 's old house", "my father", "my"]),
        ("the boys ' hats fell .", ["the boys ' hats", "the boys"]),
        ("the king of Spain slept .", ["the king of Spain", "Spain"]),
        ("a tall , thin woman came with her two sons .", ["a tall , thin woman", "her two sons", "her"]),
        ("Mr. Bennet spoke to Lady Lucas .", ["Mr. Bennet", "Lady Lucas"]),
        ("they told us that nobody knew him .", ["they", "us", "nobody", "him"]),
        ("but no one came , and we saw each other .", ["no one", "we", "each other"]),
        ("the poor loved the wounded soldier .", ["the poor", "the wounded soldier"]),
        ("all the girls laughed at her .", ["all the girls", "her"]),
        ("she gave her her book .", ["she", "her", "her book", "her"]),
        ("he 's tired , but Ann 's brother is not .", ["he", "Ann 's brother", "Ann"]),
        ("My dear Mr. Bennet , said his lady .", ["My dear Mr. Bennet", "My", "his lady", "his"]),
        ("that man thinks that she left .", ["that man", "she"]),
    ],
)
def test_words_alone_give_groups_possessors_and_pronouns(sentence: str, mentions: list[str]) -> None:
    document = text(sentence)
    assert found(document) == mentions
    assert find_mentions(document)[1] == "words alone"


@pytest.mark.parametrize(
    ("sentence", "mentions"),
    [
        ("Ann left . | She ran .", ["Ann", "She"]),
        ("The Smiths left .", ["The Smiths"]),
        ("Bill Gates left Microsoft .", ["Bill Gates", "Microsoft"]),
        ("Green left early .", ["Green"]),
        ("Siemens AG cut jobs .", ["Siemens AG", "jobs"]),
        ("Apple Inc. and Bob met .", ["Apple Inc.", "Bob"]),
        ("Apple said it grew .", ["Apple", "it"]),
        ("The White House set a date .", ["The White House", "a date"]),
        ("the old man 's left hand fell .", ["the old man 's left hand", "the old man"]),
        ("Old Mr. Brown put it down .", ["Old Mr. Brown", "it"]),
    ],
)
def test_a_name_that_begins_a_sentence_is_not_cut_or_lost(sentence: str, mentions: list[str]) -> None:
    assert found(text(sentence)) == mentions


def test_no_part_of_a_name_is_a_candidate_where_the_name_is_whole() -> None:
    for sentence, name in (("Siemens AG cut jobs .", "AG"), ("Apple Inc. and Bob met .", "Inc.")):
        document = text(sentence)
        assert name not in {document.text(span) for span in detect_candidates(document)}
    document = text("Tom and Anna left .")
    assert {"Tom and Anna", "Tom", "Anna"} <= {document.text(span) for span in detect_candidates(document)}


def test_bolder_classes_do_not_reach_words_that_have_tags_or_the_description() -> None:
    tagged = text("Green left early", pos=("JJ", "NN", "RB"))
    assert group_classes(tagged) == ["A", "N", "B"]
    document = text("Apple said no .")
    assert (group_classes(document)[0], word_classes(document)[0]) == ("P", "N")
    assert describe_mentions(document, [Span(0, 1)])[0].kind == "nominal"


@pytest.mark.parametrize(
    "sentence",
    [
        "It rained .",
        "It was late .",
        "It is clear that nothing came .",
        "It seems to rain .",
        "It was not easy to sleep .",
        "It would be better to sleep .",
        "It 's true that nothing came .",
        "It had been raining .",
    ],
)
def test_an_it_that_stands_for_nothing_is_left_out(sentence: str) -> None:
    assert "It" not in found(text(sentence))


@pytest.mark.parametrize("sentence", ["It fell .", "It was old .", "We saw it .", "It is ours .", "It gave milk ."])
def test_an_it_that_stands_for_something_is_kept(sentence: str) -> None:
    assert {"It", "it"} & set(found(text(sentence)))


def test_tags_decide_where_words_would_be_misread() -> None:
    words = "the glib zang blorf their brill of Oxmoor"
    tagged = text(words, pos=("DT", "JJ", "NN", "VBD", "PRP$", "NN", "IN", "NNP"))
    assert found(tagged) == ["the glib zang", "their brill of Oxmoor", "their", "Oxmoor"]
    assert find_mentions(tagged)[1] == "part of speech"
    universal = text(words, pos=("DET", "ADJ", "NOUN", "VERB", "PRON", "NOUN", "ADP", "PROPN"))
    assert found(universal) == found(tagged)


def test_a_parse_gives_the_largest_phrase_of_each_head_and_both_parts_of_a_pair() -> None:
    document = text(
        "the man with his dog saw Ann and Bob",
        pos=("DT", "NN", "IN", "PRP$", "NN", "VBD", "NNP", "CC", "NNP"),
        parse=("(TOP(S(NP(NP*", "*)", "(PP*", "(NP*", "*)))", "(VP*", "(NP(NP*)", "*", "(NP*))))))"),
    )
    assert found(document) == ["the man with his dog", "his dog", "his", "Ann and Bob", "Ann", "Bob"]
    assert find_mentions(document)[1] == "parse"


def test_named_entities_that_no_phrase_has_are_added_and_amounts_are_not() -> None:
    document = text(
        "glib zang saw two men",
        pos=("JJ", "VB", "VBD", "CD", "NNS"),
        named=("(PERSON*", "*)", "*", "(CARDINAL)", "*"),
    )
    assert found(document) == ["glib zang", "two men"]


def test_columns_without_content_are_not_said_to_have_been_used() -> None:
    assert columns_used(text("Ann left", parse=("*", "-"), pos=("_", ""))) == "words alone"
    assert columns_used(text("Ann left", parse=("*", "-"), pos=("NNP", "VBD"))) == "part of speech"


def test_candidates_have_every_mention_that_is_found_and_longer_ones() -> None:
    document = text("the boy with dark eyes , who sang , met all the girls .")
    spans = detect_candidates(document)
    texts = [document.text(span) for span in spans]
    assert set(find_mentions(document)[0]) <= set(spans)
    assert {"the boy with dark eyes", "the boy", "the girls"} <= set(texts)
    assert spans == sorted(spans, key=lambda span: (span.start, -span.end))


@given(odd_documents())
@example(Document("possessor", ("", "", "", "B"), (0, 4), pos=("NN", "POS", "DET", "")))
def test_no_text_however_odd_breaks_detection(document: Document) -> None:
    spans, _ = find_mentions(document)
    more = detect_candidates(document)
    assert len(set(more)) == len(more)
    assert set(spans) <= set(more)
    slots = span_slots(document, more, describe_mentions(document, more), 12)
    assert slots.shape[0] == len(more)
    for span in more:
        assert 0 <= span.start < span.end <= len(document.words)


PEOPLE = ("Ann", "Tom", "the old man", "the girl", "my sister")
THINGS = ("the table", "a letter", "the truth", "some money", "an idea")


def persons_only(number: int) -> Document:
    """A text in which persons are mentions and things are not."""
    rng = np.random.default_rng(number)
    words: list[str] = []
    starts, mentions = [0], []
    for _ in range(8):
        who, what = PEOPLE[rng.integers(5)].split(), THINGS[rng.integers(5)].split()
        mentions.append(Mention(len(words), len(words) + len(who)))
        mentions += [Mention(len(words), len(words) + 1)] if who[0] == "my" else []
        words += [*who, "found", *what, "."]
        starts.append(len(words))
    return Document(f"t{number}", tuple(words), tuple(starts)).with_mentions(mentions)


def test_the_filter_learns_that_things_are_no_mentions() -> None:
    learned = MentionFilter(bits=12).fit([persons_only(number) for number in range(10)])
    unseen = persons_only(99)
    assert learned.find(unseen) == [mention.span for mention in unseen.mentions]


def test_the_filter_is_the_same_when_it_is_learned_again_and_when_it_is_read_back() -> None:
    documents = [persons_only(number) for number in range(6)]
    first, second = (MentionFilter(bits=12).fit(documents) for _ in range(2))
    assert np.array_equal(first.weights, second.weights)
    assert first.threshold == second.threshold
    back = MentionFilter.from_arrays(first.arrays())
    spans = detect_candidates(documents[0])
    known = describe_mentions(documents[0], spans)
    assert np.array_equal(back.scores(documents[0], spans, known), first.scores(documents[0], spans, known))
    assert back.find(documents[0]) == first.find(documents[0])


def test_kept_spans_share_no_head_and_do_not_cross() -> None:
    learned = MentionFilter(bits=12).fit([persons_only(number) for number in range(6)])
    learned.threshold = -1e9  # everything that may be kept is
    document = text("the boy with dark eyes , who sang of Ann 's house , met all the girls of London .")
    spans = detect_candidates(document)
    known = describe_mentions(document, spans)
    kept = learned.keep(document, spans, known)
    head = dict(zip(spans, (facts.head for facts in known), strict=True))
    assert len({head[span] for span in kept}) == len(kept) > 3
    for one in kept:
        assert not any(one.start < other.start < one.end < other.end for other in kept)


def test_a_threshold_is_where_f1_is_best() -> None:
    documents = [persons_only(number) for number in range(10)]
    learned = MentionFilter(bits=12).fit(documents)

    def f1(threshold: float) -> float:
        learned.threshold = threshold
        right = total = gold = 0
        for document in documents:
            spans, wanted = set(learned.find(document)), {mention.span for mention in document.mentions}
            right, total, gold = right + len(spans & wanted), total + len(spans), gold + len(wanted)
        return 2 * right / (total + gold)

    best = learned.threshold
    assert f1(best) >= max(f1(threshold) for threshold in (-20.0, -5.0, 5.0, 20.0))


def test_a_filter_without_anything_to_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="no mention to learn from"):
        MentionFilter().fit([text("Ann left .")])
    with pytest.raises(InputError, match="fit it first"):
        MentionFilter().find(text("Ann left ."))


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"weights": np.zeros(3), "threshold": np.zeros(1)},
        {"weights": np.zeros(4), "threshold": np.zeros(2)},
        {"weights": np.full(4, np.nan), "threshold": np.zeros(1)},
    ],
)
def test_arrays_of_something_else_are_refused(arrays: dict[str, np.ndarray]) -> None:
    with pytest.raises(InputError, match="not a filter of mentions"):
        MentionFilter.from_arrays(arrays)


def test_an_empty_document_has_no_mentions() -> None:
    empty = Document("empty", (), (0,))
    assert find_mentions(empty) == ([], "words alone")
    assert MentionFilter(bits=12).fit([persons_only(1), empty]).find(empty) == []
    assert describe_mentions(empty, []) == []
    assert Span(0, 1) not in detect_candidates(empty)


def test_a_filter_that_learned_from_stories_does_not_lose_or_cut_names_of_plain_text() -> None:
    learned = MentionFilter(bits=16).fit(simulate_documents(60))
    for sentences, mentions in (
        ("Ann left. She ran.", ["Ann", "She"]),
        ("The Smiths left.", ["The Smiths"]),
        ("Siemens AG cut jobs.", ["Siemens AG"]),
        ("Apple Inc. and Bob met.", ["Apple Inc. and Bob", "Apple Inc.", "Bob"]),
        ("Apple said it grew.", ["Apple", "it"]),
        ("The White House said no.", ["The White House"]),
        ("Tom and Anna left.", ["Tom and Anna", "Tom", "Anna"]),
        ('"My brother left Paris," Ann said.', ["My brother", "My", "Paris", "Ann"]),
    ):
        document = plain_document(sentences)
        assert [document.text(span) for span in learned.find(document)] == mentions
