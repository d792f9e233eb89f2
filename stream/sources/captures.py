"""Captures as a source: files, folders, a pipe, or a file that is still written; it goes on exactly where it stopped.

>>> import tempfile
>>> from netclust.datasets.simulators.capture_simulator import simulate_capture
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = simulate_capture(f"{folder}/c.pcap", hours=0.02, attacks="syn_flood", hosts=10)
...     source = CaptureSource("office", [folder], "flow")
...     source.open(None)
...     arrivals = list(source)
>>> sum(len(arrival.table) for arrival in arrivals) == source.counters["records"] > 100
True
>>> arrivals[-1].state.facts["finished"]
True
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from netclust.errors import InputError, ModelError
from netclust.kernels.packets.capture_index import REASONS
from netclust.records.opening import STDIN, is_packed, unreadable
from netclust.records.schema import Schema
from netclust.stream.config import SourceConfig
from netclust.stream.packets.capture_files import (
    FIRST_BYTES,
    CaptureFile,
    CapturePlace,
    first_bytes_digest,
    list_captures,
)
from netclust.stream.packets.capture_merge import merge_captures
from netclust.stream.packets.capture_walk import SECTION_BYTES
from netclust.stream.packets.flow_table import FlowTimeouts
from netclust.stream.packets.packet_blocks import PacketBlock, PacketSource
from netclust.stream.sources.base import MAX_SEQ, Arrival, Source, SourceState, next_epoch
from netclust.stream.sources.packet_flows import PacketFlows

__all__ = ["CaptureSource", "open_packet_source"]

MAX_FOLDER_ENTRIES = 100_000
"""Of a folder that is looked through for a followed file that was renamed."""

_COUNTED = (
    *REASONS, "truncated_archive", "unreadable_archive", "followed_file_replaced", "followed_file_shortened",
    "lost_position", "late_files", "unreadable_files",
)  # fmt: skip

_Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_SEQ)]


class _File(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was: `first` is the digest of its first bytes."""

    name: str
    size: _Count
    first: str


class _PipeFacts(msgspec.Struct, frozen=True):
    """Where a pipe stands, which cannot be read again."""

    seq: _Count
    packets: _Count = 0
    bytes: _Count = 0


class _Facts(msgspec.Struct, frozen=True):
    """Where it stands. `place` is that of a followed file."""

    files: list[_File]
    packets: _Count
    bytes: _Count
    seq: _Count
    finished: bool
    place: CapturePlace | None = None


class CaptureSource:
    """Connections of captures, in the order in which they end.

    A pipe cannot be read again: `replayable` is False, and what is open when it stops continues with the next one
    (after a gap no connection is open). Where a followed file is lost, record numbers continue in the next epoch.
    Counters, besides those of PacketFlows and CaptureFile: lost_position (a followed file was gone when it was to be
    read on), late_files (came into a folder later, and begin before what was read already: left out),
    unreadable_files (could no longer be opened: `trouble` says why, and the source ended there).
    """

    sheds = False

    def __init__(
        self,
        name: str,
        paths: Sequence[str | Path],
        schema: str,
        *,
        follow: bool = False,
        max_flows: int = 131_072,
        timeouts: FlowTimeouts | None = None,
        tunnels: bool = False,
    ) -> None:
        self.name = name
        self.counters: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self.trouble = ""
        self._flows = PacketFlows(schema, self.counters, max_flows=max_flows, timeouts=timeouts, tunnels=tunnels)
        self.schema: Schema = self._flows.connections.schema
        self._paths = list(paths)
        self._pipe = len(self._paths) == 1 and _is_pipe(self._paths[0])
        self.replayable = not self._pipe
        self._follow = follow or self._pipe
        self._stop = threading.Event()
        self._files: list[str | Path] = []
        self._rotated: tuple[Path, CapturePlace] | None = (
            None  # where a followed file is now, that is to be read to its end
        )
        self._described: list[_File] = []  # those that are not followed
        self._opened_at: SourceState | None = None
        self._skip = 0  # packets that were read before and are still to be passed over
        self._finished = False
        self._reading: CaptureFile | None = None  # the one that is followed

    @property
    def open_flows(self) -> int:
        """Connections that are open."""
        return self._flows.open_flows

    def open(self, state: SourceState | None) -> None:
        """Find the files, and what was read of them before."""
        self._files = list(self._paths) if self._pipe else list_captures(self._paths)
        if self._follow and len(self._files) > 1:
            raise InputError(f"only one capture can be followed, {len(self._files)} are named")
        if not self._follow:
            self._described = [_described(file) for file in self._files]
            for file in self._files:
                CaptureFile(file).first_time()  # raises if it is no capture
        if self._pipe:
            if state is not None:
                self._restore_pipe(state)
            return
        facts = self._restored(state) if state is not None else None
        if self._follow:
            self._find_place(facts)
        elif facts is not None:
            self._leave_out(facts)

    def _restore_pipe(self, state: SourceState) -> None:
        try:
            facts = msgspec.convert(state.facts, _PipeFacts)
        except msgspec.ValidationError as error:
            raise ModelError(f"{self.name}: the saved state is none of a capture: {error}") from None
        if state.arrays:
            self._flows.restore(state, facts.seq)
        else:
            self._flows.begin_at(facts.seq)
        self.counters["packets"], self.counters["bytes"] = facts.packets, facts.bytes

    def _restored(self, state: SourceState) -> _Facts:
        try:
            facts = msgspec.convert(state.facts, _Facts)
        except msgspec.ValidationError as error:
            raise ModelError(f"{self.name}: the saved state is none of a capture: {error}") from None
        self._flows.restore(state, facts.seq)
        self.counters["packets"], self.counters["bytes"] = facts.packets, facts.bytes
        self._opened_at = state
        return facts

    def _leave_out(self, facts: _Facts) -> None:
        """What was read before; new files of a folder are read if they continue what was."""
        before = {file.name: file for file in facts.files}
        for file in facts.files:
            _check_same(file)
        new = [file for file in self._described if file.name not in before]
        late = [file for file in new if (CaptureFile(file.name).first_time() or 0) < self._flows.table.now]
        self.counters["late_files"] += len(late)
        self._described = [file for file in self._described if file not in late]
        grown = any(file.size != before[file.name].size for file in self._described if file.name in before)
        self._finished = facts.finished and not grown and len(new) == len(late)
        self._skip = 0 if self._finished else facts.packets

    def _find_place(self, facts: _Facts | None) -> None:
        """A followed file is read on: in itself, in what it was renamed to, or a new one from its beginning."""
        path = Path(self._files[0])
        if facts is None:
            first = _first_bytes(path, FIRST_BYTES)
            if is_packed(first):
                raise InputError(f"{path}: packed, and only plain captures can be followed: unpack it first")
            if len(first) >= SECTION_BYTES:
                CaptureFile(path).first_time()  # raises if it is no capture; one that just began may be shorter
        elif facts.place is not None:
            if _is_place(path, facts.place):
                self._skip = facts.place.packets
            elif renamed := _renamed(path, facts.place):
                self._rotated, self._skip = (renamed, facts.place), facts.place.packets
            else:
                self.counters["lost_position"] += 1
                # Records of its rest may have been given: their numbers are not given again.
                self._flows.begin_at(next_epoch(facts.seq))

    def __iter__(self) -> Iterator[Arrival]:
        """Arrivals; at the end of the files all connections are over, after `stop` they stay open in the state."""
        try:
            for block in () if self._finished else self._blocks():
                self._flows.feed(block)
                if self._flows.due():
                    yield from self._flows.arrivals(self._state)
                if self._stop.is_set():
                    break
            if not self._stop.is_set() and not self._finished:
                self._flows.finish()
                self._finished = True
        except InputError as error:  # it was there when the source was opened
            self.trouble = str(error)
            self.counters["unreadable_files"] += 1
        yield from self._flows.arrivals(self._state, final=True)

    def _blocks(self) -> Iterator[PacketBlock]:
        """What was not read before; an empty block for every one that was."""
        past: Counter[str] = Counter()
        for capture in self._captures():
            for block in capture:
                known = min(self._skip, len(block))
                self._skip -= known
                self._count(past, capture)
                yield PacketBlock(block.data, block.index[known:], -1 if self._skip else block.now)
            self._count(past, capture)
            past += capture.counters
            self._skip = 0  # where fewer were left than were read, the rest is not taken from another file

    def _captures(self) -> Iterator[PacketSource]:
        """What is read one after the other."""
        if self._rotated is not None:
            self._reading = CaptureFile(self._rotated[0])
            yield self._reading
            self._rotated = None
        if self._follow:
            self._reading = CaptureFile(self._files[0], follow=True, ticks=True, stop=self._stop)
            yield self._reading
        else:
            yield merge_captures([CaptureFile(file.name) for file in self._described])

    def _count(self, past: Counter[str], capture: PacketSource) -> None:
        for name, count in capture.counters.items():
            self.counters[name] = past[name] + count

    def _state(self) -> SourceState:
        if self._skip and self._opened_at is not None:
            return self._opened_at  # it has not come further yet
        place = None
        if self._rotated is not None:
            place = self._rotated[1]._replace(packets=self._reading.packets if self._reading else 0)
        elif self._follow and self._reading is not None:
            place = self._reading.place()
        seen, packets, size = self._flows.connections.seen, self.counters["packets"], self.counters["bytes"]
        facts = _Facts(self._described, packets, size, seen, self._finished, place)
        return SourceState(msgspec.to_builtins(facts), self._flows.state())

    def want_state(self) -> None:
        """Give the state with the next arrival. From any thread."""
        self._flows.want_state()

    def stop(self) -> None:
        """Give what has been read, then end. From any thread."""
        self._stop.set()

    def close(self) -> None:
        """Nothing is held open between arrivals but what the iteration closes."""


def open_packet_source(config: SourceConfig, schema: Schema) -> Source:
    """The source that a configuration names (kind `capture` or `live`), for records of a schema; not opened yet."""
    source: Source
    if config.kind == "live":
        from netclust.stream.sources.live import LiveSource

        source = LiveSource(
            config.name, config.interfaces, schema.name,
            bpf=config.bpf, promiscuous=config.promiscuous, max_flows=config.max_flows,
        )  # fmt: skip
    elif config.kind == "capture":
        if not config.path:
            raise InputError(f"source {config.name!r}: needs a path: a capture, a folder of captures, or -")
        source = CaptureSource(
            config.name, [config.path], schema.name, follow=config.follow, max_flows=config.max_flows
        )
    else:
        raise InputError(f"source {config.name!r}: {config.kind} does not give packets")
    if source.schema != schema:
        raise InputError(
            f"source {config.name!r}: the model's schema {schema.name!r} is not the one that captures become: "
            "train it anew, or take a shipped model"
        )
    return source


def _is_pipe(path: str | Path) -> bool:
    return str(path) == STDIN or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def _first_bytes(path: str | Path, count: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(min(count, FIRST_BYTES))
    except OSError as error:
        raise unreadable(path, error) from None


def _described(path: str | Path) -> _File:
    first = _first_bytes(path, FIRST_BYTES)
    size = os.path.getsize(path)
    return _File(str(path), size, first_bytes_digest(first[:size]))


def _check_same(file: _File) -> None:
    """Raises InputError if a file is not the one that was read, or has become shorter; it may have grown."""
    if not os.path.exists(file.name):
        raise InputError(f"{file.name}: was read in part and is gone: put it back, or start without the saved state")
    first = _first_bytes(file.name, file.size)
    if os.path.getsize(file.name) < file.size or first_bytes_digest(first) != file.first:
        raise InputError(
            f"{file.name}: is another file than the one that was read in part: "
            "put that back, or start without the saved state"
        )


def _is_place(path: str | Path, place: CapturePlace) -> bool:
    """Whether this is the file that was being read."""
    try:
        found = os.stat(path)
        same = (found.st_dev, found.st_ino) == (place.device, place.inode) and found.st_size >= place.bytes
        return same and first_bytes_digest(_first_bytes(path, place.bytes)) == place.first
    except (OSError, InputError):
        return False


def _renamed(path: Path, place: CapturePlace) -> Path | None:
    """What the file that was being read is called now, if it is still in its folder."""
    with contextlib.suppress(OSError), os.scandir(path.resolve().parent) as entries:
        for _, entry in zip(range(MAX_FOLDER_ENTRIES), entries, strict=False):
            if entry.inode() == place.inode and _is_place(entry.path, place):
                return Path(entry.path)
    return None
