"""Several captures as one: by time, each in its own order, and no more in memory than is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from capture_bytes import SECOND, START, Packet, packets, pcap, some
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.stream.packets import capture_merge
from netclust.stream.packets.capture_files import CaptureFile, merge_captures
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock


class Given:
    """A source of packets (time, payload) in blocks of a few; the memory of a block is overwritten by the next one."""

    def __init__(self, sent: list[Packet], size: int, say_first: bool = False) -> None:
        self.sent, self.size = sent, size
        self.counters: Counter[str] = Counter()
        if say_first:
            self.first_time = lambda: sent[0].time if sent else None

    def __iter__(self) -> Iterator[PacketBlock]:
        data, index = np.zeros(4096, np.uint8), np.zeros(self.size, INDEX)
        for begin in range(0, len(self.sent), self.size):
            at = 0
            part = self.sent[begin : begin + self.size]
            for i, packet in enumerate(part):
                data[at : at + len(packet.payload)] = np.frombuffer(packet.payload, np.uint8)
                index[i] = (at, packet.time, len(packet.payload), packet.wirelen, packet.link, -1)
                at += len(packet.payload)
            self.counters["blocks"] += 1
            yield PacketBlock(data, index[: len(part)])
            data[:] = 0
            yield PacketBlock(data, index[:0])


def expected(sources: list[list[Packet]]) -> list[Packet]:
    """Sorted by the latest time so far of each source."""
    keyed = []
    for number, sent in enumerate(sources):
        latest = -1
        for position, packet in enumerate(sent):
            latest = max(latest, packet.time)
            keyed.append((latest, number, position, packet))
    return [packet for *_, packet in sorted(keyed)]


one_source = st.lists(
    st.builds(lambda time, payload: Packet(time, len(payload), 1, payload), st.integers(0, 40), st.binary(max_size=20)),
    max_size=25,
)


@given(sources=st.lists(one_source, min_size=2, max_size=5), size=st.integers(1, 7), say=st.booleans())
def test_the_merged_order_is_by_time_and_does_not_depend_on_blocks(
    sources: list[list[Packet]], size: int, say: bool
) -> None:
    merged = merge_captures([Given(sent, size + number, say) for number, sent in enumerate(sources)])
    assert packets(merged) == expected(sources)
    blocks = sum(-(-len(sent) // (size + number)) for number, sent in enumerate(sources))
    assert merged.counters["blocks"] == blocks


def test_a_merged_block_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_merge, "MERGED_PACKETS", 7)
    sources = [some(100), some(100, START * SECOND + 5)]
    merged = merge_captures([Given(sent, 40) for sent in sources])
    assert max(len(part) for part in merged) == 7
    assert packets(merged) == expected(sources)


def test_one_source_is_not_copied() -> None:
    source = Given(some(3), 2)
    assert merge_captures([source]) is source
    with pytest.raises(InputError, match="no capture is named"):
        merge_captures([])


def test_captures_that_follow_each_other_are_opened_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = some(400)
    paths = []
    for i in reversed(range(4)):
        paths.append(tmp_path / f"{i}")
        paths[-1].write_bytes(pcap(sent[i * 100 : i * 100 + 100]) + b"tail")
    running: list[int] = []
    advance = capture_merge._Ahead.advance

    def counted(ahead: capture_merge._Ahead) -> bool:
        alive = advance(ahead)
        running.append(ahead.number) if alive else running.remove(ahead.number)
        assert len(running) <= 1
        return alive

    monkeypatch.setattr(capture_merge._Ahead, "advance", counted)
    merged = merge_captures([CaptureFile(path) for path in paths])
    assert packets(merged) == sent
    assert merged.counters == {"truncated_file": 4, "skipped_bytes": 16}


def test_a_capture_that_never_ends_is_refused_among_others(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(pcap(some(2)))
    with pytest.raises(InputError, match=rf"^{path}: a capture that is followed cannot be merged"):
        merge_captures([CaptureFile(path), CaptureFile(path, follow=True)])
