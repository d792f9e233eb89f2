"""Searching by bounds: the same answers as a full scan, bit for bit, whatever comes, and a state that stays whole."""

from __future__ import annotations

import os
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linker_cases import NAMES, configs, examples, random_model, random_script, random_stream, say, with_names

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.kernels.jit import borrowing, kernel
from netclust.kernels.linking import boxes
from netclust.kernels.linking import link as kernels
from netclust.linking import search_index, state
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.search import PRUNE_FROM
from netclust.models.network.train_network import train_network
from netclust.records.batch import Batch
from netclust.shipped.loading import load_shipped

LONG = bool(os.environ.get("NETCLUST_LONG"))


@pytest.fixture
def small_groups(monkeypatch):
    """Leaves of four members and nodes of three leaves: a short stream splits, empties and refills them."""
    monkeypatch.setattr(search_index, "LEAF_MEMBERS", 4)
    monkeypatch.setattr(search_index, "NODE_LEAVES", 3)
    monkeypatch.setattr(state, "SPARE", 3)


def differences(a, b):
    """The columns of verdicts that are not the same bit for bit."""
    return [f.name for f in fields(a) if getattr(a, f.name).tobytes() != getattr(b, f.name).tobytes()]


def check_index(index, part):
    """Every member is where the index says, within its boxes, and counted once."""
    if index.tally[boxes.LOST]:
        return
    seen = 0
    slots = len(index.where)
    oldest_live = int(part.cursor[kernels.PUSHED] - (part.cursor[kernels.END] - part.cursor[kernels.START]))
    features, coded = index.exact.shape[2] // 2, index.mask.shape[1]
    for side in range(2):
        for r in range(index.roots[side]):
            node = index.root_node[side, r]
            assert index.side[node] == side
            assert index.root[node] == r
            assert index.width[node] > 0
            for j in range(index.width[node]):
                leaf = index.leaf[node, j]
                assert (index.node[leaf], index.column[leaf]) == (node, j)
                numbers = index.number[leaf, : index.size[leaf]]
                assert len(numbers) > 0
                seen += len(numbers)
                at = numbers % slots
                assert (index.where[at] == leaf).all()
                assert (index.held[at] == side + 1).all()
                assert (numbers >= oldest_live).all()
                rows, unary = index.row[at, :features], index.row[at, features + coded]
                for exact, old in (
                    (index.exact[node, j], index.oldest[node, j]),
                    (index.root_exact[side, r], index.root_oldest[side, r]),
                ):
                    assert (rows >= exact[:features]).all()
                    assert (rows <= exact[features : 2 * features]).all()
                    assert unary.max() <= exact[2 * features]
                    assert old <= numbers.min()
    assert seen == index.tally[boxes.MEMBERS]
    window = part.window
    live = part.live
    for number in range(oldest_live, int(index.tally[boxes.NEXT])):
        side = window.side[live.start + number - oldest_live]
        assert index.held[number % slots] == side


@given(st.integers(0, 2**32), configs())
@examples(150, 3000)
def test_any_stream_with_any_feedback_gives_the_same(seed, config):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_index, "LEAF_MEMBERS", int(rng.choice([2, 4, 7])))
        patch.setattr(search_index, "NODE_LEAVES", int(rng.choice([2, 3, 5])))
        patch.setattr(state, "SPARE", 3)
        model = random_model(rng)
        batch = random_stream(rng, 80, len(model.encoding.kept), model.encoding.widths)
        full, pruned = (with_names(Linker(model, config, search=how)) for how in ("full", "pruned"))
        at = 0
        script = random_script(rng, batch, 6)
        for said, scope, target, label, from_tick in [*script, (len(batch), None, None, None, None)]:
            assert differences(full.process(batch[at:said]), pruned.process(batch[at:said])) == []
            assert differences(full.score_only(batch[:5]), pruned.score_only(batch[:5])) == []
            at = said
            if scope is not None:
                for linker in (full, pruned):
                    say(linker, scope, target, label, from_tick)
        for p, part in enumerate(pruned.memory.partitions):
            index, how = pruned.referent_search.window(p, part)
            if how:
                check_index(index, part)
    assert len(NAMES) == len(full.labels)


@borrowing(kernel)
def bounds_and_scores(index, scratch, scorer, num, code, out):
    """out: of every record and member, its score, the exact bounds of leaf and node, and whether units let it pass."""
    matches, steps, query, at = scratch.matches, scratch.steps, scratch.query, 0
    for i in range(len(num)):
        x, codes, start = num[i], code[i], scorer.base
        for s in range(len(codes)):
            start += scorer.own[scorer.offset[s] + codes[s]]
            matches[s] = scorer.match[scorer.offset[s] + codes[s]]
        boxes.prepare_box_query(query, steps, x, codes, start, matches)
        ceiling = boxes.ceiling_of(index, query, scorer, x)
        leaves, nodes = boxes.leaf_boxes(index), boxes.node_boxes(index)
        for side in range(2):
            n = index.roots[side]
            boxes.box_lacks(query.step, steps.cap, query.price, query.bit, nodes, side, n, index.lacks)
            for k in range(n):
                node = np.int64(index.root_node[side, k])
                width = np.int64(index.width[node])
                boxes.box_lacks(query.step, steps.cap, query.price, query.bit, leaves, node, width, index.leaf_lacks)
                for j in range(width):
                    leaf = np.int64(index.leaf[node, j])
                    size = np.int64(index.size[leaf])
                    for first in range(0, size, boxes.WIDE):
                        boxes.members_within(
                            query.step, steps.cap, query.price, query.byte, index.member, leaf, first, size,
                            np.int64(boxes.MOST), index.member_lacks,
                        )  # fmt: skip
                    for m in range(size):
                        slot = index.number[leaf, m] % len(index.where)
                        weights = (scorer.slope, scorer.far)
                        score = boxes.score_of(x, codes, start, matches, weights[0], weights[1], index.row, slot)
                        limit = boxes.limit_of(ceiling, score, steps.unit[0])
                        out[at, 0] = score
                        out[at, 1] = boxes.box_bound(
                            x, codes, start, matches, weights[0], weights[1], leaves.exact, leaves.mask, node, j
                        )
                        out[at, 2] = boxes.box_bound(
                            x, codes, start, matches, weights[0], weights[1], nodes.exact, nodes.mask, side, k
                        )
                        passes = (
                            index.lacks[k] <= limit and index.leaf_lacks[j] <= limit and index.member_lacks[m] <= limit
                        )
                        out[at, 3] = 1 if passes else 0
                        at += 1
    return at


def test_no_bound_is_below_a_score(small_groups):
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(60):
        model = random_model(rng)
        features, widths = len(model.encoding.kept), model.encoding.widths
        linker = with_names(Linker(model, LinkerConfig(referent_window=60), search="pruned"))
        linker.process(random_stream(rng, 60, features, widths))
        index = linker.referent_search.window(0, linker.memory.partitions[0])[0]
        some = random_stream(rng, 20, features, widths)
        out = np.zeros((20 * 61, 4), np.float32)
        n = bounds_and_scores(index, linker.referent_search.scratch(0), model.scorer, some.num, some.code, out)
        score, leaf, node, passes = out[:n].T
        assert (leaf >= score).all()
        assert (node >= leaf).all()
        assert passes.all()
        compared += n
    assert compared > 20_000


@pytest.mark.parametrize("name", ["kdd", "conn", "flow"])
def test_the_shipped_models_on_floods_of_twins_and_near_twins(small_groups, name):
    model = load_shipped(name)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, len(model.reference), 1500)
    rows[300:900] = rows[300]  # a flood
    near = model.reference[rows]
    num = near.num + rng.choice([0, 1e-6, 1e-3, 0.1], near.num.shape) * rng.normal(size=near.num.shape)
    num[300:600] = near.num[300]  # exact twins, then near ones
    batch = Batch(num=num.astype(np.float32), code=near.code, time=np.arange(1500, dtype=np.int64) * 10**9)
    for config in (LinkerConfig(referent_window=400), LinkerConfig(referent_window=400, mature_after=30.0)):
        full, pruned = (Linker(model, config, search=how).process(batch) for how in ("full", "pruned"))
        assert differences(full, pruned) == []


def test_a_restored_linker_and_one_that_adopts_weights_go_on_alike(small_groups):
    model = train_network(simulate(2000, seed=1).table(), seed=0)
    today = model.encoding.encode(simulate(900, seed=2, day=1).table())
    config = LinkerConfig.stream(referent_window=300)
    full, pruned = (Linker(model, config, search=how) for how in ("full", "pruned"))
    for linker in (full, pruned):
        linker.process(today[:500])
    pruned = Linker.restore(model, pruned.snapshot(), search="pruned")
    assert differences(full.process(today[500:600]), pruned.process(today[500:600])) == []
    other = replace(model, averaged=model.averaged * 1.25, last=model.last * 1.25)
    full, pruned = full.with_model(other), pruned.with_model(other)
    assert pruned.referent_search.search == "pruned"
    assert differences(full.process(today[600:]), pruned.process(today[600:])) == []


def test_an_index_that_is_full_is_given_up_and_made_anew(monkeypatch):
    monkeypatch.setattr(search_index, "SPREAD", 0)
    monkeypatch.setattr(search_index, "LEAF_MEMBERS", 2)
    monkeypatch.setattr(search_index, "NODE_LEAVES", 2)
    model = train_network(simulate(2000, seed=1).table(), seed=0)
    today = model.encoding.encode(simulate(700, seed=2, day=1).table())
    config = LinkerConfig.stream(referent_window=300)
    full, pruned = (Linker(model, config, search=how) for how in ("full", "pruned"))
    lost = False
    for at in range(0, 700, 100):
        assert differences(full.process(today[at : at + 100]), pruned.process(today[at : at + 100])) == []
        lost = lost or bool(pruned.referent_search._windows[0].tally[boxes.LOST])
    assert lost


def test_auto_scans_few_referents_and_leaves_bounds_where_they_do_not_pay():
    model = train_network(simulate(3000, seed=1).table(), seed=0)  # a perceptron: weights of either sign
    few = Linker(model, LinkerConfig(referent_window=PRUNE_FROM - 1))
    assert few.referent_search.window(0, few.memory.partitions[0])[1] == kernels.FULL
    many = Linker(model, LinkerConfig(referent_window=PRUNE_FROM))
    assert many.referent_search.window(0, many.memory.partitions[0])[1] == kernels.CHEAPEST
    today = model.encoding.encode(simulate(12_000, seed=2, day=1).table())
    many.process(today)
    work = many.referent_search.work()
    full = Linker(model, LinkerConfig(referent_window=PRUNE_FROM), search="full")
    full.process(today)
    assert 0 < work["scored_total"] < PRUNE_FROM * 12_000
    assert full.referent_search.work()["scored_total"] == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("window", "links"), [(1000, 10_000_000), (10_000, 100_000), (100_000, 10_000), (1_000_000, 1000)]
)
def test_full_counts_are_the_same_bit_for_bit(window, links):
    model = load_shipped("kdd")
    rng = np.random.default_rng(7)

    def records(n):
        rows = rng.integers(0, len(model.reference), n)
        num = model.reference.num[rows] * (1 + 0.02 * rng.normal(size=(n, model.reference.num.shape[1])))
        return Batch(num=num.astype(np.float32), code=model.reference.code[rows])

    full, pruned = (Linker(model, LinkerConfig(referent_window=window), search=how) for how in ("full", "pruned"))
    if window > 10_000:  # filling it by a full scan would take hours: it is handed over
        pruned.process(records(window))
        full = Linker.restore(model, pruned.snapshot(), search="full")
    else:
        fill = records(window)
        for linker in (full, pruned):
            linker.process(fill)
    for _ in range(max(links // 10_000, 1)):
        batch = records(min(links, 10_000))
        assert differences(full.process(batch), pruned.process(batch)) == []


def test_two_threads_give_what_one_gives():
    rng = np.random.default_rng(3)
    while True:
        model = random_model(rng)
        if len(model.reference) and len(model.encoding.kept):
            break
    batch = random_stream(rng, 3000, len(model.encoding.kept), model.encoding.widths)
    config = LinkerConfig(referent_window=200, partitions=4, label_delay=10)
    one, two = (with_names(Linker(model, config, search="pruned", threads=n)) for n in (1, 2))
    assert two.threads == 2
    for at in range(0, 3000, 500):
        part = batch[at : at + 500]
        first, a = one.process_with_evidence(part)
        second, b = two.process_with_evidence(part)
        assert differences(first, second) == []
        assert a.rows.tobytes() == b.rows.tobytes()
        assert a.normal.num.tobytes() == b.normal.num.tobytes()
    assert one.snapshot() == two.snapshot()
    with pytest.raises(InputError, match="threads"):
        Linker(model, config, threads=0)
