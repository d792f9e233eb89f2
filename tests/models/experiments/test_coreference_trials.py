"""Trainings in a file, the table and the tests that are made of them, and the pictures."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest

from netclust.errors import InputError
from netclust.models.coreference.settings import CoreferenceSettings
from netclust.models.experiments.coreference.coreference_plots import write_curves, write_sizes
from netclust.models.experiments.coreference.coreference_report import PUBLISHED, report_claims, report_rows
from netclust.models.experiments.coreference.coreference_trials import CoreferenceTrial, Trials


def trial(model="LSP^E", split=0, mela=70.0, size=None, stage="table", curve=(1.0, 3.0, 3.0), **others):
    settings = others.pop("settings", CoreferenceSettings(strongest=size))
    test = {"mela": mela, "muc": mela + 1} if stage == "table" else {}
    return CoreferenceTrial(split=split, model=model, stage=stage, settings=settings, curve=curve, test=test, **others)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trials.jsonl"


def test_a_training_is_read_as_it_was_written(path):
    settings = CoreferenceSettings(learner="lspa", C=0.1 + 0.2, r=1 / 3, strongest=7)
    one = trial(settings=settings, seconds=1.5, updates=3, converged=False, losses=(1 / 3, 2.0))
    written = Trials(path)
    assert list(written) == []
    written.add(one)
    assert list(written) == list(Trials(path)) == [one]


def test_a_training_is_recognised_by_all_its_settings(path):
    trials = Trials(path)
    trials.add(trial(stage="tune"))
    settings = CoreferenceSettings()
    assert trials.has(0, "LSP^E", settings, "tune")
    for other in (
        (1, "LSP^E", settings, "tune"),
        (0, "LSPA^E", settings, "tune"),
        (0, "LSP^E", CoreferenceSettings(C=3.0), "tune"),
        (0, "LSP^E", settings, "table"),
    ):
        assert not trials.has(*other)


def test_the_best_epoch_is_the_first_of_equals():
    assert (trial(curve=(1.0, 3.0, 3.0, 2.0)).epochs, trial(curve=(1.0, 3.0)).dev) == (2, 3.0)
    assert (trial(curve=()).epochs, trial(curve=()).dev) == (0, 0.0)


def test_a_cut_line_is_removed_before_the_next_is_written(path):
    Trials(path).add(trial(split=0))
    whole = path.read_bytes()
    for cut in (1, 20, len(whole) - 1):
        path.write_bytes(whole + whole[:cut])
        trials = Trials(path)
        assert [one.split for one in trials] == [0]
        trials.add(trial(split=5))
        assert [one.split for one in Trials(path)] == [0, 5]
    path.write_bytes(whole[:30])  # nothing but a cut line
    assert list(Trials(path)) == []
    assert path.read_bytes() == b""


@pytest.mark.parametrize("line", [b"{}", b"hello", b"", b"\xff\xfe", b'{"split": "x"}'])
def test_a_foreign_line_is_refused_with_its_number(path, line):
    Trials(path).add(trial())
    with open(path, "ab") as file:
        file.write(line + b"\n")
    with pytest.raises(InputError, match=r"trials\.jsonl line 2: no training"):
        Trials(path)


@pytest.mark.parametrize("line", [b"my notes", b"{}", b"\xff"])
def test_a_last_line_that_is_not_ours_is_kept_and_refused(path, line):
    path.write_bytes(line)
    with pytest.raises(InputError, match="last line is no training"):
        Trials(path)
    assert path.read_bytes() == line


def test_impossible_settings_in_a_file_are_refused(path):
    Trials(path).add(trial())
    path.write_bytes(path.read_bytes().replace(b'"C":null', b'"C":-1.0'))
    with pytest.raises(InputError, match=r"line 1: no training \(C must be above 0"):
        Trials(path)


def test_two_writers_lose_no_training(path):
    writers = [Trials(path) for _ in range(2)]

    def write(which):
        for k in range(40):
            writers[which].add(trial(split=100 * which + k, losses=(0.5,) * 300))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    assert sorted(one.split for one in Trials(path)) == [*range(40), *range(100, 140)]
    assert [one.split for one in writers[0]] == list(range(40))
    writers[0].reload()
    assert len(list(writers[0])) == 80


def test_files_that_cannot_be_used_are_refused(tmp_path, monkeypatch, path):
    with pytest.raises(InputError, match="cannot be read"):
        Trials(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        Trials(tmp_path / "none" / "trials.jsonl").add(trial())
    monkeypatch.setattr(os, "write", lambda file, data: len(data) // 2)
    with pytest.raises(InputError, match="No space left"):
        Trials(path).add(trial())


def test_rows_keep_models_sizes_and_stages_apart():
    trials = [
        trial("LSP^E", 0, 70.0, seconds=1.0),
        trial("LSP^E", 1, 74.0, curve=(5.0,), seconds=3.0),
        trial("LSP^E", 0, 10.0, stage="tune"),
        trial("LSP^E", 0, 60.0, size=100),
        trial("singletons", 0, 20.0, curve=()),
        trial("LSSVM^E", 0, 65.0, curve=(9.0,), settings=CoreferenceSettings(learner="lssvm", C=0.1)),
    ]
    found = report_rows(trials)
    assert [(r.name, r.features, r.draws, r.mean) for r in found] == [
        ("LSP^E", None, 2, 72.0),
        ("LSP^E", 100, 1, 60.0),
        ("singletons", None, 1, 20.0),
        ("LSSVM^E", None, 1, 65.0),
    ]
    first, few, alone, svm = found
    assert first.sd == pytest.approx(8**0.5)
    assert (first.parts, first.dev, first.epochs, first.seconds) == ({"mela": 72.0, "muc": 73.0}, 4.0, (2, 1), 2.0)
    assert (first.C, first.r, first.published) == (1000.0, None, PUBLISHED["LSP^E"])
    assert (few.sd, few.published) == (None, None)  # what is published is of all features
    assert (alone.dev, alone.epochs, alone.C, alone.published) == (None, (), None, None)
    assert (svm.epochs, svm.C) == ((), 0.1)
    assert report_rows([]) == []


def series(model, values, size=None):
    return [trial(model, split, value, size) for split, value in enumerate(values)]


def verdict(a, b, first, second, size=None, **which):
    found = report_claims([*series(a, first, size), *series(b, second, size)])
    (claim,) = [claim for claim in found if (claim.a, claim.b, claim.features) == (a, b, size)]
    return claim


@pytest.mark.parametrize(
    ("second", "higher", "level"),
    [
        ([60.0, 61.1, 62.0, 63.2], "confirmed", "a is better"),
        ([80.0, 81.1, 82.0, 83.2], "refuted", "b is better"),
        ([71.0, 70.0, 73.0, 72.0], "not shown", "no difference shown"),
    ],
)
def test_differences_have_the_expected_verdicts(second, higher, level):
    first = [70.0, 71.0, 72.0, 73.0]
    claim = verdict("LSP^E", "LSP^K", first, second)
    assert (claim.expected, claim.verdict, claim.comparison.n) == ("higher", higher, 4)
    assert verdict("LSP^E", "LSPA^E", first, second).verdict == level
    few = verdict("LSP_rho", "LSP_YJ", first, second, 10_000)
    assert (few.expected, few.verdict) == ("higher", higher)
    assert verdict("LSP_rho", "LSP_YJ", first, second).verdict == level


def test_equal_models_show_no_difference():
    same = [70.0, 71.0, 72.0]
    assert verdict("LSP^E", "LSP^K", same, same).verdict == "not shown"
    assert verdict("LSP^E", "LSPA^E", same, same).verdict == "no difference shown"


def test_only_splits_that_both_models_have_are_compared():
    trials = [*series("LSP^E", [70.0, 71.0, 75.0]), trial("LSP^K", 2, 60.0), trial("LSP^K", 1, 61.5)]
    (claim,) = report_claims(trials)
    assert (claim.comparison.n, claim.comparison.difference) == (2, pytest.approx(12.25))
    assert report_claims(trials[:-1]) == []


def test_pictures_open_and_repeat(tmp_path):
    sizes = (100, 1000, None)
    trials = [trial(m, k, 70.0 + k, size) for m in ("LSP^E", "LSP_rho") for k in range(2) for size in sizes]
    trials += [trial("LSP*_rho", 0, 72.0, size) for size in (1000, None)]  # one that lacks the fewest
    trials.append(trial("singletons", 0, 20.0, curve=()))
    for again in range(2):
        write_curves(trials, tmp_path / f"curves{again}.svg")
        write_sizes(report_rows(trials), tmp_path / f"sizes{again}.svg")
    for name in ("curves", "sizes"):
        first, second = ((tmp_path / f"{name}{k}.svg").read_bytes() for k in range(2))
        ElementTree.fromstring(first)  # noqa: S314 (our own file)
        assert first == second
        assert b"LSP^E" in first
        assert b"singletons" not in first
    write_curves(trials[:1], tmp_path / "one.svg")
    write_curves([], tmp_path / "none.svg")
    write_sizes(report_rows(trials[-1:]), tmp_path / "none.svg")  # no model was tried with few features
