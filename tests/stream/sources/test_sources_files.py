"""Records from files: every one once and in order, through rotation, truncation, half lines and restarts."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from text_sources import LINES, Watched, expected, opened, read_all, rows, text_source

from netclust.errors import InputError, ModelError
from netclust.records.schema import load_schema
from netclust.stream.sources.base import SourceState

HEADER = ",".join(a.name for a in load_schema("kdd").attributes) + "\n"


def append(path: Path, lines: list[str]) -> None:
    with path.open("a") as file:
        file.write("".join(lines))


def through_json(state: SourceState | None) -> SourceState:
    """As a checkpoint keeps it."""
    assert state is not None
    return SourceState(json.loads(json.dumps(state.facts)), dict(state.arrays))


def test_a_file_is_read_to_its_end_once(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(LINES).removesuffix("\n"))  # the last line lacks its end
    source = opened(path)
    arrivals = list(source)
    assert [len(a.table) for a in arrivals] == [2999, 1, 0]
    assert arrivals[-1].state is not None
    assert arrivals[-1].state.facts["seq"] == source.counters["records"] == 3000
    assert (source.replayable, source.sheds) == (True, False)
    source.close()


def test_no_batch_is_larger_than_agreed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(LINES * 7))
    source = opened(path)
    sizes = [len(arrival.table) for arrival in source]
    assert (max(sizes), sum(sizes)) == (8192, 21_000)
    source.close()


def test_a_half_written_record_is_not_read_before_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    append(path, [*LINES[:2], LINES[2][:30]])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(2)
    watched.idle(0.3)
    assert len(watched.rows) == 2
    append(path, [LINES[2][30:-1]])  # whole, but for its line end
    watched.idle(0.3)
    assert len(watched.rows) == 2
    append(path, ["\n"])
    watched.until_rows(3)
    watched.finish()
    assert watched.rows == expected(LINES[:3], tmp_path)


def test_a_quiet_file_still_ticks(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    source = opened(path, follow=True)
    given = iter(source)
    first = next(given)
    times = [first.received, *(next(given).received for _ in range(4))]
    assert len(first.table) == 0
    assert all(b - a < 2 for a, b in pairwise(times))
    source.stop()
    assert [len(a.table) for a in given] == [0]
    source.close()


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "later.txt"
    watched = Watched(opened(path, follow=True))
    watched.idle(0.2)
    append(path, LINES[:5])
    watched.until_rows(5)
    watched.finish()


@pytest.mark.parametrize("header", [[], [HEADER]], ids=["plain", "header"])
def test_rotation_by_rename_loses_no_record(tmp_path: Path, header: list[str]) -> None:
    path = tmp_path / "conn.log"
    append(path, [*header, *LINES[:10]])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    for k in range(1, 4):
        with path.open("a") as writer:
            path.rename(tmp_path / f"conn.log.{k}")
            if k == 2:
                path.touch()  # before the writer is told, which takes some time
            watched.idle(0.8 if k == 2 else 0.05)
            writer.write("".join(LINES[20 * k - 10 : 20 * k]))  # by a writer that has not noticed
        append(path, [*header, *LINES[20 * k : 20 * k + 10]])
        watched.until_rows(20 * k + 10)
    watched.finish()
    assert watched.rows == expected(LINES[:70], tmp_path)
    assert watched.source.counters["rotated"] == 3


def test_copytruncate_loses_no_record(tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    append(path, LINES[:10])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    append(path, LINES[10:15])
    shutil.copy(path, tmp_path / "conn.log.1")  # before the five were read
    os.truncate(path, 0)
    append(path, LINES[15:40])  # longer than it was
    watched.until_rows(40)
    watched.finish()
    assert watched.rows == expected(LINES[:40], tmp_path)
    assert watched.source.counters["truncated"] == 1


def test_truncation_without_a_copy_does_not_stop_the_source(tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    append(path, [*LINES[:10], LINES[10][:20]])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    os.truncate(path, 0)
    watched.idle(0.1)
    append(path, LINES[20:25])
    watched.until_rows(15)
    watched.finish()
    assert watched.rows == expected(LINES[:10] + LINES[20:25], tmp_path)
    assert watched.source.counters["half_line"] == 1


def cut_and_resume(path: Path, cut: int, **settings: Any) -> list[Any]:
    """Stop after some arrivals, as a crash does; go on in a new source."""
    first = opened(path, **settings)
    first.feed._max_lines = 100  # type: ignore[attr-defined]
    given: list[Any] = []
    state = None
    for k, arrival in enumerate(first):
        if k == cut:
            break
        given += rows(arrival.table)
        state = arrival.state
    first.close()
    return given + read_all(opened(path, through_json(state) if state else None, **settings))


ARFF = "@relation kdd\n" + "".join(f"@attribute {a.name} numeric\n" for a in load_schema("kdd").attributes) + "@data\n"


@pytest.mark.parametrize("form", ["plain", "header", "arff", "gz", "xz"])
def test_resuming_at_any_line_equals_an_uninterrupted_run(tmp_path: Path, form: str) -> None:
    lines = LINES[:1010]
    lines[500] = "garbage\n"
    lines[505] = "\n"
    text = {"header": HEADER, "arff": ARFF}.get(form, "") + "".join(lines)
    path = tmp_path / "records"
    pack = {"gz": gzip.compress, "xz": lzma.compress}.get(form, bytes)
    path.write_bytes(pack(text.encode()))
    whole = read_all(opened(path))
    assert [row[0] for row in whole] == list(range(1008))
    for cut in range(13):
        assert cut_and_resume(path, cut) == whole, cut


def test_resuming_keeps_the_line_number(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    append(path, [HEADER, *LINES[:10]])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    state = through_json(watched.finish())
    append(path, ["garbage\n"])
    source = opened(path, state)
    assert read_all(source) == []
    assert source.first_skipped == [f"{path} line 12: 1 columns, schema kdd has 43"]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_what_was_rotated_while_we_were_down_is_read(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "conn.log"
    append(path, [HEADER, *LINES[:10]])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    state = through_json(watched.finish())
    append(path, LINES[10:20])
    second = 1_700_000_000
    for k, until in ((2, 30), (1, 40)):  # rotated twice
        os.utime(path, (second, second - k))
        old = tmp_path / f"conn.log.{k}"
        path.rename(old)
        if packed:
            (tmp_path / f"conn.log.{k}.gz").write_bytes(gzip.compress(old.read_bytes()))
            shutil.copystat(old, tmp_path / f"conn.log.{k}.gz")
            old.unlink()
        append(path, [HEADER, *LINES[until - 10 : until]])
    again = Watched(opened(path, state, follow=True))
    again.until_rows(30)
    again.finish()
    assert watched.rows + again.rows == expected(LINES[:40], tmp_path)
    assert again.source.counters["lost_position"] == 0


def test_a_state_without_its_file_is_counted_and_no_error(tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    append(path, LINES[:10])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    state = through_json(watched.finish())
    path.unlink()
    append(path, LINES[100:130])
    again = Watched(opened(path, state, follow=True))
    again.until_rows(30)
    again.finish()
    assert again.source.counters["lost_position"] == 1
    # Records behind the last state may have been given: their numbers do not come again.
    assert [row[0] for row in again.rows] == list(range(1 << 32, (1 << 32) + 30))


def test_copytruncate_while_we_were_down_loses_no_record(tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    append(path, LINES[:10])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(10)
    state = through_json(watched.finish())
    append(path, LINES[10:20])
    shutil.copy(path, tmp_path / "conn.log-20260102")
    os.truncate(path, 0)
    append(path, LINES[20:50])
    again = Watched(opened(path, state, follow=True))
    again.until_rows(40)
    again.finish()
    assert watched.rows + again.rows == expected(LINES[:50], tmp_path)


def test_a_single_record_takes_less_than_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    watched = Watched(opened(path, follow=True))
    watched.idle(0.3)
    append(path, LINES[:1])
    written = time.monotonic()
    watched.until_rows(1)
    assert time.monotonic() - written < 2
    watched.finish()


def test_a_long_line_does_not_stop_a_file_or_shift_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(LINES[0] + "x" * (3 << 20) + "\n" + LINES[1] + "bad\n" + LINES[2])
    source = opened(path)
    assert read_all(source) == expected(LINES[:3], tmp_path)
    assert source.counters["long_line"] == 1
    assert source.first_skipped == [f"{path} line 4: 1 columns, schema kdd has 41 to 43"]


@pytest.mark.parametrize("follow", [False, True])
def test_an_error_at_opening_says_what_to_do(tmp_path: Path, follow: bool) -> None:
    if not follow:
        with pytest.raises(InputError, match=r"nowhere: no such file: give another, or follow = true"):
            opened(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a folder: name a file in it"):
        opened(tmp_path, follow=follow)
    path = tmp_path / "bad.csv"
    path.write_text(HEADER.replace("duration,", "") + "".join(LINES[:3]))
    with pytest.raises(InputError, match=r"bad.csv header: no column duration"):
        opened(path, follow=follow)
    with pytest.raises(InputError, match="no path"):
        text_source("")


def test_following_a_packed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(InputError, match="is packed, which cannot be followed"):
        opened(path, follow=True)


def test_a_bad_header_after_rotation_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    append(path, [HEADER, *LINES[:3]])
    watched = Watched(opened(path, follow=True))
    watched.until_rows(3)
    path.rename(tmp_path / "a.csv.1")
    append(path, [HEADER.replace("duration,", ""), *LINES[3:6]])
    watched.until(lambda: watched.source.counters["bad_header"] >= 1)
    append(path, LINES[6:8])
    watched.until(lambda: watched.source.counters["bad_header"] == 3)
    path.rename(tmp_path / "a.csv.2")
    append(path, [HEADER, *LINES[8:9]])
    watched.until_rows(4)
    watched.finish()
    assert len(watched.rows) == 4


def test_a_state_of_another_file_or_of_nonsense_is_not_used(tmp_path: Path) -> None:
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("".join(LINES[:5]))
    other.write_text("".join(LINES[:9]))
    watched = Watched(opened(path))
    watched.until_rows(5)
    assert [row[0] for row in read_all(opened(other, watched.finish()))] == list(range(5, 14))
    for facts in ({"seq": "x"}, {"seq": 1, "offset": None}, {"seq": 1, "header": 5}):
        with pytest.raises(ModelError, match="the state says what is never written"):
            opened(path, SourceState(facts))
