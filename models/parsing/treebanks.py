"""Treebanks: trees in brackets (the Penn Treebank's format), and sentences to parse, one a line.

    ( (S (NP-SBJ (PRP She))            a tree may take many lines or one; the outer bracket may have no label
         (VP (VBD slept))) )

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "some.mrg")
...     _ = path.write_text("( (S (NP-SBJ-1 (PRP She)) (VP (VBD slept)\\n (NP (-NONE- *T*-1)))) )")
...     bank = read_trees(path)
>>> bank.trees
(Tree<(S (NP (PRP She)) (VP (VBD slept)))>,)

Traces (`-NONE-`) and what they leave empty are dropped, and so are functional tags (`NP-SBJ=2` is `NP`), unless they
are asked for. Files may be packed (gz, xz, zst, zip); text is UTF-8, or else Latin-1.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from netclust.datasets.documents import LIMITS, DocumentLimits, decode_document, read_document_bytes
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.parsing.syntax import Tree, fold_syntax_tree

__all__ = [
    "MAX_DEPTH", "MAX_WORDS", "Sentences", "Treebank", "clean", "parse_brackets", "read_sentences", "read_trees",
]  # fmt: skip

MAX_DEPTH = 200
"""Brackets within brackets."""
MAX_WORDS = 1000
"""Of a sentence."""
UNNAMED = "TOP"
"""What an outer bracket is called that has no label and several parts."""

_TOKEN = re.compile(r"[()]|[^\s()]+")
_FUNCTIONAL = re.compile(r"^([^-=]+)[-=].*")


class Treebank(NamedTuple):
    """The trees of a file."""

    trees: tuple[Tree, ...]
    sha256: str = ""
    """Of the file's unpacked bytes."""


class Sentences(NamedTuple):
    """The sentences of a file, each as its words."""

    sentences: tuple[tuple[str, ...], ...]
    sha256: str = ""


def read_trees(
    path: str | Path, *, functional_tags: bool = False, traces: bool = False, limits: DocumentLimits = LIMITS
) -> Treebank:
    """The trees of a file, cleaned of what is not asked for; one of which nothing is left is passed over."""
    content = read_document_bytes(path, limits.total_bytes)
    trees = []
    for tree in parse_brackets(decode_document(content), str(path), limits.items):
        kept = clean(tree, functional_tags=functional_tags, traces=traces)
        if kept is not None:
            trees.append(kept)
    if not trees:
        raise InputError(
            f"{path}: there is no tree in it: expected brackets such as (S (NP (PRP She)) (VP (VBD slept)))"
        )
    return Treebank(tuple(trees), hashlib.sha256(content).hexdigest())


def read_sentences(path: str | Path, limits: DocumentLimits = LIMITS) -> Sentences:
    """The sentences of a file: one a line, its words between blanks; empty lines are passed over."""
    content = read_document_bytes(path, limits.total_bytes)
    found = []
    for number, line in enumerate(decode_document(content).split("\n"), 1):
        words = tuple(line.split())
        if len(words) > MAX_WORDS:
            raise InputError(f"{path} line {number}: {len(words)} words: a sentence has {MAX_WORDS} at most")
        if words:
            found.append(words)
        if len(found) > limits.items:
            raise InputError(f"{path} line {number}: more than {limits.items} sentences")
    if not found:
        raise InputError(f"{path}: there is no sentence in it: expected one a line")
    return Sentences(tuple(found), hashlib.sha256(content).hexdigest())


@dataclass
class _Open:
    """A bracket that is not closed yet."""

    line: int
    label: str | None = None
    children: list[Tree] = field(default_factory=list)
    word: str | None = None


def parse_brackets(text: str, name: str = "text", limit: int = LIMITS.items) -> Iterator[Tree]:
    """The trees of a text, as they stand in it."""
    stack: list[_Open] = []
    count = words = 0
    for number, line in enumerate(text.split("\n"), 1):
        for part in _TOKEN.findall(line):
            where = f"{name} line {number}"
            if part == "(":
                if stack and stack[-1].word is not None:
                    raise InputError(
                        f"{where}: the word {_shown(stack[-1].word)} stands beside a bracket: it needs its own"
                    )
                if len(stack) >= MAX_DEPTH:
                    raise InputError(f"{where}: more than {MAX_DEPTH} brackets within each other")
                if stack and stack[-1].label is None:
                    stack[-1].label = ""
                stack.append(_Open(number))
            elif part == ")":
                if not stack:
                    raise InputError(f"{where}: a bracket is closed that was not opened")
                tree = _closed(stack.pop(), not stack, where)
                if stack:
                    stack[-1].children.append(tree)
                    continue
                count, words = count + 1, 0
                if count > limit:
                    raise InputError(f"{where}: more than {limit} trees")
                yield tree
            elif not stack:
                raise InputError(f"{where}: {_shown(part)} stands outside of brackets")
            elif stack[-1].label is None:
                stack[-1].label = part
            else:
                _take_word(stack[-1], part, where)
                words += 1
                if words > MAX_WORDS:
                    raise InputError(
                        f"{where}: more than {MAX_WORDS} words in one tree (opened in line {stack[0].line})"
                    )
    if stack:
        raise InputError(f"{name} line {stack[0].line}: the bracket that is opened here is never closed")


def _take_word(top: _Open, token: str, where: str) -> None:
    if top.children or top.word is not None:
        beside = "a bracket" if top.children else f"the word {_shown(top.word or '')}"
        raise InputError(f"{where}: the word {_shown(token)} stands beside {beside}: every word needs a bracket")
    top.word = token


def _closed(top: _Open, outermost: bool, where: str) -> Tree:
    if top.word is None and not top.children:
        raise InputError(f"{where}: the bracket {_shown(top.label or '')} has nothing in it")
    if top.label:
        return Tree(top.label, tuple(top.children), top.word)
    if not outermost:
        raise InputError(f"{where}: a bracket within a tree has no label")
    return top.children[0] if len(top.children) == 1 else Tree(UNNAMED, tuple(top.children))


def clean(tree: Tree, *, functional_tags: bool = False, traces: bool = False) -> Tree | None:
    """The tree without traces and functional tags, unless they are to stay; None where nothing is left.

    >>> clean(next(parse_brackets("(S (NP-SBJ=2 (-NONE- *)) (-LRB- x))")))
    Tree<(S (-LRB- x))>
    """

    def keep(node: Tree, parts: list[Tree | None]) -> Tree | None:
        label = node.label if functional_tags else _FUNCTIONAL.sub(r"\1", node.label)
        if node.word is not None:
            return None if node.label == "-NONE-" and not traces else Tree(label, word=node.word)
        below = tuple(part for part in parts if part is not None)
        return Tree(label, below) if below else None

    return fold_syntax_tree(tree, keep)


def _shown(token: str) -> str:
    return repr(sanitize(token[:40]))
