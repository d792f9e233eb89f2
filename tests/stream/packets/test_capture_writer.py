"""Written captures: what is read back is what was given, here and by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from capture_bytes import SECOND, START, Packet, packets, pcap, pcapng, read_pcap, read_pcapng, some
from hypothesis import given
from hypothesis import strategies as st
from needed import need_module

from netclust.errors import InputError
from netclust.stream.packets import capture_writer
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.capture_writer import CaptureWriter, write_capture

FORMATS: list[Any] = ["pcap", "pcapng"]


def save(folder: Path, content: bytes) -> Path:
    path = folder / "given"
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("writer")


@given(
    sent=st.lists(
        st.builds(
            lambda time, more, link, payload: Packet(time, len(payload) + more, link, payload),
            st.integers(0, 2**32 * SECOND - 1),
            st.integers(0, 2000),
            st.sampled_from([1, 101, 276]),
            st.binary(min_size=1, max_size=90),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_a_written_packet_is_read_back(anywhere: Path, sent: list[Packet]) -> None:
    given_file = save(anywhere, pcapng(sent))
    out = anywhere / "out"
    assert write_capture(out, CaptureFile(given_file), format="pcapng") == len(sent)
    assert packets(CaptureFile(out)) == sent == list(read_pcapng(out.read_bytes()))
    same_link = [packet._replace(link=113) for packet in sent]
    save(anywhere, pcapng(same_link))
    write_capture(out, CaptureFile(given_file))
    assert list(read_pcap(out.read_bytes())) == same_link


@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("form", FORMATS)
def test_resolution_and_snap_length_are_kept(tmp_path: Path, form: Any, nano: bool) -> None:
    sent = some(50, START * SECOND + 123_456_789)
    out = tmp_path / "out"
    write_capture(out, CaptureFile(save(tmp_path, pcapng(sent))), format=form, nano=nano, snaplen=30)
    unit = 1 if nano else 1000
    assert packets(CaptureFile(out)) == [p._replace(time=p.time // unit * unit, payload=p.payload[:30]) for p in sent]


@pytest.mark.parametrize("form", FORMATS)
def test_a_block_larger_than_the_buffer_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Any
) -> None:
    sent = some(5000)
    monkeypatch.setattr(capture_writer, "_BUFFER_BYTES", 1000)
    write_capture(tmp_path / "out", CaptureFile(save(tmp_path, pcap(sent))), format=form, snaplen=900)
    assert packets(CaptureFile(tmp_path / "out")) == sent


def test_real_captures_do_not_change_when_they_are_rewritten(data_folder: Path, tmp_path: Path) -> None:
    path = data_folder / "pcap" / "attack" / "stopddos_amp.UDP.snmp.src161.pcapng"
    before = packets(CaptureFile(path))
    for form in FORMATS:
        write_capture(tmp_path / form, CaptureFile(path), format=form)
        assert packets(CaptureFile(tmp_path / form)) == before


@pytest.mark.peers
@pytest.mark.parametrize("form", FORMATS)
def test_others_can_read_what_is_written(tmp_path: Path, form: Any) -> None:
    utils = need_module("scapy.utils")
    sent = some(40)
    write_capture(tmp_path / "out", CaptureFile(save(tmp_path, pcap(sent))), format=form)
    with utils.RawPcapReader(str(tmp_path / "out")) as reader:
        assert [payload for payload, _ in reader] == [packet.payload for packet in sent]


@pytest.mark.parametrize("form", FORMATS)
def test_a_capture_without_packets_is_readable(tmp_path: Path, form: Any) -> None:
    assert write_capture(tmp_path / "out", [], format=form) == 0
    assert packets(CaptureFile(tmp_path / "out")) == []


def test_what_a_capture_cannot_hold_is_refused(tmp_path: Path) -> None:
    two_links = [Packet(1, 1, 1, b"a"), Packet(2, 1, 101, b"b")]
    with pytest.raises(InputError, match="link types 1 and 101 in one file: write pcapng"):
        write_capture(tmp_path / "out", CaptureFile(save(tmp_path, pcapng(two_links))))
    for moved in (-2, 2**32 * SECOND):
        with pytest.raises(InputError, match="before 1970 or after 2106"):
            write_capture(tmp_path / "out", CaptureFile(save(tmp_path, pcapng(two_links)), offset_ns=moved))
    with pytest.raises(InputError, match="a snap length of 0"):
        CaptureWriter(tmp_path / "out", snaplen=0)
    with pytest.raises(InputError, match="Is a directory"):
        CaptureWriter(tmp_path)


def test_what_was_flushed_can_be_read(tmp_path: Path) -> None:
    sent = some(10)
    with CaptureWriter(tmp_path / "out") as writer:
        for part in CaptureFile(save(tmp_path, pcap(sent))):
            writer.write(part)
        writer.flush()
        assert packets(CaptureFile(tmp_path / "out")) == sent
    writer.close()
    assert writer.packets == 10
