"""Words in many hands: bitmaps of letters, 16 rows of 8, in the manner of the OCR words that chains were published on.

>>> words = letter_sequences(words=200, seed=1)
>>> len(words), words.pixels.shape[1], len(words.alphabet), sorted(set(words.fold.tolist())) == list(range(10))
(200, 128, 26, True)
>>> words.text(0), len(words.features(0)) == len(words.labels(0)) == len(words.text(0))
('fiomfirthac', True)
>>> print(words.picture(0))  # doctest: +SKIP

Words are of a made-up vocabulary: syllables whose parts have the frequencies of written English, so that letters follow
each other as they do there (q before u, h after t, s, c). A letter is strokes; a writer has a slant, a width, a pen and
a shape of their own for every letter, and no two of their letters are alike; pixels are lost and added. Folds are drawn
at random, as published: about 6,100 words of 150 writers, in 10 folds, trained on one and tested on nine.

Nothing of the published data is in here, and error rates on it say nothing about that data: `noise` was set so that a
linear classifier of single letters is wrong about as often as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

__all__ = ["COLUMNS", "ROWS", "LetterSequences", "letter_sequences"]

ROWS, COLUMNS = 16, 8
ALPHABET = "abcdefghijklmnopqrstuvwxyz"

# Polylines through points (x, y), x from 0 to 4 and y from 0 (top) over 2 and 6 (where small letters stand) to 8.
_STROKES = {
    "a": ("32120305163645", "4246"), "b": ("0006", "0312324345361605"), "c": ("4332120305163645",),
    "d": ("4046", "4332120305163645"), "e": ("04444332120305163645",), "f": ("41302126", "1242"),
    "g": ("4332120305163645", "4247381807"), "h": ("0006", "0312324346"), "i": ("2226", "2020"),
    "j": ("3237281807", "3030"), "k": ("0006", "4204", "1446"), "l": ("2026",), "m": ("0206", "03122326", "23324346"),
    "n": ("0206", "0312324346"), "o": ("120305163645433212",), "p": ("0208", "0312324345361605"),
    "q": ("4248", "4332120305163645"), "r": ("0206", "03123243"), "s": ("43321203143445361605",),
    "t": ("20253646", "0242"), "u": ("0205163645", "4246"), "v": ("022642",), "w": ("0216243642",),
    "x": ("0246", "4206"), "y": ("0224", "4208"), "z": ("02420646",),
}  # fmt: skip

# Parts of syllables and how often they are met, in parts of a thousand or so.
_ONSETS = (
    " 90 s 70 c 55 t 60 m 50 d 52 r 55 l 48 p 45 b 45 n 40 f 38 h 36 w 30 g 28 v 24 th 40 st 30 pr 26 tr 20 ch 22 "
    "sh 20 br 14 gr 14 cr 14 fr 12 cl 12 pl 14 fl 10 sp 14 qu 14 j 10 k 10 y 8 wh 12 bl 8 dr 8 sc 8 sl 6 sm 5 str 8 z 4"
)
_NUCLEI = "e 190 a 150 i 140 o 120 u 70 ea 30 ou 26 oo 16 ai 16 ee 18 y 20 ie 12 io 10 au 8 oi 6 ue 6"
_CODAS = (
    " 330 n 90 r 90 s 60 t 60 l 50 d 36 m 30 c 14 p 14 nd 26 nt 30 st 22 ng 18 ck 14 rt 10 ll 16 ss 14 rd 10 ct 12 x 6 "
    "w 10 ght 8 sh 8 th 10 rm 8 b 6 g 8 f 6 v 8 k 8 lt 6 mp 8 rn 6"
)
_ENDINGS = " 560 ing 60 ed 60 er 50 s 60 ly 36 tion 40 able 14 ment 20 ness 12 ous 16 ate 20 ize 8 al 24 ive 14 ful 8"


@dataclass(frozen=True, eq=False)
class LetterSequences:
    """Letters one after the other, and where words begin; `writer` and `fold` have an entry a word."""

    pixels: NDArray[np.uint8]
    """[letters, 128], 0 or 1, row by row."""
    letter: NDArray[np.int64]
    """The place in the alphabet."""
    offsets: NDArray[np.int64]
    writer: NDArray[np.int64]
    fold: NDArray[np.int64]
    alphabet: str = ALPHABET

    def __len__(self) -> int:
        """How many words."""
        return len(self.writer)

    def labels(self, word: int) -> NDArray[np.int64]:
        """The letters of a word, as places in the alphabet."""
        return self.letter[self.offsets[word] : self.offsets[word + 1]]

    def features(self, word: int) -> NDArray[np.float64]:
        """Pixels of a word's letters, and a constant 1 as the last column."""
        rows = self.pixels[self.offsets[word] : self.offsets[word + 1]]
        return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)

    def text(self, word: int) -> str:
        """A word as it is written."""
        return "".join(self.alphabet[k] for k in self.labels(word))

    def examples(self, words: NDArray[np.int64]) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Some words as examples (x, y) of a learner."""
        return [(self.features(int(i)), self.labels(int(i))) for i in words]

    def picture(self, word: int) -> str:
        """A word for people."""
        letters = self.pixels[self.offsets[word] : self.offsets[word + 1]].reshape(-1, ROWS, COLUMNS)
        return "\n".join("  ".join("".join(".#"[p] for p in letter[row]) for letter in letters) for row in range(ROWS))

    def lines(self) -> Iterator[str]:
        """A CSV file: sequence, label, and a column a pixel; a line a letter."""
        yield ",".join(["sequence", "label", *(f"r{r}c{c}" for r in range(ROWS) for c in range(COLUMNS))])
        for i in range(len(self)):
            for t in range(self.offsets[i], self.offsets[i + 1]):
                yield ",".join([str(i), self.alphabet[self.letter[t]], *map(str, self.pixels[t].tolist())])

    def write(self, path: str | Path) -> None:
        """Write the CSV file."""
        try:
            with open(path, "w", encoding="ascii") as file:
                file.writelines(f"{line}\n" for line in self.lines())
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def letter_sequences(
    *,
    words: int = 6000,
    vocabulary: int = 1000,
    writers: int = 150,
    noise: float = 1.0,
    folds: int = 10,
    seed: int = 0,
    part: int = 0,
) -> LetterSequences:
    """Words of a vocabulary of this size, each by one of the writers; chances fall with rank to the power of -1/2.

    Another `part` is other words by the same writers from the same vocabulary: data to test on.
    """
    for name, value, most in (("words", words, 10**6), ("vocabulary", vocabulary, 10**5), ("writers", writers, 10**5)):
        if not 1 <= value <= most:
            raise InputError(f"{name} must lie between 1 and {most:,}, not {value}")
    if not (0 <= noise <= 10 and 1 <= folds <= words and seed >= 0 and part >= 0):
        raise InputError(
            "noise lies between 0 and 10, folds between 1 and the number of words, seed and part from 0 on"
        )
    known = np.random.default_rng([seed, 0])
    names = _vocabulary(known, vocabulary)
    style = _Style.draw(known, writers)
    rng = np.random.default_rng([seed, 1, part])
    chance = np.arange(1, len(names) + 1) ** -0.5
    chosen = [names[i] for i in rng.choice(len(names), words, p=chance / chance.sum())]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in chosen])])
    letter = np.array([ALPHABET.index(c) for word in chosen for c in word], np.int64)
    writer = rng.integers(0, writers, words)
    fold = rng.permutation(words) % folds
    by = np.repeat(writer, np.diff(offsets))
    pixels = np.empty((len(letter), ROWS * COLUMNS), np.uint8)
    for k in range(len(ALPHABET)):
        rows = np.flatnonzero(letter == k)
        for at in range(0, len(rows), 1000):
            some = rows[at : at + 1000]
            pixels[some] = _drawn(rng, style, k, by[some], noise)
    return LetterSequences(pixels, letter, offsets, writer, fold)


def _weighted(text: str) -> tuple[list[str], NDArray[np.float64]]:
    """Parts and their chances; a number without a part before it is that of nothing."""
    tokens = text.split()
    parts, weights = [], []
    part = ""
    for token in tokens:
        if token.isdigit():
            parts.append(part)
            weights.append(float(token))
            part = ""
        else:
            part = token
    return parts, np.array(weights) / sum(weights)


def _vocabulary(rng: np.random.Generator, size: int) -> list[str]:
    """Different words of 3 to 12 letters."""
    onsets, nuclei, codas, endings = (_weighted(text) for text in (_ONSETS, _NUCLEI, _CODAS, _ENDINGS))
    found: dict[str, None] = {}
    while len(found) < size:
        syllables = 1 + int(rng.binomial(2, 0.45))
        parts = [str(rng.choice(kind[0], p=kind[1])) for _ in range(syllables) for kind in (onsets, nuclei, codas)]
        word = "".join(parts) + str(rng.choice(endings[0], p=endings[1]))
        if 3 <= len(word) <= 12:
            found[word] = None
    return list(found)


@dataclass(frozen=True, eq=False)
class _Style:
    """What a writer always does: how he leans, how wide he writes, his pen, and where his strokes go by letter."""

    slant: NDArray[np.float64]
    width: NDArray[np.float64]
    height: NDArray[np.float64]
    pen: NDArray[np.float64]
    shape: NDArray[np.float64]  # [writer, letter, point, 2]

    @classmethod
    def draw(cls, rng: np.random.Generator, writers: int) -> _Style:
        points = max(len(_points(k)[0]) for k in range(len(ALPHABET)))
        return cls(
            slant=rng.normal(0.0, 0.16, writers),
            width=np.exp(rng.normal(0.0, 0.12, writers)),
            height=np.exp(rng.normal(0.0, 0.06, writers)),
            pen=rng.uniform(0.35, 0.75, writers),
            shape=rng.normal(0.0, 0.3, (writers, len(ALPHABET), points, 2)),
        )


def _points(letter: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The points of a letter, and the segments as pairs of them."""
    points: list[tuple[float, float]] = []
    segments: list[tuple[int, int]] = []
    for stroke in _STROKES[ALPHABET[letter]]:
        first = len(points)
        points += [(float(stroke[i]), float(stroke[i + 1])) for i in range(0, len(stroke), 2)]
        segments += [(i, i + 1) for i in range(first, len(points) - 1)]
    return np.array(points), np.array(segments)


def _drawn(
    rng: np.random.Generator, style: _Style, letter: int, writer: NDArray[np.int64], noise: float
) -> NDArray[np.uint8]:
    """Bitmaps of one letter, each by its writer."""
    base, segments = _points(letter)
    n = len(writer)
    places = base + noise * (style.shape[writer, letter, : len(base)] + rng.normal(0.0, 0.22, (n, len(base), 2)))
    middle = np.array([2.0, 4.0])
    x = (places[..., 0] - middle[0]) * style.width[writer, None] - style.slant[writer, None] * (places[..., 1] - 4.0)
    y = (places[..., 1] - middle[1]) * style.height[writer, None]
    shift = rng.normal(0.0, 0.35 * noise, (n, 2))
    strokes = np.stack([x + shift[:, :1], y + shift[:, 1:]], axis=-1) + middle
    columns, rows = -1.0 + 6.0 * (np.arange(COLUMNS) + 0.5) / COLUMNS, -0.5 + 9.0 * (np.arange(ROWS) + 0.5) / ROWS
    grid = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    a, b = strokes[:, segments[:, 0]], strokes[:, segments[:, 1]]
    along = b - a
    from_a = grid[None, :, None] - a[:, None]
    share = (from_a * along[:, None]).sum(axis=-1) / np.maximum((along**2).sum(axis=-1), 1e-9)[:, None]
    apart = from_a - np.clip(share, 0.0, 1.0)[..., None] * along[:, None]
    ink = np.sqrt((apart**2).sum(axis=-1)).min(axis=2) < style.pen[writer, None]
    return np.asarray(ink ^ (rng.random(ink.shape) < 0.03 * noise), np.uint8)
