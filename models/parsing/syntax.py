"""Labelled trees over the words of a sentence, as treebanks have them.

>>> tree = Tree("S", (Tree("NP", (Tree("PRP", word="She"),)), Tree("VP", (Tree("VBD", word="slept"),))))
>>> bracketed_syntax(tree)
'(S (NP (PRP She)) (VP (VBD slept)))'
>>> syntax_words(tree), syntax_tags(tree)
(('She', 'slept'), ('PRP', 'VBD'))

Nothing here is recursive, so a deep tree is as good as a flat one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Tree", "bracketed_syntax", "fold_syntax_tree", "syntax_spans", "syntax_tags", "syntax_words"]

Result = TypeVar("Result")
_ESCAPED = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A constituent with its parts, or (a pre-terminal) a tag with its word."""

    label: str
    children: tuple[Tree, ...] = ()
    word: str | None = None

    def __eq__(self, other: object) -> bool:
        """Whether both are the same tree."""
        return isinstance(other, Tree) and bracketed_syntax(self) == bracketed_syntax(other)

    def __hash__(self) -> int:
        """Equal trees have equal ones."""
        return hash(bracketed_syntax(self))

    def __repr__(self) -> str:
        """The tree in brackets."""
        return f"Tree<{bracketed_syntax(self)}>"


def fold_syntax_tree(tree: Tree, combine: Callable[[Tree, list[Result]], Result]) -> Result:
    """Combine the root with the combined results of its parts, and so on down."""
    order, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(node.children)
    made: list[Result] = []
    for node in reversed(order):
        at = len(made) - len(node.children)
        made[at:] = [combine(node, made[at:])]
    return made[0]


def syntax_spans(tree: Tree) -> Iterator[tuple[Tree, int, int]]:
    """Yield every node with the place of its first word and the place behind its last one, parents first."""
    width: dict[int, int] = {}

    def measure(node: Tree, parts: list[int]) -> int:
        width[id(node)] = found = sum(parts) if node.children else 1
        return found

    fold_syntax_tree(tree, measure)
    waiting = [(tree, 0)]
    while waiting:
        node, start = waiting.pop()
        yield node, start, start + width[id(node)]
        below, at = [], start
        for child in node.children:
            below.append((child, at))
            at += width[id(child)]
        waiting.extend(reversed(below))


def syntax_words(tree: Tree) -> tuple[str, ...]:
    """Return the words, from left to right."""
    return tuple(node.word for node, _, _ in syntax_spans(tree) if node.word is not None)


def syntax_tags(tree: Tree) -> tuple[str, ...]:
    """Return the tags of the words."""
    return tuple(node.label for node, _, _ in syntax_spans(tree) if node.word is not None)


def bracketed_syntax(tree: Tree) -> str:
    """Return the tree in brackets, on one line; brackets among the words are written -LRB- and -RRB-."""

    def write(node: Tree, parts: list[str]) -> str:
        below = parts if node.word is None else [node.word.translate(_ESCAPED)]
        return f"({' '.join([node.label, *below])})"

    return fold_syntax_tree(tree, write)
