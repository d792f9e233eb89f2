"""Generated letter sequences: the same again by the same seed, parts that share writers, and a file to read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from netclust.datasets.simulators.letter_sequences import COLUMNS, ROWS, letter_sequences
from netclust.datasets.text_tables import read_text_table
from netclust.errors import InputError


def test_a_seed_gives_the_same_words_and_another_part_others_from_the_same_vocabulary() -> None:
    one, again, other = (letter_sequences(words=120, vocabulary=20, writers=5, seed=3, part=k) for k in (0, 0, 1))
    assert np.array_equal(one.pixels, again.pixels)
    texts, others = [one.text(i) for i in range(120)], [other.text(i) for i in range(120)]
    assert texts != others
    assert len(set(texts) | set(others)) <= 20
    assert all(3 <= len(text) <= 12 for text in texts)
    assert {one.fold.tolist().count(k) for k in range(10)} == {12}


def test_letters_follow_each_other_as_in_written_words() -> None:
    made = letter_sequences(words=400, seed=0)
    texts = " ".join(made.text(i) for i in range(400))
    assert texts.count("qu") == texts.count("q") > 0
    assert texts.count("e") > texts.count("z")


def test_letters_look_like_letters_and_less_so_with_noise() -> None:
    """How often a letter is nearest to the mean picture of its own kind."""
    right = []
    for noise in (0.0, 1.0):
        made = letter_sequences(words=300, writers=20, noise=noise, seed=1)
        half = len(made.letter) // 2
        kinds = np.unique(made.letter[:half])
        means = np.stack([made.pixels[:half][made.letter[:half] == k].mean(axis=0) for k in kinds])
        apart = ((made.pixels[half:, None].astype(float) - means[None]) ** 2).sum(axis=2)
        right.append((kinds[apart.argmin(axis=1)] == made.letter[half:]).mean())
    assert right[0] > 0.75 > right[1] > 0.3
    assert set(np.unique(made.pixels).tolist()) == {0, 1}
    picture = made.picture(0).splitlines()
    assert len(picture) == ROWS
    assert len(picture[0]) == len(made.text(0)) * (COLUMNS + 2) - 2


def test_the_file_has_a_row_a_letter(tmp_path: Path) -> None:
    made = letter_sequences(words=4, seed=2, folds=2)
    made.write(tmp_path / "words.csv")
    table = read_text_table(tmp_path / "words.csv")
    assert list(table.columns)[:3] == ["sequence", "label", "r0c0"]
    assert "".join(table.column("label")) == "".join(made.text(i) for i in range(4))
    assert [int(v) for v in table.column("r3c2")] == made.pixels[:, 3 * COLUMNS + 2].tolist()
    with pytest.raises(InputError, match="cannot be written"):
        made.write(tmp_path / "no" / "words.csv")


def test_what_cannot_be_made_is_refused() -> None:
    for wrong in ({"words": 0}, {"vocabulary": 0}, {"noise": -1.0}, {"folds": 0}, {"words": 5, "folds": 6}):
        with pytest.raises(InputError):
            letter_sequences(**{"words": 10, **wrong})  # type: ignore[arg-type]
