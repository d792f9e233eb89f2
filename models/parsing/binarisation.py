"""Trees in a form that CKY can parse, and back: two parts a node, chains of single parts as one compound symbol.

>>> tree = Tree("NP", (Tree("DT", word="a"), Tree("JJ", word="red"), Tree("NN", word="hat")))
>>> sentence = Tree("S", (Tree("VP", (tree,)),))
>>> Binarisation().binary(sentence)
Tree<(S+VP+NP (DT a) (@S+VP+NP|DT (JJ red) (NN hat)))>
>>> Binarisation(direction="left", horizontal=0, vertical=2).binary(Tree("S", (tree, Tree("VB", word="fits"))))
Tree<(S (NP^S (@NP^S| (DT a) (JJ red)) (NN hat)) (VB fits))>
>>> Binarisation().undo(Binarisation().binary(sentence)) == sentence
True

A part that stands for several siblings (`@`) remembers its node and the last `horizontal` siblings already generated
(None: all); a constituent remembers its `vertical - 1` ancestors (`^`). Both forget on the way back.

D. Klein and C. D. Manning, "Accurate unlexicalized parsing", ACL 2003.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.parsing.syntax import Tree, fold_syntax_tree

__all__ = ["CHAIN", "Binarisation", "Direction", "base_labels", "is_partial"]

Direction = Literal["left", "right"]
CHAIN, ABOVE, PARTIAL, BESIDE = "+", "^", "@", "|"
MAX_ORDER = 20


class Binarisation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How symbols of a grammar are made from the labels of a treebank."""

    direction: Literal["left", "right"] = "right"
    """Which end of a node's parts is gathered into one."""
    horizontal: int | None = 1
    """How many siblings are remembered; None: all."""
    vertical: int = 1
    """1: no ancestor is remembered, 2: the parent, ..."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.horizontal is not None and not 0 <= self.horizontal <= MAX_ORDER:
            raise InputError(
                f"horizontal order is {self.horizontal}, expected 0 to {MAX_ORDER}, or none for all siblings"
            )
        if not 1 <= self.vertical <= MAX_ORDER:
            raise InputError(f"vertical order is {self.vertical}, expected 1 to {MAX_ORDER}")

    def binary(self, tree: Tree) -> Tree:
        """The tree with two parts a node."""
        return fold_syntax_tree(self._annotated(fold_syntax_tree(tree, _collapse)), self._split)

    def undo(self, tree: Tree) -> Tree:
        """The tree that `binary` made this of."""

        def restore(node: Tree, parts: list[tuple[Tree, ...]]) -> tuple[Tree, ...]:
            below = tuple(part for some in parts for part in some)
            if is_partial(node.label):
                return below
            made = None
            for label in reversed(base_labels(node.label)):
                made = Tree(label, below, node.word) if made is None else Tree(label, (made,))
            return () if made is None else (made,)

        return fold_syntax_tree(tree, restore)[0]

    def _annotated(self, tree: Tree) -> Tree:
        """Constituents with their ancestors; nodes are made from the root down, and put together from below."""
        if self.vertical == 1:
            return tree
        names: list[str] = []
        waiting: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
        while waiting:  # in the order of `fold`, which goes back through it
            node, above = waiting.pop()
            names.append(ABOVE.join((node.label, *above)) if node.children else node.label)
            ancestors = (*reversed(node.label.split(CHAIN)), *above)[: self.vertical - 1]
            waiting.extend((child, ancestors) for child in node.children)
        return fold_syntax_tree(tree, lambda node, parts: Tree(names.pop(), tuple(parts), node.word))

    def _split(self, node: Tree, parts: list[Tree]) -> Tree:
        if len(parts) <= 2:
            return Tree(node.label, tuple(parts), node.word)
        # siblings from the one that is generated first to the last two, which need no symbol of their own
        order = parts if self.direction == "right" else parts[::-1]
        names = [part.label.partition(ABOVE)[0] if not is_partial(part.label) else part.label for part in node.children]
        names = names if self.direction == "right" else names[::-1]
        inner = order[-1]
        for k in range(len(order) - 2, -1, -1):
            both = (order[k], inner) if self.direction == "right" else (inner, order[k])
            seen = names[:k] if self.horizontal is None else names[max(0, k - self.horizontal) : k]
            inner = Tree(f"{PARTIAL}{node.label}{BESIDE}{'_'.join(seen)}" if k else node.label, both)
        return inner


def _collapse(node: Tree, parts: list[Tree]) -> Tree:
    if not node.label or any(sign in node.label for sign in (CHAIN, ABOVE, PARTIAL)):
        raise InputError(f"the label {sanitize(node.label[:40])!r} has +, ^ or @ in it, which grammars need: rename it")
    if len(parts) == 1:
        return Tree(f"{node.label}{CHAIN}{parts[0].label}", parts[0].children, parts[0].word)
    return Tree(node.label, tuple(parts), node.word)


def is_partial(symbol: str) -> bool:
    """Whether a symbol stands for some of a constituent's parts."""
    return symbol.startswith(PARTIAL)


def base_labels(symbol: str) -> tuple[str, ...]:
    """The labels that a symbol stands for, from the top of its chain down; a part of a constituent has none.

    >>> base_labels("S+VP^ROOT"), base_labels("@NP|DT")
    (('S', 'VP'), ())
    """
    return () if is_partial(symbol) else tuple(symbol.partition(ABOVE)[0].split(CHAIN))
