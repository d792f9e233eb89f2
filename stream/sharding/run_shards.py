"""`netclust shards`: run the distributed engine, show its status, and send labels to its shards."""

from __future__ import annotations

import getpass
import re
import secrets
from pathlib import Path

import msgspec

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.options.output import check_folders, counted, echo, output_note, output_result, output_table, write_json
from netclust.stream.bus.base import BusError, Outgoing
from netclust.stream.bus.factory import open_writer, parse_bus_url
from netclust.stream.bus.record_messages import LabelMessage, RecordPlace, pack_label
from netclust.stream.config import ShipConfig, load_config
from netclust.stream.sharding.recovery import check_recovery as check_state
from netclust.stream.sharding.recovery import recovery_dir
from netclust.stream.sharding.status import ShardingStatus, sharding_status
from netclust.stream.sharding.worker import check_sharding, run_worker

__all__ = ["run_shards", "run_shards_check", "run_shards_label", "run_shards_status"]

_COLUMNS = {
    "partition": "partition", "waiting": "waiting", "records_waiting": "records, about", "position": "read up to",
    "messages": "read", "records": "judged", "verdicts": "verdicts", "events": "events", "alerts": "alerts",
    "alerts_open": "open", "last_time": "last record", "kept": "kept",
}  # fmt: skip
"""Columns of the table: an attribute of `PartitionStatus`, and its heading."""


def run_shards(
    config: Path, workers: int, process: int | None, addresses: str, *, until_idle: float | None, parent: int | None
) -> int:
    """Run all workers of this machine, or one process of an engine on several machines."""
    if process is not None:
        given = [address.strip() for address in addresses.split(";") if address.strip()]
        for address in given:
            if not re.fullmatch(r"[^\s:]+:[0-9]{1,5}", address):
                raise InputError(f"--addresses: {address[:80]!r} is not HOST:PORT")
        return run_worker(config, process, given, until_idle=until_idle, parent=parent)
    if addresses:
        raise InputError("--addresses needs --process-id: which of them is this one?")
    from netclust.stream.sharding.supervisor import Supervisor

    return Supervisor(config, workers, until_idle=until_idle).run()


def run_shards_check(config: Path) -> None:
    """Print whether a configuration can be used, and what it says; the bus is not asked."""
    whole = load_config(config)
    sharding, model = check_sharding(whole, str(config))
    folder = recovery_dir(whole, sharding)
    there = check_state(folder, sharding)
    require_optional("bytewax", "netclust shards", "cluster")
    count = counted(sharding.partitions, "partition")
    for warning in whole.old_spellings:
        output_note(f"{config}: {warning}")
    echo(f"{config}: {count} of schema {model.encoding.schema.name}: it would start")
    for name in ("input", "verdicts", "events", "campaigns"):
        url = getattr(sharding, name)
        echo(f"  {name + ':':<10} {parse_bus_url(url) if url else 'not written'}")
    echo(f"  state:     {folder}, {'which it goes on from' if there else 'which is new'}")
    echo(f"  metrics:   {sharding.metrics or 'none'}")
    given = {"[[source]]": whole.sources, "[[sink]]": whole.sinks, "[ship]": whole.ship != ShipConfig()}
    if unused := [name for name, there in given.items() if there]:
        output_note(f"{', '.join(unused)}: the daemon's, and not used by shards")


def run_shards_status(config: Path, json: Path | None) -> None:
    """Show the status of every partition."""
    check_folders(json)
    settings = load_config(config)
    sharding, _ = check_sharding(settings, str(config))
    found = sharding_status(settings, sharding)
    if str(json) != "-":
        _show(config, found)
    write_json(json, output_result(["shards", "status"], msgspec.to_builtins(found), seed=None, data={}))


def _show(config: Path, found: ShardingStatus) -> None:
    rows = [
        ["-" if (value := getattr(partition, name)) in (None, "") else value for name in _COLUMNS]
        for partition in found.partition_statuses
    ]
    output_table(f"{config}: state in {found.recovery}", list(_COLUMNS.values()), rows)
    if not found.kept:
        echo("it has not run yet, or not for an epoch")
    opened, still_open = (
        sum(getattr(partition, name) for partition in found.partition_statuses) for name in ("alerts", "alerts_open")
    )
    campaigns = "" if found.campaigns is None else f", {counted(found.campaigns, 'campaign')}"
    waiting = sum(partition.waiting for partition in found.partition_statuses)
    echo(f"{counted(waiting, 'message')} waiting, {counted(opened, 'alert')} ({still_open:,} open){campaigns}")


def run_shards_label(
    config: Path, target: str | None, name: str | None, undo: str, stream: str, by: str | None, json: Path | None
) -> None:
    """Write the same message to every partition."""
    sharding, model = check_sharding(load_config(config), str(config))
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
    writer = open_writer(sharding.input, sharding.partitions)
    try:
        writer.open()
        writer.send([Outgoing(partition=partition, number=0, body=body) for partition in range(sharding.partitions)])
    except BusError as error:
        raise InputError(f"{error}: nobody was told, or not all; tell them again") from None
    finally:
        writer.close()
    if str(json) != "-":
        echo(ident)
        if sharding.events:
            output_note(
                f"the shard that it concerns answers by an event (notice-feedback) in {parse_bus_url(sharding.events)}"
            )
    write_json(
        json, output_result(["shards", "label"], {"id": ident, "lanes": sharding.partitions}, seed=None, data={})
    )


def _about(target: str, stream: str, message: LabelMessage) -> LabelMessage:
    if found := re.fullmatch(r"cluster:([0-9]{1,18})", target):
        return msgspec.structs.replace(message, cluster=int(found[1]))
    if found := re.fullmatch(r"([^/]{1,200})/(.{1,200}):([0-9]{1,18})", target):
        place = RecordPlace(sensor=found[1], source=found[2], seq=int(found[3]), stream=stream)
        return msgspec.structs.replace(message, record=place)
    raise InputError(f"{target[:80]!r}: a cluster is cluster:N, a record SENSOR/SOURCE:SEQ")
