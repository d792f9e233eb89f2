"""Features of many documents: what the cache gives back, and when it must not."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from netclust.errors import InputError
from netclust.foundation import container
from netclust.models.coreference import extraction
from netclust.models.coreference.extraction import extract_all
from netclust.models.coreference.features import FeatureSettings
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.story_simulator import simulate_documents

SETTINGS = FeatureSettings(distance=10)
STORIES = simulate_documents(3, seed=4, with_speakers=True)


def content(pairs):
    return [(p.items, p.dimension, p.starts.tobytes(), p.at.tobytes(), p.slots.tobytes()) for p in pairs]


@pytest.fixture
def extracted(monkeypatch):
    """The names of the documents that features were really made of."""
    names, true = [], extraction._extract

    def spy(document, settings):
        names.append(document.name)
        return true(document, settings)

    monkeypatch.setattr(extraction, "_extract", spy)
    return names


def test_the_cache_gives_back_what_was_made(tmp_path, extracted):
    plain = content(extract_all(STORIES, SETTINGS))
    folder = tmp_path / "new" / "cache"
    made = content(extract_all(STORIES, SETTINGS, cache=folder))
    assert len(extracted) == 6
    found = content(extract_all(STORIES, SETTINGS, cache=folder))
    assert len(extracted) == 6
    assert plain == made == found
    assert len(list(folder.iterdir())) == 3


def test_several_threads_give_the_same_features_in_the_same_order(tmp_path):
    one = content(extract_all(STORIES, SETTINGS, jobs=1))
    two = content(extract_all(STORIES, SETTINGS, jobs=2))
    kept = content(extract_all([*STORIES, *STORIES], SETTINGS, jobs=2, cache=tmp_path))
    assert one == two
    assert kept == one + one


def spoil(data, how):
    arrays, header = container.unpack_container(data, extraction.KIND, "x")
    if how == "empty":
        return b""
    if how == "cut":
        return data[:-5]
    if how == "flipped":
        return data[:-1] + bytes([data[-1] ^ 1])
    if how == "foreign":
        return container.pack_container("netclust.coreference", arrays, header)
    if how == "no checksum":
        return container.pack_container(extraction.KIND, arrays, {})
    if how == "no starts":
        none = {**arrays, "starts": np.zeros(0, np.int64)}
        return container.pack_container(extraction.KIND, none, {"sha256": extraction._checksum(none)})
    if how == "large slots":
        large = {**arrays, "slots": arrays["slots"] + np.uint32(1 << 30)}
        return container.pack_container(extraction.KIND, large, {"sha256": extraction._checksum(large)})
    return how.encode()


@pytest.mark.parametrize(
    "how", ["empty", "cut", "flipped", "foreign", "no checksum", "no starts", "large slots", "just a text"]
)
def test_a_spoilt_cache_file_is_made_again(tmp_path, extracted, how):
    want = content(extract_all(STORIES[:1], SETTINGS, cache=tmp_path))
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    file.write_bytes(spoil(good, how))
    assert content(extract_all(STORIES[:1], SETTINGS, cache=tmp_path)) == want
    assert len(extracted) == 2
    assert file.read_bytes() == good


def test_other_documents_and_settings_have_files_of_their_own():
    (story,) = simulate_documents(1, seed=4)
    n, names = len(story.words), set()
    others = [
        story,
        replace(story, words=("Xyz", *story.words[1:])),
        replace(story, sentences=(0, n)),
        replace(story, mentions=story.mentions[1:]),
        replace(story, genre="novel"),
        *(replace(story, **{c: ("x",) * n}) for c in ("pos", "lemmas", "parse", "speakers", "named")),
    ]
    settings = [SETTINGS, FeatureSettings(distance=11), FeatureSettings(bits=19, distance=10)]
    settings.append(FeatureSettings(distance=10, without=("head",)))
    for document in others:
        names |= {extraction._name(document, chosen) for chosen in settings}
    assert len(names) == len(others) * len(settings)


def test_a_renamed_document_shares_its_cached_features():
    (story,) = simulate_documents(1, seed=4)
    renamed = replace(story, name="other", part=3)
    unknown = story.with_mentions(Mention(*mention.span) for mention in story.mentions)
    assert {extraction._name(document, SETTINGS) for document in (story, renamed, unknown)} == {
        extraction._name(story, msgspec.structs.replace(SETTINGS))
    }


def test_a_cache_that_is_no_folder_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    for cache in (file, file / "folder"):
        with pytest.raises(InputError, match=r"cannot be a cache"):
            extract_all(STORIES, SETTINGS, cache=cache)


def test_a_cache_without_rights_is_refused(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", denied)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        extract_all(STORIES, SETTINGS, cache=tmp_path)


def test_a_cache_on_a_full_disk_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        extract_all(STORIES[:1], SETTINGS, cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_no_documents_and_empty_ones_are_extracted(tmp_path):
    assert extract_all([], SETTINGS, cache=tmp_path) == []
    empty = Document("empty", (), (0,))
    single = Document("single", ("Ann",), (0, 1), mentions=(Mention(0, 1, 0),))
    for _ in range(2):
        assert [pairs.items for pairs in extract_all([empty, single], SETTINGS, cache=tmp_path)] == [0, 1]


def test_words_that_no_file_can_hold_have_a_name(tmp_path):
    odd = Document("odd", ("\ud800", "Ann"), (0, 2), mentions=(Mention(0, 1, 0), Mention(1, 2, 0)))
    first, again = (content(extract_all([odd], SETTINGS, cache=tmp_path)) for _ in range(2))
    assert first == again
