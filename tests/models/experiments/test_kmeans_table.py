"""The reproduction of supervised k-means: published comparisons recomputed, and a small run from data to JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from netclust.errors import InputError
from netclust.models.experiments.clustering import kmeans_table as module
from netclust.models.experiments.clustering.kmeans_table import (
    PUBLISHED,
    KmeansSettings,
    KmeansSizes,
    run_column,
    run_kmeans_table,
)
from netclust.models.experiments.clustering.reproduce_kmeans import kmeans_table

pytestmark = pytest.mark.peers

SMALL = KmeansSettings(
    Cs=(0.1, 1.0), epsilon=0.5, max_iterations=60, sizes=KmeansSizes(sets=3, k=3, points=24, features=10, active=3)
)


def test_printed_means_are_those_of_the_printed_losses():
    means = {name: round(float(np.mean(losses)), 2) for name, losses in PUBLISHED.items()}
    assert means == {"Iterative": 46.46, "Spectral": 58.78, "Pair": 50.2, "None": 74.7}


def test_no_test_set_takes_part_in_its_own_training(monkeypatch):
    seen = []
    train = module._train

    def watched(column, sets, C, settings):
        seen.append((C, len(sets)))
        return train(column, sets, C, settings)

    monkeypatch.setattr(module, "_train", watched)
    run = run_column("Pair", SMALL, noise=0.2, draw=0)
    # of 3 sets, inner folds train on 1: 3 different ones for 2 values of C; then one final training a test set
    assert seen.count((0.1, 1)) == seen.count((1.0, 1)) == 3
    assert sum(sets == 2 for _, sets in seen) == 3
    assert run.fits == len(seen) == 9
    assert len(run.tests) == 3


def test_trained_columns_are_better_than_chance_and_runs_repeat():
    table = run_kmeans_table(SMALL, noises=[0.2], draws=2)
    mean = {row.name: row.mean for row in table.rows}
    assert max(mean["Iterative"], mean["Spectral"], mean["Pair"]) < 20
    assert mean["None"] > 40
    assert [row.draws for row in table.rows] == [2] * 4
    again = run_column("Iterative", SMALL, noise=0.2, draw=1)
    assert again in table.runs


def test_the_same_table_comes_from_several_processes():
    one = run_kmeans_table(SMALL, noises=[0.4], draws=1)
    assert run_kmeans_table(SMALL, noises=[0.4], draws=1, jobs=2) == one


def test_the_command_writes_rows_with_the_published_numbers_beside(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("netclust.models.experiments.clustering.reproduce_kmeans.KmeansSettings", lambda: SMALL)
    target = tmp_path / "kmeans.json"
    kmeans_table(noise=[0.2], draws=1, jobs=1, json=target)
    told = capsys.readouterr().out
    assert "noise 0.2" in told
    assert "0.46 is no published setting" in told
    body = json.loads(target.read_text())
    assert [row["name"] for row in body["rows"]] == ["Iterative", "Spectral", "Pair", "None"]
    assert body["rows"][0]["published"] == 46.46
    assert {"name", "setting", "mean", "sd", "draws", "published"} <= set(body["rows"][0])
    assert body["published"]["against_spectral"]["ranks"]["W"] == 15
    assert body["command"] == "reproduce kmeans"


def test_a_run_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("netclust.models.experiments.clustering.reproduce_kmeans.run_kmeans_table", broken)
    with pytest.raises(KeyboardInterrupt):
        kmeans_table(json=tmp_path / "kmeans.json")
    assert list(tmp_path.iterdir()) == []


def test_bad_options_are_refused_before_the_work(tmp_path):
    for bad in (
        {"draws": 0},
        {"jobs": 0},
        {"noise": [0.2, 0.2]},
        {"noise": [1.5]},
        {"json": tmp_path / "no" / "x.json"},
    ):
        with pytest.raises(InputError):
            kmeans_table(**bad)
