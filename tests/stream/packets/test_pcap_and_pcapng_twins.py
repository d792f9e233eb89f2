"""The same packets give the same records, in whatever form, packing or order of files they come."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zstandard
from packet_paths import names_of_captures, whole

from netclust.kernels.packets.flow_layout import RECORD
from netclust.records.table import Table
from netclust.stream.packets.capture_files import open_captures
from netclust.stream.packets.capture_writer import write_capture
from netclust.stream.packets.connections import SCHEMAS, connection_maker
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.packets.packet_blocks import PacketBlock

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": zstandard.compress,
}
FORMS = {
    "pcap, nanoseconds": ("pcap", True),
    "pcap, microseconds": ("pcap", False),
    "pcapng, nanoseconds": ("pcapng", True),
    "pcapng, microseconds": ("pcapng", False),
}


def records_of(*paths: Path) -> tuple[Table, ...]:
    """As both schemas have them, context and all."""
    table = FlowTable()
    ended = [table.feed(block) for block in open_captures(paths)]
    records = np.concatenate([np.empty(0, RECORD), *ended, table.finish()])
    return tuple(connection_maker(schema).table(records) for schema in SCHEMAS)


def assert_same(these: tuple[Table, ...], those: tuple[Table, ...]) -> None:
    for a, b in zip(these, those, strict=True):
        assert len(a) == len(b) > 0
        for name in ("num", "sym", "time", "seq", "key", "label"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), (a.schema.name, name)
        assert a.symbols == b.symbols
        assert a.context.keys() == b.context.keys()
        for name, column in a.context.items():
            assert column.tolist() == b.context[name].tolist(), (a.schema.name, name)


@cache
def plain(path: Path) -> tuple[Table, ...]:
    return records_of(path)


def in_microseconds(block: PacketBlock) -> bool:
    return not (block.index["time"] % 1000).any()


def test_the_same_scan_as_pcap_and_as_pcapng_gives_the_same_records(data_folder: Path) -> None:
    folder = data_folder / "pcap" / "attack"
    assert_same(plain(folder / "ndpi_synscan.pcap"), plain(folder / "chrissanders_synscan.pcapng"))


def test_a_capture_that_is_written_again_gives_the_same_records(data_folder: Path, tmp_path: Path) -> None:
    for number, name in enumerate(names_of_captures(data_folder)):
        path = data_folder / "pcap" / name
        block = whole(path)
        assert in_microseconds(block), "else a form of microseconds could not hold it"
        # Each capture in one form, all forms by turns; the next test has one capture in every form.
        kind, nano = list(FORMS.values())[number % len(FORMS)]
        write_capture(tmp_path / "again", [block], format=kind, nano=nano)
        assert_same(records_of(tmp_path / "again"), plain(path))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packing", PACK)
def test_form_and_packing_do_not_change_the_records(data_folder: Path, tmp_path: Path, form: str, packing: str) -> None:
    path = data_folder / "pcap" / "benign" / "ndpi_skype.pcap"
    kind, nano = FORMS[form]
    write_capture(tmp_path / "again", [whole(path)], format=kind, nano=nano)
    (tmp_path / "packed").write_bytes(PACK[packing]((tmp_path / "again").read_bytes()))
    assert_same(records_of(tmp_path / "packed"), plain(path))


def test_two_halves_as_two_files_give_the_same_records(data_folder: Path, tmp_path: Path) -> None:
    compared = 0
    for name in names_of_captures(data_folder):
        path = data_folder / "pcap" / name
        block = whole(path)
        times = block.index["time"]
        if (np.diff(times) < 0).any():
            continue  # files are merged by time: where it goes back, halves are not the whole
        middle = int(np.searchsorted(times, times[len(times) // 2]))  # no moment is in both
        halves = tmp_path / "first", tmp_path / "second"
        for half, part in zip(halves, (block.index[:middle], block.index[middle:]), strict=True):
            write_capture(half, [PacketBlock(block.data, part)], format="pcapng")
        assert_same(records_of(*halves), plain(path))
        assert_same(records_of(*halves[::-1]), plain(path))
        compared += 1
    assert compared >= 20
