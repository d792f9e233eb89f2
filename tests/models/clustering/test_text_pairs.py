"""Features of text pairs: cosines as scikit-learn has them, kept or computed alike, and candidates that are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from netclust.datasets.item_sets import ItemTable, read_items
from netclust.datasets.set_splits import whole_cluster_sets
from netclust.errors import InputError
from netclust.foundation import container
from netclust.models.clustering.cosines import CosinePairs, KeptPairs
from netclust.models.clustering.stemming import stem
from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
from netclust.structures.pairs import PairFeatures, StackedPairs, all_pairs, pair_index, same_cluster

TITLES = (
    "Learning to cluster news articles",
    "learning to cluster, learning to link",
    "A rigged casino: the adversarial bandit problem",
    "The bandit problem in a rigged casino",
    "",
    "cluster",
)
NAMES = ("A. Blum", "Blum, A.", "P. Auer", "auer p", "", "")
YEARS = ("1993", "1994", "", "1995", "1995", "2001")


def table(ids: range | None = None) -> ItemTable:
    names = tuple(str(k) for k in ids or range(len(TITLES)))
    return ItemTable(("title", "author", "year"), (TITLES, NAMES, YEARS), names)


def features(pairs: PairFeatures) -> np.ndarray[Any, Any]:
    return np.column_stack([pairs.scores(unit) for unit in np.eye(pairs.dimension)])


@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize(
    ("order", "kind"), [(1, "words"), (2, "words"), (3, "words"), (2, "characters"), (3, "characters")]
)
def test_cosines_are_those_of_scikit_learn(order: int, kind: str, sublinear: bool) -> None:
    words = kind == "words"
    spec = TextFeatures(
        ("title",), (order,) if words else (), () if words else (order,), slots=1 << 20, sublinear=sublinear
    )
    found = features(TextPairs.fit(spec, [table()]).build(table()))[:, 0]
    theirs = TfidfVectorizer(
        analyzer="word" if words else "char_wb",
        ngram_range=(order, order),
        token_pattern=r"\w+" if words else r"(?u)\b\w\w+\b",  # their default, which is not used then
        sublinear_tf=sublinear,
        # char_wb cuts at white space alone: without punctuation the words are the same
        preprocessor=lambda text: "".join(c if c.isalnum() else " " for c in text.lower()),
    ).fit_transform(TITLES)
    left, right = all_pairs(len(TITLES))
    np.testing.assert_allclose(found, (theirs @ theirs.T).toarray()[left, right], atol=1e-6)


def test_features_have_names_in_their_order() -> None:
    spec = TextFeatures(("title", "author"), (1, 2), (3,), stem=True, numbers=("year",))
    text = TextPairs.fit(spec, [table()])
    per_field = ("{} 1-grams", "{} 2-grams", "{} stemmed 1-grams", "{} stemmed 2-grams", "{} 3-character grams")
    expected = [name.format(field) for field in ("title", "author") for name in per_field]
    expected += ["title missing", "author missing", "year missing", "year difference", "constant"]
    assert text.names == tuple(expected)
    pairs = text.build(table())
    assert pairs.dimension == len(expected)
    psi = dict(zip(text.names, features(pairs).T, strict=True))
    left, right = all_pairs(6)
    assert np.array_equal(psi["title missing"], (left == 4) | (right == 4))
    assert np.array_equal(psi["author missing"], right >= 4)
    years = np.array([1993, 1994, np.nan, 1995, 1995, 2001])
    expected_years = np.abs(years[left] - years[right]) / np.nanstd(years)
    known = ~np.isnan(expected_years)
    np.testing.assert_allclose(psi["year difference"][known], expected_years[known])
    assert np.array_equal(psi["year missing"], ~known)
    assert (psi["constant"] == 1).all()


@pytest.mark.parametrize("chosen", [None, ([3, 0, 5, 1], [1, 2, 4, 0])])
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("constant", [True, False])
def test_features_computed_on_demand_equal_those_that_are_kept(chosen: Any, missing: bool, constant: bool) -> None:
    index = None if chosen is None else pair_index(6, *chosen)
    spec = TextFeatures(
        ("title", "author"), (1, 2), numbers=("year",) if constant else (), missing=missing, constant=constant
    )
    text = TextPairs.fit(spec, [table()])
    kept, demanded = text.build(table(), index), text.build(table(), index, kept_bytes=0)
    assert isinstance(kept, KeptPairs)
    assert isinstance(demanded, StackedPairs | CosinePairs)
    random = np.random.default_rng(0)
    w, e, f = random.normal(size=kept.dimension), random.normal(size=len(kept.psi)), random.normal(size=6)
    assert (kept.items, kept.dimension, kept.index) == (demanded.items, demanded.dimension, demanded.index)
    np.testing.assert_allclose(kept.psi, features(demanded), atol=1e-12)
    np.testing.assert_allclose(kept.scores(w), demanded.scores(w), atol=1e-12)
    np.testing.assert_allclose(kept.weighted_sum(e), demanded.weighted_sum(e), atol=1e-12)
    assert np.array_equal(kept.self_scores(w), demanded.self_scores(w))
    assert np.array_equal(kept.self_sum(f), demanded.self_sum(f))


@given(items=st.integers(0, 120), seed=st.integers(0, 9))
def test_cosine_pairs_of_any_size_equal_the_dense_product(items: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    X = random.random((items, 7)) * (random.random((items, 7)) < 0.4)
    missing = random.random((items, 2)) < 0.3
    pairs = CosinePairs([csr_matrix(X), csr_matrix(X**2)], missing)
    left, right = all_pairs(items)
    expected = np.column_stack(
        [(X[left] * X[right]).sum(1), (X[left] ** 2 * X[right] ** 2).sum(1), missing[left] | missing[right]]
    )
    np.testing.assert_allclose(pairs.dense(), expected, atol=1e-12)
    own = np.column_stack([(X * X).sum(1), (X**4).sum(1), missing])
    np.testing.assert_allclose(pairs.self_sum(np.ones(items)), own.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(pairs.self_scores(np.ones(4)), own.sum(axis=1), atol=1e-9)


def test_frequencies_are_those_of_training_items_alone() -> None:
    spec = TextFeatures(("title",), (1,))
    train = table().rows([0, 1, 2])
    text = TextPairs.fit(spec, [train.rows([0]), train.rows([1, 2])])
    assert np.array_equal(text.idf["title 1-grams"], TextPairs.fit(spec, [train]).idf["title 1-grams"])
    before = {name: idf.copy() for name, idf in text.idf.items()}
    one = features(text.build(table().rows([2, 3])))
    assert all(np.array_equal(before[name], text.idf[name]) for name in before)
    np.testing.assert_array_equal(one[0], features(text.build(table()))[9])  # (2, 3), whatever else is in the set


def test_words_that_most_training_items_have_can_be_left_out() -> None:
    texts = ("the cat", "the dog", "the cow", "the cat")
    items = ItemTable(("t",), (texts,), ("1", "2", "3", "4"))
    spec = TextFeatures(("t",), (1,), missing=False, constant=False, common=0.6)
    assert features(TextPairs.fit(spec, [items]).build(items)).ravel().round(6).tolist() == [0, 0, 1, 0, 0, 0]


def test_a_model_file_gives_the_same_features(tmp_path: Path) -> None:
    spec = TextFeatures(("title",), (1, 2), (3,), numbers=("year",), slots=1 << 10)
    text = TextPairs.fit(spec, [table()])
    data = container.pack_container("netclust.example", text.arrays(), {"text": spec})
    arrays, header = container.unpack_container(data, "netclust.example", "example")
    again = TextPairs.from_arrays(msgspec.convert(header["text"], TextFeatures), arrays, "example")
    assert again.names == text.names
    assert np.array_equal(features(again.build(table())), features(text.build(table())))
    for bad in ({**arrays, "idf.1": arrays["idf.1"][:5]}, {**arrays, "numbers.spread": np.zeros(1)}):
        with pytest.raises(InputError, match="example"):
            TextPairs.from_arrays(spec, bad, "example")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (TextFeatures(()), "need a field"),
        (TextFeatures(("title",), ()), "need an order"),
        (TextFeatures(("title",), (0,)), "numbers from 1 to 10"),
        (TextFeatures(("title",), (1, 1)), "different numbers"),
        (TextFeatures(("title",), slots=1), "slots is 1"),
        (TextFeatures(("title",), slots=1 << 30), "slots is"),
        (TextFeatures(("title",), common=0.0), "common is 0.0"),
        (TextFeatures(("title", "title")), "there twice"),
        (TextFeatures(("abstract",)), "no field 'abstract'"),
        (TextFeatures(("title",), numbers=("author",)), "item 0: author is 'A. Blum', expected a number"),
    ],
)
def test_features_that_cannot_be_had_are_refused(spec: TextFeatures, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        TextPairs.fit(spec, [table()])


def test_sets_without_pairs_and_fits_without_items_are_told_apart() -> None:
    text = TextPairs.fit(TextFeatures(("title",)), [table()])
    for rows in ([], [0]):
        pairs = text.build(table().rows(rows))
        assert pairs.items == len(rows)
        assert pairs.scores(np.ones(pairs.dimension)).shape == (0,)
        assert len(text.candidates(table().rows(rows)).left) == 0
    with pytest.raises(InputError, match="no training items"):
        TextPairs.fit(TextFeatures(("title",)), [table().rows([])])


def test_pairs_that_share_a_rare_word_are_candidates() -> None:
    text = TextPairs.fit(TextFeatures(("title", "author"), (1,)), [table()])
    found = set(zip(*map(np.ndarray.tolist, text.candidates(table(), most=2)), strict=True))
    assert found == {(0, 1), (2, 3)}  # "learning", "blum", "rigged"; "cluster" is in three titles
    found = set(zip(*map(np.ndarray.tolist, text.candidates(table(), most=3)), strict=True))
    assert found == {(0, 1), (2, 3), (0, 5), (1, 5)}
    with pytest.raises(InputError, match="candidates need"):
        text.candidates(table(), neighbours=0)


def test_candidates_grow_with_items_not_with_their_square() -> None:
    random = np.random.default_rng(0)
    texts = tuple(" ".join(f"w{k}" for k in random.integers(0, 400, 12)) for _ in range(1500))
    items = ItemTable(("t",), (texts,), tuple(map(str, range(len(texts)))))
    text = TextPairs.fit(TextFeatures(("t",), (1,)), [items])
    index = text.candidates(items, most=60, neighbours=5)
    assert 0 < len(index.left) <= 5 * len(items)
    assert (index.left < index.right).all()
    assert (np.diff(index.left * len(items) + index.right) > 0).all()
    assert text.build(items, index).scores(np.array([1.0, 0.0, 0.0])).min() > 0


def test_citations_of_one_paper_are_candidates_and_more_alike(data_folder: Path) -> None:
    cora = read_items(data_folder / "cora-citations" / "cora.csv", label="2", fields=["3", "5", "7", "10"])
    rows = whole_cluster_sets(cora.clusters(), 60, 120, seed=0)
    text = TextPairs.fit(TextFeatures(("3", "5"), (1, 2), missing=False), [cora.rows(r) for r in rows[:3]])
    items = cora.rows(rows[5])
    together = same_cluster(items.clusters(), None)
    score = text.build(items).scores(np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    assert score[together].mean() > 5 * score[~together].mean()
    index = text.candidates(cora, most=70, neighbours=70)
    assert same_cluster(cora.clusters(), index).sum() > 0.8 * same_cluster(cora.clusters(), None).sum()
    assert len(index.left) < 0.1 * len(all_pairs(len(cora)).left)


PORTER = """
caresses:caress ponies:poni ties:ti cats:cat feed:feed agreed:agre plastered:plaster bled:bled motoring:motor
sing:sing conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss
fizzed:fizz failing:fail filing:file happy:happi sky:sky relational:relat conditional:condit rational:ration
valenci:valenc digitizer:digit conformabli:conform radicalli:radic differentli:differ vileli:vile
analogousli:analog vietnamization:vietnam predication:predic operator:oper feudalism:feudal decisiveness:decis
hopefulness:hope callousness:callous formaliti:formal sensitiviti:sensit sensibiliti:sensibl triplicate:triplic
formative:form formalize:formal electriciti:electr electrical:electr hopeful:hope goodness:good revival:reviv
allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust defensible:defens
irritant:irrit replacement:replac adjustment:adjust dependent:depend adoption:adopt homologou:homolog
communism:commun activate:activ angulariti:angular homologous:homolog effective:effect bowdlerize:bowdler
probate:probat rate:rate cease:ceas controll:control roll:roll generalizations:gener oscillators:oscil is:is
1993:1993 G\xf6del:G\xf6del
"""


@pytest.mark.parametrize("case", PORTER.split())
def test_words_are_stemmed_as_the_paper_says(case: str) -> None:
    word, expected = case.split(":")
    assert stem(word) == expected
