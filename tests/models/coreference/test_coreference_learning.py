"""Every learner on stories that are made up: what it must beat, when it stops, and documents with nothing to learn."""

from __future__ import annotations

import numpy as np
import pytest
from coreference_texts import text

from netclust.errors import InputError
from netclust.models.coreference.examples import measure_examples, prepare_examples
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.learning import learn_coreference, resolve_mentions, with_slots
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.coreference.story_simulator import simulate_documents
from netclust.models.coreference.train_coreference import choose_slots
from netclust.models.experiments.coreference.coreference_baselines import head_match, singletons

FEATURES = FeatureSettings(bits=18, distance=40)
LEARNERS = [
    ("lsp", "E"), ("lsp", "K"), ("lspa", "E"), ("lspa", "K"), ("lssvm", "E"), ("lssvm", "K"),
    ("rho", "E"), ("rho-joint", "E"), ("rho-online", "E"),
]  # fmt: skip
USUAL_C = {"lspa": 0.1, "lssvm": 1.0}


def settings_of(learner, structure="E", **others):
    chosen = {"epochs": 4, "C": USUAL_C.get(learner, 10.0), **others}
    return CoreferenceSettings(learner=learner, structure=structure, features=FEATURES, **chosen)


@pytest.fixture(scope="module")
def stories():
    return prepare_examples(simulate_documents(13, seed=11), FEATURES)


def score(settings, examples, w):
    return measure_examples(examples, [resolve_mentions(settings, e.pairs, w) for e in examples], ["mela"])["mela"].f1


@pytest.mark.parametrize(("learner", "structure"), LEARNERS)
def test_every_learner_beats_the_baselines_on_new_stories(stories, learner, structure):
    if learner == "lssvm":  # its planes are dense, and slow with many features
        stories = with_slots(stories, choose_slots(stories[:10], 10_000))
    settings, new = settings_of(learner, structure), stories[10:]
    learned = learn_coreference(settings, stories[:10])
    by_rule = [
        measure_examples(new, [rule(e.document) for e in new], ["mela"])["mela"].f1 for rule in (singletons, head_match)
    ]
    assert score(settings, new, learned.w) > max(by_rule)
    assert learned.updates > 0
    assert len(learned.losses) >= 1
    assert np.isfinite(learned.w).all()
    assert (learned.loss is not None) == learner.startswith("rho")
    again = learn_coreference(settings, stories[:10])
    assert again.w.tobytes() == learned.w.tobytes()


@pytest.mark.parametrize(("learner", "structure"), LEARNERS)
def test_documents_with_nothing_to_learn_are_accepted(learner, structure):
    bare = text("Ann saw the dog . | She liked it .")
    documents = [
        Document("empty", (), (0,)),
        bare,
        bare.with_mentions([Mention(0, 1, 0)]),
        bare.with_mentions([Mention(0, 1), Mention(2, 4)]),  # no entity at all
        bare.with_mentions([Mention(0, 1, 0), Mention(2, 4, 1), Mention(5, 6, 0), Mention(7, 8, 1)]),
    ]
    examples = prepare_examples(documents, FEATURES)
    settings = settings_of(learner, structure)
    learned = learn_coreference(settings, examples)
    assert resolve_mentions(settings, examples[4].pairs, learned.w).tolist() == [0, 1, 0, 1]
    for example in examples:
        assert len(resolve_mentions(settings, example.pairs, learned.w)) == example.pairs.items
    only = learn_coreference(settings, examples[2:3])
    assert not only.w.any()
    for nothing in ([], examples[:2]):
        with pytest.raises(InputError, match=r"no documents to learn from|no mentions to learn from"):
            learn_coreference(settings, nothing)


@pytest.mark.parametrize("learner", ["lsp", "lspa", "rho", "rho-joint", "rho-online"])
def test_training_ends_when_the_callback_says_so(stories, learner):
    seen = []

    def look(epoch, w):
        seen.append((epoch, w.copy(), w))
        return epoch == 2

    settings = settings_of(learner, epochs=5)
    learned = learn_coreference(settings, stories[:3], look)
    assert [epoch for epoch, _, _ in seen] == [1, 2]
    assert learned.w.tobytes() == seen[-1][1].tobytes()
    assert all((then == now).all() for _, then, now in seen)  # nobody changes them later
    assert len(learned.losses) == 2
    whole = []
    learn_coreference(settings, stories[:3], lambda epoch, w: whole.append(w.copy()) if epoch < 3 else True)
    assert [w.tobytes() for w in whole] == [w.tobytes() for _, w, _ in seen]


def test_another_seed_learns_in_another_order(stories):
    weights = [learn_coreference(settings_of("lsp", epochs=1, seed=seed), stories[:5]).w for seed in (0, 1)]
    assert (weights[0] != weights[1]).any()


def test_another_price_of_wrong_arcs_changes_the_weights(stories):
    for structure, prices in (("E", (0.2, 5.0)), ("K", (0.01, 2.0))):
        found = [learn_coreference(settings_of("lsp", structure, r=r, epochs=3), stories[:3]).w for r in prices]
        assert (found[0] != found[1]).any()
    losses = [learn_coreference(settings_of("lsp", loss=loss, epochs=1), stories[:3]).w for loss in ("f", "yj")]
    assert (losses[0] != losses[1]).any()


def test_the_strongest_features_are_enough(stories):
    slots = choose_slots(stories[:10], 2000)
    assert len(slots) == len(set(slots.tolist())) == 2000
    few = with_slots(stories, slots)
    assert {example.pairs.dimension for example in few} == {2000}
    settings = settings_of("lsp")
    learned = learn_coreference(settings, few[:10])
    alone = measure_examples(few[10:], [singletons(e.document) for e in few[10:]], ["mela"])["mela"].f1
    assert learned.w.shape == (2000,)
    assert score(settings, few[10:], learned.w) > alone + 0.2


def test_asking_for_more_features_than_there_are_keeps_all(stories):
    slots = choose_slots(stories[:2], 1 << 30)
    assert len(slots) <= FEATURES.dimension
