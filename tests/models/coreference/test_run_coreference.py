"""Stories simulated, a model trained, entities predicted and scored, as people meet it; and every misuse."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli_cases import complaint

import netclust
from netclust.cli import main
from netclust.models.coreference.formats.conll import read_conll
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.formats.writing import write_conll
from netclust.models.coreference.story_simulator import simulate_documents

PLAIN = "Ann met Bob. She thanked him. He smiled at her."
QUICK = ["--learner", "lsp", "--epochs", "3", "--bits", "18", "--distance", "40"]


class Files(NamedTuple):
    folder: Path
    train: Path
    test: Path
    text: Path
    model: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("coreference")
    made = Files(*(folder / name for name in ("", "train.conll", "test.conll", "letter.txt", "stories.model")))
    made.text.write_text(PLAIN)
    commands = [
        ["simulate", "stories", "-o", made.train, "--count", 30, "--seed", 3],
        ["simulate", "stories", "-o", made.test, "--count", 2, "--seed", 4],
        ["train", "coreference", made.train, "-o", made.model, *QUICK],
    ]
    for command in commands:
        with pytest.raises(SystemExit) as stop:
            main([str(part) for part in command])
        assert not stop.value.code
    return made


@pytest.fixture
def predict(run: Any, files: Files) -> Any:
    return lambda *args: run("predict", "coreference", files.model, *args)


def test_stories_are_the_same_in_a_file_and_on_standard_output(run: Any, files: Files) -> None:
    ran = run("simulate", "stories", "-o", "-", "--count", 2, "--seed", 4)
    assert (ran.code, ran.out) == (0, files.test.read_text())
    assert ran.err.startswith("2 stories with ")
    assert read_conll(files.test)[0].words == simulate_documents(1, seed=4)[0].words


def test_training_says_what_its_json_says(run: Any, files: Files, tmp_path: Path) -> None:
    model, out = tmp_path / "some.model", tmp_path / "out.json"
    ran = run("train", "coreference", files.train, "-o", model, *QUICK, "--json", out)
    assert ran.code == 0, ran.err
    found = json.loads(out.read_bytes())
    report = found["report"]
    assert (found["command"], found["seed"], set(found["data"])) == ("train coreference", 0, {"train.conll"})
    assert (report["documents"], report["held_out"], len(report["curve"])) == (30, True, 3)
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"LSP^E on 30 documents, {report['mentions']:,} mentions, {report['pairs']:,} pairs")
    assert lines[1] == "mentions: given; templates that say nothing here: genre, named, pos, same speaker"
    assert lines[2].startswith(f"{report['epochs']} epochs, MELA {max(report['curve']):.2f}, chosen on every tenth")
    assert lines[3].startswith(f"wrote {model} after ")
    assert ran.err.count("epoch ") == 3
    only = run("train", "coreference", files.train, "-o", model, *QUICK, "--json", "-", "--cache", tmp_path / "cache")
    assert json.loads(only.out)["report"] == report


def test_development_documents_choose_when_training_ends(run: Any, files: Files, tmp_path: Path) -> None:
    options = [*QUICK, "--dev", files.test, "--strongest", 2000, "--jobs", 1]
    ran = run("train", "coreference", files.train, "-o", tmp_path / "some.model", *options)
    assert ran.code == 0, ran.err
    assert "chosen on the development documents" in ran.out
    few = run("train", "coreference", files.test, "-o", tmp_path / "some.model", *QUICK)
    assert "3 epochs; there were too few documents" in few.out
    svm = run(
        "train",
        "coreference",
        files.test,
        "-o",
        tmp_path / "some.model",
        *QUICK,
        "--learner",
        "lssvm",
        "--C",
        1,
        "--strongest",
        2000,
    )
    assert svm.code == 0, svm.err
    assert "epochs" not in svm.out


def test_the_facts_of_a_model_are_shown(run: Any, files: Files) -> None:
    ran = run("info", files.model)
    assert (ran.code, ran.err) == (0, "")
    for part in ("coreference", "LSP^E", "40 mentions back", "train.conll", f"{files.model.stat().st_size:,} bytes"):
        assert part in ran.out
    found = json.loads(run("info", files.model, "--json", "-").out)
    assert (found["task"], found["settings"]["learner"], found["bytes"]) == (
        "coreference", "lsp", files.model.stat().st_size,
    )  # fmt: skip
    assert found["weights"] > 100


def test_entities_of_a_text_are_listed(predict: Any, files: Files) -> None:
    ran = predict(files.text)
    assert ran.code == 0
    assert ran.err == "mentions were found in the text by words alone\n"
    rows = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "3 Ann, She, her" in rows
    assert "3 Bob, him, He" in rows
    assert rows[-1] == "1 document, 6 mentions, 2 entities"


def test_standard_input_and_output_equal_files(
    predict: Any, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.conll"
    ran = predict(files.test, "-o", out)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == f"wrote {out}"
    assert predict(files.test, "-o", "-").out == out.read_text()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(files.test.read_bytes())))
    assert predict("-", "-o", "-").out == out.read_text()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
    assert len(json.loads(predict("-", "--json", "-").out)["documents"][0]["entities"]) == 2


def test_what_was_predicted_can_be_scored(run: Any, predict: Any, files: Files, tmp_path: Path) -> None:
    scores = {}
    for mentions in ("gold", "auto"):
        out = tmp_path / f"{mentions}.conll"
        ran = predict(files.test, "-o", out, "--mentions", mentions)
        assert ran.code == 0
        assert ran.err == ("mentions were found in the text by words alone\n" if mentions == "auto" else "")
        scored = json.loads(run("score", "coreference", files.test, out, "--json", "-").out)["scores"]
        scores[mentions] = scored["mela"]["f1"]
        assert scored["mentions"]["f1"] > (0.999 if mentions == "gold" else 0.8)
    assert scores["gold"] > 0.7
    assert scores["auto"] > 0.5


def test_the_json_has_every_entity(predict: Any, files: Files, tmp_path: Path) -> None:
    ran = predict(files.test, "--json", tmp_path / "out.json", "-o", tmp_path / "out.conll")
    assert ran.code == 0
    found = json.loads((tmp_path / "out.json").read_bytes())
    written = read_conll(tmp_path / "out.conll")
    assert found["command"] == "predict coreference"
    assert [document["name"] for document in found["documents"]] == [document.name for document in written]
    for told, document in zip(found["documents"], written, strict=True):
        want = [
            [[*document.mentions[k].span, document.text(document.mentions[k])] for k in numbers]
            for numbers in document.entities().values()
        ]
        assert told["entities"] == want
    assert json.loads(predict(files.test, "--json", "-").out)["documents"] == found["documents"]


def test_pages_are_written(predict: Any, files: Files, tmp_path: Path) -> None:
    page, pages = tmp_path / "letter.html", tmp_path / "pages"
    ran = predict(files.text, "--html", page)
    assert ran.out.splitlines()[-1] == f"wrote {page}"
    assert "Ann" in page.read_text()
    assert predict(files.test, "--html", pages).code == 0
    assert sorted(path.name for path in pages.iterdir()) == ["000-simulated_0000.html", "001-simulated_0001.html"]
    complaint(predict(files.test, "--html", page), page, "2 documents", "give a folder")
    taken = tmp_path / "taken"
    taken.write_text("mine")
    complaint(predict(files.test, "--html", taken), taken, "cannot be a folder")
    assert taken.read_text() == "mine"


def test_names_of_documents_stay_within_the_folder(predict: Any, tmp_path: Path) -> None:
    source = tmp_path / "odd.conll"
    names = ["../../up", "..", "a/b c", "é" * 200]
    write_conll([Document(name, ("Ann", "left"), (0, 2), mentions=(Mention(0, 1, 0),)) for name in names], source)
    ran = predict(source, "--html", tmp_path / "pages")
    assert ran.code == 0, ran.err
    assert len(list((tmp_path / "pages").iterdir())) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.conll", "pages"]


def test_a_document_without_entities_is_listed(predict: Any, tmp_path: Path) -> None:
    source = tmp_path / "none.txt"
    source.write_text("of the and")
    ran = predict(source)
    assert ran.code == 0
    assert "no entity is mentioned twice" in ran.out


def test_a_model_of_found_mentions_finds_its_mentions(run: Any, files: Files, tmp_path: Path) -> None:
    model = tmp_path / "auto.model"
    ran = run("train", "coreference", files.train, "-o", model, *QUICK, "--mentions", "auto")
    assert ran.code == 0, ran.err
    assert "mentions: words alone" in ran.out
    found = run("predict", "coreference", model, files.test)
    assert "mentions were found in the text" in found.err
    given = run("predict", "coreference", model, files.test, "--mentions", "gold")
    assert given.err == ""


def test_a_file_that_is_no_model_gives_one_line(run: Any, files: Files, tmp_path: Path) -> None:
    network_model = Path(netclust.__file__).parent / "shipped" / "kdd.safetensors"
    for model, *parts in (
        (tmp_path / "none.model", "No such file"),
        (files.text, "not a netclust file"),
        (tmp_path, "directory"),
        (network_model, "holds 'netclust", "expected 'netclust.coreference'"),
    ):
        complaint(run("predict", "coreference", model, files.text), model, *parts)


def test_training_on_what_cannot_be_learned_from_gives_one_line(run: Any, files: Files, tmp_path: Path) -> None:
    model = tmp_path / "some.model"

    def train(documents: object, *options: object) -> Any:
        return run("train", "coreference", documents, "-o", model, *options)

    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text(" \n")
    (tmp_path / "broken.conll").write_text("#begin document (a); part 000\na\t0\t0\tAnn\t(1\n\n#end document\n")
    complaint(train(tmp_path / "none.conll"), "none.conll")
    complaint(train(tmp_path / "empty"), tmp_path / "empty", "holds no file")
    complaint(train(tmp_path / "blank.txt"), "blank.txt", "no words")
    complaint(train(tmp_path / "broken.conll"), "broken.conll")
    complaint(train(files.text), "no entities to learn from", "need mentions with their entities")
    complaint(train(files.train, "--dev", tmp_path / "none.conll"), "none.conll")
    complaint(train(files.train, "--structure", "K"), "learned loss", "lsp, lspa or lssvm")
    complaint(train(files.train, "--structure", "K", "--learner", "lsp", "--loss", "f"), "Delta_F", "'yj'")
    complaint(train(files.train, "--learner", "svm"), "svm", "lssvm")
    complaint(train(files.train, "--C", 0), "C must be above 0")
    complaint(train(files.train, "--C", "nan"), "C must be above 0")
    complaint(train(files.train, "--r", -1), "r must be above 0")
    complaint(train(files.train, "--epochs", 0), "epochs")
    complaint(train(files.train, "--bits", 30), "bits")
    complaint(train(files.train, "--distance", 0), "distance")
    complaint(train(files.train, "--strongest", 0), "strongest")
    complaint(train(files.train, "--mentions", "some"), "some", "gold")
    complaint(train(files.train, "--cache", files.text), files.text, "cannot be a cache")
    complaint(train(files.train, "--json", model), model, "two outputs")
    assert not model.exists()


def test_a_file_that_is_read_is_not_written_over(run: Any, predict: Any, files: Files, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in files[1:]}
    for given in (files.train, files.test):
        overwritten = "is the input, and would be overwritten"
        complaint(run("train", "coreference", given, "-o", given), given, overwritten)
    complaint(run("train", "coreference", files.train, "-o", files.test, "--dev", files.test), files.test, overwritten)
    for option in ("-o", "--json", "--html"):
        complaint(predict(files.test, option, files.test), files.test, overwritten)
        complaint(predict(files.test, option, files.model), files.model, overwritten)
        complaint(predict(files.test, option, tmp_path / "no" / "folder"), "there is no folder")
    same = tmp_path / "same.html"
    complaint(predict(files.text, "-o", same, "--html", same), same, "two outputs")
    complaint(predict(files.text, "-o", "-", "--json", "-"), "standard output")
    complaint(predict(tmp_path / "none.txt"), "none.txt")
    complaint(run("simulate", "stories", "-o", tmp_path / "no" / "x.conll"), "there is no folder")
    complaint(run("simulate", "stories", "-o", tmp_path / "x.conll", "--count", 0), "count")
    assert {path: path.read_bytes() for path in files[1:]} == before
