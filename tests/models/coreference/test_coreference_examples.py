"""Documents as examples, the rules that any model should beat, and what settings refuse."""

from __future__ import annotations

import numpy as np
import pytest
from coreference_texts import text
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.losses.learned_loss import Truth
from netclust.metrics.clustering_metrics import PrecisionRecall
from netclust.models.coreference.coreference_metrics import METRICS, score_documents
from netclust.models.coreference.examples import measure_examples, prepare_examples, with_entities
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Document, Mention, Span
from netclust.models.coreference.learning import mela
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.coreference.story_simulator import simulate_documents
from netclust.models.experiments.coreference.coreference_baselines import head_match, singletons

SETTINGS = FeatureSettings(bits=18, distance=10)
STORY = text("Ann saw the dog . | She liked it .").with_mentions(
    [Mention(0, 1, 7), Mention(2, 4, 8), Mention(5, 6, 7), Mention(7, 8, 8)]
)


def test_spurious_mentions_are_marked_and_missed_ones_counted():
    found = [Span(0, 1), Span(1, 2), Span(2, 4), Span(5, 6), Span(4, 5)]  # two spurious, "it" is missed
    (example,) = prepare_examples([STORY], SETTINGS, lambda _: found)
    assert [example.document.text(m) for m in example.document.mentions] == ["Ann", "saw", "the dog", ".", "She"]
    assert all(mention.entity == -1 for mention in example.document.mentions)
    assert example.truth.keys.tolist() == [0, -1, 1, -1, 0]
    assert example.truth.sizes.tolist() == [2, 2]
    assert example.truth.labels.tolist() == [0, 2, 1, 3, 0]
    assert example.pairs.items == 5
    assert [sorted(entity) for entity in example.key] == [[(0, 1), (5, 6)], [(2, 4), (7, 8)]]


def test_measures_count_mentions_that_were_not_found():
    (example,) = prepare_examples([STORY], SETTINGS, lambda _: [Span(0, 1), Span(2, 4), Span(5, 6), Span(1, 2)])
    found = measure_examples([example], [np.array([0, 5, 1, 0])])
    want = score_documents([STORY.clusters()], [[[(0, 1), (5, 6)], [(2, 4)], [(1, 2)]]])
    assert found == want
    assert tuple(found) == METRICS
    assert found["mentions"] == PrecisionRecall(0.75, 0.75, 0.75)
    assert found["muc"].recall == 0.5


def test_measures_take_a_truth_without_mentions():
    empty = Document("empty", (), (0,))
    bare = text("Ann left .")
    examples = prepare_examples([empty, bare, STORY], SETTINGS)
    assert [example.pairs.items for example in examples] == [0, 0, 4]
    labels = [np.zeros(0, np.int64), np.zeros(0, np.int64), np.array([0, 1, 0, 1])]
    assert measure_examples(examples, labels, ["mela"])["mela"].f1 == 1.0
    nothing = prepare_examples([STORY], SETTINGS, lambda _: [])
    assert measure_examples(nothing, [np.zeros(0, np.int64)], ["mela"])["mela"].f1 == 0.0


def test_mentions_of_unknown_entity_do_not_count_as_true():
    half = STORY.with_mentions([Mention(0, 1, 3), Mention(2, 4), Mention(5, 6, 3)])
    (example,) = prepare_examples([half], SETTINGS)
    assert example.truth.keys.tolist() == [0, -1, 0]
    assert len(example.key) == 1


def test_clusters_are_given_to_their_own_mentions():
    resolved = with_entities(STORY, np.array([4, 4, 2, 9]))
    assert [mention.entity for mention in resolved.mentions] == [4, 4, 2, 9]
    assert [mention.span for mention in resolved.mentions] == [mention.span for mention in STORY.mentions]
    with pytest.raises(ValueError, match="zip"):
        with_entities(STORY, np.array([4]))


@given(st.integers(0, 2**32 - 1))
def test_mela_with_missed_mentions_equals_that_of_the_sets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 12))
    keys, clusters = rng.integers(-1, 4, n), rng.integers(0, 5, n)
    sizes = np.maximum(np.bincount(keys[keys >= 0], minlength=4), 1) + rng.integers(0, 3, 4)
    key = [{j for j in range(n) if keys[j] == k} for k in range(4)]
    key = [found | {(k, extra) for extra in range(sizes[k] - len(found))} for k, found in enumerate(key)]
    response = [{j for j in range(n) if clusters[j] == c} for c in set(clusters.tolist())]
    want = score_documents([key], [response], ["mela"])["mela"].f1
    assert mela(Truth(keys, sizes), clusters) == pytest.approx(100 * want, abs=1e-9)


def test_the_baselines_join_the_expected_mentions():
    document = text("The old dog saw him . | He fed his dog . | Dogs bark .").with_mentions(
        [Mention(0, 3), Mention(4, 5), Mention(6, 7), Mention(8, 10), Mention(8, 9), Mention(11, 12)]
    )
    assert head_match(document).tolist() == [0, 1, 1, 0, 1, 2]
    assert singletons(document).tolist() == [0, 1, 2, 3, 4, 5]
    empty = Document("empty", (), (0,))
    assert (head_match(empty).shape, singletons(empty).shape) == ((0,), (0,))


def test_matching_heads_beats_singletons_on_stories():
    stories = simulate_documents(4, seed=1)
    examples = prepare_examples(stories, SETTINGS)
    scores = [
        measure_examples(examples, [rule(s) for s in stories], ["mela"])["mela"].f1 for rule in (singletons, head_match)
    ]
    assert scores[0] + 0.1 < scores[1] < 1


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"learner": "svm"}, "learner 'svm' is not known: one of lsp, "),
        ({"structure": "T"}, "structure 'T' is not known: one of E, K"),
        ({"mentions": "found"}, "mentions 'found' is not known: one of gold, auto"),
        ({"loss": "x"}, "loss 'x' is not known: one of f, yj"),
        *(({"structure": "K", "learner": name}, "for the E structure") for name in ("rho", "rho-joint", "rho-online")),
        ({"learner": "lsp", "structure": "K", "loss": "f"}, "its loss is 'yj'"),
        ({"C": 0}, "C must be above 0, not 0"),
        ({"C": -1.0}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"C": float("inf")}, "C must be"),
        ({"r": -1.0}, "r must be"),
        ({"r": float("nan")}, "r must be"),
        ({"r": float("inf")}, "r must be"),
        ({"r": 0.0, "loss": "yj"}, "r must be"),
        ({"learner": "lsp", "r": 0.0, "structure": "K"}, "r must be"),
        ({"epochs": 0}, "epochs must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"strongest": 0}, "at least one feature is needed, not 0"),
    ],
)
def test_impossible_settings_are_refused(chosen, message):
    with pytest.raises(InputError, match=message):
        CoreferenceSettings(**chosen)


def test_models_have_the_names_and_losses_of_the_literature():
    names = [
        ("lsp", "E"),
        ("lsp", "K"),
        ("lspa", "E"),
        ("lssvm", "K"),
        ("rho", "E"),
        ("rho-joint", "E"),
        ("rho-online", "E"),
    ]
    assert [CoreferenceSettings(learner=a, structure=b).name for a, b in names] == [
        "LSP^E", "LSP^K", "LSPA^E", "LSSVM^K", "LSP_rho", "LSP*_rho", "LSP*_rho,online",
    ]  # fmt: skip
    assert [CoreferenceSettings(learner="lsp", structure=s).edge_loss for s in "EK"] == ["f", "yj"]
    assert CoreferenceSettings(loss="yj").edge_loss == "yj"
    assert CoreferenceSettings(r=0.0).r == 0
