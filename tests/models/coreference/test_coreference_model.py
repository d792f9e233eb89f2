"""The file of a coreference model: what it gives back, and every way in which it can be spoilt."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.model_file import Provenance
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Mention
from netclust.models.coreference.formats.plain import plain_document
from netclust.models.coreference.model import KIND, CoreferenceModel
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.coreference.story_simulator import simulate_documents
from netclust.models.coreference.train_coreference import train_coreference

STORIES = simulate_documents(6, seed=41)
TEXT = plain_document("Ann met Bob. She thanked him, and he smiled.", "letter")
SETTINGS = CoreferenceSettings(epochs=2, features=FeatureSettings(bits=18, distance=30))


@pytest.fixture(scope="module")
def model():
    return train_coreference(STORIES[:4], SETTINGS, provenance=Provenance(seed=5, data="stories"))[0]


@pytest.fixture(scope="module")
def content(model):
    arrays, header = container.unpack_container(model.to_bytes(), KIND, "model")
    return arrays, header


def test_a_saved_model_predicts_the_same(model, tmp_path):
    path = tmp_path / "some.model"
    model.save(path)
    again = CoreferenceModel.load(path)
    assert (again.settings, again.provenance) == (model.settings, model.provenance)
    assert again.w.tobytes() == model.w.tobytes()
    for mentions in (None, "gold", "auto"):
        documents = STORIES if mentions == "gold" else [*STORIES, TEXT]
        assert again.predict(documents, mentions=mentions) == model.predict(documents, mentions=mentions, jobs=2)
    assert again.to_bytes() == model.to_bytes()


def test_a_model_without_a_filter_is_written_and_read(model):
    bare = CoreferenceModel(model.settings, model.w)
    again = CoreferenceModel.from_bytes(bare.to_bytes())
    assert again.mention_filter is None
    assert again.predict([TEXT]) == bare.predict([TEXT])
    assert again.predict([TEXT])[0].mentions


def test_given_mentions_are_used_and_others_are_found(model):
    story = STORIES[5]
    spans = [mention.span for mention in story.mentions]

    def found(document, **how):
        return [mention.span for mention in model.predict([document], **how)[0].mentions]

    assert found(story) == found(story, mentions="gold") == spans
    assert found(story, mentions="auto") == model.find(story) == [m.span for m in model.found(story).mentions]
    assert found(TEXT) == model.find(TEXT)
    with pytest.raises(InputError, match="letter: has no mentions of its own"):
        found(TEXT, mentions="gold")
    for wrong in ("a text", ["a text"], TEXT):
        with pytest.raises(InputError, match="give a list of documents"):
            model.predict(wrong)
    as_found = CoreferenceModel(msgspec.structs.replace(model.settings, mentions="auto"), model.w, model.mention_filter)
    assert [m.span for m in as_found.predict([story])[0].mentions] == model.find(story)
    assert [m.span for m in as_found.predict([story], mentions="gold")[0].mentions] == spans


def test_a_plain_text_gets_mentions_and_entities(model):
    (resolved,) = model.predict([TEXT])
    texts = [resolved.text(mention) for mention in resolved.mentions]
    assert {"Ann", "Bob", "She", "him"} <= set(texts)
    numbers = [mention.entity for mention in resolved.mentions]
    assert min(numbers) == 0
    assert sorted(set(numbers)) == list(dict.fromkeys(numbers))  # by first appearance


def change(**fields):
    return lambda arrays, header: (arrays, {**header, **fields})


def settings_with(**fields):
    return lambda arrays, header: (arrays, {**header, "settings": {**header["settings"], **fields}})


def features_with(**fields):
    return lambda arrays, header: settings_with(features={**header["settings"]["features"], **fields})(arrays, header)


def array(name, value):
    def spoil(arrays, header):
        kept = {key: one for key, one in arrays.items() if key != name}
        made = value(arrays.get(name)) if callable(value) else value
        return (kept if made is None else {**kept, name: made}), header

    return spoil


SPOILT = {
    "no settings": change(settings=None),
    "no provenance": change(provenance=3),
    "unknown part": change(extra=1),
    "unknown setting": settings_with(speed=1),
    "unknown learner": settings_with(learner="svm"),
    "unknown structure": settings_with(structure="T"),
    "K with a learned loss": settings_with(structure="K", learner="rho"),
    "unknown loss": settings_with(loss="x"),
    "C of 0": settings_with(C=0),
    "C as text": settings_with(C="1"),
    "r below 0": settings_with(r=-1.0),
    "no epochs": settings_with(epochs=0),
    "seed below 0": settings_with(seed=-1),
    "few bits": features_with(bits=2),
    "many bits": features_with(bits=60),
    "no distance": features_with(distance=0),
    "endless distance": features_with(distance=2**62),
    "unknown template": features_with(without=["nothing"]),
    "no slots": array("slots", None),
    "no weights": array("weights", None),
    "slots of another type": array("slots", lambda a: a.astype(np.int64)),
    "weights of another type": array("weights", lambda a: a.astype(np.float32)),
    "too few weights": array("weights", lambda a: a[1:]),
    "weights in two dimensions": array("weights", lambda a: a[None]),
    "slots that fall": array("slots", lambda a: a[::-1].copy()),
    "a slot twice": array("slots", lambda a: np.concatenate([a[:1], a[:1], a[2:]])),
    "a slot too large": array("slots", lambda a: np.append(a[:-1], np.uint32(1 << 18))),
    "a weight that is no number": array("weights", lambda a: np.append(a[:-1], np.nan)),
    "an endless weight": array("weights", lambda a: np.append(a[:-1], np.inf)),
    "a huge weight": array("weights", lambda a: np.append(a[:-1], -1e300)),
    "an array too many": array("other", np.zeros(3)),
    "a filter without a threshold": array("filter.threshold", None),
    "a filter without weights": array("filter.weights", None),
    "a filter with two thresholds": array("filter.threshold", np.zeros(2)),
    "a filter with an odd number of weights": array("filter.weights", lambda a: a[1:]),
    "a filter of no number": array("filter.weights", lambda a: a * np.float32(np.nan)),
    "a filter with huge weights": array("filter.weights", lambda a: np.full(a.shape, 1e300)),
    "a filter with an array too many": array("filter.other", np.zeros(3)),
    "a filter in two dimensions": array("filter.weights", lambda a: a.reshape(2, -1)),
}


@pytest.mark.parametrize("how", SPOILT)
def test_spoilt_files_are_refused(content, how):
    arrays, header = SPOILT[how](*content)
    with pytest.raises(ModelError, match="some file: ") as told:
        CoreferenceModel.from_bytes(container.pack_container(KIND, arrays, header), "some file")
    assert "\n" not in str(told.value)


def test_files_of_other_kinds_are_refused(content, tmp_path):
    for kind in ("netclust.model", "netclust.clustering", "netclust.coreference-features"):
        with pytest.raises(ModelError, match=f"holds '{kind}', expected 'netclust.coreference'"):
            CoreferenceModel.from_bytes(container.pack_container(kind, *content))
    with pytest.raises(InputError, match=r"none\.model"):
        CoreferenceModel.load(tmp_path / "none.model")


@settings(max_examples=60)
@given(st.data())
def test_cut_and_changed_files_are_refused(small, data):
    cut = data.draw(st.integers(0, len(small) - 1))
    with pytest.raises(ModelError):
        CoreferenceModel.from_bytes(small[:cut])
    place, bit = data.draw(st.integers(0, len(small) - 1)), data.draw(st.integers(0, 7))
    changed = bytearray(small)
    changed[place] ^= 1 << bit
    try:
        model = CoreferenceModel.from_bytes(bytes(changed))
    except ModelError:
        return
    model.predict([TEXT])  # whatever is accepted can be used


@pytest.fixture(scope="module")
def small():
    """A model file of few bytes, so that changes meet every part of it."""
    w = np.zeros(1 << 18)
    w[[3, 77, 5000]] = -1.0, 2.0, 0.5
    return CoreferenceModel(SETTINGS, w).to_bytes()


def test_prediction_leaves_the_given_documents_unchanged(model):
    before = STORIES[5].with_mentions(Mention(*m.span) for m in STORIES[5].mentions)
    model.predict([before])
    assert {mention.entity for mention in before.mentions} == {-1}
