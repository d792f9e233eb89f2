"""A treebank made from an invented grammar, for when no licensed one is at hand. Synthetic: `NOTICE`.

What a tree looks like is often for words to decide, not for labels: *saw the baker with the telescope* hangs on the
verb, *with the beard* on the noun; *the hat of the baker and the pilot* joins people, *and the scarf* joins things;
*said the pilot left quietly* or *frankly*. A share of attachments (`noise`) goes the other way, so no parser is right
always. Verbs agree with their subjects; some words have two tags; many words are rare.

>>> trees = toy_trees(100, seed=1)
>>> trees == toy_trees(100, seed=1), {8 <= len(syntax_words(tree)) <= 15 for tree in trees}
(True, {True})
>>> print(bracketed_syntax(trees[1])[:79])
(S (NP (NP (DT the) (JJ old) (NNS farmers)) (PP (IN with) (NP (DT some) (NNS ha
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netclust.errors import InputError
from netclust.models.parsing.syntax import Tree, bracketed_syntax, syntax_words

__all__ = ["NOTICE", "bracketed_syntax", "toy_trees"]

NOTICE = "Synthetic data: sentences of an invented grammar; it says nothing about parsing of real text."
MAX_TREES = 1_000_000

_ROOTS = [
    "bar",
    "cal",
    "dor",
    "fen",
    "gil",
    "har",
    "jun",
    "kel",
    "lom",
    "mar",
    "nor",
    "pol",
    "quin",
    "ros",
    "sil",
    "tor",
    "ul",
    "ver",
    "wen",
    "zan",
]
_SEEN = {
    "person": ["baker", "pilot", "farmer", "teacher", "doctor", "singer", "sailor"],
    "tool": ["telescope", "hammer", "saw", "lens", "drum", "net", "lamp"],
    "part": ["beard", "hat", "scarf", "coat", "crown", "scar", "cane"],
    "place": ["park", "garden", "harbour", "market", "tower", "valley", "street"],
}
_ENDS = {"person": ("er", "ist"), "tool": ("or", "ex"), "part": ("let", "ock"), "place": ("ton", "ward")}
_VERBS = {"looks": ["see", "watch", "meet", "find", "draw", "follow"], "goes": ["sleep", "walk", "leave", "laugh"]}
_PAST = {"see": "saw", "meet": "met", "find": "found", "draw": "drew", "sleep": "slept", "leave": "left"}
_SAYS = ("say", "said"), ("claim", "claimed"), ("think", "thought")
_MANNER = ["quietly", "slowly", "badly", "alone"]
_SPEECH = ["frankly", "honestly", "loudly", "today"]
_JOINED = {"saw", "drum", "net", "hammer"}  # also verbs
_ADJECTIVES = ["old", "young", "small", "tall", "red", "light", "kind"]
_NAMES = ["Anna", "Boris", "Carla", "Dmitri", "Ewa", "Farid"]


def toy_trees(
    count: int, *, seed: int = 0, noise: float = 0.08, min_words: int = 8, max_words: int = 15
) -> tuple[Tree, ...]:
    """So many trees; the same arguments give the same ones, and the words are those of every seed."""
    if not 1 <= count <= MAX_TREES:
        raise InputError(f"{count} trees are asked for: 1 to {MAX_TREES:,} can be made")
    if not 0 <= noise <= 1:
        raise InputError(f"noise is {noise}: it is a share of attachments, 0 to 1")
    if not (3 <= min_words <= max_words and max_words >= 5 and min_words <= 20):
        raise InputError(f"sentences of {min_words} to {max_words} words: the lowest is 3 to 20, the highest 5 or more")
    if seed < 0:
        raise InputError(f"seed is {seed}: it must not be negative")
    maker = _Maker(np.random.default_rng([seed, 9]), noise)
    found: list[Tree] = []
    while len(found) < count:
        tree = maker.sentence()
        if min_words <= len(syntax_words(tree)) <= max_words:
            found.append(tree)
    return tuple(found)


def _tag(label: str, word: str) -> Tree:
    return Tree(label, word=word)


def _words(kind: str) -> tuple[str, ...]:
    """Words of a kind, the common ones first; the rare ones are made of syllables."""
    made = [a + b + end for end in _ENDS[kind] for a in _ROOTS[::3] for b in _ROOTS[1::5]]
    return (*_SEEN[kind], *made)


class _Maker:
    """Draws sentences."""

    def __init__(self, rng: np.random.Generator, noise: float) -> None:
        self.rng, self.noise = rng, noise
        self.words = {kind: _words(kind) for kind in _ENDS}

    def sentence(self) -> Tree:
        """A whole one."""
        return Tree("S", (*self.clause(2).children, _tag(".", ".")))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, some: Sequence[str]) -> str:
        """One of some words, the first ones oftener (Zipf)."""
        share = 1.0 / np.arange(1, len(some) + 1)
        return some[int(self.rng.choice(len(some), p=share / share.sum()))]

    def either(self, first: bool) -> bool:
        """What words decide, but for the noise."""
        return first != self.chance(self.noise)

    def clause(self, depth: int) -> Tree:
        plural = self.chance(0.4)
        return Tree("S", (self.subject(plural, depth), self.verb_phrase(plural, depth)))

    def subject(self, plural: bool, depth: int) -> Tree:
        draw = self.rng.random()
        if draw < 0.15:
            return Tree("NP", (_tag("PRP", "they" if plural else self.pick(["she", "he"])),))
        if draw < 0.3 and not plural:
            return Tree("NP", (_tag("NNP", self.pick(_NAMES)),))
        noun = self.noun("person", plural)
        return self.with_part(noun) if depth and self.chance(0.2) else noun

    def noun(self, kind: str, plural: bool | None = None) -> Tree:
        """A noun with its article: the baker, some young bakers."""
        plural = self.chance(0.3) if plural is None else plural
        word = self.pick(self.words[kind])
        noun = _tag("NNS", word + "s") if plural else _tag("NN", word)
        article = _tag("DT", self.pick(["the", "some", "those"] if plural else ["the", "a", "this"]))
        adjectives = (_tag("JJ", self.pick(_ADJECTIVES)),) if self.chance(0.25) else ()
        return Tree("NP", (article, *adjectives, noun))

    def with_part(self, noun: Tree) -> Tree:
        return Tree("NP", (noun, self.phrase("with", self.noun("part"))))

    def phrase(self, preposition: str, noun: Tree) -> Tree:
        return Tree("PP", (_tag("IN", preposition), noun))

    def verb(self, kind: str, plural: bool) -> Tree:
        stem = self.pick(_VERBS[kind] if kind == "goes" else [*_VERBS[kind], *sorted(_JOINED)])
        if self.chance(0.5):
            return _tag("VBD", _PAST.get(stem, stem.removesuffix("e") + "ed"))
        ending = "es" if stem.endswith("ch") else "s"
        return _tag("VBP", stem) if plural else _tag("VBZ", stem + ending)

    def verb_phrase(self, plural: bool, depth: int) -> Tree:
        draw = self.rng.random()
        if depth and draw < 0.25:
            return self.saying(plural, depth)
        if depth and draw < 0.35:
            both = [self.verb_phrase(plural, 0) for _ in range(2)]
            return Tree("VP", (both[0], _tag("CC", self.pick(["and", "but", "or"])), both[1]))
        if draw < 0.5:
            return Tree("VP", (self.verb("goes", plural), self.place_phrase()))
        return self.seeing(plural)

    def place_phrase(self) -> Tree:
        return self.phrase(self.pick(["in", "near", "behind"]), self.noun("place"))

    def seeing(self, plural: bool) -> Tree:
        """A verb with its object, and what may belong to either."""
        verb, draw = self.verb("looks", plural), self.rng.random()
        if draw < 0.25:
            return Tree("VP", (verb, self.things()))
        if draw < 0.45:  # a thing of somebody, and whose or what else
            return Tree("VP", (verb, self.joined()))
        kind = "tool" if draw < 0.65 else "part" if draw < 0.85 else "place"
        thing = self.noun("person")
        if kind == "place":
            phrase, high = self.place_phrase(), verb.word in ("met", "meet", "meets", "found", "find", "finds")
        else:
            phrase, high = self.phrase("with", self.noun(kind)), kind == "tool"
        if self.either(high):
            return Tree("VP", (verb, thing, phrase))
        return Tree("VP", (verb, Tree("NP", (thing, phrase))))

    def things(self) -> Tree:
        """A noun, or two of a kind under one adjective or with their own."""
        kind = self.pick(["person", "part", "tool"])
        if self.chance(0.5):
            return self.noun(kind)
        first, second = (_tag("NNS", self.pick(self.words[kind]) + "s") for _ in range(2))
        adjective, word = _tag("JJ", self.pick(_ADJECTIVES)), _tag("CC", "and")
        if self.either(kind == "person"):  # old (bakers and pilots), but (red hats) and scarves
            return Tree("NP", (adjective, Tree("NX", (first, word, second))))
        return Tree("NP", (Tree("NP", (adjective, first)), word, Tree("NP", (second,))))

    def joined(self) -> Tree:
        """The hat of the baker and the pilot, or and the scarf."""
        kind = "person" if self.chance(0.5) else "part"
        thing, owner, third = self.noun("part"), self.noun("person"), self.noun(kind)
        word = _tag("CC", "and")
        if self.either(kind == "person"):
            return Tree("NP", (thing, self.phrase("of", Tree("NP", (owner, word, third)))))
        return Tree("NP", (Tree("NP", (thing, self.phrase("of", owner))), word, third))

    def saying(self, plural: bool, depth: int) -> Tree:
        """She said that he slept, and how: of the saying or of the sleeping."""
        stem, past = _SAYS[int(self.rng.integers(len(_SAYS)))]
        verb = _tag("VBD", past) if self.chance(0.6) else _tag("VBP", stem) if plural else _tag("VBZ", stem + "s")
        inner = self.clause(depth - 1)
        that = (_tag("IN", "that"),) if self.chance(0.6) else ()
        if self.chance(0.4):
            return Tree("VP", (verb, Tree("SBAR", (*that, inner))))
        of_speech = self.chance(0.5)
        manner = Tree("ADVP", (_tag("RB", self.pick(_SPEECH if of_speech else _MANNER)),))
        if self.either(of_speech):
            return Tree("VP", (verb, Tree("SBAR", (*that, inner)), manner))
        subject, phrase = inner.children
        inner = Tree("S", (subject, Tree("VP", (*phrase.children, manner))))
        return Tree("VP", (verb, Tree("SBAR", (*that, inner))))
