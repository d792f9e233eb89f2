"""Made-up citations: several sets of papers that are cited in different words, for demos and tests. No real papers.

>>> rows = citations(sets=2, papers=3, seed=1)
>>> rows[0].set, rows[0].paper == rows[1].paper
('1', True)
>>> print(rows[0].author, "|", rows[0].title, "|", rows[0].venue, "|", rows[0].year)
ito et al | testing proteins scale under drift | icml conference | 2002
>>> print(rows[1].author, "|", rows[1].title, "|", rows[1].venue, "|", rows[1].year)
ito and meyer | testing proteins at scale under drift | icml conference | 2002
"""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

import numpy as np

from netclust.errors import InputError

__all__ = ["Citation", "citations", "citations_csv"]

_FIRST = ["a", "b", "c", "d", "e", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w"]
_NAMES = [
    *("adams", "baker", "chen", "dahl", "evans", "fischer", "grant", "hansen", "ito", "jones"),
    *("kumar", "larsen", "meyer", "novak", "olsen", "park", "quinn"),
]
_VERBS = ["learning", "mining", "streaming", "clustering", "ranking", "bounding", "testing", "pruning"]
_THINGS = ["graphs", "trees", "strings", "queries", "sensors", "records", "markets", "proteins"]
_HOW = ["with few labels", "at scale", "with bounded memory", "from pairs", "by sampling", "without supervision"]
_WHERE = ["in noisy data", "under drift", "for networks", "on the web", "in practice", "revisited"]
_VENUES = [("proceedings of kdd", "kdd"), ("machine learning journal", "mach. learn."), ("icml conference", "icml")]


class Citation(NamedTuple):
    """One citation: its set, the paper it cites, and what it says."""

    set: str
    paper: str
    author: str
    title: str
    venue: str
    year: str


def citations(*, sets: int = 6, papers: int = 8, seed: int = 0) -> list[Citation]:
    """Sets of so many papers, each cited 1 to 8 times; no paper is in two sets."""
    if sets < 1 or papers < 1:
        raise InputError(f"{sets} sets of {papers} papers: at least 1 of both")
    random = np.random.default_rng(seed)
    found = []
    for s in range(1, sets + 1):
        for p in range(1, papers + 1):
            paper = _paper(random)
            found += [Citation(str(s), f"paper-{s}-{p}", *_cited(paper, random)) for _ in range(random.integers(1, 9))]
    return found


def citations_csv(rows: list[Citation]) -> str:
    """The citations as a CSV with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Citation._fields)
    writer.writerows(rows)
    return text.getvalue()


class _Paper(NamedTuple):
    authors: list[tuple[str, str]]
    title: str
    venue: tuple[str, str]
    year: int


def _paper(random: np.random.Generator) -> _Paper:
    names = random.choice(_NAMES, random.integers(1, 4), replace=False).tolist()
    authors = [(str(random.choice(_FIRST)), str(name)) for name in sorted(names)]
    parts = [random.choice(words) for words in (_VERBS, _THINGS, _HOW, _WHERE)]
    venue = _VENUES[random.integers(len(_VENUES))]
    return _Paper(authors, " ".join(map(str, parts)), venue, int(random.integers(1995, 2012)))


def _cited(paper: _Paper, random: np.random.Generator) -> tuple[str, str, str, str]:
    """One way to cite a paper: names long or short, words dropped, letters swapped, year off or missing."""
    surnames = [name for _, name in paper.authors]
    style = random.integers(3)
    if style == 0:
        author = " and ".join(filter(None, [", ".join(surnames[:-1]), surnames[-1]]))
    elif style == 1:
        author = ", ".join(f"{first} {name}" for first, name in paper.authors)
    else:
        author = surnames[0] + (" et al" if len(surnames) > 1 else "")
    words = [word for word in paper.title.split() if random.random() > 0.06] or paper.title.split()
    title = " ".join(_mistyped(word, random) for word in words)
    year = "" if random.random() < 0.1 else str(paper.year + int(random.choice([0, 0, 0, 0, 0, 1])))
    return author, title, paper.venue[random.integers(2)], year


def _mistyped(word: str, random: np.random.Generator) -> str:
    if len(word) < 4 or random.random() > 0.04:
        return word
    at = int(random.integers(1, len(word) - 2))
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
