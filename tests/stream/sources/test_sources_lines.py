"""Whole lines out of bytes: cut anywhere, of any length, in little memory."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_sources import LINES, Watched, expected, opened

from netclust.stream.sources import lines as lines_module
from netclust.stream.sources.lines import TAIL_BYTES, LineCutter, Lines

LONGEST = 20


@given(st.lists(st.binary(max_size=60)), st.integers(1, 5))
def test_cuts_do_not_change_what_the_lines_are(chunks: list[bytes], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "MAX_LINE_BYTES", LONGEST)
        cutter = LineCutter()
        taken: list[Lines] = []
        for chunk in chunks:
            cutter.push(chunk)
            while (part := cutter.take(most)) is not None:
                taken.append(part)
        rest = cutter.rest()
    content = b"".join(chunks)
    *whole, last = content.split(b"\n")
    assert b"".join(part.data for part in taken) == b"".join(x + b"\n" for x in whole if len(x) <= LONGEST)
    assert sum(part.consumed for part in taken) == len(content) - len(last)
    assert sum(part.count for part in taken) == len(whole)
    assert all(0 < part.count <= most for part in taken)
    if len(last) <= LONGEST:
        assert (rest.data if rest is not None else b"") == last
    assert cutter.long_lines == sum(len(x) > LONGEST for x in [*whole, last])


@given(st.lists(st.binary(max_size=2 * TAIL_BYTES), max_size=5), st.integers(1, 5))
def test_what_stands_before_a_position_is_noted(chunks: list[bytes], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "MAX_LINE_BYTES", 3 * TAIL_BYTES)
        cutter = LineCutter()
        content, tail, position = b"", b"", 0
        for chunk in chunks:
            content += chunk
            cutter.push(chunk)
            while (part := cutter.take(most)) is not None:
                position += part.consumed
                tail = (tail + part.tail)[-TAIL_BYTES:]
                assert tail == content[:position][-TAIL_BYTES:]


def send_long_line(pipe: Path, megabytes: int) -> None:
    block = b"x" * (1 << 20)
    with pipe.open("wb") as writer:
        writer.write(LINES[0].encode())
        for _ in range(megabytes):
            writer.write(block)
        writer.write(b"\n" + LINES[1].encode())


@pytest.mark.parametrize("megabytes", [64, pytest.param(1024, marks=pytest.mark.long)])
def test_a_one_gigabyte_line_is_not_held_in_memory(tmp_path: Path, megabytes: int) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    watched = Watched(opened(pipe))
    writer = threading.Thread(target=send_long_line, args=(pipe, megabytes))
    writer.start()
    watched.until_rows(1)
    tracemalloc.start()
    try:
        watched.until_rows(2)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    writer.join()
    watched.finish()
    assert most < 16 << 20
    assert watched.rows == expected(LINES[:2], tmp_path)
    assert watched.source.counters["long_line"] == 1
    assert (watched.source.replayable, watched.source.sheds) == (False, False)


def test_many_short_writes_take_linear_time() -> None:
    cutter = LineCutter()
    for _ in range(200_000):
        cutter.push(b"x")
    cutter.push(b"\n")
    taken = cutter.take(1)
    assert taken is not None
    assert len(taken.data) == 200_001
