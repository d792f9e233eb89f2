"""How good trees are against the right ones: labelled brackets, as the PARSEVAL measures count them.

>>> def leaf(tag): return Tree(tag, word=tag.lower())
>>> gold = Tree("VP", (leaf("V"), Tree("NP", (Tree("NP", (leaf("N"),)), Tree("PP", (leaf("P"), leaf("N")))))))
>>> found = Tree("VP", (leaf("V"), Tree("NP", (leaf("N"),)), Tree("PP", (leaf("P"), leaf("N")))))
>>> scores = measure_trees([(gold, found), (gold, gold)])
>>> scores.precision, round(scores.recall, 3), round(scores.f1, 3), scores.exact, scores.tags
(1.0, 0.875, 0.933, 0.5, 1.0)

A bracket is right if the right tree has one with its label over the same words; one that is there twice counts twice.
Tags are no brackets, and neither is a node called TOP, ROOT or nothing. With `punctuation=False`, words whose tag in
the right tree is a mark (`,` `.` `:` `'` quotes) are left out of both, as the usual scorer does. Sums are over all
sentences. A precision or recall that would be 0/0 is 1.

E. Black et al., "A procedure for quantitatively comparing the syntactic coverage of English grammars", DARPA workshop
on speech and natural language, 1991.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from netclust.errors import InputError
from netclust.models.parsing.syntax import Tree, syntax_spans, syntax_tags, syntax_words

__all__ = ["BracketScores", "bracket_counts", "measure_trees"]

UNCOUNTED = frozenset(("", "TOP", "ROOT"))
MARKS = frozenset((",", ".", ":", "``", "''"))


class BracketScores(msgspec.Struct, frozen=True):
    """Shares of 1, over all sentences together; `exact`: of the sentences, those without a wrong or missing bracket."""

    precision: float
    recall: float
    f1: float
    exact: float
    tags: float
    """Words with the right tag."""
    crossing: float
    """Brackets a sentence that overlap a right one without being in it or around it."""
    sentences: int


def bracket_counts(tree: Tree, left_out: frozenset[int] = frozenset()) -> Counter[tuple[str, int, int]]:
    """The brackets (label, start, end) of a tree; words that are left out have no width."""
    found: Counter[tuple[str, int, int]] = Counter()
    place, at = [0], 0
    for word in range(len(syntax_words(tree))):
        at += word not in left_out
        place.append(at)
    for node, start, end in syntax_spans(tree):
        if node.word is None and node.label not in UNCOUNTED and place[end] > place[start]:
            found[node.label, place[start], place[end]] += 1
    return found


def measure_trees(pairs: Iterable[tuple[Tree, Tree]], *, punctuation: bool = True) -> BracketScores:
    """Measure found trees: pairs of (right, found) over the same words."""
    right = wanted = given = exact = tags = words = crossing = count = 0
    for number, (gold, found) in enumerate(pairs, 1):
        gold_tags, found_tags = syntax_tags(gold), syntax_tags(found)
        if len(gold_tags) != len(found_tags):
            raise InputError(f"sentence {number}: the trees have {len(gold_tags)} and {len(found_tags)} words")
        marks = frozenset() if punctuation else frozenset(k for k, tag in enumerate(gold_tags) if tag in MARKS)
        a, b = bracket_counts(gold, marks), bracket_counts(found, marks)
        both = sum((a & b).values())
        right, wanted, given = right + both, wanted + sum(a.values()), given + sum(b.values())
        exact += a == b
        tags += sum(one == other for one, other in zip(gold_tags, found_tags, strict=True))
        words += len(gold_tags)
        edges = {(start, end) for _, start, end in a}
        crossing += sum(times * _crosses(start, end, edges) for (_, start, end), times in b.items())
        count += 1
    if not count:
        raise InputError("there are no trees to measure")
    return BracketScores(
        precision=right / given if given else 1.0,
        recall=right / wanted if wanted else 1.0,
        f1=2 * right / (given + wanted) if given + wanted else 1.0,
        exact=exact / count,
        tags=tags / words,
        crossing=crossing / count,
        sentences=count,
    )


def _crosses(start: int, end: int, edges: set[tuple[int, int]]) -> bool:
    return any(start < a < end < b or a < start < b < end for a, b in edges)
