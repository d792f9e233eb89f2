"""`netclust train|predict|evaluate grammar`, `simulate trees`: a stranger's way, every misuse, and the guide."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from cli_cases import complaint

from netclust.models.parsing.syntax import bracketed_syntax
from netclust.models.parsing.toy_treebank import toy_trees
from netclust.models.parsing.treebanks import read_trees

ROOT = Path(__file__).parents[3]


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    (tmp_path / "trees.mrg").write_text("".join(f"{bracketed_syntax(tree)}\n" for tree in toy_trees(40)))
    return tmp_path / "trees.mrg"


def test_train_parse_and_evaluate(run: Any, trees: Path, tmp_path: Path) -> None:
    model, found, told = tmp_path / "m", tmp_path / "found.mrg", tmp_path / "t.json"
    ran = run("train", "grammar", trees, "-o", model, "--learn", "basic", "--folds", "2", "--json", told)
    assert (ran.code, "C = " in ran.err, "f1" in ran.out) == (0, True, True)
    body = json.loads(told.read_text())
    assert (body["examples"], body["chosen"]["folds"], body["settings"]["model"]) == (40, 2, "basic")
    sentences = tmp_path / "new.txt"
    sentences.write_text("the baker slept in the park .\nthe ( zorkers ) quickly\n\n")
    ran = run("predict", "grammar", sentences, "--model", model, "-o", found)
    assert (ran.code, "2 sentences" in ran.out, "1 sentence in pieces" in ran.err) == (0, True, True)
    one, other = read_trees(found).trees
    assert (one.label, other.label) == ("S", "FRAG")
    assert "-LRB-" in found.read_text()
    assert run("simulate", "trees", "-o", tmp_path / "new.mrg", "--trees", "30", "--seed", "5").code == 0
    ran = run("evaluate", "grammar", "--model", model, "--test", tmp_path / "new.mrg", "--json", "-")
    assert json.loads(ran.out)["measures"]["f1"] > 80
    assert "log P(word | tag)" in run("info", model).out


def test_shapes_of_grammars_and_long_sentences(run: Any, trees: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    given = ("--direction", "left", "--horizontal", "-1", "--vertical", "2", "--learn", "generative", "--longest", "9")
    ran = run("train", "grammar", trees, "-o", model, *given)
    assert (ran.code, "of more than 9 words left out" in ran.err, "C = " in ran.err) == (0, True, False)
    assert "direction left, horizontal None, vertical 2" in run("info", model).out
    ran = run("evaluate", "grammar", "--model", model, "--test", trees)
    assert (ran.code, "this very file" in ran.err) == (0, True)
    ran = run("train", "grammar", trees, "-o", model, "--learn", "basic", "--objective", "likelihood", "--C", "10")
    assert ran.code == 0
    assert "objective likelihood" in run("info", model).out


def test_misuse_is_understood(run: Any, trees: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert run("train", "grammar", trees, "-o", model, "--learn", "generative").code == 0
    complaint(run("train", "grammar", trees, "-o", trees), trees, "input")
    complaint(run("train", "grammar", trees, "-o", model, "--C", "x"), "--C 'x'")
    complaint(run("train", "grammar", tmp_path / "none", "-o", model), "none")
    complaint(run("train", "grammar", trees, "-o", model, "--longest", "2"), trees, "--longest")
    broken = tmp_path / "broken.mrg"
    for text, says in (("(S (N a)", "line 1"), ("(S (N+M a))", "rename it"), ("\n", "no tree"), ("(" * 9999, "line 1")):
        broken.write_text(text)
        complaint(run("train", "grammar", broken, "-o", tmp_path / "no", "--C", "1"), broken, says)
    complaint(run("predict", "grammar", trees, "--model", trees, "-o", "-"), trees)
    complaint(run("predict", "grammar", trees, "--model", model, "-o", "-", "--json", "-"), "standard output")
    complaint(run("predict", "grammar", trees, "--model", model, "-o", trees), trees, "input")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    complaint(run("predict", "grammar", empty, "--model", model, "-o", "-"), empty, "no sentence")
    assert not (tmp_path / "no").exists()


@pytest.mark.docs
def test_commands_and_lines_of_the_guide_work(run: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "grammar.md").read_text().replace("lexical-aux --C 100", "lexical-aux --C 1")
    commands = re.findall(r"^\$ (?:netclust (.*?)|echo '(.*?)' > (\S+))(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 8
    printed = ""
    for command, line, file in commands:
        if file:
            Path(file).write_text(line + "\n")
            continue
        ran = run(*shlex.split(command))
        assert ran.code == 0, ran.err
        printed += ran.out
    assert re.search(r"`(\(S .*?\))`\. Sentences are", text).group(1) in printed  # type: ignore[union-attr]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "grammar.md", "exec"), {})  # noqa: S102 (our own file)
    assert "labelled F1 0." in capsys.readouterr().out
