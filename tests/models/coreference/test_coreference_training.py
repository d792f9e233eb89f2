"""From documents to a model: how epochs are chosen, whose mentions are used; what comes out on simple texts."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from coreference_texts import text

from netclust.errors import InputError
from netclust.foundation.model_file import Provenance
from netclust.models.coreference.examples import measure_examples, prepare_examples
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.formats.plain import plain_document
from netclust.models.coreference.learning import learn_coreference
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.coreference.story_simulator import simulate_documents
from netclust.models.coreference.train_coreference import train_coreference
from netclust.models.experiments.coreference.coreference_baselines import singletons

QUICK = CoreferenceSettings(epochs=3, C=10.0, features=FeatureSettings(bits=18, distance=40))
STORIES = simulate_documents(12, seed=21)


def quick(**chosen):
    return msgspec.structs.replace(QUICK, **chosen)


@pytest.fixture(scope="module")
def trained():
    """A model of enough stories to know simple texts."""
    settings = CoreferenceSettings(learner="rho-joint", epochs=6, features=FeatureSettings(bits=18, distance=60))
    return train_coreference(simulate_documents(40, seed=31), settings)[0]


def test_epochs_are_chosen_on_every_tenth_document():
    told = []
    model, report = train_coreference(STORIES, QUICK, on_epoch=lambda *about: told.append(about))
    assert (report.documents, report.held_out, len(report.curve)) == (12, True, 3)
    assert told == list(zip((1, 2, 3), report.curve, strict=True))
    assert report.epochs == report.curve.index(max(report.curve)) + 1
    # the final weights are learned from all documents, for so many epochs
    want = learn_coreference(quick(epochs=report.epochs), prepare_examples(STORIES, QUICK.features))
    assert model.w.tobytes() == want.w.tobytes()
    assert report.mentions == sum(len(story.mentions) for story in STORIES)
    assert report.void == ("genre", "named", "pos", "same speaker")
    assert report.found_by == "given"


def test_too_few_documents_are_not_held_out():
    _, report = train_coreference(STORIES[:4], QUICK)
    assert (report.held_out, report.curve, report.epochs) == (False, (), 3)


def test_documents_without_entities_do_not_choose_the_epochs():
    bare = text("Nothing happened .")
    _, report = train_coreference([bare, *STORIES[:6]], QUICK)
    assert report.held_out
    assert min(report.curve) > 0
    _, report = train_coreference([*[bare] * 5, STORIES[0]], QUICK)
    assert not report.held_out


def test_documents_to_choose_on_are_not_learned_from():
    settings = quick(epochs=4)
    model, report = train_coreference(STORIES[:6], settings, dev=STORIES[6:8])
    assert (report.held_out, len(report.curve), report.documents) == (False, 4, 6)
    resolved = model.predict(STORIES[6:8])
    examples = prepare_examples(STORIES[6:8], settings.features)
    labels = [np.array([mention.entity for mention in document.mentions]) for document in resolved]
    assert 100 * measure_examples(examples, labels, ["mela"])["mela"].f1 == pytest.approx(max(report.curve))


def test_found_mentions_are_useful():
    model, report = train_coreference(STORIES[:8], quick(mentions="auto"), dev=STORIES[8:10])
    assert report.found_by == "words alone"
    new = STORIES[10:]
    examples = prepare_examples(new, QUICK.features)
    found = [document.clusters() for document in model.predict(new)]
    assert all(mention.entity >= 0 for document in model.predict(new) for mention in document.mentions)
    spans = {span for entity in found[0] for span in entity}
    gold = {mention.span for mention in new[0].mentions}
    assert len(spans & gold) > 0.6 * len(gold)
    alone = measure_examples(examples, [singletons(d) for d in new], ["mela"])["mela"].f1
    assert max(report.curve) > 100 * alone


def test_mention_finding_needs_two_documents():
    with pytest.raises(InputError, match="at least two documents"):
        train_coreference(STORIES[:1], quick(mentions="auto"))


def test_weights_of_features_that_were_not_chosen_are_zero():
    model, _ = train_coreference(STORIES[:6], quick(strongest=500))
    assert model.w.shape == (1 << 18,)
    assert 0 < np.count_nonzero(model.w) <= 500
    assert len(model.predict(STORIES[6:7])[0].entities()) < len(STORIES[6].mentions)


def test_the_svm_reports_no_epochs_and_no_held_out_documents():
    heard = []
    _, report = train_coreference(
        STORIES[:6], quick(learner="lssvm", C=1.0, strongest=2000), on_epoch=lambda *about: heard.append(about)
    )
    assert (report.epochs, report.curve, report.held_out, heard) == (0, (), False, [])
    assert report.updates > 0


def test_documents_without_entities_are_refused():
    for documents in ([], [text("Ann left .")], [text("Ann left .").with_mentions([Mention(0, 1)])]):
        with pytest.raises(InputError, match=r"no entities to learn from: .* need mentions with their entities"):
            train_coreference(documents, QUICK)


def test_mentions_that_are_no_phrase_are_clustered():
    """Annotated verbs, or another language: nothing for a filter of mentions to learn, but pairs all the same."""
    odd = text("ran ran . | of of .").with_mentions([Mention(2, 3, 0), Mention(5, 6, 0), Mention(3, 4, 1)])
    model, report = train_coreference([odd], QUICK)
    assert model.mention_filter is None
    assert report.mentions == 3
    assert len(model.predict([odd])[0].mentions) == 3
    assert model.predict([text("Ann saw her dog .")])[0].mentions
    with pytest.raises(InputError, match="no mention to learn from"):
        train_coreference([odd, odd], quick(mentions="auto"))


def test_jobs_and_a_cache_do_not_change_the_model(tmp_path):
    origin = Provenance(seed=3, data="x")
    plain, _ = train_coreference(STORIES[:3], QUICK, provenance=origin)
    for _ in range(2):
        other, _ = train_coreference(STORIES[:3], QUICK, jobs=2, cache=tmp_path, provenance=origin)
        assert other.to_bytes() == plain.to_bytes()
    assert len(list(tmp_path.iterdir())) == 3
    assert plain.provenance is origin


def groups(model, words):
    """The entities of several mentions that are found in a plain text."""
    (resolved,) = model.predict([plain_document(words, "d")])
    entities = [[resolved.text(resolved.mentions[k]) for k in ks] for ks in resolved.entities().values()]
    return [texts for texts in entities if len(texts) > 1]


def test_repeated_names_are_one_person(trained):
    found = groups(trained, "Ann Archer met Bob Wells. Ann Archer thanked Bob Wells. Bob Wells left.")
    assert sorted(map(sorted, found)) == [["Ann Archer"] * 2, ["Bob Wells"] * 3]


def test_he_and_she_are_two_people(trained):
    found = groups(trained, "Ann met Bob. She thanked him. He smiled at her.")
    assert sorted(map(sorted, found)) == [["Ann", "She", "her"], ["Bob", "He", "him"]]


def test_a_repeated_noun_is_one_thing(trained):
    found = groups(trained, "A small dog slept near a brown box. Ann opened the box. The dog barked.")
    texts = {frozenset(text.split()[-1] for text in group) for group in found}
    assert texts == {frozenset({"dog"}), frozenset({"box"})}


def test_a_pronoun_of_a_man_refers_to_a_man(trained):
    found = groups(trained, "Mr. Archer bought a lamp. He liked the lamp.")
    assert sorted(map(sorted, found)) == [["He", "Mr. Archer"], ["a lamp", "the lamp"]]


def test_stories_of_another_seed_are_solved(trained):
    new = simulate_documents(5, seed=77)
    examples = prepare_examples(new, trained.settings.features)
    given = [document.with_mentions(Mention(*m.span) for m in document.mentions) for document in new]
    labels = [np.array([m.entity for m in document.mentions]) for document in trained.predict(given)]
    assert measure_examples(examples, labels, ["mela"])["mela"].f1 > 0.85


def test_entities_in_a_document_do_not_change_its_prediction(trained):
    story = simulate_documents(1, seed=78)[0]
    blind = replace(story, mentions=tuple(Mention(*mention.span) for mention in story.mentions))
    assert trained.predict([story])[0] == trained.predict([blind])[0]
    empty = Document("empty", (), (0,))
    assert trained.predict([empty, story])[0] == empty
