"""Little stories that are made up, with every mention marked: to try coreference without a corpus.

A story has two to four people (titles, first names, surnames that two of them may share, trades, relatives), their
families, some things, an animal, a place, an inn, a firm and a group. Each is introduced, named again in another way,
spoken of by pronouns, possessives and definite repeats. Two people may act together, who are then "they". People talk
to each other in quotes, where "I" is who speaks. A pronoun stands for the last of its gender that was mentioned, which
is what a reader expects.

>>> story = simulate_documents(1, seed=7)[0]
>>> len(story.sentences) > 10, len(story.entities()) > 5
(True, True)
>>> simulate_documents(2, seed=7)[0] == story
True
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from netclust.errors import InputError
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.story_words import (
    ADJECTIVES,
    ANIMALS,
    FIRM_ENDINGS,
    FIRMS,
    FIRST_NAMES,
    FRAMES,
    GROUPS,
    INNS,
    OWNED,
    PLACES,
    PRONOUNS,
    RELATIVES,
    SENTENCES,
    SPEECHES,
    SURNAMES,
    THINGS,
    TITLES,
    TRADES,
)

__all__ = ["simulate_documents"]

_Item = TypeVar("_Item")
_PIECE = re.compile(r"<1 (?P<once>[^>]+)>|<(?P<role>[A-Z=&])(?::(?P<case>\w+))?>|(?P<word>\S+)")
_TAGS = {"a": "DT", "an": "DT", "the": "DT", "some": "DT", "town": "NN", **dict.fromkeys(ADJECTIVES, "JJ")}
_SHORT, _LONG = 12, 24  # sentences of a story
_FRESH = 5  # and no two of so many in a row are alike
_NEAR = 2  # a pronoun stands for what was mentioned so many sentences ago at most


@dataclass
class _Figure:
    """Somebody or something in a story, and the words for it."""

    number: int
    gender: str
    first_form: tuple[str, ...]
    later_forms: list[tuple[str, ...]]
    owner: _Figure | None = None
    both: tuple[_Figure, ...] = ()  # two people together
    trade: str = ""
    known: bool = False


@dataclass
class _Story:
    """What has been told so far."""

    rng: np.random.Generator
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    sentences: list[int] = field(default_factory=lambda: [0])
    last: dict[str, tuple[_Figure, int]] = field(default_factory=dict)
    figures: int = 0
    speaker: str = "-"
    speaking: _Figure | None = None
    upper: bool = True  # whether the next word begins a sentence
    recent: list[str] = field(default_factory=list)

    def pick(self, items: Sequence[_Item]) -> _Item:
        return items[int(self.rng.integers(len(items)))]

    def fresh(self, texts: Sequence[str]) -> str:
        """One that was not told just now."""
        text = self.pick([text for text in texts if text not in self.recent])
        self.recent = [*self.recent[1 - _FRESH :], text]
        return text

    def chance(self, percent: int) -> bool:
        return int(self.rng.integers(100)) < percent

    def new(self, gender: str, first_form: tuple[str, ...], later_forms: list[tuple[str, ...]]) -> _Figure:
        self.figures += 1
        return _Figure(self.figures - 1, gender, first_form, later_forms)

    def put(self, word: str, tag: str) -> None:
        self.words.append(word[:1].upper() + word[1:] if self.upper else word)
        self.tags.append(tag)
        self.speakers.append(self.speaker)
        self.upper = word == '"' and self.upper

    def mark_in_speech(self, start: int, figure: _Figure) -> None:
        """By "I", "my" or "you" nobody gets known: who it was is told behind the quote."""
        if figure.known:
            self.mark(start, figure)
        else:
            self.mentions.append(Mention(start, len(self.words), figure.number))

    def mark(self, start: int, figure: _Figure) -> None:
        self.mentions.append(Mention(start, len(self.words), figure.number))
        figure.known = True
        self.last[figure.gender] = (figure, len(self.sentences))

    def end_sentence(self) -> None:
        self.sentences.append(len(self.words))
        self.upper = True


def simulate_documents(
    count: int, seed: int = 0, *, with_pos: bool = False, with_speakers: bool = False
) -> list[Document]:
    """Stories of 12 to 24 sentences, each the same for the same seed, however many there are.

    Parts of speech (Penn Treebank) and speakers are left out unless asked for, as they are in most texts.
    """
    if count < 0:
        raise InputError(f"{count} stories cannot be made; ask for 0 or more")
    return [_document(seed, number, with_pos, with_speakers) for number in range(count)]


def _document(seed: int, number: int, with_pos: bool, with_speakers: bool) -> Document:
    story = _Story(np.random.default_rng([seed, number]))
    people = _people(story)
    owned = {person.number: _owned(story, person, "thing", OWNED) for person in people}
    kin = {person.number: _relative(story, person) for person in people}
    others = _others(story) | {"S": _families(story, people)}
    pairs: dict[frozenset[int], _Figure] = {}
    length = int(story.rng.integers(_SHORT, _LONG + 1))
    about = people[0]
    while len(story.sentences) <= length:
        about = story.pick(people) if story.chance(35) else about
        other = story.pick([person for person in people if person is not about])
        rest = [person for person in people if person not in (about, other)]
        roles = {"A": about, "B": other, "O": owned[about.number], "H": owned[other.number]}
        roles["K"] = kin[about.number]
        roles |= {role: story.pick(figures) for role, figures in others.items()}
        together = frozenset((about.number, other.number))
        if together not in pairs:
            pairs[together] = story.new("many", (), [])
        pairs[together].both = (about, other)
        roles["&"] = pairs[together]
        if rest:
            roles["C"] = story.pick(rest)
        if story.chance(30 if about.known and other.known else 12):  # strangers speak less
            _narrate_speech(story, roles)
        else:
            _narrate(story, story.fresh([text for text in SENTENCES if "<=>" not in text or about.trade]), roles)
        story.end_sentence()
    return Document(
        f"simulated_{number:04d}",
        tuple(story.words),
        tuple(story.sentences),
        pos=tuple(story.tags) if with_pos else None,
        speakers=tuple(story.speakers) if with_speakers else None,
    ).with_mentions(story.mentions)


def _people(story: _Story) -> list[_Figure]:
    people: list[_Figure] = []
    surnames: list[str] = []
    used: set[str] = set()
    for _ in range(int(story.rng.integers(2, 5))):
        gender = story.pick(("male", "female"))
        first = story.pick([name for name in FIRST_NAMES[gender] if name not in used])
        shared = bool(surnames) and story.chance(30)
        surname = surnames[-1] if shared else story.pick([name for name in SURNAMES if name not in surnames])
        title = story.pick([title for title in TITLES[gender] if f"{title} {surname}" not in used])
        full = story.pick(((title, first, surname), (first, surname), (title, surname)))
        person = story.new(gender, full, [(title, surname)])
        person.trade = story.pick([trade for trade in TRADES if trade not in used])
        if first in full:
            person.later_forms.append((first,))
        used |= {first, person.trade, f"{title} {surname}"}
        people.append(person)
        surnames.append(surname)
    for person, surname in zip(people, surnames, strict=True):
        if Counter(surnames)[surname] == 1:
            person.later_forms.append((surname,))
    return people


def _owned(story: _Story, owner: _Figure, gender: str, nouns: Sequence[str]) -> _Figure:
    noun = story.pick(nouns)
    figure = story.new(gender, (noun,), [(noun,)])
    figure.owner = owner
    return figure


def _relative(story: _Story, person: _Figure) -> _Figure:
    gender = story.pick(("male", "female"))
    return _owned(story, person, gender, RELATIVES[gender])


def _families(story: _Story, people: Sequence[_Figure]) -> list[_Figure]:
    """The Hales, the Marshes: one for every surname."""
    surnames = dict.fromkeys(person.later_forms[0][-1] for person in people)
    names = [("the", f"{surname}{'es' if surname.endswith(('s', 'sh')) else 's'}") for surname in surnames]
    return [story.new("many", name, [name]) for name in names]


def _others(story: _Story) -> dict[str, list[_Figure]]:
    """Things, the animal, the group, the place, the inn and the firm, by their role in a sentence."""
    found: dict[str, list[_Figure]] = {"T": [], "D": [], "G": [], "P": [], "I": [], "F": []}
    nouns = [("T", THINGS[int(at)]) for at in story.rng.permutation(len(THINGS))[:3]]
    for role, noun in (*nouns, ("D", story.pick(ANIMALS))):
        how = story.pick(ADJECTIVES)
        article = "an" if how[0] in "aeiou" else "a"
        forms: list[tuple[str, ...]] = [("the", noun), ("the", noun), ("the", how, noun)]
        found[role].append(story.new("thing", (article, how, noun), forms))
    group, place = story.pick(GROUPS), story.pick(PLACES)
    found["G"].append(story.new("many", ("some", group) if story.chance(70) else (group,), [("the", group)]))
    found["P"].append(story.new("thing", (place,), [(place,), (place,), ("the", "town")]))
    inn, firm = ("the", *story.pick(INNS).split()), tuple(story.pick(FIRMS).split())
    found["I"].append(story.new("thing", inn, [inn, ("the", "inn")]))
    found["F"].append(story.new("thing", (*firm, story.pick(FIRM_ENDINGS)), [firm, firm, ("the", "firm")]))
    return found


def _narrate(story: _Story, text: str, roles: dict[str, _Figure]) -> None:
    """Write a sentence, its places filled."""
    for piece in _PIECE.finditer(text):
        if piece["once"]:
            start = len(story.words)
            _narrate(story, piece["once"], roles)
            story.mentions.append(Mention(start, len(story.words), story.figures))
            story.figures += 1
        elif piece["role"] == "=":
            _narrate_trade(story, roles["A"])
        elif piece["role"]:
            _refer(story, roles[piece["role"]], piece["case"] or "subject")
        else:
            _narrate_word(story, piece["word"], roles)


def _narrate_word(story: _Story, text: str, roles: dict[str, _Figure]) -> None:
    word, _, rest = text.partition("/")
    tag, _, role = rest.partition("=")
    story.put(word, tag)
    if role:
        story.mark_in_speech(len(story.words) - 1, roles[role])


def _narrate_speech(story: _Story, roles: dict[str, _Figure]) -> None:
    speech = story.fresh([text for text in SPEECHES if "<C" not in text or "C" in roles])
    before, after = story.pick(FRAMES).split("{speech}")
    _narrate(story, before, roles)
    story.speaker, story.speaking = "_".join(roles["A"].first_form), roles["A"]
    story.upper = True
    _narrate(story, speech, roles)
    story.speaker, story.speaking = "-", None
    _narrate(story, after, roles)


def _narrate_trade(story: _Story, person: _Figure) -> None:
    """Write somebody's trade, which is a mention of them too and a way to name them from now on."""
    start = len(story.words)
    story.put("a", "DT")
    story.put(person.trade, "NN")
    story.mark(start, person)
    person.later_forms.append(("the", person.trade))
    person.trade = ""


def _refer(story: _Story, figure: _Figure, case: str) -> None:
    """A mention: a pronoun where one will do, else a name or noun phrase."""
    start = len(story.words)
    latest, when = story.last.get(figure.gender, (None, 0))
    ago = len(story.sentences) - when
    if latest is figure and ago <= _NEAR and story.chance(90 if ago == 0 else 60):
        story.put(PRONOUNS[figure.gender][case], "PRP$" if case == "owner" else "PRP")
        story.mark(start, figure)
        return
    _name(story, figure)
    if case == "owner":
        story.put("'s", "POS")


def _name(story: _Story, figure: _Figure) -> None:
    """A mention without a pronoun but for its owner, if it has one; of two people, both their names."""
    start = len(story.words)
    if figure.owner is not None and figure.owner is story.speaking:
        story.put("my", "PRP$")
        story.mark_in_speech(start, figure.owner)
    elif figure.owner is not None:
        _refer(story, figure.owner, "owner")
    for number, person in enumerate(figure.both):
        if number:
            story.put("and", "CC")
        _name(story, person)
    for word in () if figure.both else story.pick(figure.later_forms) if figure.known else figure.first_form:
        many = "S" if figure.gender == "many" else ""
        story.put(word, _TAGS.get(word, f"NNP{many}" if word[0].isupper() else f"NN{many}"))
    story.mark(start, figure)
