"""`netclust cluster`: run the distributed engine, and tell its shards what people say."""

from __future__ import annotations

import getpass
import re
import secrets
from pathlib import Path

from netclust.cli.output import result, say, write_json
from netclust.errors import InputError
from netclust.stream.bus.base import BusError, Outgoing
from netclust.stream.bus.factory import open_writer
from netclust.stream.bus.record_messages import LabelMessage, RecordPlace, pack_label
from netclust.stream.cluster.worker import check_cluster, run_worker
from netclust.stream.daemon.config import load_config

__all__ = ["check", "label", "run"]


def run(
    config: Path, workers: int, process: int | None, addresses: str, *, until_idle: float | None, parent: int | None
) -> int:
    """All workers of this machine, or one process of a cluster."""
    if process is not None:
        given = [address.strip() for address in addresses.split(";") if address.strip()]
        for address in given:
            if not re.fullmatch(r"[^\s:]+:[0-9]{1,5}", address):
                raise InputError(f"--addresses: {address[:80]!r} is not HOST:PORT")
        return run_worker(config, process, given, until_idle=until_idle, parent=parent)
    if addresses:
        raise InputError("--addresses needs --process-id: which of them is this one?")
    from netclust.stream.cluster.supervisor import Supervisor

    return Supervisor(config, workers, until_idle=until_idle).run()


def check(config: Path) -> None:
    """Whether a configuration can be used."""
    cluster, model = check_cluster(load_config(config), str(config))
    say(f"{config}: {cluster.partitions} partitions of schema {model.encoding.schema.name}: it would start")


def label(
    config: Path, target: str | None, name: str | None, undo: str, stream: str, by: str | None, json: Path | None
) -> None:
    """Write the same message to every lane."""
    cluster, model = check_cluster(load_config(config), str(config))
    ident = f"l-{secrets.token_hex(6)}"
    who = by or getpass.getuser()
    if undo:
        if target or name:
            raise InputError("--undo takes a label back: give nothing else")
        message = LabelMessage(id=ident, label="", by=who, undo=undo)
    elif target and name:
        word = model.encoding.schema.normal[0] if name == "normal" else name.removeprefix("attack:")
        message = _about(target, stream, LabelMessage(id=ident, label=word, by=who))
    else:
        raise InputError("what is what? netclust shards label -c FILE cluster:N NAME, or --undo ID")
    body = pack_label(message)
    writer = open_writer(cluster.input, cluster.partitions)
    try:
        writer.open()
        writer.send([Outgoing(lane=lane, number=0, body=body) for lane in range(cluster.partitions)])
    except BusError as error:
        raise InputError(f"{error}: nobody was told, or not all; tell them again") from None
    finally:
        writer.close()
    if str(json) != "-":
        say(ident)
    write_json(json, result(["shards", "label"], {"id": ident, "lanes": cluster.partitions}, seed=None, data={}))


def _about(target: str, stream: str, message: LabelMessage) -> LabelMessage:
    import msgspec

    if found := re.fullmatch(r"cluster:([0-9]{1,18})", target):
        return msgspec.structs.replace(message, cluster=int(found[1]))
    if found := re.fullmatch(r"([^/]{1,200})/(.{1,200}):([0-9]{1,18})", target):
        place = RecordPlace(sensor=found[1], source=found[2], seq=int(found[3]), stream=stream)
        return msgspec.structs.replace(message, record=place)
    raise InputError(f"{target[:80]!r}: a cluster is cluster:N, a record SENSOR/SOURCE:SEQ")
