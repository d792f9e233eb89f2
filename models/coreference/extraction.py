"""Features of many documents: in parallel, and kept on disk.

A file of the cache is named by the checksum of everything that its features are made of: the document, the mentions,
the settings, and the code of the templates. It also holds a checksum of its own content: a file that does not fit is
made anew.

>>> import tempfile
>>> from netclust.models.coreference.formats.documents import Mention
>>> words = tuple("Ann saw the dog . She liked it .".split())
>>> document = Document("story", words, (0, 5, 9), mentions=(Mention(0, 1), Mention(2, 4), Mention(5, 6)))
>>> with tempfile.TemporaryDirectory() as folder:
...     made = extract_all([document], FeatureSettings(), cache=Path(folder))
...     found = extract_all([document], FeatureSettings(), cache=Path(folder))
...     len(list(Path(folder).iterdir())), bool((made[0].slots == found[0].slots).all())
(1, True)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from netclust.errors import InputError, NetclustError
from netclust.foundation import container
from netclust.models.coreference.features import FeatureSettings, extract_features
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.mentions.describing import describe_mentions
from netclust.structures.hashed_pairs import HashedPairs

__all__ = ["extract_all"]

KIND = "netclust.coreference-features"


def extract_all(
    documents: Sequence[Document],
    settings: FeatureSettings,
    *,
    jobs: int = 1,
    cache: Path | None = None,
) -> list[HashedPairs]:
    """The pair features of every document's mentions; the kernel lets go of the interpreter, so threads are enough."""
    if cache is not None:
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{cache}: cannot be a cache: {error.strerror}") from None

    def one(document: Document) -> HashedPairs:
        return _cached(document, settings, cache) if cache is not None else _extract(document, settings)

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, documents))


def _extract(document: Document, settings: FeatureSettings) -> HashedPairs:
    spans = [mention.span for mention in document.mentions]
    return extract_features(document, describe_mentions(document, spans), settings)


def _cached(document: Document, settings: FeatureSettings, cache: Path) -> HashedPairs:
    path = cache / f"{_name(document, settings)}.safetensors"
    if path.exists():
        try:
            return _load(path, settings)
        except NetclustError:
            path.unlink(missing_ok=True)  # cut short or spoilt: made anew
    pairs = _extract(document, settings)
    arrays: container.Arrays = {"starts": pairs.starts, "at": pairs.at, "slots": pairs.slots}
    container.write_container_bytes(path, container.pack_container(KIND, arrays, {"sha256": _checksum(arrays)}))
    return pairs


def _load(path: Path, settings: FeatureSettings) -> HashedPairs:
    where = str(path)
    arrays, header = container.unpack_container(container.read_container_bytes(path), KIND, where)
    starts = container.require_array(arrays, "starts", np.int64, (None,), where)
    at = container.require_array(arrays, "at", np.int64, (None,), where)
    slots = container.require_array(arrays, "slots", np.uint32, (None,), where)
    if header.get("sha256") != _checksum({"starts": starts, "at": at, "slots": slots}):
        raise InputError(f"{where}: does not fit its checksum")
    return HashedPairs(len(starts) - 1, settings.dimension, starts, at, slots)


def _checksum(arrays: container.Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _name(document: Document, settings: FeatureSettings) -> str:
    spans = [mention.span for mention in document.mentions]
    text = msgspec.structs.asdict(settings)
    content = [document.words, document.sentences, document.pos, document.lemmas, document.parse, document.speakers]
    whole = json.dumps([_code(), text, content, document.named, document.genre, spans])  # in ASCII, whatever words are
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


@lru_cache(maxsize=1)
def _code() -> str:
    """The checksum of the modules that features are made by: other templates make other features."""
    from netclust.models.coreference import mention_pair_kernels

    digest = hashlib.sha256()
    for file in [*sorted(Path(__file__).parent.rglob("*.py")), Path(mention_pair_kernels.__file__)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()
