"""`netclust score coreference`: the reference scorer's cases through files of ours, and every way to misuse it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_cases import complaint

from netclust.models.coreference.commands import Metric
from netclust.models.coreference.coreference_metrics import METRICS
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.formats.writing import write_conll
from netclust.models.coreference.score_coreference import TITLES

WORDS = "abcdefghijklmnopqrstuvwxyz"


def document(clusters: str, name: str = "doc", part: int = 0, words: str = WORDS) -> Document:
    """A text of one letter a word, in which the letters of a group are mentions of one entity."""
    mentions = [
        Mention(words.index(letter), words.index(letter) + 1, entity)
        for entity, group in enumerate(clusters.split())
        for letter in group
    ]
    return Document(name, tuple(words), (0, len(words)), part=part).with_mentions(mentions)


def write(path: Path, *documents: Document) -> Path:
    write_conll(documents, path)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return write(tmp_path / "key.conll", document("a bc def"))


def test_published_cases_score_the_same_through_files(run: Any, key: Path, tmp_path: Path) -> None:
    """Case A4 of the reference scorer: missing and spurious mentions and entities."""
    response = write(tmp_path / "response.conll", document("a bcx dy z"))
    ran = run("score", "coreference", key, response)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()[:10]] == [
        ["1", "document"],
        ["P", "R", "F1"],
        ["mentions", "57.14", "66.67", "61.54"],
        ["MUC", "33.33", "33.33", "33.33"],
        ["B3", "40.48", "55.56", "46.83"],
        ["CEAF_m", "57.14", "66.67", "61.54"],
        ["CEAF_e", "55.00", "73.33", "62.86"],
        ["BLANC", "27.21", "35.23", "30.36"],
        ["LEA", "28.57", "50.00", "36.36"],
        ["MELA", "-", "-", "47.67"],
    ]


def test_the_json_has_every_sum_and_document(run: Any, tmp_path: Path) -> None:
    key = write(tmp_path / "key.conll", document("ab", part=0), document("cdef gh", part=1))
    response = write(tmp_path / "response.conll", document("cd ef gh", part=1), document("ab", part=0))
    found = json.loads(run("score", "coreference", key, response, "--json", "-").out)
    assert found["command"] == "score coreference"
    assert found["scores"]["muc"] == pytest.approx({"precision": 1.0, "recall": 0.8, "f1": 8 / 9})
    assert found["sums"]["muc"] == {"recalled": 4, "wanted": 5, "precise": 4, "claimed": 4}
    assert found["sums"]["blanc"]["apart"] == {"recalled": 8, "wanted": 8, "precise": 8, "claimed": 12}
    assert [(d["name"], d["part"], d["sums"]["muc"]["recalled"]) for d in found["documents"]] == [
        ("doc", 0, 1),
        ("doc", 1, 3),
    ]
    assert set(found["sums"]) == set(METRICS) - {"mela"}
    assert set(found["data"]) == {str(key), str(response)}
    assert (found["missing"], found["singletons"]) == (0, True)


def test_only_metrics_that_were_asked_for_are_shown(run: Any, key: Path, tmp_path: Path) -> None:
    ran = run("score", "coreference", key, key, "--metric", "mela", "--metric", "lea", "--json", tmp_path / "out.json")
    assert [line.split()[0] for line in ran.out.splitlines()[2:4]] == ["LEA", "MELA"]
    found = json.loads((tmp_path / "out.json").read_text())
    assert list(found["scores"]) == ["lea", "mela"]
    assert set(found["sums"]) == {"muc", "b3", "ceafe", "lea"}


def test_the_command_and_the_metrics_share_their_names() -> None:
    assert tuple(Metric) == tuple(TITLES) == METRICS


def test_singletons_can_be_left_out(run: Any, key: Path, tmp_path: Path) -> None:
    response = write(tmp_path / "response.conll", document("bc def x y z"))
    kept = json.loads(run("score", "coreference", key, response, "--json", "-").out)["scores"]
    assert kept["b3"]["precision"] == pytest.approx(5 / 8)
    left_out = json.loads(run("score", "coreference", key, response, "--no-singletons", "--json", "-").out)["scores"]
    assert all(value == 1.0 for scores in left_out.values() for value in scores.values())


def test_folders_are_matched_by_name_and_part(run: Any, tmp_path: Path) -> None:
    for side in ("gold", "system"):
        (tmp_path / side).mkdir()
    write(tmp_path / "gold" / "x.conll", document("ab c", "x"))
    write(tmp_path / "gold" / "y.conll", document("def", "y", part=1))
    write(tmp_path / "system" / "all.conll", document("def", "y", part=1), document("ab c", "x"))
    ran = run("score", "coreference", tmp_path / "gold", tmp_path / "system", "--metric", "mela")
    assert ran.out.splitlines()[0] == "2 documents"
    assert ran.out.splitlines()[2].split() == ["MELA", "-", "-", "100.00"]


def test_a_missing_document_is_noted(run: Any, tmp_path: Path) -> None:
    key = write(tmp_path / "key.conll", document("ab", "x"), document("cd", "y", part=2))
    response = write(tmp_path / "response.conll", document("ab", "x"))
    complaint(run("score", "coreference", key, response), response, "document y part 2", "missing", "--missing-ok")
    ran = run("score", "coreference", key, response, "--missing-ok", "--metric", "muc")
    assert ran.out.splitlines()[0] == "2 documents, 1 of them missing from the response"
    assert ran.out.splitlines()[2].split() == ["MUC", "100.00", "50.00", "66.67"]


def test_a_document_that_the_key_lacks_is_refused(run: Any, key: Path, tmp_path: Path) -> None:
    response = write(tmp_path / "response.conll", document("a bc def"), document("ab", "other"))
    for more in ([], ["--missing-ok"]):
        complaint(
            run("score", "coreference", key, response, *more), response, "document other part 0", "not in the key"
        )


def test_texts_of_other_lengths_are_refused(run: Any, key: Path, tmp_path: Path) -> None:
    response = write(tmp_path / "response.conll", document("ab", words="abcdefg"))
    complaint(run("score", "coreference", key, response), response, "7 words", "26 in the key")


def test_misuse_is_refused_in_one_line(run: Any, key: Path, tmp_path: Path) -> None:
    complaint(run("score", "coreference", key, tmp_path / "none.conll"), "none.conll")
    complaint(run("score", "coreference", "-", "-"), "standard input")
    complaint(run("score", "coreference", key, key, "--metric", "bcub"), "bcub", "muc")
    complaint(run("score", "coreference", key, key, "--json", key), "would be overwritten")
    complaint(run("score", "coreference", key, key, "--json", tmp_path / "no" / "out.json"), "no folder")


def test_a_corpus_scores_full_marks_against_itself(run: Any, data_folder: Path) -> None:
    folder = data_folder / "coref" / "litbank" / "conll"
    found = json.loads(run("score", "coreference", folder, folder, "--json", "-").out)
    assert len(found["documents"]) == 100
    assert all(value == pytest.approx(1.0) for scores in found["scores"].values() for value in scores.values())
