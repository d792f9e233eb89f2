"""Experiments of supervised clustering in small: published beside ours, no test cluster in training, looks noted."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from netclust.datasets.simulators.synthetic_sets import coreference_like, news_like, stars
from netclust.models.clustering import cluster_selection
from netclust.models.clustering.text_pairs import TextPairs
from netclust.models.experiments.clustering import (
    clustering_corpora,
    correlation_table,
    irrelevant_features,
    reproduce_clustering,
)
from netclust.models.experiments.clustering.clustering_corpora import Citations, Generated, Newsgroups
from netclust.models.experiments.clustering.clustering_scaling import ORDER, Point, run_scaling, slope
from netclust.models.experiments.clustering.correlation_table import (
    DEFAULT,
    PCC,
    PUBLISHED,
    SVM,
    SplitCorpus,
    run_correlation_table,
    run_split,
)
from netclust.models.experiments.clustering.irrelevant_features import run_curve
from netclust.models.test_set_ledger import TEST_SETS, count_test_uses

pytestmark = pytest.mark.peers

TINY = Generated(partial(stars, clusters=3, size=4), sets=3)
ROW = {"name", "setting", "mean", "sd", "draws", "published"}
GRID = {"correlation": (1e5,), "kmeans": (1.0,), "links": (1.0,), "pairwise": (0.1, 1.0)}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One C is tried."""
    monkeypatch.setattr(cluster_selection, "GRIDS", GRID)


def test_generated_splits_share_no_sets_and_repeat() -> None:
    for make in (partial(coreference_like, clusters=6), partial(stars, 3, 4), partial(news_like, 3, 4)):
        split = Generated(make, sets=2)(3)
        assert (len(split.train), len(split.test)) == (2, 2)
        again, other = Generated(make, sets=2)(3), Generated(make, sets=2)(4)
        w = np.sqrt(np.arange(2.0, 2.0 + split.train[0][0].dimension))
        items = np.arange(1000.0) ** 0.7
        made = [x.scores(w) for part in (split, again, other) for x, _ in (*part.train, *part.test)]
        sums = [float(scores @ items[: len(scores)]) for scores in made]
        assert sums[:4] == sums[4:8]
        assert len(set(sums)) == 8


@pytest.mark.usefixtures("quick")
def test_a_split_does_not_train_on_its_test_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    split = TINY(0)
    corpus = SplitCorpus("tiny", lambda seed: split)
    tested = {id(x) for x, _ in split.test}
    seen: list[int] = []
    for module in (correlation_table, cluster_selection):
        learn = module.learn_clusterer

        def watched(settings: Any, examples: Any, learn: Any = learn, **options: Any) -> Any:
            assert not tested & {id(x) for x, _ in examples}
            seen.append(len(examples))
            return learn(settings, examples, **options)

        monkeypatch.setattr(module, "learn_clusterer", watched)
    found = run_split(corpus, 0)
    assert seen.count(3) == len(found.chosen) == 7  # a final training a row, on all training sets
    assert set(found.losses) >= set(PUBLISHED)
    assert all(len(losses) == 3 for losses in found.losses.values())
    assert found.sizes == {"train": [12] * 3, "test": [12] * 3}
    together = 3 * 6 / 66  # of the pairs of 12 items, those within 3 clusters of 4
    assert found.losses[DEFAULT, "pairwise", "pairwise"] == pytest.approx([100 * together] * 3)


@pytest.mark.usefixtures("quick")
def test_rows_are_means_over_splits() -> None:
    ticks: list[tuple[int, int]] = []
    table = run_correlation_table([SplitCorpus("tiny", TINY, (SVM, PCC))], 2, on_progress=lambda *at: ticks.append(at))
    assert ticks == [(1, 2), (2, 2)]
    rows = {(row.name, row.trained_for, row.tested_under): row for row in table.rows()}
    assert set(rows) == set(PUBLISHED) | {(PCC, "pairwise", "mitre"), (PCC, "mitre", "pairwise")}
    for cell, row in rows.items():
        means = [float(np.mean(split.losses[cell])) for split in table.splits]
        assert (row.mean, row.draws) == (pytest.approx(np.mean(means)), 2)
        assert row.sd == pytest.approx(np.std(means, ddof=1))
        assert row.published == PUBLISHED.get(cell)
    compared = {what for _, what, _, _ in table.comparisons()}
    assert f"{SVM} for pairwise less {PCC} for pairwise" in compared
    again = run_correlation_table([SplitCorpus("tiny", TINY, (SVM, PCC))], 2)
    assert again.rows() == table.rows()


@pytest.mark.usefixtures("quick")
def test_the_table_is_printed_beside_the_published_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reproduce_clustering, "Generated", lambda make: TINY)
    monkeypatch.setattr(
        reproduce_clustering, "SplitCorpus", lambda name, split, *_: SplitCorpus(name, split, (SVM, PCC))
    )
    target = tmp_path / "table.json"
    reproduce_clustering.run_correlation_reproduction(None, None, 2, True, 1, target)
    shown = capsys.readouterr().out
    for part in ("published (MUC-6)", "2.89", "41.30", "chains", "stars", "news-like", "Wilcoxon"):
        assert part in shown
    body = json.loads(target.read_text())
    assert set(body["rows"][0]) >= ROW
    assert body["rows"][0]["published"] == 2.89
    assert {row["draws"] for row in body["rows"]} == {2}
    assert {row["corpus"] for row in body["rows"]} == {"chains", "stars", "news-like"}
    assert len(body["splits"]) == 6
    assert (body["command"], body["data"]) == ("reproduce correlation", {})


@pytest.mark.usefixtures("quick")
def test_a_use_of_the_citations_is_noted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cited, ledger = tmp_path / "cited.csv", tmp_path / "looks.jsonl"
    lines = [f"{n},{n // 4},title{n // 4} of{n % 3},{n // 8},venue{n % 2},x" for n in range(40)]
    cited.write_text("\n".join(["1,2,3,5,7,10", *lines]))
    monkeypatch.setattr(reproduce_clustering, "Citations", partial(Citations, low=8, high=8))
    monkeypatch.setattr(reproduce_clustering, "SplitCorpus", lambda name, split, *_: SplitCorpus(name, split, (PCC,)))
    monkeypatch.setenv("NETCLUST_LOOKS", str(ledger))
    reproduce_clustering.run_correlation_reproduction(cited, None, 1, False, 1, tmp_path / "j")
    assert not ledger.exists()
    checksum = hashlib.sha256(cited.read_bytes()).hexdigest()
    monkeypatch.setitem(TEST_SETS, checksum, "cited")
    reproduce_clustering.run_correlation_reproduction(cited, None, 1, False, 1, tmp_path / "j")
    assert f"noted in {ledger}" in capsys.readouterr().err
    body = json.loads((tmp_path / "j").read_text())
    assert count_test_uses(ledger) == (1, len(body["rows"]))
    assert body["data"] == {"cited.csv": checksum}


def test_bad_input_to_an_experiment_gives_one_clear_line(run: Any, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for args in (("--cora", gone), ("--newsgroups", gone), ("--cora", tmp_path)):
        ran = run("reproduce", "correlation", *args)
        assert (ran.code, ran.out) == (2, "")
        assert str(args[1]) in ran.err
    ran = run("reproduce", "correlation", "--no-generated")
    assert ran.code == 2
    assert "nothing to run on" in ran.err
    for name in ("correlation", "irrelevant-features", "clustering-scaling"):
        assert run("reproduce", name, "--json", gone / "x.json").code == 2
    assert run("reproduce", "irrelevant-features", "--runs", 0).code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a corpus would make pair features of, without making them."""
    seen: list[Any] = []
    monkeypatch.setattr(clustering_corpora, "text_split", lambda spec, train, test: seen.append((train, test)))
    return seen


def test_no_test_cluster_of_the_citations_is_in_training(data_folder: Path, drawn: list[Any]) -> None:
    corpus = Citations(str(data_folder / "cora-citations" / "cora.csv"))
    for seed in (0, 0, 1):
        corpus(seed)
    for train, test in drawn:
        clusters = [{name for table in part for name in table.labels} for part in (train, test)]
        assert not clusters[0] & clusters[1]
        assert not {i for t in train for i in t.ids} & {i for t in test for i in t.ids}
        assert all(60 <= len(table) <= 120 for table in (*train, *test))
        assert abs(len(train) - len(test)) <= 1
    first, again, other = ([table.ids for table in train] for train, _ in drawn)
    assert first == again != other


def test_no_test_group_of_the_posts_is_in_training(data_folder: Path, drawn: list[Any]) -> None:
    Newsgroups(str(data_folder / "20newsgroups" / "20news-bydate-all.tar.xz"), sets=4)(0)
    ((train, test),) = drawn
    groups = [{name for table in part for name in table.labels} for part in (train, test)]
    assert not groups[0] & groups[1]
    for table in (*train, *test):
        assert len(table) == 100
        assert 5 <= len(set(table.labels)) <= 10
    ids = [i for table in (*train, *test) for i in table.ids]
    assert len(set(ids)) == len(ids)


def test_rarity_of_words_is_learned_from_training_sets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, learned_from = TextPairs.fit, []
    monkeypatch.setattr(TextPairs, "fit", lambda spec, tables: (learned_from.extend(tables), fit(spec, tables))[1])
    path = tmp_path / "cited.csv"
    lines = [f"{n},{n // 4},title{n // 4} of{n % 3},{n // 8},venue{n % 2},x" for n in range(40)]
    path.write_text("\n".join(["1,2,3,5,7,10", *lines]))
    split = Citations(str(path), low=8, high=8)(0)
    assert (len(split.train), len(split.test)) == (2, 3)
    labels = [np.asarray(y).tolist() for _, y in (*split.train, *split.test)]
    assert all(len(y) == 8 and max(y) == 1 for y in labels)
    assert [table.clusters().tolist() for table in learned_from] == labels[:2]


def test_a_learned_likeness_withstands_irrelevant_dimensions_and_kmeans_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Any
) -> None:
    monkeypatch.setattr(irrelevant_features, "POINTS", 24)
    monkeypatch.setattr(irrelevant_features, "COSTS", (1e4, 1e5))
    rows = run_curve("greedy", dimensions=(1, 16), runs=2, validation=1)
    by = {(row.name, row.setting): row for row in rows}
    assert len(by) == len(rows) == 6
    assert by["learned, greedy oracle", "D = 16"].mean > by["k-means", "D = 16"].mean + 0.2
    assert by["k-means on the relevant feature alone", "D = 16"].mean > 0.9
    assert run_curve("greedy", dimensions=(16,), runs=2, validation=1) == rows[3:]
    assert {row.draws for row in rows} == {2}
    target, plot = tmp_path / "curve.json", tmp_path / "curve.svg"
    monkeypatch.setattr(reproduce_clustering, "DIMENSIONS", (1, 4, 8))
    monkeypatch.setattr(irrelevant_features, "POINTS", 12)
    monkeypatch.setattr(irrelevant_features, "COSTS", (1e4,))
    options = ("--oracle", "greedy", "--runs", 2, "--most", 4, "--json", target, "--plot", plot)
    ran = run("reproduce", "irrelevant-features", *options)
    assert ran.code == 0, ran.err
    assert "published: learned flat, k-means falls to 0.5" in ran.out
    body = json.loads(target.read_text())
    assert [row["setting"] for row in body["rows"]] == ["D = 1"] * 3 + ["D = 4"] * 3
    assert set(body["rows"][0]) >= ROW
    assert b"<svg" in plot.read_bytes()


def test_the_cost_is_chosen_without_the_reported_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    draw = irrelevant_features._draw
    monkeypatch.setattr(irrelevant_features, "POINTS", 12)
    monkeypatch.setattr(irrelevant_features, "_draw", lambda D, seed: (seen.append(seed), draw(D, seed))[1])
    irrelevant_features._choose("greedy", 1, 2, lambda: None)
    chosen = set(seen)
    seen.clear()
    monkeypatch.setattr(irrelevant_features, "_choose", lambda *given: 1e4)
    run_curve("greedy", dimensions=(1,), runs=3, validation=0)
    assert len(seen) == len(set(seen)) == 6
    assert not chosen & set(seen)


def test_growth_is_measured_and_objectives_are_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Any
) -> None:
    small = partial(run_scaling, sets=(2, 4), items=(12, 16), lp_items=(8, 12), small=2)
    monkeypatch.setattr("netclust.models.experiments.clustering.clustering_scaling.LARGE", ())
    monkeypatch.setattr(reproduce_clustering, "run_scaling", small)
    target, plot = tmp_path / "s.json", tmp_path / "s.svg"
    ran = run("reproduce", "clustering-scaling", "--json", target, "--plot", plot)
    assert ran.code == 0, ran.err
    for part in ("published", "linear", "polynomial", "iterations from the fewest to the most sets"):
        assert part in ran.out
    body = json.loads(target.read_text())
    points = [msgspec.convert(point, Point) for point in body["points"]]
    assert [p.size for p in points if p.series == "training, by sets"] == [2, 4]
    assert {"clustering, greedy", "clustering, local", "clustering, lp"} <= set(body["slopes"])
    value = {p.series.split()[1]: p.objective or 0.0 for p in points if p.series.startswith("objective")}
    assert set(value) == set(ORDER)
    room = 1e-3 * body["C"] * 1.01  # each is within epsilon of its own optimum
    assert max(value["greedy"], value["local"]) <= value["exact"] + room
    assert value["exact"] <= min(value["lp"], value["sdp"]) + room
    assert all(p.converged and p.gap is not None for p in points if p.series.startswith("objective"))
    assert plot.stat().st_size > 1000


def test_the_slope_is_the_exponent() -> None:
    for power in (0.0, 1.0, 2.5):
        points = [Point(series="a", size=n, seconds=0.5 * n**power) for n in (2, 4, 9)]
        assert slope(points) == pytest.approx(power, abs=1e-9)
