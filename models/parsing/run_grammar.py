"""`netclust train|predict|evaluate grammar`, `netclust simulate trees`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netclust.errors import InputError
from netclust.models.parsing.encoder import TreeExample, training_examples
from netclust.models.parsing.syntax import Tree, bracketed_syntax, syntax_words
from netclust.models.parsing.task import TASK, GrammarSettings
from netclust.models.parsing.toy_treebank import NOTICE, toy_trees
from netclust.models.parsing.treebanks import read_sentences, read_trees
from netclust.models.run_structured import Given, evaluate_task, predict_task, train_task
from netclust.models.structured_model import StructuredModel
from netclust.options.output import check_outputs, counted, output_note, write_output


def train_trees(
    path: str,
    output: Path,
    settings: dict[str, Any],
    C: str,
    folds: int,
    longest: int,
    functional_tags: bool,
    json: Path | None,
) -> None:
    """Train and write a model."""

    def read() -> Given:
        trees, sha256 = _trees(path, longest, functional_tags)
        return Given(TASK.examples(trees, GrammarSettings(**settings)), "tree", {path: sha256})

    fixed = "1" if C == "cv" and settings["model"] == "generative" else C  # counts have no C
    train_task(TASK, read, [path], output, settings, fixed, json, folds=folds)


def parse_sentences(path: str, model: Path, output: Path, json: Path | None) -> None:
    """Parse and write trees."""

    def read() -> Given:
        found = read_sentences(path)
        return Given([TreeExample(words) for words in found.sentences], "sentence", {path: found.sha256})

    def render(given: Given, parses: list[Any]) -> bytes:
        broken = sum(not len(parse.rows) for parse in parses)
        if broken:
            output_note(f"{counted(broken, 'sentence')} in pieces (FRAG): the grammar has no whole tree for them")
        return "".join(f"{bracketed_syntax(parse.tree)}\n" for parse in parses).encode()

    predict_task(StructuredModel.load(model, "grammar"), read, [path, str(model)], output, render, json)


def evaluate_trees(model: Path, path: str, longest: int, functional_tags: bool, json: Path | None) -> None:
    """Parse the sentences of a treebank and measure."""

    def read() -> Given:
        trees, sha256 = _trees(path, longest, functional_tags)
        return Given(training_examples(trees), "tree", {path: sha256})

    evaluate_task(StructuredModel.load(model, "grammar"), read, [path, str(model)], json)


def write_toy_trees(output: Path, count: int, seed: int, noise: float) -> None:
    """Make trees and write them."""
    check_outputs(output)
    trees = toy_trees(count, seed=seed, noise=noise)
    write_output(output, "".join(f"{bracketed_syntax(tree)}\n" for tree in trees).encode())
    output_note(f"{counted(len(trees), 'tree')}, seed {seed}. {NOTICE}")


def _trees(path: str, longest: int, functional_tags: bool) -> tuple[list[Tree], str]:
    """The trees that are not too long."""
    bank = read_trees(path, functional_tags=functional_tags)
    trees = [tree for tree in bank.trees if len(syntax_words(tree)) <= longest]
    if not trees:
        raise InputError(f"{path}: every sentence is longer than {longest} words: see --longest")
    if len(trees) < len(bank.trees):
        output_note(f"{counted(len(bank.trees) - len(trees), 'tree')} of more than {longest} words left out")
    return trees, bank.sha256
