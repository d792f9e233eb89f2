"""The file of a clusterer: everything comes back as it was, and whatever does not fit is refused, never run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from netclust.datasets.item_sets import ItemTable
from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.model_file import MAX_WEIGHT, Provenance
from netclust.models.clustering.cluster_model import KIND, ClusterModel
from netclust.models.clustering.set_inputs import SetInput
from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
from netclust.models.clustering.train_clusterer import ClusterSettings
from netclust.structures.pairs import StoredPairs

TABLE = ItemTable(("title", "year"), (("a casino", "the casino", "to learn", ""), ("1", "1", "9", "")), tuple("abcd"))
TEXT = TextPairs.fit(TextFeatures(fields=("title",), words=(1,), numbers=("year",), slots=64), [TABLE])
ITEMS = np.array([[0.0, 1.0], [0.1, 2.0], [5.0, 1.0], [5.1, 2.0]])
SCALED = SetInput().learn([ITEMS])
LEARNED = ClusterModel(settings=ClusterSettings(C=7.0), features=SCALED, w=np.array([-2.0, 0.0, 1.0]))
TEXTUAL = ClusterModel(
    settings=ClusterSettings(),
    features=TEXT,
    w=np.array([3.0, -1.0, 0.0, -1.0, -0.5]),
    provenance=Provenance(data="x.csv", records=4, seed=3, params={"sets": 2}),
)
KINDS: dict[str, tuple[ClusterModel, Any]] = {
    "scaled": (LEARNED, ITEMS),
    "text": (TEXTUAL, TABLE),
    "no scale": (ClusterModel(settings=ClusterSettings(), features=SetInput(), w=np.array([-2.0, 0.0, 1.0])), ITEMS),
    "no constant": (
        ClusterModel(settings=ClusterSettings(), features=SetInput("gaussian", False), w=np.array([1.0, -0.9])),
        ITEMS,
    ),
    "pair features": (
        ClusterModel(settings=ClusterSettings(predictor="local"), features=SetInput(), w=np.array([1.0, -1.0])),
        StoredPairs(3, np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0]])),
    ),
    "k-means": (
        ClusterModel(
            settings=ClusterSettings(structure="kmeans", oracle="iterative", predictor="discrete", seed=4),
            features=SetInput("product"),
            w=np.array([1.0, 0.1, 0.0]),
        ),
        ITEMS,
    ),
    "E": (
        ClusterModel(settings=ClusterSettings(structure="E", learner="lsp"), features=SCALED, w=np.array([-2.0, 0, 1])),
        ITEMS,
    ),
    "K": (
        ClusterModel(
            settings=ClusterSettings(structure="K", learner="lspa"), features=SCALED, w=np.array([-2.0, 0, 1])
        ),
        ITEMS,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
    model, items = KINDS[kind]
    model.save(tmp_path / "m")
    again = ClusterModel.load(tmp_path / "m")
    assert again.settings == model.settings
    assert again.provenance == model.provenance
    assert again.names == model.names
    assert len(again.names) == len(again.w)
    assert np.array_equal(again.w, model.w)
    assert again.to_bytes() == model.to_bytes()
    (first,), (second,) = model.cluster([items]), again.cluster([items])
    assert first.tolist() == second.tolist()
    assert 1 < len(set(first.tolist())) <= len(first)
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_items_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(InputError, match=r"compares texts: give netclust\.ItemTable"):
        TEXTUAL.cluster([ITEMS])
    with pytest.raises(InputError):
        LEARNED.cluster([TABLE])
    with pytest.raises(InputError, match="set 0 has 1 features an item, trained were 2"):
        LEARNED.cluster([ITEMS[:, :1]])
    with pytest.raises(InputError, match="give a list of item sets"):
        LEARNED.cluster(ITEMS)  # type: ignore[arg-type]


def changed(model: ClusterModel, *, kind: str = KIND, header: Any = None, **arrays: Any) -> bytes:
    """The model's file with arrays replaced (None: left out) and its header changed."""
    held, raw = container.unpack_container(model.to_bytes(), KIND, "m")
    for name, array in arrays.items():
        name = name.replace("__", ".")
        if array is None:
            del held[name]
        else:
            held[name] = np.asarray(array)
    return container.pack_container(kind, held, merged(raw, header or {}))


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in old.items() if new.get(k, v) is not None}
    return kept | {
        k: merged(old[k], v) if isinstance(v, dict) and isinstance(old.get(k), dict) else v
        for k, v in new.items()
        if v is not None
    }


def settings_with(**given: Any) -> dict[str, Any]:
    return {"header": {"settings": given}}


@pytest.mark.parametrize(
    ("model", "change", "told"),
    [
        (LEARNED, {"kind": "netclust.model"}, "netclust.model"),
        (LEARNED, {"weights": None}, "has no weights"),
        (LEARNED, {"features__scale": None}, "has no scale"),
        (LEARNED, {"weights": [1.0, np.nan, 0.0]}, "not finite"),
        (LEARNED, {"weights": [1.0, np.inf, 0.0]}, "not finite"),
        (LEARNED, {"weights": [1.0, 2 * MAX_WEIGHT, 0.0]}, "too large to be scored"),
        (LEARNED, {"weights": [1.0, 2.0]}, "scale is float64"),
        (LEARNED, {"weights": [[1.0, 2.0, 3.0]]}, "weights is float64"),
        (LEARNED, {"weights": np.array([1, 2, 3])}, "weights is int64"),
        (LEARNED, {"weights": np.zeros(0)}, "no weights"),
        (LEARNED, {"features__scale": [1.0, 0.0]}, "scale must be positive"),
        (LEARNED, {"features__scale": [1.0, -1.0]}, "scale must be positive"),
        (LEARNED, {"features__scale": [1.0, np.inf]}, "not finite"),
        (LEARNED, {"features__scale": [1.0]}, "scale is float64"),
        (LEARNED, {"features__other": [1.0]}, "arrays that a model does not have: other"),
        (LEARNED, {"other": [1.0]}, "arrays that a model does not have: other"),
        (LEARNED, {"scale": [1.0, 1.0]}, "arrays that a model does not have: scale"),
        (KINDS["no scale"][0], {"features__scale": [1.0, 1.0]}, "arrays that a model does not have: scale"),
        (LEARNED, settings_with(colour="red"), "colour"),
        (LEARNED, settings_with(structure="tree"), "tree"),
        (LEARNED, settings_with(learner="latent"), "not by latent"),
        (LEARNED, settings_with(oracle="os.system"), "oracle 'os.system' is not known"),
        (LEARNED, settings_with(predictor="guess"), "predictor 'guess' is not known"),
        (LEARNED, settings_with(C=-1.0), "above 0"),
        (LEARNED, settings_with(C="many"), "float"),
        (LEARNED, settings_with(seed=-1), "seed"),
        (LEARNED, settings_with(restarts=0), "restarts"),
        (LEARNED, settings_with(restarts=1 << 60), "restarts"),
        (LEARNED, {"header": {"settings": None}}, "settings"),
        (LEARNED, {"header": {"features": None}}, "features"),
        (LEARNED, {"header": {"provenance": None}}, "provenance"),
        (LEARNED, {"header": {"extra": 1}}, "extra"),
        (LEARNED, {"header": {"features": {"of": "pickle"}}}, "pickle"),
        (LEARNED, {"header": {"features": {"relation": "eval"}}}, "eval"),
        (LEARNED, {"header": {"features": {"scaled": 2}}}, "bool"),
        (TEXTUAL, {"weights": [1.0, 2.0]}, "2 weights for 5 features"),
        (TEXTUAL, {"features__idf.0": None}, "has no idf.0"),
        (TEXTUAL, {"features__idf.0": np.ones(63, np.float32)}, "idf.0 is float32"),
        (TEXTUAL, {"features__idf.0": np.full(64, np.nan, np.float32)}, "not finite"),
        (TEXTUAL, {"features__idf.1": np.ones(64, np.float32)}, "arrays that a model does not have: idf.1"),
        (TEXTUAL, {"features__numbers.spread": [0.0]}, "spread must be above 0"),
        (TEXTUAL, {"features__numbers.centre": [0.0, 1.0]}, "centre is float64"),
        (TEXTUAL, {"header": {"features": {"spec": {"slots": 1 << 40}}}}, "slots"),
        (TEXTUAL, {"header": {"features": {"spec": {"words": [99]}}}}, "orders of n-grams"),
        (TEXTUAL, {"header": {"features": {"spec": {"fields": []}}}}, "weights for 3 features|no idf|does not have"),
        (TEXTUAL, {"header": {"features": {"spec": {"code": "x"}}}}, "code"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused(model: ClusterModel, change: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told) as refused:
        ClusterModel.from_bytes(changed(model, **change), "some file")
    assert "some file" in str(refused.value)


def test_an_unchanged_file_is_accepted() -> None:
    for model, _ in KINDS.values():
        assert ClusterModel.from_bytes(changed(model)).settings == model.settings


@profile(max_examples=60)
@given(data=st.data())
def test_truncated_and_spoiled_files_are_refused(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([LEARNED, TEXTUAL])).to_bytes()
    with pytest.raises(ModelError):
        ClusterModel.from_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(ModelError):
        ClusterModel.from_bytes(whole + data.draw(st.binary(min_size=1, max_size=9)))
    at = data.draw(st.integers(0, len(whole) - 1))
    spoiled = whole[:at] + data.draw(st.binary(min_size=1, max_size=4)) + whole[at + 1 :]
    try:
        found = ClusterModel.from_bytes(spoiled)
    except ModelError:
        return
    assert np.isfinite(found.w).all()  # a digit of a number was changed: another model, but a sound one


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError):
        ClusterModel.from_bytes(data)


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a model file was executed",))


def test_nothing_in_a_file_is_executed() -> None:
    for data in (pickle.dumps(Bomb()), changed(LEARNED, header={"settings": {"oracle": "__import__('os')"}})):
        with pytest.raises(ModelError):
            ClusterModel.from_bytes(data)
    source = Path(msgspec.__file__)  # any file that is code
    with pytest.raises(ModelError):
        ClusterModel.load(source)


def test_a_missing_file_gives_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        ClusterModel.load(tmp_path / "gone")
    with pytest.raises(InputError, match="Is a directory"):
        ClusterModel.load(tmp_path)
