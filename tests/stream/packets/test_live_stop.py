"""A live capture that is stopped: what had come is given, however little of a block it fills."""

from __future__ import annotations

import pytest
from namespaces import Link, inside, joined_or_skip

from netclust.stream.packets.live import LiveCapture

link = pytest.fixture(joined_or_skip)


def test_the_last_packets_before_a_stop_are_kept(link: Link) -> None:
    """The Linux kernel hands a block over when it is full or some time old: what lies in it has been received."""
    protocols: list[int] = []
    sent = False
    with inside(link.b, lambda: LiveCapture(["vb"])) as capture:
        for block in capture:
            protocols += [int(block.data[entry["offset"] + 23]) for entry in block.index if entry["caplen"] > 23]
            if not sent:
                link.send(100)
                capture.stop()
                sent = True
    assert protocols.count(17) == 101  # with the one that says that they were the last
