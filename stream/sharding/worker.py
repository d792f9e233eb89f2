"""A worker process of the distributed engine: configuration and model in, the dataflow until it is stopped."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from netclust.errors import InputError, NetclustError
from netclust.foundation.optional import require_optional
from netclust.scoring.model import Model
from netclust.stream.bus.base import BusError
from netclust.stream.bus.factory import check_bus, parse_bus_url
from netclust.stream.config import Config, ShardingConfig, load_config
from netclust.stream.daemon.build import check_detector, load_model, model_name

if TYPE_CHECKING:
    from netclust.stream.sharding.shard import Shard

__all__ = ["BUS_AWAY", "check_sharding", "run_worker"]

MAX_PARTITIONS = 4096
BUS_AWAY = 75
"""The exit code of a worker that the bus did not answer: whoever starts it again need not count that against it."""
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def check_sharding(config: Config, where: str) -> tuple[ShardingConfig, Model]:
    """Check all that can be known before the start; InputError says what is wrong."""
    sharding = config.sharding
    if sharding is None:
        raise InputError(f"{where}: no [sharding]: say at least input = and events = or verdicts =")
    if not (sharding.verdicts or sharding.events):
        raise InputError(f"{where}: [sharding] writes nothing: give verdicts =, events = or both")
    if not config.model.path and not config.sources:
        raise InputError(f'{where}: which model? [model] path = "conn", "flow" or a file')
    plain = []
    for name in ("input", "verdicts", "events", "campaigns"):
        try:
            plain += [str(check_bus(url))] if (url := getattr(sharding, name)) else []
        except InputError as error:
            raise InputError(f"{where}: sharding.{name}: {error}") from None
    if len(set(plain)) < len(plain):
        raise InputError(f"{where}: [sharding] has the same topic twice")
    if not 1 <= sharding.partitions <= MAX_PARTITIONS:
        raise InputError(f"{where}: sharding.partitions lies between 1 and {MAX_PARTITIONS}")
    for name, least in (("batch_messages", 1), ("max_campaign_clusters", 2), ("max_restarts", 0)):
        if not least <= getattr(sharding, name) <= 1 << 20:
            raise InputError(f"{where}: sharding.{name} lies between {least} and {1 << 20}")
    if not 0.05 <= sharding.epoch_seconds <= 3600:
        raise InputError(f"{where}: sharding.epoch_seconds lies between 0.05 and 3600")
    if not 0 <= sharding.campaign_gap_seconds <= 1e9:
        raise InputError(f"{where}: sharding.campaign_gap_seconds is a number of seconds, 0 or more")
    if config.window.partitions not in (1, sharding.partitions):
        raise InputError(f"{where}: window.partitions is the daemon's: leave it out, or make it sharding.partitions")
    try:
        model = load_model(config)
        check_detector(config, model)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if sharding.partitions > 1 and model.encoding.schema.with_role("key") is None:
        raise InputError(
            f"{where}: schema {model.encoding.schema.name} of model {model_name(config)} has no key attribute, so "
            "there is 1 partition"
        )
    if sharding.metrics:
        from netclust.stream.http.guard import parse_listen

        try:
            parse_listen(sharding.metrics)
        except InputError as error:
            raise InputError(f"{where}: sharding.metrics: {error}") from None
    return sharding, model


def run_worker(
    path: Path, process: int, addresses: Sequence[str], *, until_idle: float | None = None, parent: int | None = None
) -> int:
    """Run process number `process` of those at these addresses, until SIGTERM; the exit code."""
    bytewax = require_optional("bytewax.run", "netclust shards", "cluster")
    from netclust.stream.daemon.kernel_preload import log_kernel_preload, preload_kernels
    from netclust.stream.logs import Log
    from netclust.stream.sharding.dataflow import build_flow
    from netclust.stream.sharding.partitions import Progress
    from netclust.stream.sharding.recovery import lock_recovery, prepare_recovery, recovery_dir, refuse_used_topics
    from netclust.stream.sharding.shard_metrics import Measures
    from netclust.stream.sharding.shard_warnings import ShardWarnings

    if parent is not None:
        _end_with(parent)
    if not 0 <= process < max(len(addresses), 1):
        raise InputError(f"process {process} of {len(addresses)}: there is none")
    config = load_config(path)
    sharding, model = check_sharding(config, str(path))
    log = Log(config.log.format, config.log.level)
    log_kernel_preload(log)
    if parent is None:  # else the supervisor has warned
        for warning in config.old_spellings:
            log.warning(warning)
    folder = recovery_dir(config, sharding)
    try:
        refuse_used_topics(folder, sharding)
    except BusError as error:
        log.error("worker dies", process=process, why=f"the bus does not answer: {error}")
        return BUS_AWAY
    store = prepare_recovery(folder, sharding)
    held = None if parent is not None else lock_recovery(folder, shared=True)
    preload_kernels(config, model, warming=bool(config.warmup.records))
    progress = Progress(until_idle=until_idle)

    def stop(number: int, frame: object) -> None:
        progress.stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    measures = Measures(progress)
    shard_warnings = ShardWarnings(log, progress, sharding.input, sharding.partitions, first=process == 0)
    if sharding.metrics:
        measures.serve(sharding.metrics, 0 if parent is None else process)

    def watch(shard: Shard) -> None:
        measures.watch(shard)
        shard_warnings.watch(shard)

    flow = build_flow(model, config, sharding, progress, watch=watch, seen=measures.seen)
    log.info("worker begins", process=process, processes=max(len(addresses), 1), partitions=sharding.partitions,
             input=str(parse_bus_url(sharding.input)))  # fmt: skip
    shard_warnings.begin()
    try:
        bytewax.cli_main(
            flow,
            process_id=process if len(addresses) > 1 else None,
            addresses=list(addresses) if len(addresses) > 1 else None,
            epoch_interval=timedelta(seconds=sharding.epoch_seconds),
            recovery_config=bytewax.RecoveryConfig(str(store)),
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust, when another process is lost, is no Exception
        why = _reason(error)
        away = progress.trouble and not isinstance(why, NetclustError)
        reason = f"the bus does not answer: {progress.trouble}" if away else str(why) or type(why).__name__
        if not away and not isinstance(why, Exception):
            reason = f"another worker was lost, or the dataflow broke ({reason})"
        log.error("worker dies", process=process, why=reason)
        # At once: threads of Bytewax are still at work, and Python aborts if it ends in good order and meets them.
        os._exit(BUS_AWAY if away else why.exit_code if isinstance(why, NetclustError) else 1)
    finally:
        if held is not None:
            held.close()
    shard_warnings.look(hurry=True)
    log.info("worker ends", process=process, records=measures.records, first=round(progress.first, 3),
             last=round(progress.last, 3), **dict(progress.counters))  # fmt: skip
    return 0


def _reason(error: BaseException) -> BaseException:
    """What Bytewax wraps: the first of its causes."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _end_with(parent: int) -> None:
    """Do not outlive the supervisor, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
