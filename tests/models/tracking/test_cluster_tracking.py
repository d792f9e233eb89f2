"""Clusters that are found again: profiles, candidates, what is known of windows, learning from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.linking.cluster_profiles import (
    ClusteredRows,
    ClusterProfile,
    Spread,
    decode_profiles,
    encode_profiles,
    profile_clusters,
)
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.matching.matchings import chosen_edges
from netclust.models.matching.task import TASK, MatchSettings, graph_of
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.models.structured_model import StructuredModel
from netclust.models.structured_task import learn
from netclust.models.tracking.cluster_tracking import (
    NORMAL,
    TRACKING,
    Known,
    matched_pairs,
    same_class,
    track,
    track_nearest_first,
    tracking_windows,
)
from netclust.models.tracking.profile_pairs import NEAREST, candidate_pairs, profile_distances
from netclust.scoring.model import Model


def seen(ident: int, flag: str, rate: float, records: int = 9, **numbers: float) -> ClusterProfile:
    return ClusterProfile(
        id=ident, label="novel", normal=False, records=records, anomalous=records, members=records, first_time=-1,
        last_time=-1, top_score=1.0, values={"flag": {flag: 1.0}}, firsts={"flag": flag},
        numbers={name: Spread(mean, 0.1, mean) for name, mean in {"rate": rate, **numbers}.items()},
    )  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Model:
    params = msgspec.structs.replace(load_params("unlearned-reference"), false_alarm_rate=0.05)
    return train_network(simulate(3000, seed=1, attacks=KNOWN[:3]).table(), params, seed=0)


@pytest.fixture(scope="module")
def windows(model: Model) -> list[Known]:
    stream = simulate(8000, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK), attack_share=0.4)
    return list(tracking_windows(model, stream.table(), 2000))


def test_a_profile_is_in_the_schemas_own_terms(model: Model) -> None:
    table = simulate(1500, seed=3, attacks=("port_scan",), attack_share=0.4).table()
    linker = Linker(model, LinkerConfig(referent_window=1500))
    cluster = linker.process(model.encoding.encode(table)).cluster
    one = max(profile_clusters(linker), key=lambda profile: profile.members)
    rows = cluster == one.id
    assert one.members == one.records == rows.sum()
    assert len(one.numbers) > 20
    for column, attribute in enumerate(table.schema.numeric):
        if attribute.name in one.numbers:
            raw = table.num[rows, column]
            own = np.log1p(raw) if attribute.transform == "log1p" else raw
            assert one.numbers[attribute.name].mean == pytest.approx(own.mean(), rel=1e-3, abs=1e-3)
            assert one.numbers[attribute.name].first == pytest.approx(own[0], rel=1e-3, abs=1e-3)
    assert all(sum(shares.values()) == pytest.approx(1.0, abs=1e-4) for shares in one.values.values())


def test_small_clusters_are_left_out_and_kept_records_stand_in_for_those_that_left(model: Model) -> None:
    stream = simulate(1500, seed=4, day=2, attacks=(*KNOWN, *HELD_BACK), attack_share=0.3).table()
    linker = Linker(model, LinkerConfig(referent_window=200))
    batch = model.encoding.encode(stream)
    cluster = linker.process(batch).cluster
    every, large = profile_clusters(linker), profile_clusters(linker, least=3)
    assert {p.id for p in large} == {p.id for p in every if p.records >= 3}
    assert all(p.id >= len(model.encoding.labels) for p in every)
    here = {p.id for p in every}
    sizes = {summary.id: summary.records for summary in linker.clusters()}
    gone = next(c for c in sizes if c >= len(model.encoding.labels) and c not in here and sizes[c] >= 3)
    rows = np.flatnonzero(cluster == gone)[:2]
    kept = ClusteredRows(np.full(len(rows), gone), batch.num[rows], batch.code[rows])
    again = {p.id: p for p in profile_clusters(linker, least=3, kept=kept)}
    assert again[gone].members == len(rows)
    assert again.keys() == {p.id for p in large} | {gone}


def test_files_of_profiles_are_never_trusted() -> None:
    profiles = [seen(5, "S0", 0.5)]
    content = encode_profiles(profiles, "kdd")
    assert decode_profiles(content, "a.json") == (profiles, "kdd")
    with pytest.raises(InputError, match=r"a\.json: is no file of cluster profiles"):
        decode_profiles(b"[]", "a.json")
    with pytest.raises(InputError, match="cluster profiles"):
        decode_profiles(content.replace(b"0.5", b"1e300"), "a.json")
    with pytest.raises(InputError, match="twice"):
        decode_profiles(encode_profiles(profiles * 2, "kdd"), "a.json")


def test_candidates_are_the_nearest_of_either_side() -> None:
    old, new = ([seen(k, "S0", k / 100) for k in range(start, start + 100)] for start in (0, 1000))
    pairs = candidate_pairs(old, new)
    assert len(pairs) <= 2 * NEAREST * 100
    assert min(pairs.left.count(str(p.id)) for p in old) >= 1
    assert min(pairs.right.count(str(p.id)) for p in new) >= 1


def test_attributes_that_one_model_does_not_have_say_nothing() -> None:
    old, new = [seen(1, "S0", 0.5, size=3.0)], [seen(2, "S0", 0.5)]
    assert profile_distances(candidate_pairs(old, new)).tolist() == [0.0]


def test_a_cluster_has_one_predecessor_or_none() -> None:
    old = [seen(1, "S0", 0.5), seen(2, "S0", 0.52)]
    new = [seen(7, "S0", 0.5), seen(8, "REJ", 0.9), seen(9, "S0", 0.53)]
    assert [(t.old, t.new) for t in track(old, new)] == [(1, 7), (2, 9)]
    assert track([], new) == track(old, []) == []
    assert track(old, new, limit=0.0) == []


def test_a_matching_is_never_worth_less_than_nearest_first(windows: list[Known]) -> None:
    pairs = candidate_pairs(windows[0].profiles, windows[1].profiles)
    graph, scores = graph_of(pairs, general=False), 0.3 - profile_distances(pairs)
    greedy = chosen_edges(graph, track_nearest_first(graph, scores))
    best = [t.score for t in track(windows[0].profiles, windows[1].profiles)]
    assert scores[greedy].sum() <= sum(best) + 1e-9
    assert (scores[greedy] > 0).all()


def test_windows_know_their_classes_and_normal_pairs_are_left_out(windows: list[Known]) -> None:
    assert len(windows) == 4
    assert all(len(w.profiles) == len(w.classes) > 3 for w in windows)
    assert {c for w in windows for c in w.classes} >= {NORMAL, "port_scan"}
    example = matched_pairs(windows[0], windows[1])
    assert example is not None
    assert example.match is not None
    whole = candidate_pairs(windows[0].profiles, windows[1].profiles)
    same = same_class(whole, windows[0], windows[1])
    of = dict(zip((str(p.id) for p in windows[0].profiles), windows[0].classes, strict=True))
    normal = np.array([of[a] == NORMAL for a in whole.left]) & same
    assert len(example) == len(whole) - normal.sum()
    assert example.match.sum() == same.sum() - normal.sum()
    assert matched_pairs(Known([], []), windows[1]) is None


def test_what_is_learned_is_a_model_of_matchings_that_tracks(model: Model, windows: list[Known]) -> None:
    examples = [matched_pairs(a, b) for a in windows[:3] for b in windows[:3] if a is not b]
    raw: list[Any] = [one for one in examples if one is not None]
    settings = MatchSettings(C=100.0, epsilon=1.0)
    encoder = TRACKING.fit(raw, settings)
    encoded = TRACKING.encode(encoder, raw)
    learned = learn(TRACKING, settings, encoder, encoded)
    problem = TRACKING.problem(encoder, settings)
    measures = TRACKING.measure([(y, problem.predict(x, learned.w)) for x, y in encoded])
    plain = TRACKING.measure([(y, y.best(y.start)) for _, y in encoded])
    assert plain["loss"] == 0
    assert plain["identities kept"] == 100
    assert measures["identities kept"] > 60
    file = StructuredModel(task=TRACKING, settings=settings, encoder=encoder, w=learned.w).to_bytes()
    again = StructuredModel.from_bytes(file, task="matching")
    assert again.task is TASK
    found = track(windows[2].profiles, windows[3].profiles, again)
    assert len({t.old for t in found}) == len({t.new for t in found}) == len(found) > 0
    assert all(t.score > 0 for t in found)
    other = replace(again, task=replace_name(again.task))
    with pytest.raises(InputError, match="a model of matchings"):
        track(windows[2].profiles, windows[3].profiles, other)


def replace_name(task: Any) -> Any:
    class Other(type(task)):  # type: ignore[misc]
        name = "chains"

    return Other()
