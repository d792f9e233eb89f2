"""A followed log through a random life: writes cut anywhere, rotations of all kinds, crashes of the reader."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from text_sources import LINES, Row, Watched, expected, opened

from netclust.stream.sources import files
from netclust.stream.sources.base import SourceState


class Life:
    """What happens to the log; the reader is stopped dead at times, and goes on from the last state that it gave."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.path = folder / "conn.log"
        self.chance = chance
        self.unwritten = "".join(LINES)
        self.written = 0  # whole lines
        self.watched = Watched(opened(self.path, follow=True))
        self.rows: list[Row] = []

    def write(self) -> None:
        """Some lines, or a part of one."""
        size = self.chance.choice([3, 40, 150, 700, 5000])
        self._append(size)

    def _append(self, size: int) -> None:
        text, self.unwritten = self.unwritten[:size], self.unwritten[size:]
        self.written += text.count("\n")
        with self.path.open("a") as file:
            file.write(text)
        time.sleep(0.006)  # so that times of change tell the files apart

    def finish_line(self) -> None:
        self._append(self.unwritten.find("\n") + 1)

    def rename(self) -> None:
        self.finish_line()
        self._shift()
        self.path.rename(f"{self.path}.1")
        if self.chance.random() < 0.3:
            self.path.touch()

    def copy_and_truncate(self) -> None:
        self.finish_line()
        self._shift()
        shutil.copy2(self.path, f"{self.path}.1")
        os.truncate(self.path, 0)

    def pack(self) -> None:
        """What was rotated before the last, as log rotation does; the reader is not in it, unless it is down."""
        old = Path(f"{self.path}.2")
        if old.exists():
            packed = Path(f"{old}.gz")
            packed.write_bytes(gzip.compress(old.read_bytes()))
            shutil.copystat(old, packed)
            old.unlink()

    def _shift(self) -> None:
        for number in range(40, 0, -1):
            for suffix in ("", ".gz"):
                old = Path(f"{self.path}.{number}{suffix}")
                if old.exists():
                    old.rename(f"{self.path}.{number + 1}{suffix}")

    def read(self) -> None:
        self.watched.idle(self.chance.choice([0, 0.01, 0.1]))

    def catch_up(self) -> None:
        self.watched.until(lambda: len(self.rows) + len(self.watched.rows) >= self.written)

    def crash(self) -> None:
        """The reader dies; life goes on for a while; it comes back."""
        state = self.watched.state
        if self.chance.random() < 0.5:
            state = self.watched.finish()
        self.rows += self.watched.rows
        self.watched.source.close()
        for _ in range(self.chance.randrange(4)):
            self.chance.choice([self.write, self.write, self.rename, self.pack])()
        state = SourceState(json.loads(json.dumps(state.facts)) if state is not None else {})
        self.watched = Watched(opened(self.path, state, follow=True))
        self.watched.state = state


@pytest.mark.parametrize("seed", range(5))
def test_no_record_is_lost_or_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(files, "ROTATION_SECONDS", 0.05)
    life = Life(tmp_path, random.Random(seed))
    life.finish_line()
    life.catch_up()
    steps = [life.write, life.write, life.read, life.rename, life.catch_up, life.crash]
    for _ in range(40):
        life.chance.choice(steps)()
        # A copy is searched for by what was read of the file: one that was made unseen is beyond it.
        if life.chance.random() < 0.15:
            for _ in range(2):
                life.finish_line()
                life.catch_up()
            life.write()
            life.copy_and_truncate()
            life.write()
            life.finish_line()
            life.catch_up()
    life.finish_line()
    life.catch_up()
    life.watched.finish()
    assert life.rows + life.watched.rows == expected(LINES[: life.written], tmp_path)
    assert life.watched.source.counters["lost_position"] == 0
