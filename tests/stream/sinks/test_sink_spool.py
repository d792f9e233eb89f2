"""The spool on disk, without a runner: going back to checkpoints, damage, and any order of calls."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import sink_events as make
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.spool import Spool


def opened(folder: Path, facts: dict[str, int] | None = None, *, cut_back: bool = False, size: int = 1 << 16) -> Spool:
    spool = Spool(folder, size, cut_back=cut_back)
    spool.open(facts)
    return spool


def drained(spool: Spool) -> list[str]:
    got = []
    while (waiting := spool.read(7)).events:
        got += [event.key for event in waiting.events]
        spool.advance(waiting)
    return got


def keys(first: int, end: int) -> list[str]:
    return [event.key for event in make.alert_events(end - first, first)]


def test_an_older_checkpoint_still_finds_what_was_read_since(tmp_path: Path) -> None:
    spool = opened(tmp_path, cut_back=True)
    for i in range(0, 100, 10):
        spool.append(make.alert_events(10, i))
    older = spool.position()
    spool.mark(older["read"])
    assert drained(spool) == keys(0, 100)
    newer = spool.position()
    spool.mark(newer["read"])
    spool.append(make.alert_events(5, 100))  # comes again after the restart
    spool.close()
    spool = opened(tmp_path, newer, cut_back=True)
    assert spool.pending == 0
    spool.close()
    spool = opened(tmp_path, older, cut_back=True)
    spool.append(make.alert_events(5, 100))
    assert drained(spool) == keys(0, 105)
    for _ in range(4):
        spool.mark(spool.position()["read"])
    assert spool.bytes == 0
    spool.close()


def test_without_a_checkpoint_nothing_is_read_twice_after_a_clean_stop(tmp_path: Path) -> None:
    spool = opened(tmp_path, cut_back=True)
    spool.append(make.alert_events(10))
    spool.advance(spool.read(4))
    spool.close()
    assert drained(opened(tmp_path, cut_back=True)) == keys(4, 10)


def test_a_damaged_spool_gives_no_event_that_was_not_put_in(tmp_path: Path) -> None:
    chance = random.Random(3)
    for _ in range(30):
        for file in tmp_path.iterdir():
            file.unlink()
        spool = opened(tmp_path)
        for i in range(0, 60, 20):
            spool.append(make.alert_events(20, i))
        spool.close()
        for file in tmp_path.glob("*.spool"):
            data = bytearray(file.read_bytes())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            file.write_bytes(data)
        (tmp_path / "cursor.json").write_bytes(chance.randbytes(9))
        spool = opened(tmp_path)
        got = drained(spool)
        assert got == sorted(set(got) & set(keys(0, 60)))
        assert len(got) < 60
        spool.close()


@given(steps=st.lists(st.integers(-9, 9), max_size=40), facts=st.booleans())
@settings(max_examples=40)
def test_restarts_lose_nothing_and_keep_the_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], facts: bool
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool = opened(folder, size=1 << 20)
    put: list[Event] = []
    got: list[str] = []
    for step in steps:
        if step > 0:
            new = make.alert_events(step, len(put))
            put += new
            spool.append(new)
        elif step < 0:
            waiting = spool.read(-step)
            got += [e.key for e in waiting.events]
            spool.advance(waiting)
        else:
            position = spool.position()
            spool.close()
            spool = opened(folder, position if facts else None, size=1 << 20)
    got += drained(spool)
    spool.close()
    assert got == [e.key for e in put]


def test_a_file_in_the_place_of_the_spool_is_named(tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    with pytest.raises(InputError, match="must be a writable folder"):
        opened(tmp_path / "spool")
