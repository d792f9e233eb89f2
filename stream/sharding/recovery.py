"""The folder in which the state of the shards is kept: Bytewax's recovery store, and what must not change.

Bytewax unpickles what it finds in its store, so whoever can write there can run code: the folder is for its owner
alone, and is refused if it is not.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import IO

import msgspec

from netclust.errors import InputError
from netclust.foundation import container
from netclust.foundation.optional import require_optional
from netclust.stream.bus.factory import open_writer, parse_bus_url
from netclust.stream.config import Config, ShardingConfig
from netclust.stream.daemon.build import state_dir

__all__ = [
    "CAMPAIGNS_STEP", "FLOW", "INPUT_STEP", "SHARDS_STEP", "check_recovery", "find_recovery", "lock_recovery",
    "prepare_recovery", "recovery_dir", "refuse_used_topics",
]  # fmt: skip

MAX_STORES = 16
"""Files of the recovery store: each is written by one worker at a time."""
FLOW, INPUT_STEP, SHARDS_STEP, CAMPAIGNS_STEP = "netclust", "lanes", "shards", "campaigns"
"""The dataflow and those of its steps that have state, which is kept under these names: they cannot change."""
_FACTS, _STORE = "cluster.json", "bytewax"


class _Facts(msgspec.Struct, forbid_unknown_fields=True):
    """What the state depends on."""

    format: int
    partitions: int
    input: str


def recovery_dir(config: Config, sharding: ShardingConfig) -> Path:
    """Where it is, whether it exists or not."""
    return Path(sharding.recovery) if sharding.recovery else state_dir(config) / "cluster"


def prepare_recovery(folder: Path, sharding: ShardingConfig) -> Path:
    """Make the folder, or see that it is safe and fits; where the store is. Several may do so at once."""
    bytewax = require_optional("bytewax.recovery", "netclust shards", "cluster")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _refuse_shared(folder)
        store = folder / _STORE
        if not store.exists():
            # Made aside and moved in one step: another process may be at it, or this one may be killed.
            aside = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
            try:
                bytewax.init_db_dir(aside, min(sharding.partitions, MAX_STORES))
                facts = _Facts(1, sharding.partitions, _without_options(sharding.input))
                (aside / _FACTS).write_bytes(msgspec.json.encode(facts))
                os.rename(aside, store)
            except OSError:
                if not store.exists():
                    raise
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        _refuse_shared(store)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from None
    _check(store / _FACTS, sharding)
    return store


def find_recovery(folder: Path, sharding: ShardingConfig) -> Path | None:
    """Return where the store is, if there is one; nothing is made."""
    store = folder / _STORE
    try:
        if not store.exists():
            return None
    except OSError as error:
        raise InputError(f"{store}: {error.strerror}") from None
    _check(store / _FACTS, sharding)
    return store


def check_recovery(folder: Path, sharding: ShardingConfig) -> bool:
    """Return whether there is a state; InputError if it does not fit. Nothing is made."""
    store = find_recovery(folder, sharding)
    if store is not None:
        _refuse_shared(folder)
        _refuse_shared(store)
    return store is not None


def refuse_used_topics(folder: Path, sharding: ShardingConfig) -> None:
    """A new state counts its messages from 1, and what a topic has the numbers of already would be left out. BusError.

    That is what it should do after a crash, but with a lost or another recovery folder no alert would be written until
    there are as many as before.
    """
    if (folder / _STORE).exists():
        return
    for url in filter(None, (sharding.verdicts, sharding.events)):
        writer = open_writer(url, sharding.partitions)
        try:
            writer.open()
            used = any(writer.last(partition) for partition in range(sharding.partitions))
        finally:
            writer.close()
        if used:
            raise InputError(
                f"{parse_bus_url(url)} has messages of an earlier state, and {folder} has none: all that is not above "
                "their numbers would be left out; bring that folder back, or give other topics, or empty these"
            )


def _check(path: Path, sharding: ShardingConfig) -> None:
    try:
        facts = msgspec.json.decode(container.read_container_bytes(path, 1 << 16), type=_Facts)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: {error}") from None
    if facts.partitions != sharding.partitions:
        raise InputError(
            f"{path.parent} holds the state of {facts.partitions} partitions, the configuration has "
            f"{sharding.partitions}: the number cannot change; "
            "to begin anew, give another [sharding] recovery and topics"
        )
    if facts.input != _without_options(sharding.input):
        raise InputError(
            f"{path.parent} holds positions in {facts.input}, the configuration reads "
            f"{_without_options(sharding.input)}: to begin anew, give another [sharding] recovery and topics"
        )


def _without_options(url: str) -> str:
    return url.partition("?")[0]


def _refuse_shared(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid not in (os.getuid(), 0) or stat.S_IMODE(found.st_mode) & 0o022:
        raise InputError(f"{folder}: others can write there, and what is there is run: chmod 700 {folder}")


def lock_recovery(folder: Path, *, shared: bool = False) -> IO[bytes]:
    """Hold the folder: two engines on one state would spoil it. It is free once the file and all copies are closed.

    `shared`: processes of one engine that no supervisor holds together.
    """
    file = (folder / "lock").open("ab")
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(f"{folder}: in use by another `netclust shards run`") from None
    return file
