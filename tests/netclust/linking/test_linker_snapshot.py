"""Snapshots that are cut short, damaged, made by someone else or made up: refused, or harmless.

A number that a snapshot holds must never become an index out of range inside a kernel, where nothing would stop it. So
the kernels run here as plain Python, where it raises an IndexError.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linker_cases import (
    SECOND,
    assert_same,
    build_model,
    examples,
    line,
    line_model,
    random_stream,
    with_names,
)

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.kernels.linking import boxes, grouping, representatives, score
from netclust.kernels.linking import link as kernels
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.snapshot import KIND

EXTREMES = [-(2**63), -(2**31), -3, -2, -1, 0, 1, 2, 3, 255, 65535, 2**31 - 1, 2**40, 2**62, 2**63 - 1]


@contextmanager
def plain():
    """The linker's kernels as plain Python functions."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (kernels, boxes, grouping, representatives, score):
            for name in dir(module):
                if hasattr(getattr(module, name), "py_func"):
                    patch.setattr(module, name, getattr(module, name).py_func)
        with np.errstate(all="ignore"):  # as compiled: no warnings about overflow
            yield


@pytest.fixture(scope="module")
def plain_kernels():
    with plain():
        yield


def busy(partitions=1):
    """A model, a linker with something of everything, and what comes next."""
    rng = np.random.default_rng(8)
    stream = random_stream(rng, 60, 2, (2, 4))
    stream.num, stream.code = (rng.integers(0, 5, (60, 2)) / 4).astype(np.float32), stream.code
    stream.time = 1000 * SECOND + np.arange(60) * SECOND
    w = [1.0, 1.0, *[0.5, 0.0, 0.25] * 4, 2.5]
    model = build_model(stream.num[:4], stream.code[:4], [0, 0, 1, 2], w, widths=(2, 4))
    config = LinkerConfig(
        referent_window=12, gap=1, label_delay=3, mature_after=5.0, mature_share=0.5, partitions=partitions,
        max_clusters=4, max_events=20, representatives=5, keep="medoid",
    )  # fmt: skip
    linker = with_names(Linker(model, config))
    linker.process(stream[:20])
    linker.label_cluster(0, "worm")
    linker.label_cluster(5, "normal")
    linker.process(stream[20:26])
    linker.undo(0)
    linker.label_record(stream.record_id(25), "dos")
    linker.label_record(stream.record_id(24), "worm", from_tick=43)
    linker.label_cluster(1, "worm", from_tick=44)
    linker.undo(1, from_tick=45)
    linker.process(stream[26:40])
    return model, linker, stream[40:]


with plain():  # so that collecting the tests compiles nothing
    MODEL, LINKER, NEXT = busy()
DATA = LINKER.snapshot()
ARRAYS, HEADER = container.unpack_container(DATA, KIND, "snapshot")


def survive(data):
    """Restore and use it in every way. True: it was accepted, worked, and what it saves can be restored."""
    try:
        linker = Linker.restore(MODEL, data)
    except (ModelError, InputError):
        return False
    try:
        linker.process(NEXT)
        linker.label_cluster(0, "dos")
        linker.label_record("0:3", "worm")
    except InputError as error:  # a count at its bound, or a label that was renamed
        assert "label" in str(error)  # noqa: PT017
    for event in [e.event for e in linker.events if e.scope != "undo" and not e.undone]:
        try:
            linker.undo(event)
        except InputError as error:
            assert "already" in str(error) or "too old" in str(error)  # noqa: PT017
    linker.clusters()
    linker.counters()
    linker.process(NEXT)
    Linker.restore(MODEL, linker.snapshot())
    return True


def test_the_case_has_something_of_everything():
    counts = LINKER.counters()
    assert min(counts[name] for name in ("trusted", "clusters_forgotten_total", "referents", "representatives")) > 0
    assert {e.scope for e in LINKER.events} == {"record", "cluster", "undo"}
    assert {e.applied for e in LINKER.events} == {True, False}
    assert any(e.before for e in LINKER.events)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_snapshot_survives_itself(partitions, plain_kernels):
    model, linker, after = busy(partitions)
    again = Linker.restore(model, linker.snapshot())
    assert again.snapshot() == linker.snapshot()
    assert_same(again.process(after), linker.process(after))


def test_plain_kernels_agree_with_compiled_ones():
    fresh = busy()[1]
    assert fresh.snapshot() == DATA


def test_every_truncation_is_refused():
    for size in [*range(0, len(DATA), 97), len(DATA) - 1]:
        with pytest.raises(ModelError):
            Linker.restore(MODEL, DATA[:size])


@examples(few=400, many=20_000)
@given(where=st.integers(0, len(DATA) - 1), bit=st.integers(0, 7), in_header=st.booleans())
def test_flipped_bits_are_refused_or_harmless(plain_kernels, where, bit, in_header):
    at = where % (8 + int.from_bytes(DATA[:8], "little")) if in_header else where
    damaged = bytearray(DATA)
    damaged[at] ^= 1 << bit
    survive(bytes(damaged))


def mutated(name, position, value):
    """The snapshot with one number of one array replaced; None if the array is empty or cannot hold it."""
    array = ARRAYS[name].copy()
    if array.size == 0:
        return None
    if array.dtype.kind != "f":
        info = np.iinfo(array.dtype)
        value = min(max(value, int(info.min)), int(info.max))
    array.flat[position % array.size] = value
    return container.pack_container(KIND, ARRAYS | {name: array}, HEADER)


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_no_number_of_an_array_leads_out_of_range(name, plain_kernels):
    size = ARRAYS[name].size
    positions = range(size) if name.endswith("cursor") else sorted({0, size // 2, size - 1})
    for position in positions:
        for value in EXTREMES:
            data = mutated(name, position, value)
            if data is not None:
                survive(data)


LABELS = len(LINKER.labels)
EVENTS = 1 + max(event.event for event in LINKER.events)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("0.window.side", 3, "a member has a side that does not exist"),
        ("0.window.trusted", 2, "a member has a side that does not exist"),
        ("0.window.truth", LABELS, "a member has a label or a value that does not exist"),
        ("0.window.code", 4, "a member has a label or a value that does not exist"),
        ("0.window.label", LABELS, "names labels that it does not have"),
        ("0.window.label", kernels.NOVEL_LABEL - 1, "names labels that it does not have"),
        ("0.window.event", EVENTS, "names label events that it does not have"),
        ("0.window.event", -2, "names label events that it does not have"),
        ("0.window.slot", -1, "a member names a cluster summary that does not exist"),
        ("0.window.slot", 7, "a member names a cluster summary that does not exist"),
        ("0.window.origin", LINKER.tick, "a member has its label from one that does not exist"),
        ("0.window.origin", kernels.ROOT - 5, "a member has its label from one that does not exist"),
        ("refs.label", LABELS, "names labels that it does not have"),
        ("refs.event", EVENTS, "names label events that it does not have"),
        ("refs.side", 3, "a reference has a side that does not exist"),
        ("0.cursor", -1, "the cursors are out of range"),
        ("0.cursor", 2**62, "the cursors are out of range"),
    ],
)
def test_what_does_not_exist_is_refused_by_its_name_and_that_of_the_file(name, value, message):
    with pytest.raises(ModelError, match=f"^a-file: {message}"):
        Linker.restore(MODEL, mutated(name, ARRAYS[name].size - 1, value), "a-file")


def test_a_trusted_member_that_is_not_normal_is_refused():
    at = int(np.flatnonzero(ARRAYS["0.window.side"] != kernels.NORMAL_SIDE)[0])
    with pytest.raises(ModelError, match=r"^a-file: a trusted member is not normal"):
        Linker.restore(MODEL, mutated("0.window.trusted", at, 1), "a-file")


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_an_array_that_is_missing_or_of_another_length_is_named_with_its_file(name):
    with pytest.raises(ModelError, match=r"^a-file: "):
        Linker.restore(
            MODEL, container.pack_container(KIND, {k: v for k, v in ARRAYS.items() if k != name}, HEADER), "a-file"
        )
    with pytest.raises(ModelError, match=r"^a-file: "):
        Linker.restore(MODEL, container.pack_container(KIND, ARRAYS | {name: ARRAYS[name][..., :-1]}, HEADER), "a-file")


def test_what_is_no_snapshot_is_refused_with_its_file():
    for data in (b"", b"x" * 100, container.pack_container("netclust.other", ARRAYS, HEADER), DATA[:-1]):
        with pytest.raises(ModelError, match="a-file"):
            Linker.restore(MODEL, data, "a-file")


@examples(few=150, many=10_000)
@given(
    changes=st.lists(
        st.tuples(st.sampled_from(sorted(ARRAYS)), st.integers(0, 10_000), st.sampled_from(EXTREMES)),
        min_size=2,
        max_size=4,
    )
)
def test_several_wrong_numbers_do_not_cover_for_each_other(plain_kernels, changes):
    arrays = {name: array.copy() for name, array in ARRAYS.items()}
    for name, position, value in changes:
        array = arrays[name]
        if array.dtype.kind != "f":
            info = np.iinfo(array.dtype)
            value = min(max(value, int(info.min)), int(info.max))
        if array.size:
            array.flat[position % array.size] = value
    survive(container.pack_container(KIND, arrays, HEADER))


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_arrays_that_are_missing_longer_shorter_or_of_another_type_are_refused(name):
    array = ARRAYS[name]
    without = {k: v for k, v in ARRAYS.items() if k != name}
    other = np.int32 if array.dtype != np.int32 else np.int64
    longer = np.concatenate([array, array[..., -1:]], axis=-1)
    for arrays in (
        without,
        without | {name: longer},
        without | {name: array[..., :-1]},
        without | {name: array.astype(other)},
        without | {name: array[None]},
    ):
        with pytest.raises(ModelError):
            Linker.restore(MODEL, container.pack_container(KIND, arrays, HEADER))


def leaves(value, path=()):
    """Every place of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    yield path
    for key, part in inner:
        yield from leaves(part, (*path, key))


def with_leaf(value, path, new):
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = with_leaf(value[path[0]], path[1:], new)
    return changed


HEADER_PLACES = [path for path in leaves(HEADER) if path]
STRANGE = [*EXTREMES, 2**64 - 1, None, True, 0.5, -0.5, "", "normal", "x" * 300, [], {}, [[]], {"1": [1, 1, 1, 1]}]


@examples(few=500, many=20_000)
@given(path=st.sampled_from(HEADER_PLACES), new=st.sampled_from(STRANGE))
def test_strange_headers_are_refused_or_harmless(plain_kernels, path, new):
    if path[0] == "config" and isinstance(new, int) and new > 1 << 16:
        return  # allowed, but it is a lot of memory for a test
    survive(container.pack_container(KIND, ARRAYS, with_leaf(HEADER, path, new)))


@pytest.mark.parametrize(
    "header",
    [
        {"config": {"partitions": 2}},
        {"config": {"partitions": 1 << 24}},
        {"config": {"referent_window": 5}},
        {"config": {"max_clusters": 1}},
        {"config": {"mature_after": None}},
        {"config": {"max_events": 2}},
        {"config": {"gap": -1}},
        {"config": {"colour": "red"}},
        {"tick": 41},
        {"tick": -1},
        {"tick": 2**63},
        {"next_event": 0},
        {"next_event": 2**63},
        {"labels": ["normal"]},
        {"labels": ["normal", "probe", "dos", "worm", "benign"]},
        {"labels": ["normal", "dos", "probe", "worm"]},
        {"labels": ["normal", "dos", "probe", "worm", "worm"]},
        {"labels": ["normal", "dos", "probe", "worm", ""]},
        {"model": "0" * 64},
    ],
)
def test_headers_that_do_not_fit_the_arrays_are_refused(header):
    changed = HEADER | header
    if "config" in header:
        changed["config"] = HEADER["config"] | header["config"]
    with pytest.raises(InputError):
        Linker.restore(MODEL, container.pack_container(KIND, ARRAYS, changed))


def test_a_snapshot_of_another_model_is_refused():
    others = (
        line_model(),
        replace(MODEL, averaged=MODEL.averaged * 2),
        replace(MODEL, sign=1),
        replace(MODEL, rooted=False),
        replace(MODEL, reference=MODEL.reference[:3]),
        replace(MODEL, encoding=replace(MODEL.encoding, labels=("normal", "probe", "dos"))),
        replace(MODEL, encoding=replace(MODEL.encoding, vocabularies=(("x",), ("v3", "v2", "v1")))),
    )
    for model in others:
        with pytest.raises(ModelError, match="another model"):
            Linker.restore(model, DATA)


def test_files_of_another_kind_are_refused():
    for data in (
        MODEL.to_bytes(),
        container.pack_container("netclust.other", ARRAYS, HEADER),
        b"",
        b"\0" * 64,
        b"{}" * 100,
    ):
        with pytest.raises(ModelError):
            Linker.restore(MODEL, data)


def test_a_linker_without_a_window_or_references_can_be_saved():
    for model, config in ((line_model(()), None), (line_model(), LinkerConfig(referent_window=0, gap=3))):
        linker = Linker(model, config)
        linker.process(line([0.1, 0.5]))
        again = Linker.restore(model, linker.snapshot())
        assert again.snapshot() == linker.snapshot()
        assert_same(again.process(line([0.5])), linker.process(line([0.5])))
