"""Features of mention pairs: the kernel and its plain twin, what relations say of pairs by hand, templates left out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from coreference_feature_twin import RELATION_NUMBERS, Twin, chain, mix
from coreference_texts import odd_documents, text
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.coreference import features
from netclust.models.coreference.features import (
    ATTRIBUTES,
    RELATIONS,
    FeatureSettings,
    extract_features,
    void_templates,
)
from netclust.models.coreference.formats.documents import Document, Span
from netclust.models.coreference.mentions.describing import describe_mentions
from netclust.models.coreference.story_simulator import simulate_documents

PLAIN = FeatureSettings(bits=20, distance=7)


def spans_of(document):
    return [mention.span for mention in document.mentions]


def rows_of(pairs):
    return [pairs.slots[pairs.at[r] : pairs.at[r + 1]].tolist() for r in range(len(pairs.at) - 1)]


def both(document, spans, chosen=PLAIN):
    """The rows of the kernel and those of the twin."""
    facts = describe_mentions(document, spans)
    pairs = extract_features(document, facts, chosen)
    twin = Twin(features._mentions(document, facts), features._templates(document, chosen), chosen.distance)
    return rows_of(pairs), twin.rows()


def marked(sentences, **columns):
    """A text whose mentions are in [brackets], and their spans, in the order of a document."""
    words, starts, spans, opened = [], [0], [], []
    for sentence in sentences.split(" | "):
        for token in sentence.split():
            opened += [len(words)] * len(re.match(r"\[*", token)[0])
            words.append(token.strip("[]") if token.strip("[]") else token)
            spans += [Span(opened.pop(), len(words)) for _ in range(len(token) - len(token.rstrip("]")))]
        starts.append(len(words))
    document = Document("d", tuple(words), tuple(starts), **columns)
    return document, sorted(spans, key=lambda span: (span.start, -span.end))


def relation(name, sentences, i=0, j=-1, **columns):
    """The value of a relation, read off the kernel's slots; 0 if it says nothing."""
    document, spans = marked(sentences, **columns)
    alone = FeatureSettings(bits=24, without=tuple({*RELATIONS, *ATTRIBUTES} - {name}))
    pairs = extract_features(document, describe_mentions(document, spans), alone)
    j = j % len(spans)
    row = rows_of(pairs)[int(pairs.starts[j]) + i]
    assert name in ATTRIBUTES or len(row) in (0, 3)
    values = [v for v in range(1, 64) if [chain(mix(RELATION_NUMBERS[name] + 1, v), 1) >> 40] == row[:1]]
    return values[0] if values else 0


@pytest.mark.parametrize("columns", [{}, {"with_pos": True}, {"with_speakers": True, "with_pos": True}])
@pytest.mark.parametrize("distance", [1, 4, 1000])
def test_stories_have_the_slots_of_the_plain_twin(columns, distance):
    for story in simulate_documents(2, seed=5, **columns):
        found, want = both(story, spans_of(story), FeatureSettings(distance=distance, bits=22))
        assert found == want
        n = len(story.mentions)
        assert len(found) == sum(min(j, distance) for j in range(n))


@settings(max_examples=80)
@given(odd_documents(), st.data())
def test_odd_texts_have_the_slots_of_the_plain_twin(document, data):
    n = len(document.words)
    ends = st.tuples(st.integers(0, n), st.integers(0, n)).filter(lambda pair: pair[0] != pair[1])
    places = data.draw(st.sets(ends, max_size=12)) if n else set()
    spans = sorted({Span(min(p), max(p)) for p in places}, key=lambda span: (span.start, -span.end))
    left_out = data.draw(st.sets(st.sampled_from([*RELATIONS, *ATTRIBUTES]), max_size=4))
    chosen = FeatureSettings(bits=18, distance=data.draw(st.integers(1, 14)), without=tuple(sorted(left_out)))
    found, want = both(document, spans, chosen)
    assert found == want


@pytest.mark.parametrize("count", [0, 1])
def test_a_document_without_pairs_gives_empty_features(count):
    document, spans = marked("[Ann] left .")
    pairs = extract_features(document, describe_mentions(document, spans[:count]), PLAIN)
    assert (pairs.items, len(pairs.at), len(pairs.slots)) == (count, 1, 0)
    assert extract_features(Document("d", (), (0,)), [], PLAIN).items == 0


def test_rows_are_those_of_the_nearest_mentions_oldest_first():
    story = simulate_documents(1, seed=3)[0]
    facts = describe_mentions(story, spans_of(story))
    near, far = (extract_features(story, facts, FeatureSettings(distance=d)) for d in (3, 10_000))
    n = len(facts)
    pairs = [(i, j) for j in range(n) for i in range(max(0, j - 3), j)]
    assert list(zip(near.index.left.tolist(), near.index.right.tolist(), strict=True)) == pairs
    # what counts over the candidates counts over those within reach, all else is the same
    free = FeatureSettings(distance=3, without=("nearest of its head",))
    rows = dict(zip(zip(far.index.left.tolist(), far.index.right.tolist(), strict=True), rows_of(far), strict=True))
    for pair, row in zip(pairs, rows_of(extract_features(story, facts, free)), strict=True):
        assert set(row) <= set(rows[pair])


def test_the_same_document_has_the_same_features_again():
    story = simulate_documents(1, seed=3)[0]
    a, b = (extract_features(story, describe_mentions(story, spans_of(story)), PLAIN) for _ in range(2))
    assert (a.slots.tobytes(), a.at.tobytes()) == (b.slots.tobytes(), b.at.tobytes())
    # a change of the hash would void every model file: these numbers are of the first version
    document, spans = marked("[Ann] saw [the dog] .")
    assert extract_features(document, describe_mentions(document, spans), PLAIN).slots[:3].tolist() == [
        345820,
        57410,
        180928,
    ]


def test_names_and_numbers_of_relations_have_one_order():
    assert [RELATION_NUMBERS[name] for name in RELATIONS] == list(range(len(RELATIONS)))


@pytest.mark.parametrize(
    ("name", "sentences", "value"),
    [
        ("constant", "[Ann] saw [Bob] .", 1),
        ("same text", "[the dog] saw [a dog] .", 1),
        ("same text", "[He] saw [him] .", 2),
        ("same text", "[Ann] saw [the dog] .", 0),
        ("same text", "[Ann Lee] saw [Ann Ray] .", 0),
        ("same head", "[the old dog] saw [a dog] .", 1),
        ("same head", "[He] saw [he] .", 0),
        ("same head", "[Ann Lee] saw [Ann] .", 0),
        ("words in common", "[the old dog] saw [an old dog] .", 1),
        ("words in common", "[the old dog] saw [the dog] .", 2),
        ("words in common", "[the dog] saw [the old dog] .", 3),
        ("words in common", "[the old dog] saw [the young dog] .", 4),
        ("words in common", "[the dog] saw [the cat] .", 0),
        ("words in common", "[Mr. Lee] saw [Mr. Ray] .", 0),
        ("words in common", "[Mr. Lee] saw [Lee] .", 1),
        ("modifiers", "[the old dog] saw [the dog] .", 1),
        ("modifiers", "[the dog] saw [the old dog] .", 2),
        ("modifiers", "[the dog] saw [the cat] .", 0),
        ("alias", "[Ann Lee] saw [Lee] .", 2),
        ("alias", "[Ann Lee] saw [Ann Lee] .", 3),
        ("alias", "[the dog] saw [the dog] .", 0),
        ("gender", "[He] saw [him] .", 1),
        ("gender", "[He] saw [her] .", 2),
        ("gender", "[He] saw [me] .", 3),
        ("gender", "[I] saw [you] .", 0),
        ("number", "[He] saw [him] .", 1),
        ("number", "[They] saw [him] .", 2),
        ("animacy", "[The man] saw [the table] .", 2),
        ("person", "[I] saw [you] .", 1 + 4 + 2),
        ("person", "[Ann] saw [me] .", 1 + 1),
        ("sentences apart", "[Ann] saw [Bob] .", 1),
        ("sentences apart", "[Ann] left . | [Bob] left .", 2),
        ("sentences apart", "[Ann] | a | b | c | d | [Bob]", 1 + 5),
        ("mentions apart", "[a] [b]", 1),
        ("mentions apart", "[a] [b] [c] [d] [e]", 4),
        ("mentions apart", "[a] [b] [c] [d] [e] [f]", 5),
        ("mentions apart", "[a] [b] [c] [d] [e] [f] [g] [h] [i]", 5),
        ("mentions apart", "[a] [b] [c] [d] [e] [f] [g] [h] [i] [j]", 6),
        ("nested", "[[his] dog] barked", 1),
        ("nested", "[the dog of [Ann]] barked", 1),
        ("nested", "[Ann] [Bob]", 0),
        ("apposition", "[Ann] , [the queen] , left .", 1),
        ("apposition", "[Ann] and [the queen] left .", 0),
        ("apposition", "[Ann] , said [the queen] .", 0),
        ("direct speech", '[Ann] said : " [I] left . "', 2),
        ("direct speech", "[Ann] saw [Bob] .", 1),
        ("direct speech", '" [I] left , " said [Ann] .', 3),
        ("direct speech", '" [I] saw [you] . "', 4),
        ("fitting mentions between", "[Bob] met [Tom] , and [he] left .", 1 + 1),
        ("fitting mentions between", "[Bob] met [Ann] , and [he] left .", 1 + 0),
        ("fitting mentions between", "[Ann] met [Tom] , and [he] left .", 1),
        ("nearest of its head", "[the dog] saw [the cat] and [a dog]", 1),
        ("nearest of its head", "[the dog] saw [the dog] and [a dog]", 2),
        ("nearest of its head", "[the cat] saw [the dog] and [a dog]", 0),
    ],
)
def test_relations_equal_those_worked_out_by_hand(name, sentences, value):
    assert relation(name, sentences) == value


def test_speakers_are_told_apart():
    who = ("-", "Ann", "Ann", "Bob", "-")
    sentences = "[a] [b] [c] [d] [e]"
    assert [relation("same speaker", sentences, i, j, speakers=who) for i, j in ((1, 2), (1, 3), (0, 1), (0, 4))] == [
        1, 2, 0, 0,
    ]  # fmt: skip
    assert relation("same speaker", sentences, 1, 2) == 0


def test_crossing_spans_are_not_nested():
    document = text("a b c d")
    spans = [Span(0, 2), Span(1, 3)]
    found, want = both(document, spans)
    assert found == want
    twin = Twin(
        features._mentions(document, describe_mentions(document, spans)), features._templates(document, PLAIN), 7
    )
    assert twin.relations(0, 1)["nested"] == 2


def test_a_template_without_its_column_has_no_features():
    plain, (tagged,) = simulate_documents(1, seed=2)[0], simulate_documents(1, seed=2, with_pos=True)
    assert void_templates([plain]) == ("genre", "named", "pos", "same speaker")
    assert void_templates([plain, tagged]) == ("genre", "named", "same speaker")
    assert void_templates([]) == void_templates([plain])
    assert features._templates(plain, PLAIN).relation.tolist() == [int(name != "same speaker") for name in RELATIONS]
    full, cut = features._templates(tagged, PLAIN), features._templates(plain, PLAIN)
    assert set(full.unary.tolist()) - set(cut.unary.tolist()) == {ATTRIBUTES.index("pos")}
    assert len(full.lexical) == len(cut.lexical) + 1


@pytest.mark.parametrize("name", sorted({*RELATIONS, *ATTRIBUTES} - set(features._NEEDS)))
def test_a_template_that_was_left_out_has_no_features(name):
    document, spans = marked('[Ann] , [the queen] , saw [[her] old dog] . | " [I] saw [Ann] , " said [Bob] .')
    facts = describe_mentions(document, spans)
    all_of = rows_of(extract_features(document, facts, FeatureSettings(bits=24)))
    fewer = rows_of(extract_features(document, facts, FeatureSettings(bits=24, without=(name,))))
    assert all(set(a) >= set(b) for a, b in zip(all_of, fewer, strict=True))
    assert sum(map(len, all_of)) > sum(map(len, fewer))


def test_features_of_a_template_do_not_depend_on_the_others():
    """Lexical templates are numbered by their place, so that leaving one out must not rename the rest."""
    story = simulate_documents(1, seed=2, with_pos=True)[0]
    facts = describe_mentions(story, spans_of(story))
    only = tuple({*RELATIONS, *ATTRIBUTES} - {"head", "pos"})
    both_of, pos = (
        rows_of(extract_features(story, facts, FeatureSettings(bits=24, distance=5, without=without)))
        for without in (only, (*only, "head"))
    )
    assert all(set(a) >= set(b) for a, b in zip(both_of, pos, strict=True))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"bits": 17}, "bits"),
        ({"bits": 25}, "bits"),
        ({"distance": 0}, "distance must be at least 1 .* not 0"),
        ({"distance": 2_000_000}, "at most 1,000,000"),
        ({"without": ("nothing",)}, "no template 'nothing'"),
    ],
)
def test_impossible_settings_are_refused(chosen, message):
    with pytest.raises(InputError, match=message):
        FeatureSettings(**chosen)


def test_slots_fit_their_bits():
    story = simulate_documents(1, seed=2)[0]
    facts = describe_mentions(story, spans_of(story))
    for bits in (18, 24):
        pairs = extract_features(story, facts, FeatureSettings(bits=bits))
        assert pairs.dimension == 1 << bits
        assert pairs.slots.max() < 1 << bits
        assert np.unique(pairs.slots >> np.uint32(bits - 8)).size == 256  # all parts of the table are used
